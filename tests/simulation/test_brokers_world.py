"""Brokers of one process that stop, die and come back while records are written: nothing acknowledged is lost."""

from __future__ import annotations

import random

import pytest

from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.simulation.brokers_world import BrokersWorld
from tests.simulation.network import Link

STEPS = 12
PARTITIONS = 3


class Writer:
    """Sends values to partitions, and remembers those that were acknowledged."""

    def __init__(self, world):
        self.world = world
        self.sent = 0
        self.acknowledged = {index: [] for index in range(PARTITIONS)}
        self.under_way = []

    def send_many(self, index, count):
        """Records to the leader of a partition without waiting for their answers, which may never come."""
        leader = self.world.leader("t", index)
        if leader < 0 or self.world.process.members[leader].state != "serving":
            return
        peer = self.world.connect(leader)
        for _ in range(count):
            value = b"%d" % self.sent
            self.sent += 1
            peer.put_on_the_wire(peer.encode(produce("t", {index: batch(value)}), 12))
            self.under_way.append((peer, len(peer.answers) + len(peer.expected) - 1, index, value))
        self.world.runtime.reactor.turn(0)

    def take_answers(self):
        """What was acknowledged of them."""
        for peer, position, index, value in self.under_way:
            peer.take_what_came()
            if position < len(peer.answers):
                row = peer.answers[position].responses[0].partition_responses[0]
                if row.error_code == 0:
                    self.acknowledged[index].append(value)
        self.under_way = []

    def send(self, index):
        """One record to the leader of a partition, if it has one; it may be refused."""
        leader = self.world.leader("t", index)
        if leader < 0 or self.world.process.members[leader].state != "serving":
            return
        value = b"%d" % self.sent
        self.sent += 1
        answer = self.world.ask(leader, produce("t", {index: batch(value)}), 12)
        if answer.responses[0].partition_responses[0].error_code == 0:
            self.acknowledged[index].append(value)


def values(world, index):
    """The values of a partition at its leader: each is a record of a batch of its own."""
    answer = world.ask(world.leader("t", index), fetch("t", {index: 0}), 12)
    data, found = bytes(answer.responses[0].partitions[0].records), []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        # Behind the value stands the number of headers, before it the length of the value as a varint.
        record = data[61:size]
        found.append(record[-1 - record[5] // 2 : -1])
        data = data[size:]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_nothing_acknowledged_is_lost(seed):
    """At most one broker is away at a time, so that two replicas in sync are left."""
    chance = random.Random(seed)
    world = BrokersWorld(seed=seed, broker_session_timeout_ms=3000, replica_lag_time_max_ms=3000)
    world.network.set_usual_link(Link(delay=0.0005, jitter=0.002))
    world.create_topic("t", PARTITIONS, replication_factor=3, min_insync_replicas=2)
    writer, away = Writer(world), None
    for _ in range(STEPS):
        for _ in range(chance.randrange(1, 4)):
            writer.send(chance.randrange(PARTITIONS))
        if away is None:
            away = chance.choice((1, 2, 3))
            for index in range(PARTITIONS):
                writer.send_many(index, 3)
            world.advance(0.001 * chance.randrange(6), step=0.001)
            if chance.random() < 0.5:
                world.stop_broker(away)
            else:
                world.process.kill_broker(away)
                if chance.random() < 0.7:
                    world.advance(3.1)
            world.advance(3.1)
            writer.take_answers()
        else:
            world.start_broker(away)
            away = None
            world.until(lambda: all(len(state.isr) == 3 for state in world.image.topics["t"].partitions))
    if away is not None:
        world.start_broker(away)
    world.until(lambda: all(len(state.isr) == 3 for state in world.image.topics["t"].partitions))
    for index, acknowledged in writer.acknowledged.items():
        stored = values(world, index)
        assert [value for value in stored if value in set(acknowledged)] == acknowledged
        world.until(lambda index=index: is_equal(world, index))
    assert sum(map(len, writer.acknowledged.values())) > STEPS // 2
    assert world.runtime.metrics.unexpected_errors == 0
    world.stop()


def is_equal(world, index):
    """Whether all replicas of a partition have the same records, and know that they are committed."""
    logs = [world.broker(each).partitions.get("t", index) for each in (1, 2, 3)]
    return len({(log.end_offset, log.high_watermark) for log in logs}) == 1


def test_the_same_seed_gives_the_same_answers():
    """What order leaves open is drawn from the seed alone."""

    def run():
        world = BrokersWorld(seed=7)
        world.network.set_usual_link(Link(delay=0.0005, jitter=0.002))
        world.create_topic("t", 6, replication_factor=2)
        world.ask(2, messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        world.advance(1)
        found = [(state.leader, list(state.isr)) for state in world.image.topics["t"].partitions]
        offset = world.image.offset
        world.stop()
        return found, offset, world.clock.now()

    assert run() == run()
