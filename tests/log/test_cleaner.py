"""The cleaner: which log it takes and up to which offset, and the budget of one step."""

from __future__ import annotations

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log import compaction, offset_map
from pykafkad.log.cleaner import CleaningAborted, LogCleaner, group_segments
from pykafkad.log.record_scan import BrokenRecords
from tests.log.cleaning import COMPACT, change_settings, clean, compacted, drive, keyed, left, roll, start
from tests.log.settings import NOW_MS, append, open_directory, open_log, topic_settings


def filled(directory, topic, dirty, clean_batches=0, **changes):
    """A log with `clean_batches` and `dirty` batches of one size, and its cleaner."""
    log = compacted(directory, topic=topic, **changes)
    append(log, *(keyed((f"{number:04}", "x" * 100)) for number in range(clean_batches)))
    roll(log)
    cleaned = log.end_offset
    append(log, *(keyed((f"{number:04}", "y" * 100)) for number in range(dirty)))
    roll(log)
    return log, cleaned


def test_the_dirtiest_log_is_cleaned_if_it_is_dirty_enough(directory, disk):
    cleaner = LogCleaner(disk)
    logs = []
    for topic, dirty, clean_batches in (("a", 4, 6), ("b", 7, 3), ("c", 5, 5)):
        log, offset = filled(directory, topic, dirty, clean_batches, min_cleanable_dirty_ratio=0.5)
        logs.append(log)
        cleaner.note_cleaned(log, offset, logs)
    candidate = cleaner.pick(logs, NOW_MS)
    assert (candidate.log.topic, candidate.first_dirty_offset, candidate.end_offset) == ("b", 3, 10)
    assert candidate.dirty_bytes == candidate.clean_bytes / 3 * 7
    assert cleaner.pick(logs, NOW_MS, busy=[logs[1]]) is None, "half is not more than half"
    change_settings(logs[2], min_cleanable_dirty_ratio=0.49)
    assert cleaner.pick(logs, NOW_MS, busy=[logs[1]]).log is logs[2]


def test_max_compaction_lag_makes_a_clean_log_due(directory, disk):
    cleaner = LogCleaner(disk)
    log, offset = filled(directory, "a", 1, 9, min_cleanable_dirty_ratio=0.9, max_compaction_lag_ms=5000)
    cleaner.note_cleaned(log, offset, [log])
    assert cleaner.pick([log], NOW_MS + 5000) is None
    assert cleaner.pick([log], NOW_MS + 5001).is_overdue


def test_min_compaction_lag_keeps_young_segments(directory, disk):
    log = compacted(directory, min_compaction_lag_ms=1000)
    for number in range(4):
        append(log, keyed(("a", str(number)), timestamp_ms=NOW_MS + 1000 * number))
        roll(log)
    candidate = LogCleaner(disk).pick([log], NOW_MS + 2999)
    assert (candidate.first_dirty_offset, candidate.end_offset) == (0, 2)
    assert LogCleaner(disk).pick([log], NOW_MS + 999) is None


def test_nothing_is_cleaned_from_the_last_stable_offset_on(directory, disk):
    """Batches before it in the same segment are not cleaned either."""
    log = compacted(directory)
    append(log, keyed(("a", "1")))
    roll(log)
    append(log, keyed(("a", "2")))
    log.append(
        keyed(("a", "3"), producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True),
        NOW_MS,
        origin="verified client",
    )
    append(log, keyed(("a", "4")))
    roll(log)
    assert log.last_stable_offset == 2
    assert LogCleaner(disk).pick([log], NOW_MS).end_offset == 1


def test_logs_that_are_not_compacted_or_offline_are_skipped(directory, disk):
    log, _ = filled(directory, "a", 3)
    cleaner = LogCleaner(disk)
    assert cleaner.pick([log], NOW_MS) is not None
    change_settings(log, cleanup_policy=frozenset(("delete",)))
    assert cleaner.pick([log], NOW_MS) is None
    change_settings(log, cleanup_policy=frozenset(("compact", "delete")))
    assert cleaner.pick([log], NOW_MS) is not None
    log.fail(StorageFailure("write", "t-0", "gone"))
    assert cleaner.pick([log], NOW_MS) is None


def test_an_unopened_log_is_opened_only_if_it_has_segments_to_clean(disk):
    directory = open_directory(disk=disk)
    for topic, dirty in (("one", 0), ("two", 3)):
        filled(directory, topic, dirty)
    directory.close()
    directory = open_directory(disk=disk)
    logs = [
        directory.open_partition(topic, 0, bytes(range(16)), topic_settings(cleanup_policy=COMPACT))
        for topic in ("one", "two")
    ]
    assert LogCleaner(disk).pick(logs, NOW_MS).log is logs[1]
    assert [log.is_loaded for log in logs] == [False, True]


def test_the_cleaner_checkpoint_has_kafkas_format_and_survives_a_restart(directory, disk):
    """Rows of deleted partitions are removed. An offset beyond the log's end counts as the log's start."""
    log, _ = filled(directory, "t", 3)
    cleaner = LogCleaner(disk)
    other, _ = filled(directory, "u", 3)
    cleaner.note_cleaned(other, 3, [log, other])
    clean(log, cleaner)
    assert disk.read("/data/cleaner-offset-checkpoint") == b"0\n1\nt 0 3\n"
    assert LogCleaner(disk).pick([log], NOW_MS) is None
    cleaner.note_cleaned(log, 77, [log])
    assert LogCleaner(disk).pick([log], NOW_MS).first_dirty_offset == 0
    assert disk.read("/data/cleaner-offset-checkpoint") == b"0\n1\nt 0 0\n"


