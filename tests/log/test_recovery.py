"""Recovery after a crash: whole batches stay, broken ones are removed, and a second recovery changes nothing."""

from __future__ import annotations

import random
import struct
import zlib

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from pykafkad.errors import StorageFailure
from tests.log.settings import (
    NOW_MS,
    TOPIC_ID,
    append,
    batch,
    batches_of,
    content,
    open_directory,
    open_log,
    topic_settings,
)
from tests.seeds import examples
from tests.simulation.disk import MemoryDisk

SMALL = {"segment_bytes": 2000, "index_interval_bytes": 300}


def crashed(disk, **changes):
    """The log as the next start opens it after a kill."""
    disk.kill()
    directory = open_directory(disk=disk)
    assert not directory.clean
    return directory, open_log(directory, **{**SMALL, **changes})


def state(log):
    """The state of a log, to compare two logs. Only the last batch of each producer counts, as in a snapshot."""
    producers = {
        key: (entry.epoch, entry.next_sequence, entry.batches[-1:], entry.last_timestamp_ms)
        for key, entry in log.producers.items()
    }
    indexes = [
        (s.base_offset, s.size, s.offset_index.to_bytes(), s.time_index.to_bytes(), s.max_timestamp_ms)
        for s in log.segments
    ]
    return log.end_offset, log.log_start_offset, producers, log.epochs.entries, indexes


def write_log(disk, seed=1, count=60):
    """A log of several segments and epochs, with and without producer ids."""
    chance = random.Random(seed)
    log = open_log(open_directory(disk=disk), **SMALL)
    sequences = {}
    for number in range(count):
        size, producer_id = chance.randrange(1, 5), chance.choice((-1, 7, 8))
        keywords = {}
        if producer_id >= 0:
            keywords = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequences.get(producer_id, 0)}
            sequences[producer_id] = keywords["base_sequence"] + size
        append(
            log,
            batch(
                size,
                chance.randrange(80),
                timestamp_ms=NOW_MS + chance.randrange(1000),
                codec=chance.randrange(5),
                **keywords,
            ),
        )
        if number == count // 2:
            log.lead(1, sole_replica=True)
    return log


@pytest.mark.parametrize("seed", range(5))
def test_a_kill_loses_no_written_batch(seed):
    """Indexes, producers and epochs are rebuilt as they were."""
    disk = MemoryDisk()
    live = write_log(disk, seed)
    live._active.write_indexes()
    expected, rows = state(live), content(live)
    _, log = crashed(disk)
    log.lead(1, sole_replica=True)
    assert (state(log), content(log)) == (expected, rows)


@pytest.mark.parametrize("seed", range(5))
def test_a_second_recovery_changes_nothing(seed):
    disk = MemoryDisk()
    write_log(disk, seed)
    disk.lose_power(random.Random(seed))
    _directory, once = crashed(disk)
    first = state(once)
    files = {path: bytes(found.data) for path, found in disk.files.items() if path.endswith((".log", "index"))}
    _, twice = crashed(disk)
    assert state(twice) == first
    assert files == {path: bytes(found.data) for path, found in disk.files.items() if path.endswith((".log", "index"))}


@pytest.mark.parametrize("seed", range(20))
def test_a_power_loss_leaves_a_prefix_with_all_synced_batches(seed):
    disk, chance = MemoryDisk(), random.Random(seed)
    log = write_log(disk, seed, count=30)
    log.flush()
    synced = log.end_offset
    append(log, *(batch(2, chance.randrange(300)) for _ in range(20)))
    rows = content(log)
    disk.lose_power(chance)
    _, log = crashed(disk)
    kept = content(log)
    assert kept == rows[: len(kept)]
    assert log.end_offset >= synced


def test_a_torn_last_batch_is_removed_wherever_it_ends():
    """The log ends with the batch before it, and appends continue there."""
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk))
    append(log, *(batch(3, 40, producer_id=5, producer_epoch=0, base_sequence=3 * number) for number in range(3)))
    path = log.segments[0].file.path
    whole = bytes(disk.files[path].data)
    last = len(whole) // 3 * 2
    for size in range(last, len(whole)):
        disk.files[path].data = bytearray(whole[:size])
        _directory, log = crashed(disk)
        assert (log.end_offset, log.producers[5].next_sequence, log.segments[0].size) == (6, 6, last)
        assert append(log, batch(3, 40, producer_id=5, producer_epoch=0, base_sequence=6)) == [6]
        assert len(content(log)) == 3


def test_any_flipped_byte_ends_the_log_before_its_batch():
    """The damaged batch and all after it are removed. (No checksum covers the leader epoch.)"""
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk))
    append(log, *(batch(2, 10) for _ in range(3)))
    path = log.segments[0].file.path
    whole = bytes(disk.files[path].data)
    size = len(whole) // 3
    for position in range(size, 2 * size):
        if size + 12 <= position < size + 16 or position < size + 8:
            continue
        data = bytearray(whole)
        data[position] ^= 0x41
        disk.files[path].data = data
        _, log = crashed(disk)
        assert log.end_offset == 2, position - size


