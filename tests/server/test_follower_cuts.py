"""Cuts of followers' logs beside a loop that does not wait for them."""

import copy
import errno

import pytest

from pykafkad import errors
from pykafkad.errors import StorageFailure
from pykafkad.log import follower_log
from pykafkad.log.offset_checkpoints import FRESH_SUFFIX
from pykafkad.log.replica import FOLLOWER, LEADER
from pykafkad.server.broker import Broker
from pykafkad.server.leader_fetcher import LeaderFetcher
from tests.simulation.replication_clients import Clients
from tests.simulation.replication_world import World


class HeldOffload:
    """Jobs that run when the test says so."""

    def __init__(self, runtime):
        self.jobs = []
        self._usual = runtime.offload
        self._results = self._usual._results
        self.finished = self._usual.finished

    def submit(self, job, then):
        self.jobs.append((job, then))

    def go_on(self):
        jobs, self.jobs = self.jobs, []
        for each in jobs:
            self._usual.submit(*each)

    def close(self):
        self.finished()


@pytest.fixture
def cut():
    """A world whose broker 1 is about to cut a record that nobody else has, with the jobs that it waits for."""
    world = World(5, brokers=3)
    clients = Clients(world)
    world.create_topic("t", [[1, 2, 3]], min_insync_replicas=2)
    clients.produce("t", b"0")
    world.run(2.0)
    network = world.cluster.network
    pairs = [(f"10.0.0.{one}", f"10.0.0.{other}") for one, other in ((1, 2), (2, 1), (1, 3), (3, 1))]
    for each in pairs:
        network.cut(*each)
    world.nodes[1].link.is_cut = True
    clients.send(1, clients.produce_request("t", 0, b"lost"), lambda answer: None)
    world.run(10.0, holds=lambda: world.state("t").leader > 1)
    world.run(0.5)
    assert world.log(1, "t").end_offset == 2
    assert clients.produce("t", b"1") == (0, 1)
    held = world.nodes[1].runtime.offload = HeldOffload(world.nodes[1].runtime)
    for each in pairs:
        network.mend(*each)
    world.nodes[1].link.is_cut = False
    return world, clients, held


def test_nothing_is_appended_until_the_cut_is_on_the_device(cut):
    world, clients, held = cut
    log = world.log(1, "t")
    cuts = world.nodes[1].broker.replication.cuts
    world.run(10.0, holds=lambda: log.end_offset == 1 and bool(held.jobs))
    assert len(cuts) == 1
    world.run(3.0)
    assert log.end_offset == 1, "it waits"
    held.go_on()
    world.run(5.0, holds=lambda: log.end_offset == 2)
    assert len(cuts) == 0 and clients.fetch("t", to=1)[0] in (errors.NONE, errors.NOT_LEADER_OR_FOLLOWER)
    assert log.end_offset == 2 and world.unexpected_errors() == 0


def test_a_role_waits_for_the_end_of_a_cut(cut):
    """Elected meanwhile, the broker says that it does not lead; then it does."""
    world, clients, held = cut
    log = world.log(1, "t")
    world.run(10.0, holds=lambda: log.end_offset == 1 and bool(held.jobs))
    state = copy.copy(world.state("t"))
    state.leader, state.leader_epoch, state.partition_epoch = 1, state.leader_epoch + 1, state.partition_epoch + 1
    world.nodes[1].broker.partitions._adopt(log, state)
    assert log.replica.role == FOLLOWER and clients.produce("t", b"2", to=1)[0] == errors.NOT_LEADER_OR_FOLLOWER
    held.go_on()
    world.run(5.0, holds=lambda: log.replica.role == LEADER)
    assert log.replica.role == LEADER


def test_a_topic_may_be_deleted_meanwhile(cut):
    world, _, held = cut
    log = world.log(1, "t")
    world.run(10.0, holds=lambda: log.end_offset == 1 and bool(held.jobs))
    broker = world.nodes[1].broker
    broker.replica_gone(log)
    held.go_on()
    world.run(1.0)
    assert len(broker.replication.cuts) == 0 and world.unexpected_errors() == 0


