"""Requests of thousands of rows: what they take grows with their rows and no faster."""

import pytest

from pykafkad import errors
from pykafkad.wire import messages

COUNT = 2_000


def commit(count):
    request = messages.OffsetCommitRequest
    rows = [request.OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(count)]
    return request(group_id="g", topics=[request.OffsetCommitRequestTopic(name="t", partitions=rows)]), 8


def commit_in_transaction(count):
    request = messages.TxnOffsetCommitRequest
    rows = [request.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(count)]
    return request(transactional_id="x", group_id="g", producer_id=1, topics=[request.TxnOffsetCommitRequestTopic(name="t", partitions=rows)]), 3


def delete(count):
    request = messages.OffsetDeleteRequest
    rows = [request.OffsetDeleteRequestPartition(partition_index=index) for index in range(count)]
    return request(group_id="g", topics=[request.OffsetDeleteRequestTopic(name="t", partitions=rows)]), 0


@pytest.mark.parametrize("ask", [commit, commit_in_transaction, delete])
def test_no_row_is_looked_for_among_the_others(world, peer, monkeypatch, ask):
    """For ten thousand partitions of which half do not exist that took half a minute."""
    world.create_topic("t", 2)
    world.create_topic("__consumer_offsets", 1)
    peer.ask(*commit(1))
    compared = []
    monkeypatch.setattr(messages.Struct, "__eq__", lambda self, other: compared.append(self) or self is other)
    answer = peer.ask(*ask(COUNT))
    assert len(compared) < COUNT
    codes = [row.error_code for row in answer.topics[0].partitions]
    assert codes.count(errors.UNKNOWN_TOPIC_OR_PARTITION) == COUNT - 2 and len(codes) == COUNT
