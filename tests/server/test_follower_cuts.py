"""Cuts of followers' logs beside a loop that does not wait for them."""

import copy
import errno

import pytest

from pykafkad import errors
from pykafkad.errors import StorageFailure
from pykafkad.log.replica import FOLLOWER, LEADER
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
