"""Frames of moderate size that a client sends ahead, read many at once."""

import socket

import pytest

from pykafkad.server.connection import _NO_SESSION, FRAMES_PER_TURN, SCRATCH_BYTES
from pykafkad.server.poll_events import READ, WRITE
from pykafkad.server.receiving import WIDE_SCRATCH_BYTES
from pykafkad.server.transport import PlainTransport
from tests.server.echo import EchoNode, connect, frame, received, turns, turns_until
from tests.server.test_reactor import park_every

MODERATE = 60_000


@pytest.fixture
def listening():
    node = EchoNode()
    node.open()
    node.port = node.socket_server.listen("localhost", 0, None, send_buffer_bytes=0, backlog=10)
    yield node
    node.close()


@pytest.fixture
def client(listening):
    client = connect(listening)
    turns_until(listening, lambda: listening.connections)
    yield client
    client.close()


def all_here(listening, client, data):
    """Have the broker's socket give these bytes, as many as are asked for at once."""
    (connection,) = listening.connections
    left = bytearray(data)

    def recv_into(buffer):
        if not left:
            raise BlockingIOError
        size = min(len(buffer), len(left))
        buffer[:size] = left[:size]
        del left[:size]
        return size

    listening.reactor._by_id[connection.id].recv_into = recv_into
    # What is never read keeps the socket readable.
    client.sendall(b"!")


def test_several_are_served_in_one_turn(listening, client):
    """Two with the first read, and those behind them together."""
    served = []
    listening.answer = lambda connection, payload: served.append(len(payload)) or frame(payload[:1])
    all_here(listening, client, frame(b"m" * MODERATE) * 9)
    listening.reactor.turn(1)
    assert len(served) == 2
    listening.reactor.turn(1)
    assert served == [MODERATE] * 9
    assert received(listening, client, 9 * 5) == frame(b"m") * 9


def test_several_behind_one_with_a_buffer_are_served_in_one_turn(listening, client):
    """The rest of the second goes into its buffer, as half of it was read with the first."""
    served = []
    listening.answer = lambda connection, payload: served.append(len(payload)) or frame(payload[:1])
    all_here(listening, client, frame(b"m" * 90_000) * 6)
    listening.reactor.turn(1)
    assert len(served) == 1
    listening.reactor.turn(1)
    assert served == [90_000] * 6
    assert received(listening, client, 6 * 5) == frame(b"m") * 6


def test_large_ones_are_not_read_together(listening, client):
    """The part of the next one would be copied into its buffer: more than a read costs."""
    served = []
    listening.answer = lambda connection, payload: served.append(len(payload)) or frame(payload[:1])
    all_here(listening, client, frame(b"l" * 400_000) * 3)
    turns(listening, 2)
    assert served == [400_000]
    assert received(listening, client, 3 * 5) == frame(b"l") * 3


def test_the_end_behind_them_is_heard(listening, client):
    """It comes once, and may be read together with them."""
    data = frame(b"m" * MODERATE) * 3
    client.sendall(data)
    client.shutdown(socket.SHUT_WR)
    assert received(listening, client, len(data)) == data
    turns_until(listening, lambda: listening.lost)


def test_what_fills_the_whole_buffer_is_followed_by_the_rest(listening, client):
    data = frame(b"m" * MODERATE) * (2 * WIDE_SCRATCH_BYTES // MODERATE + 3)
    all_here(listening, client, data)
    assert received(listening, client, len(data)) == data


def test_behind_a_request_in_service_they_are_kept_and_no_more_is_read(listening, client):
    finish = park_every(listening, b"p")
    data = frame(b"m" * MODERATE) * 4 + frame(b"p") + frame(b"m" * MODERATE) * 12
    all_here(listening, client, data)
    (connection,) = listening.connections
    turns_until(listening, lambda: connection.in_service)
    kept = len(connection.pending)
    assert SCRATCH_BYTES < kept <= WIDE_SCRATCH_BYTES
    turns(listening, 5)
    assert len(connection.pending) == kept
    finish()
    assert received(listening, client, len(data)) == data
    assert listening.metrics.unexpected_errors == 0


@pytest.mark.parametrize("size", [MODERATE, SCRATCH_BYTES - 2000])
def test_a_whole_one_behind_a_share_of_small_ones_is_served(listening, client, size):
    """It was taken for one of which the rest is yet to come, and nothing was answered any more."""
    data = frame(b"s") * FRAMES_PER_TURN + frame(b"m" * size) + frame(b"end")
    client.sendall(data)
    assert received(listening, client, len(data)) == data


def test_short_ones_behind_them_do_not_pile_up(listening, client):
    """Each turn copies what is kept: with more of it a turn costs more and serves as many."""
    listening.answer = lambda connection, payload: None
    all_here(listening, client, frame(b"m" * MODERATE) * 3 + frame(b"s") * 200_000)
    (connection,) = listening.connections
    turns_until(listening, lambda: len(connection.pending) > SCRATCH_BYTES)
    for _ in range(20):
        before = len(connection.pending)
        listening.reactor.turn(0)
        assert 0 < len(connection.pending) < before


def test_one_in_a_buffer_that_a_larger_frame_had_is_moderate(listening, client):
    served = []
    listening.answer = lambda connection, payload: served.append(len(payload)) or frame(payload[:1])
    (connection,) = listening.connections
    connection.pool.append(bytearray(1 << 20))
    all_here(listening, client, frame(b"m" * 90_000) * 6)
    turns(listening, 2)
    assert served == [90_000] * 6


def test_they_wait_for_room_as_larger_ones_do(listening, client):
    """The first has filled what may be under way, and the others came with it."""
    served = []
    (connection,) = listening.connections

    def answer(connection, payload):
        served.append(len(payload))
        connection.pool.is_full = len(served) == 4
        return frame(payload[:1])

    listening.answer = answer
    all_here(listening, client, frame(b"m" * MODERATE) * 9)
    turns(listening, 5)
    assert len(served) == 4 and connection.muted
    connection.pool.make_room()
    assert received(listening, client, 9 * 5) == frame(b"m") * 9
    assert served == [MODERATE] * 9 and not connection.muted


@pytest.mark.parametrize("size", [SCRATCH_BYTES, 2 * SCRATCH_BYTES + WIDE_SCRATCH_BYTES])
def test_what_a_node_asks_leaves_also_after_a_read_that_filled_the_buffer(listening, client, monkeypatch, size):
    """A node goes on reading answers while the other one does not take its requests."""

    def take_nothing(*_):
        raise BlockingIOError

    (connection,) = listening.connections
    monkeypatch.setattr(connection, "session", _NO_SESSION)
    listening.answer = lambda connection, payload: None
    with monkeypatch.context() as blocked:
        blocked.setattr(PlainTransport, "flush", take_nothing)
        blocked.setattr(connection.transport, "send", take_nothing)
        connection.put([b"asked"])
        turns_until(listening, lambda: connection.transport.interest == READ | WRITE)
        # The second size: the rest of a large frame, and a whole buffer behind it.
        first = min(size, 2 * SCRATCH_BYTES)
        all_here(listening, client, frame(bytes(first - 4)) + frame(bytes(4092)) * ((size - first) // 4096))
        turns(listening, 4)
    assert received(listening, client, 5, limit=500) == b"asked"
