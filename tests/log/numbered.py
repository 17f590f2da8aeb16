"""Brokers whose records are numbers: producing them, reading all of them, and the contents of a folder."""

from __future__ import annotations

from pathlib import Path

from tests.handlers.requests import batch, fetch, produce
from tests.handlers.test_produce import values
from tests.simulation.world import World


def fill(world, start, count, topic="t"):
    peer = world.connect()
    for number in range(start, start + count):
        answer = peer.ask(produce(topic, {number % 2: batch(b"%d" % number)}), 8)
        assert answer.responses[0].partition_responses[0].error_code == 0


def numbers(world, topic="t"):
    """All values of a topic's two partitions. Several reads are needed, because each ends at the end of a segment."""
    found = []
    for index in range(2):
        offset, end_offset = 0, world.broker.partitions.get(topic, index).end_offset
        while offset < end_offset:
            (row,) = world.connect().ask(fetch(topic, {index: offset}), 11).responses[0].partitions
            given = values(row)
            assert given, row
            found += [int(value) for value in given]
            offset += len(given)
    return sorted(found)


def contents(root):
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(Path(root).rglob("*")) if path.is_file()}


def two_topics(path):
    """A broker with the records 0 to 9 in each of two topics, t and u, of two partitions each."""
    world = World(path)
    for topic in ("t", "u"):
        world.create_topic(topic, 2)
        fill(world, 0, 10, topic)
    return world