def test_a_batch_with_an_offset_that_does_not_rise_ends_the_log():
    """A batch that begins before the end of the previous one was never appended there."""
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk))
    append(log, batch(2), batch(2))
    data = disk.files[log.segments[0].file.path].data
    data += data[len(data) // 2 :]
    _, log = crashed(disk)
    assert (log.end_offset, len(content(log))) == (4, 2)


def test_epochs_that_began_in_lost_batches_are_forgotten():
    """Otherwise an older epoch would end beyond the end of the log."""
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk))
    append(log, batch(2))
    log.lead(4, sole_replica=True)
    append(log, batch(2))
    log.write_epochs()
    data = disk.files[log.segments[0].file.path].data
    del data[len(data) // 2 :]
    disk.kill()
    log = open_directory(disk=disk).open_partition("t", 0, log.topic_id, log.settings)
    assert (log.end_offset, log.epochs.entries) == (2, [(0, 0)])


def test_segments_after_a_broken_one_are_removed():
    disk = MemoryDisk()
    log = write_log(disk)
    assert len(log.segments) > 3
    second = log.segments[1]
    disk.files[second.file.path].data[-1] ^= 1
    _, log = crashed(disk)
    assert len(log.segments) == 2
    assert log.end_offset < second.base_offset + 60
    assert append(log, batch()) == [log.end_offset - 1]
    bases = [int(path.split("/")[-1][:20]) for path in disk.files if path.endswith(".snapshot")]
    assert max(bases) <= log.end_offset


def test_only_batches_after_the_recovery_point_are_read():
    """Synced batches are trusted, as in Kafka, so a start after a crash does not read the whole disk."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory, **SMALL)
    append(log, *(batch(2, 100) for _ in range(100)))
    log.flush()
    directory.checkpoint()
    append(log, batch())
    before = disk.calls["read"]
    _, log = crashed(disk)
    assert log.end_offset == 201
    assert disk.calls["read"] - before < 30


def test_missing_or_broken_indexes_are_rebuilt():
    """This holds after a clean stop too, when nothing else is checked."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory, **SMALL)
    append(log, *(batch(2, 100) for _ in range(30)))
    rows, expected = content(log), state(log)
    directory.close()
    for path in list(disk.files):
        if path.endswith(".index"):
            del disk.files[path]
        elif path.endswith(".timeindex"):
            disk.files[path].data = bytearray(b"\xff" * 25)
    log = open_log(open_directory(disk=disk), **SMALL)
    assert content(log) == rows
    assert [row[4] for row in state(log)[4]] == [row[4] for row in expected[4]]
    assert log.offset_for_timestamp(NOW_MS)[0] == 0


@pytest.mark.parametrize("cut", [1, 30, 100, 160])
def test_a_torn_log_is_recovered_despite_the_clean_marker(cut):
    """A power loss right after the stop, or an incomplete copy of the files, gives such a log."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    append(open_log(directory), batch(2), batch(2))
    directory.close()
    data = disk.files["/data/t-0/00000000000000000000.log"].data
    size = len(data) // 2
    del data[-cut:]
    log = open_log(open_directory(disk=disk))
    assert log.end_offset == (2 if cut < size else 0)
    assert append(log, batch()) == [log.end_offset - 1]


def test_producer_snapshots_do_not_accumulate_over_restarts():
    """There is one per segment, and one at the end."""
    disk = MemoryDisk()
    for _ in range(6):
        directory = open_directory(disk=disk)
        append(open_log(directory), batch())
        directory.close()
    assert sorted(path[-29:-9] for path in disk.files if path.endswith(".snapshot")) == [f"{5:020d}", f"{6:020d}"]


def test_a_damaged_producer_snapshot_is_replaced_by_an_older_one_and_the_log():
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory, **SMALL)
    append(log, *(batch(2, 100, producer_id=4, producer_epoch=1, base_sequence=2 * number) for number in range(40)))
    directory.close()
    for path in sorted(path for path in disk.files if path.endswith(".snapshot"))[1:]:
        disk.files[path].data[8] ^= 1
    log = open_log(open_directory(disk=disk), **SMALL)
    assert (log.producers[4].epoch, log.producers[4].next_sequence) == (1, 80)
    assert len(log.producers[4].batches) == 5


def test_a_recovery_point_is_written_after_the_log_start_that_it_depends_on(monkeypatch):
    """Records below the log start are not synced. Without the log start they would count as lost."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory, **SMALL)
    append(log, *(batch(2, 100) for _ in range(40)))
    directory.checkpoint()
    noted = bytes(disk.files["/data/recovery-point-offset-checkpoint"].data)
    log.delete_records(60)
    log.flush()
    rename = MemoryDisk.rename

    def fail(self, source, target):
        if target.endswith("log-start-offset-checkpoint"):
            raise StorageFailure("rename", target, OSError(5, "simulated"))
        rename(self, source, target)

    monkeypatch.setattr(MemoryDisk, "rename", fail)
    with pytest.raises(StorageFailure):
        directory.checkpoint()
    assert disk.files["/data/recovery-point-offset-checkpoint"].data == noted
    monkeypatch.undo()
    directory.checkpoint()
    assert disk.files["/data/recovery-point-offset-checkpoint"].data != noted


def log_of_a_producer(directory):
    """Several segments of producer 4, and one batch without a producer in the last."""
    log = open_log(directory, **SMALL)
    append(log, *(batch(2, 100, producer_id=4, producer_epoch=1, base_sequence=2 * number) for number in range(40)))
    log.roll(NOW_MS)
    append(log, batch())
    return log


@pytest.mark.parametrize("below_the_start", [False, True])
def test_a_broken_batch_before_the_recovery_point_matters_only_above_the_log_start(below_the_start):
    """Below the log's start no consumer reads it, so the log stays in service."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = log_of_a_producer(directory)
    log.flush()
    if below_the_start:
        log.delete_records(log.segments[-1].base_offset)
    directory.checkpoint()
    append(log, batch())
    broken = log.segments[1]
    disk.files[broken.file.path].data[:12] = bytes(12)
    for path in [
        path for path in disk.files if path.endswith(".snapshot") and int(path.split("/")[-1][:20]) > broken.base_offset
    ]:
        del disk.files[path]
    _, log = crashed(disk)
    assert (log.offline is None) is below_the_start


@pytest.mark.parametrize("some_are_gone", [False, True])
def test_a_producer_whose_last_batches_below_the_start_are_gone_is_forgotten(some_are_gone):
    """Any next sequence is then accepted. An older state would refuse the right one."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = log_of_a_producer(directory)
    second, last = log.segments[1].base_offset, log.segments[-1].base_offset
    assert len(log.segments) > 4
    log.flush()
    log.delete_records(last)
    directory.checkpoint()
    append(log, batch())
    for path in [path for path in disk.files if path.startswith("/data/t-0/0")]:
        base = int(path.split("/")[-1][:20])
        if (path.endswith(".snapshot") and base > second) or (some_are_gone and second < base < last):
            del disk.files[path]
    _, log = crashed(disk)
    assert (log.log_start_offset, log.end_offset) == (last, last + 2)
    assert {key: entry.next_sequence for key, entry in log.producers.items()} == ({} if some_are_gone else {4: 80})


def test_a_damaged_leader_epoch_file_is_rebuilt_from_the_batches():
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory)
    append(log, batch(2))
    log.lead(5, sole_replica=True)
    append(log, batch(2))
    directory.close()
    disk.files["/data/t-0/leader-epoch-checkpoint"].data = bytearray(b"nonsense")
    log = open_log(open_directory(disk=disk))
    log.load()
    assert log.epochs.entries == [(0, 0), (5, 2)]


