"""Transactions in one partition: begin and end, the end of read_committed reads, and the state after a restart."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.log import txn_index
from pykafkad.log.partition_log import COORDINATOR, TRANSACTION, VERIFIED_CLIENT
from pykafkad.log.transactions import begin_verification
from pykafkad.log.txn_index import AbortedTransaction
from tests.log.settings import NOW_MS, batch, open_directory, open_log

SIZE = len(batch(1, 10))


def write(log):
    log.write_pending()
    log.advance_high_watermark(log.written_end_offset)


def send(log, producer_id, sequence, *, epoch=0, origin=VERIFIED_CLIENT, transactional=True, count=1):
    """Append a producer's batch; returns its base offset, or the error code."""
    try:
        result = log.append(
            batch(
                count,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                is_transactional=transactional,
            ),
            NOW_MS,
            origin=origin,
        )
    except KafkaError as error:
        return error.code
    write(log)
    return result.base_offset


def end(log, producer_id, *, epoch=0, abort=False, coordinator_epoch=0, version=0):
    try:
        result = log.append_end_marker(
            producer_id, epoch, coordinator_epoch, NOW_MS, is_abort=abort, transaction_version=version
        )
    except KafkaError as error:
        return error.code
    write(log)
    return result.base_offset


def aborted(log):
    return [entry for segment in log.segments for entry in segment.aborted]


def state(log):
    return dict(log.producers), log.producers.ongoing, aborted(log), log.last_stable_offset


def reopen(disk, *, clean, **changes):
    disk.kill()
    directory = open_directory(disk=disk)
    assert directory.clean is clean
    return directory, open_log(directory, **changes)


def test_the_last_stable_offset_is_the_first_offset_of_an_ongoing_transaction(log):
    """When two transactions overlap, each marker moves it to the first batch of the other."""
    assert [send(log, 1, 0), send(log, 2, 0), send(log, 1, 1)] == [0, 1, 2]
    assert (log.high_watermark, log.last_stable_offset) == (3, 0)
    end(log, 1)
    assert (log.high_watermark, log.last_stable_offset) == (4, 1)
    end(log, 2, abort=True)
    assert (log.high_watermark, log.last_stable_offset) == (5, 5)


def test_a_marker_counts_once_the_high_watermark_has_passed_it(log):
    send(log, 1, 0)
    log.append_end_marker(1, 0, 0, NOW_MS, is_abort=False)
    assert log.last_stable_offset == 0
    write(log)
    assert log.last_stable_offset == 2
    assert log.producers.ended == []


def test_ended_transactions_are_forgotten_without_a_read_committed_reader(log):
    for number in range(50):
        send(log, 1, number)
        end(log, 1)
    assert len(log.producers.ended) <= 1


def test_an_unverified_batch_cannot_begin_a_transaction_or_interrupt_one(log):
    """The coordinator must verify the first batch of a transaction, not the later ones."""
    assert send(log, 1, 0, origin=TRANSACTION) == errors.INVALID_TXN_STATE
    assert log.end_offset == 0
    assert send(log, 1, 0) == 0
    assert send(log, 1, 1, origin=TRANSACTION) == 1
    assert send(log, 1, 1, origin=TRANSACTION) == 1, "a repetition"
    assert send(log, 1, 2, transactional=False) == errors.INVALID_TXN_STATE
    assert send(log, 1, 2, epoch=1, origin=TRANSACTION) == errors.INVALID_TXN_STATE
    end(log, 1)
    assert send(log, 1, 2, transactional=False) == 3
    assert send(log, 1, 3, origin=TRANSACTION) == errors.INVALID_TXN_STATE


def test_an_older_epoch_is_refused_before_other_checks(log):
    send(log, 1, 0, epoch=3)
    assert send(log, 1, 1, epoch=2, origin=TRANSACTION) == errors.INVALID_PRODUCER_EPOCH
    assert end(log, 1, epoch=2) == errors.INVALID_PRODUCER_EPOCH
    assert log.end_offset == 1


