"""A whole broker in this process without sockets: requests go in as bytes, answers come out as bytes, time moves by
hand.

The reactor is replaced, and the node gets a clock that stands still, a seeded random and whatever disk the test hands
in; what is done off the loop is known when the test says so. Nothing else differs from a broker that serves."""

from __future__ import annotations

import random
import struct
from typing import ClassVar

from pykafkad import config
from pykafkad.clock import ManualClock
from pykafkad.disk import Disk
from pykafkad.server.connection import OUTBOX_LIMIT_BYTES, SCRATCH_BYTES, Connection
from pykafkad.server.listeners import Listener
from pykafkad.server.offload import Offload, _outcome
from pykafkad.server.wiring import Process
from pykafkad.wire import frames, messages

NOTHING = object()


class FakeReactor:
    """What a node needs of a reactor, with peers that are objects of the test."""

    def __init__(self, runtime, *, max_frame_bytes, idle_seconds, max_connections):
        self.node = None
        self.max_frame_bytes = max_frame_bytes
        self.connections = {}
        self.ready = []
        self.resumable = []
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))

    def listen(self, host, port, listener, *, send_buffer_bytes, backlog):
        return port or 9092

    def stop_listening(self):
        pass

    def wake(self):
        pass

    def next_wake(self):
        return float("inf")

    def drain(self, seconds_left):
        pass

    def close(self):
        self.connections.clear()

    def connection(self, connection_id):
        return self.connections.get(connection_id)

    def release(self, connection):
        connection.held = False
        if self.connections.get(connection.id) is connection:
            self.send_soon(connection)
            if connection.blocked:
                connection.blocked = False
                if not connection.update_muted():
                    self.resumable.append(connection)

    def send_soon(self, connection):
        if not connection.queued:
            connection.queued = True
            self.ready.append(connection)


class LateOffload(Offload):
    """Its jobs run on a thread, as a broker's; what came of them arrives with `close()`, however soon the thread has
    it."""

    __slots__ = ()

    working: ClassVar[list[LateOffload]] = []
    """Those with a thread, which keeps the whole world alive."""

    def _start(self):
        super()._start()
        self.working.append(self)

    @classmethod
    def end_threads(cls):
        """Of worlds that tests left as they were: nobody would end them. What is still used starts anew."""
        while cls.working:
            Offload.close(cls.working.pop())

    def finished(self):
        """A turn takes nothing: whether it would find something is the system's choice."""

    def close(self):
        super().close()
        super().finished()


class InstantOffload(Offload):
    """Its jobs are done, and their results known, when they are handed over."""

    __slots__ = ()

    def submit(self, job, then):
        self._results.append((then, _outcome(job)))
        super().finished()

    def finished(self):
        pass


class Peer:
    """One client connection. `send` queues a request, `answers` are the decoded answers that have left so far."""

    def __init__(self, world, connection):
        self.world = world
        self.connection = connection
        self.received = bytearray()
        self.expected = []
        self.answers = []
        self.correlation_id = 0

    @property
    def closed(self):
        """Why the broker closed the connection, or None."""
        return self.connection.close_reason

    def send(self, request, version, client_id="test"):
        """Put a request on the wire and let the broker do a turn."""
        self.send_bytes(self.encode(request, version, client_id))

    def encode(self, request, version, client_id="test"):
        """The request's frame; its answer is expected from now on."""
        name = type(request).__name__.removesuffix("Request")
        response = getattr(messages, f"{name}Response")
        key = messages.record_type(type(request))
        self.correlation_id += 1
        flexible_from = messages.flexible_from(type(request))
        flexible = flexible_from is not None and version >= flexible_from
        chunks = [frames.start_request(key, version, self.correlation_id, client_id, flexible)]
        messages.encoder(type(request), version)(request, chunks)
        frames.finish_frame(chunks)
        if getattr(request, "acks", None) != 0:
            self.expected.append((response, version, flexible and key != 18))
        return b"".join(chunks)

    def send_bytes(self, data):
        """Feed bytes as the reactor would, then finish the turn."""
        reactor, connection = self.world.runtime.reactor, self.connection
        self.world.runtime.begin_turn()
        if connection.muted:
            reactor.scratch[: len(data)] = data
            connection.receive_muted(reactor.scratch, len(data))
            self.world.broker.end_early(connection)
        else:
            data = bytes(connection.pending) + data
            self.world.feed(connection, data)
        self.world.turn(begin=False)

    def ask(self, request, version, client_id="test"):
        """Send and return the answer; NOTHING if it is parked."""
        before = len(self.answers)
        self.send(request, version, client_id)
        return self.answers[before] if len(self.answers) > before else NOTHING

    def take(self, data):
        """Bytes that left the broker."""
        self.received += data
        while len(self.received) >= 4:
            (size,) = struct.unpack_from(">i", self.received)
            if len(self.received) < 4 + size:
                return
            frame = memoryview(bytes(self.received[4 : 4 + size]))
            del self.received[: 4 + size]
            response, version, tagged = self.expected.pop(0)
            _, position = frames.read_response_header(frame, tagged)
            message, end = messages.decoder(response, version)(frame, position)
            assert end == size, f"{size - end} bytes after the answer {message}"
            self.answers.append(message)


