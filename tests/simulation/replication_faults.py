"""A world of brokers whose faults are drawn from a seed: a swarm of some kinds, healing, then a look at everything.

One machine of a run loses power or its disk: what is acknowledged with acks=all is in two page caches, and not on two
devices. What may be lost with it is in `replication_losses.py`."""

from __future__ import annotations

import random

from pykafkad.errors import StorageFailure
from pykafkad.metadata import events
from pykafkad.metadata.partition_changes import PREFERRED
from pykafkad.wire import messages
from tests.simulation import machine_faults, transactional_part
from tests.simulation.metadata_checkers import MetadataCheckers
from tests.simulation.network import NOBODY, Link
from tests.simulation.replication_checkers import Checkers, Violation
from tests.simulation.replication_clients import CLIENT, Clients, Producer, records_of
from tests.simulation.replication_losses import Losses
from tests.simulation.replication_world import CONTROLLER, World

SECONDS = 25.0
HEALING_SECONDS = 60.0
LOOK_SECONDS = 0.05
PENDING_SECONDS = 0.001
"""Between two looks while a loss is possible: nothing can be committed after it in that time."""
DAY_MS = 86_400_000
SWARM = ("kill", "power", "stop", "pause", "cut", "one way", "reset", "slow", "deaf", "elect", "reassign", "depose")
"""Of these a seed has some."""
RARE = ("clock", "half open", "vanish", "wipe", "rolling", "disk fails", "drift", "disk fills", "full start")
"""Each of these is in few seeds, so that the others find what they found. They are drawn in this order; a new one goes
to the end."""
FAULTS = SWARM + RARE
TRANSACTIONS = "transactions"
"""Not a fault: clients with transactions, which `without` can leave out, too."""
RARE_SHARE = 0.15
CALM_SHARE = 0.03
"""So many seeds have no faults: then nobody may leave an ISR, and nobody is elected."""
LARGER_SHARE = 0.08
"""So many seeds have seven brokers, and as many have five."""


