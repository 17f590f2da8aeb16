"""A follower's log: batches that are taken as they are, and cuts that leave no trace of what was cut."""

import random

import pytest

from pykafkad.clock import ManualClock
from pykafkad.errors import StorageFailure
from pykafkad.log import follower_log
from pykafkad.log.checkpoints import HIGH_WATERMARK_FILE, decode_offsets, encode_offsets
from pykafkad.log.follower import Question, whole_batches
from pykafkad.log.partition_log import COORDINATOR
from pykafkad.log.reopening import ReopenJob, can_reopen
from tests.log.settings import NOW_MS, TOPIC_ID, append, batch, content, open_directory, open_log, topic_settings
from tests.simulation.crash_disk import CrashDisk
from tests.simulation.disk import MemoryDisk


def leader(directory, epochs, topic="led", **changes):
    """A leader's log with some batches in each epoch."""
    log = open_log(directory, topic, **changes)
    for epoch, count in epochs:
        log.lead(epoch, sole_replica=True)
        append(log, *(batch(2) for _ in range(count)))
    return log


def copy(source, log, *, offset=None, max_bytes=1 << 20, epoch=1 << 30):
    """Let `log` follow `source` to its end."""
    offset = log.end_offset if offset is None else offset
    while offset < source.end_offset:
        data = source.read(offset, max_bytes, end_offset=source.written_end_offset).pread()
        headers, size = whole_batches(data, Question(epoch, offset, -1), log.epochs.latest)
        follower_log.append(log, data[:size], headers, NOW_MS)
        offset = log.end_offset
    log.advance_high_watermark(source.high_watermark)


def following(directory, topic="t", **changes):
    log = open_log(directory, topic, **changes)
    log.follow()
    log.epochs.entries.clear()
    return log


def state(log):
    """What must be equal on leader and follower."""
    return (
        content(log),
        log.epochs.entries,
        dict(log.producers),
        log.producers.ongoing,
        log.max_timestamp_offset(),
        log.end_offset,
    )


SMALL = {"segment_bytes": 300, "index_interval_bytes": 100}


@pytest.mark.parametrize("changes", [{}, SMALL])
@pytest.mark.parametrize("max_bytes", [1, 200, 1 << 20])
def test_a_copy_equals_its_leader(directory, changes, max_bytes):
    source = leader(directory, [(1, 3), (4, 5), (5, 2)], **changes)
    log = following(directory, **changes)
    copy(source, log, max_bytes=max_bytes)
    assert state(log) == state(source)
    assert len(log.segments) == len(source.segments)
    for offset in range(source.end_offset):
        read = [each.read(offset, 1, end_offset=each.end_offset).pread() for each in (log, source)]
        assert read[0] == read[1]


def transactions(log):
    for producer, is_abort in ((7, True), (8, False), (9, None)):
        log.append(batch(producer_id=producer, producer_epoch=0, base_sequence=0, is_transactional=True), NOW_MS, 9,
                   COORDINATOR)  # fmt: skip
        if is_abort is not None:
            log.append_end_marker(producer, 0, 3, NOW_MS, is_abort=is_abort)
    append(log, batch(producer_id=1, producer_epoch=0, base_sequence=0))


@pytest.mark.parametrize("changes", [{}, SMALL])
def test_producers_and_transactions_are_kept(directory, changes):
    source = leader(directory, [(1, 1)], **changes)
    transactions(source)
    log = following(directory, **changes)
    copy(source, log)
    assert state(log) == state(source) and log.has_aborted
    assert log.last_stable_offset == source.last_stable_offset < log.end_offset
    for offset in range(source.last_stable_offset):
        found = [
            each.aborted_transactions(offset, each.read(offset, 1 << 20, end_offset=each.last_stable_offset))
            for each in (log, source)
        ]
        assert list(found[0]) == list(found[1])


