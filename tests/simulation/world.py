"""A whole broker in this process without sockets: requests go in as bytes, answers come out as bytes, time moves by
hand.

The node gets sockets that are objects of this process (`network.py`), a clock that stands still, a seeded random and
whatever disk the test hands in; what is done off the loop is known when the test says so. Nothing else differs from a
broker that serves."""

from __future__ import annotations

import random
import struct
from collections import deque

from pykafkad import config
from pykafkad.clock import ManualClock
from pykafkad.disk import Disk
from pykafkad.server.connection import CLOSED
from pykafkad.server.listeners import Listener
from pykafkad.server.offload import Offload, outcome
from pykafkad.server.reactor import Reactor
from pykafkad.server.wiring import Process
from pykafkad.wire import frames, messages
from tests.simulation.network import Host, Network

NOTHING = object()

_USUAL = {
    "group.initial.rebalance.delay.ms": ("0", "test"),
    # Time moves by hours in tests that are not about connections.
    "connections.max.idle.ms": ("-1", "test"),
    # With Kafka's fifty each, most of the time of a test with a group goes into the making of these partitions.
    "offsets.topic.num.partitions": ("3", "test"),
    "transaction.state.log.num.partitions": ("3", "test"),
    "share.coordinator.state.topic.num.partitions": ("3", "test"),
}


class LateOffload:
    """Its jobs run, and what came of them is known, with `close()`: how soon a thread would have done them is the
    system's choice."""

    def __init__(self, wake, failed):
        self._wake = wake
        self._failed = failed
        self._jobs = deque()
        self.working = False

    def submit(self, job, then):
        self._jobs.append((job, then))

    def finished(self):
        """A turn takes nothing."""

    def close(self):
        """Run what was submitted, and what that leads to."""
        while self._jobs:
            job, then = self._jobs.popleft()
            self.working = True
            result = outcome(job)
            self.working = False
            self._wake()
            try:
                then(result)
            except Exception as error:
                self._failed(error)


class InstantOffload(Offload):
    """Its jobs are done, and their results known, when they are handed over."""

    __slots__ = ()

    def submit(self, job, then):
        self._results.append((then, outcome(job)))
        super().finished()

    def finished(self):
        pass


class ManualWrites:
    """Instead of the thread that writes large batches: each write ends with `work`. How soon a thread would end it is
    the system's choice."""

    def __init__(self, writer):
        self._writer = writer
        writer.threads_left = 0

    def work(self, count=1 << 30):
        """Do up to `count` of the writes under way, without telling the loop; returns how many."""
        done = 0
        while done < count and self._writer.write_next():
            done += 1
        return done


class Peer:
    """One client connection. `send` queues a request, `answers` are the decoded answers that have left so far."""

    def __init__(self, world, connected, connection):
        self.world = world
        self.socket = connected
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
        """Put bytes on the wire and let the broker do a turn."""
        self.put_on_the_wire(data)
        self.world.turn()

    def put_on_the_wire(self, data):
        """The broker reads them in its next turn."""
        self.socket.send(data)

    def end(self):
        """The client is gone."""
        if self.connection.state != CLOSED:
            self.world.runtime.reactor.drop(self.connection.transport, "ended by the peer")

    def take_what_came(self):
        """What the broker has sent since, decoded into `answers`."""
        if self.socket.inbox:
            data = bytes(self.socket.inbox)
            self.socket.inbox.clear()
            self.take(data)

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

    def __init__(
        self, path, *, disk=None, clock=None, seed=1, more_directories=(), authorizer=None, listening=None, **settings
    ):
        self.path = str(path)
        self.clock = clock or ManualClock()
        self.disk = disk or Disk()
        self.network = Network(self.clock)
        self.host = Host(self.network)
        self.peers = []
        self.more_directories = more_directories
        self.ends_writes = True
        """Whether the writes beside the loop end while `turn` is at work, one after the other."""
        properties = {name.replace("_", "."): (str(value), "test") for name, value in settings.items()}
        self.process = process = Process(
            config.Settings.from_properties({**_USUAL, **properties}),
            listening or [Listener("PLAINTEXT", "localhost", 9092)],
            [self.path, *more_directories],
            clock=self.clock,
            disk=self.disk,
            random=random.Random(seed),
            reactor=lambda runtime: Reactor(runtime, self.host),
            authorizer=authorizer,
        )
        runtime = self.runtime = process.runtime
        self.broker = process.broker
        self.controller = process.controller
        runtime.offload, runtime.cpu_offload = (LateOffload(runtime.reactor.wake, runtime.unexpected) for _ in range(2))
        process.controller.sync_offload = InstantOffload(runtime.reactor.wake, runtime.unexpected)
        if self.broker is not None:
            self.writes = ManualWrites(self.broker.log_writer)
        process.start()

    @property
    def node(self):
        """Whom clients reach."""
        return self.broker or self.controller

    def connect(self):
        """A new client connection."""
        client, server = self.network.pair()
        connection = self.node.socket_server.adopt(server, self.node.listeners[0])
        peer = Peer(self, client, connection)
        self.peers.append(peer)
        return peer

    def turn(self):
        """One turn of the loop, and more as long as bytes are there to be served or writes are under way."""
        reactor = self.runtime.reactor
        while True:
            reactor.turn(0)
            for peer in self.peers:
                peer.take_what_came()
            if not self.host.poller.has_events() and not any(
                each.has_whole_frame() and not each.state for each in self.node.socket_server.connections()
            ):
                if not (self.ends_writes and self.broker is not None and self.writes.work(1)):
                    return

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
