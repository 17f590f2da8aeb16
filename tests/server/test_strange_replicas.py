"""Brokers that ask or answer what cannot be, as followers and as leaders, are named in the log."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pykafkad import errors
from pykafkad.log.follower import Follower, Pause
from pykafkad.metadata.brokers import Endpoint
from pykafkad.server import strange_replicas
from pykafkad.server.logs import Logs
from pykafkad.server.strange_replicas import LASTING_SECONDS, StrangeReplicas
from tests.simulation.replication_clients import Clients
from tests.simulation.replication_world import World

PEER = "10.0.0.7:5000"
NORMAL = (errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH, errors.NOT_LEADER_OR_FOLLOWER)
LOG = SimpleNamespace(topic="t", partition=0, written_end_offset=10, leader_epoch=5)


class Lines:
    """Where the log goes."""

    def __init__(self):
        self.all = []

    def line(self, level, name, event, fields):
        self.all.append((level, event, fields))


class Machine:
    """A broker, and what it says of others."""

    def __init__(self):
        self.lines = Lines()
        self.runtime = SimpleNamespace(now=100.0)
        self.logs = Logs("debug", self.lines)
        self.strange = StrangeReplicas(self)

    def refused(self, code, offset=0, epoch=-1, *, follower=7, seconds=0.0, partition=0):
        """A follower is refused; the words in which it is named now."""
        self.runtime.now += seconds
        before = len(self.named())
        log = SimpleNamespace(**{**vars(LOG), "partition": partition})
        self.strange.refused(PEER, follower, log, code, offset, epoch)
        return [fields["reason"] for fields in self.named()[before:]]

    def named(self):
        return [fields for level, event, fields in self.lines.all if event == "follower-refused" and level != "debug"]


@pytest.mark.parametrize(
    ("offset", "epoch", "is_named"),
    [
        (11, 5, True),
        (11, 6, True),
        (11, -1, True),
        # Records of an earlier epoch that the leader does not have: the follower was the leader then.
        (11, 4, False),
        (10, 5, False),
        # Deleted at the leader.
        (0, 5, False),
    ],
)
def test_a_follower_with_records_that_its_leader_never_had(offset, epoch, is_named):
    machine = Machine()
    told = machine.refused(errors.OFFSET_OUT_OF_RANGE, offset, epoch)
    assert bool(told) is is_named
    if is_named:
        (fields,) = machine.named()
        assert {"peer": PEER, "broker": 7, "topic": "t", "partition": 0, "end_offset": 10}.items() <= fields.items()
        assert fields["fetch_offset"] == 11
    assert machine.refused(errors.OFFSET_OUT_OF_RANGE, offset, epoch) == [], "once a minute"


@pytest.mark.parametrize("code", NORMAL)
def test_what_is_usual_after_an_election_is_named_when_it_lasts(code):
    machine = Machine()
    for _ in range(6):
        assert machine.refused(code, seconds=LASTING_SECONDS / 5 - 0.01) == []
    assert len(machine.refused(code, seconds=0.1)) == 1


@pytest.mark.parametrize("code", NORMAL)
def test_refusals_with_pauses_are_those_of_several_elections(code):
    machine = Machine()
    for _ in range(5):
        assert machine.refused(code, seconds=LASTING_SECONDS) == []


@pytest.mark.parametrize("code", NORMAL)
def test_refusals_of_one_partition_after_another_are_those_of_a_broker_that_is_drained(code):
    """A partition that is refused meanwhile, and goes on to be, is named."""
    machine = Machine()
    for partition in range(1, 40):
        assert machine.refused(code, seconds=0.5, partition=partition) == []
    told = []
    for partition in range(40, 80):
        told += machine.refused(code, seconds=0.3, partition=partition)
        told += machine.refused(code, seconds=0.2)
    assert len(told) == 1
    assert machine.named()[0]["partition"] == 0


def test_each_broker_of_one_host_is_named():
    machine = Machine()
    for follower in (7, 8, 7):
        machine.refused(errors.OFFSET_OUT_OF_RANGE, 11, follower=follower)
    words = "says that it has records which this leader never had"
    assert [each["reason"] for each in machine.named()] == [f"broker 7 {words}", f"broker 8 {words}"]


def test_a_bounded_number_of_refusals_is_looked_at(monkeypatch):
    """One that is over makes room."""
    monkeypatch.setattr(strange_replicas, "MAX_REFUSALS", 3)
    machine = Machine()
    for follower in range(5):
        machine.refused(errors.FENCED_LEADER_EPOCH, follower=follower)
    assert [follower for follower, _ in machine.strange._refusals] == [0, 1, 2]
    machine.refused(errors.FENCED_LEADER_EPOCH, follower=0, seconds=LASTING_SECONDS - 1)
    machine.refused(errors.FENCED_LEADER_EPOCH, follower=4, seconds=1)
    assert [follower for follower, _ in machine.strange._refusals] == [2, 0, 4]


def test_a_leader_is_named_by_its_address_once_a_minute():
    machine = Machine()
    endpoint = Endpoint("PLAINTEXT", "10.0.0.3", 9092)
    for pause in (Pause("NOT_LEADER_OR_FOLLOWER", True), *[Pause("a batch with a wrong checksum", False)] * 3):
        machine.strange.leader_refused(3, endpoint, LOG, pause)
    shown = [(level, event, fields.get("peer")) for level, event, fields in machine.lines.all if level != "debug"]
    assert shown == [("warning", "leader-refused", "10.0.0.3:9092")]
    assert len(machine.lines.all) == 4
    machine.strange.leader_refused(4, endpoint, LOG, Pause("a batch with a wrong checksum", False))
    assert machine.lines.all[-1][0] == "warning", "another leader of the same host"


@pytest.fixture
def world():
    made = World(1)
    yield made
    assert made.unexpected_errors() == 0, made.lines


def flip_last_byte(world, node_id, topic):
    """Of a broker's log, behind its back."""
    (path,) = (each for each in world.nodes[node_id].disk.files if f"/{topic}-0/" in each and each.endswith(".log"))
    content = world.nodes[node_id].disk.files[path]
    position = world.log(node_id, topic).size_bytes - 1
    content.data[position] ^= 1


