"""DeleteRecords: the log start offset moves up."""

import pytest

from pykafkad import errors
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.handlers.test_fetch import rows_of


def delete(peer, version, topic, offsets):
    request = messages.DeleteRecordsRequest
    rows = [request.DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets]
    answer = peer.ask(
        request(topics=[request.DeleteRecordsTopic(name=topic, partitions=rows)], timeout_ms=1000), version
    )
    return [(row.partition_index, row.error_code, row.low_watermark) for row in answer.topics[0].partitions]


@pytest.fixture
def topic(world, peer):
    world.create_topic("t", 2)
    for _ in range(3):
        peer.ask(produce("t", {0: batch(b"x", b"y")}), 8)
    return "t"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_below_the_offset_cannot_be_read(peer, topic, version):
    """The offset may lie inside a batch; -1 means the high watermark; a lower offset changes nothing."""
    assert delete(peer, version, topic, [(0, 3)]) == [(0, 0, 3)]
    rows = rows_of(peer.ask(fetch(topic, {0: 2}), 11))
    assert rows[0].error_code == errors.OFFSET_OUT_OF_RANGE
    rows = rows_of(peer.ask(fetch(topic, {0: 3}), 11))
    assert (rows[0].error_code, rows[0].log_start_offset) == (0, 3)
    assert delete(peer, version, topic, [(0, 1)]) == [(0, 0, 3)]
    assert delete(peer, version, topic, [(0, -1)]) == [(0, 0, 6)]


def test_errors_stand_on_their_partition(peer, topic):
    assert delete(peer, 2, topic, [(0, 7), (1, -2), (5, 0)]) == [
        (0, errors.OFFSET_OUT_OF_RANGE, -1),
        (1, errors.OFFSET_OUT_OF_RANGE, -1),
        (5, errors.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


def test_compacted_and_internal_topics_are_refused(world, peer):
    """A topic with cleanup.policy compact is refused, one with compact and delete is not."""
    world.create_topic("c", **{"cleanup.policy": "compact"})
    world.create_topic("both", **{"cleanup.policy": "compact,delete"})
    assert delete(peer, 2, "c", [(0, 0)]) == [(0, errors.POLICY_VIOLATION, -1)]
    assert delete(peer, 2, "both", [(0, 0)]) == [(0, 0, 0)]


def test_the_log_start_offset_survives_a_clean_restart(world, peer, topic):
    delete(peer, 2, topic, [(0, 3)])
    world.stop()
    world = world.restart()
    assert delete(world.connect(), 2, topic, [(0, 0)]) == [(0, 0, 3)]


def test_a_topic_without_partitions_is_left_out(peer, topic):
    request = messages.DeleteRecordsRequest
    assert peer.ask(request(topics=[request.DeleteRecordsTopic(name=topic)], timeout_ms=1000), 2).topics == []
