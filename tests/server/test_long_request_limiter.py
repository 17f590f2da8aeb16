"""Long requests have places for so many bytes of their frames, and wait for them in order."""

import random

import pytest

from pykafkad import errors
from pykafkad.handlers.context import DEFERRED
from pykafkad.server import long_request_limiter as module
from pykafkad.server.dispatch import LONG_FRAME_BYTES
from pykafkad.server.long_request_limiter import LongRequestLimiter
from pykafkad.wire import messages
from tests.server.test_incremental_tasks import LONG_NAME, TickingClock, fetching
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import NOTHING, World

COUNT = 1_000
TOPICS = [f"unknown-{number:06}" for number in range(COUNT)]


def asking(client_id=LONG_NAME, count=COUNT):
    """A request that is long for its client's name, so that few rows will do."""
    request = messages.MetadataRequest
    return request(topics=[request.MetadataRequestTopic(name=name) for name in TOPICS[:count]])


SIZE_BYTES = 32_766 + 32 * COUNT
"""A little less than such a frame."""


@pytest.fixture
def world(monkeypatch):
    monkeypatch.setattr(module, "LANE_BYTES", int(3.5 * SIZE_BYTES))
    made = World("/data", disk=MemoryDisk(), clock=TickingClock(), auto_create_topics_enable="false")
    yield made
    assert made.runtime.metrics.unexpected_errors == 0


def places_of(world):
    return world.broker.dispatcher.long_request_limiter


def turns_until(world, condition):
    turns = 0
    while not condition():
        world.turn()
        turns += 1
        assert turns < 2000
    return turns


