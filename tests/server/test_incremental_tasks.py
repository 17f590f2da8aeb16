"""Long requests are served in slices, and everybody else goes on meanwhile."""

import types

import pytest

from pykafkad import errors
from pykafkad.clock import ManualClock
from pykafkad.handlers import metadata
from pykafkad.metadata import controller, events
from pykafkad.server.incremental_tasks import BUDGET_SECONDS, FIRST_SECONDS, PAUSE_SECONDS, IncrementalTask
from pykafkad.wire import messages
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import NOTHING, World

STEP_SECONDS = 20e-6
COUNT = 2_000
LONG_NAME = "a client's name alone may make a frame long".ljust(32_766)


class TickingClock(ManualClock):
    """Every look at the time takes as long as a row would."""

    def now(self):
        self.advance(STEP_SECONDS)
        return super().now()


@pytest.fixture
def world():
    made = World("/data", disk=MemoryDisk(), clock=TickingClock(), auto_create_topics_enable="false")
    yield made


def asking(count=COUNT, prefix="unknown"):
    request = messages.MetadataRequest
    return request(topics=[request.MetadataRequestTopic(name=f"{prefix}-{number:06}") for number in range(count)])


def fetching(count):
    """A Fetch that finds nothing and waits for a minute."""
    request = messages.FetchRequest
    rows = [request.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in range(count)]
    return request(
        max_wait_ms=60_000, min_bytes=1, max_bytes=1000, topics=[request.FetchTopic(topic="t", partitions=rows)]
    )


def turn_until(world, peer, count=1):
    """Turns until that many answers are there; how many."""
    turns = 0
    while len(peer.answers) < count:
        world.turn()
        turns += 1
        assert turns < 1000
    return turns


def test_others_are_served_while_it_goes_on(world):
    """Reading, serving and writing of the long one each take several turns, and its answer is whole."""
    long, short = world.connect(), world.connect()
    assert long.ask(asking(), 12) is NOTHING
    for _ in range(10):
        assert len(short.ask(asking(3), 12).topics) == 3 and not long.answers
    turns = turn_until(world, long)
    assert (10 + turns) * BUDGET_SECONDS > 2.5 * COUNT * STEP_SECONDS
    assert [row.name for row in long.answers[0].topics] == [f"unknown-{number:06}" for number in range(COUNT)]
    assert world.runtime.metrics.unexpected_errors == 0 and not world.runtime.tasks


@pytest.mark.long
def test_no_turn_gives_them_more_than_the_budget(world):
    """However many there are: each new one gets a little in its first turn, and all share the later ones."""
    peers = [world.connect() for _ in range(20)]
    for peer in peers:
        began = world.clock._now
        peer.send(asking(), 12)
        assert world.clock._now - began < BUDGET_SECONDS + FIRST_SECONDS + BUDGET_SECONDS + 50 * STEP_SECONDS
    assert len(world.runtime.tasks) == 20
    while world.runtime.tasks:
        began = world.clock._now
        world.turn()
        assert world.clock._now - began < BUDGET_SECONDS + 50 * STEP_SECONDS
    assert [len(peer.answers) for peer in peers] == [1] * 20


def test_a_short_one_is_done_in_its_turn_however_much_of_it_is_gone(world):
    long, short = world.connect(), world.connect()
    long.put_on_the_wire(long.encode(asking(), 12))
    serve = short.connection.serve
    short.connection.serve = lambda *frame: world.clock.advance(BUDGET_SECONDS) or serve(*frame)
    short.put_on_the_wire(short.encode(asking(3), 12))
    world.turn()
    assert len(short.answers) == 1 and not long.answers


def test_those_under_way_take_turns(world):
    """However long each is, all get on."""
    tasks, steps = world.runtime.tasks, [0, 0, 0]

    def work(number):
        while True:
            steps[number] += 1
            yield

    for number in range(3):
        tasks.add(IncrementalTask(None, work(number), None, None))
    for turn in range(30):
        world.clock.advance(0.001)
        world.runtime.begin_turn()
        tasks.fired("")
        assert max(steps) > 0 and (turn < 3 or min(steps) > 0)
    assert max(steps) < 2 * min(steps)


