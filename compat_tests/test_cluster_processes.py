"""A client against brokers and controllers that are processes of one command: the active controller and a broker are
killed while it writes, or all of them go back to a snapshot."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from compat_tests.brokers.served_brokers import ServedBrokers

DEADLINE_SECONDS = 90.0
PARTITIONS = 6
REPLICATED = ("default.replication.factor=3", "min.insync.replicas=2", "broker.session.timeout.ms=3000")


def wait_until(what: str, holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited {DEADLINE_SECONDS} s until {what}"
        time.sleep(0.02)


class Cluster(ServedBrokers):
    """Three brokers and three controllers, each a process."""

    def __init__(self, directory: Path) -> None:
        kind = "--controllers", "3", "--processes"
        super().__init__(directory, *kind, topic=f"t:{PARTITIONS}", settings=REPLICATED)

    def kill(self, node_id: int) -> None:
        """End one process without a word."""
        (pid,) = re.findall(rf"node-started node={node_id} role=\w+ pid=(\d+)", self.log())
        os.kill(int(pid), signal.SIGKILL)
        ended = rf'node-ended node={node_id} role=\w+ status="signal 9"'
        wait_until(f"{node_id} has ended", lambda: re.search(ended, self.log()))

    def active_controllers(self) -> list[int]:
        """All that have been active, the last is the newest."""
        return [int(node_id) for node_id in re.findall(r"metadata active-controller node=(\d+)", self.log())]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    found.start()
    yield found
    found.close()


class Writer:
    """Writes numbers to all partitions until it is closed."""

    def __init__(self, bootstrap: str) -> None:
        self.acknowledged: list[bytes] = []
        self.errors: list[KafkaError] = []
        self._ends = threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1})
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        number = 0
        while not self._ends.is_set():
            self._producer.produce("t", str(number), partition=number % PARTITIONS, on_delivery=self._delivered)
            number += 1
            self._producer.poll(0)
            self._ends.wait(0.003)

    def _delivered(self, error, message) -> None:
        if error is None:
            self.acknowledged.append(message.value())
        else:
            self.errors.append(error)

    def wait_for_all_partitions(self) -> None:
        """Until each partition has taken what was written after this moment."""
        start = len(self.acknowledged)
        written = dict.fromkeys(range(PARTITIONS), False)

        def has_all() -> bool:
            for value in self.acknowledged[start:]:
                written[int(value) % PARTITIONS] = True
            return all(written.values()) and len(self.acknowledged) > start + 50

        wait_until("all partitions take records", has_all)

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        assert self._producer.flush(DEADLINE_SECONDS) == 0


def values_of(cluster: Cluster, count: int) -> list[bytes]:
    """What is in all partitions, once there are so many."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", index, 0) for index in range(PARTITIONS)])
    found: list[bytes] = []

    def has_all() -> bool:
        for message in consumer.consume(1000, timeout=0.5):
            if message.error() is None:
                found.append(message.value())
        return len(found) >= count

    wait_until(f"{count} records are read", has_all)
    consumer.close()
    return found


def test_nothing_acknowledged_is_lost_when_processes_are_killed(cluster: Cluster) -> None:
    """And nothing is written twice. Whoever decides after the active controller makes others lead what the killed
    broker led; after a stop the data is there, and all serve again."""
    writer = Writer(cluster.bootstrap)
    try:
        writer.wait_for_all_partitions()
        first = cluster.active_controllers()[-1]
        cluster.kill(first)
        wait_until("another controller is active", lambda: cluster.active_controllers()[-1] != first)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("after", 3, 3)])["after"].result(DEADLINE_SECONDS)
        writer.wait_for_all_partitions()
        cluster.kill(admin.list_topics("t", timeout=30).topics["t"].partitions[0].leader)
        writer.wait_for_all_partitions()
    finally:
        writer.close()
    assert writer.errors == []
    wanted = sorted(writer.acknowledged)
    assert sorted(values_of(cluster, len(wanted))) == wanted
    assert cluster.stop() == 0 and "unexpected-error" not in cluster.log()
    cluster.start()
    described = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=30)
    assert len(described.brokers) == 3 and {"t", "after"} <= set(described.topics)
    assert sorted(values_of(cluster, len(wanted))) == wanted


def act_on_snapshot(cluster: Cluster, action: str) -> None:
    """By kafka-python, which asks for the metadata on the connection that waits for the answer."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","), request_timeout_ms=90_000)
    change = ConfigResource(ConfigResourceType.BROKER, "1", {f"pykafkad.snapshot.{action}": "saved"})
    done = admin.alter_configs([change], raise_on_unknown=False)
    admin.close()
    assert done == {"broker": {"1": "OK"}}


def written(cluster: Cluster) -> list[bytes]:
    """What a producer that ends has written."""
    writer = Writer(cluster.bootstrap)
    try:
        writer.wait_for_all_partitions()
    finally:
        writer.close()
    assert writer.errors == []
    return writer.acknowledged


def end_of(consumer: Consumer, index: int) -> int:
    """The end of a partition; a leader that was just elected does not know it yet, and this call asks but once."""
    end = time.monotonic() + 60
    while True:
        try:
            return consumer.get_watermark_offsets(TopicPartition("t", index), timeout=60)[1]
        except KafkaException as error:
            if error.args[0].code() != KafkaError.OFFSET_NOT_AVAILABLE or time.monotonic() > end:
                raise
            time.sleep(0.1)


def test_processes_go_back_to_a_snapshot(cluster: Cluster) -> None:
    """Others serve on the same ports what was there at the snapshot, and nothing that came after it."""
    saved = sorted(written(cluster))
    act_on_snapshot(cluster, "create")
    written(cluster)
    act_on_snapshot(cluster, "restore")
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "ends"})
    ends = [end_of(consumer, index) for index in range(PARTITIONS)]
    consumer.close()
    assert sum(ends) == len(saved) and sorted(values_of(cluster, len(saved))) == saved
    more = written(cluster)
    assert sorted(values_of(cluster, len(saved) + len(more))) == sorted(saved + more)
