"""A full disk under pykafkad: producers get an error, consumers continue, no acknowledged record is lost.

Only pykafkad: a real Kafka whose only log directory fails shuts itself down.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.broker import answers
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import unavailable
from compat_tests.samples import wait_until

DISK_MEGABYTES = 16
VALUE_BYTES = 50_000
TOPIC = "full"
FAILING_MS = 60_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes in memory."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    if os.geteuid() != 0:
        unavailable("a small file system can be mounted by root only")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "tmpfs", str(mounted)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        unavailable("this machine does not let root mount a file system")
    yield mounted
    subprocess.run(["umount", str(mounted)], check=True)


@pytest.fixture
def broker_on_small_disk(small_disk: Path, tmp_path: Path) -> Iterator[PykafkadProcess]:
    """A pykafkad with its data on the small disk and its log elsewhere."""
    broker = PykafkadProcess(tmp_path)
    broker.data_directory = small_disk / "data"
    broker.start()
    # Group consumers need the topic of offsets. Creating it later would write to the metadata log, without which no
    # broker can continue.
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader", "log_level": 0})
    consumer.commit(offsets=[TopicPartition(made(broker.bootstrap), 0, 0)], asynchronous=False)
    consumer.close()
    yield broker
    broker.close()


def made(bootstrap: str) -> str:
    """Create the topic of these tests; returns its name."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(100)
    return TOPIC


def produce(bootstrap: str, first: int, count: int, patience_ms: int = 100_000) -> tuple[list[int], list[KafkaError]]:
    """Send numbered records one by one; returns the acknowledged numbers, and the errors of the others.

    A partition on a broken disk has no leader; a producer waits for a leader up to `patience_ms`.
    """
    settings = {
        "bootstrap.servers": bootstrap,
        "message.timeout.ms": patience_ms,
        "linger.ms": 0,
        "batch.num.messages": 1,
        "retries": 0,
    }
    producer = Producer({**settings, "log_level": 0})
    acknowledged: list[int] = []
    errors: list[KafkaError] = []

    def report(number: int) -> object:
        return lambda error, _: errors.append(error) if error else acknowledged.append(number)

    for number in range(first, first + count):
        value = b"%08d" % number + os.urandom(VALUE_BYTES)
        producer.produce(TOPIC, value, partition=0, on_delivery=report(number))
        assert producer.flush(120) == 0
        if errors:
            break
    return acknowledged, errors


def numbers(bootstrap: str) -> list[int]:
    """The numbers of all records in the topic, in their order."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, "log_level": 0}
    )
    _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=100)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[int] = []
    wait_until(lambda: found.extend(read(consumer)) or len(found) >= end, "the topic is read")
    consumer.close()
    return found


def read(consumer: Consumer) -> list[int]:
    """The numbers of the next records."""
    messages = consumer.consume(100, 0.2)
    assert all(message.error() is None for message in messages), [message.error() for message in messages]
    return [int(message.value()[:8]) for message in messages]


def fill(disk: Path) -> Path:
    """Leave room for ten records only; returns the file that takes the rest."""
    filler = disk / "filler"
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    filler.write_bytes(b"\0" * (free - 10 * VALUE_BYTES))
    return filler


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_full_disk(broker_on_small_disk: PykafkadProcess, killed: bool) -> None:
    """On a full disk producers get a storage error and consumers read on; with space and a restart everything works
    again.
    """
    broker = broker_on_small_disk
    acknowledged, errors = produce(broker.bootstrap, 0, 50)
    assert len(acknowledged) == 50 and not errors
    filler = fill(broker.data_directory.parent)
    more, errors = produce(broker.bootstrap, 50, 100, FAILING_MS)
    assert errors and errors[0].code() in (KafkaError.KAFKA_STORAGE_ERROR, KafkaError._MSG_TIMED_OUT), errors
    acknowledged += more
    assert answers(broker.bootstrap)
    wait_until(lambda: "No space left" in broker.log_text(), "the log names the reason")
    assert numbers(broker.bootstrap)[: len(acknowledged)] == acknowledged
    if killed:
        broker.kill()
    filler.unlink()
    broker.restart()
    found = numbers(broker.bootstrap)
    assert set(acknowledged) <= set(found) and found == sorted(set(found))
    again, errors = produce(broker.bootstrap, 1000, 5)
    assert again == list(range(1000, 1005)) and not errors


def test_all_goes_on_when_there_is_space_again(broker_on_small_disk: PykafkadProcess) -> None:
    """Without a restart: records, committed offsets, and a transaction that was open when the disk became full."""
    broker = broker_on_small_disk
    settings = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    transactional = Producer({**settings, "transactional.id": "full"})
    transactional.init_transactions(60)
    transactional.begin_transaction()
    transactional.produce(TOPIC, b"in a transaction", partition=0)
    transactional.flush(60)
    filler = fill(broker.data_directory.parent)
    _, errors = produce(broker.bootstrap, 50, 100, FAILING_MS)
    assert errors, "the disk is full"
    rest = broker.data_directory.parent / "rest"
    rest.write_bytes(b"\0" * (os.statvfs(rest.parent).f_bavail * os.statvfs(rest.parent).f_frsize))
    consumer = Consumer({**settings, "group.id": "reader", "isolation.level": "read_committed"})
    offset = TopicPartition(TOPIC, 0, 1, metadata="x" * 4000)
    with pytest.raises(KafkaException):
        # The file may have a page left.
        for _ in range(10):
            consumer.commit(offsets=[offset], asynchronous=False)
    # The coordinator can decide, or cannot; the partition cannot be told in any case.
    is_decided = commits(transactional, 10)
    rest.unlink()
    filler.unlink()
    wait_until(lambda: produce(broker.bootstrap, 1000, 1, 5_000)[0] == [1000], "a record is taken")
    offset.offset = 2
    consumer.commit(offsets=[offset], asynchronous=False)
    assert [each.offset for each in consumer.committed([TopicPartition(TOPIC, 0)], 60)] == [2]
    assert is_decided or commits(transactional, 60)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[bytes] = []
    wait_until(lambda: found.extend(values(consumer)) or b"in a transaction" in found, "the transaction has ended")
    consumer.close()
    transactional.begin_transaction()
    transactional.produce(TOPIC, b"in the next one", partition=0)
    assert commits(transactional, 60)


def commits(producer: Producer, seconds: float) -> bool:
    """Whether the producer's transaction is committed within the time. If not, the producer may try again."""
    try:
        producer.commit_transaction(seconds)
    except KafkaException as error:
        assert error.args[0].retriable(), error
        return False
    return True


