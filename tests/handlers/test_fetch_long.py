"""Fetch for thousands of partitions: events between the steps. `test_fetch_again.py` repeats the tests of Fetch."""

import random

import pytest

from pykafkad import errors
from pykafkad.handlers import fetch_long
from pykafkad.server import dispatch, long_request_limiter
from pykafkad.server.incremental_tasks import BUDGET_SECONDS
from pykafkad.wire import messages
from tests import seeds
from tests.handlers.requests import fetch
from tests.handlers.test_fetch import fill, rows_of
from tests.server.test_incremental_tasks import STEP_SECONDS, TickingClock
from tests.server.test_long_request_limiter import turns_until
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import NOTHING, World

COUNT = 120


@pytest.fixture(autouse=True)
def _all_are_long(monkeypatch):
    """Every request is long, with one partition per step."""
    monkeypatch.setattr(dispatch, "LONG_FRAME_BYTES", 0)
    monkeypatch.setattr(fetch_long, "AT_ONCE", 1)


@pytest.fixture
def slow():
    """A world in which every step takes time, with a topic of many partitions."""
    made = World("/data", disk=MemoryDisk(), clock=TickingClock(), auto_create_topics_enable="false")
    made.create_topic("t", COUNT)
    made.create_topic("u", 2)
    yield made
    waits = made.broker.purgatory
    assert (
        made.runtime.metrics.unexpected_errors == 0
        and not waits._listening
        and waits.count == 0
        and type(waits).__name__ == "Purgatory"
    )
    assert not len(made.broker.dispatcher.long_request_limiter)


def asking(count=COUNT, **keywords):
    return fetch("t", dict.fromkeys(range(count), 0), **{"max_wait_ms": 60_000, **keywords})


def delayed_fetch(world, **keywords):
    peer = world.connect()
    assert peer.ask(asking(**keywords), 11) is NOTHING
    turns_until(world, lambda: peer.connection.delayed)
    return peer


def append(world, topic="t", partition=COUNT - 1):
    fill(world, topic, partition)


def served(world, request, version, long, monkeypatch):
    """The bytes of the answer to a request."""
    monkeypatch.setattr(dispatch, "LONG_FRAME_BYTES", 0 if long else 1 << 30)
    peer = world.connect()
    raw = []
    peer.take = raw.append
    peer.send(request, version)
    turns_until(world, lambda: raw)
    return b"".join(raw)


@pytest.mark.parametrize("seed", seeds.sampled(range(40), 8))
def test_a_long_and_a_short_request_have_the_same_answer_bytes(world, seed, monkeypatch):
    """With present and absent partitions, offsets in and out of range, old epochs, and every limit."""
    drawn = random.Random(seed)
    version = drawn.randrange(4, 19)
    ids = {name: world.create_topic(name, 4) for name in ("a", "b", "c")} | {
        "no": bytes(range(16)),
        "none": bytes(range(1, 17)),
    }
    for name in ("a", "b", "c"):
        for partition in range(4):
            fill(world, name, partition, drawn.choice([0, 1, 2, 4]), size=drawn.choice([100, 1000]))
    monkeypatch.setattr(fetch_long, "AT_ONCE", drawn.choice([1, 2, 3, 100]))
    q = messages.FetchRequest
    topics = []
    for _ in range(drawn.randrange(8)):
        name = drawn.choice(list(ids))
        rows = []
        for _ in range(drawn.randrange(1, 5)):
            asked = {"current_leader_epoch": drawn.choice([-1, -1, -1, 0, 5])} if version >= 9 else {}
            if version >= 12:
                asked["last_fetched_epoch"] = drawn.choice([-1, -1, -1, 0, 3])
            limit = drawn.choice([1 << 20, 1 << 20, 1500, 10, 0, -1])
            rows.append(
                q.FetchPartition(
                    partition=drawn.randrange(6),
                    fetch_offset=drawn.choice([0, 0, 1, 2, 7, -1]),
                    partition_max_bytes=limit,
                    **asked,
                )
            )
        topics.append(q.FetchTopic(topic=name, topic_id=ids[name] if version >= 13 else bytes(16), partitions=rows))
    request = q(
        max_wait_ms=drawn.choice([0, 0, -1]), min_bytes=drawn.choice([0, 1, 5000]),
        max_bytes=drawn.choice([1 << 20, 3500, 2500, 0, -1]),
        isolation_level=drawn.choice([0, 0, 0, 1, 1, 7]), topics=topics,
    )  # fmt: skip
    if version < 15:
        request.replica_id = drawn.choice([-1] * 7 + [3])
    assert served(world, request, version, True, monkeypatch) == served(world, request, version, False, monkeypatch)


