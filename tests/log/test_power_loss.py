"""Power losses, one case per test. The crash machine found each of them."""

from __future__ import annotations

import random

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log.partition_log import VERIFIED_CLIENT
from pykafkad.log.time_index import TimeIndex
from tests.log.settings import NOW_MS, append, batch, content, offsets_of, open_directory, open_log
from tests.simulation.crash_disk import CrashDisk

SMALL = {"segment_bytes": 300, "index_interval_bytes": 4096}
SEGMENT = "/data/t-0/{:020d}{}"


def restarted(disk, **changes):
    """The log as the next start opens it."""
    disk.kill()
    directory = open_directory(disk=disk)
    return directory, open_log(directory, **{**SMALL, **changes})


def rolled(disk, count=4):
    """A log of one batch of three records per segment."""
    directory = open_directory(disk=disk)
    log = open_log(directory, **SMALL)
    append(log, *(batch(3, 60, timestamp_ms=NOW_MS + number) for number in range(count)))
    assert len(log.segments) == count
    return directory, log


def test_a_segment_that_lost_its_last_batches_ends_the_log():
    """No batch is broken, but offsets are missing before the next segment, so that segment is removed."""
    disk = CrashDisk()
    rolled(disk)
    del disk.files[SEGMENT.format(3, ".log")].data[:]
    _, log = restarted(disk)
    assert (log.end_offset, [segment.base_offset for segment in log.segments]) == (3, [0, 3])
    assert append(log, batch()) == [3]
    assert [header.base_offset for header, _ in content(log)] == [0, 3]


def test_offsets_that_compaction_removed_do_not_end_the_log():
    """This holds on a compacted topic, and on one that was compacted once."""
    for policy in ("compact", "delete"):
        disk = CrashDisk()
        rolled(disk)
        if policy == "delete":
            # Its first segment holds two batches with a gap between them.
            disk.files[SEGMENT.format(0, ".log")].data += disk.files[SEGMENT.format(6, ".log")].data
            disk.unlink(SEGMENT.format(3, ".log"))
            disk.unlink(SEGMENT.format(6, ".log"))
        else:
            del disk.files[SEGMENT.format(3, ".log")].data[:]
        _, log = restarted(disk, cleanup_policy=frozenset((policy,)))
        assert log.end_offset == 12


def test_segments_that_recovery_removed_do_not_come_back():
    """A power loss right after a recovery does not undo it."""
    for seed in range(20):
        disk = CrashDisk()
        rolled(disk)
        disk.files[SEGMENT.format(3, ".log")].data[-1] ^= 1
        disk.sync_all()
        _, log = restarted(disk)
        append(log, batch(3, 60))
        disk.lose_power(random.Random(seed))
        _, log = restarted(disk)
        assert [segment.base_offset for segment in log.segments][:2] == [0, 3]
        assert log.end_offset in (3, 6)
        assert [header.max_timestamp_ms for header, _ in content(log)][1:] in ([], [NOW_MS])


