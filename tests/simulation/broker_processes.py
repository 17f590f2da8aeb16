"""A controller and brokers in processes of their own, over the simulated network.

What the brokers read of the metadata log they read off the controller's (`Mirror`), a moment after it is committed; all
that they say to the controller goes over connections."""

from __future__ import annotations

import random

from pykafkad import config
from pykafkad.log.replay import batches
from pykafkad.metadata import record_codec
from pykafkad.metadata.image import Image
from pykafkad.server.broker_process import BrokerProcess
from pykafkad.server.listeners import Listener
from pykafkad.server.metadata_source import ActiveController
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import RuntimeNode
from pykafkad.server.wiring import Process
from tests.simulation.cluster import Cluster, EventOffload
from tests.simulation.disk import MemoryDisk
from tests.simulation.network import Host
from tests.simulation.world import _USUAL, Peer

CONTROLLER = "controller"
LAG_SECONDS = 0.02


class Mirror(RuntimeNode):
    """A metadata source that reads the log of a controller in the same program."""

    def __init__(self, world, runtime):
        self.image = Image()
        self.active = ActiveController(1, 1, CONTROLLER, 9093)
        self.is_stuck = False
        self._world = world
        self._runtime = runtime
        self._followers = []
        self._told = []
        self._at = None

    def on_committed(self, follower):
        self._followers.append(follower)

    def active_controller(self):
        return self.active

    def on_new_controller(self, told):
        self._told.append(told)

    def move(self, active):
        """Another controller is active now, or none."""
        self.active = active
        for told in self._told:
            told()

    def start(self):
        """Nothing is known yet."""

    def begin_serving(self):
        """Nothing is written here."""

    def end_turn(self, now):
        if self._at is not None and self._at <= now and not self.is_stuck:
            self._at = None
            self._read()

    def next_deadline(self):
        behind = self._world.controller.image.offset > self.image.offset and not self.is_stuck
        if behind and self._at is None:
            self._at = self._world.clock.now() + LAG_SECONDS
        return self._at if behind else None

    def _read(self):
        controller = self._world.controller
        committed = controller.image.offset
        for header, records in batches(controller.metadata_log._log, self.image.offset + 1):
            for record in records:
                if record.offset <= committed:
                    typed = record_codec.decode(record.key if header.is_control else None, record.value)
                    self.image.apply(typed, record.offset, header.leader_epoch)
        delta = self.image.take_delta()
        if delta:
            for follower in self._followers:
                follower.metadata_changed(delta)


class Client(Peer):
    """A client of one process, whose turns are those of the world."""

    def __init__(self, world, process, listener):
        client, server = world.network.pair(("client", 50_000), (listener.host, listener.port))
        node = process.broker or process.controller
        super().__init__(world, client, node.socket_server.adopt(server, listener))

    def ask(self, request, version, client_id="test"):
        """The answer, however long it takes."""
        before = len(self.answers)
        self.send(request, version, client_id)
        self.world.until(lambda: self.take_what_came() or len(self.answers) > before or self.closed)
        assert len(self.answers) > before, self.closed
        return self.answers[before]