def test_what_the_start_recovered_is_not_recovered_again_at_the_first_use():
    """A power loss has torn the leader-epoch file, and left nothing of the last segment. The first use is in the loop,
    which waits for no sync."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory, **SMALL)
    append(log, *(batch(2, 300) for _ in range(6)))
    log.flush()
    directory.checkpoint()
    end_offset = log.end_offset
    append(log, batch(2, 300))
    last = log.segments[-1]
    assert last.base_offset == end_offset
    disk.files[f"{last.prefix}.log"].data = disk.files[f"{last.prefix}.log"].data[:20]
    disk.files["/data/t-0/leader-epoch-checkpoint"].data = bytearray(b"0\n3\n0 0\n")
    disk.kill()
    log = open_directory(disk=disk).open_partition("t", 0, TOPIC_ID, topic_settings(**SMALL))
    assert not log.is_loaded
    disk.refuses_syncs = True
    log.load()
    assert (log.end_offset, log.epochs.entries) == (end_offset, [(0, 0)])


def test_a_log_that_ends_below_its_start_becomes_empty_at_the_start():
    """DeleteRecords was checkpointed, a power loss took the records after it. The log keeps the checkpointed start."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory)
    append(log, *(batch(2) for _ in range(10)))
    log.delete_records(15)
    directory.checkpoint()
    disk.lose_power(random.Random(1))
    disk.files["/data/t-0/00000000000000000000.log"].data.clear()
    _, log = crashed(disk)
    assert (log.log_start_offset, log.end_offset, [s.base_offset for s in log.segments]) == (15, 15, [15])
    assert append(log, batch()) == [15]