def test_a_run_with_a_full_map_cleans_up_to_the_last_mapped_offset(directory, monkeypatch):
    """The rest is unchanged and left to the next run."""
    monkeypatch.setattr(compaction, "STEP_RECORDS", 10)
    log = compacted(directory)
    append(log, *(keyed((f"k{number % 60}", str(number))) for number in range(200)))
    roll(log)
    cleaner = LogCleaner(directory.disk)
    first = clean(log, cleaner, buffer_bytes=30 * offset_map.ENTRY_BYTES, load_factor=1.0)
    assert 30 <= first.end_offset <= 50
    runs = 1
    while clean(log, cleaner, buffer_bytes=30 * offset_map.ENTRY_BYTES, load_factor=1.0):
        runs += 1
    assert runs > 3
    assert left(log) == [(number, f"k{number % 60}", str(number)) for number in range(140, 200)]


@pytest.mark.parametrize(
    ("changes", "groups"),
    [
        ({}, [6]),
        ({"segment_bytes": 3 * 100}, None),
        ({"segment_index_bytes": 24}, [2, 2, 2]),
    ],
)
def test_small_segments_are_merged(directory, changes, groups):
    """The limits are segment.bytes, the sizes of the indexes, and the span of offsets that one index can hold."""
    log = compacted(directory, index_interval_bytes=0)
    for number in range(6):
        append(log, keyed((f"{number}", "x" * 20)), keyed((f"b{number}", "x" * 20)))
        roll(log)
    size = log.segments[0].size
    changes = {"segment_bytes": 3 * size} if "segment_bytes" in changes else changes
    change_settings(log, **changes)
    found = group_segments(log.segments[:-1], log.settings, log.end_offset)
    assert [len(group) for group in found] == (groups or [3, 3])
    if not changes:
        assert [len(group) for group in group_segments(log.segments[:-1], log.settings, 1 << 32)] == [5, 1]
    clean(log)
    assert len(log.segments) == len(found) + 1


def test_recovery_keeps_a_log_that_was_compacted_once(directory, disk):
    """Missing last offsets of a segment are no sign of a loss, even if the cleanup policy has changed since."""
    log = compacted(directory, segment_bytes=len(keyed(("a", "1"))))
    append(log, keyed(("a", "1")), keyed(("a", "2")), keyed(("b", "1")), keyed(("c", "1")))
    clean(log)
    assert [segment.base_offset for segment in log.segments] == [0, 1, 2, 3]
    assert left(log) == [(1, "a", "2"), (2, "b", "1"), (3, "c", "1")]
    log.flush()
    directory.checkpoint()
    disk.unlink("/data/t-0/leader-epoch-checkpoint")
    disk.kill()
    log = open_log(open_directory(disk=disk))
    assert left(log) == [(1, "a", "2"), (2, "b", "1"), (3, "c", "1")]


@pytest.mark.long
@pytest.mark.parametrize("codec", [0, 4])
def test_no_step_exceeds_its_budget(directory, monkeypatch, codec):
    """With one large batch and with many small ones, a step reads at most STEP_RECORDS records or STEP_BYTES bytes."""
    monkeypatch.setattr(compaction, "STEP_RECORDS", 50)
    log = compacted(directory)
    append(log, keyed(*((f"k{number % 100}", "v" * 10) for number in range(5000)), codec=codec))
    append(log, *(keyed((f"k{number % 100}", None)) for number in range(1000)))
    roll(log)
    walked = []
    for name in ("index_keys", "shift_timestamps"):
        inner = getattr(compaction, name)
        monkeypatch.setattr(
            compaction, name, lambda *arguments, inner=inner: walked.append(arguments[2]) or inner(*arguments)
        )
    inner_step = compaction.Retention.step
    monkeypatch.setattr(
        compaction.Retention,
        "step",
        lambda self, count: walked.append(min(count, self._left)) or inner_step(self, count),
    )
    cleaner = LogCleaner(directory.disk)
    steps = start(cleaner, log)
    answer, most, count = None, 0, 0
    while True:
        try:
            job = steps.send(answer)
        except StopIteration:
            break
        answer = job() if job is not None else None
        most = max(most, sum(walked))
        count += 1
        walked.clear()
    assert most <= 3 * compaction.STEP_RECORDS
    assert count > 12_000 / 50


def test_a_run_stops_when_its_log_is_deleted_or_goes_offline(directory, disk):
    log, _ = filled(directory, "a", 3000)
    before = dict(disk.files)
    cleaner = LogCleaner(disk)
    steps = start(cleaner, log)
    while not set(disk.files) - set(before):
        next(steps)
    change_settings(log, cleanup_policy=frozenset(("delete",)))
    with pytest.raises(CleaningAborted):
        drive(steps)
    assert disk.files.keys() == before.keys()


def test_a_log_with_unreadable_batches_is_not_cleaned_again(directory, disk):
    log, _ = filled(directory, "a", 3)
    disk.files["/data/a-0/" + "0" * 20 + ".log"].data[16] = 1
    cleaner = LogCleaner(disk)
    with pytest.raises(BrokenRecords, match="a-0"):
        drive(start(cleaner, log))
    assert cleaner.pick([log], NOW_MS) is None
    assert not any(".cleaned" in path for path in disk.files)


def test_a_damaged_batch_gets_no_new_checksum(directory, disk):
    log = compacted(directory)
    append(log, keyed(("a", "1"), ("b", "1" * 40)), keyed(("a", "2")))
    roll(log)
    disk.files["/data/t-0/" + "0" * 20 + ".log"].data[90] ^= 1
    cleaner = LogCleaner(disk)
    with pytest.raises(BrokenRecords, match="checksum"):
        drive(start(cleaner, log))
