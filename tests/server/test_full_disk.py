"""A disk that is full for a while: what could not be written is told, and all goes on without a restart."""

from __future__ import annotations

import errno
from copy import deepcopy

import pytest

from pykafkad.errors import StorageFailure, name
from pykafkad.log import recovery, syncing
from pykafkad.log.checkpoints import HIGH_WATERMARK_FILE, encode_offsets
from pykafkad.log.offset_checkpoints import FRESH_SUFFIX
from pykafkad.server import full_disk
from pykafkad.server.full_disk import LOOK_SECONDS, LOOKS_PER_TURN, ROOM_BYTES
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.handlers.transaction_requests import Producer
from tests.log.settings import open_directory
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World


class SmallDisk(MemoryDisk):
    """A disk that says how much space there is."""

    free_bytes = 2 * ROOM_BYTES

    def usage(self, path):
        return 1 << 40, self.free_bytes

    def fill(self, error=errno.ENOSPC, part=0):
        self.fail("write", sticky=True, error=error, part=part)
        self.free_bytes = 0

    def fill_folder(self, folder):
        """What is written there finds no space."""
        self._call = lambda operation, path, data=None: super(SmallDisk, self)._call(
            operation if f"/{folder}/" in path else f"other {operation}", path, data
        )
        self.fail("write", sticky=True)

    def make_room(self):
        self.heal()
        self.free_bytes = 2 * ROOM_BYTES


@pytest.fixture
def disk():
    return SmallDisk()


@pytest.fixture
def world(disk):
    return World("/data", disk=disk)


def settle(world, seconds=LOOK_SECONDS):
    """Let the broker look for space, and do what follows."""
    world.advance(seconds)
    for _ in range(20):
        world.runtime.offload.close()
        world.turn()


def write(world, value=b"x", topic="t"):
    (row,) = world.connect().ask(produce(topic, {0: batch(value)}), 8).responses[0].partition_responses
    return name(row.error_code)


def values(log):
    return log.end_offset, log.written_end_offset, log.high_watermark


def test_a_partition_is_written_again_when_there_is_space(world, disk):
    world.create_topic("t")
    log = world.broker.partitions.get("t", 0)
    assert write(world) == "NONE"
    disk.fill(part=70)
    assert [write(world), write(world)] == ["KAFKA_STORAGE_ERROR"] * 2
    settle(world, 10 * LOOK_SECONDS)
    assert write(world) == "KAFKA_STORAGE_ERROR", "there is no space yet"
    disk.make_room()
    settle(world)
    assert log.offline is None and values(log) == (1, 1, 1)
    assert write(world) == "NONE" and values(log) == (2, 2, 2)
    disk.fill()
    assert write(world) == "KAFKA_STORAGE_ERROR", "it may happen again"
    disk.make_room()
    settle(world)
    assert write(world) == "NONE"
    world.stop()
    again = world.restart()
    assert values(again.broker.partitions.get("t", 0)) == (3, 3, 3)


def test_a_partition_that_was_not_recovered_at_the_start_comes_back_without_its_checkpoint(world, disk):
    """That says more than the partition has, and would commit what it gets from now on."""
    world.create_topic("t")
    assert write(world) == "NONE"
    disk.kill()
    disk.write(f"/data/{HIGH_WATERMARK_FILE}", encode_offsets({("t", 0): 50}))
    disk.fill_folder("t-0")
    world = world.restart()
    log = world.broker.partitions.get("t", 0)
    assert log.offline is not None and write(world) == "KAFKA_STORAGE_ERROR"
    for _ in range(10):
        settle(world)
        assert write(world) == "KAFKA_STORAGE_ERROR", "there is no space yet"
    assert sum(each.endswith(FRESH_SUFFIX) for each in disk.listdir("/data")) <= 2, "each try leaves a file for ever"
    disk.make_room()
    settle(world)
    assert write(world) == "NONE" and values(log) == (2, 2, 2)
    assert open_after_kill(disk).checkpointed(("t", 0))[2] <= 1
    world.advance(10.0)
    settle(world)
    assert open_after_kill(disk).checkpointed(("t", 0))[2] == 2, "the next checkpoint counts again"


