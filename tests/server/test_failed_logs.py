"""Logs that fail in the hands of somebody who tells nobody: the broker knows all the same, and they come back."""

from __future__ import annotations

import errno

import pytest

from pykafkad.errors import StorageFailure, name
from pykafkad.log import roll_rules
from pykafkad.server import coordinator_host
from pykafkad.wire import messages
from tests.handlers.share_requests import Share
from tests.server.test_full_disk import SmallDisk, settle, values, write
from tests.simulation.world import World


@pytest.fixture
def disk():
    return SmallDisk()


@pytest.fixture
def world(disk):
    made = World("/data", disk=disk)
    made.topic_id = made.create_topic("t", 6)
    return made


def fail_logs(disk, topic, operation, error=errno.ENOSPC):
    """An operation on the segments of a topic fails until the disk heals."""
    call = disk._call
    disk._call = lambda each, path, data=None: call(
        each if path.endswith(".log") and f"/{topic}-" in path else f"other {each}", path, data
    )
    disk.fail(operation, sticky=True, error=error)


def log_of(world, topic="t"):
    return world.broker.partitions.get(topic, 0)


def list_offsets(world):
    of = messages.ListOffsetsRequest
    row = of.ListOffsetsPartition(partition_index=0, timestamp=-1)
    answer = world.connect().ask(of(replica_id=-1, topics=[of.ListOffsetsTopic(name="t", partitions=[row])]), 5)
    return answer.topics[0].partitions[0].error_code


def end_of_epoch(world):
    of = messages.OffsetForLeaderEpochRequest
    row = of.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    topic = of.OffsetForLeaderTopic(topic="t", partitions=[row])
    return world.connect().ask(of(replica_id=-1, topics=[topic]), 4).topics[0].partitions[0].error_code


def describe_producers(world):
    of = messages.DescribeProducersRequest
    answer = world.connect().ask(of(topics=[of.TopicRequest(name="t", partition_indexes=[0])]), 0)
    return answer.topics[0].partitions[0].error_code


def delete_records(world):
    of = messages.DeleteRecordsRequest
    row = of.DeleteRecordsPartition(partition_index=0, offset=-1)
    topic = of.DeleteRecordsTopic(name="t", partitions=[row])
    return world.connect().ask(of(topics=[topic]), 2).topics[0].partitions[0].error_code


def fetch(world):
    of = messages.FetchRequest
    row = of.FetchPartition(partition=0, partition_max_bytes=1000)
    request = of(replica_id=-1, max_bytes=1000, topics=[of.FetchTopic(topic="t", partitions=[row])])
    return world.connect().ask(request, 11).responses[0].partitions[0].error_code


@pytest.mark.parametrize("ask", [list_offsets, end_of_epoch, describe_producers, delete_records, fetch])
def test_one_that_cannot_be_opened_comes_back_whoever_has_asked(world, disk, ask):
    """A consumer without a position asks for one first, and gets no further."""
    fail_logs(disk, "t", "create")
    assert name(ask(world)) == "KAFKA_STORAGE_ERROR" and log_of(world).offline is not None
    disk.heal()
    settle(world)
    settle(world)
    assert log_of(world).offline is None and name(ask(world)) == "NONE"