class FaultyWorld(World):
    """`run_all` raises when something does not hold. `without` names faults that do not happen."""

    losses = metadata = transactions = None
    wiped = None
    """The machine whose disk was replaced."""
    is_wipe_known = False
    """Whether the controller has heard of that."""
    is_rolling = False
    """Whether the brokers are being restarted one after the other."""

    def __init__(self, seed, without=(), brokers=None):
        rare = random.Random(f"rare {seed}")
        drawn = rare.random()
        if brokers is None:
            brokers = 7 if drawn < LARGER_SHARE else 5 if drawn < 2 * LARGER_SHARE else 3
        transactions = None if TRANSACTIONS in without else transactional_part.drawn(seed)
        changes = {"unclean.leader.election.enable": "false"}
        if transactions is not None:
            changes.update(transactional_part.SETTINGS)
        super().__init__(seed, brokers=brokers, **changes)
        chance = self.chance
        drawn = chance.sample(SWARM, chance.randint(2, 6)) + [each for each in RARE if rare.random() < RARE_SHARE]
        self.is_calm = random.Random(f"calm {seed}").random() < CALM_SHARE
        self.faults = [] if self.is_calm else [each for each in drawn if each not in without]
        self.happened = dict.fromkeys(FAULTS, 0)
        self.losses = Losses(self)
        self.checkers = Checkers(self, self.losses, self._lost)
        self.metadata = MetadataCheckers(self, self.losses, self.checkers)
        self.may_lose_power = True
        self.failing = set()
        """Machines whose disk fails: they do not stop cleanly."""
        self.is_healing = False
        self.problem = None
        small = {"internal_segment_bytes": 2000} if chance.random() < 0.5 else {}
        last, before = brokers, brokers - 1
        self.create_topic("a", [[1, 2, 3], [2, last, 1], [last, 1, before]], min_insync_replicas=2, **small)
        self.create_topic("b", [[1, 2], [before, last]], min_insync_replicas=2)
        self.clients = Clients(self)
        places = [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]
        self.producers = [Producer(self.clients, *place, pause=chance.choice([0.02, 0.1])) for place in places]
        self.readers = [Reader(self.clients, each) for each in self.producers]
        if transactions is not None:
            self.transactions = transactional_part.TransactionalPart(self, transactions)

    def run_all(self):
        """Faults for a while, then none, then a look at what is left."""
        self.look()
        self._fault()
        self.run(SECONDS)
        self.finish()

    def finish(self):
        """The faults end, and everything is checked."""
        self.heal()
        self.run(HEALING_SECONDS, holds=self.is_settled)
        if not self.is_settled():
            raise Violation(f"not healed: {self.what_lacks()}")
        self._check_producers_go_on()
        for producer in self.producers:
            producer.is_stopped = True
        if self.transactions is not None:
            self.transactions.check_clients_go_on()
            self.transactions.stop()
        self.run(6.0)
        self.run(10.0, holds=self.is_settled)
        self.checkers.look()
        self.metadata.look()
        self.metadata.compare_images()
        if self.problem:
            raise Violation(self.problem)
        self.checkers.check_acknowledged(self.producers)
        self.checkers.check_epochs()
        if self.is_calm:
            self._check_nothing_happened()
        if self.transactions is not None:
            self.transactions.check()
        if self.unexpected_errors():
            raise Violation("".join(line for line in self.lines if "unexpected" in line))

    def _check_producers_go_on(self):
        """Each is acknowledged something new. While there were faults, two replicas in sync may never have met."""
        before = [len(each.acknowledged) for each in self.producers]

        def is_done():
            return all(len(each.acknowledged) > count for each, count in zip(self.producers, before, strict=True))

        self.run(20.0, holds=is_done)
        if not is_done():
            raise Violation("nothing is acknowledged")

    def _check_nothing_happened(self):
        """Every partition is as it was created."""
        for topic in self.image.topics.values():
            for state in topic.partitions:
                if (state.leader_epoch, state.partition_epoch) != (0, 0):
                    raise Violation(f"{topic.name}-{state.index} has changed, although nothing fails: {state}")

    def fail(self, text):
        """Something does not hold; the run ends with its next look."""
        self.problem = self.problem or text

    def look(self):
        """Check what holds at any time, from now on."""
        if self.problem:
            raise Violation(self.problem)
        self.checkers.look()
        self.metadata.look()
        if self.transactions is not None:
            self.transactions.look()
        seconds = PENDING_SECONDS if self.losses.are_pending() else LOOK_SECONDS
        self.cluster.network.at(self.now + seconds, self.look, NOBODY)

    def record_committed(self, record, offset, epoch):
        super().record_committed(record, offset, epoch)
        if self.metadata is not None:
            self.losses.record_committed(record.value)
            self.metadata.record_committed(record.value)

    def broker_started(self, node):
        if self.metadata is not None:
            self.metadata.started(node)

    def stopped_uncleanly(self, node_id, *, power):
        self.metadata.stopped_uncleanly(node_id)
        self.losses.stopped_uncleanly(node_id, power=power)

    def may_stop_uncleanly(self, node):
        """Whether a machine may be killed: not before the controller knows of a disk that was replaced, and not if it
        has the last copy of what that had."""
        if self.wiped is None:
            return True
        self.is_wipe_known = self.is_wipe_known or self.wiped.node_id not in self.losses.unknown()
        return self.is_wipe_known and self.losses.can_lose(node.node_id, beside=self.wiped.node_id)

    def _lost(self, place, offset):
        """Clients need not find again what they know from behind an offset."""
        for each in (*self.producers, *self.readers):
            if (each.topic, each.index) == place:
                each.forget(offset)
        if self.transactions is not None:
            self.transactions.lost(place)

    # --- faults -----------------------------------------------------------------------------------------------------

    def _fault(self):
        if self.is_healing or not self.faults:
            return
        kind = self.chance.choice(self.faults)
        self.happened[kind] += bool(_FAULTS[kind](self))
        self.cluster.network.at(self.now + self.chance.expovariate(1.0), self._fault)

    def any_running(self):
        running = [each for each in self.nodes.values() if each.is_there]
        return self.chance.choice(running) if running else None

    def later_start(self, node, seconds):
        """A machine starts again after a while."""

        def start():
            if not node.is_running:
                if self.controller.is_busy:
                    self.cluster.network.at(self.now + 0.01, start)
                    return
                try:
                    node.start()
                except StorageFailure:
                    # Its process has ended; somebody starts it again.
                    node.kill()
                    self.cluster.network.at(self.now + 0.5, start)

        self.cluster.network.at(self.now + seconds, start)

    def kill(self, power=False):
        node = self.any_running()
        if node is None or (power and not self.may_lose_power) or not self.may_stop_uncleanly(node):
            return False
        if power:
            self.may_lose_power = False
        node.kill(power=power)
        self.later_start(node, self.chance.choice([0.1, 1.0, 5.0]) * self.chance.random())
        return True

    def may_stop(self, node):
        """Whether a broker can be stopped cleanly now."""
        return node.is_there and node not in self.failing and not self.controller.is_busy

    def stop(self):
        node = self.any_running()
        if node is None or not self.may_stop(node):
            return False
        node.stop()
        self.later_start(node, self.chance.random() * 4.0)
        return True

    def pause(self):
        node = self.any_running()
        if node is None:
            return False
        node.pause()
        incarnation = node.incarnation

        def resume():
            if node.is_running and node.is_paused and node.incarnation == incarnation:
                node.resume()

        self.cluster.network.at(self.now + self.chance.choice([0.5, 2.5, 6.0]) * self.chance.random(), resume)
        return True

    def _ends(self):
        return [each.name for each in self.chance.sample(list(self.nodes.values()), 2)]

    def cut(self, both=True):
        one, other = self._ends()
        network = self.cluster.network
        ends = [(one, other), (other, one)] if both else [(one, other)]
        for each in ends:
            network.cut(*each)
        seconds = self.chance.choice([0.5, 3.0, 8.0]) * self.chance.random()
        for each in ends:
            network.at(self.now + seconds, lambda each=each: network.mend(*each))
        return True

    def reset(self):
        self.cluster.network.reset(*self._ends())
        return True

    def slow(self):
        one, other = self._ends()
        link = Link(delay=0.05, jitter=0.3, bytes_per_second=20_000, window_bytes=5_000)
        self.cluster.network.set_link(one, other, link)
        return True

    def deaf(self):
        """A broker and the controller do not hear each other."""
        node = self.any_running()
        if node is None:
            return False
        link = node.link
        link.is_cut = True

        def mend():
            link.is_cut = False

        self.cluster.network.at(self.now + self.chance.choice([0.5, 4.0, 8.0]) * self.chance.random(), mend)
        return True

    def depose(self):
        """The leader of a partition is cut off from all others, the controller included, while clients reach it."""
        producer = self.chance.choice(self.producers)
        node = self.leader(producer.topic, producer.index)
        if node is None or not node.is_there:
            return False
        network, others = self.cluster.network, [each for each in self.nodes.values() if each is not node]
        ends = [pair for other in others for pair in ((node.name, other.name), (other.name, node.name))]
        link = node.link
        link.is_cut = True
        for each in ends:
            network.cut(*each)

        def mend():
            link.is_cut = False
            for each in ends:
                network.mend(*each)

        network.at(self.now + 3.0 + 3.0 * self.chance.random(), mend)
        return True

    def clock(self):
        """A machine's clock jumps a day, forward or back, and later perhaps to where it was."""
        clock = self.chance.choice([self.controller_clock, *(each.clock for each in self.nodes.values())])
        clock.off_ms = self.chance.choice([-DAY_MS, DAY_MS])

        def set_right():
            clock.off_ms = 0

        if self.chance.random() < 0.7:
            self.cluster.network.at(self.now + 5.0 * self.chance.random(), set_right)
        return True

    def half_open(self):
        """The connections of two machines are dead, and none of them hears of that."""
        self.cluster.network.half_open(*self._ends())
        return True

    def vanish(self):
        """A machine is gone at once, and is back later; its connections are half open meanwhile."""
        node = self.any_running()
        if node is None or not self.may_stop_uncleanly(node):
            return False
        node.kill(vanishes=True)
        self.later_start(node, self.chance.choice([1.0, 5.0]) * self.chance.random())
        return True

    def elect(self):
        self.controller.submit(events.ElectLeaders(None, PREFERRED, None, 2))
        return True

    def reassign(self):
        """The partitions of `b` move from machine to machine."""
        request = messages.AlterPartitionReassignmentsRequest
        index = self.chance.randrange(2)
        state = self.state("b", index)
        if state.adding_replicas or state.removing_replicas:
            # As in Kafka, a move that is turned round while it goes on may have no end.
            return False
        asked = request.ReassignablePartition(partition_index=index, replicas=self.chance.sample(sorted(self.nodes), 2))
        topics = [request.ReassignableTopic(name="b", partitions=[asked])]
        self.controller.submit(events.AlterPartitionReassignments(None, request(topics=topics)))
        return True

    # --- healing ----------------------------------------------------------------------------------------------------

    def heal(self):
        self.is_healing = True
        network = self.cluster.network
        for clock in (self.controller_clock, *(each.clock for each in self.nodes.values())):
            clock.off_ms = 0
            clock.set_rate(1.0)
        names = [each.name for each in self.nodes.values()]
        for one in names:
            for other in names:
                if one != other:
                    network.mend(one, other)
                    network.set_link(one, other, Link(delay=0.001, jitter=0.004))
        for node in self.nodes.values():
            if node.is_running:
                node.link.is_cut = False
            if node.is_paused:
                node.resume()
            if not node.is_running:
                self.later_start(node, 0.0)

    def what_lacks(self):
        """The partitions that are not whole, with why."""
        lacking = []
        for topic in self.image.topics.values():
            for state in topic.partitions:
                logs = [
                    self.nodes[each].broker.partitions.get(topic.name, state.index)
                    if self.nodes[each].is_running
                    else None
                    for each in state.replicas
                ]
                # To look at a log that nobody has needed yet would load it, and wait for the disk.
                ends = [
                    (log.written_end_offset, log.high_watermark) if log is not None and log.is_loaded else None
                    for log in logs
                ]
                if (
                    set(state.isr) != set(state.replicas)
                    or state.leader < 0
                    or state.adding_replicas
                    or state.removing_replicas
                    or None in ends
                    or len(ends) < len(state.replicas)
                    or (all(each.is_stopped for each in self.producers) and len(set(ends)) > 1)
                ):
                    lacking.append((topic.name, state, ends))
        return lacking

    def is_settled(self):
        """Whether every replica is in sync again, and nobody is where it should not be."""
        if self.what_lacks():
            return False
        if self.transactions is not None and self.transactions.are_stopped and self.transactions.open_places():
            return False
        for node in self.nodes.values():
            if node.link.applied != len(self.committed):
                return False
            for log in node.broker.partitions:
                if node.node_id not in self.state(log.topic, log.partition).replicas:
                    return False
        return True


