"""What a power loss may take, one case at a time: each was found by the crash machine."""

from __future__ import annotations

import random

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log.time_index import TimeIndex
from tests.log.settings import NOW_MS, append, batch, content, offsets_of, open_directory, open_log
from tests.simulation.crash_disk import CrashDisk

SMALL = {"segment_bytes": 300, "index_interval_bytes": 4096}
SEGMENT = "/data/t-0/{:020d}{}"


def restarted(disk, **changes):
    """The log as the next broker finds it."""
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


def test_a_segment_that_lost_its_end_at_a_batch_ends_the_log():
    """No batch is broken, but offsets are missing before the next segment: what follows was never a part of this log."""
    disk = CrashDisk()
    rolled(disk)
    del disk.files[SEGMENT.format(3, ".log")].data[:]
    _, log = restarted(disk)
    assert (log.end_offset, [segment.base_offset for segment in log.segments]) == (3, [0, 3])
    assert append(log, batch()) == [3]
    assert [header.base_offset for header, _ in content(log)] == [0, 3]


def test_offsets_that_compaction_left_out_end_nothing():
    """On a compacted topic, and on one that was."""
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


def test_segments_behind_a_cut_do_not_come_back():
    """A power loss right after a recovery finds what that left."""
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


def test_a_producer_snapshot_of_what_was_lost_does_not_come_back():
    """At its offset other batches may be by then."""
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


def test_an_epoch_file_of_what_was_lost_gives_way_to_the_batches():
    """The epoch began later in the life that was lost than in this one."""
    disk = CrashDisk()
    _, log = rolled(disk)
    log.lead(3, sole_replica=True)
    append(log, batch(3, 60))
    disk.write("/data/t-0/leader-epoch-checkpoint", b"0\n2\n0 0\n3 14\n")
    _, log = restarted(disk)
    assert log.epochs.entries == [(0, 0), (3, 12)]


def test_an_epoch_file_torn_in_its_last_number_is_lost():
    """It would read as an epoch that began at 1, not at 12."""
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


def test_epochs_before_the_recovery_point_are_on_the_device():
    """Nobody reads those batches again, so nobody could tell."""
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


def test_a_sync_takes_the_epochs_along():
    """Whichever file system orders its names: the file and its name are on the device before the recovery point moves."""
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


def test_an_epoch_file_that_is_empty_is_lost():
    """A power loss leaves the name and no content: all batches are asked, not only those behind the recovery point."""
    disk = CrashDisk()
    directory, log = rolled(disk)
    log.flush()
    directory.checkpoint()
    disk.files["/data/t-0/leader-epoch-checkpoint"].data.clear()
    _, log = restarted(disk)
    assert log.epochs.entries == [(0, 0)]


def test_the_clean_marker_does_not_come_back():
    """Under it nothing would be checked of what was written since."""
    disk = CrashDisk()
    directory = open_directory(disk=disk)
    append(open_log(directory), batch())
    directory.close()
    open_directory(disk=disk)
    disk.lose_power(random.Random(1))
    assert not open_directory(disk=disk).clean


def test_indexes_of_what_was_synced_are_on_the_device():
    """Look-ups by time pass over a segment whose time index is empty."""
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
    """Nobody looks at them again but where they are used."""
    disk = CrashDisk()
    directory, log = rolled(disk)
    append(log, batch(3, 60), batch(3, 60))
    log.flush()
    append(log, batch(1, 20))
    directory.close()
    last = max(path for path in disk.files if path.endswith(".log")).removesuffix(".log")
    for suffix in (".log", ".index", ".timeindex"):
        assert disk.files[last + suffix].synced == disk.files[last + suffix].data


def test_indexes_that_are_made_anew_of_what_was_synced_are_on_the_device():
    """A recovery of the whole log, for want of its epochs, writes those of segments that no later sync comes to."""
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


