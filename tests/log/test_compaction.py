"""Compaction of one log: which records and batches stay."""

from __future__ import annotations

import random

import pytest

from pykafkad.log import compaction
from pykafkad.log.cleaner import LogCleaner
from tests.log.cleaning import COMPACT, change_settings, clean, compacted, keyed, left, roll
from tests.log.settings import NOW_MS, append, batches_of, content, open_directory, open_log
from tests.simulation.disk import MemoryDisk


def test_the_newest_record_of_each_key_stays_at_its_offset(directory):
    log = compacted(directory)
    append(log, keyed(("a", "1"), ("b", "1"), ("a", "2")), keyed(("c", "1"), ("b", "2")))
    roll(log)
    append(log, keyed(("a", "9")))
    clean(log)
    assert left(log) == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2"), (5, "a", "9")], (
        "the active segment is not looked at"
    )
    assert log.end_offset == 6
    assert append(log, keyed(("d", "1"))) == [6]


def test_a_batch_keeps_its_first_and_last_offset_and_its_sequences(directory):
    """Its producer may continue or repeat its last batch."""
    log = compacted(directory)
    append(log, keyed(("a", "1"), ("b", "1"), ("c", "1"), producer_id=1, producer_epoch=0, base_sequence=0))
    append(log, keyed(("a", "2"), ("c", "2"), ("d", "1"), producer_id=1, producer_epoch=0, base_sequence=3))
    roll(log)
    clean(log)
    first, second = (header for header, _ in content(log))
    assert (first.base_offset, first.last_offset, first.record_count, first.base_sequence, first.last_sequence) == (
        0,
        2,
        1,
        0,
        2,
    )
    assert (second.base_offset, second.last_offset, second.record_count) == (3, 5, 3)
    assert left(log) == [(1, "b", "1"), (3, "a", "2"), (4, "c", "2"), (5, "d", "1")]


@pytest.mark.parametrize("codec", range(5))
def test_unchanged_batches_are_copied_and_others_are_compressed_again_in_their_codec(directory, codec):
    log = compacted(directory)
    append(log, keyed(*((f"a{number}", "x" * 50) for number in range(100)), codec=codec))
    append(log, keyed(*((f"a{number}", "y" * 50) for number in range(0, 100, 2)), codec=codec))
    before = content(log)
    raw = log.read(100, 1 << 20, end_offset=150).pread()
    roll(log)
    clean(log)
    assert log.read(100, 1 << 20, end_offset=150).pread() == raw
    headers = [header for header, _ in content(log)]
    assert [header.codec for header in headers] == [codec, codec]
    assert headers[0].record_count == 50
    assert [record for _, records in content(log) for record in records] == [*before[0][1][1::2], *before[1][1]]


def test_records_without_a_key_are_removed(directory):
    log = open_log(directory)
    append(log, keyed((None, "1"), ("a", "1")))
    roll(log)
    change_settings(log, cleanup_policy=COMPACT, min_cleanable_dirty_ratio=0.0)
    clean(log)
    assert left(log) == [(1, "a", "1")]


def test_the_largest_timestamp_of_a_batch_is_that_of_the_remaining_records(directory):
    log = compacted(directory)
    log.append(memoryview(keyed(("a", "1"))), NOW_MS)
    from pykafkad.wire.batch import build_batch

    records = [(b"b", b"1", (), NOW_MS + 50), (b"c", b"1", (), NOW_MS + 20), (b"d", b"1", (), NOW_MS - 5)]
    append(log, memoryview(build_batch(records)), keyed(("b", "2"), ("a", "2")))
    roll(log)
    clean(log)
    header, kept = content(log)[0]
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (NOW_MS + 50, NOW_MS + 20)
    assert [(record.key, record.timestamp_ms) for record in kept] == [(b"c", NOW_MS + 20), (b"d", NOW_MS - 5)]


def test_tombstones_get_a_delete_horizon_and_are_removed_after_it(directory):
    """KIP-534: the first pass writes the horizon, a later one removes the tombstone."""
    log = compacted(directory, delete_retention_ms=1000)
    cleaner = LogCleaner(log.segments[0].disk)
    append(
        log,
        keyed(("a", "1"), ("b", "1"), timestamp_ms=NOW_MS - 7),
        keyed(("a", None), ("c", "1"), timestamp_ms=NOW_MS - 7),
    )
    roll(log)
    clean(log, cleaner)
    header, records = content(log)[1]
    assert (header.attributes, header.base_timestamp_ms) == (0x40, NOW_MS + 1000)
    assert [(record.key, record.value, record.timestamp_ms) for record in records] == [
        (b"a", None, NOW_MS - 7),
        (b"c", b"1", NOW_MS - 7),
    ]
    for now_ms, keys in ((NOW_MS + 999, ["b", "a", "c", "x"]), (NOW_MS + 1000, ["b", "c", "x"])):
        append(log, keyed(("x", "1")))
        roll(log)
        assert clean(log, cleaner, now_ms=now_ms) is not None
        assert [key for _, key, _ in left(log)] == keys
    assert content(log)[1][0].base_timestamp_ms == NOW_MS + 1000, "the horizon is written once"