_FAULTS = {
    "kill": FaultyWorld.kill,
    "power": lambda world: world.kill(power=True),
    "stop": FaultyWorld.stop,
    "pause": FaultyWorld.pause,
    "cut": FaultyWorld.cut,
    "one way": lambda world: world.cut(both=False),
    "reset": FaultyWorld.reset,
    "slow": FaultyWorld.slow,
    "deaf": FaultyWorld.deaf,
    "depose": FaultyWorld.depose,
    "clock": FaultyWorld.clock,
    "half open": FaultyWorld.half_open,
    "vanish": FaultyWorld.vanish,
    "wipe": machine_faults.wipe,
    "rolling": machine_faults.rolling,
    "disk fails": machine_faults.disk_fails,
    "drift": machine_faults.drift,
    "disk fills": machine_faults.disk_fills,
    "full start": machine_faults.full_start,
    "elect": FaultyWorld.elect,
    "reassign": FaultyWorld.reassign,
}
assert tuple(sorted(_FAULTS)) == tuple(sorted(FAULTS)) and CONTROLLER


class Reader:
    """Reads what a producer writes again and again, at any broker: what it sees at an offset is seen there ever
    after."""

    def __init__(self, clients, producer):
        self.clients, self.world = clients, clients.world
        self.producer = producer
        self.topic, self.index = producer.topic, producer.index
        self.seen = {}
        self.offset = 0
        self._next()

    def forget(self, offset):
        """What was read from this offset on is there no more."""
        self.seen = {each: value for each, value in self.seen.items() if each < offset}
        self.offset = min(self.offset, offset)

    def _next(self):
        chance, world = self.world.chance, self.world
        replicas = world.state(self.topic, self.index).replicas
        if chance.random() < 0.3:
            self.offset = 0
        request = self.clients.fetch_request(self.topic, self.index, self.offset)
        self.clients.send(chance.choice(replicas), request, self._answered)

    def _answered(self, answer):
        if isinstance(answer, messages.FetchResponse) and not answer.error_code:
            row = answer.responses[0].partitions[0]
            if not row.error_code:
                for offset, value in records_of(row.records, self.offset):
                    if value is None:
                        self.offset = offset + 1
                        continue
                    if self.producer.is_forgotten(offset, value):
                        continue
                    if self.seen.setdefault(offset, value) != value:
                        self.world.fail(
                            f"{self.topic}-{self.index}: {value} is read at {offset}, and {self.seen[offset]} was"
                        )
                    self.offset = offset + 1
        self.world.cluster.network.at(self.world.now + self.world.chance.uniform(0.05, 0.5), self._next, CLIENT)
