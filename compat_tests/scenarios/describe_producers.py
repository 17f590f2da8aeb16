"""DescribeProducers: the producers of a partition."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.produce import KEPT, new_producer
from compat_tests.scenarios.registry import scenario
from pykafkad.wire.batch import build_batch


def batch(records: list, **fields: Any) -> bytearray:
    """A batch with the current time: the broker forgets old producers after a while."""
    return build_batch(records, timestamp_ms=int(time.time() * 1000), **fields)


def describe(broker: Exchange, note: str, *topics: tuple[str, list[int]]) -> Any:
    """Record a DescribeProducers request."""
    rows = [part("DescribeProducers", "TopicRequest", name=name, partition_indexes=indexes) for name, indexes in topics]
    return broker.ask("DescribeProducers", 0, note=note, topics=rows)


@scenario
def active(broker: Exchange) -> None:
    """Each producer with its epoch, last sequence and time; a producer without an id leaves no trace."""
    name = broker.topic("two", 2, **KEPT)
    describe(broker, "before", (name, [0, 1]))
    broker.produce(name, 0, batch([(None, b"plain")]))
    describe(broker, "without id", (name, [0, 1]))
    for epoch in (0, 3):
        producer_id, _ = new_producer(broker)
        for sequence, values in ((0, [(None, b"a"), (None, b"b")]), (2, [(None, b"c")])):
            sent = batch(values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
            broker.produce(name, 0, sent)
    describe(broker, "two producers", (name, [0, 1]))
    broker.produce(name, 0, batch([(None, b"d")], producer_id=producer_id, producer_epoch=4, base_sequence=0))
    describe(broker, "a new epoch", (name, [0]))


@scenario
def refused(broker: Exchange) -> None:
    """Invalid names, unknown topics and unknown partitions; valid ones beside them are answered."""
    name = broker.topic()
    describe(broker, "unknown", (broker.name("none"), [0, 1]), (name, [0, 1, -1]))
    describe(broker, "impossible", ("", [0]), (".", [0]), ("a b", [0]), ("x" * 250, [0]), (name, [0]))
    describe(broker, "metadata log", ("__cluster_metadata", [0]))
    describe(broker, "twice", (name, [0, 0]), (name, [0]))
    describe(broker, "no partitions", (name, []))
    describe(broker, "nothing")
