"""Partitions that could not be made for a while: they are made later, without a restart."""

from __future__ import annotations

import errno

import pytest

from pykafkad.errors import StorageFailure, name
from pykafkad.server.full_disk import LOOK_SECONDS, ROOM_BYTES
from pykafkad.server.unmade_partitions import PER_TURN
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.simulation.brokers_world import BrokersWorld
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World


class RefusingDisk(MemoryDisk):
    """A disk that has no place for new partitions, while there is some for the metadata."""

    code = None
    refuses = "/"
    free_bytes = ROOM_BYTES

    def usage(self, path):
        return 1 << 40, self.free_bytes

    def write(self, path, data, *, sync=False):
        if self.code is not None and path.startswith(self.refuses) and path.endswith("/partition.metadata"):
            raise StorageFailure("write", path, OSError(self.code, "refused"))
        super().write(path, data, sync=sync)


@pytest.fixture
def disk():
    return RefusingDisk()


@pytest.fixture
def world(disk):
    made = World("/data", disk=disk)
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


def write(world, topic="t", partition=0):
    answer = world.connect().ask(produce(topic, {partition: batch(b"x")}), 8)
    return name(answer.responses[0].partition_responses[0].error_code)


def look(world):
    """Let the broker look for space, and do what follows."""
    world.advance(LOOK_SECONDS)
    for _ in range(5):
        world.turn()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
def test_they_are_made_when_the_disk_takes_them(world, disk, code):
    """All of them, also more than one turn makes, and once."""
    count = 2 * PER_TURN + 1
    disk.code, disk.free_bytes = code, 0
    world.create_topic("t", count)
    assert {write(world, partition=each) for each in range(count)} == {"KAFKA_STORAGE_ERROR"}
    first = world.broker.partitions.get("t", 0)
    disk.code = None
    look(world)
    assert write(world) == "KAFKA_STORAGE_ERROR", "there is no space yet"
    disk.code, disk.free_bytes = code, ROOM_BYTES
    look(world)
    assert write(world) == "KAFKA_STORAGE_ERROR", "it failed again"
    assert world.broker.partitions.get("t", 0) is first, "each try leaves a log"
    disk.code = None
    look(world)
    assert {write(world, partition=each) for each in range(count)} == {"NONE"}
    log = world.broker.partitions.get("t", 0)
    look(world)
    assert world.broker.partitions.get("t", 0) is log and not world.broker._offline_logs


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS])
def test_other_failures_last_until_a_restart(world, disk, code):
    disk.code = code
    world.create_topic("t")
    disk.code = None
    look(world)
    assert write(world) == "KAFKA_STORAGE_ERROR"


def test_one_that_is_deleted_meanwhile_is_not_made(world, disk):
    """Nor is another one of its name disturbed."""
    disk.code = errno.ENOSPC
    world.create_topic("t")
    delete = messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
    assert world.connect().ask(delete, 5).responses[0].error_code == 0
    disk.code = None
    world.create_topic("t")
    assert write(world) == "NONE"
    log = world.broker.partitions.get("t", 0)
    look(world)
    assert world.broker.partitions.get("t", 0) is log and write(world) == "NONE"


def test_those_that_are_deleted_are_forgotten_while_there_is_no_space(world, disk):
    """Topics that come and go on a full disk leave nothing."""
    disk.code, disk.free_bytes = errno.ENOSPC, 0
    world.create_topic("u")
    for _ in range(3):
        world.create_topic("t")
        delete = messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
        assert world.connect().ask(delete, 5).responses[0].error_code == 0
    look(world)
    assert [each.topic for each in world.broker.unmade_partitions._logs] == ["u"]


def commit(peer):
    of = messages.OffsetCommitRequest
    row = of.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = of.OffsetCommitRequestTopic(name="t", partitions=[row])
    answer = peer.ask(of(group_id="g", generation_id_or_member_epoch=-1, topics=[topic]), 8)
    return name(answer.topics[0].partitions[0].error_code)


def test_a_group_commits_when_its_partition_is_made(world, disk):
    """What coordinates by a partition loads it then."""
    world.create_topic("t")
    peer = world.connect()
    disk.code = errno.ENOSPC
    peer.ask(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    world.turn()
    assert commit(peer) != "NONE"
    disk.code = None
    look(world)
    assert commit(peer) == "NONE"


def test_one_that_is_moved_away_meanwhile_is_not_made():
    """The third broker cannot make its replica; then the partition is the others'."""
    disk = RefusingDisk()
    world = BrokersWorld(3, disk=disk, default_replication_factor=2)
    create = messages.CreateTopicsRequest
    rows = [create.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 3])]
    topic = create.CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=rows)
    disk.code, disk.refuses = errno.ENOSPC, world.broker(3).directories.metadata.path
    world.ask(1, create(topics=[topic], timeout_ms=1000), 7)
    world.advance(1.0)
    assert world.broker(3).partitions.get("t", 0).offline is not None
    move = messages.AlterPartitionReassignmentsRequest
    moved = move.ReassignablePartition(partition_index=0, replicas=[1, 2])
    world.ask(1, move(topics=[move.ReassignableTopic(name="t", partitions=[moved])], timeout_ms=1000), 0)
    world.until(lambda: sorted(world.image.partition("t", 0).replicas) == [1, 2])
    disk.code = None
    world.advance(2 * LOOK_SECONDS)
    assert world.broker(3).partitions.get("t", 0) is None and world.runtime.metrics.unexpected_errors == 0
    world.stop()
