"""librdkafka's idempotent producer and its group member survive restarts: no record is lost, duplicated or read
twice.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import threading
import time
from collections.abc import Iterator

import confluent_kafka
import pytest
from kafka import KafkaConsumer
from kafka.admin import KafkaAdminClient

from compat_tests.brokers.broker import Broker
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import assert_no_bug_logged
from compat_tests.samples import wait_until

PAUSE_SECONDS = 0.01
QUIET_SECONDS = 0.5
# A real Kafka may start slowly on a busy machine; a consumer without contact for this long joins again.
DELIVERY_MS = 280_000
SESSION_MS = 280_000
READ_SECONDS = 200.0
BACKOFF_MS = 200
# A Kafka that stops tells its controller first, and then answers for some milliseconds that the cluster has no broker.
# librdkafka forgets all brokers on such an answer, also those it was given, and never connects again (its issue 5301).
# With this setting Kafka does not tell its controller. pykafkad never gives that answer.
SETTINGS_OF_KAFKA = {"controlled.shutdown.enable": "false"}


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for one test."""
    directory = tmp_path_factory.mktemp(request.param)
    if request.param == PykafkadProcess.name:
        own: Broker = PykafkadProcess(directory)
    else:
        own = request.getfixturevalue("kafka_source").broker(directory, SETTINGS_OF_KAFKA)
    try:
        own.start()
        yield own
    finally:
        own.close()
        # kafka-python leaves sockets of refused connections to the garbage collector, which warns about them after the
        # tests.
        gc.collect()
    if isinstance(own, PykafkadProcess):
        assert_no_bug_logged(own)


class Client:
    """A producer that sends 0, 1, 2… until it is stopped, and a consumer of the same client library that reads them in
    a group.

    `sent` counts acknowledged records, `read` holds the records read, `assignments` counts how often the consumer got
    its partition.
    """

    def __init__(self, name: str, bootstrap: str) -> None:
        self.topic = name
        self.bootstrap = bootstrap
        self.stopping = threading.Event()
        self.ending = threading.Event()
        self.failures: list[str] = []
        self.sent = 0
        self.read: list[int] = []
        self.assignments = 0
        self.threads = [
            threading.Thread(target=self.guarded, args=(each,), daemon=True) for each in (self.produce, self.consume)
        ]

    def guarded(self, work: object) -> None:
        """Run a thread's work and keep the exception that ends it."""
        try:
            work()  # type: ignore[operator]
        except Exception as error:
            self.failures.append(f"{self.topic}: {error!r}")

    def produce(self) -> None:
        """Produce until `stopping` is set, then flush."""
        raise NotImplementedError

    def consume(self) -> None:
        """Consume until `ending` is set."""
        raise NotImplementedError


class Confluent(Client):
    """confluent-kafka, which uses librdkafka."""

    def produce(self) -> None:
        retries = {"message.timeout.ms": DELIVERY_MS, "reconnect.backoff.max.ms": BACKOFF_MS}
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "log_level": 0, **retries}
        )
        number = 0
        while not self.stopping.is_set():
            producer.produce(self.topic, b"%d" % number, on_delivery=self.delivered)
            producer.poll(PAUSE_SECONDS)
            number += 1
        assert producer.flush(READ_SECONDS) == 0
        assert self.sent == number

    def delivered(self, error: object, message: object) -> None:
        """Count the acknowledged record, or keep its error."""
        if error is None:
            self.sent += 1
        else:
            self.failures.append(f"{self.topic}: {error}")

    def consume(self) -> None:
        config = {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.topic,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        consumer = confluent_kafka.Consumer(
            {**config, "session.timeout.ms": SESSION_MS, "reconnect.backoff.max.ms": BACKOFF_MS}
        )
        consumer.subscribe([self.topic], on_assign=self.assigned)
        while not self.ending.is_set():
            message = consumer.poll(0.2)
            # Connection errors are reported, and the client recovers from them.
            if message is not None and message.error() is None:
                self.read.append(int(message.value()))
        consumer.close()

    def assigned(self, consumer: object, partitions: object) -> None:
        self.assignments += 1


CLIENTS = {"confluent-kafka": Confluent}


def all_of(bootstrap: str, topic: str, count: int) -> list[int]:
    """The first `count` numbers in the topic, and any that arrive shortly after them."""
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=300)
    deadline = time.monotonic() + 100
    found: list[int] = []
    while len(found) < count and time.monotonic() < deadline:
        found += [int(record.value) for record in consumer]
    consumer.close()
    return found


def test_clients_live_through_restarts(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    """A clean restart and a kill during traffic: every sent record is there once and in order, and was read once.

    No member joined again, because the group and its members were loaded.
    """
    # Captured log lines would hold the errors they mention, and these hold the sockets.
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({name: {"num_partitions": 1} for name in CLIENTS}, wait_for_metadata=True)
    admin.close()
    clients = [cls(name, broker.bootstrap) for name, cls in CLIENTS.items()]
    for client in clients:
        for thread in client.threads:
            thread.start()

    def all_read_more() -> None:
        counts = [len(client.read) for client in clients]
        reads = lambda: all(len(client.read) > count + 20 for client, count in zip(clients, counts, strict=True))  # noqa: E731
        wait_until(lambda: reads() or any(client.failures for client in clients), "every consumer reads", READ_SECONDS)

    all_read_more()
    # A client that joins before it knows the partitions joins twice.
    before = [client.assignments for client in clients]
    broker.restart()
    all_read_more()
    broker.kill()
    broker.start()
    all_read_more()
    for client in clients:
        client.stopping.set()
        client.threads[0].join(READ_SECONDS)
    # A duplicate would arrive within this time.
    with contextlib.suppress(AssertionError):
        wait_until(
            lambda: all(len(client.read) >= client.sent or client.failures for client in clients),
            "everything sent was read",
            100,
        )
    time.sleep(QUIET_SECONDS)
    for client in clients:
        client.ending.set()
        client.threads[1].join(READ_SECONDS)
    assert [failure for client in clients for failure in client.failures] == []
    for client in clients:
        assert client.sent > 60
        assert all_of(broker.bootstrap, client.topic, client.sent) == list(range(client.sent)), client.topic
        missing = sorted(set(range(client.sent)) - set(client.read))
        assert client.read == list(range(client.sent)), f"{client.topic}: {missing} were never read"
    assert [client.assignments for client in clients] == before
