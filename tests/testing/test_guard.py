"""Brokers of tests with TLS, users and ACLs: who gets in, what they may do, and what the test itself may."""

from __future__ import annotations

import gc
import os
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from pykafkad.testing import Broker
from pykafkad.testing.guard import CONTROL_HOST
from pykafkad.wire import messages
from tests.cli.test_users import Client
from tests.testing.any_request import AnyClient

USERS = {"alice": "secret", "bob": 'x "\\'}
ACLS = ["alice read,write topic orders", "bob describe topic bills"]


class TlsClient(Client):
    """A client that trusts an authority."""

    def __init__(self, port: int, ca_file: str) -> None:
        super().__init__(port)
        self.file.close()
        context = ssl.create_default_context(cafile=ca_file)
        self.stream = context.wrap_socket(self.stream, server_hostname="localhost")
        self.file = self.stream.makefile("rb")


def port_of(broker: Broker) -> int:
    """Where its clients come."""
    return int(broker.bootstrap.rpartition(":")[2])


def topics_of(client: Client) -> list[str]:
    """The topics that a client sees."""
    return sorted(topic.name for topic in client.ask(messages.MetadataRequest(topics=None), 12).topics)


@pytest.mark.long
@pytest.mark.parametrize("own_process", (False, True))
def test_users_see_what_acls_allow(own_process: bool) -> None:
    """Through a reset, a restart and a way back; the test itself sees and does everything."""
    topics = {"orders": 1, "bills": 1}
    with Broker(topics=topics, users=USERS, acls=ACLS, own_process=own_process) as broker:
        assert broker.topics() == topics
        broker.save("first")
        for change in (broker.reset, broker.restart, lambda: broker.rewind("first")):
            change()
            broker.produce("orders", "one")
            assert broker.records("orders")[-1].value == b"one"
            for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
                client = Client(port_of(broker))
                assert client.log_in(mechanism, USERS["alice"])[-1].error_code == 0
                assert topics_of(client) == ["orders"]
                client.close()
            client = Client(port_of(broker))
            assert client.log_in("PLAIN", "wrong")[-1].error_code == 58
            client.close()


@pytest.mark.long
def test_a_broker_that_is_killed_asks_for_the_same(tmp_path: Path) -> None:
    """In a process of its own with its data in a directory."""
    with Broker(users=USERS, acls=ACLS, topics=["orders", "bills"], own_process=True, data=tmp_path) as broker:
        bootstrap = broker.bootstrap
        broker.restart(is_killed=True)
        assert broker.bootstrap == bootstrap and set(broker.topics()) == {"orders", "bills"}
        client = Client(port_of(broker))
        assert client.log_in("SCRAM-SHA-256", USERS["alice"])[-1].error_code == 0
        assert topics_of(client) == ["orders"]
        client.close()


@pytest.mark.long
def test_clients_encrypt() -> None:
    """With an authority that is made for the broker, and gone with it."""
    broker = Broker(tls=True, users={"alice": "secret"}, topics=["orders"])
    ca_file = broker.client_config("confluent")["ssl.ca.location"]
    with broker:
        client = TlsClient(port_of(broker), ca_file)
        assert client.log_in("PLAIN", "secret")[-1].error_code == 0
        assert topics_of(client) == ["orders"]
        client.close()
        plain = socket.create_connection(("localhost", port_of(broker)), timeout=30)
        plain.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\1\0\0")
        try:
            assert plain.recv(100) == b""
        except ConnectionResetError:
            pass
        plain.close()
    assert Path(ca_file).exists()
    del broker
    gc.collect()
    assert not Path(ca_file).parent.exists()


def test_certificates_are_kept_with_the_data(tmp_path: Path) -> None:
    """So that clients of a later run trust it too."""
    first = Broker(tls=True, data=tmp_path)
    ca_file = first.client_config("java")["ssl.truststore.location"]
    text = Path(ca_file).read_text()
    assert Path(ca_file).parent == tmp_path
    with Broker(tls=True, data=tmp_path) as broker:
        assert Path(ca_file).read_text() == text
        client = TlsClient(port_of(broker), ca_file)
        assert topics_of(client) == []
        client.close()


