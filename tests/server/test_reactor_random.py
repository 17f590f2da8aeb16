"""Clients that write and read as nobody would: whatever the sizes, the cuts and the order, every frame is answered, and
in its order."""

import random
import socket
import struct

import pytest

from pykafkad.server.connection import OUTBOX_LIMIT_BYTES, SCRATCH_BYTES
from tests import seeds
from tests.server.echo import EchoNode, turns_until

_IDLE_TURNS = 20
_SIZES = (0, 1, 12, 100, OUTBOX_LIMIT_BYTES - 4, OUTBOX_LIMIT_BYTES, 90_000, SCRATCH_BYTES - 4, SCRATCH_BYTES, 300_000)


class Client:
    """Writes frames a piece at a time, reads a piece at a time, and ends when all came back."""

    def __init__(self, port, draw):
        self.draw = draw
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        sizes = [
            draw.choice(_SIZES) if draw.random() < 0.3 else draw.randrange(200)
            for _ in range(draw.choice((1, 2, 5, 100)))
        ]
        self.sent = b"".join(struct.pack(">i", size) + draw.randbytes(size) for size in sizes)
        self.left = memoryview(self.sent)
        self.received = bytearray()

    def step(self):
        """Write or read once; whether anything went."""
        try:
            if self.left and self.draw.random() < 0.6:
                written = self.socket.send(self.left[: self.draw.choice((1, 7, 1000, SCRATCH_BYTES, len(self.left)))])
                self.left = self.left[written:]
            else:
                received = self.socket.recv(self.draw.choice((1000, 1 << 20)))
                assert received, "the connection was closed"
                self.received += received
        except BlockingIOError:
            return False
        return True

    @property
    def is_done(self):
        return len(self.received) >= len(self.sent)


@pytest.mark.parametrize("seed", seeds.sampled(range(8), 4))
def test_every_frame_is_answered_in_its_order(seed):
    draw = random.Random(seed)
    node = EchoNode()
    node.open()
    port = node.socket_server.listen("127.0.0.1", 0, None, send_buffer_bytes=draw.choice((None, 4096)), backlog=10)
    clients = [Client(port, draw) for _ in range(4)]
    idle = 0
    while any(not client.is_done for client in clients):
        busy = draw.choice(clients).step()
        if draw.random() < 0.5:
            node.reactor.turn(0)
        idle = 0 if busy else idle + 1
        if idle > _IDLE_TURNS:
            # Nothing went for a while: the kernel may still be carrying, so now it is waited for.
            node.reactor.turn(0.02)
        assert idle < 10 * _IDLE_TURNS, [
            (len(client.sent), len(client.left), len(client.received)) for client in clients
        ]
    for client in clients:
        assert client.received == client.sent
        client.socket.close()
    turns_until(node, lambda: len(node.lost) == len(clients))
    node.close()
