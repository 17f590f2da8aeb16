"""The disk in memory behaves like the real one, call by call, and refuses data beyond its limit."""

import os
from types import SimpleNamespace

import pytest

from pykafkad import errors
from pykafkad.clock import Clock, ManualClock
from pykafkad.disk import Disk
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.memory_disk import MemoryDisk
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.simulation.world import World

MB = 1024 * 1024


@pytest.fixture(params=["real", "memory"])
def disk_and_root(request, tmp_path):
    """Both disks, each with an empty directory."""
    disk = Disk() if request.param == "real" else MemoryDisk(64 * MB, Clock())
    root = str(tmp_path / "data")
    disk.make_directories(root)
    return disk, root


def test_both_disks_give_the_same_results(disk_and_root):
    """Calls every method of both disks and compares the results."""
    disk, root = disk_and_root
    disk.make_directories(f"{root}/t-0")
    disk.make_directories(f"{root}/t-0")
    file = disk.open(f"{root}/t-0/a.log", create=True)
    file.pwrite(b"0123456789", 0)
    file.pwritev([b"ab", memoryview(b"cd")], 8)
    assert (file.size(), file.pread(100, 6), file.pread(5, 50)) == (12, b"67abcd", b"")
    assert os.pread(file.fileno(), 3, 0) == b"012"
    file.truncate(10)
    file.sync()
    assert disk.read(f"{root}/t-0/a.log") == b"01234567ab"
    assert disk.read_end(f"{root}/t-0/a.log", 3) == b"7ab"
    assert disk.read_end(f"{root}/none", 3) == b""
    disk.write(f"{root}/index", b"12345")
    disk.write(f"{root}/index", b"123", sync=True)
    disk.replace(f"{root}/meta", b"x" * 3000)
    disk.replace(f"{root}/meta", b"y")
    assert (disk.read(f"{root}/index"), disk.read(f"{root}/meta"), disk.read(f"{root}/none")) == (b"123", b"y", None)
    assert sorted(disk.listdir(root)) == ["index", "meta", "t-0"]
    assert (disk.size(f"{root}/index"), disk.size(f"{root}/none")) == (3, 0)
    disk.set_modified_ms(f"{root}/index", 1_600_000_000_000)
    assert (disk.modified_ms(f"{root}/index"), disk.modified_ms(f"{root}/none")) == (1_600_000_000_000, 0)
    disk.link(f"{root}/meta", f"{root}/second")
    assert disk.is_shared(f"{root}/meta") and disk.is_shared(f"{root}/second")
    disk.unlink(f"{root}/meta")
    assert not disk.is_shared(f"{root}/second")
    assert disk.read(f"{root}/second") == b"y"
    disk.rename(f"{root}/second", f"{root}/meta")
    disk.rename(f"{root}/t-0", f"{root}/t-0.x-delete")
    assert (
        disk.exists(f"{root}/t-0"),
        disk.is_directory(f"{root}/t-0.x-delete"),
        disk.is_directory(f"{root}/meta"),
    ) == (False, True, False)
    disk.remove_directory(f"{root}/t-0.x-delete")
    assert file.pread(2, 0) == b"01", "who reads goes on reading"
    disk.unlink(f"{root}/index")
    disk.unlink(f"{root}/index")
    for sync in (lambda: disk.sync(f"{root}/meta"), disk.sync_all, lambda: disk.sync_directory(root)):
        sync()
    assert disk.listdir(root) == ["meta"]
    file.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda disk, root: disk.open(f"{root}/none"),
        lambda disk, root: disk.link(f"{root}/none", f"{root}/second"),
        lambda disk, root: disk.link(f"{root}/file", f"{root}/file"),
        lambda disk, root: disk.open(f"{root}/no/where", create=True),
        lambda disk, root: disk.listdir(f"{root}/none"),
        lambda disk, root: disk.rename(f"{root}/none", f"{root}/other"),
        lambda disk, root: disk.write(f"{root}/no/where", b"x"),
        lambda disk, root: disk.make_directories(f"{root}/file/below"),
        lambda disk, root: disk.set_modified_ms(f"{root}/none", 1),
        lambda disk, root: disk.remove_directory(f"{root}/none"),
    ],
)
def test_both_disks_refuse_the_same_calls(disk_and_root, call):
    disk, root = disk_and_root
    disk.write(f"{root}/file", b"x")
    with pytest.raises(StorageFailure):
        call(disk, root)


def test_removed_files_do_not_count():
    disk = MemoryDisk(10 * MB, ManualClock())
    disk.make_directories("m/t-0")
    files = [disk.open(f"m/t-0/{index}.log", create=True) for index in range(4)]
    for file in files:
        file.pwrite(bytes(MB), 0)
    disk.write("m/small", bytes(1000))
    disk.replace("m/small", bytes(10))
    assert disk.used_bytes == 4 * MB + 10
    files[0].truncate(0)
    disk.link("m/t-0/1.log", "m/second-name")
    disk.unlink("m/t-0/1.log")
    assert disk.used_bytes == 3 * MB + 10
    disk.unlink("m/second-name")
    assert disk.used_bytes == 2 * MB + 10
    disk.remove_directory("m/t-0")
    assert disk.used_bytes == 10
    assert disk.usage("m") == (10 * MB, 10 * MB - 10)


