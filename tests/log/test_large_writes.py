"""Large batches that are written beside the loop: order, failures, and what waits for them."""

from __future__ import annotations

import random

import pytest

from pykafkad.errors import StorageFailure
from tests.log.manual_writer import end_turn, manual_writer
from tests.log.settings import NOW_MS, batch, content, open_directory, open_log

SMALL, LARGE = 100, 40_000


@pytest.fixture
def writer(log):
    """A writer for batches of 30 000 bytes and more."""
    log.writer = manual_writer(30_000)
    return log.writer


def appended(log, *sizes):
    """Append one batch of one record of each size, as at the end of a turn."""
    for size in sizes:
        log.append(batch(1, size), NOW_MS)
    end_turn(log)


def end_writes(writer, count=1 << 30):
    """Let writes end, and the loop hear of it."""
    writer.writes.work(count)
    writer.collect()


def test_a_large_batch_counts_as_written_when_its_write_has_ended(log, writer):
    appended(log, LARGE)
    assert (log.end_offset, log.written_end_offset, log._active.file.size()) == (1, 0, 0)
    assert log.advance_high_watermark(1) == 0
    writer.writes.work()
    assert log.written_end_offset == 0, "the loop has not heard of it"
    writer.collect()
    assert (log.written_end_offset, log._active.written_size) == (1, log._active.size)
    assert not log.writes_under_way and not writer.bytes_under_way


def test_later_appends_stand_behind_a_write_under_way(log, writer):
    appended(log, SMALL, LARGE, SMALL)
    appended(log, SMALL)
    assert log.written_end_offset == 0
    end_writes(writer)
    assert log.written_end_offset == 2, "what was gathered behind it is written in this turn"
    end_turn(log)
    assert log.written_end_offset == log.end_offset == 4
    assert [header.base_offset for header, _ in content(log)] == [0, 1, 2, 3]


def test_small_batches_behind_a_write_under_way_do_not_wait_in_more_than_one_buffer(log, writer):
    """A full gather buffer becomes a write of its own."""
    appended(log, LARGE, *[15_000] * 9)
    assert len(log.writes_under_way) == 3 and log.written_end_offset == 0
    end_writes(writer)
    end_turn(log)
    assert len(content(log)) == 10


def test_other_logs_are_not_behind_it(directory, log, writer):
    other = open_log(directory, partition=1)
    other.writer = writer
    appended(log, LARGE)
    appended(other, SMALL)
    assert (log.written_end_offset, other.written_end_offset) == (0, 1)


@pytest.mark.parametrize(
    "act",
    [
        lambda log: log.roll(NOW_MS),
        lambda log: log.settle(),
        lambda log: log.flush(),
        lambda log: log.write_pending(),
        lambda log: log.max_timestamp_offset(),
    ],
    ids=["roll", "settle", "flush", "write", "the largest timestamp"],
)
def test_whoever_needs_the_whole_log_in_its_file_waits(directory, act):
    log = open_log(directory, max_message_bytes=1 << 22)
    log.writer = manual_writer(30_000)
    appended(log, SMALL, LARGE, SMALL)
    act(log)
    assert not log.writes_under_way and log.written_end_offset == log.end_offset >= 3
    assert [header.base_offset for header, _ in content(log)] == list(range(log.end_offset))


def test_nobody_reads_or_finds_what_is_under_way(log, writer):
    for number in range(4):
        log.append(batch(1, SMALL if number < 2 else LARGE, timestamp_ms=NOW_MS + number), NOW_MS)
        end_turn(log)
    writer.writes.work(1)
    assert (log.end_offset, log.written_end_offset) == (4, 2)
    assert log.read(2, 1 << 20, end_offset=4) is None and log.read(3, 1 << 20, end_offset=4) is None
    assert len(log.read(0, 1 << 20, end_offset=4).pread()) == log._active.written_size
    assert log.offset_for_timestamp(NOW_MS + 1)[0] == 1 and log.offset_for_timestamp(NOW_MS + 2) is None
    assert log.advance_high_watermark(4) == 2 and log.last_stable_offset == 2
    assert log.whole_sync_job().end_offset == 2 and log.writes_under_way
    end_writes(writer)
    assert log.offset_for_timestamp(NOW_MS + 2)[0] == 2 and log.read(3, 1 << 20, end_offset=4) is not None