def test_a_tombstone_that_a_newer_record_supersedes_is_removed_at_once(directory):
    log = compacted(directory)
    append(log, keyed(("a", None)), keyed(("a", "2")), keyed(("b", "1")))
    roll(log)
    clean(log)
    assert left(log) == [(1, "a", "2"), (2, "b", "1")]


def test_a_batch_without_remaining_records_is_removed_unless_it_is_the_last_of_the_pass(directory):
    """The last batch marks the end of the cleaned part."""
    log = compacted(directory, delete_retention_ms=0)
    cleaner = LogCleaner(log.segments[0].disk)
    append(log, keyed(("a", "1")), keyed(("a", "2")), keyed(("a", None)))
    roll(log)
    clean(log, cleaner)
    append(log, keyed(("b", "1")))
    clean(log, cleaner, now_ms=NOW_MS + 1)
    assert [(header.base_offset, header.record_count) for header, _ in content(log)] == [(2, 1), (3, 1)]
    roll(log)
    clean(log, cleaner, now_ms=NOW_MS + 1)
    assert left(log) == [(3, "b", "1")]
    append(log, keyed(("b", None)))
    roll(log)
    clean(log, cleaner, now_ms=NOW_MS + 1)
    append(log, keyed((("b"), None)))
    roll(log)
    clean(log, cleaner, now_ms=NOW_MS + 2)
    assert [(header.base_offset, header.record_count) for header, _ in content(log)] == [(5, 1)]


def test_the_last_batch_of_a_producer_is_kept_without_records(directory):
    """A restart reads the producer's sequence from it, so the empty batch keeps the header's fields."""
    log = compacted(directory)
    append(
        log,
        keyed(("a", "1"), producer_id=4, producer_epoch=2, base_sequence=0),
        keyed(("a", "2"), ("a", "3"), producer_id=4, producer_epoch=2, base_sequence=1),
        keyed(("a", "4")),
        keyed(("b", "1")),
    )
    before = content(log)[1][0]
    roll(log)
    clean(log)
    (header, records), *_ = content(log)
    assert (header.base_offset, header.last_offset, header.record_count, records) == (1, 2, 0, [])
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence) == (4, 2, 1, 2)
    assert (header.max_timestamp_ms, header.base_timestamp_ms, header.leader_epoch) == (
        before.max_timestamp_ms,
        -1,
        before.leader_epoch,
    )
    states = log.producers
    log.directory and directory.close(clean=False)
    again = compacted(open_directory(disk=directory.disk))
    assert again.producers[4].next_sequence == states[4].next_sequence == 3


def test_expired_producers_keep_no_batch(directory):
    log = compacted(directory)
    append(
        log, keyed(("a", "1"), producer_id=4, producer_epoch=2, base_sequence=0), keyed(("a", "4")), keyed(("b", "1"))
    )
    roll(log)
    log.producers.expire(NOW_MS + 10_000, 1000)
    clean(log)
    assert left(log) == [(1, "a", "4"), (2, "b", "1")]
    assert len(content(log)) == 2


def test_the_last_batch_of_a_pass_is_kept_without_records(directory):
    """It marks the end of the cleaned part."""
    log = open_log(directory)
    append(log, keyed(("a", "1")), keyed((None, "1")), keyed((None, "1")))
    roll(log)
    change_settings(log, cleanup_policy=COMPACT, min_cleanable_dirty_ratio=0.0)
    clean(log)
    assert [(header.base_offset, header.record_count) for header, _ in content(log)] == [(0, 1), (2, 0)]


def transaction(log, producer_id, key, *, abort):
    """One transaction of one batch, whose producer is forgotten at once."""
    log.append(
        keyed((key, "t"), producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True),
        NOW_MS,
        origin="verified client",
    )
    log.append_end_marker(producer_id, 0, 0, NOW_MS, is_abort=abort)
    append(log)
    log.producers.expire(NOW_MS + 10_000, 1000)