@pytest.mark.parametrize("max_bytes", [1, 2500, 3500, 4700])
def test_max_bytes_covers_all_partitions_together(world, max_bytes, monkeypatch):
    world.create_topic("t", 3)
    for partition in range(3):
        fill(world, "t", partition, 2, size=1000)
    request = fetch("t", dict.fromkeys(range(3), 0), max_bytes=max_bytes)
    long = served(world, request, 11, True, monkeypatch)
    assert long == served(world, request, 11, False, monkeypatch) and max(1000, max_bytes - 1000) < len(long) < max(
        1500, max_bytes + 200
    )


def test_a_leader_of_several_partitions_is_named_once(world, monkeypatch):
    topic_id = world.create_topic("t", 4)
    for partition in range(4):
        world.broker.partitions.get("t", partition).assign_epoch(3)
    wrong = {partition: {"fetch_offset": 0, "current_leader_epoch": 1 + partition} for partition in range(4)}
    request = fetch("t", wrong, topic_id=topic_id)
    long = served(world, request, 16, True, monkeypatch)
    assert long == served(world, request, 16, False, monkeypatch) and long.count(b"localhost") == 1


def test_partitions_that_are_absent_from_the_start_do_not_end_the_wait(slow):
    peer = slow.connect()
    assert peer.ask(fetch("u", dict.fromkeys(range(20), 0), max_wait_ms=60_000, min_bytes=1000), 11) is NOTHING
    append(slow, "u", 1)
    for _ in range(20):
        slow.turn()
    assert peer.connection.delayed and not peer.answers
    slow.connect().ask(messages.DeleteTopicsRequest(topic_names=["u"], timeout_ms=1000), 5)
    turns_until(slow, lambda: peer.answers)
    assert {row.error_code for row in rows_of(peer.answers[0]).values()} == {errors.UNKNOWN_TOPIC_OR_PARTITION}


def test_the_work_is_spread_over_many_turns(slow):
    """The first read, each later one, and the answer."""
    other = slow.connect()
    peer = slow.connect()
    began = slow.clock._now
    peer.send(asking(max_wait_ms=30_000), 11)
    assert slow.clock._now - began < BUDGET_SECONDS + 50 * STEP_SECONDS and slow.runtime.tasks
    turns = 0
    for is_done in (lambda: peer.connection.delayed, lambda: peer.answers):
        while not is_done():
            began = slow.clock._now
            slow.turn()
            assert slow.clock._now - began < BUDGET_SECONDS + 50 * STEP_SECONDS
            assert other.ask(messages.ApiVersionsRequest(), 0).error_code == 0
            turns += 2
        slow.clock.advance(30.0)
    # Decoded, read, its logs collected, read again; after the wait read a third time, answered and encoded.
    assert turns * BUDGET_SECONDS > 6 * COUNT * STEP_SECONDS
    assert len(rows_of(peer.answers[0])) == COUNT


@pytest.mark.parametrize("turns", [0, 2, 5, 8, 11, 14, 20])
def test_an_append_between_any_two_steps_wakes_it(slow, turns):
    peer = slow.connect()
    assert peer.ask(asking(), 11) is NOTHING
    for _ in range(turns):
        slow.turn()
    fill(slow, "t", 0)
    turns_until(slow, lambda: peer.answers)
    assert [index for index, row in rows_of(peer.answers[0]).items() if bytes(row.records)] == [0]


