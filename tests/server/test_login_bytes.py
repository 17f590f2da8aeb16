"""How much of a broker's memory those who have not logged in can hold."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any

import pytest

from pykafkad.server.login_bytes import LARGE_TOKENS_BYTES, SMALL_FRAME_BYTES, LoginBytes
from pykafkad.wire import messages
from tests.seeds import sampled
from tests.server.sasl_world import handshake, log_in, sasl_world

METADATA = messages.MetadataRequest(topics=[])
LARGEST = 512 * 1024
STRANGERS = 1_000
MOST_BYTES = 20_000_000
"""What a thousand strangers of one address may hold."""


@pytest.fixture
def world(tmp_path: Path) -> Any:
    return sasl_world(tmp_path / "data", "PLAIN")


def held_bytes(world: Any) -> int:
    """What the broker keeps of frames that are not whole."""
    connections = world.broker.socket_server.connections()
    return sum(len(each.pending) + (0 if each.large is None else len(each.large)) for each in connections)


def begin(peer: Any, size: int, left: int = 1) -> None:
    """Send a token's frame of `size` bytes, but for the `left` last ones."""
    peer.send_bytes(struct.pack(">i", size) + bytes(size - left))


@pytest.mark.long
@pytest.mark.parametrize(
    ("size", "version"), sampled(itertools.product((SMALL_FRAME_BYTES, 45_000, 60_000), (0, 1)), 3)
)
def test_a_thousand_strangers_hold_little(world: Any, size: int, version: int) -> None:
    """Whatever the size of the frames that they do not end."""
    most = 0
    for number in range(STRANGERS):
        peer = world.connect()
        handshake(peer, "PLAIN", version)
        begin(peer, size)
        if number % 100 == 99:
            most = max(most, held_bytes(world))
    assert SMALL_FRAME_BYTES * STRANGERS - STRANGERS < most < LARGE_TOKENS_BYTES + 4 * STRANGERS < MOST_BYTES
    assert len(world.broker.socket_server) == (STRANGERS if size == SMALL_FRAME_BYTES else LARGE_TOKENS_BYTES // size)
    assert log_in(world.connect()).error_code == 0


def test_the_first_stranger_with_a_large_token_makes_room(world: Any) -> None:
    """One whose token is whole, or who has gone, leaves room behind."""
    fitting = LARGE_TOKENS_BYTES // LARGEST
    peers = [world.connect() for _ in range(fitting + 2)]
    for peer in peers:
        handshake(peer, "PLAIN", 0)
    for peer in peers[:fitting]:
        begin(peer, LARGEST)
    assert held_bytes(world) == LARGE_TOKENS_BYTES + 4 * fitting
    assert all(peer.closed is None for peer in peers)
    begin(peers[fitting], LARGEST)
    assert peers[0].closed == "more than 8388608 bytes of logins, and its address has most of them"
    peers[1].end()
    assert world.broker.socket_server.logins[world.broker.listeners[0]].bytes_taken.total == (fitting - 1) * LARGEST
    begin(peers[fitting + 1], LARGEST)
    assert [peer.closed for peer in peers[2:]] == [None] * fitting


def test_a_large_token_that_is_whole_counts_no_more(world: Any) -> None:
    """Neither the one that ends the login nor one behind which others come."""
    taken = world.broker.socket_server.logins[world.broker.listeners[0]].bytes_taken
    peer = world.connect()
    handshake(peer, "PLAIN", 0)
    begin(peer, 50_000)
    assert taken.total == 50_000
    peer.send_bytes(b"x")
    assert taken.total == 0
    peer = world.connect()
    handshake(peer, "PLAIN")
    token = messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")
    client_id = "c" * SMALL_FRAME_BYTES
    peer.send_bytes(peer.encode(token, 2, client_id)[:-1])
    assert SMALL_FRAME_BYTES < taken.total < SMALL_FRAME_BYTES + 100
    peer.put_on_the_wire(peer.encode(token, 2, client_id)[-1:])
    world.turn()
    assert peer.answers[-1].error_code == 0 and taken.total == 0
    peer.expected.pop()
    assert peer.ask(METADATA, 9, "c" * 30_000).brokers


def test_who_has_logged_in_takes_nothing_of_it(world: Any) -> None:
    """Frames are as large as the settings allow."""
    taken = world.broker.socket_server.logins[world.broker.listeners[0]].bytes_taken
    peer = world.connect()
    log_in(peer)
    peer.send_bytes(struct.pack(">i", LARGEST) + bytes(LARGEST - 1))
    assert taken.total == 0 and peer.closed is None and peer.connection.large is not None


@pytest.mark.parametrize("version", (0, 1))
def test_nothing_is_kept_behind_a_refused_login(world: Any, version: int) -> None:
    """Neither what came with the token, nor what comes until the connection ends."""
    peer = world.connect()
    handshake(peer, "PLAIN", version)
    token = b"\0alice\0wrong"
    if version:
        frame = peer.encode(messages.SaslAuthenticateRequest(auth_bytes=token), 2)
    else:
        frame = struct.pack(">i", len(token)) + token
    peer.send_bytes(frame + bytes(100_000))
    assert peer.closed is None and held_bytes(world) == 0
    peer.send_bytes(bytes(100_000))
    assert peer.closed is None and held_bytes(world) == 0
    world.advance(1, 4)
    assert peer.closed == "login refused: Authentication failed: Invalid username or password"


def test_the_address_with_most_bytes_loses_them() -> None:
    """Others keep theirs, though they came first."""

    class Stranger:
        closed: str | None = None

        def __init__(self, peer: str) -> None:
            self.peer = peer

        def close(self, reason: str) -> None:
            self.closed = reason

    taken = LoginBytes()
    quiet, *greedy = (Stranger(peer) for peer in ("10.0.0.1:1", "10.0.0.2:1", "10.0.0.2:2", "10.0.0.2:3"))
    taken.take(quiet, LARGE_TOKENS_BYTES // 4)  # type: ignore[arg-type]
    for each in greedy:
        taken.take(each, LARGE_TOKENS_BYTES // 3)  # type: ignore[arg-type]
    assert [each.closed is None for each in (quiet, *greedy)] == [True, False, True, True]
    taken.take(greedy[0], 2 * LARGE_TOKENS_BYTES)  # type: ignore[arg-type]
    assert taken.total == 2 * LARGE_TOKENS_BYTES and quiet.closed is not None
    taken.give_back(greedy[0])  # type: ignore[arg-type]
    taken.give_back(greedy[0])  # type: ignore[arg-type]
    assert taken.total == 0