def test_aborted_records_are_removed_at_once_and_markers_after_their_delete_horizon(directory):
    """A marker stays while the log has records of its transaction, and delete.retention.ms longer; so does its index
    entry."""
    log = compacted(directory, delete_retention_ms=1000)
    cleaner = LogCleaner(directory.disk)
    append(log, keyed(("a", "1")))
    transaction(log, 5, "a", abort=True)
    transaction(log, 6, "b", abort=False)
    expected = {
        NOW_MS: ([0, 2, 3, 4], {2: 0x30, 4: 0x30}, [(5, 1)]),
        NOW_MS + 1: ([0, 2, 3, 4], {2: 0x70, 4: 0x30}, []),
        NOW_MS + 1000: ([0, 2, 3, 4], {2: 0x70, 4: 0x30}, []),
        NOW_MS + 1001: ([0, 3, 4], {4: 0x30}, []),
    }
    for now_ms, (offsets, markers, aborted) in expected.items():
        append(log, keyed(("x", "1")))
        roll(log)
        assert clean(log, cleaner, now_ms=now_ms) is not None
        headers = [header for header, records in content(log) if not any(record.key == b"x" for record in records)]
        assert [header.base_offset for header in headers] == offsets
        assert {header.base_offset: header.attributes for header in headers if header.is_control} == markers
        assert [
            (each.producer_id, each.first_offset) for segment in log.segments for each in segment.aborted
        ] == aborted
        assert log.has_aborted == bool(aborted)
    assert [key for _, key, value in left(log)[:2]] == ["a", "b"]


def test_a_commit_marker_is_removed_after_the_records_of_its_transaction(directory):
    log = compacted(directory, delete_retention_ms=0)
    cleaner = LogCleaner(directory.disk)
    transaction(log, 6, "b", abort=False)
    append(log, keyed(("b", "2")))
    for _ in range(3):
        append(log, keyed(("x", "1")))
        roll(log)
        clean(log, cleaner)
    assert [(offset, key) for offset, key, _ in left(log)] == [(2, "b"), (5, "x")]
    assert not any(header.is_control for header, _ in content(log))


def test_long_keys_are_compacted_too(directory):
    log = compacted(directory)
    append(log, keyed(("k" * 100, "1"), ("k" * 99 + "l", "1")), keyed(("k" * 100, "2")))
    roll(log)
    clean(log)
    assert [offset for offset, _, _ in left(log)] == [1, 2]


def test_batches_without_a_newest_record_are_removed_unopened(directory, monkeypatch):
    """They become empty if their sequence is needed. Batches in the clean part are opened."""
    log = compacted(directory)
    for number in range(40):
        append(log, keyed(*((f"k{index}", f"{number}") for index in range(20))))
    append(log, keyed(("other", "1")))
    roll(log)
    looked_at = []
    retained = compaction.Retention
    monkeypatch.setattr(
        compaction, "Retention", lambda *args, **options: looked_at.append(args[3]) or retained(*args, **options)
    )
    clean(log)
    assert [key for _, key, _ in left(log)] == [*(f"k{index}" for index in range(20)), "other"]
    # The last block of offsets overlaps the batch before, which is opened for it.
    assert 2 <= len(looked_at) <= 4 and min(looked_at) >= 37 * 20
    append(log, keyed(("k3", "new")))
    roll(log)
    clean(log)
    assert [key for _, key, _ in left(log)] == [*(f"k{index}" for index in range(20) if index != 3), "other", "k3"]


@pytest.mark.parametrize("seed", range(8))
def test_random_runs_agree_with_a_dict(seed):
    """Keys, codecs, tombstones and runs are random. Reads from any offset agree too."""
    chance = random.Random(seed)
    log = compacted(
        open_directory(disk=MemoryDisk()), segment_bytes=3000, index_interval_bytes=200, delete_retention_ms=1 << 40
    )
    cleaner = LogCleaner(log.segments[0].disk)
    written, cleaned_to = [], 0
    for _ in range(6):
        for _ in range(30):
            pairs = [
                (f"k{chance.randrange(40)}", chance.choice((None, "v" * chance.randrange(60))))
                for _ in range(chance.randrange(1, 6))
            ]
            base = append(log, keyed(*pairs, codec=chance.randrange(5)))[0]
            written += [(base + delta, *pair) for delta, pair in enumerate(pairs)]
        done = clean(log, cleaner, chunk_bytes=chance.choice((300, 4096)))
        cleaned_to = done.end_offset
        newest = {key: offset for offset, key, _ in written if offset < cleaned_to}
        expected = [row for row in written if row[0] >= cleaned_to or newest[row[1]] == row[0]]
        assert left(log) == expected
    start = chance.randrange(log.end_offset)
    first = batches_of(log.read(start, 1, end_offset=log.end_offset).pread())[0][0]
    assert first.last_offset >= start
