"""Hostile record batches are refused, or stored so that every reader and the next start can read the log."""

from __future__ import annotations

import random

import pytest

from pykafkad.wire import messages
from pykafkad.wire.batch import validate
from tests.fuzz.requests import hostile_batch, plain_batch
from tests.fuzz.test_requests import SEEDS
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import NOTHING, World

REQUESTS = 300
TOPICS = {
    "plain": {},
    "rolling": {"segment_ms": 1000, "index_interval_bytes": 0},
    "compact": {"cleanup_policy": "compact"},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "gzip": {"compression_type": "gzip"},
    "stamped-zstd": {"message_timestamp_type": "LogAppendTime", "compression_type": "zstd"},
    "late": {"message_timestamp_before_max_ms": 3600_000},
}


def produce(topic, batches, acks):
    request = messages.ProduceRequest
    data = [request.PartitionProduceData(index=0, records=each) for each in batches]
    return request(acks=acks, timeout_ms=1000, topic_data=[request.TopicProduceData(name=topic, partition_data=data)])


def walked(world, topic):
    """The (base offset, last offset) of every batch that a consumer gets. Each must have a correct checksum."""
    request = messages.FetchRequest
    peer = world.connect()
    found, offset = [], 0
    while True:
        partition = request.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=3000)
        answer = peer.ask(
            request(max_bytes=1 << 20, max_wait_ms=0, topics=[request.FetchTopic(topic=topic, partitions=[partition])]),
            11,
        )
        assert answer is not NOTHING
        row = answer.responses[0].partitions[0]
        assert row.error_code == 0
        records = bytes(row.records)
        if not records:
            assert offset == row.high_watermark
            return found
        while records:
            size = 12 + int.from_bytes(records[8:12], "big")
            header = validate(records[:size])
            found.append((header.base_offset, header.last_offset))
            records = records[size:]
        offset = found[-1][1] + 1


@pytest.mark.parametrize("seed", SEEDS)
def test_accepted_batches_can_be_read_now_and_after_a_crash(seed):
    """Offsets have no gaps, checksums are correct, and recovery cuts nothing off."""
    draw = random.Random(seed)
    world = World("/data", disk=MemoryDisk(), seed=seed)
    for topic, configs in TOPICS.items():
        world.create_topic(topic, **configs)
    peer = world.connect()
    answered = dict.fromkeys(TOPICS, 0)
    for _ in range(REQUESTS):
        topic = draw.choice(tuple(TOPICS))
        batches = [
            hostile_batch(draw) if draw.random() < 0.7 else plain_batch(draw) for _ in range(draw.choice((1, 1, 1, 2)))
        ]
        answer = peer.ask(produce(topic, batches, draw.choice((1, -1))), draw.randrange(3, 13))
        if answer is NOTHING:
            # A batch with a very large record count is decompressed on another thread.
            world.runtime.cpu_offload.close()
            world.turn()
            answer = peer.answers[-1]
        assert peer.closed is None
        for row in answer.responses[0].partition_responses:
            if row.error_code == 0:
                answered[topic] = max(answered[topic], row.base_offset + 1)
        world.advance(draw.choice((0, 0, 0.1)))
        assert world.runtime.metrics.unexpected_errors == 0, [bytes(batch).hex() for batch in batches]
    before = {topic: walked(world, topic) for topic in TOPICS}
    for topic, batches in before.items():
        starts = [0] + [last + 1 for _, last in batches]
        assert [first for first, _ in batches] == starts[:-1]
        assert starts[-1] >= answered[topic]
    world.disk.kill()
    again = world.restart()
    assert {topic: walked(again, topic) for topic in TOPICS} == before
    assert world.runtime.metrics.unexpected_errors == again.runtime.metrics.unexpected_errors == 0
