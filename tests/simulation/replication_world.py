"""Brokers with a controller on machines of their own, from one seed: replication under kills, pauses, cut links and
losses of power.

Everything of the brokers is the product's, the fetches between them included. Between the controller and a broker there
is a `ControllerLink`: events go one way and committed records the other, late, and not at all while the link is cut.
Each broker has an image of its own. A broker that the controller does not hear of for `SESSION_SECONDS` is fenced."""

from __future__ import annotations

import random
from types import SimpleNamespace

from pykafkad import config
from pykafkad.clock import Clock
from pykafkad.metadata import events
from pykafkad.metadata.image import Image
from pykafkad.server import metadata_log
from pykafkad.server.broker import Broker
from pykafkad.server.controller_node import ControllerNode
from pykafkad.server.directories import Directories
from pykafkad.server.housekeeping import Housekeeping
from pykafkad.server.listeners import Listener
from pykafkad.server.logs import Logs, Sink
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime
from pykafkad.wire import messages
from tests.simulation.cluster import Cluster, EventOffload
from tests.simulation.disk import MemoryDisk
from tests.simulation.network import EVERYBODY, Host, Link

CONTROLLER = "controller"
PORT = 9092
SESSION_SECONDS = 3.0
HEARTBEAT_SECONDS = 0.5
ROUNDING_SECONDS = 1e-6
"""More than what is lost when a time of one clock becomes one of another."""
SETTINGS = {
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "200",
    "replica.socket.timeout.ms": "3000",
    "controller.socket.timeout.ms": "2000",
    "connections.max.idle.ms": "-1",
    "log.cleaner.enable": "false",
    "log.flush.offset.checkpoint.interval.ms": "5000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
}


def settings(**changes):
    return config.Settings.from_properties({name: (value, "test") for name, value in {**SETTINGS, **changes}.items()})


class LinkToken:
    """Stands for a broker's token at the controller; the answer travels back."""

    def __init__(self, link, token):
        self.link = link
        self.token = token
        self.incarnation = link.node.incarnation

    def deliver(self, message):
        self.link.to_broker(lambda: self.token.deliver(message), self.incarnation)

    def abandon(self, reason):
        abandon = getattr(self.token, "abandon", None)
        if abandon is not None:
            self.link.to_broker(lambda: abandon(reason), self.incarnation)


class ControllerLink:
    """What a broker has of its controller: the image that it has reached, and a way for events."""

    # It has the versions of all APIs.
    api_ranges = None

    def __init__(self, world, node):
        self.world = world
        self.node = node
        self.image = world.new_image()
        self.applied = 0
        self.is_cut = False

    def on_committed(self, follower):
        pass

    def after_opening(self, answer):
        self.node.broker.after_opening(answer)

    def submit(self, event):
        if not self.node.broker.serving or type(event) is events.StopBroker:
            # A start and an end wait for the controller.
            self.world.controller.submit(event)
            self.world.cluster.times.clear()
            self.catch_up()
            return None
        if getattr(event, "token", None) is not None:
            event.token = LinkToken(self, event.token)
        incarnation = self.node.incarnation

        def send():
            if not self.is_cut:
                self.world.controller_does(lambda: self.world.controller.submit(event))
            elif type(event) is events.AssignReplicasToDirs:
                # This one is asked for until it is done, by the same process.
                if self.node.is_running and self.node.incarnation == incarnation:
                    self.world.cluster.network.at(self.world.now + 1.0, send)

        self.world.later(send)
        return None

    def catch_up(self):
        """Apply what is committed; whether there was anything."""
        committed = self.world.committed
        while self.applied < len(committed):
            self.image.apply(*committed[self.applied])
            self.applied += 1

    def to_broker(self, call, incarnation=None):
        """Do something on the broker's loop, after a while, if the link and the broker's life last so long."""
        incarnation = incarnation or self.node.incarnation
        self.world.later(lambda: self._arrived(call, incarnation), self.node.name)

    def _arrived(self, call, incarnation):
        if not self.is_cut and self.node.is_running and self.node.incarnation == incarnation:
            self.node.does(call)

    def tell(self):
        """The broker learns of what was committed."""
        self.to_broker(self._learn)

    def _learn(self):
        before = self.applied
        self.catch_up()
        if self.applied != before and self.node.broker.serving:
            delta = self.image.take_delta()
            if delta:
                self.node.broker.metadata_changed(delta)


