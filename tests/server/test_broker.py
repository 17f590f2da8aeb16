"""The broker's part of a turn: how many requests that wait it tries, and which of them end for a request behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.server.producer_id_blocks import ProducerIdBlocks
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.simulation.world import NOTHING, World

MANY = 10
LIMIT = 4


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Ten clients wait for a record, and a turn tries four of them."""
    made = World(tmp_path / "data")
    made.runtime.waits_per_turn = LIMIT
    made.create_topic("t")
    for _ in range(MANY):
        assert made.connect().ask(fetch("t", {0: 0}, max_wait_ms=60_000), 11) is NOTHING
    return made


def answered(world: World) -> int:
    """How many of them have their answer after one more turn."""
    world.runtime.reactor.turn(0)
    for peer in world.peers:
        peer.take_what_came()
    return sum(len(peer.answers) for peer in world.peers[-MANY:])


def turns(world: World) -> list[int]:
    """The answers after each turn; the loop does not sleep before all are there."""
    counts = [0]
    while counts[-1] < MANY:
        counts.append(answered(world))
        assert counts[-2] < counts[-1] <= counts[-2] + LIMIT
        deadline = world.broker.next_deadline()
        assert counts[-1] == MANY or deadline <= world.clock.now()
    return counts


def test_an_append_wakes_so_many_in_a_turn(world: World) -> None:
    producer = world.connect()
    world.peers.remove(producer)
    producer.put_on_the_wire(producer.encode(produce("t", {0: batch(b"x")}), 8))
    assert turns(world) == [0, 4, 8, 10]


def test_so_many_deadlines_are_answered_in_a_turn(world: World) -> None:
    world.clock.advance(61.0)
    assert turns(world) == [0, 4, 8, 10]


def test_a_request_ends_only_those_before_it_whose_wait_is_a_maximum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for a producer id needs one, whatever comes behind it."""
    world = World(tmp_path / "data")
    peer = world.connect()
    with monkeypatch.context() as lacking:
        lacking.setattr(ProducerIdBlocks, "take", lambda blocks: None)
        assert peer.ask(messages.InitProducerIdRequest(transactional_id=None), 4) is NOTHING
        assert peer.ask(messages.ApiVersionsRequest(), 0) is NOTHING
        assert peer.answers == []
    world.broker.purgatory.touch(world.broker.producer_ids)
    world.turn()
    assert [type(answer).__name__ for answer in peer.answers] == ["InitProducerIdResponse", "ApiVersionsResponse"]
    assert peer.answers[0].error_code == 0