def values(consumer: Consumer) -> list[bytes]:
    """The next records' values."""
    return [message.value() or b"" for message in consumer.consume(100, 0.2)]


@pytest.fixture
def failing_disk(tmp_path: Path) -> Iterator[FailingDisk]:
    """An ext4 file system in a file, which becomes read-only at its device's first error."""
    if os.geteuid() != 0:
        unavailable("a file system can be mounted by root only")
    disk = FailingDisk(tmp_path / "image", tmp_path / "disk")
    try:
        disk.make()
    except (OSError, subprocess.CalledProcessError) as error:
        unavailable(
            f"this machine does not let root mount an ext4 from a file: {getattr(error, 'stderr', '') or error}"
        )
    yield disk
    disk.unmount()


class FailingDisk:
    """A file system that can be made read-only under running writers, and repaired."""

    def __init__(self, image: Path, mounted: Path) -> None:
        self.image = image
        self.mounted = mounted

    def make(self) -> None:
        """Format it and mount it."""
        self.mounted.mkdir()
        with open(self.image, "wb") as file:
            file.truncate(64 << 20)
        self._run("mkfs.ext4", "-q", str(self.image))
        self.mount()
        if not self._trigger().exists():
            self.unmount()
            raise OSError("no trigger_fs_error in /sys/fs/ext4")

    def mount(self) -> None:
        """Mount it."""
        self._run("mount", "-o", "loop,errors=remount-ro", str(self.image), str(self.mounted))

    def fail(self) -> None:
        """From now on nothing can be written; unsynced data may be lost."""
        self._trigger().write_text("the device is broken")

    def repair(self) -> None:
        """Repair it as an operator would."""
        self.unmount()
        # Exit code 1 means that errors were corrected.
        assert subprocess.run(["fsck.ext4", "-p", "-f", str(self.image)], capture_output=True).returncode in (0, 1)
        self.mount()

    def unmount(self) -> None:
        """Unmount it; does nothing if it is not mounted."""
        if os.path.ismount(self.mounted):
            self._run("umount", str(self.mounted))

    def _trigger(self) -> Path:
        device = subprocess.run(
            ["findmnt", "-no", "SOURCE", str(self.mounted)], capture_output=True, text=True, check=True
        ).stdout.strip()
        return Path("/sys/fs/ext4") / Path(device).name / "trigger_fs_error"

    @staticmethod
    def _run(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, text=True)


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_disk_that_goes_read_only(failing_disk: FailingDisk, tmp_path: Path, killed: bool) -> None:
    """On a read-only disk producers get a storage error and consumers read on.

    After the repair everything is there that was acknowledged after its sync.
    """
    broker = PykafkadProcess(tmp_path, {"pykafkad.group.commit": "true"})
    broker.data_directory = failing_disk.mounted / "data"
    broker.start()
    try:
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "reader", "log_level": 0})
        consumer.commit(offsets=[TopicPartition(made(broker.bootstrap), 0, 0)], asynchronous=False)
        consumer.close()
        acknowledged, errors = produce(broker.bootstrap, 0, 30)
        assert len(acknowledged) == 30 and not errors
        failing_disk.fail()
        more, errors = produce(broker.bootstrap, 30, 10, FAILING_MS)
        assert not more and errors[0].code() in (KafkaError.KAFKA_STORAGE_ERROR, KafkaError._MSG_TIMED_OUT), (
            more,
            errors,
        )
        assert numbers(broker.bootstrap)[:30] == acknowledged
        if killed:
            broker.kill()
        else:
            broker.process.terminate()
            broker.process.wait(100)
            broker.process = None
        failing_disk.repair()
        broker.start()
        found = numbers(broker.bootstrap)
        assert set(acknowledged) <= set(found) and found == sorted(set(found))
        again, errors = produce(broker.bootstrap, 1000, 5)
        assert again == list(range(1000, 1005)) and not errors
    finally:
        broker.close()