def test_a_cut_that_does_not_reach_the_device_takes_the_log_out_of_service(cut):
    world, _, held = cut
    log = world.log(1, "t")
    world.run(10.0, holds=lambda: log.end_offset == 1 and bool(held.jobs))
    jobs, held.jobs = held.jobs, []

    def fail():
        raise StorageFailure("sync", log.directory, OSError(errno.EIO, "Input/output error"))

    for _, then in jobs:
        held.jobs.append((fail, then))
    held.go_on()
    world.run(3.0)
    assert log.offline is not None and len(world.nodes[1].broker.replication.cuts) == 0
    assert any("partition-offline" in line for line in world.lines)


@pytest.mark.parametrize("where", ["the cut", "what it is told to", "its end", "a job"])
def test_a_bug_in_a_cut_takes_the_log_out_of_service(cut, monkeypatch, where):
    """It is said, and the partition does not stand still in silence."""
    world, _, held = cut
    log = world.log(1, "t")

    def fail(*_):
        raise ValueError("a bug")

    patched = {"the cut": (follower_log, "truncate"), "what it is told to": (LeaderFetcher, "_was_cut")}
    if where in patched:
        monkeypatch.setattr(*patched[where], fail)
    world.run(10.0, holds=lambda: bool(held.jobs) or log.offline is not None)
    if where == "its end":
        monkeypatch.setattr(Broker, "role_taken", fail)
        state = copy.copy(world.state("t"))
        state.partition_epoch += 1
        world.nodes[1].broker.partitions._adopt(log, state)
    elif where == "a job":
        held.jobs = [(fail, then) for _, then in held.jobs]
    held.go_on()
    world.run(3.0)
    broker = world.nodes[1].broker
    assert log.offline is not None and not broker.replication.cuts and not broker.partitions.held
    assert all(each.paused_until < 1e9 for each in broker.replication.fetchers._by_leader[2]._followed.values())
    assert world.unexpected_errors() == 1 and any("partition-offline" in line for line in world.lines)


def test_a_move_that_begins_before_the_cut_is_given_up(cut, monkeypatch):
    """The log is not cut at once: first it is said that its checkpoint does not count."""
    world, _, held = cut
    log, broker = world.log(1, "t"), world.nodes[1].broker
    directory = broker.directories.of(log)
    directory.offsets.recovery_points["t", 0] = 2
    world.run(10.0, holds=lambda: bool(held.jobs))
    assert log.end_offset == 2
    cancelled = []
    monkeypatch.setattr(type(broker.moves), "cancel", lambda self, *key: cancelled.append((*key, log.end_offset)))
    directory.futures["t", 0] = "t-0.0-future"
    held.go_on()
    world.run(5.0, holds=lambda: log.end_offset == 1)
    assert log.end_offset == 1 and cancelled == [("t", 0, 2)]
    del directory.futures["t", 0]


def test_a_checkpoint_that_comes_before_the_cut_does_not_count(cut, monkeypatch):
    """A shared file is copied first; what is synced meanwhile is cut soon."""
    world, _, held = cut
    log, node = world.log(1, "t"), world.nodes[1]
    directory = node.broker.directories.of(log)
    monkeypatch.setattr(follower_log, "prepare", lambda log, end_offset: lambda: None)
    directory.offsets.recovery_points["t", 0] = 1
    world.run(10.0, holds=lambda: bool(held.jobs))
    directory.offsets.recovery_points["t", 0] = 2
    held.go_on()
    world.run(1.0, holds=lambda: bool(held.jobs))
    assert log.end_offset == 2 and held.jobs, "it waits"
    assert [each for each in node.disk.listdir("/data") if each.startswith("t-0.") and each.endswith(FRESH_SUFFIX)]
    held.go_on()
    world.run(1.0, holds=lambda: bool(held.jobs))
    assert log.end_offset == 1 and len(directory.offsets.fresh) == 1
    held.go_on()
    world.run(5.0, holds=lambda: log.end_offset == 2)
    assert log.end_offset == 2 and world.unexpected_errors() == 0
