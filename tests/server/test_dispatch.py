"""What the dispatcher does when a handler has a bug, and with answers that nobody waits for any more."""

import pytest

from pykafkad import errors
from pykafkad.handlers import table
from pykafkad.handlers.context import ReplyToken
from pykafkad.wire import messages
from tests.simulation.world import NOTHING, World
from tests.wire.values import RANGES, Values


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def route(world, key):
    found = world.broker.dispatcher._routes[key]
    world.broker.dispatcher._flexible_from[key] = found.load()
    return found


def test_a_bug_is_counted_logged_and_told_where_the_answer_has_a_place_for_it(world, capfd):
    route(world, 12).handler = lambda ctx, request: 1 // 0
    peer = world.connect()
    answer = peer.ask(messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3)
    assert answer.error_code == errors.UNKNOWN_SERVER_ERROR
    assert peer.closed is None
    assert world.runtime.metrics.unexpected_errors == 1
    assert "api=Heartbeat version=3" in (logged := capfd.readouterr().err) and "ZeroDivisionError" in logged


class OneOfEverything(Values):
    """Numbers that are 1, and lists of one."""

    def _value(self, field, classes, version):
        element = self._element(field, classes, version)
        return [element] if field.is_array else element

    def scalar(self, field):
        return 1 if field.type in RANGES else super().scalar(field)


@pytest.mark.parametrize("row", table.ROWS, ids=lambda row: row.name)
def test_every_api_tells_of_a_bug_and_the_connection_goes_on(world, row):
    """What each says is compared with Kafka's own classes in `compat_tests/codec/test_unexpected.py`."""
    world.broker.fast_paths.clear()
    route(world, row.key).handler = lambda ctx, request: 1 // 0
    peer = world.connect()
    version = row.max_version
    request = OneOfEverything(row.name).message(messages.request_class(row.key), version)
    assert f"error_code={errors.UNKNOWN_SERVER_ERROR}" in repr(peer.ask(request, version))
    assert world.runtime.metrics.unexpected_errors == 1
    other = messages.HeartbeatRequest if row.name == "ApiVersions" else messages.ApiVersionsRequest
    assert peer.ask(other(), 0) is not NOTHING and peer.closed is None


def test_a_bug_in_a_request_that_wants_no_answer_closes_that_connection_alone(world):
    world.broker.fast_paths.clear()
    route(world, 0).handler = lambda ctx, request: 1 // 0
    peer, other = world.connect(), world.connect()
    peer.send(messages.ProduceRequest(acks=0), 9)
    assert "Produce" in peer.closed and not peer.answers
    assert other.ask(messages.ApiVersionsRequest(), 0).error_code == 0


def test_a_bug_after_the_answer_is_logged_and_no_second_answer(world):
    def answer_and_stumble(ctx, request):
        world.runtime.replies.reply(ctx.token, messages.HeartbeatResponse())
        return 1 // 0

    route(world, 12).handler = answer_and_stumble
    peer = world.connect()
    assert peer.ask(messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3).error_code == 0
    assert peer.ask(messages.ApiVersionsRequest(), 0).api_keys and len(peer.answers) == 2
    assert world.runtime.metrics.unexpected_errors == 1


def test_an_expected_error_that_a_handler_lets_through_keeps_its_code(world):
    def refuse(ctx, request):
        raise errors.KafkaError(errors.POLICY_VIOLATION)

    route(world, 2).handler = refuse
    assert world.connect().ask(list_offsets(), 1).topics[0].partitions[0].error_code == errors.POLICY_VIOLATION


def list_offsets():
    request = messages.ListOffsetsRequest
    partition = request.ListOffsetsPartition(partition_index=3)
    return request(topics=[request.ListOffsetsTopic(name="t", partitions=[partition])])


class Stumbling:
    """A wait that fails when it is tried, or ends."""

    keys = ("key",)
    ends_early = False
    deadline = 1.0

    def attempt(self, now):
        raise RuntimeError("a bug")

    expire = attempt


@pytest.mark.parametrize("ends", ["touched", "late"])
def test_a_bug_while_a_request_waits_is_told_in_its_rows(world, ends):
    wait = Stumbling()
    wait.deadline = world.runtime.now + 1
    route(world, 2).handler = lambda ctx, request: wait
    peer = world.connect()
    assert peer.ask(list_offsets(), 5) is NOTHING
    if ends == "touched":
        world.broker.purgatory.touch("key")
    else:
        world.clock.advance(2)
    world.turn()
    (row,) = peer.answers[0].topics[0].partitions
    assert (row.partition_index, row.error_code, row.offset) == (3, errors.UNKNOWN_SERVER_ERROR, -1)
    assert peer.ask(messages.ApiVersionsRequest(), 0).error_code == 0
    assert world.runtime.metrics.unexpected_errors == 1