def test_the_own_listener_is_for_this_machine() -> None:
    """Whatever address clients use."""
    broker = Broker(users=USERS, host="0.0.0.0")
    clients, control = broker._running._options.listeners()
    assert (clients.host, clients.security_protocol) == ("0.0.0.0", "SASL_PLAINTEXT")
    assert (control.host, control.security_protocol) == (CONTROL_HOST, "PLAINTEXT")


def test_client_configs() -> None:
    """The user and the mechanism are the test's choice; the first user, by SCRAM-SHA-512, is the default."""
    broker = Broker(users=USERS)
    assert broker.client_config("kafka-python", group="g", user="bob", mechanism="PLAIN") == {
        "bootstrap_servers": "",
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "bob",
        "sasl_plain_password": USERS["bob"],
    }
    found = broker.client_config("kafkajs")
    assert found["sasl"] == {"mechanism": "scram-sha-512", "username": "alice", "password": "secret"}
    both = Broker(tls=True, users=USERS)
    assert isinstance(both.client_config("aiokafka")["ssl_context"], ssl.SSLContext)
    (pem,) = both.client_config("kafkajs")["ssl"]["ca"]
    assert pem.startswith("-----BEGIN CERTIFICATE-----")
    assert Broker(users={"j\u00f6rg": "x"}).client_config("spark")["kafka.sasl.mechanism"] == "PLAIN"
    assert "sasl.mechanism" not in Broker(tls=True).client_config("confluent")


def test_the_tests_own_super_users_stay() -> None:
    """Beside whoever calls by the own listener."""
    broker = Broker(users=USERS, acls=ACLS, settings={"super.users": "User:bob"})
    assert broker._running._options.broker_settings().static["super.users"] == "User:bob;User:ANONYMOUS"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"acls": ["alice reads topic orders"], "users": USERS}, ValueError, "acls: .*'reads' is no operation"),
        ({"acls": ["alice read topic orders"]}, ValueError, "acls: they need users"),
        ({"acls": "alice read topic orders", "users": USERS}, TypeError, "acls: .* is a text; give a list of entries"),
    ],
)
def test_arguments_are_checked_when_they_are_written(arguments: Any, error: Any, text: str) -> None:
    """Not when the broker starts."""
    with pytest.raises(error, match=text):
        Broker(**arguments)


@pytest.mark.parametrize(
    ("broker", "options", "text"),
    [
        ({}, {"user": "alice"}, "this broker has no users"),
        ({"tls": True}, {"mechanism": "PLAIN"}, "this broker has no users"),
        ({"users": USERS}, {"user": "carol"}, "there is no user 'carol'; there are: alice, bob"),
        ({"users": USERS}, {"mechanism": "GSSAPI"}, "alice logs in by PLAIN, .*512, not by GSSAPI"),
        ({"users": USERS}, {"client": "faststream"}, "faststream: how it encrypts and logs in is not known here"),
    ],
)  # fmt: skip
def test_what_no_client_can_be_told(broker: Any, options: Any, text: str) -> None:
    """With what there is instead."""
    with pytest.raises(ValueError, match=text):
        Broker(**broker).client_config(**{"client": "java", **options})


def test_an_audit_in_a_file_over_a_way_back(tmp_path: Path) -> None:
    """Each broker writes to the end of the file, and none keeps it open."""
    path = tmp_path / "audit.jsonl"
    with Broker(topics=["orders"], users={"bob": "pw"}, acls=["alice read topic orders"], audit=path) as broker:
        broker.save("here")
        for _ in range(2):
            client = AnyClient(broker)
            client.answer(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1)
            client.answer(messages.SaslAuthenticateRequest(auth_bytes=b"\0bob\0pw"), 2)
            topic = messages.MetadataRequest.MetadataRequestTopic(name="orders")
            assert client.answer(messages.MetadataRequest(topics=[topic]), 9).topics[0].error_code
            client.close()
            broker.rewind("here")
        opened = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
        assert opened.count(str(path)) == 1
    assert len(path.read_text().splitlines()) == 2
    with pytest.raises(ValueError, match="nobody is denied anything"):
        Broker(audit=path)
