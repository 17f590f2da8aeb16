"""A broker of ten thousand partitions as a process: what a start takes, what an idle partition costs, what a start after a kill reads.

Processor seconds, bytes and descriptors are looked at, not the clock on the wall: others use this machine too.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import wire_bytes
from tests.bench.process import cpu_seconds
from tests.bench.request_loads import encoded_batch
from tests.bench.session import Session

TOPICS, PARTITIONS_EACH = 10, 1000
START_SECONDS = 1.0
IDLE_BYTES = 3 * 1024
PRODUCE_VERSION = 7
BATCH_BYTES = 500_000


class Broker:
    """One that is ready to serve, with what it took until then: `start_cpu_seconds`, and `start_read_bytes` of all files."""

    def __init__(self, data: Path, *options: str) -> None:
        words = [sys.executable, "-m", "pykafkad", "serve", "--listen", "localhost:0", "--data", str(data), *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline().rpartition(":")[2])
        self.start_cpu_seconds = cpu_seconds(self.process.pid)
        self.start_read_bytes = int(re.search(r"rchar: (\d+)", self._about("io"))[1])

    def _about(self, name: str) -> str:
        return Path(f"/proc/{self.process.pid}/{name}").read_text()

    @property
    def own_memory_bytes(self) -> int:
        """Memory that it shares with no file and no other process."""
        return 1024 * int(re.search(r"^Anonymous:\s+(\d+) kB", self._about("smaps_rollup"), re.MULTILINE)[1])

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        assert self.process.returncode == 0

    def kill(self) -> None:
        """Without a word; nothing if it is gone already."""
        self.process.kill()
        self.process.wait(60)
        self.process.stdout.close()


class Brokers:
    """Starts them; what still runs at the end of the test is killed."""

    def __init__(self) -> None:
        self.started: list[Broker] = []

    def __call__(self, data: Path, *options: str) -> Broker:
        self.started.append(Broker(data, *options))
        return self.started[-1]


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    """Starts brokers."""
    found = Brokers()
    yield found
    for broker in found.started:
        broker.kill()


def produce(session: Session, topic: str, partition: int, batch: bytes) -> None:
    """Send one batch; it is acknowledged."""
    template = wire_bytes.produce(PRODUCE_VERSION, topic, None, partition, batch)
    answer = session.call(template.request)
    assert answer[template.error_at : template.error_at + 2] == b"\0\0"


def descriptors_for(broker: Broker, partitions: int) -> int:
    """How many descriptors the broker takes when somebody writes to so many partitions."""
    with Session(broker.port) as session:
        session.call(wire_bytes.api_versions().request)
        before = broker.descriptors
        for partition in range(partitions):
            produce(session, "many-3", partition, encoded_batch(None))
        return broker.descriptors - before


def test_ten_thousand_partitions(brokers: Brokers, tmp_path: Path) -> None:
    """A start within a second, three kilobytes for an idle partition, a descriptor for one in use; after a stop, and after a kill."""
    brokers(tmp_path / "empty").stop()
    empty = brokers(tmp_path / "empty")
    empty_bytes, empty_descriptors = empty.own_memory_bytes, empty.descriptors
    empty.stop()
    many = TOPICS * PARTITIONS_EACH
    brokers(tmp_path / "many", *(word for number in range(TOPICS) for word in ("--topic", f"many-{number}:{PARTITIONS_EACH}"))).stop()

    broker = brokers(tmp_path / "many")
    assert broker.start_cpu_seconds <= START_SECONDS
    assert (broker.own_memory_bytes - empty_bytes) / many <= IDLE_BYTES
    assert broker.descriptors == empty_descriptors
    assert descriptors_for(broker, 100) == 100
    broker.kill()

    broker = brokers(tmp_path / "many")
    assert (broker.own_memory_bytes - empty_bytes) / many <= IDLE_BYTES
    assert broker.descriptors == empty_descriptors
    assert descriptors_for(broker, 100) == 100
    broker.stop()


def test_a_start_after_a_kill_reads_what_came_since_the_recovery_point(brokers: Brokers, tmp_path: Path) -> None:
    """Forty partitions of two megabytes were stopped, two of them written to, and the broker killed."""
    partitions, batches, used = 40, 4, 2
    broker = brokers(tmp_path)
    with Session(broker.port) as session:
        session.create_topics({"t": partitions})
        for partition in range(partitions):
            for _ in range(batches):
                produce(session, "t", partition, encoded_batch(BATCH_BYTES))
    broker.stop()
    broker = brokers(tmp_path)
    stopped_read_bytes = broker.start_read_bytes
    with Session(broker.port) as session:
        for partition in range(used):
            produce(session, "t", partition, encoded_batch(BATCH_BYTES))
    broker.kill()
    broker = brokers(tmp_path)
    read_bytes = broker.start_read_bytes - stopped_read_bytes
    # Of a segment that was written to all is looked at, as by Kafka; of the others what lies behind the last index entry.
    log_bytes = used * (batches + 1) * BATCH_BYTES
    assert log_bytes <= read_bytes <= log_bytes + partitions * 100_000
    broker.stop()
    broker = brokers(tmp_path)
    assert broker.start_read_bytes - stopped_read_bytes < 100_000
