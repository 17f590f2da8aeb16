"""Loads of administrators: describing many settings and many partitions, and validating many topics.

One client sends one request after the other. The figure is the time until an answer.
"""

from __future__ import annotations

from . import loadgen, wire_bytes
from .load import Load
from .own_broker_loads import OwnBrokerLoad
from .session import Session

PAGE_PARTITIONS = 2000
# Kafka creates thousands of logs on one disk while it already answers for them.
CREATION_SECONDS = 300


def asked(broker, bench, templates):
    """The median milliseconds to an answer, when one connection asks the same questions in turn for
    `bench.options.seconds`."""
    path = bench.scratch / f"{bench.new_name('asked')}.templates"
    loadgen.write_templates(path, templates)
    options = bench.options
    figures = loadgen.run(
        broker.port, path, connections=1, seconds=options.seconds, warmup=options.warmup, pid=broker.pid
    )
    path.unlink()
    return figures["p50_us"] / 1e3


class DescribeConfigsLoad(Load):
    """All settings of the broker and of some topics, with synonyms and documentation: `topics` decides how many."""

    def __init__(self, topics):
        self.topics = topics

    def round(self, broker, bench):
        """`answer_ms`, of topics that have a setting of their own."""
        names = [bench.new_name("described") for _ in range(self.topics)]
        with Session(broker.port) as session:
            session.create_topics(dict.fromkeys(names, 1), {"retention.ms": "3600000"})
            resources = [(wire_bytes.BROKER_RESOURCE, "1"), *((wire_bytes.TOPIC_RESOURCE, name) for name in names)]
            answer_ms = asked(broker, bench, [wire_bytes.describe_configs(resources)])
            session.delete_topics(names)
        for name in names:
            broker.wait_until_deleted(name)
        return {"answer_ms": answer_ms}


class ValidateTopicsLoad(Load):
    """CreateTopics of many topics that only validates them."""

    def __init__(self, topics):
        self.topics = topics

    def round(self, broker, bench):
        """`answer_ms`."""
        names = [f"validated-{number}" for number in range(self.topics)]
        return {"answer_ms": asked(broker, bench, [wire_bytes.validate_topics(names)])}


class DescribePartitionsLoad(OwnBrokerLoad):
    """Partitions by the thousand, on a broker of their own: all in one Metadata answer, and page by page."""

    def __init__(self, topics, partitions_each):
        super().__init__()
        self.topics = topics
        self.partitions_each = partitions_each

    def prepare(self, broker, bench):
        """Starts a broker and makes the partitions."""
        own = self.own(broker, bench)
        own.start()
        with Session(own.port) as session:
            for name in self._names(bench):
                session.create_topics({name: self.partitions_each}, seconds=CREATION_SECONDS)

    def round(self, broker, bench):
        """`answer_ms` of Metadata, and `page_ms` of a page of DescribeTopicPartitions."""
        own, names = self.owned[broker.name], self._names(bench)
        whole = asked(own, bench, [wire_bytes.metadata_of(names)])
        return {"answer_ms": whole, "page_ms": asked(own, bench, self._pages(names))}

    def _names(self, bench):
        return [f"many-{number}" for number in range(1 if bench.options.quick else self.topics)]

    def _pages(self, names):
        """Requests that together see each partition once."""
        starts = range(0, self.partitions_each, PAGE_PARTITIONS)
        topics_per_page = max(1, PAGE_PARTITIONS // self.partitions_each)
        firsts = sorted(names)[::topics_per_page]
        return [
            wire_bytes.describe_topic_partitions(names, name, start, PAGE_PARTITIONS)
            for name in firsts
            for start in starts
        ]
