"""DeleteRecords of partitions with followers: the answer waits for them."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.metadata import events
from pykafkad.wire import messages
from tests.handlers.test_fetch_by_followers import append, ask, led
from tests.handlers.test_leader_hints import OTHER, fence, other
from tests.simulation.world import NOTHING

__all__ = ["led", "other"]


@pytest.fixture
def three(world, led):
    """Both brokers have three records, and know that they are committed."""
    for _ in range(3):
        append(world)
    ask(world, 3, log_start_offset=0)
    assert led.high_watermark == 3
    return led


def request(offset, timeout_ms=5000, topic="led"):
    made = messages.DeleteRecordsRequest
    rows = [made.DeleteRecordsPartition(partition_index=0, offset=offset)]
    return made(topics=[made.DeleteRecordsTopic(name=topic, partitions=rows)], timeout_ms=timeout_ms)


def begin(world, offset, timeout_ms=5000):
    """A client that has asked, and waits."""
    peer = world.connect()
    assert peer.ask(request(offset, timeout_ms), 2) is NOTHING
    return peer


def result(peer):
    (answer,) = peer.answers
    (row,) = answer.topics[0].partitions
    return row.error_code, row.low_watermark


def test_the_answer_comes_when_the_follower_has_deleted_too(world, three):
    peer = begin(world, 2)
    assert three.log_start_offset == 2
    assert ask(world, 3, log_start_offset=1).log_start_offset == 2
    world.turn()
    assert not peer.answers
    ask(world, 3, log_start_offset=2)
    world.turn()
    assert result(peer) == (0, 2)


def test_what_all_replicas_have_deleted_already_is_answered_at_once(world, three):
    """The low watermark is the lowest of all replicas: that of the follower may be below the leader's start."""
    three.delete_records(2)
    ask(world, 3, log_start_offset=1)
    answer = world.connect().ask(request(1), 2)
    assert (answer.topics[0].partitions[0].error_code, answer.topics[0].partitions[0].low_watermark) == (0, 1)


def test_the_high_watermark_of_the_request_is_waited_for(world, three):
    peer = begin(world, -1)
    append(world)
    ask(world, 4, log_start_offset=3)
    world.turn()
    assert result(peer) == (0, 3)


def test_a_follower_that_does_not_delete_in_time(world, three):
    """The leader has deleted the records all the same."""
    peer = begin(world, 2, timeout_ms=1000)
    world.advance(0.9)
    assert not peer.answers
    world.advance(0.2)
    assert result(peer) == (errors.REQUEST_TIMED_OUT, 0) and three.log_start_offset == 2


def test_a_long_request_times_out_in_steps(world, three):
    """Its other partitions do not exist."""
    asked = request(2, timeout_ms=1000)
    row = messages.DeleteRecordsRequest.DeleteRecordsPartition
    asked.topics[0].partitions += [row(partition_index=index, offset=0) for index in range(1, 5000)]
    peer = world.connect()
    assert peer.ask(asked, 2) is NOTHING
    world.advance(2.0, 20)
    (answer,) = peer.answers
    codes = [row.error_code for row in answer.topics[0].partitions]
    assert codes == [errors.REQUEST_TIMED_OUT] + 4999 * [errors.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_follower_that_is_fenced_is_not_waited_for(world, three):
    peer = begin(world, 2)
    fence(world)
    world.turn()
    assert result(peer) == (0, 2)


def test_a_follower_that_has_not_fetched_yet_is_waited_for(world, led):
    peer = begin(world, 0)
    ask(world, 0, log_start_offset=0)
    world.turn()
    assert result(peer) == (0, 0)


def test_a_leader_that_leads_no_more_says_so(world, three):
    peer = begin(world, 2)
    this = world.broker.node_id
    world.controller.metadata_log.submit(events.FenceBroker(this, world.broker.image.brokers[this].epoch))
    world.turn()
    assert world.broker.image.topics["led"].partitions[0].leader == OTHER
    assert result(peer) == (errors.NOT_LEADER_OR_FOLLOWER, -1)


def test_a_topic_that_is_deleted_meanwhile_is_unknown(world, three):
    peer = begin(world, 2)
    world.connect().ask(messages.DeleteTopicsRequest(topic_names=["led"], timeout_ms=1000), 5)
    world.turn()
    assert result(peer) == (errors.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_a_log_that_fails_meanwhile(world, three):
    peer = begin(world, 2)
    failure = errors.StorageFailure("write", three.directory, OSError(5, "Input/output error"))
    three.offline = failure
    world.broker.log_failed(three, failure)
    world.turn()
    assert result(peer) == (errors.KAFKA_STORAGE_ERROR, -1)
