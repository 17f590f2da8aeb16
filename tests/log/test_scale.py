"""The cost of a partition: descriptors, memory, and the bytes that a start after a crash reads."""

from __future__ import annotations

import gc
import os
import random
import tracemalloc

import pytest

from pykafkad.log import recent_segments
from pykafkad.log.directory import MAX_SINGLE_SYNCS
from pykafkad.log.recent_segments import MAX_SEALED_FILES, MAX_SEALED_INDEXES
from pykafkad.log.segment import SCAN_SIZE_BYTES
from tests.log.settings import NOW_MS, append, batch, offsets_of, open_directory, open_log, topic_settings
from tests.simulation.disk import MemoryDisk, MemoryFile

SIZE = len(batch())
IDLE_BYTES = 3 * 1024


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_a_stop_syncs_the_new_leader_epochs_of_many_logs_in_one_call():
    """Logs that were only read have a new epoch too. Three syncs for each of them would make every stop slow."""
    disk = MemoryDisk()
    for epoch in (0, 2, 4):
        directory = open_directory(disk=disk)
        assert directory.clean or not epoch
        for number in range(2 * MAX_SINGLE_SYNCS):
            log = open_log(directory, partition=number)
            log.lead(epoch, sole_replica=True)
            if epoch:
                assert log.read(0, 1000, end_offset=1)
            else:
                append(log, batch())
        disk.calls.clear()
        directory.close()
        if epoch:
            assert disk.calls["sync"] < MAX_SINGLE_SYNCS
            disk.lose_power(random.Random(epoch))


def test_a_partition_in_use_holds_one_file_open(tmp_path):
    """It holds one file for any number of synced segments, and a few more while old segments are read."""
    before = open_files()
    directory = open_directory(tmp_path)
    logs = [open_log(directory, partition=number, segment_bytes=SIZE) for number in range(20)]
    for log in logs:
        append(log, *(batch() for _ in range(8)))
    for job in directory.sync_jobs():
        job.run()
        job.finish()
    assert open_files() - before == len(logs) + 1, "and the lock"
    for offset in range(7):
        for log in logs:
            assert log.read(offset, 1000, end_offset=8).pread()
    assert open_files() - before == (MAX_SEALED_FILES + 1) * len(logs) + 1
    directory.close()


def loaded(log):
    """The numbers of the sealed segments whose indexes are in memory."""
    return [number for number, segment in enumerate(log.segments[:-1]) if segment.loaded_entries]


def read_all_segments(log, first_offset):
    for offset in range(first_offset, log.end_offset - 4, 4):
        assert log.read(offset, 1000, end_offset=log.end_offset).pread()


@pytest.mark.parametrize(
    ("bound", "entries", "kept"),
    [("count", 10**6, MAX_SEALED_INDEXES), ("entries", 30, 10), ("the open ones", 1, MAX_SEALED_FILES)],
)
def test_the_indexes_of_old_segments_stay_within_their_limits(tmp_path, monkeypatch, bound, entries, kept):
    """The number of indexes and the number of their entries are limited. Indexes of open files stay."""
    monkeypatch.setattr(recent_segments, "MAX_SEALED_ENTRIES", entries)
    directory = open_directory(tmp_path)
    settings = {"segment_bytes": 4 * SIZE, "index_interval_bytes": 1}
    log = open_log(directory, **settings)
    append(log, *(batch() for _ in range(4 * (MAX_SEALED_INDEXES + 10))))
    directory.close()
    directory = open_directory(tmp_path)
    log = open_log(directory, **settings)
    read_all_segments(log, 1)
    # The segment that was read last counts once the next one is read.
    assert (
        loaded(log) == list(range(len(log.segments) - 1))[-len(loaded(log)) :] and kept <= len(loaded(log)) <= kept + 1
    )
    before = open_files()
    read_all_segments(log, 2)
    assert open_files() == before and kept <= len(loaded(log)) <= kept + 1
    again, opened = loaded(log), []
    monkeypatch.setattr(type(log.segments[0]), "load_indexes", opened.append)
    assert log.read(4 * again[0] + 3, 1000, end_offset=log.end_offset).pread()
    assert opened == [], "what is kept is not read again"
    directory.close()