@pytest.mark.parametrize(
    ("version", "epoch", "ongoing", "code"),
    [
        (1, 5, True, None),
        (1, 4, True, errors.INVALID_PRODUCER_EPOCH),
        (2, 5, True, errors.INVALID_PRODUCER_EPOCH),
        (2, 6, True, None),
        (2, 5, False, None),
        (2, 4, False, errors.INVALID_PRODUCER_EPOCH),
    ],
)
def test_markers_of_transaction_version_2_end_an_epoch(log, version, epoch, ongoing, code):
    """KIP-890: such a marker has the next epoch. A marker of the current epoch is a repetition, or of an older
    transaction."""
    send(log, 1, 0, epoch=5, transactional=ongoing)
    assert end(log, 1, epoch=epoch, version=version) == (1 if code is None else code)


def test_a_marker_of_an_older_coordinator_is_fenced(log):
    send(log, 1, 0)
    assert end(log, 1, coordinator_epoch=3) == 1
    send(log, 1, 1)
    assert end(log, 1, coordinator_epoch=2) == errors.TRANSACTION_COORDINATOR_FENCED
    assert end(log, 1, coordinator_epoch=3) == 3


def test_a_marker_without_a_transaction_changes_nothing_for_readers(log):
    assert end(log, 9, abort=True) == 0
    assert (aborted(log), log.last_stable_offset, log.has_aborted) == ([], 1, False)


def test_batches_of_coordinators_have_no_sequence(log):
    """The group coordinator writes the offsets that a transaction commits, with the producer's id."""
    for offset in range(3):
        records = batch(1, producer_id=1, producer_epoch=0, is_transactional=True)
        assert log.append(records, NOW_MS, origin=COORDINATOR).base_offset == offset
    write(log)
    assert log.last_stable_offset == 0
    end(log, 1)
    assert log.last_stable_offset == 4


def test_the_index_lists_aborted_transactions(log):
    """It has KIP-98's columns: first offset, last offset, and the last stable offset at that time."""
    send(log, 1, 0)
    send(log, 2, 0)
    end(log, 1, abort=True)
    end(log, 2, abort=True)
    assert aborted(log) == [AbortedTransaction(1, 0, 2, 1), AbortedTransaction(2, 1, 3, 4)]
    assert log.has_aborted


def read_aborted(log, offset, max_bytes=1 << 20):
    records = log.read(offset, max_bytes, end_offset=log.last_stable_offset)
    return [(each.producer_id, each.first_offset) for each in log.aborted_transactions(offset, records)]


def test_a_reader_gets_the_aborted_transactions_of_its_range(disk):
    """The marker may be in a later segment. Transactions that end before the range or begin after it are left out."""
    log = open_log(open_directory(disk=disk), segment_bytes=2 * SIZE, index_interval_bytes=0)
    send(log, 1, 0)
    send(log, 1, 1)
    end(log, 1, abort=True)
    send(log, 2, 0)
    end(log, 2)
    send(log, 3, 0)
    end(log, 3, abort=True)
    send(log, 4, 0, transactional=False)
    assert len(log.segments) >= 4
    assert read_aborted(log, 0) == [(1, 0)]
    assert read_aborted(log, 3) == []
    assert read_aborted(log, 5) == [(3, 5)]
    assert read_aborted(log, 7) == []


@pytest.mark.parametrize("seed", range(8))
def test_reads_that_meet_no_aborted_transaction_are_told_so(disk, seed):
    """At each moment of random transactions, before and after a restart, reads of several sizes get what the entries of
    the transaction index say for their range."""
    chance = random.Random(seed)
    interval = chance.choice((0, 3 * SIZE))
    log = open_log(open_directory(disk=disk), index_interval_bytes=interval)
    sequences = dict.fromkeys(range(3), 0)
    empty = full = 0
    for turn in range(120):
        producer_id = chance.randrange(3)
        if chance.random() < 0.3:
            end(log, producer_id, abort=chance.random() < 0.5)
        else:
            count = chance.randint(1, 3)
            assert send(log, producer_id, sequences[producer_id], count=count) >= 0
            sequences[producer_id] += count
        if turn == 80:
            _, log = reopen(disk, clean=False, index_interval_bytes=interval)
        for offset in range(chance.randrange(4), log.last_stable_offset, 4):
            records = log.read(offset, chance.choice((SIZE, 4 * SIZE, 1 << 20)), end_offset=log.last_stable_offset)
            segment = log.segments[-1]
            entry = segment.offset_index.first_from(records.position + records.chunk_size)
            expected = txn_index.collect([segment], offset, log.end_offset if entry is None else entry[0])
            assert log.aborted_transactions(offset, records) == expected
            empty, full = empty + (not expected), full + bool(expected)
    assert empty > 10 and full > 10


