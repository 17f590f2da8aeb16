"""Loads with transactions: one producer that commits, and readers of what is committed."""

from __future__ import annotations

import statistics
import time

from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch

from . import loadgen, process, wire_bytes
from .asker import CONCURRENT_TRANSACTIONS, RETRY_SECONDS, Asker
from .load import Load
from .loadgen import LoadFailed
from .request_loads import PARTITIONS, FetchLoad
from .session import Session

TRANSACTION_KEY = 1
RECORDS = 100
RECORD = (None, b"x" * wire_bytes.RECORD_VALUE_BYTES)


class Producer(Asker):
    """A transactional producer (transaction version 2) that waits for each answer."""

    def __init__(self, session, transactional_id):
        super().__init__(session)
        self.transactional_id = transactional_id
        self.find_coordinator(TRANSACTION_KEY, transactional_id)
        answer = self.until_ready(
            "InitProducerId", 5, transactional_id=transactional_id, transaction_timeout_ms=60_000, producer_id=-1,
            producer_epoch=-1,
        )  # fmt: skip
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences = {}

    def send(self, topic, partition, records):
        """Appends one batch to the transaction."""
        sequence = self.sequences.get(partition, 0)
        data = build_batch(
            records,
            timestamp_ms=int(time.time() * 1000),
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        of = messages.ProduceRequest
        rows = [of.PartitionProduceData(index=partition, records=data)]
        topics = [of.TopicProduceData(name=topic, partition_data=rows)]
        while True:
            answer = self.ask(
                "Produce", 12, transactional_id=self.transactional_id, acks=-1, timeout_ms=30_000, topic_data=topics
            )
            code = answer.responses[0].partition_responses[0].error_code
            if code == 0:
                self.sequences[partition] = sequence + len(records)
                return
            if code != CONCURRENT_TRANSACTIONS:
                raise LoadFailed(f"Produce in a transaction: error {code}")
            time.sleep(RETRY_SECONDS)

    def end(self, *, commit=True):
        """Ends the transaction; the next one has another epoch."""
        answer = self.until_ready(
            "EndTxn", 5, transactional_id=self.transactional_id, producer_id=self.producer_id,
            producer_epoch=self.epoch, committed=commit,
        )  # fmt: skip
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences = {}


class TransactionLoad(Load):
    """One producer: 100 records in a transaction, one transaction after the other."""

    def round(self, broker, bench):
        """`transactions_per_s`, the latency of a transaction from its first request to the answer to its end, CPU."""
        topic = bench.new_name("transactions")
        options = bench.options
        with Session(broker.port) as session:
            session.create_topics({topic: 1})
            producer = Producer(session, topic)
            self._run(producer, topic, options.warmup)
            before = process.cpu_seconds(broker.pid)
            took = self._run(producer, topic, options.seconds)
            cpu_seconds = process.cpu_seconds(broker.pid) - before
            session.delete_topics([topic])
        broker.wait_until_deleted(topic)
        took.sort()
        return {
            "transactions_per_s": len(took) / sum(took),
            "p50_us": took[len(took) // 2] * 1e6,
            "p99_us": took[len(took) * 99 // 100] * 1e6,
            "cpu_us_per_request": cpu_seconds / len(took) * 1e6,
            "rss_mb": process.memory_mb(broker.pid),
        }

    def _run(self, producer, topic, seconds):
        records, took = [RECORD] * RECORDS, []
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            began = time.perf_counter()
            producer.send(topic, 0, records)
            producer.end()
            took.append(time.perf_counter() - began)
        return took


class CommittedFetchLoad(FetchLoad):
    """The consumers of `FetchLoad` over partitions full of transactions, of which every tenth is aborted: once as
    read_committed, once as read_uncommitted."""

    BATCHES_IN_A_TRANSACTION = 10
    TURNS = 12
    """How often the two are measured in turns; their ratio is the median. What else the machine does meets both."""
    LOG_BYTES = 4 * 1024 * 1024

    def prepare(self, broker, bench):
        """Makes and fills the topic, and writes the requests."""
        topic = bench.new_name("committed")
        count = self.LOG_BYTES // self.batch_bytes
        record = (None, b"x" * (self.batch_bytes - 70))
        version = bench.options.fetch_version
        with Session(broker.port) as session:
            topic_id = session.create_topics({topic: PARTITIONS})[topic]
            producer = Producer(session, topic)
            for number in range(count // self.BATCHES_IN_A_TRANSACTION):
                for _ in range(self.BATCHES_IN_A_TRANSACTION):
                    for partition in range(PARTITIONS):
                        producer.send(topic, partition, [record])
                producer.end(commit=number % 10 != 5)
            # The markers are written a moment after the answer.
            time.sleep(0.5)
            offsets = self._offsets(session, topic)
        paths = []
        for isolation_level in (0, 1):
            templates = [
                wire_bytes.fetch(
                    version, topic, topic_id, partition, offset, max_bytes=self.max_bytes,
                    isolation_level=isolation_level,
                )
                for offset in offsets
                for partition in range(PARTITIONS)
            ]  # fmt: skip
            paths.append(bench.scratch / f"committed-{isolation_level}-{topic}.templates")
            loadgen.write_templates(paths[-1], templates)
        self.prepared[broker.name] = (topic, paths)

    def round(self, broker, bench):
        """The figures of read_committed, and `committed_ratio`: its rate to that of read_uncommitted."""
        _, paths = self.prepared[broker.name]
        options = bench.options

        def run(path, seconds, warmup):
            return loadgen.run(
                broker.port, path, connections=PARTITIONS, seconds=seconds, warmup=warmup, pid=broker.pid
            )

        figures = run(paths[1], options.seconds, options.warmup)
        ratios = []
        for turn in range(self.TURNS):
            # Each is the first as often as the second, as a machine that slows down is unjust to the second.
            rates = {
                path: run(path, options.seconds / self.TURNS, 0.1)["mb_per_s"]
                for path in (paths if turn % 2 else reversed(paths))
            }
            ratios.append(rates[paths[1]] / rates[paths[0]])
        return figures | {
            "committed_ratio": statistics.median(ratios),
            "rss_mb": process.memory_mb(broker.pid),
        }

    def finish(self, broker, bench):
        """Removes the topic."""
        if broker.name not in self.prepared:
            return
        topic, paths = self.prepared.pop(broker.name)
        for path in paths:
            path.unlink()
        with Session(broker.port) as session:
            session.delete_topics([topic])
        broker.wait_until_deleted(topic)
