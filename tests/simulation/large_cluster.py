"""`python -m tests.simulation.large_cluster` has many brokers with many partitions elect, fail over and heal in virtual
time, and prints what they send to each other beside what Kafka's design sends.

Messages are requests and answers between brokers, with all of their bytes. What brokers and the controller say to each
other does not pass the simulated network (`replication_world.py`), and is on neither side of the comparison.

What Kafka's design sends, by its protocol (KIP-227, one fetcher thread for each leader):

* Idle: whoever follows partitions of a leader has one Fetch with it, whatever the number of partitions, which is
  answered after `replica.fetch.wait.max.ms`. So `pairs * 2 / wait` messages a second, where `pairs` counts each
  (follower, leader) with a partition. An empty incremental Fetch and its answer have `IDLE_BYTES`.
* Failover: each partition that gets another leader is named once by each follower that is left, with `NAMED_BYTES`,
  in a Fetch to its new leader, which answers for it once with `ANSWERED_BYTES`; one Fetch has all partitions of a pair.
* Healing: the broker that is back names each of its partitions once to its leader, and is answered once.

Rounds that find nothing go on meanwhile on both sides: they count with the seconds that it took.

The settings of replication are Kafka's defaults. All brokers have one picture of a partition's state, as far as they
have read the same of the metadata (`SharedImage`): a hundred with a picture of 100 000 partitions each would take 2 GB.
All else that a broker has is its own."""

from __future__ import annotations

import argparse
import copy
import gc
import random
import resource
import sys
import time
from typing import NamedTuple

from pykafkad.metadata.image import Image
from pykafkad.wire import messages
from tests.simulation.indexed_disk import IndexedDisk
from tests.simulation.replication_world import World

IDLE_SECONDS = 4.0
LIMIT_SECONDS = 120.0
MOST_TURNS = 20_000_000
TOPIC_PARTITIONS = 5000
REPLICAS = 3
WAIT_SECONDS = 0.5
"""`replica.fetch.wait.max.ms`."""
MOST_SECONDS = {"failover": 5.0, "healing": 4.0}
"""A broker's session of three seconds ends, and others lead soon after; one that is back is soon in sync."""
MOST_MESSAGES, MOST_BYTES = 1.2, 1.5
"""How often what Kafka's design sends may be sent. While topics are created, sessions change with each of them."""
SETTINGS = {
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.backoff.ms": "1000",
    "replica.lag.time.max.ms": "30000",
    "replica.socket.timeout.ms": "30000",
    "replica.high.watermark.checkpoint.interval.ms": "5000",
    "log.flush.offset.checkpoint.interval.ms": "60000",
    "controller.socket.timeout.ms": "30000",
}
"""Kafka's defaults, where those of smaller worlds are others."""

# Fetch 18 and its answer, with their lengths and headers; the client id of a fetcher of Kafka is broker-N-fetcher-0.
IDLE_BYTES = 73 + 21
# Partition, epochs, offsets, sizes, tags, and a share of the topic's id.
NAMED_BYTES = 4 + 4 + 8 + 4 + 8 + 4 + 1 + 1
# Partition, error, high watermark, last stable offset, log start, lists, tags.
ANSWERED_BYTES = 4 + 2 + 8 + 8 + 8 + 1 + 4 + 1 + 1


class SharedImage(Image):
    """A broker's picture of the metadata. States of partitions are those of all brokers: whoever applies a record first
    makes the new state, `states[offset]`, and leaves the old one as it is for those who are not so far yet."""

    __slots__ = ("_states",)

    def __init__(self, states):
        super().__init__()
        self._states = states

    def apply(self, record, offset=None, epoch=None):
        kind = type(record.value)
        if self.transaction is not None or kind not in (messages.PartitionRecord, messages.PartitionChangeRecord):
            super().apply(record, offset, epoch)
            return
        topic = self._topics_by_id[record.value.topic_id]
        index = record.value.partition_id
        state = self._states.get(offset)
        if state is None:
            if kind is messages.PartitionChangeRecord:
                topic.partitions[index] = copy.copy(topic.partitions[index])
            super().apply(record, offset, epoch)
            self._states[offset] = topic.partitions[index]
            return
        self.offset, self.epoch = offset, epoch
        topic.put(state)
        self.delta.partitions[topic.name, index] = state