def test_the_search_ends_at_an_entry_without_earlier_ongoing_transactions(log):
    """If an entry's last stable offset is not below the end, no later marker aborts a record before the end."""
    first = SimpleNamespace(aborted=[AbortedTransaction(1, 0, 2, 3), AbortedTransaction(2, 1, 9, 10)])
    assert txn_index.collect([first, None], 0, 10) == first.aborted
    assert txn_index.collect([first, None], 0, 3) == first.aborted[:1]


def test_the_index_file_has_kafkas_format(disk, log):
    """Entries have version, producer id, first, last and last stable offset: 34 bytes, written when a segment rolls."""
    send(log, 7, 0)
    end(log, 7, abort=True)
    log.roll(NOW_MS)
    data = disk.read("/data/t-0/" + "0" * 20 + ".txnindex")
    assert data.hex() == "0000" + f"{7:016x}" + f"{0:016x}" + f"{1:016x}" + f"{2:016x}"
    assert txn_index.from_bytes(data, 0) == aborted(log)
    assert txn_index.from_bytes(data[:-1], 0) is None
    assert txn_index.from_bytes(data, 2) is None


def test_a_log_without_aborted_transactions_has_no_index_file(disk, log):
    send(log, 7, 0)
    end(log, 7)
    log.roll(NOW_MS)
    assert not any(path.endswith(".txnindex") for path in disk.files)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_a_restart_keeps_the_state_of_transactions(disk, seed, clean):
    """Ongoing and aborted transactions and the last stable offset are the same, whatever rolled in between."""
    chance = random.Random(seed)
    directory = open_directory(disk=disk)
    log = open_log(directory, segment_bytes=6 * SIZE)
    sequences = dict.fromkeys(range(4), 0)
    for _ in range(120):
        producer_id = chance.randrange(4)
        if chance.random() < 0.3:
            end(log, producer_id, abort=chance.random() < 0.6)
        else:
            assert send(log, producer_id, sequences[producer_id]) >= 0
            sequences[producer_id] += 1
    before = {key: (entry.epoch, entry.next_sequence, entry.transaction_offset) for key, entry in log.producers.items()}
    expected = log.producers.ongoing, aborted(log), log.last_stable_offset
    if clean:
        directory.close()
    else:
        disk.kill()
    directory, log = reopen(disk, clean=clean, segment_bytes=6 * SIZE)
    assert {
        key: (entry.epoch, entry.next_sequence, entry.transaction_offset) for key, entry in log.producers.items()
    } == before
    assert (log.producers.ongoing, aborted(log), log.last_stable_offset) == expected


def test_a_lost_marker_makes_the_transaction_ongoing_again(disk):
    """A power loss took the marker, and its entry in the index is removed."""
    log = open_log(open_directory(disk=disk))
    send(log, 1, 0)
    log.flush()
    end(log, 1, abort=True)
    log.settle(sync=False)
    disk.files["/data/t-0/" + "0" * 20 + ".log"].data[-1] ^= 1
    _, log = reopen(disk, clean=False)
    assert (log.end_offset, log.last_stable_offset, aborted(log), log.has_aborted) == (1, 0, [], False)
    assert not any(path.endswith(".txnindex") for path in disk.files)
    assert send(log, 1, 1, origin=TRANSACTION) == 1


def test_a_damaged_index_is_rebuilt(disk):
    directory = open_directory(disk=disk)
    log = open_log(directory)
    send(log, 1, 0)
    log.roll(NOW_MS)
    end(log, 1, abort=True)
    log.roll(NOW_MS)
    expected = aborted(log)
    directory.close()
    path = f"/data/t-0/{1:020d}.txnindex"
    disk.files[path].data[:] = b"\1" * 10
    _, log = reopen(disk, clean=True)
    assert log.has_aborted
    assert aborted(log) == expected == [AbortedTransaction(1, 0, 1, 2)]