def test_a_long_request_that_waits_is_not_kept_for_a_bug(world):
    wait = Stumbling()
    wait.deadline = world.runtime.now + 1
    route(world, 2).handler = lambda ctx, request: wait
    request = messages.ListOffsetsRequest
    partitions = [request.ListOffsetsPartition(partition_index=number) for number in range(5_000)]
    peer = world.connect()
    assert peer.ask(request(topics=[request.ListOffsetsTopic(name="t", partitions=partitions)]), 5) is NOTHING
    for _ in range(100):
        world.turn()
    assert world.broker.purgatory.count and peer.connection.in_service.request is None
    world.broker.purgatory.touch("key")
    world.turn()
    assert "ListOffsets" in peer.closed and world.runtime.metrics.unexpected_errors == 1


def test_a_bug_in_what_is_computed_beside_the_loop_is_told_too(world):
    route(world, 2).handler = lambda ctx, request: ctx.answer_later(lambda: 1 // 0, lambda result: result)
    peer = world.connect()
    peer.send(list_offsets(), 5)
    world.runtime.cpu_offload.close()
    world.turn()
    assert peer.answers[0].topics[0].partitions[0].error_code == errors.UNKNOWN_SERVER_ERROR and peer.closed is None


def test_a_bug_in_what_an_offloaded_job_leads_to_does_not_end_the_broker(world):
    world.runtime.offload.submit(lambda: 7, lambda result: 1 // 0)
    world.runtime.offload.close()
    assert world.runtime.metrics.unexpected_errors == 1
    assert world.connect().ask(messages.ApiVersionsRequest(), 0).error_code == 0


def test_a_bug_in_the_answer_to_a_bug_ends_the_connection(world, monkeypatch):
    route(world, 12).handler = lambda ctx, request: 1 // 0
    monkeypatch.setattr("pykafkad.handlers.unexpected.answer", lambda *_: 1 // 0)
    peer = world.connect()
    assert peer.ask(messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3) is NOTHING
    assert "Heartbeat" in peer.closed and world.runtime.metrics.unexpected_errors == 2


def test_an_answer_that_cannot_be_encoded_closes_that_connection_alone(world):
    route(world, 12).handler = lambda ctx, request: messages.HeartbeatResponse(error_code="text")
    peer = world.connect()
    assert peer.ask(messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3) is NOTHING
    assert "could not be encoded" in peer.closed
    assert world.runtime.metrics.unexpected_errors == 1


def test_an_answer_to_a_request_that_is_no_longer_in_service_is_dropped(world):
    peer = world.connect()
    peer.ask(messages.ApiVersionsRequest(), 0)
    for token in (ReplyToken(peer.connection.id, 1), ReplyToken(99, 1), None):
        world.runtime.replies.reply(token, messages.HeartbeatResponse())
    world.turn()
    assert len(peer.answers) == 1


@pytest.mark.parametrize(("length", "shown"), [(32_767, 32_767), (32_768, 1001), (100_000, 1001)])
def test_a_text_that_is_longer_than_the_wire_carries_is_cut(world, length, shown):
    """What an answer says to people may quote what was asked; the code has to arrive."""
    row = messages.CreateTopicsResponse.CreatableTopicResult(name="t", error_code=17, error_message="x" * length)
    route(world, 19).handler = lambda ctx, request: messages.CreateTopicsResponse(topics=[row])
    answer = world.connect().ask(messages.CreateTopicsRequest(), 2)
    assert (answer.topics[0].error_code, len(answer.topics[0].error_message)) == (17, shown)
    assert world.runtime.metrics.unexpected_errors == 0


def test_an_api_has_a_route_from_its_first_request_on(world):
    """Most brokers of tests are asked a few of them; a peer's unknown keys leave nothing behind."""
    routes = world.broker.dispatcher._routes
    assert not routes
    world.connect().ask(messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3)
    assert routes.keys() == {12}
    peer = world.connect()
    peer.send_bytes(b"\x00\x00\x00\x0a\x7f\xff\x00\x00\x00\x00\x00\x01\xff\xff")
    world.turn()
    assert peer.closed is not None and routes.keys() == {12}