def test_answers_keep_the_order_of_their_requests(world):
    peer = world.connect()
    peer.send(asking(), 12)
    peer.send(asking(1), 12)
    peer.send(asking(2), 12)
    turn_until(world, peer, 3)
    assert [len(answer.topics) for answer in peer.answers] == [COUNT, 1, 2]


def test_those_that_wait_get_their_part_of_busy_turns(world):
    """A new one at the beginning of each turn, and others' work behind it, leave them no time but their own."""
    long, short = world.connect(), world.connect()
    long.send(asking(), 12)
    serve = short.connection.serve
    short.connection.serve = lambda *frame: serve(*frame) or world.clock.advance(BUDGET_SECONDS)
    for _ in range(250):
        short.put_on_the_wire(short.encode(asking(1), 12))
        world.turn()
    assert len(long.answers[0].topics) == COUNT and len(short.answers) == 250


def test_a_fetch_that_was_read_in_slices_ends_for_what_waits_behind_it(world):
    """Its wait is a maximum, whether the next request came before it began or after."""
    world.create_topic("t", 300)
    peer = world.connect()
    peer.send(fetching(300), 11, client_id=LONG_NAME)
    assert peer.connection.delayed is None and world.runtime.tasks
    peer.send(asking(1), 12)
    turn_until(world, peer, 2)
    assert [type(answer).__name__ for answer in peer.answers] == ["FetchResponse", "MetadataResponse"]


def test_what_a_gone_connection_asked_is_dropped(world):
    peer = world.connect()
    peer.send(asking(), 12)
    peer.connection.close("ended by the peer")
    world.turn()
    assert not world.runtime.tasks and not peer.answers and world.runtime.metrics.unexpected_errors == 0


def test_a_long_request_that_is_malformed_ends_its_connection(world):
    """Its end comes turns after its beginning."""
    peer, other = world.connect(), world.connect()
    frame = peer.encode(asking(), 12)
    peer.send_bytes(frame[:-3] + b"\xff\xff\xff")
    for _ in range(50):
        world.turn()
    assert "MetadataRequest" in peer.closed and not world.runtime.tasks
    assert len(other.ask(asking(1), 12).topics) == 1 and world.runtime.metrics.unexpected_errors == 0


def test_a_bug_in_a_late_slice_is_that_requests_alone(world, monkeypatch):
    def handle(ctx, request):
        yield from [None] * COUNT
        raise RuntimeError("late")

    route = world.broker.dispatcher._routes[3]
    peer, other = world.connect(), world.connect()
    peer.ask(asking(1), 12)
    monkeypatch.setattr(route, "handler", handle)
    assert peer.ask(asking(2), 13) is NOTHING
    monkeypatch.setattr(route, "handler", metadata.handle)
    for _ in range(50):
        world.turn()
    assert peer.answers[-1].error_code == errors.UNKNOWN_SERVER_ERROR and world.runtime.metrics.unexpected_errors == 1
    assert len(other.ask(asking(1), 12).topics) == 1


def test_a_bug_behind_the_last_slice_ends_the_connection(world, monkeypatch):
    """Who asked would wait for ever."""

    def handle(ctx, request):
        yield from [None] * COUNT
        return types.SimpleNamespace(attempt=None)

    peer, other = world.connect(), world.connect()
    peer.ask(asking(1), 12)
    monkeypatch.setattr(world.broker.dispatcher._routes[3], "handler", handle)
    assert peer.ask(asking(2), 12) is NOTHING
    monkeypatch.setattr(world.broker.dispatcher._routes[3], "handler", metadata.handle)
    assert other.ask(asking(), 12) is NOTHING
    turn_until(world, other)
    assert (
        peer.closed == "unexpected error"
        and world.runtime.metrics.unexpected_errors == 1
        and peer.connection.id not in [each.id for each in world.broker.socket_server.connections()]
    )


def test_a_stop_finishes_what_is_under_way(world):
    peer = world.connect()
    collector = world.runtime.tasks.collector = Collector()
    peer.send(asking(), 12)
    assert not collector.is_enabled
    world.stop()
    peer.take_what_came()
    assert len(peer.answers) == 1 and not world.runtime.tasks and collector.is_enabled