def test_a_producer_snapshot_of_lost_records_does_not_come_back():
    """Other batches may have its offset by then."""
    disk = CrashDisk()
    directory = open_directory(disk=disk)
    append(open_log(directory), batch(3), batch(3))
    directory.close()
    disk.unlink("/data/.kafka_cleanshutdown")
    disk.sync_all()
    data = disk.files[SEGMENT.format(0, ".log")].data
    del data[len(data) // 2 :]
    _, log = restarted(disk)
    assert log.end_offset == 3
    assert SEGMENT.format(6, ".snapshot") not in disk.durable


def test_the_batches_win_over_an_epoch_file_of_lost_records():
    """In the lost records the epoch began at a later offset."""
    disk = CrashDisk()
    _, log = rolled(disk)
    log.lead(3, sole_replica=True)
    append(log, batch(3, 60))
    disk.write("/data/t-0/leader-epoch-checkpoint", b"0\n2\n0 0\n3 14\n")
    _, log = restarted(disk)
    assert log.epochs.entries == [(0, 0), (3, 12)]


def test_an_epoch_file_with_a_torn_last_number_is_rebuilt():
    """The torn number would give an epoch that began at 1, not at 12."""
    disk = CrashDisk()
    directory, log = rolled(disk)
    log.lead(3, sole_replica=True)
    append(log, batch(3, 60))
    directory.close()
    file = disk.files["/data/t-0/leader-epoch-checkpoint"]
    assert file.data == b"0\n2\n0 0\n3 12\n"
    del file.data[-2:]
    _, log = restarted(disk)
    assert log.epochs.entries == [(0, 0), (3, 12)]


def test_epochs_before_the_recovery_point_are_synced():
    """Recovery does not read those batches again, so it could not rebuild the epochs."""
    for seed in range(20):
        disk = CrashDisk()
        directory, log = rolled(disk)
        log.lead(5, sole_replica=True)
        append(log, batch(3, 60))
        log.flush()
        directory.checkpoint()
        disk.lose_power(random.Random(seed))
        _, log = restarted(disk)
        assert log.epochs.entries[:2] == [(0, 0), (5, 12)]


def test_a_sync_of_segments_syncs_the_epochs_too():
    """On any file system, the file and its name are synced before the recovery point moves."""
    disk = CrashDisk()
    _, log = rolled(disk)
    log.lead(5, sole_replica=True)
    log.roll(NOW_MS)
    append(log, batch())
    log.flush()
    path = "/data/t-0/leader-epoch-checkpoint"
    assert disk.durable[path].synced == disk.files[path].data == b"0\n2\n0 0\n5 12\n"
    log.lead(6, sole_replica=True)
    append(log, batch())
    synced = disk.calls["sync"]
    log.flush()
    assert disk.calls["sync"] == synced + 3, "file, name, and the log itself"
    append(log, batch())
    log.flush()
    assert disk.calls["sync"] == synced + 4, "what did not change is not synced again"


def test_an_empty_epoch_file_is_rebuilt():
    """A power loss may leave the name without content. All batches are read, also those before the recovery point."""
    disk = CrashDisk()
    directory, log = rolled(disk)
    log.flush()
    directory.checkpoint()
    disk.files["/data/t-0/leader-epoch-checkpoint"].data.clear()
    _, log = restarted(disk)
    assert log.epochs.entries == [(0, 0)]


def test_the_clean_marker_does_not_come_back():
    """With the marker, the records written since would not be checked."""
    disk = CrashDisk()
    directory = open_directory(disk=disk)
    append(open_log(directory), batch())
    directory.close()
    open_directory(disk=disk)
    disk.lose_power(random.Random(1))
    assert not open_directory(disk=disk).clean


def test_a_sync_of_segments_syncs_their_indexes():
    """With an empty time index, look-ups by time would skip the segment."""
    for seed in range(20):
        for how in ("flush", "close"):
            disk = CrashDisk()
            directory, log = rolled(disk)
            if how == "flush":
                log.flush()
                directory.checkpoint()
            else:
                directory.close()
            disk.lose_power(random.Random(seed))
            _, log = restarted(disk)
            assert [log.offset_for_timestamp(NOW_MS + number)[0] for number in range(4)] == [0, 3, 6, 9]


def test_a_clean_stop_syncs_the_last_segment_with_its_indexes():
    """A clean start trusts the indexes until they are used."""
    disk = CrashDisk()
    directory, log = rolled(disk)
    append(log, batch(3, 60), batch(3, 60))
    log.flush()
    append(log, batch(1, 20))
    directory.close()
    last = max(path for path in disk.files if path.endswith(".log")).removesuffix(".log")
    for suffix in (".log", ".index", ".timeindex"):
        assert disk.files[last + suffix].synced == disk.files[last + suffix].data


def test_rebuilt_indexes_before_the_recovery_point_are_synced():
    """A missing epoch file makes recovery rebuild the whole log. No later sync covers its first segments."""
    for seed in range(20):
        disk = CrashDisk()
        directory, log = rolled(disk)
        log.flush()
        directory.checkpoint()
        disk.files["/data/t-0/leader-epoch-checkpoint"].data.clear()
        directory, log = restarted(disk)
        log.flush()
        for number in range(3):
            file = disk.files[SEGMENT.format(3 * number, ".timeindex")]
            assert file.data and file.synced == file.data
        directory.checkpoint()
        disk.lose_power(random.Random(seed))
        _, log = restarted(disk)
        assert [log.offset_for_timestamp(NOW_MS + number)[0] for number in range(4)] == [0, 3, 6, 9]


def test_the_sync_after_a_roll_covers_the_files_of_the_roll():
    """The roll comes right after a sync, so the recovery point was the end of the sealed segment."""
    disk = CrashDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory)
    append(log, batch(3, 60, producer_id=7, producer_epoch=0, base_sequence=0))
    log.flush()
    log.roll(NOW_MS)
    sealed_sync(directory, log)
    for suffix in (".index", ".timeindex"):
        file = disk.files[SEGMENT.format(0, suffix)]
        assert file.synced == file.data
    file = disk.files[SEGMENT.format(3, ".snapshot")]
    assert file.synced == file.data