class LargeCluster(World):
    """`brokers` brokers with `partitions` partitions of three replicas each, placed from the seed."""

    def __init__(self, brokers, partitions, seed=1):
        self._is_told = False
        self._states = {}
        self.messages = self.bytes = 0
        super().__init__(seed, brokers, **SETTINGS)
        self.cluster.most_turns = MOST_TURNS
        network = self.cluster.network
        self._carry, network.carry = network.carry, self._counted
        chance = random.Random(seed)
        for number, first in enumerate(range(0, partitions, TOPIC_PARTITIONS)):
            count = min(TOPIC_PARTITIONS, partitions - first)
            placed = [chance.sample(range(1, brokers + 1), REPLICAS) for _ in range(count)]
            self.create_topic(f"t{number}", placed, min_insync_replicas=2)

    def new_image(self):
        return SharedImage(self._states)

    def new_disk(self):
        return IndexedDisk()

    def record_committed(self, record, offset, epoch):
        """As in a real cluster, what is committed together is told together: once to each broker."""
        self.committed.append((record, offset, epoch))
        if not self._is_told:
            self._is_told = True
            self.cluster.network.at(self.now, self._tell)

    def _tell(self):
        self._is_told = False
        for node in self.nodes.values():
            if node.is_running and node.broker.serving:
                node.link.tell()

    def _counted(self, source, piece):
        if piece:
            self.messages += 1
            self.bytes += len(piece)
        self._carry(source, piece)

    @property
    def _placed(self):
        return ((topic, state) for topic in self.image.topics.values() for state in topic.partitions)

    @property
    def states(self):
        """All partitions as the controller knows them."""
        return [state for _, state in self._placed]

    @property
    def pairs(self):
        """How many (follower, leader) there are with a partition."""
        return len({(each, state.leader) for state in self.states for each in state.replicas if each != state.leader})

    def until(self, holds):
        """Let time pass until `holds()`: the seconds, the messages and the bytes of that."""
        begin, count, size = self.now, self.messages, self.bytes
        while not holds():
            assert self.now - begin < LIMIT_SECONDS, "it does not come to that"
            self.run(0.1)
        return self.now - begin, self.messages - count, self.bytes - size

    def idle(self):
        """What is sent while nothing happens."""
        end = self.now + IDLE_SECONDS
        return self.until(lambda: self.now >= end)

    def fail(self, victim):
        """Kill a broker; it goes on until all of its partitions are led by others, who know it, and are followed."""
        self.nodes[victim].kill()
        return self.until(lambda: self._is_led_without(victim))

    def _is_led_without(self, victim):
        return all(
            state.leader != victim and victim not in state.isr and self._has_role(topic, state)
            for topic, state in self._placed
        )

    def heal(self, victim):
        """Start it again; it goes on until it is in sync with everything."""
        self.nodes[victim].start()
        return self.until(self.is_in_sync)

    def is_in_sync(self):
        """Whether all replicas are, and every leader knows it."""
        return all(len(state.isr) == REPLICAS and self._has_role(topic, state) for topic, state in self._placed)

    def _has_role(self, topic, state):
        node = self.nodes.get(state.leader)
        if node is None or not node.is_running:
            return False
        log = node.broker.partitions._by_id.get((topic.id, state.index))
        return log is not None and log.replica.leader_epoch == state.leader_epoch


def design_idle(cluster, seconds):
    """Messages and bytes of Kafka's design while nothing happens."""
    rounds = cluster.pairs * seconds / WAIT_SECONDS
    return 2 * rounds, IDLE_BYTES * rounds