def test_a_restart_opens_only_the_logs_that_are_used(tmp_path):
    directory = open_directory(tmp_path)
    for number in range(20):
        append(open_log(directory, partition=number, segment_bytes=SIZE), *(batch() for _ in range(8)))
    directory.close()
    before = open_files()
    directory = open_directory(tmp_path)
    logs = [open_log(directory, partition=number, segment_bytes=SIZE) for number in range(20)]
    assert open_files() - before == 1, "the lock"
    for log in logs[:15]:
        assert append(log, batch()) == [8]
    assert open_files() - before <= 2 * 15 + 1, "the new active segment, and until it is synced the one before it"
    directory.close()


IDLE, IDLE_SETTINGS = 300, topic_settings()


def idle_partitions(disk):
    """A log directory and its partitions, as after a start."""
    directory = open_directory(disk=disk)
    return directory, [directory.open_partition("topic", number, bytes(16), IDLE_SETTINGS) for number in range(IDLE)]


def taken_bytes(start):
    """The result of `start`, and the memory that it takes per partition."""
    gc.collect()
    tracemalloc.start()
    try:
        started = start()
        gc.collect()
        return started, tracemalloc.get_traced_memory()[0] / IDLE
    finally:
        tracemalloc.stop()


@pytest.mark.long
@pytest.mark.parametrize("loaded", [False, pytest.param(True, marks=pytest.mark.long)])
def test_an_idle_partition_takes_little_memory(loaded):
    disk = MemoryDisk()
    directory, logs = idle_partitions(disk)
    for log in logs:
        append(log, batch())
    directory.close()

    def start():
        directory, logs = idle_partitions(disk)
        assert not loaded or {log.end_offset for log in logs} == {1}
        return directory, logs

    assert taken_bytes(start)[1] <= IDLE_BYTES


def test_an_unclean_start_reads_only_batches_after_the_recovery_point(monkeypatch):
    """It reads the segment of the recovery point and all after it, and one batch header of the segment before. The
    producers come from the snapshot at the segment's base."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory, segment_bytes=4 * SIZE)
    append(log, *(batch(producer_id=1, producer_epoch=0, base_sequence=number) for number in range(18)))
    job = log.sync_job()
    job.run()
    job.finish()
    directory.checkpoint()
    append(log, *(batch(timestamp_ms=NOW_MS) for _ in range(8)))
    recovery_point, bases = log.recovery_point, [segment.base_offset for segment in log.segments]
    assert 0 < recovery_point < bases[-1]
    disk.kill()
    read = []
    inner = MemoryFile.pread
    monkeypatch.setattr(
        MemoryFile, "pread", lambda self, size, position: read.append((self.path, size)) or inner(self, size, position)
    )
    again = open_log(open_directory(disk=disk), segment_bytes=4 * SIZE)
    assert (again.end_offset, again.producers[1].next_sequence) == (26, 18)
    at = bases.index(recovery_point)
    whole = {int(path.rsplit("/", 1)[1][:20]) for path, size in read if size > SCAN_SIZE_BYTES}
    assert whole == {base for base in bases if base >= recovery_point}
    assert {int(path.rsplit("/", 1)[1][:20]) for path, _ in read} - whole <= {bases[at - 1]}


LARGE_BYTES, BATCHES = 20_000, 40


def large(number):
    """A producer's batch with this number."""
    return batch(size=LARGE_BYTES, timestamp_ms=NOW_MS + number, producer_id=7, producer_epoch=0, base_sequence=number)


