"""The cache of fetch sessions: who has to make room for whom, and what all hold together."""

import random

import pytest

from pykafkad import errors
from pykafkad.handlers import fetch_sessions
from pykafkad.handlers.fetch_sessions import FetchSessions
from tests.handlers.requests import fetch


def cache(slots):
    return FetchSessions(slots, random.Random(1))


def create(sessions, size, now, **fields):
    return sessions.create(dict.fromkeys(range(size)), False, now, **fields)


def test_who_was_unused_for_two_minutes_goes_first():
    sessions = cache(2)
    stale, used = create(sessions, 50, 0.0), create(sessions, 1, 0.0)
    sessions.touch(used, 100.0)
    assert create(sessions, 1, 120.0) is None
    assert create(sessions, 1, 120.1) is not None
    assert sessions.get(stale.id) is None and sessions.get(used.id) is used


@pytest.mark.parametrize("size, taken", [(1, False), (2, False), (3, True)])
def test_only_a_larger_one_takes_the_place_of_a_settled_one(size, taken):
    sessions = cache(2)
    small, large = create(sessions, 2, 0.0), create(sessions, 9, 0.0)
    for each in (small, large):
        sessions.touch(each, 121.0)
    assert (create(sessions, size, 122.0) is not None) is taken
    assert (sessions.get(small.id) is None) is taken and sessions.get(large.id) is large


def test_a_young_one_is_safe_from_consumers_but_not_from_followers():
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
    """As in Kafka: two minutes of age count only once the session was used after them."""
    sessions = cache(2)
    first, second = create(sessions, 1, 0.0), create(sessions, 1, 0.0)
    sessions.touch(first, 119.0)
    sessions.touch(second, 119.0)
    assert create(sessions, 5, 125.0) is None
    sessions.touch(second, 125.0)
    assert create(sessions, 5, 126.0) is not None and sessions.get(second.id) is None


def test_no_slots_no_sessions():
    assert create(cache(0), 1, 0.0) is None


def test_all_sessions_together_hold_no_more_than_the_bound(monkeypatch):
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


def test_a_session_that_grows_beyond_the_bound_is_gone(world, peer, monkeypatch):
    world.create_topic("t", 3)
    opened = peer.ask(fetch("t", {0: 0}, session_epoch=0), 11)
    monkeypatch.setattr(fetch_sessions, "MAX_PARTITIONS", 2)
    answer = peer.ask(fetch("t", {1: 0, 2: 0}, session_id=opened.session_id, session_epoch=1), 11)
    assert answer.error_code == errors.FETCH_SESSION_ID_NOT_FOUND and answer.session_id == 0


def test_an_old_epoch_is_told_the_leader(world, peer):
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