@pytest.mark.parametrize("changes", [{}, SMALL])
@pytest.mark.parametrize("is_reloaded", [False, True])
def test_a_log_that_is_cut_equals_one_that_never_had_more(disk, changes, is_reloaded):
    """At every batch, whatever lies in the segments behind it."""
    directory = open_directory(disk=disk)
    source = leader(directory, [(1, 3), (4, 3)], **changes)
    transactions(source)
    ends = [header.end_offset for header, _ in content(source)]
    for end in [0, *ends]:
        log, short = following(directory, f"t{end}", **changes), following(directory, f"s{end}", **changes)
        copy(source, log)
        if is_reloaded:
            log.settle()
            log.unload()
        assert follower_log.truncate(log, end, NOW_MS).end_offset == end
        for header, _ in content(source):
            if header.end_offset <= end:
                offset = header.base_offset
                data = source.read(offset, 1, end_offset=source.written_end_offset).pread()
                follower_log.append(short, data, [header], NOW_MS)
        short.advance_high_watermark(end)
        assert content(log) == content(short) and log.end_offset == end
        assert log.epochs.entries == short.epochs.entries
        assert log.producers.ongoing == short.producers.ongoing
        assert {key: entry.next_sequence for key, entry in log.producers.items()} == {
            key: entry.next_sequence for key, entry in short.producers.items()
        }
        assert log.max_timestamp_offset() == short.max_timestamp_offset()
        assert log.high_watermark == end and log.recovery_point <= end
        copy(source, log)
        assert content(log) == content(source)


def test_a_cut_at_the_end_forgets_epochs_without_records(directory):
    log = leader(directory, [(1, 2)])
    log.lead(3, sole_replica=True)
    assert log.epochs.entries[-1] == (3, 4)
    log.follow()
    assert follower_log.truncate(log, 4, NOW_MS) == (4, None)
    assert log.epochs.entries == [(1, 0)]


def test_a_cut_within_a_batch_takes_the_whole_batch(directory):
    log = leader(directory, [(1, 3)])
    assert follower_log.truncate(log, 3, NOW_MS).end_offset == 2
    assert log.end_offset == 2


def test_a_log_begins_anew_behind_its_end(directory):
    source = leader(directory, [(1, 6)])
    log = following(directory, **SMALL)
    copy(source, log)
    follower_log.begin_at(log, 50, NOW_MS)
    assert (log.log_start_offset, log.end_offset, log.high_watermark, log.recovery_point) == (50, 50, 50, 50)
    assert (log.epochs.entries, dict(log.producers), len(log.segments)) == ([], {}, 1)
    names = [name for name in log.disk.listdir(log.directory) if name.endswith(".log")]
    assert names == [f"{50:020}.log"]


def test_an_empty_log_may_begin_within_the_leaders_batch(directory):
    source = leader(directory, [(1, 3)])
    source.delete_records(3)
    log = following(directory)
    follower_log.begin_at(log, 3, NOW_MS)
    copy(source, log)
    assert (log.log_start_offset, log.end_offset) == (3, 6)
    assert log.read(3, 1, end_offset=6).pread() == source.read(3, 1, end_offset=6).pread()


def test_a_sync_that_was_begun_before_a_cut_says_nothing(directory):
    source = leader(directory, [(1, 6)])
    log = following(directory)
    copy(source, log)
    job = log.whole_sync_job()
    job.run()
    follower_log.truncate(log, 4, NOW_MS)
    copy(source, log)
    job.finish()
    assert log.recovery_point <= 4


@pytest.mark.parametrize("operation", ["write", "truncate"])
def test_a_disk_that_fails_takes_the_log_out_of_service(operation):
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    source = leader(directory, [(1, 4)])
    log = following(directory)
    copy(source, log)
    append(source, batch())
    disk.fail(operation)
    with pytest.raises(StorageFailure):
        if operation == "write":
            copy(source, log)
        else:
            follower_log.truncate(log, 2, NOW_MS)
    assert log.offline is not None
    with pytest.raises(StorageFailure):
        follower_log.truncate(log, 0, NOW_MS)


@pytest.mark.parametrize("seed", range(60))
def test_no_old_batch_follows_a_new_one_after_a_loss_of_power(seed):
    """A follower is cut, follows another leader, and the machine loses power: what is left is a part of one history."""
    chance = random.Random(seed)
    disk, clock = CrashDisk(), ManualClock()
    disk.names_apart = seed % 2 == 1
    others = open_directory(disk=MemoryDisk())
    old = leader(others, [(1, 2), (2, 6)], "old")
    new = leader(others, [(1, 2), (3, 6)], "new")
    directory = open_directory(disk=disk, clock=clock)
    log = following(directory, **chance.choice([{}, SMALL]))
    copy(old, log)
    if chance.random() < 0.5:
        log.flush()
        directory.checkpoint()
    cut = chance.choice([4, 6, 8])
    name = directory.offsets.prepare_cut(log, cut)
    disk.sync_directory(directory.path)
    made = follower_log.truncate(log, cut, clock.now_ms())
    directory.offsets.cut_made(log, name)
    if chance.random() < 0.7:
        # Otherwise the power is lost before the cut is on the device, and nothing is appended before that.
        if made.sync is not None:
            made.sync()
        if cut == 4:
            copy(new, log, offset=4)
    disk.kill()
    disk.lose_power(chance)
    again = open_directory(disk=disk, clock=clock)
    log = open_log(again, **SMALL) if len(log.segments) > 1 else open_log(again)
    found = [header[:3] for header, _ in content(log)]
    histories = [[header[:3] for header, _ in content(each)] for each in (old, new)]
    assert any(found == history[: len(found)] for history in histories)