class BrokerProcesses:
    """`brokers` are node ids; each has a host of its own, "broker2" for 2. The controller is node 1."""

    def __init__(self, brokers=(2, 3), *, seed=1, authorizer=None, protocol="PLAINTEXT", **settings):
        """By `protocol` nodes reach each other; then each broker has a listener NODES for that beside its usual one."""
        self.cluster = Cluster(seed, ())
        self.clock, self.network = self.cluster.clock, self.cluster.network
        self.random = random.Random(seed)
        self.settings = {name.replace("_", "."): (str(value), "test") for name, value in settings.items()}
        self.authorizer = authorizer
        self.protocol = protocol
        self.disks = {}
        self.processes = {}
        roles = {"process.roles": ("controller", "test"), "node.id": ("1", "test")}
        process = self._make(Process, CONTROLLER, roles, [Listener("CONTROLLER", CONTROLLER, 9093, None, protocol)])
        self.controller = process.controller
        self.controller.sync_offload = EventOffload(self.cluster, process.runtime)
        process.start()
        for node_id in brokers:
            self.start(node_id)

    def _make(self, kind, host_name, settings, listening, directories=("/data",), **options):
        host = Host(self.network, host_name)
        disk = self.disks.setdefault(host_name, MemoryDisk())
        process = kind(
            config.Settings.from_properties({**_USUAL, **self.settings, **settings}),
            listening,
            directories,
            clock=self.clock,
            disk=disk,
            random=random.Random(self.random.random()),
            reactor=lambda runtime: Reactor(runtime, host),
            authorizer=self.authorizer,
            **options,
        )
        runtime = process.runtime
        runtime.offload, runtime.cpu_offload = (EventOffload(self.cluster, runtime) for _ in range(2))
        self.cluster._hosts[host_name], self.cluster.runtimes[host_name] = host, runtime
        return process

    def start(self, node_id, directories=("/data",), **settings):
        """Start a broker; it registers with time."""
        name = f"broker{node_id}"
        own = {key.replace("_", "."): (str(value), "test") for key, value in settings.items()}
        roles = {
            "process.roles": ("broker", "test"),
            "node.id": (str(node_id), "test"),
            "controller.quorum.bootstrap.servers": (f"{CONTROLLER}:9093", "test"),
            "log.dirs": (",".join(directories), "test"),
            "pykafkad.cluster.id": (self.controller.services.cluster_id, "test"),
        }
        listening = [Listener("PLAINTEXT", name, 9092)]
        if self.protocol != "PLAINTEXT":
            listening.append(Listener("NODES", name, 9095, None, self.protocol))
        make = lambda runtime, *_: Mirror(self, runtime)  # noqa: E731
        process = self._make(BrokerProcess, name, {**roles, **own}, listening, directories, observer=make)
        # Writes beside the loop end at once.
        process.broker.log_writer.beside_until = 0.0
        self.processes[node_id] = process
        process.begin()
        return process

    def broker(self, node_id):
        return self.processes[node_id].broker

    def state(self, node_id):
        return self.processes[node_id].lifecycle.state

    def turn(self):
        """What is due now happens."""
        self.cluster.run(self.clock.now())

    def advance(self, seconds):
        """Let time pass."""
        self.cluster.run(self.clock.now() + seconds)

    def until(self, holds, seconds=60):
        """Let time pass until `holds()`, at most so long."""
        until = self.clock.now() + seconds
        while not holds():
            assert self.clock.now() < until, "it does not come to that"
            self.cluster.run(self.clock.now() + 0.01)

    def until_serving(self):
        """All brokers are unfenced."""
        self.until(lambda: all(each.lifecycle.state == "running" for each in self.processes.values()))

    def until_read(self):
        """All brokers know what the controller has decided."""
        self.until(
            lambda: all(each.source.image.offset == self.controller.image.offset for each in self.processes.values())
        )

    def connect(self, node_id):
        """A client of a broker."""
        process = self.processes[node_id]
        return Client(self, process, process.broker.listeners[0])

    def create_topic(self, node_id, name, assignments):
        """Create a topic by a broker, and wait until all know it."""
        from pykafkad.wire import messages

        request = messages.CreateTopicsRequest
        rows = [
            request.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in enumerate(assignments)
        ]
        topic = request.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=rows)
        (row,) = self.connect(node_id).ask(request(topics=[topic], timeout_ms=1000), 7).topics
        assert row.error_code == 0, row
        self.until(lambda: all(name in each.broker.image.topics for each in self.processes.values()))
        return row.topic_id

    def stop(self, node_id):
        """A controlled shutdown, and the end of the process."""
        process = self.processes.pop(node_id)
        process.lifecycle.leave()
        self.until(lambda: process.lifecycle.state == "gone")
        process.runtime.close()
        self.forget(node_id)
        return process

    def kill(self, node_id):
        """The process is gone, and told nobody."""
        process = self.processes.pop(node_id)
        name = f"broker{node_id}"
        self.disks[name].locks.clear()
        for other in (CONTROLLER, *(f"broker{each}" for each in self.processes)):
            self.network.reset(name, other)
        self.network.listeners.pop((name, 9092)).close()
        self.forget(node_id)
        return process

    def forget(self, node_id):
        """Its turns are over."""
        name = f"broker{node_id}"
        del self.cluster.runtimes[name], self.cluster._hosts[name]

    def close(self):
        """The end of a test: nothing unexpected happened anywhere."""
        for each in self.processes.values():
            each.lifecycle._end()
            each.runtime.close()
            assert each.runtime.metrics.unexpected_errors == 0
        runtime = self.cluster.runtimes[CONTROLLER]
        runtime.close()
        assert runtime.metrics.unexpected_errors == 0
