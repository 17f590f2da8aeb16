"""Snapshots, forks, memory and fsck through ordinary clients.

These are pykafkad's own features; where a real Kafka can judge the result, it does.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import assert_no_bug_logged
from compat_tests.numbered import PARTITIONS, committed, produce, read_all, read_in_group
from compat_tests.test_readme import example

TOPIC, OTHER = "orders", "others"
GROUP = "readers"


@pytest.fixture(params=["disk", "memory"])
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PykafkadProcess]:
    """A pykafkad with two topics of thirty records each and a group in the middle of them, saved as snapshot
    `prepared`.
    """
    options = ["--memory", "64MB"] if request.param == "memory" else []
    broker = PykafkadProcess(tmp_path, options=options)
    broker.start()
    try:
        for topic in (TOPIC, OTHER):
            create(broker, topic, range(30))
        read_in_group(broker.bootstrap, TOPIC, GROUP, 15)
        act(broker, "create", "prepared")
        yield broker
        assert_no_bug_logged(broker)
    finally:
        broker.close()


def act(broker: ProcessBroker, action: str, value: str) -> None:
    """Perform one action of a snapshot as docs/using.md shows it."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    change = ConfigResource(ConfigResourceType.BROKER, "1", {f"pykafkad.snapshot.{action}": value})
    assert admin.alter_configs([change], raise_on_unknown=False) == {"broker": {"1": "OK"}}
    admin.close()


def create(broker: ProcessBroker, topic: str, numbers: range) -> None:
    """A new topic with these records."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics({topic: {"num_partitions": PARTITIONS}})
    admin.close()
    produce(broker.bootstrap, topic, numbers)


def test_everything_goes_back(saved: PykafkadProcess) -> None:
    """Records, topics and committed offsets are restored, twice; connected clients and a producer continue by
    themselves.
    """
    producer = KafkaProducer(bootstrap_servers=saved.bootstrap)
    for _ in range(2):
        producer.send(TOPIC, b"30", partition=0).get(100)
        produce(saved.bootstrap, TOPIC, range(31, 60))
        create(saved, "later", range(3))
        read_in_group(saved.bootstrap, TOPIC, GROUP, 20)
        assert committed(saved.bootstrap, TOPIC, GROUP) == 35
        act(saved, "restore", "prepared")
        assert (read_all(saved.bootstrap, TOPIC), read_all(saved.bootstrap, OTHER)) == (
            list(range(30)),
            list(range(30)),
        )
        assert committed(saved.bootstrap, TOPIC, GROUP) == 15
        admin = KafkaAdminClient(bootstrap_servers=saved.bootstrap)
        assert "later" not in admin.list_topics()
        admin.close()
    producer.close()


def test_one_topic_goes_back(saved: PykafkadProcess) -> None:
    """Only the topic's records are restored; a consumer beyond the new end follows `auto.offset.reset`."""
    consumer = KafkaConsumer(bootstrap_servers=saved.bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(TOPIC, 0)])
    for topic in (TOPIC, OTHER):
        produce(saved.bootstrap, topic, range(30, 60))
    consumer.seek(TopicPartition(TOPIC, 0), 20)
    consumer.poll(200)
    act(saved, "restore", f"prepared:{TOPIC}")
    assert (read_all(saved.bootstrap, TOPIC), read_all(saved.bootstrap, OTHER)) == (list(range(30)), list(range(60)))
    again = next(iter(consumer))
    assert (again.offset, again.value) == (0, b"0")
    consumer.close()


def pykafkad(*arguments: object) -> subprocess.CompletedProcess:
    """Run the command line."""
    return subprocess.run([sys.executable, "-m", "pykafkad", *map(str, arguments)], capture_output=True, text=True)


def test_the_command_line(saved: PykafkadProcess) -> None:
    """Every action works as in the example of docs/using.md; the command prints the broker's message."""
    bootstrap = ("--bootstrap", saved.bootstrap)
    assert pykafkad("snapshot", "create", "second", *bootstrap).returncode == 0
    assert pykafkad("snapshot", "list", *bootstrap).stdout == "name\nprepared\nsecond\n"
    produce(saved.bootstrap, TOPIC, range(30, 40))
    again = pykafkad("snapshot", "create", "second", *bootstrap)
    assert (again.returncode, again.stderr) == (
        1,
        "pykafkad: there is a snapshot second already; delete it, or take another name\n",
    )
    assert pykafkad("snapshot", "restore", "second", "--topic", TOPIC, *bootstrap).returncode == 0
    assert read_all(saved.bootstrap, TOPIC) == list(range(30))
    produce(saved.bootstrap, TOPIC, range(30, 40))
    shown = {}
    exec(example("from kafka.admin import"), shown)
    shown["rewind"](saved.bootstrap, "second")
    assert read_all(saved.bootstrap, TOPIC) == list(range(30))
    with pytest.raises(AssertionError, match="there is no snapshot third"):
        shown["rewind"](saved.bootstrap, "third")
    assert pykafkad("snapshot", "delete", "second", *bootstrap).returncode == 0
    assert pykafkad("snapshot", "list", "--json", *bootstrap).stdout == '{"name": "prepared"}\n'


def test_a_real_kafka_starts_on_a_fork(kafka_jars: Path, tmp_path: Path) -> None:
    """A fork of a running broker is a normal directory; a Kafka that runs on it does not affect the broker."""
    (tmp_path / "ours").mkdir()
    (tmp_path / "kafka").mkdir()
    ours = PykafkadProcess(tmp_path / "ours")
    kafka = KafkaProcess(kafka_jars, tmp_path / "kafka")
    try:
        ours.start()
        create(ours, TOPIC, range(30))
        act(ours, "create", "prepared")
        produce(ours.bootstrap, TOPIC, range(30, 40))
        forked = pykafkad("snapshot", "fork", "prepared", kafka.data_directory, "--data", ours.data_directory)
        assert forked.returncode == 0, forked.stderr
        kafka.start()
        assert read_all(kafka.bootstrap, TOPIC) == list(range(30))
        produce(kafka.bootstrap, TOPIC, range(70, 90))
        refused = pykafkad("snapshot", "create", "one", "--bootstrap", kafka.bootstrap)
        assert refused.returncode == 1 and "not pykafkad" in refused.stderr, (
            "a real Kafka would store the action as a setting"
        )
        assert read_all(kafka.bootstrap, TOPIC) == [*range(30), *range(70, 90)]
        kafka.stop()
        assert read_all(ours.bootstrap, TOPIC) == list(range(40))
        act(ours, "restore", "prepared")
        assert read_all(ours.bootstrap, TOPIC) == list(range(30))
    finally:
        kafka.kill()
        ours.close()
        shutil.rmtree(kafka.data_directory, ignore_errors=True)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_fsck_reads_a_real_kafkas_directory(kafka_jars: Path, tmp_path: Path, end: str) -> None:
    """After a clean stop fsck finds nothing; after a kill no record is damaged.

    fsck changes nothing, and Kafka starts as before.
    """
    kafka = KafkaProcess(kafka_jars, tmp_path)
    try:
        kafka.start()
        create(kafka, TOPIC, range(30))
        getattr(kafka, end)()
        checked = pykafkad("fsck", kafka.data_directory)
        assert "damage" not in checked.stdout and "offline" not in checked.stdout, checked.stdout
        if end == "stop":
            assert (checked.returncode, checked.stdout) == (0, ""), checked.stdout + checked.stderr
        kafka.start()
        assert read_all(kafka.bootstrap, TOPIC) == list(range(30))
    finally:
        kafka.kill()