@pytest.mark.parametrize("seed", range(30))
def test_a_log_that_began_within_a_batch_survives_a_loss_of_power(seed):
    """Its only segment got another name, which was not synced: both names may be there, or either."""
    chance = random.Random(seed)
    disk, clock = CrashDisk(), ManualClock()
    source = leader(open_directory(disk=MemoryDisk()), [(1, 3)])
    source.delete_records(3)
    directory = open_directory(disk=disk, clock=clock)
    log = following(directory)
    follower_log.begin_at(log, 3, clock.now_ms()).sync()
    copy(source, log)
    if chance.random() < 0.5:
        log.flush()
        directory.checkpoint()
    disk.kill()
    disk.lose_power(chance)
    log = open_log(open_directory(disk=disk, clock=clock))
    history = [header[:3] for header, _ in content(source)]
    found = [header[:3] for header, _ in content(log)]
    assert found in [history[at:to] for at in range(len(history) + 1) for to in range(at, len(history) + 1)]
    assert log.end_offset in (0, 2, 3, 4, 6)


class SharingDisk(MemoryDisk):
    """A disk whose log files a snapshot has, too, until they are replaced."""

    shared = ()

    def is_shared(self, path):
        return path in self.shared

    def rename(self, source, target):
        super().rename(source, target)
        self.shared = [each for each in self.shared if each != target]


def test_a_shared_file_is_copied_before_the_cut():
    directory = open_directory(disk=SharingDisk())
    source = leader(directory, [(1, 6)])
    log = following(directory)
    copy(source, log)
    log.flush()
    disk = directory.disk
    assert follower_log.prepare(log, 4) is None and follower_log.prepare(log, log.end_offset) is None
    disk.shared = [f"{log.segments[0].prefix}.log"]
    before = content(log)
    follower_log.prepare(log, 4)()
    # What is copied already is not copied again by the loop.
    disk.calls.clear()
    assert follower_log.truncate(log, 4, NOW_MS).end_offset == 4
    assert disk.calls.get("sync") is None and content(log) == before[:2]
    assert not [name for name in disk.listdir(log.directory) if name.endswith(".cleaned")]


def uncommitted(log, source, offset):
    """Two batches that the log gets, and that nobody knows to be committed."""
    high_watermark = log.high_watermark
    copy(source, log, offset=offset)
    log.high_watermark = high_watermark


def opened_again(disk, partitions=(0,)):
    """The directory after a kill, and its first log."""
    disk.kill()
    directory = open_directory(disk=disk)
    logs = [directory.open_partition("t", each, TOPIC_ID, topic_settings()) for each in partitions]
    directory.offsets.correct()
    return directory, logs[0]


@pytest.mark.parametrize("names_apart", [False, True])
def test_what_is_appended_after_a_loss_of_power_is_not_committed_by_an_old_checkpoint(names_apart):
    """The high watermark was checkpointed, and what is below it was on no device; perhaps not even the file's name."""
    ends = set()
    for seed in range(12):
        disk = CrashDisk()
        disk.names_apart = names_apart
        source = leader(open_directory(disk=MemoryDisk()), [(1, 5)])
        directory = open_directory(disk=disk)
        log = following(directory)
        copy(source, log)
        directory.checkpoint()
        disk.kill()
        disk.lose_power(random.Random(seed))
        directory, log = opened_again(disk)
        end = log.end_offset
        ends.add(end)
        uncommitted(log, source, end)
        _, log = opened_again(disk)
        assert log.end_offset == source.end_offset and log.high_watermark == end
    assert 0 in ends and len(ends) > 2


@pytest.mark.parametrize("lost", [0, 1])
def test_one_of_two_logs_lost_what_was_committed(lost):
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    for partition in (0, 1):
        append(open_log(directory, partition=partition), batch(2))
    directory.checkpoint()
    disk.kill()
    disk.write(f"/data/{HIGH_WATERMARK_FILE}", encode_offsets({("t", 0): 2, ("t", 1): 2, ("t", lost): 50}))
    opened_again(disk, partitions=(0, 1))
    assert decode_offsets(disk.read(f"/data/{HIGH_WATERMARK_FILE}")) == {("t", 0): 2, ("t", 1): 2}