def test_space_is_reserved_and_refused_at_the_limit():
    disk = MemoryDisk(200_000, ManualClock())
    first, second = (disk.open(name, create=True) for name in "ab")
    end = disk.reserve(first, 1000)
    assert end > 60_000 and disk.used_bytes == end
    first.pwrite(bytes(1000), 0)
    assert disk.used_bytes == end, "what was reserved is not counted twice"
    assert disk.reserve(second, 120_000) == 120_000, "the last room is given exactly"
    with pytest.raises(KafkaError, match="memory is full") as refused:
        disk.reserve(second, 190_000)
    assert refused.value.code == errors.KAFKA_STORAGE_ERROR
    assert disk.reserve(second, 190_000, beyond_bound=True) >= 190_000


def row(answer):
    return answer.responses[0].partition_responses[0]


SIZE = 100_000


def a_batch(**keywords):
    return batch(os.urandom(SIZE - 200), **keywords)


@pytest.fixture
def world():
    """A broker whose memory has room for four batches but not for five."""
    disk = MemoryDisk(64 * MB, ManualClock())
    world = World("memory", disk=disk, clock=disk.clock, log_segment_delete_delay_ms=0)
    for topic in ("t", "other"):
        world.create_topic(topic, 1)
    disk.max_bytes = disk.used_bytes + 4 * SIZE + SIZE // 2
    return world


def ask(world, topic="t", **keywords):
    """The row of the answer to one more batch."""
    return row(world.connect().ask(produce(topic, {0: a_batch(**keywords)}), 8))


def test_at_the_limit_producers_get_an_error_and_other_requests_are_served(world):
    """As on a full disk, producers get KAFKA_STORAGE_ERROR.

    Nothing goes offline, and with room they are served again.
    """
    codes = [ask(world, topic).error_code for topic in ("other", "t", "t", "t", "other")]
    assert codes == [0] * 3 + [errors.KAFKA_STORAGE_ERROR] * 2
    assert world.broker.partitions.get("t", 0).offline is None
    assert world.connect().ask(fetch("t", {0: 1}), 11).responses[0].partitions[0].high_watermark == 2
    answer = world.connect().ask(messages.DeleteTopicsRequest(topic_names=["other"], timeout_ms=1000), 5)
    assert answer.responses[0].error_code == 0
    world.advance(1)
    world.runtime.offload.close()
    answer = ask(world)
    assert (answer.error_code, answer.base_offset) == (0, 2), "what was refused used no offset"


def test_the_log_says_at_the_limit_that_producers_will_retry(world):
    """Once in a while, not with each retry."""
    lines = []
    world.broker.logs.sink = SimpleNamespace(line=lambda *line: lines.append(line))
    for _ in range(3):
        ask(world)
    assert lines == []
    for _ in range(5):
        ask(world)
    ((level, name, event, fields),) = lines
    assert (level, name, event, fields["max_bytes"]) == (
        "warning",
        "storage",
        "memory-full",
        world.runtime.disk.max_bytes,
    )
    assert "retry" in fields["consequence"]
    world.runtime.disk.clock.advance(60)
    ask(world)
    assert len(lines) == 2


def test_a_refused_idempotent_batch_may_be_retried(world):
    """Its sequence number was not used: the retry is neither a gap nor a duplicate."""
    for sequence in range(4):
        assert ask(world, producer_id=7, producer_epoch=0, base_sequence=sequence).error_code == 0
    assert ask(world, producer_id=7, producer_epoch=0, base_sequence=4).error_code == errors.KAFKA_STORAGE_ERROR
    world.runtime.disk.max_bytes *= 2
    answer = ask(world, producer_id=7, producer_epoch=0, base_sequence=4)
    assert (answer.error_code, answer.base_offset) == (0, 4)


def test_the_metadata_log_may_exceed_the_limit(world):
    """Otherwise nothing could be deleted to make room."""
    while ask(world).error_code == 0:
        pass
    world.runtime.disk.max_bytes = world.runtime.disk.used_bytes
    world.create_topic("one-more", 1)
    answer = world.connect().ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    assert answer.responses[0].error_code == 0


def test_small_closed_files_use_no_descriptor(descriptors_at_rest):
    """Each file keeps its bytes, under one name or two.

    A large file keeps its descriptor, because copying it is slow.
    """
    disk = MemoryDisk(10 << 20, ManualClock())
    disk.make_directories("d")
    before = len(os.listdir("/proc/self/fd"))
    for number in range(50):
        file = disk.open(f"d/{number}", create=True)
        file.pwrite(b"%d" % number, 0)
        again = disk.open(f"d/{number}")
        file.close()
        assert again.pread(10, 0) == b"%d" % number
        del again
    disk.link("d/7", "d/seven")
    large = disk.open("d/large", create=True)
    large.pwrite(bytes(100_000), 0)
    large.close()
    assert len(os.listdir("/proc/self/fd")) == before + 1, "the large one"
    assert disk.read("d/7") == b"7" and disk.size("d/49") == 2 and disk.open("d/seven").pread(10, 0) == b"7"
    with_more = disk.open("d/7")
    with_more.pwrite(b"8", 1)
    with_more.close()
    assert disk.read("d/seven") == b"78" and disk.used_bytes >= 100_000
    assert len(os.listdir("/proc/self/fd")) == before + 1
    disk.unlink("d/large")
    assert len(os.listdir("/proc/self/fd")) == before + 1, "while somebody has it"
    del large
    assert len(os.listdir("/proc/self/fd")) == before
