"""MirrorMaker 2 copies from a real Kafka to pykafkad and back, exactly once, and translates committed offsets.

It is killed while its transactions are open in both clusters.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.broker import Broker, free_port
from compat_tests.conftest import AGAINST
from compat_tests.exactly_once.open_transactions import open_offsets
from compat_tests.samples import wait_until
from compat_tests.test_mirror_maker import commit, committed

PARTITIONS = 2
BEFORE, RECORDS = 100, 600
SECONDS = 100
MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"


class Side:
    """One cluster: the topic that is copied from it, and the copy of the other side's topic in it."""

    def __init__(self, name: str, broker: Broker, topic: str) -> None:
        self.name, self.bootstrap, self.topic = name, broker.bootstrap, topic
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})
        self.admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(SECONDS)
        self.producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0})
        self.written = 0

    def write(self, end: int) -> None:
        """Write the numbers up to `end`, in turn over the partitions."""
        for number in range(self.written, end):
            self.producer.produce(self.topic, b"%d" % number, partition=number % PARTITIONS)
        assert self.producer.flush(SECONDS) == 0
        self.written = max(self.written, end)

    def write_aborted(self, transactional_id: str) -> None:
        """Write what nobody may copy."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": transactional_id})
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(self.topic, b"-1", partition=partition)
        producer.flush(SECONDS)
        producer.abort_transaction(SECONDS)

    def commit(self, group: str) -> None:
        """Commit the ends of the partitions in the name of the group."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group})
        partitions = [TopicPartition(self.topic, partition) for partition in range(PARTITIONS)]
        for each in partitions:
            each.offset = consumer.get_watermark_offsets(each, SECONDS)[1]
            wait_until(lambda each=each: commit(consumer, each), "the group's offset is committed")
        consumer.close()

    def read(self, topic: str, count: int) -> dict[int, list[tuple[int, int]]]:
        """(offset, number) in each partition of what read_committed shows, once it is as much as that."""
        settings = {"group.id": "-", "isolation.level": "read_committed", "enable.partition.eof": True}
        consumer = Consumer({"bootstrap.servers": self.bootstrap, **settings})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        at_end: set[int] = set()

        def complete() -> bool:
            for message in consumer.consume(1000, 0.2):
                if message.error() is None:
                    at_end.discard(message.partition())
                    found[message.partition()].append((message.offset(), int(message.value())))
                else:
                    at_end.add(message.partition())
            return sum(map(len, found.values())) >= count and len(at_end) == PARTITIONS

        wait_until(complete, f"{topic} has {count} records")
        consumer.close()
        return found


def properties_of(sides: tuple[Side, Side], group: str) -> dict[str, object]:
    """MirrorMaker's properties for copying both ways, exactly once."""
    kinds = ("checkpoints.topic", "offset-syncs.topic", "offset.storage", "status.storage", "config.storage")
    properties: dict[str, object] = {
        "clusters": ", ".join(side.name for side in sides), "groups": group, "plugin.discovery": "service_load",
        "dedicated.mode.enable.internal.rest": "true", "listeners": f"http://localhost:{free_port()}",
        "emit.heartbeats.enabled": "false", "offset.lag.max": 0, "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": 1, "emit.checkpoints.interval.seconds": 1,
        "refresh.groups.interval.seconds": 1, "replication.factor": 1,
        **{f"{kind}.replication.factor": 1 for kind in kinds},
    }  # fmt: skip
    worker = {
        "exactly.once.source.support": "enabled", "plugin.discovery": "service_load", "offset.flush.interval.ms": 500,
        "session.timeout.ms": 3000, "heartbeat.interval.ms": 500, "scheduled.rebalance.max.delay.ms": 0,
    }  # fmt: skip
    for side, other in (sides, sides[::-1]):
        flow = {
            "enabled": "true", "topics": side.topic, "consumer.isolation.level": "read_committed",
            "transaction.boundary": "interval", "transaction.boundary.interval.ms": 1000,
        }  # fmt: skip
        properties |= {f"{side.name}.bootstrap.servers": side.bootstrap}
        properties |= {f"{side.name}.{name}": value for name, value in worker.items()}
        properties |= {f"{side.name}->{other.name}.{name}": value for name, value in flow.items()}
    return properties


def has_next(side: Side, other: Side, group: str) -> bool:
    """Whether the group's next record in each partition of the copy is the first one that it has not read."""
    copy = f"{side.name}.{side.topic}"
    offsets = [committed(other.admin, group, copy, partition) for partition in range(PARTITIONS)]
    if None in offsets:
        return False
    entries = other.read(copy, BEFORE)
    rest = [
        [number for at, number in entries[partition] if at >= offset][:1] for partition, offset in enumerate(offsets)
    ]
    unread = [[BEFORE + partition] if side.written > BEFORE else [] for partition in range(PARTITIONS)]
    return rest == unread


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("whole_suites")
def test_records_and_offsets_go_both_ways_exactly_once(
    start_java: Callable[..., subprocess.Popen], fresh_name: Callable[..., str], request: pytest.FixtureRequest
) -> None:
    """Each record is copied once, aborted ones never, and a group goes on behind what it has read."""
    brokers = AGAINST[request.config.getoption("--against")]
    one, two = brokers if len(brokers) == 2 else brokers * 2
    sides = tuple(Side(fresh_name(name), request.getfixturevalue(name), fresh_name()) for name in (one, two))
    group = fresh_name("group")
    flows = (sides, sides[::-1])
    for side in sides:
        side.write(BEFORE)
        side.write_aborted(fresh_name("id"))
        side.commit(group)
    properties = properties_of(sides, group)
    process = start_java(MAIN, **properties)

    def is_open(side: Side, other: Side) -> bool:
        """Whether a transaction of the copy is open; one more record is there to be copied."""
        assert process.poll() is None
        side.write(min(side.written + 1, RECORDS - BEFORE))
        return open_offsets(other.admin, f"{side.name}.{side.topic}", PARTITIONS) > 0

    for flow in flows:
        wait_until(lambda flow=flow: has_next(*flow, group), f"offsets from {flow[0].name} are translated")
    for flow in flows:
        wait_until(lambda flow=flow: is_open(*flow), f"a transaction from {flow[0].name} is open")
    process.kill()
    process.wait()
    for side in sides:
        side.write(RECORDS)
    process = start_java(MAIN, **properties)
    for side, other in flows:
        copied = other.read(f"{side.name}.{side.topic}", RECORDS)
        numbers = {partition: [number for _, number in entries] for partition, entries in copied.items()}
        assert numbers == {index: list(range(index, RECORDS, PARTITIONS)) for index in range(PARTITIONS)}
        assert has_next(side, other, group), "the group's offset went away from its place"
    process.terminate()
    process.wait(SECONDS)
    for side in sides:
        made = [name for name in side.admin.list_topics().topics if any(each.name in name for each in sides)]
        for deleted in side.admin.delete_topics([side.topic, *made]).values():
            deleted.result(SECONDS)
