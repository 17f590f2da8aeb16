"""Kafka's TransactionalMessageCopier in the Java clients 4.3, 3.9 and 2.8: killed in a transaction, its copy is exact.

The oldest one adds partitions and the group itself (transaction version 1), the newest leaves that to the broker (2).
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from compat_tests.conftest import unavailable
from compat_tests.exactly_once.open_transactions import open_offsets
from compat_tests.java_tools import JAVA_OPTIONS
from compat_tests.samples import wait_until
from compat_tests.setup.kafka_jars import KAFKA_VERSION, OLDER_VERSIONS, JarsUnavailable, fetch_older_tools
from compat_tests.test_confluent_kafka import create

FreshName = Callable[..., str]
MAIN = "org.apache.kafka.tools.TransactionalMessageCopier"
RECORDS = 4000
IN_A_TRANSACTION = 40
SECONDS = 100


@pytest.fixture(params=[KAFKA_VERSION, *OLDER_VERSIONS])
def jars(request: pytest.FixtureRequest, kafka_jars: Path) -> Path:
    """The folder with a Java client of one version."""
    if request.param == KAFKA_VERSION:
        return kafka_jars
    try:
        return fetch_older_tools(request.param)
    except JarsUnavailable as error:
        unavailable(str(error))
        raise


@pytest.fixture
def start(jars: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts the copier with its output in the file `copier`; none is left at the end."""
    running: list[subprocess.Popen] = []

    def begin(*arguments: str) -> subprocess.Popen:
        command = ["java", *JAVA_OPTIONS, "-cp", f"{jars}/*", MAIN, *arguments]
        with open(tmp_path / "copier", "ab") as output:
            running.append(subprocess.Popen(command, stdout=output, stderr=output))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.wait()


def values(bootstrap: str, topic: str) -> list[int]:
    """The values of partition 0 that a read_committed consumer is given."""
    settings = {"group.id": "-", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    while (message := consumer.poll(SECONDS)) is not None and message.error() is None:
        found.append(int(message.value()))
    consumer.close()
    return found


def test_a_killed_copier_copies_each_record_once(
    bootstrap: str, start: Callable[..., subprocess.Popen], fresh_name: FreshName, tmp_path: Path
) -> None:
    """It aborts a third of its transactions, is killed with one open, and goes on under the same transactional id."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    source, target = (create(admin, fresh_name(kind), 1) for kind in ("source", "target"))
    group, transactional_id = fresh_name("group"), fresh_name("id")
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(source, b"%d" % number)
    assert producer.flush(SECONDS) == 0
    arguments = (
        "--broker-list", bootstrap, "--input-topic", source, "--input-partition", "0", "--output-topic", target,
        "--consumer-group", group, "--transactional-id", transactional_id, "--enable-random-aborts",
        "--transaction-size", str(IN_A_TRANSACTION), "--use-group-metadata",
    )  # fmt: skip
    said = tmp_path / "copier"
    process = start(*arguments)

    def is_in_a_transaction() -> bool:
        assert process.poll() is None, f"it ended before it could be killed: {said.read_text()[-2000:]}"
        return open_offsets(admin, target, 1) > 0

    wait_until(is_in_a_transaction, "a transaction is open")
    process.kill()
    process.wait()
    # Otherwise the next copier waits for the time-out of what its predecessor left open.
    next_owner = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "log_level": 0})
    next_owner.init_transactions(SECONDS)
    del next_owner
    assert start(*arguments).wait(SECONDS) == 0, said.read_text()[-2000:]
    assert values(bootstrap, target) == list(range(RECORDS))