def design_change(cluster, seconds, named):
    """The same for a change after which `named` replicas are named to a leader."""
    count, size = design_idle(cluster, seconds)
    return count + 2 * cluster.pairs, size + named * (NAMED_BYTES + ANSWERED_BYTES) + IDLE_BYTES * cluster.pairs


class Figures(NamedTuple):
    """What a phase took in virtual seconds, what was sent in it, what Kafka's design sends, and how many pairs of
    brokers there are."""

    what: str
    seconds: float
    messages: int
    bytes: int
    design_messages: float
    design_bytes: float
    pairs: int

    def excess(self):
        """What is beyond the limits of a phase, as text; None if nothing is."""
        most_seconds = MOST_SECONDS.get(self.what)
        if most_seconds is not None and self.seconds > most_seconds:
            return f"{self.what}: {self.seconds:.1f} virtual seconds, where {most_seconds} are allowed"
        for name, sent, design, most in (
            ("messages", self.messages, self.design_messages, MOST_MESSAGES),
            ("bytes", self.bytes, self.design_bytes, MOST_BYTES),
        ):
            if self.what != "creation" and sent > most * design:
                return f"{self.what}: {sent} {name}, more than {most} times the {design:.0f} of Kafka's design"
        return None


def figures(brokers, partitions, seed=1):
    """The `Figures` of each phase, as soon as it is over."""
    cluster = LargeCluster(brokers, partitions, seed)
    cluster.until(cluster.is_in_sync)
    created = cluster.now, cluster.messages, cluster.bytes
    yield Figures(
        "creation", *created, *design_change(cluster, cluster.now, (REPLICAS - 1) * partitions), cluster.pairs
    )
    # The first Fetches of sessions are over.
    cluster.run(3.0)
    # What is there now stays.
    gc.freeze()
    sent = cluster.idle()
    yield Figures("idle", *sent, *design_idle(cluster, sent[0]), cluster.pairs)
    victim = brokers
    led = sum(state.leader == victim for state in cluster.states)
    held = sum(victim in state.replicas for state in cluster.states)
    sent = cluster.fail(victim)
    yield Figures("failover", *sent, *design_change(cluster, sent[0], led * (REPLICAS - 2)), cluster.pairs)
    sent = cluster.heal(victim)
    yield Figures("healing", *sent, *design_change(cluster, sent[0], held), cluster.pairs)
    assert cluster.unexpected_errors() == 0, cluster.lines


def main():
    """Prints the figures; ends with 1 if one is beyond its limits."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.large_cluster", description=__doc__)
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # A world makes many objects and few cycles.
    gc.freeze()
    gc.set_threshold(50_000)
    began = time.process_time()
    print(f"{options.brokers} brokers, {options.partitions} partitions of {REPLICAS} replicas")
    print("here, and by Kafka's design: per partition and second, and Fetches of a pair of brokers per second")
    print("phase     virtual s        messages            bytes          Fetches   processor s")
    excesses = []
    for row in figures(options.brokers, options.partitions, options.seed):
        excesses += filter(None, [row.excess()])
        share, of_pair = options.partitions * row.seconds, 2 * max(1, row.pairs) * row.seconds
        print(
            f"{row.what:9} {row.seconds:9.1f} {row.messages / share:7.3f} {row.design_messages / share:7.3f} "
            f"{row.bytes / share:8.1f} {row.design_bytes / share:8.1f} "
            f"{row.messages / of_pair:7.2f} {row.design_messages / of_pair:7.2f} {time.process_time() - began:13.0f}",
            flush=True,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    print(f"{time.process_time() - began:.0f} s of the processor, {peak:.1f} GB of memory")
    print(*excesses, sep="\n", end="\n" if excesses else "")
    return int(bool(excesses))


if __name__ == "__main__":
    sys.exit(main())
