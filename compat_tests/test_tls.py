"""Clients over TLS, with and without certificates of their own, beside a plain listener of the same broker. What names
and authorizes the owners of certificates is compared with a real Kafka; the rest is only pykafkad, as each case needs
its own broker."""

from __future__ import annotations

import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import ACL, ACLOperation, ACLPermissionType, NewTopic, ResourcePattern, ResourceType

from compat_tests.brokers.broker import API_VERSIONS_FRAME, Broker, free_port
from compat_tests.brokers.choose import KafkaSource
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, assert_no_bug_logged
from compat_tests.java_tools import JAVA_OPTIONS
from compat_tests.samples import wait_until
from tests import certificates

LARGE_BYTES = 900_000
COUNT = 40


def _write(directory: Path, **texts: str) -> None:
    for name, text in texts.items():
        (directory / f"{name}.pem").write_text(text)


class TlsBroker:
    """A broker with a plain listener and one with TLS; `address` is the latter's."""

    def __init__(
        self, directory: Path, kafka: KafkaSource | None = None, *, inline: bool = False, **settings: str
    ) -> None:
        """With `kafka` a real one. Its settings hold the PEM texts themselves, as it may not see our files; so do those
        of pykafkad, if they are `inline`."""
        port, self.port, controller = free_port(), free_port(), free_port()
        self.address = f"localhost:{self.port}"
        keystore = certificates.server().key_pem + certificates.server().pem
        _write(directory, keystore=keystore, ca=certificates.authority().pem)
        for name, authority in (("alice", "Tests"), ("mallory", "Tests"), ("stranger", "Others")):
            certificate = certificates.client(name, authority)
            _write(directory, **{name: certificate.pem, f"{name}_key": certificate.key_pem})
        self.directory = directory
        self.broker: Broker
        if kafka is not None:
            overrides = {
                "listeners": f"PLAINTEXT://localhost:{port},OUTSIDE://{self.address},CONTROLLER://localhost:{controller}",
                "advertised.listeners": f"PLAINTEXT://localhost:{port},OUTSIDE://{self.address}",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL,CONTROLLER:PLAINTEXT",
                "controller.quorum.bootstrap.servers": f"localhost:{controller}",
                **certificates.settings(**settings),
            }
            overrides = {name: text.replace("\n", "\\n") for name, text in overrides.items()}
            self.broker = kafka.broker(directory, overrides, port)
            return
        overrides = {
            "listeners": f"PLAINTEXT://localhost:{port},OUTSIDE://{self.address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            **{name.replace("_", "."): text for name, text in settings.items()},
        }
        if inline:
            overrides |= {name: text.replace("\n", "\\n") for name, text in certificates.settings(**settings).items()}
        else:
            overrides |= {
                "listener.name.outside.ssl.keystore.type": "PEM",
                "listener.name.outside.ssl.keystore.location": str(directory / "keystore.pem"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(directory / "ca.pem"),
            }
        self.broker = PykafkadProcess(directory, overrides, port=port)

    def file(self, name: str) -> str:
        """The path of a PEM file."""
        return str(self.directory / f"{name}.pem")

    def kafka_python(self, *, certificate: str | None = None) -> dict[str, Any]:
        """Settings of a kafka-python client with the certificate of that name."""
        settings = {"bootstrap_servers": self.address, "security_protocol": "SSL", "ssl_cafile": self.file("ca")}
        if certificate is not None:
            settings |= {"ssl_certfile": self.file(certificate), "ssl_keyfile": self.file(f"{certificate}_key")}
        return settings

    def librdkafka(self, *, certificate: bool = False) -> dict[str, Any]:
        """Settings of a confluent-kafka client."""
        settings = {
            "bootstrap.servers": self.address,
            "security.protocol": "SSL",
            "ssl.ca.location": self.file("ca"),
        }
        if certificate:
            settings |= {
                "ssl.certificate.location": self.file("alice"),
                "ssl.key.location": self.file("alice_key"),
            }
        return settings


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., TlsBroker]]:
    """Starts a broker with the test's settings; it is stopped at the end."""
    started: list[TlsBroker] = []

    def start(**settings: str) -> TlsBroker:
        broker = TlsBroker(tmp_path, **settings)
        started.append(broker)
        broker.broker.start()
        return broker

    yield start
    for each in started:
        each.broker.close()
        assert_no_bug_logged(each.broker)


