"""Frames out of bytes: whole, byte by byte, garbage, and with a request in service."""

import random
import struct
from types import SimpleNamespace

import pytest

from pykafkad.server.connection import LARGE_FROM_BYTES, OUTBOX_LIMIT_BYTES, SCRATCH_BYTES, Connection
from pykafkad.server.frame_buffers import FrameBuffers
from tests import seeds


class Peer:
    """Feeds a connection as the reactor does and records the frames that it serves."""

    def __init__(self, max_frame_bytes=1024 * 1024):
        self.frames = []
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.connection = Connection(
            1, "127.0.0.1:1", SimpleNamespace(serve=self._serve), max_frame_bytes, FrameBuffers()
        )
        self.halt_after = None

    def _serve(self, connection, view, start, end):
        self.frames.append(bytes(view[start:end]))
        if self.halt_after == len(self.frames):
            connection.begin_service(object())
            connection.defer()

    def feed(self, data):
        connection = self.connection
        while data:
            if connection.large is not None:
                target = connection.large_target()
                size = min(len(target), len(data))
                target[:size] = data[:size]
                target.release()
                data = data[size:]
                connection.receive_large(size)
            elif connection.muted:
                size = min(len(data), SCRATCH_BYTES)
                self.scratch[:size] = data[:size]
                data = data[size:]
                connection.receive_muted(self.scratch, size)
            else:
                kept = len(connection.pending)
                self.scratch[:kept] = connection.pending
                size = min(len(data), SCRATCH_BYTES - kept)
                self.scratch[kept : kept + size] = data[:size]
                data = data[size:]
                connection.receive(self.scratch, kept + size)


def frame(payload):
    return struct.pack(">i", len(payload)) + payload


def test_several_frames_in_one_read_are_served_in_order():
    peer = Peer()
    peer.feed(frame(b"one") + frame(b"") + frame(b"three"))
    assert peer.frames == [b"one", b"", b"three"]
    assert peer.connection.pending == b""


@pytest.mark.parametrize("step", [1, 2, 3, 5, 1000])
def test_the_same_frames_whatever_the_pieces(step):
    payloads = [bytes([number]) * (number * 37 % 500) for number in range(40)]
    data = b"".join(map(frame, payloads))
    peer = Peer()
    for position in range(0, len(data), step):
        peer.feed(data[position : position + step])
    assert peer.frames == payloads


@pytest.mark.parametrize("size", [SCRATCH_BYTES - 4, SCRATCH_BYTES - 3, SCRATCH_BYTES, 700_000, 3_000_000])
def test_frames_around_and_above_the_scratch_size(size):
    payload = random.Random(size).randbytes(size)
    data = frame(b"before") + frame(payload) + frame(b"after")
    for step in (4099, 65536, len(data)):
        peer = Peer(max_frame_bytes=4_000_000)
        for position in range(0, len(data), step):
            peer.feed(data[position : position + step])
        assert peer.frames == [b"before", payload, b"after"]
        assert peer.connection.large is None


def test_a_size_field_alone_allocates_little():
    """Peers that announce 100 MB and send little take little: about eight times what they sent."""
    for sent in (1, 30_000, 60_000, 120_000, 500_000, 3_000_000):
        peer = Peer(max_frame_bytes=100 * 1024 * 1024)
        peer.feed(struct.pack(">i", 100 * 1024 * 1024) + b"x" * sent)
        connection = peer.connection
        assert len(connection.pending) + len(connection.large or b"") <= 8 * (sent + 4) + 65536
        assert (connection.large is None) == (sent < LARGE_FROM_BYTES)


def test_buffers_of_large_frames_are_used_again_and_never_while_somebody_looks_at_them():
    peer = Peer(max_frame_bytes=4_000_000)
    first = frame(b"a" * 900_000)
    peer.feed(first)
    (buffer,) = peer.connection.pool
    peer.feed(frame(b"b" * 800_000))
    assert peer.connection.pool == [buffer] and peer.frames[1] == b"b" * 800_000
    held = []
    peer.connection.serve = lambda connection, view, start, end: held.append(view[start:end])
    with pytest.raises(BufferError):
        peer.feed(first)
    assert peer.connection.pool == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">i", -1), "negative size -1"),
        (struct.pack(">i", 1024 * 1024 + 1), "above socket.request.max.bytes"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "TLS handshake"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP request"),
    ],
)
def test_what_is_no_frame_closes_with_a_reason(data, reason):
    peer = Peer()
    peer.feed(frame(b"good") + data)
    assert peer.frames == [b"good"], "what came before is served"
    assert reason in peer.connection.close_reason
    assert peer.connection.muted


def test_a_muted_connection_keeps_what_comes_and_serves_nothing():
    peer = Peer()
    peer.halt_after = 1
    peer.feed(frame(b"delayed") + frame(b"behind")[:3])
    assert peer.frames == [b"delayed"]
    assert not peer.connection.has_whole_frame()
    peer.feed(frame(b"behind")[3:])
    assert peer.connection.has_whole_frame()
    assert peer.frames == [b"delayed"]


def test_a_full_outbox_stops_serving():
    """A thousand requests with large answers in one read must not pile up their answers."""
    peer = Peer()
    peer.connection.serve = lambda connection, view, start, end: (
        peer.frames.append(1),
        connection.put([bytes(OUTBOX_LIMIT_BYTES // 2 + 1)]),
    )
    peer.feed(frame(b"a") * 10)
    assert len(peer.frames) == 2
    assert peer.connection.pending == frame(b"a") * 8


def test_garbage_gives_frames_or_an_end_never_an_exception():
    for seed in seeds.sampled(range(500), 10):
        generator = random.Random(seed)
        peer = Peer(max_frame_bytes=2000)
        data = generator.randbytes(generator.randrange(1, 400))
        if seed % 2:
            data = b"".join(frame(generator.randbytes(generator.randrange(40))) for _ in range(5)) + data
        for byte in data:
            if peer.connection.close_reason is None:
                peer.feed(bytes([byte]))


def test_nothing_is_added_to_the_outbox_of_a_connection_that_ends():
    """The answer to an earlier request may have been dropped with it: the next one would be taken for it."""
    connection = Peer().connection
    connection.hold()
    connection.put([b"first"])
    connection.abort("its write failed")
    connection.put([b"second"])
    connection.release()
    assert connection.outbox == []