class World:
    """A node and its peers."""

    def __init__(self, path, *, disk=None, clock=None, seed=1, more_directories=(), authorizer=None, **settings):
        self.path = str(path)
        self.clock = clock or ManualClock()
        self.disk = disk or Disk()
        self.peers = []
        self.more_directories = more_directories
        properties = {name.replace("_", "."): (str(value), "test") for name, value in settings.items()}
        self.process = process = Process(
            config.Settings.from_properties({"group.initial.rebalance.delay.ms": ("0", "test"), **properties}),
            [Listener("PLAINTEXT", "localhost", 9092)],
            [self.path, *more_directories],
            clock=self.clock,
            disk=self.disk,
            random=random.Random(seed),
            reactor=FakeReactor,
            authorizer=authorizer,
        )
        runtime = self.runtime = process.runtime
        self.broker = process.broker
        self.controller = process.controller
        runtime.offload, runtime.cpu_offload = (LateOffload(runtime.reactor.wake, runtime.unexpected) for _ in range(2))
        process.controller.sync_offload = InstantOffload(runtime.reactor.wake, runtime.unexpected)
        process.start()

    def connect(self):
        """A new client connection."""
        reactor, node = self.runtime.reactor, self.broker or self.controller
        connection = Connection(len(self.peers) + 1, "127.0.0.1:50000", node.serve, reactor.max_frame_bytes, [])
        connection.listener = node.listeners[0]
        connection.session = node.sessions.open(connection.listener, connection.peer)
        connection.local_address = ("127.0.0.1", 9092)
        reactor.connections[connection.id] = connection
        peer = Peer(self, connection)
        self.peers.append(peer)
        return peer

    def feed(self, connection, data):
        """Bytes for a connection that serves, in as many rounds as its share of a turn makes of them."""
        scratch = self.runtime.reactor.scratch
        scratch[: len(data)] = data
        connection.receive(scratch, len(data))
        while not connection.muted and connection.outbox_bytes <= OUTBOX_LIMIT_BYTES and connection.has_whole_frame():
            kept = len(connection.pending)
            scratch[:kept] = connection.pending
            connection.receive(scratch, kept)
        (self.broker or self.controller).end_early(connection)

    def turn(self, *, begin=True):
        """One turn of the loop: timers, waits, writes, and everything in the outboxes leaves."""
        runtime, reactor = self.runtime, self.runtime.reactor
        if begin:
            runtime.begin_turn()
        runtime.end_turn()
        while reactor.resumable:
            resumable, reactor.resumable = reactor.resumable, []
            for connection in resumable:
                if not connection.muted and connection.pending:
                    self.feed(connection, bytes(connection.pending))
            runtime.end_turn()
        ready, reactor.ready = reactor.ready, []
        for connection in ready:
            connection.queued = False
            data = b"".join(chunk.pread() if hasattr(chunk, "pread") else chunk for chunk in connection.outbox)
            connection.outbox.clear()
            if connection.outbox_bytes > OUTBOX_LIMIT_BYTES and not connection.muted:
                reactor.resumable.append(connection)
            connection.outbox_bytes = 0
            self.peers[connection.id - 1].take(data)
            if connection.close_reason is not None:
                reactor.connections.pop(connection.id, None)
                (self.broker or self.controller).connection_lost(connection)

    def advance(self, seconds, steps=1):
        """Let time pass in `steps` turns."""
        for _ in range(steps):
            self.clock.advance(seconds / steps)
            self.turn()

    def create_topic(self, name, partitions=1, **configs):
        """Create a topic through the protocol."""
        request = messages.CreateTopicsRequest(
            topics=[
                messages.CreateTopicsRequest.CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=1,
                    configs=[
                        messages.CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
                        for key, value in configs.items()
                    ],
                )
            ],
            timeout_ms=1000,
        )
        peer = self.connect()
        peer.send(request, 7)
        while not peer.answers:
            self.turn()
        answer = peer.answers[0]
        assert answer.topics[0].error_code == 0, answer
        return answer.topics[0].topic_id

    def stop(self):
        """A clean stop."""
        self.runtime.close()

    def restart(self, **settings):
        """The same disk and clock under a new node; after `stop` or, without it, as after a kill."""
        settings.setdefault("more_directories", self.more_directories)
        return World(self.path, disk=self.disk, clock=self.clock, **settings)
