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

Rounds that find nothing go on meanwhile on both sides: they count with the seconds that it took."""

from __future__ import annotations

import argparse
import gc
import random
import time

from tests.simulation.replication_world import World

IDLE_SECONDS = 4.0
LIMIT_SECONDS = 120.0
TOPIC_PARTITIONS = 1000
REPLICAS = 3
WAIT_SECONDS = 0.2
"""`replica.fetch.wait.max.ms` of the simulated brokers; Kafka's default is 0.5."""

# Fetch 18 and its answer, with their lengths and headers; the client id of a fetcher of Kafka is broker-N-fetcher-0.
IDLE_BYTES = 73 + 21
# Partition, epochs, offsets, sizes, tags, and a share of the topic's id.
NAMED_BYTES = 4 + 4 + 8 + 4 + 8 + 4 + 1 + 1
# Partition, error, high watermark, last stable offset, log start, lists, tags.
ANSWERED_BYTES = 4 + 2 + 8 + 8 + 8 + 1 + 4 + 1 + 1


class LargeCluster(World):
    """`brokers` brokers with `partitions` partitions of three replicas each, placed from the seed."""

    def __init__(self, brokers, partitions, seed=1):
        self._told = set()
        self.messages = self.bytes = 0
        super().__init__(seed, brokers)
        network = self.cluster.network
        self._carry, network.carry = network.carry, self._counted
        chance = random.Random(seed)
        for number, first in enumerate(range(0, partitions, TOPIC_PARTITIONS)):
            count = min(TOPIC_PARTITIONS, partitions - first)
            placed = [chance.sample(range(1, brokers + 1), REPLICAS) for _ in range(count)]
            self.create_topic(f"t{number}", placed, min_insync_replicas=2)

    def record_committed(self, record, offset, epoch):
        """As in a real cluster, what is committed together is told together: once to each broker."""
        self.committed.append((record, offset, epoch))
        for node in getattr(self, "nodes", {}).values():
            if node.is_running and node.broker.serving and node.node_id not in self._told:
                self._told.add(node.node_id)
                self.later(lambda node=node: self._tell(node))

    def _tell(self, node):
        self._told.discard(node.node_id)
        if node.is_running:
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


def figures(brokers, partitions, seed=1):
    """Rows (what, virtual seconds, messages, bytes, and both of Kafka's design)."""
    cluster = LargeCluster(brokers, partitions, seed)
    cluster.until(cluster.is_in_sync)
    # The first Fetches of sessions are over.
    cluster.run(3.0)
    rows = []
    seconds, count, size = cluster.idle()
    rows.append(("idle", seconds, count, size, *design_idle(cluster, seconds)))
    victim = brokers
    led = sum(state.leader == victim for state in cluster.states)
    held = sum(victim in state.replicas for state in cluster.states)
    seconds, count, size = cluster.fail(victim)
    rows.append(("failover", seconds, count, size, *design_change(cluster, seconds, led * (REPLICAS - 2))))
    seconds, count, size = cluster.heal(victim)
    rows.append(("healing", seconds, count, size, *design_change(cluster, seconds, held)))
    assert cluster.unexpected_errors() == 0, cluster.lines
    return rows


def main():
    """Prints the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.large_cluster", description=__doc__)
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=1000)
    options = parser.parse_args()
    # A world makes many objects and few cycles.
    gc.freeze()
    gc.set_threshold(50_000)
    began = time.process_time()
    print("what      seconds  messages and bytes per partition and second, of Kafka's design")
    for what, seconds, count, size, messages, size_bytes in figures(options.brokers, options.partitions):
        share = options.partitions * seconds
        print(
            f"{what:9} {seconds:7.1f}  {count / share:.4f} {size / share:.2f}, "
            f"{messages / share:.4f} {size_bytes / share:.2f}"
        )
    print(f"{time.process_time() - began:.0f} s of the processor")


if __name__ == "__main__":
    main()