def test_a_partition_that_was_not_recovered_at_the_start_comes_back_by_itself(world, disk):
    """Also if nobody asks for it, as for that of a follower."""
    world.create_topic("t")
    assert write(world) == "NONE"
    disk.kill()
    disk.fill_folder("t-0")
    world = world.restart()
    log = world.broker.partitions.get("t", 0)
    assert log.offline is not None
    disk.make_room()
    settle(world)
    assert log.offline is None and values(log) == (1, 1, 1)


def test_a_partition_that_housekeeping_finds_without_space_comes_back(world, disk, monkeypatch):
    """Although no client asks for it. A rolled segment is synced beside the loop, with what is written then."""

    def refuse(job):
        raise StorageFailure("write", job.log.directory, OSError(errno.ENOSPC, "No space left on device"))

    world.create_topic("t", segment_bytes=1048576)
    for _ in range(3):
        assert write(world, b"x" * 600_000) == "NONE"
    log = world.broker.partitions.get("t", 0)
    with monkeypatch.context() as patch:
        patch.setattr(syncing.SyncJob, "run", refuse)
        settle(world)
    assert log.offline is not None
    settle(world)
    assert log.offline is None and values(log) == (3, 3, 3)


@pytest.mark.parametrize(("operation", "expected"), [("sync", "KAFKA_STORAGE_ERROR"), ("read", "NONE")])
def test_a_sync_that_fails_while_a_partition_comes_back_is_final(world, disk, monkeypatch, operation, expected):
    """As any failed sync; after other failures it is tried again."""

    def fail(disk, directory, *_):
        raise StorageFailure(operation, directory, OSError(errno.ENOSPC, "No space left on device"))

    world.create_topic("t")
    disk.fill()
    assert write(world) == "KAFKA_STORAGE_ERROR"
    disk.make_room()
    with monkeypatch.context() as patch:
        patch.setattr(recovery, "load", fail)
        settle(world)
    settle(world)
    settle(world)
    assert write(world) == expected


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EMFILE])
def test_one_that_cannot_be_recovered_does_not_hold_up_the_others(world, disk, monkeypatch, code):
    """It is tried again where that may help, and otherwise out of service until a restart."""
    load, tried = recovery.load, []

    def refuse_first(disk, directory, *rest):
        tried.append(directory)
        if directory == "/data/t-0":
            raise StorageFailure("read", directory, OSError(code, "refused"))
        return load(disk, directory, *rest)

    world.create_topic("t", 3)
    logs = [world.broker.partitions.get("t", each) for each in range(3)]
    disk.fill()
    for each in range(3):
        world.connect().ask(produce("t", {each: batch(b"x")}), 8)
    disk.make_room()
    monkeypatch.setattr(recovery, "load", refuse_first)
    for _ in range(4):
        settle(world)
    assert [each.offline is None for each in logs] == [False, True, True]
    assert tried.count("/data/t-0") == (1 if code == errno.EIO else 4) and len(tried) == tried.count("/data/t-0") + 2


def test_a_recovery_that_fails_again_and_again_is_told_once(world, disk, monkeypatch, capfd):
    """And again when it has succeeded in between. A disk that is full takes no more lines than it has to."""

    def refuse(disk, directory, *_):
        raise StorageFailure("write", directory, OSError(errno.ENOSPC, "No space left on device"))

    world.create_topic("t")
    for _ in range(2):
        disk.fill()
        assert write(world) == "KAFKA_STORAGE_ERROR"
        disk.make_room()
        with monkeypatch.context() as patch:
            patch.setattr(recovery, "load", refuse)
            for _ in range(3):
                settle(world)
        assert capfd.readouterr().err.count("recovery-failed") == 1
        settle(world)
        assert write(world) == "NONE"


def test_a_bug_while_one_comes_back_leaves_the_others_their_turn(world, disk, monkeypatch, capfd):
    """The log that met it stays out of service, and that is told."""
    load = recovery.load

    def break_first(disk, directory, *rest):
        if directory == "/data/t-0":
            raise ZeroDivisionError
        return load(disk, directory, *rest)

    world.create_topic("t", 3)
    logs = [world.broker.partitions.get("t", each) for each in range(3)]
    disk.fill()
    for each in range(3):
        world.connect().ask(produce("t", {each: batch(b"x")}), 8)
    disk.make_room()
    monkeypatch.setattr(recovery, "load", break_first)
    role_taken = world.broker.role_taken

    def break_second(log):
        if log is logs[1]:
            raise ZeroDivisionError
        role_taken(log)

    monkeypatch.setattr(type(world.broker), "role_taken", lambda broker, log: break_second(log))
    for _ in range(3):
        settle(world)
    assert [each.offline is None for each in logs] == [False, True, True]
    assert world.runtime.metrics.unexpected_errors == 2
    assert capfd.readouterr().err.count("recovery-given-up topic=t partition=0") == 1