def test_a_stop_does_what_is_under_way_before_it_gives_up_the_groups(world):
    for name, count in (("__consumer_offsets", 1), ("t", 300)):
        world.create_topic(name, count)
    peer = world.connect()
    request = messages.OffsetCommitRequest
    rows = [request.OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in range(300)]
    peer.send(request(group_id="g", topics=[request.OffsetCommitRequestTopic(name="t", partitions=rows)]), 8)
    assert world.runtime.tasks
    world.stop()
    peer.take_what_came()
    assert {row.error_code for row in peer.answers[0].topics[0].partitions} == {0}


def test_a_stop_answers_what_was_parked_however_long_the_answer(world):
    world.create_topic("t", 300)
    peer = world.connect()
    peer.send(fetching(300), 11, client_id=LONG_NAME)
    while world.runtime.tasks:
        world.turn()
    assert peer.connection.delayed is not None
    world.stop()
    peer.take_what_came()
    assert len(peer.answers) == 1 and not world.runtime.tasks


@pytest.mark.parametrize("askers", [1, 2])
def test_a_topic_that_changes_while_it_is_described_is_not_kept_as_it_was(world, askers):
    """The row that took several turns is the caller's alone, also if by its end somebody else describes the topic as it
    is now."""
    world.create_topic("t", 500)
    peer = world.connect()
    assert peer.ask(messages.MetadataRequest(topics=None), 12) is NOTHING
    grow = messages.CreatePartitionsRequest
    world.connect().send(
        grow(topics=[grow.CreatePartitionsTopic(name="t", count=501, assignments=None)], timeout_ms=1000), 3
    )
    others = [world.connect() for _ in range(1, askers)]
    for other in others:
        assert other.ask(messages.MetadataRequest(topics=None), 12) is NOTHING
    turn_until(world, peer)
    peer.send(messages.MetadataRequest(topics=None), 12)
    for other in others:
        turn_until(world, other)
    turn_until(world, peer, 2)
    assert len(peer.answers[1].topics[0].partitions) == 501


class Collector:
    """As the module `gc`."""

    is_enabled = True

    def enable(self):
        self.is_enabled = True

    def disable(self):
        self.is_enabled = False


def test_the_collector_is_left_out_while_there_are_many_rows_but_not_for_long(world):
    """A request that is served at once is none of its business; one that goes on and on must not keep all garbage."""
    collector = world.runtime.tasks.collector = Collector()
    collector.disable = None
    peer, other = world.connect(), world.connect()
    assert peer.ask(asking(1), 12).topics
    del collector.disable
    peer.send(asking(), 12)
    assert not collector.is_enabled
    turn_until(world, peer, 2)
    assert collector.is_enabled and not world.runtime.tasks
    for each in (peer, other):
        each.send(asking(), 12)
    world.clock.advance(PAUSE_SECONDS - 0.1)
    world.turn()
    assert not collector.is_enabled
    world.clock.advance(0.1)
    world.turn()
    assert collector.is_enabled and world.runtime.tasks


def test_the_collector_comes_back_when_who_asked_is_gone(world):
    collector = world.runtime.tasks.collector = Collector()
    peer = world.connect()
    peer.send(asking(), 12)
    peer.connection.close("ended by the peer")
    world.turn()
    assert collector.is_enabled


def altering(count):
    request = messages.IncrementalAlterConfigsRequest
    change = [request.AlterableConfig(name="retention.ms", config_operation=0, value="1000")]
    return request(
        resources=[
            request.AlterConfigsResource(resource_type=2, resource_name=f"unknown-{number}", configs=change)
            for number in range(count)
        ]
    )


def creating(name, partitions=1):
    request = messages.CreateTopicsRequest
    return request(
        topics=[request.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)], timeout_ms=1000
    )


