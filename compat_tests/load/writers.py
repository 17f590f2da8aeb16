"""Writers of numbers, one for each client library: each tells a history what it sends and what is acknowledged."""

from __future__ import annotations

import abc
import json
import subprocess
import threading
from pathlib import Path

from confluent_kafka import Producer
from kafka import KafkaProducer

from compat_tests.history import History, Sent
from compat_tests.java_tools import JAVA_OPTIONS
from compat_tests.setup import class_archive

PARTITIONS = 4
# Each record is a request of its own to a leader, and to two followers.
PAUSE_SECONDS = 0.02
# Longer than a leader and its coordinator can be away, also on a busy machine.
DELIVERY_SECONDS = 120
SOURCE = Path(__file__).with_name("LoadWriter.java")


class Writer(abc.ABC):
    """Sends numbered records to all partitions of a topic in turn, until it is stopped.

    `errors` has what the client said of records that it gave up.
    """

    name: str

    def __init__(self, bootstrap: str, topic: str, history: History) -> None:
        self.bootstrap, self.topic, self.history = bootstrap, topic, history
        self.errors: list[str] = []
        self.acknowledged = 0
        self.newest = (0, 0)
        """Partition and offset of the record that was acknowledged last."""
        self.has_begun_anew = False
        """Whether the client has a new producer epoch."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop sending, and wait for what has no answer yet."""

    def kill(self) -> None:
        """End a writer that was not stopped; threads end with the process."""
        self.errors.append("killed")

    def acknowledge(self, record: Sent, offset: int | None) -> None:
        """Clients tell no offset, or a negative one, of a record that the broker had already when it came again."""
        known = None if offset is None or offset < 0 else offset
        self.history.acknowledge(record, known)
        if known is not None:
            self.newest = record.partition, known
        self.acknowledged += 1


class ThreadWriter(Writer):
    """A writer in a thread of this process."""

    def __init__(self, bootstrap: str, topic: str, history: History) -> None:
        super().__init__(bootstrap, topic, history)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.write()
        except Exception as error:
            # A thread's exception would be told by nobody.
            self.errors.append(f"the writer ended: {error!r}")

    @abc.abstractmethod
    def write(self) -> None:
        """Send the records of `records` and return when all have an answer."""

    def records(self):
        """The records to send, each after a pause, until the writer is stopped."""
        number = 0
        while not self._ends.wait(PAUSE_SECONDS):
            record = Sent(number % PARTITIONS, self.name, number)
            self.history.send(record)
            yield record
            number += 1

    def stop(self) -> None:
        self._ends.set()
        self._thread.join(2 * DELIVERY_SECONDS)
        assert not self._thread.is_alive(), f"{self.name} does not end"


def value_of(record: Sent) -> bytes:
    """The record's value in the topic."""
    return f"{record.producer} {record.number}".encode()


class ConfluentWriter(ThreadWriter):
    """librdkafka's idempotent producer."""

    name = "librdkafka"

    def write(self) -> None:
        settings = {"enable.idempotence": True, "linger.ms": 1, "message.timeout.ms": DELIVERY_SECONDS * 1000}
        backoff = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 500, "log_level": 0}
        statistics = {"statistics.interval.ms": 500, "stats_cb": self._look_at}
        producer = Producer({"bootstrap.servers": self.bootstrap, **settings, **backoff, **statistics})
        for record in self.records():
            producer.produce(
                self.topic,
                value_of(record),
                partition=record.partition,
                on_delivery=lambda error, message, record=record: self._ended(record, error, message),
            )
            producer.poll(0)
        assert producer.flush(DELIVERY_SECONDS) == 0
        producer.poll(1)

    def _look_at(self, statistics: str) -> None:
        self.has_begun_anew = json.loads(statistics)["eos"]["producer_epoch"] > 0

    def _ended(self, record: Sent, error, message) -> None:
        if error is None:
            self.acknowledge(record, message.offset())
        else:
            self.errors.append(str(error))


class KafkaPythonWriter(ThreadWriter):
    """kafka-python's idempotent producer."""

    name = "kafka-python"

    def write(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap.split(","),
            delivery_timeout_ms=DELIVERY_SECONDS * 1000,
            reconnect_backoff_max_ms=500,
            linger_ms=1,
        )
        for record in self.records():
            sent = producer.send(self.topic, value_of(record), partition=record.partition)
            sent.add_callback(lambda metadata, record=record: self.acknowledge(record, metadata.offset))
            sent.add_errback(lambda error: self.errors.append(repr(error)))
        producer.flush(DELIVERY_SECONDS)
        producer.close(DELIVERY_SECONDS)


class JavaWriter(Writer):
    """The Java client's idempotent producer, in a process of its own; `classes` has the compiled program."""

    name = "java"

    def __init__(self, bootstrap: str, topic: str, history: History, jars: Path, classes: Path) -> None:
        super().__init__(bootstrap, topic, history)
        settings = classes / "writer.properties"
        settings.write_text(
            f"bootstrap.servers={bootstrap}\nlinger.ms=1\ndelivery.timeout.ms={DELIVERY_SECONDS * 1000}\n"
            "reconnect.backoff.max.ms=500\n"
        )
        words = ["java", *JAVA_OPTIONS, *class_archive.options(jars), "-cp", f"{jars}/*:{classes}", "LoadWriter"]
        words += [str(settings), self.name, topic, str(PARTITIONS), str(int(PAUSE_SECONDS * 1000))]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._thread = threading.Thread(target=self._read, name=self.name, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind == "E":
                self.errors.append(rest)
                continue
            partition, number, *offset = map(int, rest.split())
            record = Sent(partition, self.name, number)
            if kind == "S":
                self.history.send(record)
            else:
                self.acknowledge(record, *offset)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("\n")
            self._process.stdin.close()
        except BrokenPipeError:
            self.errors.append("the process has ended")
        try:
            code = self._process.wait(2 * DELIVERY_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        self._thread.join(DELIVERY_SECONDS)
        if code:
            self.errors.append(f"the process ended with {code}")


def compile_java(jars: Path, directory: Path) -> Path:
    """Compile the Java client's writer into a new directory."""
    directory.mkdir()
    words = ["javac", "-cp", f"{jars}/*", "-d", str(directory), str(SOURCE)]
    subprocess.run(words, check=True, capture_output=True, text=True)
    return directory