@pytest.fixture(scope="module", params=["kafka", "pykafkad"])
def authorizing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    """A broker that asks for certificates and authorizes their owners: a real Kafka, then pykafkad."""
    if request.param not in AGAINST[request.config.getoption("--against")]:
        pytest.skip(f"not with --against={request.config.getoption('--against')}")
    kafka = request.getfixturevalue("kafka_source") if request.param == "kafka" else None
    broker = TlsBroker(tmp_path_factory.mktemp("authorizing"), kafka, inline=True, **AUTHORIZED)
    try:
        broker.broker.start()
        yield broker
    finally:
        broker.broker.close()


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("auth", ["none", "requested", "required"])
def test_kafka_python(serve: Callable[..., TlsBroker], auth: str, versions: str) -> None:
    """Small and large records go both ways, in a group."""
    broker = serve(ssl_client_auth=auth, ssl_enabled_protocols=versions)
    settings = broker.kafka_python(certificate=None if auth == "none" else "alice")
    producer = KafkaProducer(**settings, max_request_size=2_000_000)
    values = [bytes([number]) * (LARGE_BYTES if number % 10 == 0 else 100) for number in range(COUNT)]
    for value in values:
        producer.send("records", value, partition=0)
    producer.flush()
    producer.close()
    consumer = KafkaConsumer(
        "records", **settings, group_id="readers", auto_offset_reset="earliest", consumer_timeout_ms=60_000
    )
    assert [next(consumer).value for _ in values] == values
    consumer.close()
    admin = KafkaAdminClient(**settings)
    assert "records" in admin.list_topics()
    admin.close()


@pytest.mark.parametrize("auth", ["none", "requested", "required"])
def test_librdkafka(serve: Callable[..., TlsBroker], auth: str) -> None:
    """The same with librdkafka, whose requests follow each other without waiting."""
    broker = serve(ssl_client_auth=auth)
    settings = broker.librdkafka(certificate=auth != "none")
    producer = Producer({**settings, "message.max.bytes": 2_000_000, "linger.ms": 0})
    values = [bytes([number]) * (LARGE_BYTES if number % 10 == 0 else 100) for number in range(COUNT)]
    for value in values:
        producer.produce("records", value, partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({**settings, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("records", 0, 0)])
    found = []
    while len(found) < COUNT:
        message = consumer.poll(60)
        assert message is not None and message.error() is None
        found.append(message.value())
    consumer.close()
    assert found == values


def test_java(serve: Callable[..., TlsBroker], kafka_jars: Path) -> None:
    """Kafka's own tools write and read with a client certificate, all of it in PEM."""
    broker = serve(ssl_client_auth="required")
    (broker.directory / "client.pem").write_text(certificates.client().key_pem + certificates.client().pem)
    properties = broker.directory / "client.properties"
    properties.write_text(
        "security.protocol=SSL\nssl.truststore.type=PEM\nssl.keystore.type=PEM\n"
        f"ssl.truststore.location={broker.file('ca')}\nssl.keystore.location={broker.file('client')}\n"
    )

    def tool(name: str, *options: str, lines: str | None = None) -> str:
        command = ["java", *JAVA_OPTIONS, "-cp", f"{kafka_jars}/*", f"org.apache.kafka.tools.{name}"]
        command += ["--bootstrap-server", broker.address, "--command-config", str(properties), *options]
        return subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=300).stdout

    tool("TopicCommand", "--create", "--topic", "tea", "--partitions", "1")
    tool("ConsoleProducer", "--topic", "tea", lines="one\ntwo\n")
    read = tool("consumer.ConsoleConsumer", "--topic", "tea", "--from-beginning", "--max-messages", "2")
    assert read.split() == ["one", "two"]


