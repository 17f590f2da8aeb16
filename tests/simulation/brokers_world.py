"""Several brokers of one process without sockets: they reach each other, and clients reach each of them, over
connections of the simulator. What order leaves open is drawn from a seed."""

from __future__ import annotations

import random

from pykafkad import config
from pykafkad.clock import ManualClock
from pykafkad.server import cluster_settings
from pykafkad.server.cluster import Cluster
from pykafkad.server.listeners import Listener
from pykafkad.server.reactor import Reactor
from pykafkad.wire import messages
from tests.simulation.disk import MemoryDisk
from tests.simulation.network import Host, Network
from tests.simulation.world import _USUAL, InstantOffload, LateOffload, ManualWrites, Peer

MOST_TURNS = 20_000
HOST = "127.0.0.1"


class BrokersWorld:
    """`brokers` brokers with the node ids 1, 2 … at the ports 9092, 9093 …, and their clients."""

    def __init__(
        self, brokers=3, *, seed=1, disk=None, clock=None, racks=(), authorizer=None, advertised=None, **settings
    ):
        self.clock = clock or ManualClock()
        self.disk = disk or MemoryDisk()
        self.network = Network(self.clock, random.Random(seed))
        self.host = Host(self.network, HOST)
        self.peers = []
        properties = {name.replace("_", "."): (str(value), "test") for name, value in settings.items()}
        base = config.Settings.from_properties(
            {**_USUAL, "listeners": (f"PLAINTEXT://{HOST}:9092", "test"), "log.dirs": ("/data", "test"), **properties}
        )
        members = cluster_settings.of_brokers(base, brokers, racks, properties)
        surroundings = {
            "clock": self.clock,
            "disk": self.disk,
            "random": random.Random(seed),
            "reactor": lambda runtime: Reactor(runtime, self.host),
            "authorizer": authorizer,
        }
        self.process = self._process(base, members, advertised, surroundings)
        runtime = self.runtime = self.process.runtime
        self.controller = self.process.controller
        runtime.offload, runtime.cpu_offload = (LateOffload(runtime.reactor.wake, runtime.unexpected) for _ in range(2))
        self.controller.sync_offload = InstantOffload(runtime.reactor.wake, runtime.unexpected)
        self.writes = {
            node_id: ManualWrites(member.broker.log_writer) for node_id, member in self.process.members.items()
        }
        self._start()

    def _process(self, base, members, advertised, surroundings):
        """The brokers and their controller, not started yet."""
        listening = [(each, [self._listener(9091 + each.node_id, advertised)]) for each in members]
        return Cluster(cluster_settings.of_controller(base, members), listening, **surroundings)

    def _start(self):
        """Up to serving."""
        self.process.start()

    @staticmethod
    def _listener(port, advertised):
        return Listener("PLAINTEXT", HOST, port, None if advertised is None else (advertised, port))

    def broker(self, node_id):
        """The broker with this node id."""
        return self.process.members[node_id].broker

    @property
    def image(self):
        """What the controller has decided."""
        return self.controller.image

    def connect(self, node_id):
        """A new client connection to a broker."""
        broker = self.broker(node_id)
        client, server = self.network.pair((HOST, 50_000), (HOST, broker.listeners[0].port))
        connection = broker.socket_server.adopt(server, broker.listeners[0])
        peer = Peer(self, client, connection)
        self.peers.append(peer)
        return peer

    def turn(self):
        """Turns of the loop, as long as bytes are there to be served."""
        for _ in range(MOST_TURNS):
            self.runtime.reactor.turn(0)
            self.runtime.offload.close()
            self.runtime.cpu_offload.close()
            for peer in self.peers:
                peer.take_what_came()
            at = self.runtime.next_turn_at()
            is_due = at is not None and at <= self.clock.now()
            if not self.host.poller.has_events() and not is_due and not self._is_late():
                # Writes beside the loop end one after the other.
                if not any(each.work(1) for each in self.writes.values()):
                    return
        raise AssertionError("they go on for ever")

    def _is_late(self):
        """Whether bytes that have been sent arrive only now."""
        at = self.network.next_at()
        if at is None or at > self.clock.now():
            return False
        self.network.arrive()
        return True

    def advance(self, seconds, step=0.05):
        """Let time pass."""
        until = self.clock.now() + seconds
        while self.clock.now() < until:
            self.clock.advance(min(step, until - self.clock.now()))
            self.network.arrive()
            self.turn()

    def until(self, holds, seconds=60):
        """Let time pass until `holds()`, at most so long."""
        until = self.clock.now() + seconds
        while not holds():
            assert self.clock.now() < until, "it does not come to that"
            self.advance(0.05)

    def ask(self, node_id, request, version):
        """The answer of a broker, however long it takes it."""
        peer = self.connect(node_id)
        peer.send(request, version)
        self.until(lambda: peer.answers)
        return peer.answers[0]

    def create_topic(self, name, partitions=3, replication_factor=1, **configs):
        """Create a topic through the first broker that serves."""
        request = messages.CreateTopicsRequest(
            topics=[
                messages.CreateTopicsRequest.CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=replication_factor,
                    configs=[
                        messages.CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
                        for key, value in configs.items()
                    ],
                )
            ],
            timeout_ms=1000,
        )
        answer = self.ask(self.process.brokers[0].node_id, request, 7)
        assert answer.topics[0].error_code == 0, answer
        return answer.topics[0].topic_id

    def leader(self, topic, partition=0):
        """The node id of a partition's leader."""
        return self.image.partition(topic, partition).leader

    def stop_broker(self, node_id):
        """A controlled shutdown of one broker."""
        done = []
        self.process.stop_broker(node_id, lambda: done.append(True))
        self.until(lambda: done)

    def start_broker(self, node_id):
        """Start it again."""
        done = []
        self.process.start_broker(node_id, lambda: done.append(True))
        self.writes[node_id] = ManualWrites(self.broker(node_id).log_writer)
        self.until(lambda: done)

    def stop(self):
        """A clean stop of the process."""
        self.runtime.close()

    def restart(self, **settings):
        """The same disk and clock under a new process; after `stop` or, without it, as after a kill."""
        return BrokersWorld(len(self.process.members), disk=self.disk, clock=self.clock, **settings)
