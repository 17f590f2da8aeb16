"""Several brokers in a test: what is asked of them, and what becomes of it when one of them goes."""

from __future__ import annotations

import socket

import pytest

from pykafkad.cli import login
from pykafkad.cli.output import Failure
from pykafkad.testing import Broker, Refused, Topic
from pykafkad.testing.wire_client import WireClient


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.long)], ids=["thread", "process"])
def broker(request):
    """Three brokers with a topic that all of them lead, on a thread of this process or in one of their own."""
    with Broker(
        brokers=3, topics={"orders": 6}, records={"orders": [str(number) for number in range(12)]},
        own_process=request.param,
    ) as broker:  # fmt: skip
        yield broker
        if not request.param:
            assert broker._running._process.runtime.metrics.unexpected_errors == 0


def addresses(broker):
    return broker.bootstrap.split(",")


def connects(address):
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), 5).close()
    except OSError:
        return False
    return True


def leaders(broker, topic="orders"):
    """The addresses of the leaders of a topic, by partition."""
    answer = broker._asked._metadata(topic)
    known = {row.node_id: f"{row.host}:{row.port}" for row in answer.brokers}
    rows = sorted(answer.topics[0].partitions, key=lambda row: row.partition_index)
    return [known.get(row.leader_id) for row in rows]


def test_records_groups_and_transactions_are_found_at_any_broker(broker):
    assert len(set(addresses(broker))) == 3 and all(map(connects, addresses(broker)))
    assert broker.client_config("kafkajs")["brokers"] == addresses(broker)
    assert broker.client_config("confluent")["bootstrap.servers"] == broker.bootstrap
    assert sorted(leaders(broker)) == sorted([*addresses(broker), *addresses(broker)])
    assert {each.value for each in broker.records("orders")} == {str(number).encode() for number in range(12)}
    assert broker.produce("orders", "x", "y")[1].partition == 1
    names = [f"group {number}" for number in range(6)]
    for name in names:
        broker.commit(name, {("orders", 0): 1, ("orders", 1): 2})
    assert broker.groups() == names
    assert broker.group("group 3").offsets == {("orders", 0): 1, ("orders", 1): 2}
    assert broker.group("group 3").lag == {("orders", 0): 2, ("orders", 1): 1}


def test_one_stops_and_comes_back(broker):
    before = leaders(broker)
    broker.stop_broker(2)
    address = addresses(broker)[1]
    assert not connects(address)
    assert leaders(broker) == [each if each != address else None for each in before]
    with pytest.raises(Refused, match="LEADER|NOT_LEADER"):
        broker.records("orders", before.index(address))
    assert len(broker.records("orders", before.index(addresses(broker)[0]))) == 2
    with pytest.raises(RuntimeError, match="broker 2 is down, not serving"):
        broker.stop_broker(2)
    broker.start_broker(2)
    assert leaders(broker) == before and connects(address)
    assert len(broker.records("orders")) == 12


def test_one_is_killed_and_comes_back(broker):
    before = leaders(broker)
    broker.kill_broker(1)
    assert not connects(addresses(broker)[0])
    broker.clock.advance(10)
    assert leaders(broker).count(None) == 2
    broker.create_topic("more", 4)
    assert None not in leaders(broker, "more") and addresses(broker)[0] not in leaders(broker, "more")
    broker.start_broker(1)
    assert leaders(broker) == before
    assert len(broker.records("orders")) == 12


@pytest.mark.parametrize("is_killed", [False, True])
def test_all_start_again_at_their_addresses(broker, is_killed):
    before = addresses(broker)
    written = len(broker.records("orders"))
    broker.restart(is_killed=is_killed)
    assert addresses(broker) == before and all(map(connects, before))
    assert len(broker.records("orders")) == written == 12


def test_a_reset_is_for_all_of_them(broker):
    broker.create_topic("more", 3)
    broker.produce("orders", "x")
    broker.reset()
    assert broker.topics() == {"orders": 6} and len(broker.records("orders")) == 12