def test_an_ongoing_transaction_does_not_expire(log):
    send(log, 1, 0)
    send(log, 2, 0, transactional=False)
    assert log.producers.expire(NOW_MS + 10_000, 1000) == 1
    assert list(log.producers) == [1]


def test_deleting_records_raises_the_last_stable_offset(log):
    send(log, 1, 0, count=3)
    log.delete_records(2)
    assert log.last_stable_offset == 2


def test_retention_removes_the_index_with_its_segment(disk):
    log = open_log(open_directory(disk=disk), retention_ms=1000)
    send(log, 1, 0)
    end(log, 1, abort=True)
    log.run_retention(NOW_MS + 5000)
    assert (aborted(log), log.has_aborted) == ([], False)
    assert f"/data/t-0/{0:020d}.txnindex.deleted" in disk.files


def verify(log, producer_id=1, *, epoch=0, sequence=0, version_2=False, now_ms=NOW_MS):
    return begin_verification(log, producer_id, epoch, sequence, version_2, now_ms)


def test_a_verification_lets_one_transaction_begin(log):
    """KIP-890: it is used up by the first batch. While the transaction is ongoing nobody need be asked."""
    waiting = verify(log)
    assert send(log, 1, 0, origin=TRANSACTION) == errors.INVALID_TXN_STATE
    assert send(log, 2, 0, origin=waiting) == errors.INVALID_TXN_STATE, "it is of another producer"
    assert send(log, 1, 0, origin=waiting) == 0
    assert log.producers.verifying == {}
    assert verify(log) is None
    assert send(log, 1, 1, origin=TRANSACTION) == 1
    end(log, 1)
    assert send(log, 1, 2, origin=waiting) == errors.INVALID_TXN_STATE
    assert send(log, 1, 2, origin=verify(log, sequence=2)) == 3


def test_a_marker_takes_a_verification_away(log):
    """The word of the coordinator may be about the transaction that the marker has ended."""
    waiting = verify(log)
    end(log, 1, abort=True)
    assert send(log, 1, 0, origin=waiting) == errors.INVALID_TXN_STATE
    assert verify(log) is not waiting


def test_a_marker_of_version_2_leaves_the_verification_of_its_epoch(log):
    """The marker has the epoch that the next transaction begins with, so that one may wait already."""
    send(log, 1, 0)
    waiting = verify(log, epoch=1, version_2=True)
    end(log, 1, epoch=1, version=2)
    assert send(log, 1, 0, epoch=1, origin=waiting) == 2
    waiting = verify(log, 5, epoch=1, version_2=True)
    end(log, 5, epoch=2, version=2)
    assert send(log, 5, 0, epoch=1, origin=waiting) == errors.INVALID_PRODUCER_EPOCH
    assert send(log, 5, 0, epoch=2, origin=waiting) == errors.INVALID_TXN_STATE


def test_batches_that_wait_together_are_appended_in_order(log):
    """They have one verification. One that overtakes the first is refused, and tried again by its client."""
    first = verify(log, sequence=3)
    assert verify(log, sequence=4) is first
    assert send(log, 1, 4, origin=first) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verify(log, sequence=2) is first
    assert send(log, 1, 3, origin=first) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert verify(log, sequence=9, epoch=1) is first
    assert send(log, 1, 9, epoch=1, origin=first) == 0


def test_a_producer_of_version_2_begins_with_sequence_0(log):
    waiting = verify(log, sequence=1, version_2=True)
    assert send(log, 1, 1, origin=waiting) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 1, 0, origin=waiting) == 0


def test_an_older_epoch_is_not_verified(log):
    send(log, 1, 0, epoch=3)
    assert verify(log, epoch=3) is None
    waiting = verify(log, epoch=4)
    assert send(log, 1, 0, epoch=4, origin=waiting) == 1
    assert log.producers.verifying == {}
    with pytest.raises(KafkaError) as caught:
        verify(log, epoch=3)
    assert caught.value.code == errors.INVALID_PRODUCER_EPOCH


def test_verifications_expire_with_producers(log):
    verify(log)
    log.producers.expire(NOW_MS + 999, 1000)
    assert log.producers.verifying
    log.producers.expire(NOW_MS + 1000, 1000)
    assert log.producers.verifying == {}
