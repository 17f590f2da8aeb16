"""Loads through real clients: confluent-kafka, Kafka's own Java tools, Spark.

Here the client is usually the limit, so the broker's CPU is the figure to compare.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys

from . import process
from .brokers import ROOT
from .load import CaseSkipped, Load
from .request_loads import PARTITIONS
from .session import Session

CONSUME_TIMEOUT_MS = 60_000


class ClientLoad(Load):
    """Produces or consumes a number of records through a client that runs as its own process."""

    records, quick_records = 1_000_000, 50_000
    record_bytes = 100

    def __init__(self, direction):
        self.direction = direction
        self.topics = {}

    def prepare(self, broker, bench):
        """For a consumer: makes the topic and fills it."""
        if self.direction == "consume":
            self.topics[broker.name] = self._new_topic(broker, bench)
            self.produce(broker, bench, self.topics[broker.name])

    def round(self, broker, bench):
        """`records_per_s`, `mb_per_s` (of values) and the broker's CPU and memory."""
        before = process.cpu_seconds(broker.pid)
        if self.direction == "consume":
            records_per_s = self.consume(broker, bench, self.topics[broker.name])
        else:
            topic = self._new_topic(broker, bench)
            records_per_s = self.produce(broker, bench, topic)
        megabytes = self.count(bench) * self.record_bytes / 1e6
        figures = {
            "records_per_s": records_per_s,
            "mb_per_s": records_per_s * self.record_bytes / 1e6,
            "cpu_ms_per_mb": 1e3 * (process.cpu_seconds(broker.pid) - before) / megabytes,
            "rss_mb": process.memory_mb(broker.pid),
        }
        if self.direction == "produce":
            self._delete(broker, topic)
        return figures

    def finish(self, broker, bench):
        """Removes a consumer's topic."""
        if broker.name in self.topics:
            self._delete(broker, self.topics.pop(broker.name))

    def count(self, bench):
        """How many records one round moves."""
        return self.quick_records if bench.options.quick else self.records

    def produce(self, broker, bench, topic):
        """Produces to the topic; returns records/s."""
        raise NotImplementedError

    def consume(self, broker, bench, topic):
        """Consumes the topic from its start; returns records/s."""
        raise NotImplementedError

    def _new_topic(self, broker, bench):
        topic = bench.new_name(type(self).__name__)
        with Session(broker.port) as session:
            session.create_topics({topic: PARTITIONS})
        return topic

    def _delete(self, broker, topic):
        with Session(broker.port) as session:
            session.delete_topics([topic])
        broker.wait_until_deleted(topic)


class ConfluentLoad(ClientLoad):
    """confluent-kafka (librdkafka), driven by `confluent_client.py`."""

    records, quick_records = 500_000, 50_000

    def __init__(self, direction, *, record_bytes):
        super().__init__(direction)
        self.record_bytes = record_bytes

    def _run(self, direction, broker, bench, topic):
        if importlib.util.find_spec("confluent_kafka") is None:
            raise CaseSkipped("confluent-kafka is not installed (pip install 'pykafkad[test]')")
        work = (direction, str(broker.port), topic, str(self.count(bench)), str(self.record_bytes))
        command = [sys.executable, "-m", "tests.bench.confluent_client", *work]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
        return json.loads(done.stdout)["records_per_s"]

    def produce(self, broker, bench, topic):
        """Produces to the topic; returns records/s."""
        return self._run("produce", broker, bench, topic)

    def consume(self, broker, bench, topic):
        """Consumes the topic from its start; returns records/s."""
        return self._run("consume", broker, bench, topic)


class JavaPerfLoad(ClientLoad):
    """Kafka's ProducerPerformance and ConsumerPerformance."""

    records, quick_records = 2_000_000, 100_000

    def _run(self, bench, *arguments):
        if bench.libs is None:
            raise CaseSkipped("needs Kafka's jars")
        command = ["java", "-Xmx512m", "-cp", f"{bench.libs}/*", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise RuntimeError(f"{arguments[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-500:]}")
        return done.stdout

    def produce(self, broker, bench, topic):
        """Produces to the topic; returns records/s."""
        work = ("--num-records", str(self.count(bench)), "--record-size", str(self.record_bytes), "--throughput", "-1")
        server = ("--bootstrap-server", f"localhost:{broker.port}", "--topic", topic)
        return last_rate(self._run(bench, "org.apache.kafka.tools.ProducerPerformance", *server, *work))

    def consume(self, broker, bench, topic):
        """Consumes the topic from its start; returns records/s without the time to join the group."""
        work = ("--num-records", str(self.count(bench)), "--timeout", str(CONSUME_TIMEOUT_MS))
        server = ("--bootstrap-server", f"localhost:{broker.port}", "--topic", topic)
        return fetch_rate(self._run(bench, "org.apache.kafka.tools.ConsumerPerformance", *server, *work))


def last_rate(text):
    """Records/s of the closing line of ProducerPerformance."""
    rates = re.findall(r"([\d.]+) records/sec", text)
    if not rates:
        raise RuntimeError(f"ProducerPerformance printed no rate: {text[-500:]}")
    return float(rates[-1])


def fetch_rate(text):
    """Records/s (column fetch.nMsg.sec) of ConsumerPerformance's comma-separated answer."""
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if "," in line]
    titles = next((row for row in rows if "fetch.nMsg.sec" in row), None)
    if titles is None or len(rows[-1]) != len(titles) or rows[-1] == titles:
        raise RuntimeError(f"ConsumerPerformance printed no figures: {text[-500:]}")
    return float(rows[-1][titles.index("fetch.nMsg.sec")])


class SparkLoad(Load):
    """`spark_it.small_partitions`: Spark's count() over 20 000 records in 100 partitions, as a process of its own."""

    def prepare(self, broker, bench):
        """Checks that Spark is there: the measurement makes its own topics."""
        if importlib.util.find_spec("pyspark") is None:
            raise CaseSkipped("pyspark is not installed (pip install 'pykafkad[spark]')")

    def round(self, broker, bench):
        """`seconds` that count() takes, without Spark's own start, and the broker's memory."""
        command = [sys.executable, "-m", "spark_it.small_partitions", f"localhost:{broker.port}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise RuntimeError(f"spark_it.small_partitions ended with {done.returncode}: {done.stderr[-500:]}")
        return {"seconds": float(done.stdout.split()[-1]), "rss_mb": process.memory_mb(broker.pid)}