def test_no_more_bytes_are_in_work_than_there_are_places_for(world):
    """The others wait as frames, and are served in the order in which they came; a short one is answered at once
    meanwhile."""
    peers = [world.connect() for _ in range(8)]
    short = world.connect()
    for peer in peers:
        peer.send(asking(), 12, client_id=LONG_NAME)
    assert len(world.runtime.tasks) == 3 and len(places_of(world)) == 8
    answered = []
    for _ in range(2000):
        world.turn()
        answered += [peer for peer in peers if peer.answers and peer not in answered]
        assert len(world.runtime.tasks) <= 3
        if len(answered) == 8:
            break
        assert short.ask(asking(count=1), 12).topics
    # Three at a time, which end together.
    order = [peers.index(peer) // 3 for peer in answered]
    assert order == sorted(order) and {len(peer.answers[0].topics) for peer in peers} == {COUNT}
    assert not len(places_of(world)) and not world.runtime.tasks


def test_one_that_is_longer_than_all_places_gets_them_alone(world, monkeypatch):
    monkeypatch.setattr(module, "LANE_BYTES", SIZE_BYTES // 2)
    first, second = world.connect(), world.connect()
    for peer in (first, second):
        peer.send(asking(), 12, client_id=LONG_NAME)
    assert len(world.runtime.tasks) == 1
    turns_until(world, lambda: first.answers)
    assert not second.answers
    turns_until(world, lambda: second.answers)
    assert len(second.answers[0].topics) == COUNT


def test_very_long_ones_have_a_lane_of_their_own(world, monkeypatch):
    """However many of them wait, one that is done in a moment does not wait for their end."""
    monkeypatch.setattr(module, "VERY_LONG_BYTES", SIZE_BYTES)
    monkeypatch.setattr(module, "LANE_BYTES", SIZE_BYTES)
    very_long = [world.connect() for _ in range(3)]
    for peer in very_long:
        peer.send(asking(), 12, client_id=LONG_NAME)
    assert len(world.runtime.tasks) == 1
    long = world.connect()
    long.send(asking(count=10), 12, client_id=LONG_NAME)
    assert long.answers or turns_until(world, lambda: long.answers) < 5
    assert not any(peer.answers for peer in very_long)
    turns_until(world, lambda: all(peer.answers for peer in very_long))


@pytest.mark.parametrize("whose", ["in work", "first", "last"])
def test_a_closed_connection_gives_its_place_back_at_once(world, whose):
    peers = [world.connect() for _ in range(5)]
    for peer in peers:
        peer.send(asking(), 12, client_id=LONG_NAME)
    gone = peers[{"in work": 1, "first": 3, "last": 4}[whose]]
    gone.end()
    assert len(places_of(world)) == 4
    world.turn()
    assert len(world.runtime.tasks) == 3
    turns_until(world, lambda: all(peer.answers for peer in peers if peer is not gone))
    assert not len(places_of(world)) and not gone.answers


def test_one_that_is_malformed_gives_its_place_back(world):
    peers = [world.connect() for _ in range(5)]
    for peer in peers[:4]:
        peer.send_bytes(peer.encode(asking(), 12, LONG_NAME)[:-3] + b"\xff\xff\xff")
    peers[4].send(asking(), 12, client_id=LONG_NAME)
    turns_until(world, lambda: peers[4].answers)
    assert all("MetadataRequest" in peer.closed for peer in peers[:4]) and not len(places_of(world))


def test_one_that_meets_a_bug_gives_its_place_back(world, monkeypatch):
    def handle(ctx, request):
        raise RuntimeError("a bug")

    peer = world.connect()
    assert peer.ask(asking(count=1), 13).topics
    monkeypatch.setattr(world.broker.dispatcher._routes[3], "handler", handle)
    peer.send(asking(), 13, client_id=LONG_NAME)
    turns_until(world, lambda: len(peer.answers) == 2)
    assert (
        peer.answers[1].error_code == errors.UNKNOWN_SERVER_ERROR and not len(places_of(world)) and peer.closed is None
    )
    world.runtime.metrics.unexpected_errors -= 1


def test_a_stop_answers_also_those_that_wait_for_a_place(world):
    peers = [world.connect() for _ in range(8)]
    for peer in peers:
        peer.send(asking(), 12, client_id=LONG_NAME)
    world.stop()
    for peer in peers:
        peer.take_what_came()
        assert len(peer.answers[0].topics) == COUNT
    assert not len(places_of(world))


def test_what_comes_behind_one_that_waits_for_its_place_is_answered_after_it(world):
    peers = [world.connect() for _ in range(4)]
    for peer in peers:
        peer.send(asking(), 12, client_id=LONG_NAME)
    peers[3].send(asking(count=1), 12)
    turns_until(world, lambda: len(peers[3].answers) == 2)
    assert [len(answer.topics) for answer in peers[3].answers] == [COUNT, 1]


# --- those that wait for others
# -----------------------------------------------------------------------------------------


def test_a_fetch_that_waits_for_records_has_no_place(world):
    world.create_topic("t", 10)
    peers = [world.connect() for _ in range(4)]
    for peer in peers:
        peer.send(fetching(10), 11, client_id=LONG_NAME)
    turns_until(world, lambda: not world.runtime.tasks)
    assert all(peer.connection.delayed for peer in peers)
    other = world.connect()
    other.send(asking(), 12, client_id=LONG_NAME)
    turns_until(world, lambda: other.answers)
    world.broker.connection_lost(peers[0].connection)
    world.advance(60.0)
    turns_until(world, lambda: all(peer.answers for peer in peers[1:]))
    assert not len(places_of(world))


def test_a_fetch_beyond_what_may_wait_is_answered_at_once(world, monkeypatch):
    """With what there is: nothing. Its wait is a maximum."""
    monkeypatch.setattr(module, "LANE_BYTES", 80_000)
    world.create_topic("t", 10)
    peers = [world.connect() for _ in range(3)]
    for peer in peers:
        peer.send(fetching(10), 11, client_id=LONG_NAME)
        turns_until(world, lambda: not world.runtime.tasks)
    assert [len(peer.answers) for peer in peers] == [0, 0, 1]
    assert [row.error_code for row in peers[2].answers[0].responses[0].partitions] == [0] * 10
    # One that ends leaves its room to another.
    peers[0].send(asking(count=1), 12)
    turns_until(world, lambda: len(peers[0].answers) == 2)
    peers[2].send(fetching(10), 11, client_id=LONG_NAME)
    turns_until(world, lambda: not world.runtime.tasks)
    assert peers[2].connection.delayed


def joining(metadata, member_id=""):
    request = messages.JoinGroupRequest
    protocol = request.JoinGroupRequestProtocol(name="range", metadata=metadata)
    return request(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )


def test_a_member_that_waits_for_its_group_has_no_place(world, monkeypatch):
    """Or the one that it waits for would not get any."""
    monkeypatch.setattr(module, "LANE_BYTES", LONG_FRAME_BYTES)
    world.create_topic("__consumer_offsets", 1)
    first, second = world.connect(), world.connect()
    metadata = bytes(LONG_FRAME_BYTES)
    first.send(joining(metadata), 3)
    turns_until(world, lambda: first.answers)
    assert first.answers[0].error_code == 0 and first.answers[0].leader == first.answers[0].member_id
    second.send(joining(metadata), 3)
    for _ in range(100):
        world.turn()
    assert not second.answers and not len(places_of(world))
    first.send(joining(metadata, first.answers[0].member_id), 3)
    turns_until(world, lambda: second.answers and len(first.answers) == 2)
    assert [answer.error_code for answer in (*first.answers, *second.answers)] == [0, 0, 0]


def test_a_change_of_the_metadata_keeps_its_place_until_it_is_answered(world, monkeypatch):
    """What the controller has not come to yet is still all there."""
    monkeypatch.setattr(module, "LANE_BYTES", LONG_FRAME_BYTES)
    request = messages.IncrementalAlterConfigsRequest
    change = [request.AlterableConfig(name="retention.ms", config_operation=0, value="1000")]
    altering = request(
        resources=[request.AlterConfigsResource(resource_type=2, resource_name=name, configs=change) for name in TOPICS]
    )
    peers = [world.connect() for _ in range(3)]
    for peer in peers:
        peer.send(altering, 1)
    for _ in range(2000):
        world.turn()
        assert not world.controller.metadata_log._events or len(world.runtime.tasks) == 1
        if all(peer.answers for peer in peers):
            break
    assert {row.error_code for peer in peers for row in peer.answers[0].responses} == {
        errors.UNKNOWN_TOPIC_OR_PARTITION
    }
    assert not len(places_of(world))


# --- the lanes themselves
# -------------------------------------------------------------------------------------------------


def test_whatever_comes_and_goes_the_order_is_kept_and_no_byte_is_lost(monkeypatch):
    """Against a list of who came when."""
    monkeypatch.setattr(module, "LANE_BYTES", 100)
    monkeypatch.setattr(module, "VERY_LONG_BYTES", 1_000)
    drawn = random.Random(7)
    for _ in range(200):
        places, inside, waiting, begun = LongRequestLimiter(), [], [], []
        sizes = {}
        for number in range(30):
            sizes[number] = drawn.choice([1, 10, 60, 100, 500])
            if places.take(number, sizes[number], lambda number=number, begun=begun: begun.append(number)):
                assert not waiting
                inside.append(number)
            else:
                waiting.append(number)
            if drawn.random() < 0.5:
                gone = drawn.choice(inside + waiting)
                (inside if gone in inside else waiting).remove(gone)
                places.leave(gone)
                places.leave(gone)
            assert begun == waiting[: len(begun)]
            inside += begun
            del waiting[: len(begun)]
            begun.clear()
            total = sum(sizes[each] for each in inside)
            assert total <= 100 or len(inside) == 1
            assert not waiting or (inside and total + sizes[waiting[0]] > 100)
            assert len(places) == len(inside) + len(waiting)


def test_a_short_request_needs_no_place(world):
    peer = world.connect()
    assert peer.ask(asking(), 12) is NOTHING
    assert not len(places_of(world)) and len(world.runtime.tasks) == 1
    turns_until(world, lambda: peer.answers)


def answering(request):
    row = messages.MetadataResponse.MetadataResponseTopic
    return messages.MetadataResponse(topics=[row(name=topic.name) for topic in request.topics])


@pytest.mark.parametrize("second", ["a bug", "a bug later", "an answer"])
def test_a_long_request_is_answered_once(world, second):
    """Its answer is on its way for many turns, in which it is still in service."""

    def answer_and_stumble(ctx, request):
        world.runtime.replies.reply(ctx.token, answering(request))
        if second == "a bug":
            return 1 // 0
        elif second == "a bug later":
            world.runtime.replies.fail(ctx.token, RuntimeError("a bug"))
        else:
            world.runtime.replies.reply(ctx.token, answering(request))
        return DEFERRED

    route = world.broker.dispatcher._routes[3]
    world.broker.dispatcher._flexible_from[3] = route.load()
    route.handler = answer_and_stumble
    peer = world.connect()
    peer.send(asking(), 12, client_id=LONG_NAME)
    turns_until(world, lambda: not len(places_of(world)))
    assert peer.ask(messages.ApiVersionsRequest(), 0).api_keys and len(peer.answers) == 2
    assert world.runtime.metrics.unexpected_errors == (second != "an answer")
    world.runtime.metrics.unexpected_errors = 0


def test_a_long_request_that_wants_no_answer_gives_its_place_back(world):
    route = world.broker.dispatcher._routes[3]
    world.broker.dispatcher._flexible_from[3] = route.load()
    route.handler = lambda ctx, request: None
    peer = world.connect()
    peer.send(asking(), 12, client_id=LONG_NAME)
    turns_until(world, lambda: not len(places_of(world)))
    assert peer.connection.in_service is None and not peer.closed
