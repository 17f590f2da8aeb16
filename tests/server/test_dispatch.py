"""What the dispatcher does when a handler has a bug, and with answers that nobody waits for any more."""

import pytest

from pykafkad import errors
from pykafkad.handlers.context import ReplyToken
from pykafkad.wire import messages
from tests.simulation.world import NOTHING, World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def route(world, key):
    found = world.node.dispatcher._routes[key]
    found.load()
    return found


def test_a_bug_is_counted_logged_and_told_where_the_answer_has_a_place_for_it(world, capfd):
    route(world, 12).handler = lambda ctx, request: 1 // 0
    peer = world.connect()
    answer = peer.ask(messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3)
    assert answer.error_code == errors.UNKNOWN_SERVER_ERROR
    assert peer.closed is None
    assert world.node.metrics.unexpected_errors == 1
    assert "api=Heartbeat version=3" in (logged := capfd.readouterr().err) and "ZeroDivisionError" in logged


def test_a_bug_without_a_place_to_tell_it_closes_that_connection_alone(world):
    route(world, 2).handler = lambda ctx, request: 1 // 0
    peer, other = world.connect(), world.connect()
    assert peer.ask(messages.ListOffsetsRequest(), 1) is NOTHING
    assert "ListOffsets" in peer.closed
    assert other.ask(messages.ApiVersionsRequest(), 0).error_code == 0


def test_an_answer_that_cannot_be_encoded_closes_that_connection_alone(world):
    route(world, 12).handler = lambda ctx, request: messages.HeartbeatResponse(error_code="text")
    peer = world.connect()
    assert peer.ask(messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3) is NOTHING
    assert "could not be encoded" in peer.closed
    assert world.node.metrics.unexpected_errors == 1


def test_an_answer_to_a_request_that_is_no_longer_in_service_is_dropped(world):
    peer = world.connect()
    peer.ask(messages.ApiVersionsRequest(), 0)
    for token in (ReplyToken(peer.connection.id, 1), ReplyToken(99, 1), None):
        world.node.reply(token, messages.HeartbeatResponse())
    world.turn()
    assert len(peer.answers) == 1


@pytest.mark.parametrize(("length", "shown"), [(32_767, 32_767), (32_768, 1001), (100_000, 1001)])
def test_a_text_that_is_longer_than_the_wire_carries_is_cut(world, length, shown):
    """What an answer says to people may quote what was asked; the code has to arrive."""
    row = messages.CreateTopicsResponse.CreatableTopicResult(name="t", error_code=17, error_message="x" * length)
    route(world, 19).handler = lambda ctx, request: messages.CreateTopicsResponse(topics=[row])
    answer = world.connect().ask(messages.CreateTopicsRequest(), 2)
    assert (answer.topics[0].error_code, len(answer.topics[0].error_message)) == (17, shown)
    assert world.node.metrics.unexpected_errors == 0
