"""What holds up one partition of a leader, and for how long: a full disk, a cut, the ends of the leader's log."""

from __future__ import annotations

import errno

import pytest

from pykafkad.errors import OFFSET_OUT_OF_RANGE, StorageFailure
from pykafkad.log.follower import Follower, TruncateTo
from pykafkad.server.full_disk import LOOK_SECONDS
from pykafkad.server.leader_fetcher import LeaderFetcher
from tests.handlers.requests import batch, produce
from tests.simulation.brokers_world import BrokersWorld
from tests.simulation.network import Link

SOON_SECONDS = 0.1
"""A fifth of `replica.fetch.wait.max.ms`, for which the leader keeps a request about partitions without records."""


@pytest.fixture
def world():
    """Two brokers: each follows what the other one leads."""
    made = BrokersWorld(2, default_replication_factor=2)
    made.network.set_usual_link(Link(delay=0.001, jitter=0.002))
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


def created(world, partitions):
    """The number of a partition that broker 1 leads, once all replicas are in sync."""
    world.create_topic("t", partitions, 2)
    world.until(lambda: all(len(world.image.partition("t", each).isr) == 2 for each in range(partitions)))
    return next(each for each in range(partitions) if world.leader("t", each) == 1)


def put(world, partition, acks=-1):
    answer = world.ask(1, produce("t", {partition: batch(b"x")}, acks=acks), 12)
    assert answer.responses[0].partition_responses[0].error_code == 0


class FullFile:
    """A file of a disk without space."""

    def __init__(self, file):
        self._file = file

    def __getattr__(self, name):
        return getattr(self._file, name)

    def pwrite(self, *_):
        raise StorageFailure("write", self._file.path, OSError(errno.ENOSPC, "No space left on device"))


def test_the_only_partition_of_a_leader_is_fetched_again_when_its_disk_has_space(world):
    """Nothing else would ask the leader for it."""
    partition = created(world, 1)
    log = world.broker(2).partitions.get("t", partition)
    log.segments[-1].file = FullFile(log.segments[-1].file)
    put(world, partition, acks=1)
    world.until(lambda: log.offline is not None)
    world.advance(LOOK_SECONDS + 2.0)
    assert log.offline is None and log.end_offset == 1
    put(world, partition)
    assert log.end_offset == 2


def test_a_log_that_somebody_else_took_out_of_service_comes_back(world):
    """As a clean-up, a sync or a compaction that found no space. No client asks a follower."""
    partition = created(world, 1)
    log = world.broker(2).partitions.get("t", partition)
    log.fail(StorageFailure("write", log.directory, OSError(errno.ENOSPC, "No space left on device")))
    put(world, partition, acks=1)
    world.advance(LOOK_SECONDS + 2.0)
    assert log.offline is None and log.end_offset == 1


@pytest.fixture
def asked(world, monkeypatch):
    """The logs that broker 2 has asked its leader for, not counting those of which the leader's session knows."""
    logs = []

    def request(self, questions, *rest):
        if self._broker is world.broker(2):
            logs.extend(followed.log for followed, _ in questions.values())
        return usual(self, questions, *rest)

    usual = LeaderFetcher._request
    monkeypatch.setattr(LeaderFetcher, "_request", request)
    return logs


def seconds_until(world, holds, since):
    """How long after a time something holds, or five seconds."""
    while not holds() and world.clock.now() < since + 5.0:
        world.advance(0.005, step=0.005)
    return world.clock.now() - since


def answer_once(world, monkeypatch, log, effects_of):
    """Broker 2's next answer with records of a log is another one; gives the list that has its time."""
    machine = world.broker(2).replication.fetchers._by_leader[1]._followed[log].follower
    times = []

    def answered(self, asked, row, records, diverging):
        if self is machine and records and not times:
            times.append(world.clock.now())
            return effects_of(self, asked, row)
        return usual(self, asked, row, records, diverging)

    usual = Follower.answered
    monkeypatch.setattr(Follower, "answered", answered)
    return times


def with_records(world):
    """A partition that broker 1 leads and broker 2 has the records of, among others without any, and the latter's log.

    Since the last record the leader has answered about all of them."""
    partition = created(world, 4)
    for _ in range(3):
        put(world, partition)
    world.advance(1.0)
    return partition, world.broker(2).partitions.get("t", partition)


def test_a_partition_that_was_cut_is_asked_for_soon_while_others_are_idle(world, asked, monkeypatch):
    """The request about the others that leaves meanwhile is a short one."""
    partition, log = with_records(world)
    times = answer_once(world, monkeypatch, log, lambda _, asked, __: (TruncateTo(asked.fetch_offset - 1),))
    put(world, partition, acks=1)
    seconds_until(world, lambda: times, world.clock.now())
    asked.clear()
    assert seconds_until(world, lambda: log in asked, times[0]) < SOON_SECONDS
    world.until(lambda: log.end_offset == 4)


def test_a_partition_whose_leaders_ends_are_known_is_asked_for_soon_while_others_are_idle(world, asked, monkeypatch):
    """Also the request that left before the leader told them is a short one."""

    def ask_offsets(machine, asked, row):
        row.error_code = OFFSET_OUT_OF_RANGE
        return machine.answered(asked, row, None, (-1, -1))

    def offsets_answered(machine, *answer):
        usual(machine, *answer)
        # As if the leader's log ended there.
        return (TruncateTo(machine.end_offset - 1),)

    usual = Follower.offsets_answered
    monkeypatch.setattr(Follower, "offsets_answered", offsets_answered)
    partition, log = with_records(world)
    times = answer_once(world, monkeypatch, log, ask_offsets)
    put(world, partition, acks=1)
    seconds_until(world, lambda: times, world.clock.now())
    asked.clear()
    assert seconds_until(world, lambda: log in asked, times[0]) < SOON_SECONDS
    world.until(lambda: log.end_offset == 4)
