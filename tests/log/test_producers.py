"""Idempotent producers: sequences, duplicates, fencing, and the state after a restart."""

from __future__ import annotations

import random
import struct

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.log.producers import ProducerEntry, ProducerStates
from pykafkad.wire.batch import MAX_SEQUENCE, build_batch, crc32c, parse_header
from tests.log.settings import NOW_MS, append, batch, content, open_directory, open_log
from tests.simulation.disk import MemoryDisk


def send(log, sequence, *, count=1, epoch=0, producer_id=1):
    """Append a batch of an idempotent producer; returns its base offset, or the error code."""
    try:
        result = log.append(batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence), NOW_MS)
    except KafkaError as error:
        return error.code
    log.write_pending()
    return result.base_offset


def test_a_duplicate_of_the_last_five_batches_gets_the_first_answer(log):
    """It is not appended. A duplicate of the sixth last gives OUT_OF_ORDER_SEQUENCE_NUMBER."""
    assert [send(log, 2 * number, count=2) for number in range(6)] == [0, 2, 4, 6, 8, 10]
    assert [send(log, 2 * number, count=2) for number in range(6)] == [
        errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
        2,
        4,
        6,
        8,
        10,
    ]
    assert log.end_offset == 12
    assert send(log, 12) == 12


def test_a_duplicate_is_answered_with_the_timestamp_of_the_first(log):
    """Kafka returns it as the append time for either timestamp type."""
    records = batch(2, producer_id=1, producer_epoch=0, base_sequence=0)
    log.append(memoryview(bytearray(records)), NOW_MS)
    assert log.append(records, NOW_MS + 5) == (0, 1, NOW_MS, 0)


@pytest.mark.parametrize(("sequence", "count"), [(4, 1), (2, 1), (0, 1), (1, 2), (2, 2)])
def test_gaps_and_overlaps_are_out_of_order(log, sequence, count):
    """Only the next sequence, or exactly the same batch, is accepted."""
    assert send(log, 0, count=3) == 0
    assert send(log, sequence, count=count) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 3) == 3


def test_an_unknown_producer_may_start_with_any_sequence(log):
    """KIP-360: its state may have been deleted together with its records."""
    assert send(log, 17) == 0
    assert send(log, 18) == 1


def test_a_new_epoch_starts_at_zero_and_fences_the_old(log):
    assert send(log, 0) == 0
    assert send(log, 1, epoch=1) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 0, epoch=1) == 1
    assert send(log, 1, epoch=0) == errors.INVALID_PRODUCER_EPOCH
    assert send(log, 0, epoch=0) == errors.INVALID_PRODUCER_EPOCH
    assert send(log, 1, epoch=1) == 2
    assert send(log, 0, epoch=1) == 1, "a retry is answered from its own epoch"


def test_sequences_wrap_after_the_largest(log):
    """0 follows 2^31-1, also within a batch."""
    assert send(log, MAX_SEQUENCE - 1, count=2) == 0
    assert send(log, 0) == 2
    assert send(log, MAX_SEQUENCE - 1, count=4, producer_id=2) == 3
    assert send(log, 2, producer_id=2) == 7
    assert send(log, MAX_SEQUENCE - 1, count=4, producer_id=2) == 3


def test_producers_are_independent(log):
    for number in range(10):
        for producer_id in range(5):
            assert send(log, number, producer_id=producer_id) == 5 * number + producer_id


def test_idle_producers_expire(log):
    """They expire producer.id.expiration.ms after their last batch. Then any first sequence is accepted."""
    assert send(log, 0) == 0
    log.producers.expire(NOW_MS + 86_399_999, 86_400_000)
    assert 1 in log.producers
    log.producers.expire(NOW_MS + 86_400_000, 86_400_000)
    assert 1 not in log.producers
    assert send(log, 9) == 1


def test_a_duplicate_after_a_restart_gets_the_first_answer():
    disk = MemoryDisk()
    for stop in (lambda directory: directory.close(), lambda directory: disk.kill()):
        directory = open_directory(disk=disk)
        log = open_log(directory)
        sequence = log.end_offset
        assert send(log, sequence, count=3) == sequence
        stop(directory)
        log = open_log(open_directory(disk=disk))
        assert send(log, sequence, count=3) == sequence
        assert send(log, sequence + 1) == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
        disk.kill()


@pytest.mark.parametrize("seed", range(10))
def test_state_is_a_function_of_the_log(seed):
    """Replaying the stored batches gives the same state as appending them."""
    chance = random.Random(seed)
    log = open_log(open_directory(disk=MemoryDisk()))
    for _ in range(300):
        producer_id = chance.randrange(3)
        entry = log.producers.get(producer_id)
        sequence = chance.choice((entry.next_sequence if entry else 0, chance.randrange(5)))
        send(
            log,
            sequence,
            count=chance.randrange(1, 4),
            epoch=chance.choice((0, entry.epoch if entry else 0, 1, 2)),
            producer_id=producer_id,
        )
    replayed = ProducerStates()
    for header, _ in content(log):
        replayed.track(header, None)
    assert replayed == log.producers
    sequences = {}
    for header, _ in content(log):
        key = header.producer_id, header.producer_epoch
        assert header.base_sequence == sequences.get(key, header.base_sequence), (
            "sequences of an epoch follow each other"
        )
        sequences[key] = header.last_sequence + 1


def test_the_snapshot_file_has_kafkas_format():
    """Version 1, CRC-32C of all that follows, count, then 46 bytes per producer with its last batch."""
    states = ProducerStates()
    entry = states[77] = ProducerEntry()
    entry.add(3, 10, 104, 4, NOW_MS)
    entry.add(3, 15, 109, 4, NOW_MS + 1)
    data = states.to_snapshot()
    assert struct.unpack(">hIi", data[:10]) == (1, crc32c(data[6:]), 1)
    assert struct.unpack(">qhiqiqiq", data[10:]) == (77, 3, 19, 109, 4, NOW_MS + 1, -1, -1)
    read = ProducerStates.from_snapshot(data)
    assert (read[77].epoch, read[77].next_sequence, read[77].batches) == (3, 20, [(19, 109, 4, NOW_MS + 1)])
    assert read.to_snapshot() == data
    assert ProducerStates.from_snapshot(ProducerStates().to_snapshot()) == {}


def test_a_damaged_snapshot_is_not_read():
    states = ProducerStates()
    states[1] = ProducerEntry(2)
    data = states.to_snapshot()
    for position in range(len(data)):
        broken = bytearray(data)
        broken[position] ^= 1
        assert ProducerStates.from_snapshot(bytes(broken)) is None
        assert ProducerStates.from_snapshot(data[:position]) is None


def test_replaying_an_end_marker_raises_the_producers_epoch():
    """A marker has the producer's epoch and no sequence. The first batch after a raised epoch has sequence 0."""
    states = ProducerStates()
    states.track(
        parse_header(
            build_batch([(None, b"v")], producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
        ),
        None,
    )
    marker = build_batch(
        [(b"\0\0\0\1", b"\0" * 6)], producer_id=5, producer_epoch=1, is_control=True, is_transactional=True
    )
    states.track(parse_header(marker), lambda: marker)
    assert (states[5].epoch, states[5].next_sequence, states[5].batches) == (1, 0, [])


def test_appends_without_a_producer_id_leave_no_state(log):
    append(log, batch())
    assert log.producers == {}