@pytest.fixture
def killed_with_few_in_use():
    """A disk with ten partitions of many large batches in one segment; two got another batch before a kill."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    for number in range(10):
        append(open_log(directory, partition=number), *(large(each) for each in range(BATCHES)))
    directory.close()
    directory = open_directory(disk=disk)
    logs = [open_log(directory, partition=number) for number in range(10)]
    for log in logs[:2]:
        append(log, large(BATCHES))
    directory.checkpoint()
    disk.kill()
    return disk


def test_an_unclean_start_reads_little_of_unchanged_logs(killed_with_few_in_use, monkeypatch):
    """It reads only the batch headers after the last index entries, as the first use after a clean start does."""
    read = {}
    inner = MemoryFile.pread

    def pread(file, size_bytes, position):
        data = inner(file, size_bytes, position)
        read[file.path] = read.get(file.path, 0) + len(data)
        return data

    monkeypatch.setattr(MemoryFile, "pread", pread)
    directory = open_directory(disk=killed_with_few_in_use)
    logs = [open_log(directory, partition=number) for number in range(10)]
    idle, used = (
        [sum(count for path, count in read.items() if path.startswith(log.directory + "/")) for log in each]
        for each in (logs[2:], logs[:2])
    )
    assert max(idle) <= 10 * SCAN_SIZE_BYTES < BATCHES * LARGE_BYTES < min(used)
    assert [log.is_loaded for log in logs] == [True] * 2 + [False] * 8
    assert [(log.end_offset, log.recovery_point, log.producers[7].next_sequence) for log in logs] == [
        (BATCHES + 1, BATCHES, BATCHES + 1)
    ] * 2 + [(BATCHES,) * 3] * 8
    assert [log.high_watermark for log in logs] == [BATCHES + 1] * 2 + [BATCHES] * 8


@pytest.mark.parametrize("damage", ["snapshot", "indexes", "log"])
def test_missing_files_of_a_clean_stop_are_rebuilt(killed_with_few_in_use, damage):
    disk = killed_with_few_in_use
    prefix = "/data/t-5/00000000000000000000"
    if damage == "log":
        # A flipped bit in bytes that were written and not synced.
        disk.files[f"{prefix}.log"].data += bytes(100)
    else:
        for path in (
            (f"/data/t-5/{BATCHES:020d}.snapshot",)
            if damage == "snapshot"
            else (f"{prefix}.index", f"{prefix}.timeindex")
        ):
            del disk.files[path]
    log = open_log(open_directory(disk=disk), partition=5)
    assert (log.end_offset, log.producers[7].next_sequence) == (BATCHES, BATCHES)
    assert disk.size(f"{prefix}.log") == log.segments[0].size == BATCHES * len(large(0))
    assert offsets_of(log.read(2, 1, end_offset=4)) == [2]


def test_an_unclean_start_holds_no_descriptor_of_unused_logs(tmp_path):
    """A recovered log is opened again at its first use."""
    directory = open_directory(tmp_path)
    logs = [open_log(directory, partition=number) for number in range(20)]
    for log in logs[:15]:
        append(log, batch())
    for log in logs[:10]:
        log.flush()
    directory.checkpoint()
    directory._lock.close()
    del directory, logs, log
    before = open_files()
    directory = open_directory(tmp_path)
    logs = [open_log(directory, partition=number) for number in range(25)]
    assert open_files() - before == 1, "the lock"
    assert [number for number, log in enumerate(logs) if log.is_loaded] == list(range(10, 15)), (
        "those that must still be synced"
    )
    for log in logs[5:12]:
        assert append(log, batch()) == [1]
        assert offsets_of(log.read(0, 1000, end_offset=2)) == [0, 1]
    assert open_files() - before == 7 + 1
    directory.close()
    assert open_directory(tmp_path).clean


@pytest.mark.long
def test_an_idle_partition_takes_little_memory_after_a_kill():
    """Once it is synced, it takes no more than after a clean stop."""
    disk = MemoryDisk()
    directory, logs = idle_partitions(disk)
    for log in logs:
        append(log, batch())
        log.flush()
    directory.checkpoint()
    disk.kill()
    (_, logs), taken = taken_bytes(lambda: idle_partitions(disk))
    assert not any(log.is_loaded for log in logs)
    assert taken <= IDLE_BYTES * 3 / 4


def test_a_log_that_is_unloaded_after_a_kill_forgets_no_batch_of_its_producers():
    """A snapshot has one batch per producer. After a kill the log has five, as in Kafka."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    sent = [batch(producer_id=7, producer_epoch=0, base_sequence=number) for number in range(6)]
    log = open_log(directory)
    append(log, *(memoryview(bytearray(each)) for each in sent))
    log.flush()
    directory.checkpoint()
    disk.kill()
    log = open_log(open_directory(disk=disk))
    assert [log.append(memoryview(bytearray(each)), NOW_MS).base_offset for each in sent[1:]] == [1, 2, 3, 4, 5]
    assert log.end_offset == 6