def test_a_roll_behind_a_sync_is_synced_too():
    """The next sync begins where the last one ended, which is where the new segment begins."""
    disk = CrashDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory)
    append(log, batch(3, 60, producer_id=7, producer_epoch=0, base_sequence=0))
    log.flush()
    log.roll(NOW_MS)
    for suffix in (".index", ".timeindex"):
        file = disk.files[SEGMENT.format(0, suffix)]
        assert file.synced == file.data
    file = disk.files[SEGMENT.format(3, ".snapshot")]
    assert file.synced == file.data


def test_what_retention_could_not_rename_takes_the_log_out_of_service():
    """It comes back at the next start, unsynced as it may be: nothing can be promised behind it."""
    disk = CrashDisk()
    _, log = rolled(disk)
    log.delete_records(9)
    disk.fail("rename")
    with pytest.raises(StorageFailure):
        log.run_retention(NOW_MS)
    assert log.offline is not None


def test_a_time_index_that_is_torn_is_made_anew():
    """Whoever asks for the largest timestamp of a sealed segment reads its last entry alone."""
    disk = CrashDisk()
    directory, _ = rolled(disk)
    directory.close()
    disk.files[SEGMENT.format(0, ".timeindex")].data[-5:] = b""
    _, log = restarted(disk)
    assert log.offset_for_timestamp(NOW_MS)[0] == 0


def test_a_segment_that_was_recovered_and_appended_to_is_sealed_with_its_last_timestamp():
    """No crash behind it: a restart, a batch without an index entry, a roll, a restart."""
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


def test_a_clean_marker_over_zeros_is_not_believed():
    """Indexes are missing and the log ends in zeros: it is recovered after all."""
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


def test_a_snapshot_from_before_the_first_segment_is_not_believed():
    """The batches between it and the first segment are gone, and with them what became of its producers."""
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


def test_producer_snapshots_of_what_was_synced_are_on_the_device():
    """After a power loss a repetition of what was synced is still one."""
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


def test_a_file_that_retention_renames_while_a_sync_runs_fails_nothing():
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
    """A disk that brings names to the device when their directory is synced, and not before."""
    disk = CrashDisk()
    disk.names_apart = True
    return disk


def sealed_sync(directory, log):
    """The sync of what rolled, as the offload runs it."""
    (job,) = directory.sync_jobs()
    job.run()
    job.finish()
    assert log.recovery_point == log.segments[-1].base_offset


def whole_sync(directory, log):
    log.flush()


@pytest.mark.parametrize("sync", [whole_sync, sealed_sync])
@pytest.mark.parametrize("lives", [1, 2], ids=["new", "after a kill"])
def test_the_names_of_what_is_synced_are_on_the_device(sync, lives):
    """Of the data directory, the partition's folder, the segments, their indexes; also of those of a life that came to
    sync nothing."""
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


def test_names_are_synced_once(monkeypatch):
    """With the first sync after a file came."""
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


def test_names_whose_sync_fails_take_the_log_out_of_service(monkeypatch):
    """As any other sync: nothing counts as done. The folder of a deleted topic is no failure."""
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


def test_a_sync_that_ends_after_one_that_failed_is_none():
    """The kernel tells of a lost write once; the second sync says that all is well."""
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


@pytest.mark.parametrize("broken", [0, 9])
def test_segments_below_the_start_that_come_back_broken_move_nothing(broken):
    """Retention took all of them, and the recovery point along; the segment behind them and the new names are lost."""
    disk = CrashDisk()
    directory, log = rolled(disk)
    log.roll(NOW_MS)
    log.delete_records(12)
    log.run_retention(NOW_MS)
    directory.checkpoint()
    assert log.recovery_point == log.log_start_offset == 12
    for path in [path for path in disk.files if path.endswith(".deleted")]:
        disk.files[path.removesuffix(".deleted")] = disk.files.pop(path)
    del disk.files[SEGMENT.format(12, ".log")]
    disk.files[SEGMENT.format(broken, ".log")].data[70:] = bytes(10)
    for _ in range(2):
        directory, log = restarted(disk)
        assert (log.log_start_offset, log.end_offset) == (12, 12)
        directory.checkpoint()
    assert append(log, batch()) == [12]
