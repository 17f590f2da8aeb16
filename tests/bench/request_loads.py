"""Loads of pre-encoded Produce and Fetch requests."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from . import loadgen, process, wire_bytes
from .load import Load
from .session import Session

PARTITIONS = 6
# What Fetch reads of each partition: more than a few answers, little enough that it stays cached beside a second
# broker's.
FETCH_LOG_BYTES = 8 * 1024 * 1024
FETCHES_AT_LEAST = 16


def encoded_batch(batch_bytes):
    """A batch of exactly `batch_bytes`, or of one record with a 100-byte value when that is None."""
    now_ms = int(time.time() * 1000)
    if batch_bytes is None:
        return wire_bytes.batch([wire_bytes.record(0, b"x" * wire_bytes.RECORD_VALUE_BYTES)], now_ms)
    return wire_bytes.batch_of_size(batch_bytes, now_ms)


def produce_templates(bench, topic, topic_id, batch, partitions=PARTITIONS):
    """The path of a template file: `batch` to each partition in turn."""
    version = bench.options.produce_version
    path = bench.scratch / f"produce-{topic}.templates"
    loadgen.write_templates(path, [wire_bytes.produce(version, topic, topic_id, p, batch) for p in range(partitions)])
    return path


class ProduceLoad(Load):
    """One batch, produced again and again to a topic of six partitions that is fresh in every round."""

    def __init__(self, batch_bytes, *, connections, depth=1, rate=0.0):
        self.batch_bytes = batch_bytes
        self.shape = {"connections": connections, "depth": depth, "rate": rate}

    def round(self, broker, bench):
        """Rates, latencies, CPU and memory of one run of `bench.options.seconds`."""
        topic = bench.new_name("produce")
        with Session(broker.port) as session:
            topic_id = session.create_topics({topic: PARTITIONS})[topic]
            path = produce_templates(bench, topic, topic_id, encoded_batch(self.batch_bytes))
            options = bench.options
            figures = loadgen.run(
                broker.port, path, seconds=options.seconds, warmup=options.warmup, pid=broker.pid, **self.shape
            )
            figures["rss_mb"] = process.memory_mb(broker.pid)
            session.delete_topics([topic])
        path.unlink()
        broker.wait_until_deleted(topic)
        return figures


class ProduceBesideLoad(Load):
    """One record a request on one connection, paced, while other connections produce large batches to another topic,
    paced too, so that both brokers have the same to do. The figures are those of the small requests, and
    `large_mb_per_s`."""

    def __init__(self, *, rate, large_bytes, large_connections, large_rate):
        self.rate = rate
        self.large_bytes = large_bytes
        self.large_shape = {"connections": large_connections, "depth": 2, "rate": large_rate}

    def round(self, broker, bench):
        """Rates, latencies and CPU of one run of `bench.options.seconds`."""
        options = bench.options
        names = {bench.new_name("small"): None, bench.new_name("large"): self.large_bytes}
        with Session(broker.port) as session:
            ids = session.create_topics(dict.fromkeys(names, PARTITIONS))
            small, large = (
                produce_templates(bench, name, ids[name], encoded_batch(size)) for name, size in names.items()
            )
            # The large batches begin before the small ones and end after them.
            with ThreadPoolExecutor(1) as pool:
                seconds = options.seconds + options.warmup + 1.0
                beside = pool.submit(loadgen.run, broker.port, large, seconds=seconds, **self.large_shape)
                figures = loadgen.run(
                    broker.port,
                    small,
                    connections=1,
                    depth=64,
                    rate=self.rate,
                    seconds=options.seconds,
                    warmup=options.warmup + 0.3,
                    pid=broker.pid,
                )
                figures["large_mb_per_s"] = beside.result()["mb_per_s"]
            session.delete_topics(list(names))
        for path in (small, large):
            path.unlink()
        for name in names:
            broker.wait_until_deleted(name)
        return figures


class SyncedProduceLoad(Load):
    """One record a request to a topic of one partition that is synced after each append (`flush.messages=1`).

    With one connection every request pays a sync of its own; how much faster many connections are shows how many share
    one.
    """

    def __init__(self, *, connections):
        self.connections = connections

    def round(self, broker, bench):
        """The figures with many connections, and `times_one_sync`: their requests/s to those of one connection."""
        topic = bench.new_name("synced")
        with Session(broker.port) as session:
            topic_id = session.create_topics({topic: 1}, {"flush.messages": "1"})[topic]
            path = produce_templates(bench, topic, topic_id, encoded_batch(None), partitions=1)
            options = bench.options
            alone, figures = (
                loadgen.run(
                    broker.port,
                    path,
                    connections=connections,
                    seconds=options.seconds,
                    warmup=options.warmup,
                    pid=broker.pid,
                )
                for connections in (1, self.connections)
            )
            session.delete_topics([topic])
        path.unlink()
        broker.wait_until_deleted(topic)
        return figures | {
            "times_one_sync": figures["requests_per_s"] / alone["requests_per_s"],
            "rss_mb": process.memory_mb(broker.pid),
        }


class FetchLoad(Load):
    """Six consumers, each reading its partition from start to end, again and again, `max_bytes` at a time."""

    def __init__(self, max_bytes, *, batch_bytes):
        self.max_bytes = max_bytes
        self.batch_bytes = batch_bytes
        self.prepared = {}

    def prepare(self, broker, bench):
        """Makes and fills the topic, and writes the requests."""
        topic = bench.new_name("fetch")
        batches = max(FETCH_LOG_BYTES, FETCHES_AT_LEAST * self.max_bytes) // self.batch_bytes
        with Session(broker.port) as session:
            topic_id = session.create_topics({topic: PARTITIONS})[topic]
            fill = produce_templates(bench, topic, topic_id, encoded_batch(self.batch_bytes))
            loadgen.run(broker.port, fill, connections=PARTITIONS, depth=5, requests=batches)
            fill.unlink()
            version = bench.options.fetch_version
            templates = [
                wire_bytes.fetch(version, topic, topic_id, partition, offset, max_bytes=self.max_bytes)
                for offset in self._offsets(session, topic)
                for partition in range(PARTITIONS)
            ]
        path = bench.scratch / f"fetch-{topic}.templates"
        loadgen.write_templates(path, templates)
        self.prepared[broker.name] = (topic, path)

    def _offsets(self, session, topic):
        """The offsets that a consumer of this broker asks for on its way through partition 0; the others are alike."""
        offsets = []
        offset = 0
        while offset is not None:
            offsets.append(offset)
            template = wire_bytes.fetch(11, topic, None, 0, offset, max_bytes=self.max_bytes, max_wait_ms=0)
            offset = wire_bytes.next_offset(template, session.call(template.request))
        return offsets[:-1]

    def round(self, broker, bench):
        """Rates, latencies, CPU and memory of one run of `bench.options.seconds`."""
        _, path = self.prepared[broker.name]
        figures = loadgen.run(
            broker.port,
            path,
            connections=PARTITIONS,
            seconds=bench.options.seconds,
            warmup=bench.options.warmup,
            pid=broker.pid,
        )
        figures["rss_mb"] = process.memory_mb(broker.pid)
        return figures

    def finish(self, broker, bench):
        """Removes the topic."""
        if broker.name not in self.prepared:
            return
        topic, path = self.prepared.pop(broker.name)
        path.unlink()
        with Session(broker.port) as session:
            session.delete_topics([topic])
        broker.wait_until_deleted(topic)
