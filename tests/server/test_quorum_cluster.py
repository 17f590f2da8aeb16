"""Several brokers of one process under three controllers, without sockets: they reach each other by connections of the
simulator."""

import random
from types import SimpleNamespace

import pytest

from pykafkad.errors import ConfigError
from pykafkad.raft.events import Resign
from pykafkad.server import broker_lifecycle, cluster_settings, quorum_cluster, run
from pykafkad.server.quorum_cluster import QuorumCluster
from tests.handlers.requests import batch, produce
from tests.simulation.brokers_world import BrokersWorld
from tests.simulation.world import InstantOffload


class QuorumWorld(BrokersWorld):
    """Brokers 1 to 3, controllers 3000 to 3002."""

    def _process(self, base, members, advertised, surroundings):
        del surroundings["authorizer"]
        ports = [19093, 19094, 19095]
        nodes = cluster_settings.of_quorum(base, members, ports, self.disk, random.Random(7))
        quorum, brokers = ([(each, run.parse_listeners(each)) for each in some] for some in nodes)
        return QuorumCluster(quorum, brokers, **surroundings)

    def _start(self):
        runtime = self.runtime
        runtime.cpu_offload = InstantOffload(runtime.reactor.wake, runtime.unexpected)
        for each in (*(one.controller for one in self.process.controllers), *self.sources()):
            each.sync_offload = InstantOffload(runtime.reactor.wake, runtime.unexpected)
        self.process.begin()
        self.until(lambda: len(self.process.brokers) == len(self.process.members))

    def sources(self):
        """What each broker learns the metadata from."""
        return [each.source for each in self.process.members.values()]

    def active(self):
        """The controller that decides; None where there is not exactly one."""
        found = [one.controller for one in self.process.controllers if one.controller.metadata_log.is_active]
        return found[0] if len(found) == 1 else None


@pytest.fixture
def world():
    world = QuorumWorld()
    yield world
    assert world.runtime.metrics.unexpected_errors == 0


def logs_of(world, topic):
    """The replicas of a topic's first partition, None where one is not there yet."""
    return [world.broker(node_id).partitions.get(topic, 0) for node_id in (1, 2, 3)]


def test_another_controller_takes_over(world):
    """What the first has decided stays, and the brokers go to the next one by themselves."""
    world.create_topic("before", 3, replication_factor=3)
    first = world.active()
    first.metadata_log.member.shell.step(Resign())
    world.until(lambda: world.active() not in (None, first))
    world.create_topic("after", 3, replication_factor=3)
    for source in world.sources():
        world.until(lambda source=source: {"before", "after"} <= set(source.image.topics))
    for controller in (one.controller for one in world.process.controllers):
        world.until(lambda controller=controller: "after" in controller.image.topics)
    for topic in ("before", "after"):
        leader = world.image.partition(topic, 0).leader
        world.until(lambda topic=topic: None not in logs_of(world, topic))
        answer = world.ask(leader, produce(topic, {0: batch(b"value")}), 12)
        assert answer.responses[0].partition_responses[0].error_code == 0
        world.until(lambda topic=topic: [log.end_offset for log in logs_of(world, topic)] == [1, 1, 1])


def test_each_node_has_everything_of_its_own(world):
    """And one broker of all tells of topics."""
    paths = [each.directories.paths[0] for each in (*world.process.controllers, *world.process.members.values())]
    assert paths == [
        *(f"/data/controller{node}" for node in (3000, 3001, 3002)),
        *(f"/data/broker{n}" for n in (1, 2, 3)),
    ]
    assert len({id(world.broker(node_id).services.open_data_snapshots()) for node_id in (1, 2, 3)}) == 1
    assert len({id(source.image) for source in world.sources()}) == 3
    assert [world.broker(node_id).tells_topics for node_id in (1, 2, 3)] == [True, False, False]
    assert [listener.port for listener in world.process.listeners] == [9092, 9093, 9094]


def test_a_stop_during_the_start_ends_it():
    """Nobody waits for brokers that cannot be registered."""
    world = QuorumWorld.__new__(QuorumWorld)
    world._start = lambda: None
    QuorumWorld.__init__(world)
    world.runtime.stop("a signal")
    with pytest.raises(ConfigError, match="a signal"):
        world.process.start()


def test_the_audit_of_every_node_is_closed(world):
    """A node without one has nothing to close."""

    class Audit:
        def close(self):
            closed.append(self)

    closed = []
    audits = [Audit(), Audit()]
    world.process.controllers[1].audit, world.process.members[2].audit = audits
    world.process.audit.close()
    assert closed == audits


def test_a_broker_that_leaves_already_goes_on_with_it():
    """Asked once more it would end at once, with all that it leads."""

    class Lifecycle:
        def __init__(self, state):
            self.state = state

        def leave(self):
            left.append(self.state)

        def close(self):
            """The stop is over."""

    left = []
    states = [broker_lifecycle.STARTING, broker_lifecycle.RUNNING, broker_lifecycle.LEAVING, broker_lifecycle.GONE]
    places = {
        number: SimpleNamespace(process=SimpleNamespace(lifecycle=Lifecycle(state)))
        for number, state in enumerate(states)
    }
    runtime = SimpleNamespace(clock=SimpleNamespace(now=lambda: 0.0))
    cluster = SimpleNamespace(broker_places=places, runtime=runtime, can_decide=False, goes_back=False)
    quorum_cluster._Leaving(cluster).stop_listening()
    assert left == states[:2]
