"""Loading logs that Kafka has written, with offsets committed in transactions."""

from __future__ import annotations

import pytest

from pykafkad.coordinator import record_codec
from pykafkad.coordinator.offsets import CommittedOffset
from pykafkad.coordinator.shard import RECORDS_PER_STEP, GroupShard
from pykafkad.wire.batch import CONTROL_ABORT, CONTROL_COMMIT, control_key
from tests.coordinator.world import Settings, batch


def commit(offset, partition=0):
    return record_codec.encode(
        record_codec.offset_commit("g", "t", partition, CommittedOffset(offset, -1, "", 1, -1, bytes(16)))
    )


def tombstones():
    return [
        record_codec.encode(record_codec.offset_commit("g", "t", 0, None)),
        record_codec.encode(record_codec.group_tombstone("g")),
    ]


def transaction(base_offset, *entries, producer_id=7):
    return batch(
        base_offset, list(entries), producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
    )


def marker(base_offset, control_type, producer_id=7):
    value = bytes(6)
    entry = (control_key(control_type), value)
    return batch(
        base_offset, [entry], producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True
    )


def loaded(*batches):
    shard = GroupShard(0, Settings(), None)
    shard.load(batches)
    return shard


def offset(shard, partition=0):
    found = shard.offsets.get("g", "t", partition)
    return None if found is None else found.offset


@pytest.mark.parametrize(("control_type", "expected"), [(CONTROL_COMMIT, 5), (CONTROL_ABORT, 1)])
def test_offsets_of_a_transaction_take_effect_when_it_is_committed(control_type, expected):
    assert offset(loaded(batch(0, [commit(1)]), transaction(1, commit(5)), marker(2, control_type))) == expected


def test_offsets_of_an_open_transaction_do_not_take_effect():
    assert offset(loaded(batch(0, [commit(1)]), transaction(1, commit(5)))) == 1


def test_transactions_of_different_producers_end_independently():
    shard = loaded(
        transaction(0, commit(5, 0), producer_id=7),
        transaction(1, commit(6, 1), producer_id=8),
        marker(2, CONTROL_ABORT, producer_id=7),
        marker(3, CONTROL_COMMIT, producer_id=8),
        transaction(4, commit(9, 1), producer_id=8),
        marker(5, CONTROL_ABORT, producer_id=8),
    )
    assert (offset(shard, 0), offset(shard, 1)) == (None, 6)


def test_a_commit_made_while_a_transaction_was_open_is_newer_than_those_of_the_transaction():
    assert offset(loaded(transaction(0, commit(5)), batch(1, [commit(9)]), marker(2, CONTROL_COMMIT))) == 9


def test_an_offset_that_was_deleted_while_a_transaction_was_open_stays_deleted():
    shard = loaded(transaction(0, commit(5)), batch(1, [commit(9)]), batch(2, tombstones()), marker(4, CONTROL_COMMIT))
    assert offset(shard) is None and shard.groups == {}


def test_a_long_transaction_is_read_in_steps():
    """Neither what is pending nor what ends without an effect holds the loop."""
    shard = GroupShard(0, Settings(), None)
    count = 5 * RECORDS_PER_STEP
    batches = [transaction(offset, commit(offset, offset % count)) for offset in range(2 * count)]
    batches += [marker(2 * count + offset, CONTROL_ABORT, producer_id=8) for offset in range(count)]
    steps = sum(1 for _ in shard.load_in_steps(batches))
    assert steps >= 2 * count // RECORDS_PER_STEP + 2 * (count // RECORDS_PER_STEP)
    assert shard.offsets.is_pending("g", "t", 1)


def test_a_marker_without_a_transaction_is_ignored():
    assert offset(loaded(batch(0, [commit(1)]), marker(1, CONTROL_COMMIT))) == 1
