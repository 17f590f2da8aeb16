"""The process is killed, or the disk fails, at every call of a cleaning: no record is lost."""

from __future__ import annotations

import copy
import random

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log.cleaner import LogCleaner
from tests import seeds
from tests.log.cleaning import clean, compacted, drive, keyed, left, roll, start
from tests.log.settings import NOW_MS, append, open_directory
from tests.simulation.disk import MemoryDisk

SETTINGS = {"segment_bytes": 900, "delete_retention_ms": 1 << 40, "index_interval_bytes": 0}


class Dies(Exception):
    """Ends the process of a test."""


class MortalDisk(MemoryDisk):
    """A disk that raises `Dies` before its n-th changing call; with `dies_at` None it only counts the calls."""

    __slots__ = ("changes", "dies_at")

    def __init__(self):
        super().__init__()
        self.changes = 0
        self.dies_at = None

    def _call(self, operation, path, data=None):
        if operation in ("write", "rename", "remove", "sync", "create", "truncate", "stat"):
            self.changes += 1
            if self.changes == self.dies_at:
                raise Dies
        return super()._call(operation, path, data)


def prepared():
    """A disk with a dirty log: producers, transactions, and several segments, of which some are merged."""
    disk = MortalDisk()
    log = compacted(open_directory(disk=disk), **SETTINGS)
    for number in range(40):
        append(
            log, keyed((f"k{number % 7}", str(number)), (f"m{number}", None if number % 5 else "x"), codec=number % 3)
        )
    append(log, keyed(("k1", "p"), producer_id=3, producer_epoch=0, base_sequence=0))
    for sequence, abort in ((0, True), (1, False)):
        log.append(
            keyed(("k2", "t"), producer_id=5, producer_epoch=0, base_sequence=sequence, is_transactional=True),
            NOW_MS,
            origin="verified client",
        )
        log.append_end_marker(5, 0, 0, NOW_MS, is_abort=abort)
    append(log, keyed(("k2", "end")))
    roll(log)
    append(log, keyed(("k3", "active")))
    log.flush()
    return disk, log


def newest(rows):
    """The newest value of each key."""
    return {key: value for _, key, value in rows}


def count_changes():
    disk, log = prepared()
    before = disk.changes
    clean(log)
    return disk.changes - before


CHANGES = count_changes()


def test_a_cleaning_makes_many_changing_calls():
    assert CHANGES > 30


@pytest.mark.parametrize("how", ["kill", "power"])
@pytest.mark.parametrize("at", seeds.sampled(range(1, CHANGES + 1), 5))
def test_a_kill_at_any_call_loses_no_record(at, how):
    disk, log = prepared()
    expected, offsets = newest(left(log)), {offset for offset, _, _ in left(log)}
    producers, end_offset = dict(log.producers), log.end_offset
    disk.dies_at = disk.changes + at
    with pytest.raises(Dies):
        clean(log)
    disk.dies_at = None
    disk.kill() if how == "kill" else disk.lose_power(random.Random(at))
    twin = copy.deepcopy(disk) if at % 7 == 0 else None
    log = compacted(open_directory(disk=disk), **SETTINGS)
    rows = left(log)
    assert newest(rows) == expected
    assert {offset for offset, _, _ in rows} <= offsets
    assert (log.end_offset, log.producers.keys()) == (end_offset, producers.keys())
    assert not any(path.endswith((".cleaned", ".swap", ".deleted")) for path in disk.files)
    clean(log)
    assert newest(left(log)) == expected
    assert len(left(log)) < len(offsets)
    if twin is not None:
        # A second kill, during the start that cleans up after the first.
        twin.dies_at = twin.changes + 2
        try:
            left(compacted(open_directory(disk=twin), **SETTINGS))
        except Dies:
            twin.dies_at = None
            twin.kill()
            assert newest(left(compacted(open_directory(disk=twin), **SETTINGS))) == expected


@pytest.mark.parametrize("at", seeds.sampled(range(1, CHANGES + 1, 3), 3))
@pytest.mark.parametrize("operation", ["write", "rename", "sync", "create"])
def test_a_disk_failure_leaves_the_log_readable(operation, at):
    """The log goes offline only if segments were being exchanged. After a restart it is whole."""
    disk, log = prepared()
    expected = newest(left(log))
    disk.fail(operation, at=at)
    cleaner = LogCleaner(disk)
    try:
        drive(start(cleaner, log))
    except StorageFailure:
        assert log.offline is None or operation == "rename"
        assert log.offline is not None or not any(path.endswith((".cleaned", ".swap")) for path in disk.files)
    disk.heal()
    assert newest(left(log)) == expected
    disk.kill()
    assert newest(left(compacted(open_directory(disk=disk), **SETTINGS))) == expected