def test_a_power_loss_after_a_roll_right_after_a_sync_loses_no_index():
    """The checkpoint names the end of the sealed segment. Its transaction index says which records are aborted."""
    disk = CrashDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory)
    begun = batch(3, 60, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.append(begun, NOW_MS, origin=VERIFIED_CLIENT)
    log.append_end_marker(7, 0, 0, NOW_MS, is_abort=True)
    log.flush()
    directory.checkpoint()
    log.roll(NOW_MS)
    append(log, batch())
    # Nothing has synced its name.
    disk.unlink(SEGMENT.format(0, ".txnindex"))
    _, log = restarted(disk)
    assert log.end_offset == 5
    log.advance_high_watermark(4)
    assert [each.first_offset for each in log.aborted_transactions(0, log.read(0, 10_000, end_offset=4))] == [0]


def test_a_failed_rename_in_retention_takes_the_log_offline():
    """The file is part of the log again at the next start, and may not be synced."""
    disk = CrashDisk()
    _, log = rolled(disk)
    log.delete_records(9)
    disk.fail("rename")
    with pytest.raises(StorageFailure):
        log.run_retention(NOW_MS)
    assert log.offline is not None


def test_a_torn_time_index_is_rebuilt():
    """The largest timestamp of a sealed segment is read from the last entry only."""
    disk = CrashDisk()
    directory, _ = rolled(disk)
    directory.close()
    disk.files[SEGMENT.format(0, ".timeindex")].data[-5:] = b""
    _, log = restarted(disk)
    assert log.offset_for_timestamp(NOW_MS)[0] == 0


def test_a_segment_that_was_recovered_and_appended_to_is_sealed_with_its_last_timestamp():
    """Even without a crash: a restart, a batch without an index entry, a roll, a restart."""
    disk = CrashDisk()
    append(open_log(open_directory(disk=disk), **SMALL), batch(timestamp_ms=NOW_MS - 1))
    directory, log = restarted(disk)
    append(log, batch(3, 20, timestamp_ms=NOW_MS))
    log.roll(NOW_MS)
    assert TimeIndex.from_bytes(bytes(disk.files[SEGMENT.format(0, ".timeindex")].data)).last() == (NOW_MS, 3)
    directory.close()
    _, log = restarted(disk)
    assert log.offset_for_timestamp(NOW_MS)[0] == 1
    assert log.segments[0].max_timestamp_ms == NOW_MS


def test_a_log_that_ends_in_zeros_is_recovered_despite_the_clean_marker():
    """Its indexes are missing too."""
    disk = CrashDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory)
    append(log, batch(2), batch(2))
    directory.close()
    data = disk.files[SEGMENT.format(0, ".log")].data
    data[len(data) // 2 :] = bytes(len(data) // 2)
    del disk.files[SEGMENT.format(0, ".index")]
    _, log = restarted(disk)
    assert log.end_offset == 2
    assert offsets_of(log.read(0, 1 << 20, end_offset=2)) == [0, 1]


def test_a_producer_snapshot_older_than_the_first_segment_is_not_used():
    """The batches between the snapshot and the first segment are gone, so its producers may have gone on."""
    disk = CrashDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory, **SMALL)
    append(log, *(batch(3, 60, producer_id=7, producer_epoch=0, base_sequence=3 * number) for number in range(4)))
    log.delete_records(9)
    log.run_retention(NOW_MS)
    disk.files[SEGMENT.format(3, ".snapshot")] = disk.files[SEGMENT.format(3, ".snapshot") + ".deleted"]
    disk.files[SEGMENT.format(9, ".snapshot")].data.clear()
    disk.files[SEGMENT.format(9, ".log")].data.clear()
    directory.checkpoint()
    _, log = restarted(disk)
    assert (log.log_start_offset, log.end_offset, dict(log.producers)) == (9, 9, {})