def test_batches_of_formats_before_kafka_0_11_are_not_truncated():
    """Their files are intact, and the broker cannot read them, so the log is refused."""
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk))
    append(log, batch(2))
    disk.kill()
    path = "/data/t-0/00000000000000000000.log"
    # Offset and size, then the checksummed part: magic 1, attributes, timestamp, key, value.
    checked = struct.pack(">bbqi", 1, 0, NOW_MS, -1) + struct.pack(">i", 40) + b"v" * 40
    disk.files[path].data[:] = struct.pack(">qiI", 0, len(checked) + 4, zlib.crc32(checked)) + checked
    size = len(disk.files[path].data)
    log = open_log(open_directory(disk=disk))
    assert "before 0.11" in str(log.offline), "the partition is offline, the broker starts"
    reads = disk.calls["read"]
    with pytest.raises(StorageFailure, match="before 0.11"):
        _ = log.end_offset
    assert disk.calls["read"] == reads, "it is not tried again"
    assert len(disk.files[path].data) == size


@pytest.mark.parametrize("length", [None, -1, -(2**31), 2**31 - 1])
def test_a_torn_batch_that_looks_like_an_older_format_is_truncated(length):
    """A power loss may leave zeros in place of the magic byte, with any length before them."""
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk))
    append(log, batch(2), batch(2))
    data = disk.files[log.segments[0].file.path].data
    at = len(data) // 2
    data[at + 16] = 0
    if length is not None:
        data[at + 8 : at + 12] = struct.pack(">i", length)
    _, log = crashed(disk)
    assert log.end_offset == 2


def test_files_of_an_interrupted_deletion_or_cleaning_are_removed():
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    append(open_log(directory), batch())
    directory.close()
    disk.write("/data/t-0/00000000000000000000.log.deleted", b"old")
    disk.write("/data/t-0/00000000000000000000.log.cleaned", b"half")
    directory = open_directory(disk=disk)
    assert open_log(directory).end_offset == 1
    assert not [path for path in disk.files if path.endswith((".deleted", ".cleaned"))]


@pytest.mark.parametrize("unfinished", [False, True])
def test_a_start_finishes_the_replacement_by_a_whole_segment(unfinished):
    """Kafka's rule: a `.swap` file is valid, unless a file of the same or an earlier base is still `.cleaned`."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory, segment_bytes=len(batch()))
    append(log, *(batch() for _ in range(4)))
    directory.close()
    data = disk.read("/data/t-0/00000000000000000000.log") + disk.read("/data/t-0/00000000000000000002.log")
    disk.write("/data/t-0/00000000000000000000.log.swap", data)
    disk.write("/data/t-0/00000000000000000000.index.swap", b"")
    if unfinished:
        disk.write("/data/t-0/00000000000000000000.timeindex.cleaned", b"")
    log = open_log(open_directory(disk=disk))
    assert [segment.base_offset for segment in log.segments] == ([0, 1, 2, 3] if unfinished else [0, 3])
    assert [header.base_offset for header, _ in content(log)] == ([0, 1, 2, 3] if unfinished else [0, 2, 3])
    assert not [path for path in disk.files if path.endswith((".swap", ".cleaned"))]


@hypothesis_settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=400), st.integers(0, 3))
def test_any_bytes_after_whole_batches_are_truncated(garbage, count):
    """A segment file of any bytes gives a valid prefix or a `StorageFailure`."""
    disk = MemoryDisk()
    log = open_log(open_directory(disk=disk))
    append(log, *(batch(2) for _ in range(count)))
    data = disk.files[log.segments[0].file.path].data
    data += garbage
    _, log = crashed(disk)
    if log.offline is not None:
        assert isinstance(log.offline, StorageFailure)
        return
    assert log.end_offset == 2 * count
    assert len(batches_of(bytes(disk.files[log.segments[0].file.path].data))) == count


@pytest.mark.parametrize("offset", [-(1 << 62), -5_000_000_000, 1 << 40])
def test_an_impossible_offset_in_an_old_segment_fails_the_rebuilding_of_its_indexes(offset):
    """No checksum covers it, and an index holds 32 bits of it. The segment is unreadable, and the broker runs on."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory, **SMALL)
    append(log, *(batch(2, 100) for _ in range(60)))
    directory.close()
    first = min(path for path in disk.files if path.endswith(".log") and "t-0" in path)
    disk.files[first].data[0:8] = offset.to_bytes(8, "big", signed=True)
    for suffix in (".index", ".timeindex"):
        disk.unlink(first.removesuffix(".log") + suffix)
    log = open_log(open_directory(disk=disk), **SMALL)
    with pytest.raises(StorageFailure, match="impossible offset"):
        log.segments[0].offset_index.lookup(3)
    assert log.end_offset == 120
