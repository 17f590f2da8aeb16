"""The cache of fetch sessions: which session replaces which, and the limit of all partitions."""

import random

import pytest

from pykafkad import errors
from pykafkad.handlers import fetch_sessions
from pykafkad.handlers.fetch_sessions import FetchSessions
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce


def cache(slots):
    return FetchSessions(slots, random.Random(1))


def create(sessions, size, now, **fields):
    return sessions.create(dict.fromkeys(range(size)), False, now, **fields)


def test_a_session_unused_for_two_minutes_is_evicted_first():
    sessions = cache(2)
    stale, used = create(sessions, 50, 0.0), create(sessions, 1, 0.0)
    sessions.touch(used, 100.0)
    assert create(sessions, 1, 120.0) is None
    assert create(sessions, 1, 120.1) is not None
    assert sessions.get(stale.id) is None and sessions.get(used.id) is used


@pytest.mark.parametrize("size, taken", [(1, False), (2, False), (3, True)])
def test_only_a_larger_session_replaces_a_settled_one(size, taken):
    sessions = cache(2)
    small, large = create(sessions, 2, 0.0), create(sessions, 9, 0.0)
    for each in (small, large):
        sessions.touch(each, 121.0)
    assert (create(sessions, size, 122.0) is not None) is taken
    assert (sessions.get(small.id) is None) is taken and sessions.get(large.id) is large


def test_a_young_consumer_session_is_replaced_only_by_followers():
    sessions = cache(1)
    young = create(sessions, 1, 0.0)
    assert create(sessions, 100, 1.0) is None
    follower = create(sessions, 1, 1.0, privileged=True)
    assert follower is not None and sessions.get(young.id) is None
    assert create(sessions, 100, 2.0, privileged=True) is None, "a young follower is safe from followers"
    sessions.touch(follower, 130.0)
    assert create(sessions, 100, 131.0) is None, "and a settled one from consumers"
    assert create(sessions, 100, 131.0, privileged=True) is not None


def test_settled_is_decided_at_the_last_use():
    """As in Kafka, an age of two minutes counts only if the session was used after them."""
    sessions = cache(2)
    first, second = create(sessions, 1, 0.0), create(sessions, 1, 0.0)
    sessions.touch(first, 119.0)
    sessions.touch(second, 119.0)
    assert create(sessions, 5, 125.0) is None
    sessions.touch(second, 125.0)
    assert create(sessions, 5, 126.0) is not None and sessions.get(second.id) is None


def test_a_cache_without_slots_gives_no_sessions():
    assert create(cache(0), 1, 0.0) is None


def test_all_sessions_together_stay_within_the_limit(monkeypatch):
    monkeypatch.setattr(fetch_sessions, "MAX_PARTITIONS", 10)
    sessions = cache(100)
    first = create(sessions, 6, 0.0)
    assert create(sessions, 5, 0.0) is None and sessions.partitions == 6
    second = create(sessions, 4, 0.0)
    first.partitions["one more"] = None
    assert not sessions.touch(first, 1.0) and sessions.get(first.id) is None and sessions.partitions == 4
    sessions.remove(second.id)
    sessions.remove(second.id)
    assert sessions.partitions == 0


def test_a_session_that_grows_beyond_the_limit_ends(world, peer, monkeypatch):
    world.create_topic("t", 3)
    opened = peer.ask(fetch("t", {0: 0}, session_epoch=0), 11)
    monkeypatch.setattr(fetch_sessions, "MAX_PARTITIONS", 2)
    answer = peer.ask(fetch("t", {1: 0, 2: 0}, session_id=opened.session_id, session_epoch=1), 11)
    assert answer.error_code == errors.FETCH_SESSION_ID_NOT_FOUND and answer.session_id == 0


def test_epochs_wrap_to_1():
    session = create(cache(1), 1, 0.0)
    session.epoch = 2**31 - 2
    session.next_epoch()
    assert session.epoch == 2**31 - 1
    session.next_epoch()
    assert session.epoch == 1, "0 would ask for another session"


@pytest.fixture
def opened(world, peer):
    """The id of a session of three partitions, each with one record."""
    world.create_topic("t", 3)
    for index in range(3):
        peer.ask(produce("t", {index: batch(b"x" * 100)}), 8)
    answer = peer.ask(fetch("t", {0: 0, 1: 0, 2: 0}, session_epoch=0), 11)
    assert [row.partition_index for row in answer.responses[0].partitions] == [0, 1, 2]
    return answer.session_id


def told(peer, session_id, epoch, offsets=None, **fields):
    """The partitions of an incremental answer."""
    answer = peer.ask(fetch("t", offsets or {}, session_id=session_id, session_epoch=epoch, **fields), 11)
    assert answer.error_code == 0
    return [row.partition_index for topic in answer.responses for row in topic.partitions]


def test_partitions_take_turns_where_the_limit_is_one_batch(peer, opened):
    assert [told(peer, opened, epoch, max_bytes=1) for epoch in range(1, 6)] == [[0], [1], [2], [0], [1]]


def test_a_forgotten_partition_is_not_answered_again(peer, opened):
    assert told(peer, opened, 1, forget=[1]) == [0, 2]
    assert told(peer, opened, 2) == [0, 2]


def test_a_new_start_of_a_log_is_news_once(world, peer, opened):
    assert told(peer, opened, 1, {0: 1, 1: 1, 2: 1}) == []
    request = messages.DeleteRecordsRequest
    rows = [request.DeleteRecordsPartition(partition_index=1, offset=1)]
    topics = [request.DeleteRecordsTopic(name="t", partitions=rows)]
    world.connect().ask(request(topics=topics, timeout_ms=1000), 2)
    assert [told(peer, opened, epoch) for epoch in (2, 3)] == [[1], []]


@pytest.mark.parametrize("epoch", [1, 3])
def test_a_request_of_another_epoch_is_refused(peer, opened, epoch):
    assert told(peer, opened, 1) == [0, 1, 2]
    answer = peer.ask(fetch("t", {}, session_id=opened, session_epoch=epoch), 11)
    assert answer.error_code == errors.INVALID_FETCH_SESSION_EPOCH
    assert told(peer, opened, 2) == [0, 1, 2], "the session goes on"


def test_a_caller_with_an_old_epoch_learns_the_leader(world, peer):
    world.create_topic("t")
    world.broker.image.partition("t", 0).leader_epoch = 5
    world.broker.partitions.get("t", 0).lead(5, sole_replica=True)
    topic_id = world.broker.image.topics["t"].id
    request = fetch("t", {0: 0}, topic_id=topic_id)
    request.topics[0].partitions[0].current_leader_epoch = 4
    for version in (15, 16, 18):
        answer = peer.ask(request, version)
        row = answer.responses[0].partitions[0]
        assert row.error_code == errors.FENCED_LEADER_EPOCH
        told = (
            row.current_leader.leader_id,
            row.current_leader.leader_epoch,
            [end.node_id for end in answer.node_endpoints],
        )
        assert told == ((world.broker.node_id, 5, [world.broker.node_id]) if version >= 16 else (-1, -1, []))