def test_logins_through_tls(serve: Callable[..., TlsBroker]) -> None:
    """SASL_SSL: the password goes through TLS, and the certificate names nobody."""
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
    broker = serve(
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OUTSIDE:SASL_SSL",
        # It counts on listeners without SASL only.
        ssl_client_auth="required",
        sasl_enabled_mechanisms="PLAIN",
        listener_name_outside_plain_sasl_jaas_config=login,
    )
    settings = {**broker.kafka_python(), "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}
    producer = KafkaProducer(**settings, sasl_plain_username="alice", sasl_plain_password="secret")
    assert producer.send("records", b"value").get(60).offset == 0
    producer.close()


AUTHORIZED = {
    "ssl_client_auth": "required",
    "ssl_principal_mapping_rules": "RULE:^CN=([^,]*),OU=Tea,O=Wonderland,C=FR$/$1/L,DEFAULT",
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS;User:alice",
}


def test_certificates_say_who_may(authorizing: TlsBroker) -> None:
    """The subject of a certificate, through the rules, is the principal that ACLs name; the same PEM texts and rules
    serve a real Kafka."""
    alice = KafkaAdminClient(**authorizing.kafka_python(certificate="alice"))
    assert alice.create_topics([NewTopic("tea", 1, 1)])
    mallory = KafkaAdminClient(**authorizing.kafka_python(certificate="mallory"))
    assert "tea" not in mallory.list_topics()
    alice.create_acls([
        ACL("User:mallory", "*", ACLOperation.DESCRIBE, ACLPermissionType.ALLOW,
            ResourcePattern(ResourceType.TOPIC, "tea"))
    ])  # fmt: skip
    wait_until(lambda: "tea" in mallory.list_topics(), "the ACL of the certificate's name counts")
    alice.close()
    mallory.close()


def _shown(broker: TlsBroker) -> bytes | None:
    """The certificate that a new connection is shown, as DER."""
    context = ssl.create_default_context(cafile=broker.file("ca"))
    context.load_cert_chain(broker.file("alice"), broker.file("alice_key"))
    with context.wrap_socket(
        socket.create_connection(("localhost", broker.port)), server_hostname="localhost"
    ) as connection:
        return connection.getpeercert(binary_form=True)


def test_certificates_are_renewed_live(authorizing: TlsBroker) -> None:
    """New connections see the new certificate (KIP-226). One for somebody else, one that lacks a name, and one that
    cannot be loaded are refused with INVALID_REQUEST, and so is a key store of all listeners. Whether clients show a
    certificate can be set, and does not change while the listener is served."""
    admin = AdminClient({"bootstrap.servers": authorizing.broker.bootstrap})
    node = str(next(iter(admin.list_topics(timeout=60).brokers)))
    of_listener = "listener.name.outside."
    key, chain = f"{of_listener}ssl.keystore.key", f"{of_listener}ssl.keystore.certificate.chain"
    client_auth = f"{of_listener}ssl.client.auth"

    def alter(texts: dict[str, str | None]) -> int:
        operations = [
            ConfigEntry(
                name,
                text,
                incremental_operation=AlterConfigOpType.SET if text is not None else AlterConfigOpType.DELETE,
            )
            for name, text in texts.items()
        ]
        resource = ConfigResource(ConfigResource.Type.BROKER, node, incremental_configs=operations)
        try:
            admin.incremental_alter_configs([resource])[resource].result(60)
        except KafkaException as error:
            return int(error.args[0].code())
        return 0

    def store(certificate: Any) -> dict[str, str | None]:
        return {key: certificate.key_pem, chain: certificate.pem}

    new = certificates.renewed()
    assert _shown(authorizing) == certificates.server().der
    assert alter(store(new)) == 0
    wait_until(lambda: _shown(authorizing) == new.der, "the new certificate is shown")
    invalid = KafkaError.INVALID_REQUEST
    assert alter(store(certificates.renewed("other"))) == invalid
    assert alter(store(certificates.renewed(hosts=("elsewhere",)))) == invalid
    assert alter({key: "nothing"}) == invalid
    assert alter({"ssl.keystore.location": "/nowhere"}) == invalid
    assert _shown(authorizing) == new.der
    assert alter({client_auth: "none"}) == 0
    assert alter({key: None, chain: None}) == 0
    wait_until(lambda: _shown(authorizing) == certificates.server().der, "the first certificate is shown again")
    context = ssl.create_default_context(cafile=authorizing.file("ca"))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connection = context.wrap_socket(
            socket.create_connection(("localhost", authorizing.port)), server_hostname="localhost"
        )
        connection.sendall(API_VERSIONS_FRAME)
        if connection.recv(1) == b"":
            raise ConnectionError("closed")
    assert alter({client_auth: None}) == 0


def test_strangers_are_turned_away(authorizing: TlsBroker) -> None:
    """Without a certificate, or with one of another authority, nobody is served."""
    for name in (None, "stranger"):
        context = ssl.create_default_context(cafile=authorizing.file("ca"))
        if name is not None:
            context.load_cert_chain(authorizing.file(name), authorizing.file(f"{name}_key"))
        with pytest.raises((ssl.SSLError, ConnectionError)):
            connection = context.wrap_socket(
                socket.create_connection(("localhost", authorizing.port)), server_hostname="localhost"
            )
            connection.sendall(API_VERSIONS_FRAME)
            if connection.recv(1) == b"":
                raise ConnectionError("closed")


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_certificate_is_asked_for_by_version(authorizing: TlsBroker, version: str) -> None:
    """A plain TLS client with a certificate is answered in both versions."""
    context = ssl.create_default_context(cafile=authorizing.file("ca"))
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    context.load_cert_chain(authorizing.file("alice"), authorizing.file("alice_key"))
    with context.wrap_socket(
        socket.create_connection(("localhost", authorizing.port)), server_hostname="localhost"
    ) as connection:
        connection.sendall(API_VERSIONS_FRAME)
        assert connection.recv(8)[4:] == b"\0\0\0\7"


def test_plain_bytes_get_no_answer(authorizing: TlsBroker) -> None:
    """A plain request at the TLS port ends in a closed connection."""
    with socket.create_connection(("localhost", authorizing.port)) as connection:
        connection.sendall(API_VERSIONS_FRAME)
        answer = b""
        try:
            while data := connection.recv(100):
                answer += data
        except ConnectionError:
            pass
        # Java says so in an alert.
        assert answer == b"" or answer[0] == 0x15


def test_a_client_without_the_certificate_that_is_required(serve: Callable[..., TlsBroker]) -> None:
    """It is turned away, with a line in the broker's log."""
    broker = serve(ssl_client_auth="required")
    context = ssl.create_default_context(cafile=broker.file("ca"))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connection = context.wrap_socket(
            socket.create_connection(("localhost", broker.port)), server_hostname="localhost"
        )
        connection.recv(1)
    broker.broker.stop()
    assert "the peer showed no certificate, and ssl.client.auth requires one" in broker.broker.log_text()


def test_clients_at_the_wrong_listener(serve: Callable[..., TlsBroker]) -> None:
    """A plain client at the TLS port and a TLS client at the plain one are closed, each with a line that says so."""
    broker = serve()
    context = ssl.create_default_context(cafile=broker.file("ca"))
    host, _, port = broker.broker.bootstrap.rpartition(":")
    with pytest.raises((ssl.SSLError, ConnectionError)), socket.create_connection((host, int(port))) as plain:
        context.wrap_socket(plain, server_hostname="localhost")
    with socket.create_connection(("localhost", broker.port)) as connection:
        connection.sendall(b"\0\0\0\x0a\0\x12\0\0\0\0\0\7\xff\xff")
        assert connection.recv(1) == b""
    broker.broker.stop()
    log = broker.broker.log_text()
    assert "not TLS: a request in plain text on a listener with TLS" in log
    assert "not Kafka's protocol: a TLS handshake on a PLAINTEXT listener" in log
