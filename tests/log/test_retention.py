"""Retention: whole segments are removed from the front, by time, by size and by DeleteRecords."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.log import retention
from tests.log.settings import NOW_MS, append, batch, content, open_log, topic_settings

SIZE = len(batch(1, 100))


def segmented(directory, count=5, **changes):
    """A log with one batch per segment, a second apart."""
    log = open_log(directory, **{"segment_bytes": SIZE, "retention_ms": -1, **changes})
    append(log, *(batch(1, 100, timestamp_ms=NOW_MS + 1000 * number) for number in range(count)))
    return log


def bases(log):
    return [segment.base_offset for segment in log.segments]


def test_segments_whose_newest_record_is_too_old_are_removed(directory):
    log = segmented(directory, retention_ms=2000)
    assert log.run_retention(NOW_MS + 2000) == 0
    assert log.run_retention(NOW_MS + 3500) == 2
    assert (bases(log), log.log_start_offset, log.epochs.entries) == ([2, 3, 4], 2, [(0, 2)])
    with pytest.raises(KafkaError) as caught:
        log.read(1, 100, end_offset=5)
    assert caught.value.code == errors.OFFSET_OUT_OF_RANGE


def test_when_all_segments_are_too_old_a_new_one_is_rolled_first(directory):
    """The log continues at the same offset. An empty last segment stays."""
    log = segmented(directory, retention_ms=2000)
    assert log.run_retention(NOW_MS + 60_000) == 5
    assert (bases(log), log.log_start_offset, log.end_offset) == ([5], 5, 5)
    assert log.run_retention(NOW_MS + 120_000) == 0
    assert append(log, batch()) == [5]


@pytest.mark.parametrize(
    ("retention_bytes", "left"), [(5 * SIZE, 5), (5 * SIZE - 1, 5), (4 * SIZE, 4), (4 * SIZE - 1, 4), (SIZE, 1), (0, 1)]
)
def test_segments_above_retention_bytes_are_removed(directory, retention_bytes, left):
    """At least retention.bytes stay. With 0 even the last segment is removed, and a new one is rolled."""
    log = segmented(directory, retention_bytes=retention_bytes)
    log.run_retention(NOW_MS)
    assert len(log.segments) == left


def test_no_segment_above_the_high_watermark_is_removed(directory):
    log = segmented(directory, retention_ms=0)
    log.high_watermark = 2
    assert log.run_retention(NOW_MS + 60_000) == 2


def test_on_a_compacted_topic_only_delete_records_removes_segments(directory):
    """Time and size do not count there."""
    log = segmented(directory, retention_ms=0, retention_bytes=0)
    log.update_settings(topic_settings(**{**vars(log.settings), "cleanup_policy": frozenset(("compact",))}))
    assert log.run_retention(NOW_MS + 60_000) == 0
    log.delete_records(3)
    assert log.run_retention(NOW_MS + 60_000) == 3


def test_delete_records_moves_the_start_and_retention_removes_the_files(directory):
    """A segment that contains the start stays."""
    log = segmented(directory, segment_bytes=2 * SIZE)
    assert log.delete_records(3) == 3
    assert log.delete_records(1) == 3
    assert [header.base_offset for header, _ in content(log)] == [3, 4]
    assert log.run_retention(NOW_MS) == 1
    assert bases(log) == [2, 4]
    for offset in (-1, 6):
        with pytest.raises(KafkaError) as caught:
            log.delete_records(offset)
        assert caught.value.code == errors.OFFSET_OUT_OF_RANGE


def test_files_are_renamed_at_once_and_removed_after_the_delay(directory, disk):
    """The delay is file.delete.delay.ms. After a crash, the next start removes the renamed files."""
    log = segmented(directory, retention_ms=2000, file_delete_delay_ms=1000)
    log.run_retention(NOW_MS + 2500)
    renamed = sorted(path for path in disk.files if path.endswith(".deleted"))
    assert [path.rsplit("/", 1)[1] for path in renamed] == [
        f"{0:020d}.{kind}.deleted" for kind in ("index", "log", "timeindex")
    ]
    assert directory.take_due_deletions(NOW_MS + 3499) == []
    for row in directory.take_due_deletions(NOW_MS + 3500):
        directory.remove(*row)
    assert not any(path.endswith(".deleted") or path.startswith(f"/data/t-0/{0:020d}") for path in disk.files)


def test_a_segment_without_timestamps_ages_by_its_files_modification_time(directory, disk):
    log = open_log(directory, retention_ms=1000)
    append(log, batch(timestamp_ms=-1))
    disk.modified = NOW_MS
    assert log.run_retention(NOW_MS + 1000) == 0
    assert log.run_retention(NOW_MS + 1001) == 1


def test_a_sync_ignores_a_segment_that_retention_has_removed(directory, disk):
    """The file is renamed before the syncing thread opens it. The log stays in service."""
    log = segmented(directory, retention_ms=2000)
    job = log.sync_job()
    for segment in log.segments[:-1]:
        segment.drop_file()
    assert log.run_retention(NOW_MS + 10_000) > 1
    job.run()
    job.finish()
    assert log.offline is None and log.recovery_point >= 4


def test_sealed_segments_are_synced_in_the_background(directory, disk):
    """Kafka syncs a segment when it rolls. Synced segments need no recovery. A failed sync is final."""
    log = segmented(directory)
    job = log.sync_job()
    job.run()
    assert log.recovery_point == 0
    job.finish()
    assert (log.recovery_point, log.sync_job()) == (4, None)
    append(log, batch(1, 100, timestamp_ms=NOW_MS + 9000))
    job = log.sync_job()
    disk.fail("sync")
    with pytest.raises(StorageFailure) as raised:
        job.run()
    job.failed(raised.value)
    assert str(log.offline) == str(raised.value)


class Rest:
    """What the choice of logs reads of one that nobody has opened since the start."""

    def __init__(self, *policy, is_loaded=False, offline=None):
        self.settings = topic_settings(cleanup_policy=frozenset(policy))
        self.is_loaded = is_loaded
        self.offline = offline


@pytest.mark.parametrize(
    ("policy", "cleaner_enabled", "opened", "unopened", "cleaned"),
    [
        (("delete",), True, True, True, False),
        ((), True, True, True, False),
        (("compact",), True, False, False, True),
        (("compact", "delete"), True, False, True, True),
        (("compact", "delete"), False, False, False, True),
    ],
)
def test_the_check_and_the_cleaner_share_the_logs(policy, cleaner_enabled, opened, unopened, cleaned):
    """An open log is looked at by one of the two, and by nobody while it is being cleaned or is offline."""
    loaded, rest = Rest(*policy, is_loaded=True), Rest(*policy)
    logs = [loaded, rest, Rest(*policy, is_loaded=True, offline=StorageFailure("read", "/a", "simulated"))]
    assert retention.logs_of_check(logs, cleaner_enabled) == ([loaded] * opened, [rest] * unopened)
    assert retention.logs_of_cleaner(logs, []) == [loaded] * cleaned
    assert retention.logs_of_cleaner(logs, [loaded]) == []