class MachineClock(Clock):
    """A machine's clock. It is off by `off_ms` in what it says of the time of day, and runs at a rate of its own."""

    __slots__ = ("_clock", "_own", "_rate", "_since", "off_ms")

    def __init__(self, clock):
        self._clock = clock
        self.off_ms = 0
        self._rate = 1.0
        self._since = self._own = 0.0

    def set_rate(self, rate):
        """Run so many times as fast as the cluster's clock from now on."""
        self._own, self._since = self.now(), self._clock.now()
        self._rate = rate

    def now(self):
        return self._own + (self._clock.now() - self._since) * self._rate

    def now_ms(self):
        return self._clock.now_ms() + self.off_ms + int((self.now() - self._clock.now()) * 1000)

    def in_cluster_seconds(self, at):
        """The time of the cluster's clock at which this one says `at`, or a moment later."""
        if self._since == 0.0 and self._rate == 1.0:
            # Its rate was never set: nothing is lost.
            return at
        return self._since + (at - self._own) / self._rate + ROUNDING_SECONDS


class BrokerNode:
    """A machine with a broker that may be running."""

    def __init__(self, world, node_id):
        self.world = world
        self.node_id = node_id
        self.name = f"10.0.0.{node_id}"
        self.disk = world.new_disk()
        self.clock = MachineClock(world.cluster.clock)
        self.incarnation = 0
        self.is_running = self.is_paused = False
        self.is_stopping = False
        """Whether it is on its way to a clean stop, which may take its time."""
        self.lacks_space_at = 0
        """Which write of the next life finds no space; 0: none."""
        self.heard_at = 0.0
        self.runtime = self.broker = self.link = None

    def start(self):
        """Begin a life on what the disk holds. Raises StorageFailure, and is not running, if that cannot be."""
        world = self.world
        self.incarnation += 1
        self.disk.heal()
        if self.lacks_space_at:
            self.disk.fail("write", at=self.lacks_space_at, part=world.chance.randrange(200))
            self.lacks_space_at = 0
        host = Host(world.cluster.network, self.name)
        runtime = self.runtime = Runtime(
            clock=self.clock,
            disk=self.disk,
            random=random.Random(world.chance.random()),
            reactor=lambda runtime: Reactor(runtime, host),
            logs=Logs("info", world.sink),
        )
        runtime.offload, runtime.cpu_offload = (
            EventOffload(world.cluster, runtime),
            EventOffload(world.cluster, runtime),
        )
        own = settings(**{"node.id": str(self.node_id), **world.settings})
        directories = Directories(runtime, own, ["/data"])
        housekeeping = Housekeeping(runtime, own, directories)
        self.link = ControllerLink(world, self)
        self.link.catch_up()
        broker = self.broker = Broker(
            runtime, own, [Listener("PLAINTEXT", self.name, PORT)], directories, housekeeping, self.link
        )
        runtime.nodes += [directories, housekeeping, broker]
        directories.open("/data")
        broker.bind()
        self.is_running, self.is_paused = True, False
        broker.start(runtime.random.randbytes(16))
        housekeeping.start()
        self.disk.refuses_syncs = True
        world.cluster.adopt(self.name, runtime, host)
        self.heard_at = world.now
        world.broker_started(self)

    def does(self, call):
        """Do something in the broker's next turn."""
        self.runtime.offload._results.append((lambda _: call(), None))
        self.runtime.reactor.wake()

    def kill(self, *, power=False, vanishes=False, wiped=False):
        """The process is gone, or with `power` the machine: what was not synced may be lost. With `vanishes` the others
        do not hear of it. `wiped`: the machine is gone, and comes back with an empty disk."""
        self.disk.refuses_syncs = False
        self.is_running = self.is_paused = False
        if vanishes:
            self.world.cluster.network.vanish(self.name)
        self.world.cluster.release(self.name)
        self.disk.kill()
        if power:
            self.disk.lose_power(self.world.chance)
        if wiped:
            self.disk = self.world.new_disk()
        self.world.stopped_uncleanly(self.node_id, power=power or wiped)

    @property
    def has_offline_logs(self):
        """Whether a log of the broker is out of service."""
        return any(log.offline is not None for log in self.broker.partitions)

    @property
    def is_there(self):
        """Whether it runs, gets time, and is not about to stop."""
        return self.is_running and not self.is_paused and not self.is_stopping

    def stop(self):
        """A clean stop."""
        self.disk.refuses_syncs = False
        self.is_stopping = True
        self.runtime.close()
        self.is_stopping = False
        self.is_running = self.is_paused = False
        self.world.cluster.release(self.name)
        self.disk.kill()

    def pause(self):
        """The process gets no time."""
        self.is_paused = True
        self.world.cluster.runtimes.pop(self.name)

    def resume(self):
        """It goes on."""
        self.is_paused = False
        self.world.cluster.runtimes[self.name] = self.runtime