def test_a_long_change_of_the_metadata_is_one_event_and_others_wait_behind_it(world):
    """Who asks for no change goes on meanwhile."""
    first, second, third = world.connect(), world.connect(), world.connect()
    first.send(altering(COUNT // 2), 1)
    while not world.controller.metadata_log._events:
        world.turn()
    assert second.ask(creating("t", 300), 7) is NOTHING and third.ask(asking(1), 12).topics[0].error_code
    second.send(asking(1), 12)
    turns = turn_until(world, first)
    assert turns > 5 and not second.answers
    turn_until(world, second, 2)
    assert second.answers[0].topics[0].error_code == 0 and world.broker.image.topics["t"].partitions[299]
    assert {row.error_code for row in first.answers[0].responses} == {errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert not world.controller.metadata_log._events and world.runtime.metrics.unexpected_errors == 0


def test_many_partitions_are_placed_in_steps(world):
    """A topic's records are one batch, but what they say need not be thought of in one turn."""
    peer = world.connect()
    assert peer.ask(creating("t", 400), 7) is NOTHING
    assert world.controller.metadata_log._events and "t" not in world.broker.image.topics
    turn_until(world, peer)
    assert len(world.broker.image.topics["t"].partitions) == 400


def growing(partitions):
    request = messages.CreatePartitionsRequest
    return request(
        topics=[request.CreatePartitionsTopic(name="t", count=partitions, assignments=None)], timeout_ms=1000
    )


def test_a_bug_in_a_long_change_is_that_requests_alone(world, monkeypatch):
    peer, other = world.connect(), world.connect()

    def stumble(self, topics):
        yield from [None] * COUNT
        raise RuntimeError("late")

    monkeypatch.setattr("pykafkad.metadata.creation.Creation.partitions", stumble)
    peer.send(growing(2), 3)
    other.send(creating("u"), 7)
    turn_until(world, other)
    assert other.answers[0].topics[0].error_code == 0
    assert [(row.name, row.error_code) for row in peer.answers[0].results] == [("t", errors.UNKNOWN_SERVER_ERROR)]
    assert peer.closed is None and world.runtime.metrics.unexpected_errors == 1


@pytest.mark.parametrize("where", ["metadata.creation.Creation.partitions", "server.metadata_log._LogRunner.perform"])
def test_the_controller_goes_on_even_if_telling_of_a_bug_fails(world, monkeypatch, where):
    peer, other = world.connect(), world.connect()
    monkeypatch.setattr(f"pykafkad.{where}", lambda self, wanted: 1 // 0)
    monkeypatch.setattr("pykafkad.server.replies.Replies.fail", lambda self, token, error: 1 // 0)
    peer.send(growing(400), 3)
    while world.controller.metadata_log._events:
        world.turn()
    monkeypatch.undo()
    other.send(creating("u"), 7)
    turn_until(world, other)
    assert other.answers[0].topics[0].error_code == 0 and world.runtime.metrics.unexpected_errors


def test_a_bug_while_a_long_change_is_applied_is_told_too(world, monkeypatch):
    """By then nobody is on the stack who could."""
    peer = world.connect()
    applied = type(world.broker).metadata_changed
    monkeypatch.setattr(type(world.broker), "metadata_changed", lambda node, delta: (applied(node, delta), 1 // 0))
    assert peer.ask(creating("t", 400), 7) is NOTHING
    turn_until(world, peer)
    monkeypatch.undo()
    assert peer.answers[0].topics[0].error_code == errors.UNKNOWN_SERVER_ERROR and peer.closed is None
    assert world.runtime.metrics.unexpected_errors == 1 and not world.controller.metadata_log._events
    peer.send(creating("u"), 7)
    turn_until(world, peer, 2)
    assert peer.answers[1].topics[0].error_code == 0


def test_a_bug_in_a_change_that_waited_is_told_too(world, monkeypatch):
    """Its turn came after its handler's."""
    first, second = world.connect(), world.connect()
    first.send(altering(COUNT // 2), 1)
    while not world.controller.metadata_log._events:
        world.turn()
    monkeypatch.setitem(controller._STEPS, events.AlterClientQuotas, lambda self, event: 1 // 0)
    request = messages.AlterClientQuotasRequest
    entity = request.EntityData(entity_type="user", entity_name="a")
    entry = request.EntryData(entity=[entity], ops=[request.OpData(key="producer_byte_rate", value=1.0)])
    assert second.ask(request(entries=[entry]), 1) is NOTHING
    turn_until(world, second)
    (row,) = second.answers[0].entries
    assert (row.error_code, row.entity[0].entity_name) == (errors.UNKNOWN_SERVER_ERROR, "a")
    assert second.closed is None and world.runtime.metrics.unexpected_errors == 1