def test_space_for_the_indexes_is_needed_too(world, disk):
    """Recovery writes them for everything that is not synced. Without it the log would be read in vain, each time."""
    world.create_topic("t", index_interval_bytes=100)
    for _ in range(30):
        assert write(world, b"x" * 1000) == "NONE"
    disk.fill()
    assert write(world) == "KAFKA_STORAGE_ERROR"
    log = world.broker.partitions.get("t", 0)
    disk.heal()
    disk.free_bytes = ROOM_BYTES + 30 * 1000 // 100 * 20 - 1
    settle(world)
    assert log.offline is not None
    disk.free_bytes += 2000
    settle(world)
    assert log.offline is None


def test_what_is_left_of_a_damaged_log_stays_and_can_be_read(world, disk):
    """The way back cuts nothing that was written: it cannot know whether it is lost."""
    world.create_topic("t")
    for value in (b"a", b"b", b"c", b"d"):
        assert write(world, value) == "NONE"
    log = world.broker.partitions.get("t", 0)
    (path,) = (each for each in disk.files if each.startswith("/data/t-0/") and each.endswith(".log"))
    size_bytes = disk.size(path)
    disk.files[path].data[size_bytes // 2 - 1] ^= 0xFF
    disk.fill()
    assert write(world) == "KAFKA_STORAGE_ERROR"
    disk.make_room()
    settle(world)
    settle(world)
    assert str(log.offline).endswith("the files end at offset 1, not 4") and disk.size(path) == size_bytes
    assert log.read(2, 1000, end_offset=4).size_bytes == size_bytes // 2


def test_a_topic_that_is_made_anew_while_the_old_one_comes_back_keeps_its_records(world, disk, monkeypatch):
    """Recovery works by the names of files, which are those of the new topic then. The old log was not recovered at the
    start, so that nobody knows its end."""
    world.create_topic("t")
    for _ in range(5):
        assert write(world) == "NONE"
    world.broker.partitions.get("t", 0).delete_records(5)
    settle(world, 120.0)
    disk.kill()
    disk.fill_folder("t-0")
    disk.free_bytes = 0
    world = World("/data", disk=disk)
    open_segment = recovery._open

    def replace(*args, **kwargs):
        monkeypatch.setattr(recovery, "_open", open_segment)
        delete = messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
        assert world.connect().ask(delete, 5).responses[0].error_code == 0
        world.create_topic("t")
        assert write(world, b"new") == "NONE"
        return open_segment(*args, **kwargs)

    old = world.broker.partitions.get("t", 0)
    assert old.offline is not None
    disk.make_room()
    monkeypatch.setattr(recovery, "_open", replace)
    settle(world)
    assert old.closed and write(world) == "NONE"
    disk.kill()
    again = World("/data", disk=disk)
    assert write(again) == "NONE"
    log = again.broker.partitions.get("t", 0)
    assert (log.log_start_offset, log.end_offset) == (0, 3)


def test_no_turn_looks_at_more_than_its_share(world, disk, monkeypatch):
    """As with thousands of partitions."""
    looks = {}

    def look(log):
        turns = world.runtime.turns
        looks[turns] = looks.get(turns, 0) + 1
        return can_reopen(log)

    can_reopen = full_disk.can_reopen
    count = LOOKS_PER_TURN + 10
    world.create_topic("t", count)
    disk.fill()
    for each in range(count):
        world.connect().ask(produce("t", {each: batch(b"x")}), 8)
    monkeypatch.setattr(full_disk, "can_reopen", look)
    settle(world)
    assert sum(looks.values()) >= count and max(looks.values()) <= LOOKS_PER_TURN


def test_a_lack_of_descriptors_does_not_hide_the_lack_of_space(world):
    """The log is out of service for lack of space, and nobody has heard of that when descriptors are lacking, too."""
    world.create_topic("t")
    log = world.broker.partitions.get("t", 0)
    assert write(world) == "NONE"
    log.fail(StorageFailure("write", log.directory, OSError(errno.ENOSPC, "No space left on device")))
    world.broker.log_failed(log, StorageFailure("open", log.directory, OSError(errno.EMFILE, "Too many open files")))
    settle(world)
    assert log.offline is None


def open_after_kill(disk):
    """The directory as a start finds it if the broker is killed now."""
    disk = deepcopy(disk)
    disk.kill()
    return open_directory(disk=disk)


def test_many_partitions_come_back(world, disk):
    world.create_topic("t", 30)
    disk.fill()
    for index in range(30):
        world.connect().ask(produce("t", {index: batch(b"x")}), 8)
    logs = [world.broker.partitions.get("t", index) for index in range(30)]
    assert all(log.offline for log in logs)
    disk.make_room()
    world.advance(LOOK_SECONDS)
    for _ in range(60):
        world.runtime.offload.close()
        world.turn()
    assert not any(log.offline for log in logs)


@pytest.mark.parametrize("code", [errno.EIO, errno.EROFS])
def test_other_failures_last_until_a_restart(world, disk, code):
    world.create_topic("t")
    disk.fill(error=code)
    assert write(world) == "KAFKA_STORAGE_ERROR"
    disk.make_room()
    settle(world)
    assert write(world) == "KAFKA_STORAGE_ERROR"


def test_a_failed_sync_lasts_until_a_restart(disk):
    """The system may have dropped what it could not write, and then nobody knows what the disk holds."""
    world = World("/data", disk=disk, pykafkad_group_commit="true")
    world.create_topic("t")
    world.runtime.offload.close()
    disk.fail("sync", error=errno.ENOSPC)
    peer = world.connect()
    peer.send(produce("t", {0: batch(b"x")}), 8)
    settle(world)
    settle(world)
    assert world.broker.partitions.get("t", 0).offline is not None


def test_a_topic_that_is_deleted_meanwhile_is_forgotten(world, disk):
    world.create_topic("t")
    world.create_topic("u")
    disk.fill()
    write(world), write(world, topic="u")
    disk.make_room()
    peer = world.connect()
    peer.send(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    settle(world)
    assert write(world, topic="u") == "NONE"
    assert write(world) == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize("topic", ["__transaction_state", "t"])
def test_transactions_go_on_when_there_is_space_again(world, disk, topic):
    """The coordinator's log is full, or a partition in which the transaction must end."""
    producer = Producer(world, world.connect()).create_topic().find()
    assert producer.init() == "NONE" and producer.add(0, 1) == ["NONE", "NONE"]
    if topic == "t":
        # The decision is written, but the markers are not.
        write_as_usual = SmallDisk._call
        disk._call = lambda operation, path, data=None: write_as_usual(
            disk, operation if "/t-" in path else f"other {operation}", path, data
        )
        disk.fill()
        assert producer.end() == "NONE" and producer.state() == "PrepareCommit"
    else:
        disk.fill()
        request = messages.EndTxnRequest(
            transactional_id="id", producer_id=producer.producer_id, producer_epoch=producer.epoch, committed=True
        )
        producer.peer.send(request, 4)
        assert producer.peer.closed, "what became of the request is not known"
        producer.peer = world.connect()
        assert producer.end() == "NOT_COORDINATOR"
    disk.make_room()
    settle(world)
    settle(world)
    if topic != "t":
        assert producer.state() == "Ongoing"
        assert producer.end() == "NONE"
        world.turn()
    assert producer.state() == "CompleteCommit"
    assert producer.add(0) == ["NONE"]


def test_groups_commit_again_when_there_is_space(world, disk):
    world.create_topic("t")
    producer = Producer(world, world.connect())
    request = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    while producer.peer.ask(request, 4).coordinators[0].error_code or world.broker.groups.is_loading:
        world.turn()
    assert commit(world, 5) == "NONE"
    disk.fill()
    with pytest.raises(AttributeError):
        commit(world, 6)
    assert commit(world, 6) == "NOT_COORDINATOR"
    disk.make_room()
    settle(world)
    assert commit(world, 7) == "NONE"


def commit(world, offset):
    of = messages.OffsetCommitRequest
    row = of.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = of.OffsetCommitRequestTopic(name="t", partitions=[row])
    answer = world.connect().ask(of(group_id="g", generation_id_or_member_epoch=-1, topics=[topic]), 8)
    return name(answer.topics[0].partitions[0].error_code)
