"""Writes records to topics, with the event time as each record's timestamp."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from spark_it.pipeline.departures import MS_PER_DAY, YEAR_STARTS_MS, Record

FLIGHT_PARTITIONS = 4
CLOSING_KEY = "closing"
CLOSING_DAY = 375
CONNECT_TIMEOUT_S = 20
ACKNOWLEDGE_TIMEOUT_S = 120
SEVERE = 2
"""Syslog's "critical": what goes wrong comes as an exception, with the client's own remarks left out."""


class Topics(NamedTuple):
    """Names of the pipeline's topics."""

    flights: str
    weather: str
    delays: str

    @classmethod
    def named(cls, prefix: str) -> Topics:
        return cls(f"{prefix}-flights", f"{prefix}-weather", f"{prefix}-delays")


class PublishFailed(Exception):
    """A topic could not be created, or a record was not acknowledged; the message names it and the reason."""


def create_topics(bootstrap: str, topics: Topics, *, replace: bool = False) -> None:
    """Create the three topics; existing ones are deleted first with `replace`, and are an error without it."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": SEVERE})
    try:
        existing = sorted(set(admin.list_topics(timeout=CONNECT_TIMEOUT_S).topics) & set(topics))
    except KafkaException as error:
        raise PublishFailed(f"no broker answered at {bootstrap}: {error.args[0].str()}") from error
    if existing and not replace:
        raise PublishFailed(f"{bootstrap} already has {', '.join(existing)}: choose --replace, or another --prefix")
    if existing:
        for done in admin.delete_topics(existing).values():
            done.result()
    # The records are from 2013: with a retention time the broker would delete them during the run.
    config = {"retention.ms": "-1", "message.timestamp.type": "CreateTime"}
    partitions = {topics.flights: FLIGHT_PARTITIONS, topics.weather: 1, topics.delays: 1}
    for name, done in admin.create_topics(
        [NewTopic(name, count, 1, config=config) for name, count in partitions.items()]
    ).items():
        try:
            done.result()
        except KafkaException as error:
            raise PublishFailed(f"topic {name} could not be created: {error.args[0].str()}") from error


def publish(
    bootstrap: str, topic: str, records: Iterable[Record], *, published: Callable[[int], None] = lambda count: None
) -> int:
    """Send `records` in their order and wait until all are acknowledged; returns how many.

    `published` gets the number so far from time to time. Raises PublishFailed.
    """
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "log_level": SEVERE,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "linger.ms": 20,
            # The partitioner of Java clients, so that other producers choose the same partition for a key.
            "partitioner": "murmur2_random",
        }
    )
    failures: list[str] = []

    def delivered(error, message) -> None:
        if error is not None:
            failures.append(f"a record for {message.topic()} was not acknowledged: {error}")

    count = 0
    for record in records:
        while not failures:
            try:
                producer.produce(topic, record.value, record.key, timestamp=record.timestamp_ms, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        if failures:
            raise PublishFailed(failures[0])
        count += 1
        if count % 2000 == 0:
            producer.poll(0)
            published(count)
    if producer.flush(ACKNOWLEDGE_TIMEOUT_S):
        raise PublishFailed(f"{bootstrap} did not acknowledge all records of {topic} within {ACKNOWLEDGE_TIMEOUT_S} s")
    if failures:
        raise PublishFailed(failures[0])
    published(count)
    return count


def closing_record() -> Record:
    """A record that belongs to no airport and is days younger than the data.

    A watermark moves only with records. This record moves it past the last day of the data, so that this day's
    statistics are closed too; the statistics of the record's own day stay open and are never seen. Flights get one,
    after the last flight. Weather gets one whenever the query starts, because a query's watermark is that of its
    slowest topic, and a topic without new records since a restart holds it back.
    """
    return Record(CLOSING_KEY, '{"airport": "closing"}', YEAR_STARTS_MS + CLOSING_DAY * MS_PER_DAY)