def test_a_sync_of_segments_syncs_producer_snapshots():
    """After a power loss a duplicate of a synced batch is still recognised."""
    for seed in range(20):
        disk = CrashDisk()
        directory = open_directory(disk=disk)
        log = open_log(directory, **SMALL)
        append(log, *(batch(3, 60, producer_id=7, producer_epoch=0, base_sequence=3 * number) for number in range(3)))
        log.roll(NOW_MS)
        log.delete_records(9)
        log.flush()
        log.run_retention(NOW_MS)
        directory.checkpoint()
        disk.lose_power(random.Random(seed))
        _, log = restarted(disk)
        assert log.producers[7].next_sequence == 9


def test_a_sync_ignores_a_file_that_retention_renames_meanwhile():
    """Syncs run on another thread."""
    disk = CrashDisk()
    directory, log = rolled(disk)
    (job,) = directory.sync_jobs()
    log.delete_records(9)
    log.run_retention(NOW_MS)
    job.run()
    job.finish()
    assert log.offline is None and log.recovery_point == 9


def apart():
    """A disk on which only a sync of a directory brings its names to the device."""
    disk = CrashDisk()
    disk.names_apart = True
    return disk


def sealed_sync(directory, log):
    """Run the sync job of rolled segments, as the offload does."""
    (job,) = directory.sync_jobs()
    job.run()
    job.finish()
    assert log.recovery_point == log.segments[-1].base_offset


def whole_sync(directory, log):
    log.flush()


@pytest.mark.parametrize("sync", [whole_sync, sealed_sync])
@pytest.mark.parametrize("lives", [1, 2], ids=["new", "after a kill"])
def test_a_sync_of_files_syncs_their_names_too(sync, lives):
    """The names are those of the data directory, the partition's folder, the segments and their indexes, also if an
    earlier broker was killed before it synced them."""
    for seed in range(10):
        disk = apart()
        directory, log = rolled(disk)
        if lives == 2:
            log.flush()
        append(log, *(batch(producer_id=5, producer_epoch=0, base_sequence=number) for number in range(8)))
        if lives == 2:
            directory.checkpoint()
            directory, log = restarted(disk)
        sync(directory, log)
        directory.checkpoint()
        end_offset = log.recovery_point
        disk.lose_power(random.Random(seed))
        _, log = restarted(disk)
        assert log.end_offset >= end_offset and log.recovery_point == end_offset > 12
        assert [log.offset_for_timestamp(NOW_MS + number)[0] for number in range(4)] == [0, 3, 6, 9]
        assert log.producers[5].next_sequence >= end_offset - 12


def test_names_are_synced_with_the_first_sync_only(monkeypatch):
    """That is the first sync after a file was added."""
    disk, synced = apart(), []
    monkeypatch.setattr(CrashDisk, "sync_directory", lambda _, path: synced.append(path))
    directory = open_directory(disk=disk)
    assert synced == ["/"]
    log = open_log(directory)
    append(log, batch())
    log.flush()
    assert synced == ["/", "/data/t-0", "/data"]
    append(log, batch())
    log.flush()
    assert len(synced) == 3
    log.roll(NOW_MS)
    append(log, batch())
    log.flush()
    assert synced[3:] == ["/data/t-0"]


def test_a_failed_sync_of_names_takes_the_log_offline(monkeypatch):
    """As after any failed sync, nothing counts as synced. The missing folder of a deleted topic is no failure."""
    disk = apart()
    directory, log = rolled(disk)
    log.flush()
    log.roll(NOW_MS)
    append(log, batch())

    def fail(_, path):
        if path != "/data":
            raise StorageFailure("sync", path, "simulated")

    monkeypatch.setattr(CrashDisk, "sync_directory", fail)
    recovery_point = log.recovery_point
    with pytest.raises(StorageFailure):
        log.flush()
    assert log.offline is not None and log.recovery_point == recovery_point
    log = open_log(directory, partition=1)
    append(log, batch())
    job = log.whole_sync_job()
    directory.delete_partition("t", 1)
    job.run()


def test_a_sync_that_ends_after_a_failed_one_does_not_count():
    """The kernel reports a lost write once. A second sync succeeds although the write is lost."""
    disk = CrashDisk()
    _directory, log = rolled(disk)
    first, second = log.sync_job(), log.whole_sync_job()
    disk.fail("sync", error=5)
    with pytest.raises(StorageFailure) as failed:
        first.run()
    second.run()
    first.failed(failed.value)
    second.finish()
    assert log.recovery_point == 0