def test_only_its_own_partitions_wake_it(slow):
    peer = delayed_fetch(slow, count=COUNT - 1)
    append(slow, "u", 0)
    append(slow)
    for _ in range(20):
        slow.turn()
        assert not slow.runtime.tasks and peer.connection.delayed and not peer.answers
    append(slow, partition=5)
    turns_until(slow, lambda: peer.answers)
    assert len(bytes(rows_of(peer.answers[0])[5].records)) > 100


def test_too_few_bytes_do_not_end_the_wait_and_the_deadline_does(slow):
    peer = delayed_fetch(slow, min_bytes=400)
    for number in range(2):
        append(slow)
        assert slow.runtime.tasks
        turns_until(slow, lambda: peer.connection.delayed)
        assert not peer.answers, number
    slow.clock.advance(60.0)
    turns_until(slow, lambda: peer.answers)
    assert len(bytes(rows_of(peer.answers[0])[COUNT - 1].records)) > 200


def test_the_deadline_ends_a_fetch_that_is_touched_all_the_time(slow):
    peer = delayed_fetch(slow, min_bytes=1 << 19, max_wait_ms=1000)
    began = slow.clock._now
    turns = 0
    while not peer.answers:
        append(slow)
        slow.clock.advance(0.005)
        turns += 1
        assert turns < 300
    assert slow.clock._now - began + 0.05 >= 1.0 and len(rows_of(peer.answers[0])) == COUNT


def test_a_replaced_log_ends_the_wait(slow):
    """It is touched when it is closed, and never again."""
    peer = delayed_fetch(slow)
    log = slow.broker.partitions.get("t", 5)
    log.closed = True
    slow.broker.purgatory.touch(log)
    turns_until(slow, lambda: peer.answers)
    assert len(rows_of(peer.answers[0])) == COUNT


def test_a_deadline_that_passes_while_it_is_read_ends_the_wait(slow):
    peer = slow.connect()
    assert peer.ask(asking(max_wait_ms=1), 11) is NOTHING
    turns_until(slow, lambda: peer.answers)
    assert len(rows_of(peer.answers[0])) == COUNT


def test_the_next_request_ends_the_wait_also_while_it_is_read(slow):
    for turns in (0, 5, 100):
        peer = slow.connect()
        peer.send(asking(), 11)
        for _ in range(turns):
            slow.turn()
        peer.send(messages.ApiVersionsRequest(), 0)
        turns_until(slow, lambda peer=peer: len(peer.answers) == 2)
        assert [type(answer).__name__ for answer in peer.answers] == ["FetchResponse", "ApiVersionsResponse"]


@pytest.mark.parametrize("turns", [0, 5, 10, 100])
def test_the_end_of_its_connection_at_any_step_leaves_nothing(slow, turns):
    peer = slow.connect()
    peer.send(asking(), 11)
    for _ in range(turns):
        slow.turn()
    peer.end()
    slow.turn()
    assert not slow.runtime.tasks and not peer.answers


def test_the_end_of_its_connection_after_a_wake_leaves_nothing(slow):
    peer = delayed_fetch(slow, min_bytes=10_000)
    append(slow)
    assert slow.runtime.tasks and peer.connection.delayed is None
    peer.end()
    slow.turn()
    assert not slow.runtime.tasks