@pytest.mark.parametrize("is_noted", [False, True])
def test_what_is_appended_after_a_cut_is_not_committed_by_an_old_checkpoint(is_noted):
    """A leader that was elected although others had more has a follower cut what it knew to be committed. The next
    checkpoint may have been begun before that: it notes logs in several turns."""
    disk = MemoryDisk()
    source = leader(open_directory(disk=MemoryDisk()), [(1, 5)])
    directory = open_directory(disk=disk)
    log = following(directory)
    copy(source, log)
    directory.checkpoint()
    assert log.recovery_point < 4 < log.high_watermark
    name = directory.offsets.prepare_cut(log, 4)
    follower_log.truncate(log, 4, NOW_MS)
    directory.offsets.cut_made(log, name)
    if is_noted:
        job = directory.checkpoint_job()
        job.run()
        job.finish()
        job.sync_names()
    uncommitted(log, source, 4)
    _, log = opened_again(disk)
    assert log.end_offset == source.end_offset and log.high_watermark <= 4


NO_SPACE = [("write", 1), ("write", 2), ("open", 1), ("truncate", 1)]


def not_recovered(operation, at):
    """A log that lost records with a power loss, and could not be recovered at the start for lack of space."""
    disk = CrashDisk()
    source = leader(open_directory(disk=MemoryDisk()), [(1, 5)])
    directory = open_directory(disk=disk)
    log = following(directory)
    log.flush()
    copy(source, log)
    directory.checkpoint()
    disk.kill()
    disk.lose_power(random.Random(3))
    directory = open_directory(disk=disk)
    disk.fail(operation, at=at)
    log = directory.open_partition("t", 0, TOPIC_ID, topic_settings())
    disk.heal()
    directory.offsets.correct()
    assert can_reopen(log)
    return disk, source, directory, log


def reopened(directory, log):
    """The log is back; also a checkpoint that was begun a moment before."""
    job = ReopenJob(log, NOW_MS, directory.offsets)
    job.run()
    checkpoint = directory.checkpoint_job()
    job.finish()
    return checkpoint


@pytest.mark.parametrize("is_checkpointed", [False, True])
@pytest.mark.parametrize("lost_bytes", [0, 30])
@pytest.mark.parametrize(("operation", "at"), NO_SPACE)
def test_what_a_log_gets_that_was_recovered_late_is_not_committed(operation, at, lost_bytes, is_checkpointed):
    """It may have less than at the first try. A checkpoint that was begun before it is back says what the old one
    says, and does not count."""
    disk, source, directory, log = not_recovered(operation, at)
    file = disk.files["/data/t-0/00000000000000000000.log"]
    del file.data[len(file.data) - lost_bytes :]
    job = reopened(directory, log)
    # A clean stop must not say that a log is whole that nobody has recovered.
    assert log.is_loaded
    end = log.end_offset
    assert end < source.end_offset
    if is_checkpointed:
        job.run()
        job.finish()
        job.sync_names()
    uncommitted(log, source, end)
    _, log = opened_again(disk)
    assert log.end_offset == source.end_offset and log.high_watermark <= end


@pytest.mark.parametrize("seed", range(12))
def test_a_loss_of_power_forgets_no_late_recovery(seed):
    disk, source, directory, log = not_recovered("write", 1)
    disk.names_apart = True
    reopened(directory, log)
    end = log.end_offset
    uncommitted(log, source, end)
    log.flush()
    disk.kill()
    disk.lose_power(random.Random(seed))
    _, log = opened_again(disk)
    assert log.end_offset == source.end_offset and log.high_watermark <= end


@pytest.mark.parametrize(("operation", "at"), NO_SPACE)
def test_a_late_recovery_that_fails_or_is_cut_short_changes_nothing(operation, at):
    disk, source, directory, log = not_recovered("write", 1)
    job = ReopenJob(log, NOW_MS, directory.offsets)
    disk.fail(operation, at=at)
    try:
        job.run()
    except StorageFailure:
        disk.heal()
        job.give_up()
        directory.checkpoint()
        assert not [name for name in disk.listdir("/data") if name.endswith(".tmp")]
    assert log.offline is not None and not log.is_loaded
    _, log = opened_again(disk)
    end = log.end_offset
    uncommitted(log, source, end)
    _, log = opened_again(disk)
    assert log.end_offset == source.end_offset and log.high_watermark <= end < source.end_offset