def test_a_leader_that_sends_damaged_batches_is_named_and_nothing_of_them_is_taken(world):
    """When it sends what it should, its follower goes on."""
    clients = Clients(world)
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    clients.produce("t", b"0")
    world.nodes[2].kill()
    assert clients.produce("t", b"1", seconds=10.0) == (0, 1)
    flip_last_byte(world, 1, "t")
    world.nodes[2].start()
    named = lambda: [line for line in world.lines if "leader-refused" in line]  # noqa: E731
    world.run(10.0, holds=named)
    world.run(5.0)
    (line,) = named()
    assert "peer=10.0.0.1:9092" in line and "wrong checksum" in line and "leader=1 topic=t partition=0" in line
    assert world.log(2, "t").end_offset == 1
    flip_last_byte(world, 1, "t")
    world.run(10.0, holds=lambda: world.log(2, "t").end_offset == 2)
    assert world.log(2, "t").end_offset == 2


def test_a_follower_that_says_that_it_has_more_than_its_leader_is_named(world, monkeypatch):
    """It counts for nothing."""
    clients = Clients(world)
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    clients.produce("t", b"0")
    world.run(5.0, holds=lambda: all(world.log(each, "t").high_watermark == 1 for each in (1, 2, 3)))
    epochs, question = world.log(2, "t").epochs, Follower.question

    def lie(self):
        asked = question(self)
        return asked._replace(fetch_offset=asked.fetch_offset + 5) if asked and self._epochs is epochs else asked

    monkeypatch.setattr(Follower, "question", lie)
    monkeypatch.setattr(Follower, "asks_again", lambda self, asked: False)
    world.run(2.0)
    assert any("follower-refused" in line and "10.0.0.2:" in line and "broker=2" in line for line in world.lines)
    assert world.log(1, "t").high_watermark == 1
