"""ListOffsets: the start and end of a log, and the record of a timestamp."""

import pytest

from pykafkad import errors
from pykafkad.wire import messages
from tests.handlers.requests import NOW_MS, batch, produce

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


def list_offsets(topic, partitions, **keywords):
    """`partitions` are tuples `(index, timestamp)` or `(index, timestamp, current leader epoch)`."""
    request = messages.ListOffsetsRequest
    rows = []
    for index, timestamp, *epoch in partitions:
        rows.append(
            request.ListOffsetsPartition(
                partition_index=index, timestamp=timestamp, current_leader_epoch=epoch[0] if epoch else -1
            )
        )
    return request(
        replica_id=keywords.pop("replica_id", -1),
        topics=[request.ListOffsetsTopic(name=topic, partitions=rows)],
        **keywords,
    )


def answer_of(peer, version, topic, partitions, **keywords):
    answer = peer.ask(list_offsets(topic, partitions, **keywords), version)
    return [
        (row.partition_index, row.error_code, row.offset, row.timestamp, row.leader_epoch)
        for row in answer.topics[0].partitions
    ]


@pytest.fixture
def topic(world, peer):
    """A topic `t` with five records one second apart, the third with the latest timestamp."""
    world.create_topic("t", 2)
    for seconds in (0, 1, 9, 3, 4):
        peer.ask(produce("t", {0: batch(b"x", timestamp_ms=NOW_MS + 1000 * seconds)}), 8)
    return "t"


@pytest.mark.parametrize("version", range(1, 12))
def test_every_version_finds_start_end_and_a_timestamp(peer, topic, version):
    """Special times have timestamp -1. The leader epoch comes from version 4."""
    epoch = 0 if version >= 4 else -1
    assert answer_of(peer, version, topic, [(0, LATEST)]) == [(0, 0, 5, -1, epoch)]
    assert answer_of(peer, version, topic, [(0, EARLIEST)]) == [(0, 0, 0, -1, epoch)]
    assert answer_of(peer, version, topic, [(0, NOW_MS + 1)]) == [(0, 0, 1, NOW_MS + 1000, epoch)]
    assert answer_of(peer, version, topic, [(0, NOW_MS + 3000)]) == [(0, 0, 2, NOW_MS + 9000, epoch)]
    assert answer_of(peer, version, topic, [(0, NOW_MS + 9001)]) == [(0, 0, -1, -1, -1)]


@pytest.mark.parametrize(
    ("timestamp", "since", "found"),
    [
        (MAX_TIMESTAMP, 7, (2, NOW_MS + 9000, 0)),
        (EARLIEST_LOCAL, 8, (0, -1, 0)),
        (LATEST_TIERED, 9, (-1, -1, -1)),
        (PENDING_UPLOAD, 11, (-1, -1, -1)),
    ],
)
def test_special_times_begin_with_a_version(peer, topic, timestamp, since, found):
    """In an older version the partition is UNSUPPORTED_VERSION."""
    assert answer_of(peer, since, topic, [(0, timestamp)]) == [(0, 0, *found)]
    assert answer_of(peer, since - 1, topic, [(0, timestamp)]) == [(0, errors.UNSUPPORTED_VERSION, -1, -1, -1)]


def test_an_unknown_special_time_is_refused(peer, topic):
    assert answer_of(peer, 11, topic, [(0, -7)]) == [(0, errors.UNSUPPORTED_VERSION, -1, -1, -1)]


def test_an_empty_partition_has_no_record_of_any_timestamp(peer, topic):
    """Its start and end are 0."""
    for timestamp, found in (
        (LATEST, (0, -1, 0)),
        (EARLIEST, (0, -1, 0)),
        (MAX_TIMESTAMP, (-1, -1, -1)),
        (0, (-1, -1, -1)),
    ):
        assert answer_of(peer, 11, topic, [(1, timestamp)]) == [(1, 0, *found)]


def test_errors_stand_on_their_partition(peer, topic):
    assert answer_of(peer, 5, topic, [(0, LATEST, 9), (7, LATEST), (1, LATEST)]) == [
        (0, errors.UNKNOWN_LEADER_EPOCH, -1, -1, -1),
        (7, errors.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1),
        (1, 0, 0, -1, 0),
    ]
    assert answer_of(peer, 5, "nowhere", [(0, LATEST)])[0][1] == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_named_twice_is_answered_once_with_an_error(peer, topic):
    assert answer_of(peer, 5, topic, [(0, LATEST), (1, LATEST), (0, EARLIEST)]) == [
        (0, errors.INVALID_REQUEST, -1, -1, -1),
        (1, 0, 0, -1, 0),
    ]


@pytest.mark.parametrize("keywords", [{"isolation_level": 1}, {"replica_id": -2}])
def test_all_callers_get_the_same_end_without_uncommitted_records(peer, topic, keywords):
    assert answer_of(peer, 6, topic, [(0, LATEST)], **keywords) == [(0, 0, 5, -1, 0)]


@pytest.mark.parametrize("level", [-1, 2, 127])
def test_an_unknown_isolation_level_is_refused(peer, topic, level):
    """In Kafka an unexpected exception gives every partition this error."""
    unknown = errors.UNKNOWN_SERVER_ERROR
    assert answer_of(peer, 6, topic, [(0, LATEST), (9, LATEST)], isolation_level=level) == [
        (0, unknown, -1, -1, -1),
        (9, unknown, -1, -1, -1),
    ]


def test_a_topic_without_partitions_is_left_out(peer, topic):
    assert peer.ask(list_offsets(topic, []), 6).topics == []
