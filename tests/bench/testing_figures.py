"""`python -m tests.bench.testing_figures`: what `pykafkad.testing` costs a test, each figure with its goal.

Nothing else should run meanwhile. `--only import,reset` picks figures; those of suites need Kafka's jars, Java and Go.
The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from compat_tests.setup.kafka_jars import fetch_jars
from pykafkad.testing import Broker

from . import loadgen, testing_suites, wire_bytes
from .request_loads import PARTITIONS, encoded_batch
from .session import Session

STARTS = 50
RESETS = 9
TURNS = 5
LOAD_SECONDS = 1.5
IMPORT = "import time; begin = time.perf_counter(); import pykafkad.testing; print(1e3 * (time.perf_counter() - begin))"


class Figure(NamedTuple):
    """One row: what it is called on the command line and in the table, its goal, and what measures it."""

    name: str
    what: str
    goal: float
    unit: str
    measure: object


def import_ms():
    """The import in a process that has imported nothing else."""
    return median(
        float(subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True).stdout)
        for _ in range(9)
    )


def start_ms():
    """From the constructor to a broker that serves, on a thread of this process."""

    def one():
        begin = time.perf_counter()
        with Broker():
            return 1e3 * (time.perf_counter() - begin)

    one()
    return median(one() for _ in range(STARTS))


def cluster_ms():
    """What the fixture `kafka_cluster` does for a test: a broker, made and dropped."""

    def one():
        begin = time.perf_counter()
        with Broker():
            pass
        return 1e3 * (time.perf_counter() - begin)

    one()
    return median(one() for _ in range(STARTS))


def reset_ms():
    """Of 100 topics, with 10 clients that have written to them and stay connected."""
    from confluent_kafka import Producer

    with Broker(topics={"orders": 1}) as broker:
        clients = [Producer(broker.client_config("confluent")) for _ in range(10)]

        def one():
            for number in range(100):
                broker.create_topic(f"topic-{number}")
            for number, client in enumerate(clients):
                client.produce(f"topic-{number}", "x")
                client.flush(10)
            begin = time.perf_counter()
            broker.reset()
            return 1e3 * (time.perf_counter() - begin)

        found = median(one() for _ in range(RESETS))
        for client in clients:
            client.purge()
        return found


def fresh_group_ms(read):
    """How long requests of a client are at the broker, from a record that is produced to the one that a fresh group
    reads: what the broker adds to what the client itself needs. Waits of a Fetch for a record are not counted."""
    from confluent_kafka import Producer

    def one(number):
        with Broker(topics={"orders": 1}) as broker, broker.trace() as trace:
            producer = Producer(broker.client_config("confluent"))
            producer.produce("orders", "one")
            producer.flush(10)
            read(broker, f"group-{number}")
            return sum(
                each["duration_ms"] for each in trace.requests() if each["api"] != "Fetch" and each["is_answered"]
            )

    return median(one(number) for number in range(TURNS))


def read_confluent(broker, group):
    """The first record, by librdkafka."""
    from confluent_kafka import Consumer

    consumer = Consumer(broker.client_config("confluent", group=group))
    consumer.subscribe(["orders"])
    assert consumer.poll(30).value() == b"one"
    consumer.close()


def read_kafka_python(broker, group):
    """The first record, by kafka-python."""
    from kafka import KafkaConsumer

    with KafkaConsumer("orders", **broker.client_config("kafka-python", group=group)) as consumer:
        assert next(consumer).value == b"one"


def traced_ratio():
    """Requests a second without a trace, divided by those with one: best of alternating turns."""
    with Broker(own_process=True) as broker, tempfile.TemporaryDirectory() as scratch:
        port = int(broker.bootstrap.rpartition(":")[2])
        with Session(port) as session:
            topic_id = session.create_topics({"load": PARTITIONS})["load"]
        path = Path(scratch) / "templates"
        batch = encoded_batch(None)
        templates = [wire_bytes.produce(7, "load", topic_id, each, batch) for each in range(PARTITIONS)]
        loadgen.write_templates(path, templates)

        def rate():
            return loadgen.run(port, path, connections=6, seconds=LOAD_SECONDS, warmup=0.2)["requests_per_s"]

        rates = {False: [], True: []}
        for number in range(2 * TURNS):
            is_traced = number % 2 == 1
            if is_traced:
                broker.trace()
            rates[is_traced].append(rate())
            if is_traced:
                broker.trace().stop()
        return max(rates[False]) / max(rates[True])


def suite_to_kafka():
    """200 tests with a cluster each, to the same with one Kafka that is reset by the deletion of topics."""
    return testing_suites.own_clusters() / testing_suites.one_kafka(fetch_jars())


def suite_to_kfake():
    """200 tests with a cluster each, to the same with a process of kfake each."""
    return testing_suites.own_clusters() / testing_suites.kfake_processes()


FIGURES = (
    Figure("import", "import pykafkad.testing", 60, "ms", import_ms),
    Figure("start", "a broker's start in the test's process", 5, "ms", start_ms),
    Figure("cluster", "a cluster for one test, made and dropped", 2, "ms", cluster_ms),
    Figure("reset", "reset with 100 topics and 10 clients", 5, "ms", reset_ms),
    Figure("fresh-confluent", "a fresh group's first record, confluent-kafka, beside the client's own time", 50, "ms",
           lambda: fresh_group_ms(read_confluent)),
    Figure("fresh-kafka-python", "the same with kafka-python", 50, "ms", lambda: fresh_group_ms(read_kafka_python)),
    Figure("trace", "requests a second without a trace / with one", 1.15, "", traced_ratio),
    Figure("suite-kafka", "200 tests with a cluster each / with one Kafka", 0.05, "", suite_to_kafka),
    Figure("suite-kfake", "200 tests with a cluster each / with a kfake each", 1, "", suite_to_kfake),
)  # fmt: skip


def main():
    """Prints a row for each figure; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.testing_figures", description=__doc__)
    parser.add_argument("--only", help="names, separated by commas: " + ", ".join(each.name for each in FIGURES))
    wanted = parser.parse_args().only
    names = [each.name for each in FIGURES] if wanted is None else wanted.split(",")
    if unknown := set(names) - {each.name for each in FIGURES}:
        parser.error(f"--only: no figure is called {', '.join(sorted(unknown))}")
    are_met = True
    for figure in FIGURES:
        if figure.name in names:
            value = figure.measure()
            is_met = value <= figure.goal
            are_met &= is_met
            print(
                f"{figure.name:20}{figure.what:80}{value:9.3f} {figure.unit:3} goal {figure.goal:g}: "
                f"{'met' if is_met else 'MISSED'}",
                flush=True,
            )
    return 0 if are_met else 1


if __name__ == "__main__":
    sys.exit(main())
