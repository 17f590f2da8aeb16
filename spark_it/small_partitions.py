"""Measures Spark's `count()` over many small partitions, which mostly waits at the ends of logs.

After each poll an executor asks for the partition's offsets, on the connection where its consumer's next Fetch already
waits for up to half a second. A broker that answers the Fetch as soon as another request arrives saves that time;
Apache Kafka does not.

    python -m spark_it.small_partitions HOST:PORT
"""

from __future__ import annotations

import argparse
import time

RECORDS = 20_000
PARTITIONS = 100


def fill(bootstrap: str, topic: str, *, records: int = RECORDS, partitions: int = PARTITIONS) -> None:
    """Create `topic` and spread `records` records of about 100 bytes evenly over its partitions."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(records):
        producer.produce(topic, b"%0100d" % number, partition=number % partitions)
        if number % 1000 == 0:
            producer.poll(0)
    if producer.flush(60):
        raise TimeoutError(f"{bootstrap} did not acknowledge all records of {topic} within a minute")


def measure(bootstrap: str, topic: str, *, expected: int = RECORDS) -> float:
    """Seconds that one `count()` over `topic` takes with Spark's and the consumer's default options, on two threads.

    Raises ValueError where the count is not `expected`. The first call in a process also pays for Spark's first job.
    """
    from spark_it.session import spark_session

    spark = spark_session("small partitions")
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    start = time.perf_counter()
    counted = reader.load().count()
    elapsed_s = time.perf_counter() - start
    if counted != expected:
        raise ValueError(f"Spark counted {counted} records in {topic}, {expected} were written")
    return elapsed_s


def main(arguments: list[str] | None = None) -> int:
    """Fill a topic, count it `--runs` times, print the seconds of each run on a line."""
    parser = argparse.ArgumentParser(prog="python -m spark_it.small_partitions", description=__doc__.splitlines()[0])
    parser.add_argument("bootstrap", metavar="HOST:PORT", help="the broker")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="how often to count (%(default)s)")
    options = parser.parse_args(arguments)
    topic = f"small-partitions-{time.time_ns()}"
    warm_up = f"{topic}-warm-up"
    fill(options.bootstrap, warm_up, records=2, partitions=1)
    measure(options.bootstrap, warm_up, expected=2)
    fill(options.bootstrap, topic)
    for _ in range(options.runs):
        print(f"{measure(options.bootstrap, topic):.2f}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