def test_faults_meet_requests_to_each_of_them(broker):
    """A fault that happens once happens once at all of them together."""
    fault = broker.faults.answer("Metadata", "UNKNOWN_SERVER_ERROR", times=2)
    broker.stop_broker(3)
    broker.start_broker(3)
    codes = []
    for address in [*addresses(broker)[::-1], *addresses(broker)]:
        host, port = address.split(":")
        client = WireClient(host, int(port), client_id="someone")
        asked = client.ask("Metadata", topics=None)
        codes.append([row.error_code for row in asked.topics])
        client.close()
    assert [code == [-1] for code in codes] == [True, True, False, False, False, False]
    assert fault.count == 2


def test_the_data_is_a_directory(tmp_path):
    """A single broker at a time can be killed there too."""
    with Broker(brokers=2, data=tmp_path, topics={"t": Topic(4)}, records={"t": ["a", "b", "c", "d"]}) as broker:
        broker.kill_broker(2)
        broker.start_broker(2)
        assert len(broker.records("t")) == 4
    assert {each.name for each in tmp_path.iterdir()} == {"broker1", "broker2", "controller"}
    with Broker(brokers=2, data=tmp_path) as again:
        assert len(again.records("t")) == 4


def test_brokers_have_racks():
    with Broker(brokers=4, racks=["a", "b"], topics={"t": 1}) as broker:
        rows = broker._asked._metadata("t").brokers
        assert [(row.node_id, row.rack) for row in rows] == [(1, "a"), (2, "b"), (3, "a"), (4, "b")]


class OnePassword:
    """A login of one token."""

    def __init__(self, password):
        self._token = f"\0alice\0{password}".encode()

    def auth_bytes(self):
        token, self._token = self._token, None
        return token

    def receive(self, auth_bytes):
        """PLAIN answers nothing."""

    def is_done(self):
        return self._token is None


def log_in(broker, address, password):
    """As a client logs in at one of the brokers; raises `Failure` where it does not take it."""
    trusted = broker.client_config("aiokafka", user="alice", mechanism="PLAIN")["ssl_context"]
    user = None if password is None else login.Login("alice", "PLAIN", OnePassword(password))
    host, port = address.split(":")
    with trusted.wrap_socket(socket.create_connection((host, int(port)), 30), server_hostname=host) as connected:
        login.try_login(connected, address, user)


@pytest.mark.parametrize("own_process", [False, True], ids=["thread", "process"])
@pytest.mark.long
def test_all_of_them_ask_for_tls_and_a_login(own_process):
    """The test's own calls need none, and the brokers replicate all the same, also after a restart."""
    with Broker(
        brokers=3,
        topics={"t": 3},
        settings={"default.replication.factor": 3, "min.insync.replicas": 2},
        tls=True,
        users={"alice": "secret"},
        acls=["alice read topic t"],
        own_process=own_process,
    ) as broker:
        before = addresses(broker)
        for address in before:
            log_in(broker, address, "secret")
            with pytest.raises(Failure, match="wants a login"):
                log_in(broker, address, None)
            with pytest.raises(Failure, match="refuses the login"):
                log_in(broker, address, "wrong")
        broker.produce("t", "a", "b", "c")
        broker.stop_broker(2)
        broker.produce("t", "d")
        broker.start_broker(2)
        broker.restart()
        assert addresses(broker) == before
        log_in(broker, before[1], "secret")
        assert sorted(each.value for each in broker.records("t")) == [b"a", b"b", b"c", b"d"]


def test_what_several_brokers_cannot_be():
    with pytest.raises(ValueError, match="0 is not from 1 to 100"):
        Broker(brokers=0)
    with Broker(brokers=2, settings={"node.id": 5}) as broker:
        broker.produce("t", "x")
        assert [each.value for each in broker.records("t")] == [b"x"]
    with Broker() as one, pytest.raises(RuntimeError, match="there is one broker"):
        one.stop_broker(1)


@pytest.mark.long
@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_several_brokers_act_as_another_release(release):
    """They speak to each other in its versions: records are replicated, and the others go on when a leader stops."""
    settings = {"pykafkad.act.as": release, "default.replication.factor": 3, "min.insync.replicas": 2}
    with Broker(brokers=3, topics={"orders": 3}, settings=settings) as broker:
        broker.produce("orders", "one")
        broker.stop_broker(2)
        broker.produce("orders", "two", "three")
        assert len(broker.records("orders")) == 3 and broker.groups() == []