def begin_group(world):
    world.connect().ask(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    world.turn()


def commit(world, count=1, metadata=""):
    """The error of a commit of so many offsets; None if the connection ends."""
    of = messages.OffsetCommitRequest
    row = of.OffsetCommitRequestPartition
    rows = [row(partition_index=each, committed_offset=1, committed_metadata=metadata) for each in range(count)]
    request = of(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[of.OffsetCommitRequestTopic(name="t", partitions=rows)],
    )
    peer = world.connect()
    answer = peer.ask(request, 8)
    return None if peer.closed else name(answer.topics[0].partitions[0].error_code)


@pytest.mark.parametrize("way", ["loaded", "loaded without a descriptor", "a large record", "a new segment"])
def test_a_group_goes_on_when_its_log_has_failed(world, disk, monkeypatch, way):
    """Nobody but its coordinator uses the log. What is large is written at once, without waiting for the turn's end."""
    if way.startswith("loaded"):
        fail_logs(disk, "__consumer_offsets", "create", errno.EMFILE if "descriptor" in way else errno.ENOSPC)
        begin_group(world)
        assert commit(world) == "NOT_COORDINATOR"
    else:
        begin_group(world)
        assert commit(world) == "NONE"
        if way == "a new segment":
            monkeypatch.setattr(roll_rules, "is_due", lambda *_: True)
            (log,) = (each for each in world.broker.partitions if each.topic[0] == "_" and each.end_offset)
            log._active.size_limit = 0
        fail_logs(disk, "__consumer_offsets", "create" if way == "a new segment" else "write")
        assert commit(world, 5, "m" * 4000 if way == "a large record" else "") is None
        monkeypatch.undo()
    disk.heal()
    settle(world)
    settle(world)
    assert commit(world) == "NONE"
    assert not any(log.offline for log in world.broker.partitions) and not world.broker.groups._failed


def test_a_log_that_cannot_be_read_for_its_coordinator_ends_its_directory(disk, monkeypatch):
    """As for a client: another broker may lead its partitions then. The log itself is not out of service."""
    world = World("/a", more_directories=("/b",), disk=disk, offsets_topic_num_partitions=2)
    world.create_topic("t")
    begin_group(world)
    world.stop()
    real = coordinator_host.batches

    def fail_in_b(log, start_offset):
        if log.directory.startswith("/b/"):
            raise StorageFailure("read", log.directory, OSError(errno.EIO, "Input/output error"))
        return real(log, start_offset)

    monkeypatch.setattr(coordinator_host, "batches", fail_in_b)
    world = world.restart()
    world.advance(1)
    world.turn()
    assert list(world.broker.directories.failed) == ["/b"]


def test_a_share_group_hears_that_its_log_is_out_of_service(world, disk, capfd):
    """Also where the first look at the log is the coordinator's answer with the state of the group."""
    share = Share(world, topic_id=world.topic_id).begin_at_the_start()
    share.join()
    fail_logs(disk, "t", "create")
    for _ in range(3):
        assert name(share.fetch().responses[0].partitions[0].error_code) == "KAFKA_STORAGE_ERROR"
        settle(world, 0.1)
    assert log_of(world).offline is not None and world.runtime.metrics.unexpected_errors == 0
    assert "shard-offline" not in capfd.readouterr().err, "the failure is not that of the coordinator's log"
    disk.heal()
    settle(world)
    settle(world)
    assert write(world) == "NONE" and log_of(world).offline is None


def test_one_whose_files_are_gone_does_not_come_back_empty(world, disk):
    assert write(world) == write(world) == "NONE"
    disk.fill()
    assert write(world) == "KAFKA_STORAGE_ERROR"
    for path in [each for each in disk.files if each.startswith("/data/t-0/") and each.endswith(".log")]:
        del disk.files[path]
    disk.make_room()
    settle(world)
    settle(world)
    assert log_of(world).offline is not None and values(log_of(world)) == (2, 2, 2)


def test_one_that_cannot_be_read_and_stays_in_service_is_told_once_a_second(world, disk, capfd):
    """A client that asks again and again does not fill the log."""
    assert write(world, b"x" * 100) == "NONE"
    log_of(world)._active.positions.clear()
    disk.fail("read", sticky=True, error=errno.EIO)
    for seconds, expected in ((0, 1), (0.5, 0), (0.6, 1)):
        world.advance(seconds)
        for _ in range(5):
            assert name(fetch(world)) == "KAFKA_STORAGE_ERROR"
        assert log_of(world).offline is None and capfd.readouterr().err.count("access-failed") == expected
