"""A node that says what it hears, around a reactor with real sockets, and how its tests wait for what the system
carries."""

import select
import socket
import struct

from pykafkad.clock import ManualClock
from pykafkad.server.listeners import Listener
from pykafkad.server.logs import process_logs
from pykafkad.server.metrics import Metrics
from pykafkad.server.reactor import Reactor
from pykafkad.server.session import Sessions
from pykafkad.server.socket_server import SocketServer


class EchoNode:
    """Answers every frame with itself, or as the test's `answer` says."""

    def __init__(self):
        self.metrics = Metrics()
        self.logs = process_logs()
        self.now = 0.0
        self.lost = []
        self.fast_paths = {}
        self.sessions = Sessions(self.fast_paths, None)
        self.clock = ManualClock()
        self.unexpected_errors = []
        self.reactor = self.socket_server = None
        self.answer = lambda connection, payload: struct.pack(">i", len(payload)) + payload
        """Gives a chunk, a list of them, or None."""

    def open(self, *, max_connections=50):
        """A reactor of its own, and what listens on it."""
        self.reactor = Reactor(self)
        self.socket_server = SocketServer(
            self, self.reactor, max_frame_bytes=1 << 20, idle_seconds=600, max_connections=max_connections
        )
        return self

    def close(self):
        self.socket_server.close()
        self.reactor.close()

    def listen(self, host="127.0.0.1", port=0, send_buffer_bytes=None, tls=None):
        """Listen at the host; `port` and what is returned is the port."""
        listener = Listener("PLAIN", host, port)
        if tls is not None:
            listener = Listener("TLS", host, port, security_protocol="SSL")
        self.port = self.socket_server.listen(
            host, port, listener, send_buffer_bytes=send_buffer_bytes, backlog=10, tls=tls
        )
        return self.port

    @property
    def connections(self):
        """Those that live."""
        return self.socket_server.connections()

    def end_early(self, connection):
        """Nothing waits for a maximum here."""

    def unexpected(self, error, **where):
        self.unexpected_errors.append(error)

    def begin_turn(self):
        return self.now

    def end_turn(self):
        pass

    def serve(self, connection, view, start, end):
        payload = bytes(view[start:end])
        answer = self.answer(connection, payload)
        if answer is not None:
            connection.put(answer if type(answer) is list else [answer])

    def connection_lost(self, connection):
        self.lost.append((connection, connection.close_reason))


def frame(payload):
    return struct.pack(">i", len(payload)) + payload


def connect(node, host="127.0.0.1", port=None):
    came = node.metrics.connections_accepted + node.metrics.connections_refused
    client = socket.create_connection((host, port or node.port))
    client.setblocking(False)
    turns_until(node, lambda: node.metrics.connections_accepted + node.metrics.connections_refused > came)
    return client


def turns(node, count=5):
    for _ in range(count):
        node.reactor.turn(0.01)


def turns_until(node, holds):
    """However long the system takes to bring what it was given."""
    for _ in range(6000):
        if holds():
            return
        node.reactor.turn(0.01)
    raise AssertionError("that never came")


def arrived(node, client, what=select.POLLIN):
    """What a client sent, or with POLLRDHUP its end, is there to be read; the broker's side of it."""
    (connection,) = (each for each in node.connections if each.peer.endswith(f":{client.getsockname()[1]}"))
    looking = select.poll()
    looking.register(connection.transport.fileno, what)
    assert looking.poll(60_000)
    return connection


def received(node, client, size, limit=6000, left=b""):
    """So many bytes, or what came before the end; what is `left` to be sent is sent meanwhile."""
    data = b""
    for _ in range(limit):
        if left:
            try:
                left = left[client.send(left) :]
            except BlockingIOError:
                pass
        try:
            part = client.recv(1 << 20)
        except BlockingIOError:
            node.reactor.turn(0.01)
            continue
        if not part:
            break
        data += part
        if len(data) >= size:
            break
    return data
