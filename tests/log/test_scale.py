"""What a partition costs: descriptors, memory, and what a start after a crash reads."""

from __future__ import annotations

import gc
import os
import tracemalloc

import pytest

from pykafkad.log import log_files
from pykafkad.log.log_files import MAX_SEALED_FILES, MAX_SEALED_INDEXES
from pykafkad.log.segment import SCAN_SIZE_BYTES
from tests.log.settings import NOW_MS, append, batch, open_directory, open_log, topic_settings
from tests.simulation.disk import MemoryDisk, MemoryFile

SIZE = len(batch())
IDLE_BYTES = 3 * 1024


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def test_a_partition_in_use_holds_one_file_open(tmp_path):
    """However many segments it has, once what was rolled is synced; and those few old ones that are being read."""
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
    """Which sealed segments have their index in memory, by number."""
    return [number for number, segment in enumerate(log.segments[:-1]) if segment.loaded_entries]


def read_all_segments(log, first_offset):
    for offset in range(first_offset, log.end_offset - 4, 4):
        assert log.read(offset, 1000, end_offset=log.end_offset).pread()


@pytest.mark.parametrize(("bound", "entries", "kept"), [("count", 10**6, MAX_SEALED_INDEXES), ("entries", 30, 10), ("the open ones", 1, MAX_SEALED_FILES)])
def test_the_indexes_of_old_segments_are_kept_within_bounds(tmp_path, monkeypatch, bound, entries, kept):
    """Whichever is reached first: how many, or how many entries; those of open files stay."""
    monkeypatch.setattr(log_files, "MAX_SEALED_ENTRIES", entries)
    directory = open_directory(tmp_path)
    settings = {"segment_bytes": 4 * SIZE, "index_interval_bytes": 1}
    log = open_log(directory, **settings)
    append(log, *(batch() for _ in range(4 * (MAX_SEALED_INDEXES + 10))))
    directory.close()
    directory = open_directory(tmp_path)
    log = open_log(directory, **settings)
    read_all_segments(log, 1)
    # What was read last is counted when the next one is.
    assert loaded(log) == list(range(len(log.segments) - 1))[-len(loaded(log)):] and kept <= len(loaded(log)) <= kept + 1
    before = open_files()
    read_all_segments(log, 2)
    assert open_files() == before and kept <= len(loaded(log)) <= kept + 1
    again, opened = loaded(log), []
    monkeypatch.setattr(type(log.segments[0]), "load_indexes", opened.append)
    assert log.read(4 * again[0] + 3, 1000, end_offset=log.end_offset).pread()
    assert opened == [], "what is kept is not read again"
    directory.close()


def test_a_restart_opens_nothing_but_what_is_used(tmp_path):
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


@pytest.mark.parametrize("loaded", [False, True])
def test_an_idle_partition_takes_little_memory(loaded):
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    count = 300
    settings = topic_settings()
    for number in range(count):
        log = directory.open_partition("topic", number, bytes(16), settings)
        append(log, batch())
    directory.close()
    del log
    gc.collect()
    directory = open_directory(disk=disk)
    tracemalloc.start()
    try:
        logs = [directory.open_partition("topic", number, bytes(16), settings) for number in range(count)]
        for log in logs if loaded else ():
            assert log.end_offset == 1
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken / count <= IDLE_BYTES


def test_an_unclean_start_reads_only_what_is_behind_the_recovery_point(monkeypatch):
    """From the segment on that holds it, and of the one before it a batch's header; producers come from the snapshot at its base."""
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
    monkeypatch.setattr(MemoryFile, "pread", lambda self, size, position: read.append((self.path, size)) or inner(self, size, position))
    again = open_log(open_directory(disk=disk), segment_bytes=4 * SIZE)
    assert (again.end_offset, again.producers[1].next_sequence) == (26, 18)
    at = bases.index(recovery_point)
    whole = {int(path.rsplit("/", 1)[1][:20]) for path, size in read if size > SCAN_SIZE_BYTES}
    assert whole == {base for base in bases if base >= recovery_point}
    assert {int(path.rsplit("/", 1)[1][:20]) for path, _ in read} - whole <= {bases[at - 1]}