class ReplicationCluster(Cluster):
    """A cluster whose machines come and go."""

    def _wanted_at(self, name):
        runtime = self.runtimes[name]
        at, clock = runtime.next_turn_at(), runtime.clock
        return at if at is None or clock is self.clock else clock.in_cluster_seconds(at)

    def adopt(self, name, runtime, host):
        self.network.away.discard(name)
        self._hosts[name], self.runtimes[name] = host, runtime

    def release(self, name):
        """The machine is silent: its connections break, nobody waits at its addresses."""
        self.runtimes.pop(name, None)
        network = self.network
        for each in list(network.descriptors.values()):
            if getattr(each, "host", None) == name:
                if getattr(each, "peer", None) is not None and each.is_connected:
                    each.reset()
                each.close()


class World:
    """`brokers` machines with a controller. `run(seconds)` lets time pass."""

    def __init__(self, seed, brokers=3, **changes):
        self.seed = seed
        self.settings = changes
        self.cluster = ReplicationCluster(seed, [])
        self.chance = random.Random(self.cluster.random.random())
        self.lines = []
        self.sink = Sink(self._write_line, self.cluster.clock)
        self.cluster.network.set_usual_link(Link(delay=0.001, jitter=0.004))
        self.committed = []
        self.client_runtimes = []
        self._start_controller()
        self.nodes = {node_id: BrokerNode(self, node_id) for node_id in range(1, brokers + 1)}
        for node in self.nodes.values():
            node.start()
        self._heartbeat()

    def _start_controller(self):
        world = self

        class Recording(Image):
            """Tells of every record that is applied."""

            __slots__ = ()

            def apply(self, record, offset=None, epoch=None):
                super().apply(record, offset, epoch)
                world.record_committed(record, self.offset, epoch)

        usual, metadata_log.Image = metadata_log.Image, Recording
        host = Host(self.cluster.network, CONTROLLER)
        try:
            own = settings(**{"node.id": "100", **self.settings})
            self.controller_clock = MachineClock(self.cluster.clock)
            runtime = self.controller_runtime = Runtime(
                clock=self.controller_clock,
                disk=MemoryDisk(),
                random=random.Random(self.chance.random()),
                reactor=lambda runtime: Reactor(runtime, host),
                logs=Logs("error", self.sink),
            )
            runtime.offload, runtime.cpu_offload = (EventOffload(self.cluster, runtime) for _ in range(2))
            directories = Directories(runtime, own, ["/data"])
            housekeeping = Housekeeping(runtime, own, directories)
            controller = self.controller = ControllerNode(runtime, own, directories, housekeeping, [])
            runtime.nodes += [directories, housekeeping, controller]
            directories.open("/data")
            controller.start()
            controller.activate(runtime.random.randbytes(16))
            controller.begin_serving()
        finally:
            metadata_log.Image = usual
        # Every sync of the metadata is done at once: nothing here is about the quorum.
        self.controller.finish_work()
        self.cluster.adopt(CONTROLLER, runtime, host)

    # --- what larger worlds have in another way ---------------------------------------------------------------------

    def new_image(self):
        """What a broker knows of the metadata before it has read anything."""
        return Image()

    def new_disk(self):
        """That of a machine with a broker."""
        return MemoryDisk()

    # --- between controller and brokers -----------------------------------------------------------------------------

    def record_committed(self, record, offset, epoch):
        self.committed.append((record, offset, epoch))
        for node in getattr(self, "nodes", {}).values():
            if node.is_running and node.broker.serving:
                node.link.tell()

    def stopped_uncleanly(self, node_id, *, power):
        """A broker was killed, or its machine lost power."""

    def broker_started(self, node):
        """A broker has begun a life."""

    def later(self, call, changes=EVERYBODY):
        """After the time that a message takes. For `changes` see `Network.at`."""
        self.cluster.network.at(self.now + self.chance.random() * 0.02, call, changes)

    def controller_does(self, call):
        runtime = self.controller_runtime
        runtime.offload._results.append((lambda _: call(), None))
        runtime.reactor.wake()

    def _heartbeat(self):
        """Who is heard of is unfenced, who is not is fenced."""
        network = self.cluster.network
        for node in self.nodes.values():
            registered = self.controller.image.brokers.get(node.node_id)
            if node.is_running and not node.is_paused and not node.link.is_cut:
                node.heard_at = self.now
                node.link.tell()
                # A broker whose stop takes its time asks for nothing any more.
                if (
                    registered.fenced
                    and not registered.in_controlled_shutdown
                    and node.link.applied == len(self.committed)
                ):
                    self.controller.submit(events.UnfenceBroker(node.node_id, registered.epoch))
            elif registered is not None and not registered.fenced and self.now - node.heard_at > SESSION_SECONDS:
                self.controller.submit(events.FenceBroker(node.node_id, registered.epoch))
        network.at(self.now + HEARTBEAT_SECONDS, self._heartbeat)

    # --- what tests do ----------------------------------------------------------------------------------------------

    @property
    def now(self):
        return self.cluster.clock.now()

    @property
    def image(self):
        """The controller's."""
        return self.controller.image

    def run(self, seconds, holds=lambda: False):
        self.cluster.run(self.now + seconds, holds=holds)

    def decide(self, event_of):
        """Have the controller decide; the answer."""
        answers = []
        token = SimpleNamespace(deliver=answers.append, abandon=answers.append)
        self.controller.submit(event_of(token))
        self.run(5.0, holds=lambda: bool(answers))
        return answers[0]

    def create_topic(self, name, replicas, **configs):
        """One partition for each list of replicas."""
        request = messages.CreateTopicsRequest
        topic = request.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                request.CreatableReplicaAssignment(partition_index=index, broker_ids=list(each))
                for index, each in enumerate(replicas)
            ],
            configs=[
                request.CreatableTopicConfig(name=key.replace("_", "."), value=str(value))
                for key, value in configs.items()
            ],
        )
        answer = self.decide(lambda token: events.CreateTopics(token, [topic]))
        assert [row.error_code for row in answer.topics] == [0], answer
        self.run(0.1)

    def state(self, topic, index=0):
        """A partition as the controller knows it."""
        return self.image.partition(topic, index)

    def leader(self, topic, index=0):
        """The machine that leads a partition, or None."""
        return self.nodes.get(self.state(topic, index).leader)

    def log(self, node_id, topic, index=0):
        """A broker's log of a partition."""
        return self.nodes[node_id].broker.partitions.get(topic, index)

    def _write_line(self, data):
        self.lines.append(data.decode())
        return len(data)

    def unexpected_errors(self):
        """Of the brokers, the controller and the clients."""
        runtimes = [node.runtime for node in self.nodes.values() if node.runtime]
        runtimes += [self.controller_runtime, *self.client_runtimes]
        return sum(runtime.metrics.unexpected_errors for runtime in runtimes)