def test_a_deleted_topic_ends_the_wait(slow):
    peer = delayed_fetch(slow)
    slow.connect().ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    turns_until(slow, lambda: peer.answers)
    assert {row.error_code for row in rows_of(peer.answers[0]).values()} == {errors.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_stop_of_the_broker_answers_it_at_any_step(slow):
    waiting = delayed_fetch(slow)
    reading = slow.connect()
    reading.send(asking(), 11)
    slow.stop()
    for peer in (waiting, reading):
        peer.take_what_came()
        assert len(rows_of(peer.answers[0])) == COUNT


def test_a_fetch_without_room_to_wait_is_answered_at_once(slow, monkeypatch):
    monkeypatch.setattr(long_request_limiter, "LANE_BYTES", 100)
    waiting = delayed_fetch(slow)
    peer = slow.connect()
    peer.send(asking(), 11)
    turns_until(slow, lambda: peer.answers)
    assert len(rows_of(peer.answers[0])) == COUNT and waiting.connection.delayed
    waiting.end()


def test_a_bug_in_a_delayed_fetch_ends_only_its_connection(slow, monkeypatch):
    peer, other = delayed_fetch(slow), delayed_fetch(slow)
    long = peer.connection.delayed.operation._fetch
    long._ctx = None
    append(slow)
    turns_until(slow, lambda: other.answers)
    assert peer.closed and not peer.answers and slow.runtime.metrics.unexpected_errors == 1
    slow.turn()
    slow.runtime.metrics.unexpected_errors = 0


class TestSessionsBetweenSteps:
    def opened(self, slow):
        peer = slow.connect()
        peer.send(asking(session_epoch=0, max_wait_ms=0), 11)
        turns_until(slow, lambda: peer.answers)
        assert len(rows_of(peer.answers[0])) == COUNT
        return peer, peer.answers[0].session_id

    def test_an_incremental_answer_has_only_news(self, slow):
        peer, session_id = self.opened(slow)
        append(slow)
        peer.send(asking(session_id=session_id, session_epoch=1, max_wait_ms=0), 11)
        turns_until(slow, lambda: len(peer.answers) == 2)
        assert list(rows_of(peer.answers[1])) == [COUNT - 1]

    def test_a_second_request_of_the_same_epoch_is_refused_at_once(self, slow):
        peer, session_id = self.opened(slow)
        second = slow.connect()
        for each in (peer, second):
            each.send(asking(session_id=session_id, session_epoch=1, max_wait_ms=0), 11)
        turns_until(slow, lambda: second.answers and len(peer.answers) == 2)
        assert sorted((peer.answers[1].error_code, second.answers[0].error_code)) == [
            0,
            errors.INVALID_FETCH_SESSION_EPOCH,
        ]

    def test_a_session_that_advances_between_the_steps_is_an_error(self, slow):
        peer, session_id = self.opened(slow)
        second = slow.connect()
        peer.send(asking(session_id=session_id, session_epoch=1, max_wait_ms=0), 11)
        while slow.broker.fetch_sessions.get(session_id).epoch == 1:
            slow.turn()
        second.send(fetch("t", {}, session_id=session_id, session_epoch=2), 11)
        turns_until(slow, lambda: second.answers and len(peer.answers) == 2)
        assert (peer.answers[1].error_code, second.answers[0].error_code) == (errors.INVALID_FETCH_SESSION_EPOCH, 0)

    def test_a_session_that_ends_between_the_steps_is_an_error(self, slow):
        peer, session_id = self.opened(slow)
        peer.send(asking(session_id=session_id, session_epoch=1, max_wait_ms=0), 11)
        while slow.broker.fetch_sessions.get(session_id).epoch == 1:
            slow.turn()
        slow.broker.fetch_sessions.remove(session_id)
        turns_until(slow, lambda: len(peer.answers) == 2)
        assert peer.answers[1].error_code == errors.FETCH_SESSION_ID_NOT_FOUND and len(slow.broker.fetch_sessions) == 0

    @pytest.mark.parametrize("turns", range(1, 12))
    def test_an_answer_is_complete_or_an_error(self, slow, turns):
        peer = slow.connect()
        peer.send(asking(session_epoch=0, max_wait_ms=0), 11)
        for _ in range(turns):
            slow.turn()
        for session in slow.broker.fetch_sessions._sessions.values():
            session.next_epoch()
        turns_until(slow, lambda: peer.answers)
        assert len(rows_of(peer.answers[0])) == (0 if peer.answers[0].error_code else COUNT)