@pytest.mark.parametrize("begun", [0, 1, 2])
def test_a_close_waits_and_what_was_under_way_is_there_at_the_next_start(disk, directory, log, writer, begun):
    appended(log, LARGE)
    appended(log, LARGE)
    writer.writes.work(begun)
    log.close()
    assert not writer.bytes_under_way
    disk.kill()
    assert len(content(open_log(open_directory(disk=disk)))) == 2


def test_a_deletion_waits_for_what_is_under_way(directory, log, writer):
    appended(log, LARGE)
    directory.delete_partition(log.topic, log.partition)
    assert log.closed and not writer.bytes_under_way and not writer.writes.work()


def test_a_sync_covers_what_is_written_and_no_more(log, writer):
    appended(log, SMALL)
    appended(log, LARGE)
    job = log.whole_sync_job()
    job.run()
    end_writes(writer)
    job.finish()
    assert (log.written_end_offset, log.recovery_point) == (2, 1)


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_a_failed_write_takes_those_behind_it_along(disk, log, writer, fails_at):
    """A file has no holes: nothing behind the failed write reaches it."""
    for _ in range(3):
        appended(log, LARGE)
    appended(log, SMALL)
    disk.fail("write", at=fails_at, part=1000)
    writer.writes.work()
    assert log._active.file.size() < fails_at * LARGE
    writer.collect()
    assert isinstance(log.offline, StorageFailure)
    assert log.end_offset == log.written_end_offset == fails_at - 1
    assert log._active.file.size() == log._active.size == log._active.written_size
    assert not log.writes_under_way and not writer.bytes_under_way
    with pytest.raises(StorageFailure):
        log.append(batch(1, LARGE), NOW_MS)
    disk.heal()
    disk.kill()
    assert len(content(open_log(open_directory(disk=disk)))) == fails_at - 1


def test_a_log_that_fails_otherwise_waits_for_what_is_under_way_before_it_is_cut(log, writer):
    """Else a late write would stand behind the cut."""
    appended(log, LARGE)
    log.fail(StorageFailure("sync", "t-0", "broken"))
    assert not writer.bytes_under_way and log._active.file.size() == 0 and log.end_offset == 0


def test_a_bug_in_a_write_takes_the_log_out_of_service(log, writer):
    appended(log, LARGE)
    log.writes_under_way[0].pieces = [None]
    end_writes(writer)
    assert isinstance(log.offline, StorageFailure)


def test_the_bytes_under_way_are_bounded(log):
    """Above the second bound the loop waits for the oldest write."""
    told = []
    writer = log.writer = manual_writer(30_000, limit_bytes=25_000, told=told)
    for number in range(10):
        appended(log, LARGE)
        assert writer.bytes_under_way <= 100_000
        assert log.end_offset - log.written_end_offset == min(number + 1, 2)
    assert told == [log] * 8


def test_an_append_fails_if_the_log_fails_while_it_waits_for_room(disk, log):
    log.writer = manual_writer(30_000, limit_bytes=12_500)
    appended(log, LARGE)
    disk.fail("write")
    with pytest.raises(StorageFailure):
        log.append(batch(1, LARGE), NOW_MS)
    assert log.offline is not None and log.end_offset == 0 and log._active.size == 0


def test_no_buffer_is_used_again_while_it_is_written(directory, log, writer):
    """The bytes of the next frame do not change what is under way."""
    chance = random.Random(5)
    logs = [log, open_log(directory, partition=1)]
    logs[1].writer = writer
    sent = {each: [] for each in logs}
    frame = bytearray(200_000)
    for _ in range(200):
        each = chance.choice(logs)
        made = batch(1, chance.choice((SMALL, LARGE, 150_000)), timestamp_ms=NOW_MS + chance.randrange(1000))
        view = memoryview(frame)[: len(made)]
        view[:] = made
        each.append(view, NOW_MS)
        sent[each].append(bytes(view[61:]))
        # The next request is received into the same buffer.
        frame[:] = bytes([chance.randrange(256)]) * len(frame)
        if chance.random() < 0.3:
            end_writes(writer, chance.randrange(3))
        if chance.random() < 0.5:
            end_turn(each)
    for each in logs:
        each.write_pending()
        found = each.read(0, 1 << 30, end_offset=each.end_offset).pread()
        position = 0
        for payload in sent[each]:
            size = int.from_bytes(found[position + 8 : position + 12], "big") + 12
            assert found[position + 61 : position + size] == payload
            position += size
        assert position == len(found)
