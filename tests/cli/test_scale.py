"""A broker with ten thousand partitions: the cost of a start, of an idle partition, and of a start after a kill.

The tests measure processor seconds, bytes and descriptors instead of wall-clock time, because other processes use the
machine too.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafkad.disk import SPARE_DESCRIPTORS
from tests.bench import wire_bytes
from tests.bench.process import cpu_seconds
from tests.bench.request_loads import encoded_batch
from tests.bench.session import Session

TOPICS, PARTITIONS_EACH = 10, 1000
START_SECONDS = 1.0
# A busy machine makes processor seconds longer and never shorter, so one start within the bound is enough.
STARTS = 8
# On a machine that is busy all the time the bound is this many starts of an empty broker: half as many on a quiet one.
EMPTY_STARTS = 15
IDLE_BYTES = 3 * 1024
PRODUCE_VERSION = 7
BATCH_BYTES = 500_000
STORAGE_ERROR = 56
NEEDED_BYTES = 300_000_000


class Broker:
    """A broker that is ready to serve, with the cost of its start: `start_cpu_seconds` and `start_read_bytes` of all
    files."""

    def __init__(self, *options: str, most_descriptors: int | None = None, errors: Path | None = None) -> None:
        words = [sys.executable, "-m", "pykafkad", "serve", "--listen", "localhost:0", *options]
        if most_descriptors is not None:
            # A broker reads the limit of descriptors when it starts, so the limit is set before.
            words = ["sh", "-c", f'ulimit -n {most_descriptors} && exec "$@"', "sh", *words]
        with open(errors or "/dev/null", "w") as told:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=told, text=True)
        self.port = int(self.process.stdout.readline().rpartition(":")[2])
        self.start_cpu_seconds = cpu_seconds(self.process.pid)
        self.start_read_bytes = int(re.search(r"rchar: (\d+)", self._about("io"))[1])

    def _about(self, name: str) -> str:
        return Path(f"/proc/{self.process.pid}/{name}").read_text()

    @property
    def own_memory_bytes(self) -> int:
        """Memory that the process shares with no file and no other process."""
        return 1024 * int(re.search(r"^Anonymous:\s+(\d+) kB", self._about("smaps_rollup"), re.MULTILINE)[1])

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        assert self.process.returncode == 0

    def kill(self) -> None:
        """Kills the process, unless it has ended already."""
        self.process.kill()
        self.process.wait(60)
        self.process.stdout.close()


class Brokers:
    """Starts brokers. The end of the test kills those that still run."""

    def __init__(self) -> None:
        self.started: list[Broker] = []

    def __call__(self, data: Path, *options: str) -> Broker:
        """A broker with its data in the folder."""
        return self.serve("--data", str(data), *options)

    def serve(self, *options: str, **limits: object) -> Broker:
        """A broker with these options."""
        self.started.append(Broker(*options, **limits))
        return self.started[-1]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where the machine has one: it makes and removes thousands of folders quickly."""
    shared = Path("/dev/shm")
    has_room = os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > NEEDED_BYTES
    where = Path(tempfile.mkdtemp(prefix="pykafkad-", dir=shared if has_room else tmp_path))
    yield where
    shutil.rmtree(where)


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    """Starts brokers."""
    found = Brokers()
    yield found
    for broker in found.started:
        broker.kill()


def produce(session: Session, topic: str, partition: int, batch: bytes) -> None:
    """Sends one batch, which must be acknowledged."""
    assert produced(session, topic, partition, batch) == 0


def produced(session: Session, topic: str, partition: int, batch: bytes) -> int:
    """Sends one batch; returns the error code of the answer."""
    template = wire_bytes.produce(PRODUCE_VERSION, topic, None, partition, batch)
    # The frame is counted with its size field, which the session has removed.
    (code,) = struct.unpack_from(">h", session.call(template.request), template.error_at - 4)
    return code


def descriptors_for(broker: Broker, partitions: int) -> int:
    """The number of descriptors that the broker opens for writes to so many partitions."""
    with Session(broker.port) as session:
        session.call(wire_bytes.api_versions().request)
        before = broker.descriptors
        for partition in range(partitions):
            produce(session, "many-3", partition, encoded_batch(None))
        return broker.descriptors - before


@pytest.mark.long
def test_ten_thousand_partitions_are_cheap(folder: Path, brokers: Brokers) -> None:
    """A start takes a second, an idle partition three kilobytes, a partition in use one descriptor.

    This holds after a stop and after a kill.
    """
    brokers(folder / "empty").stop()
    empty = brokers(folder / "empty")
    empty_bytes, empty_descriptors = empty.own_memory_bytes, empty.descriptors
    start_seconds = max(START_SECONDS, EMPTY_STARTS * empty.start_cpu_seconds)
    empty.stop()
    many = TOPICS * PARTITIONS_EACH
    brokers(
        folder / "many", *(word for number in range(TOPICS) for word in ("--topic", f"many-{number}:{PARTITIONS_EACH}"))
    ).stop()

    broker = brokers(folder / "many")
    for _ in range(STARTS - 1):
        if broker.start_cpu_seconds > start_seconds:
            broker.stop()
            broker = brokers(folder / "many")
    assert broker.start_cpu_seconds <= start_seconds
    assert (broker.own_memory_bytes - empty_bytes) / many <= IDLE_BYTES
    assert broker.descriptors == empty_descriptors
    assert descriptors_for(broker, 100) == 100
    broker.kill()

    broker = brokers(folder / "many")
    assert (broker.own_memory_bytes - empty_bytes) / many <= IDLE_BYTES
    assert broker.descriptors == empty_descriptors
    assert descriptors_for(broker, 100) == 100
    broker.stop()


@pytest.mark.long
def test_a_start_after_a_kill_reads_only_from_the_recovery_point(folder: Path, brokers: Brokers) -> None:
    """Forty partitions of two megabytes were stopped cleanly.

    Then two of them were written to, and the broker was killed.
    """
    partitions, batches, used = 40, 4, 2
    batch = encoded_batch(BATCH_BYTES)
    broker = brokers(folder / "data")
    with Session(broker.port) as session:
        session.create_topics({"t": partitions})
        for partition in range(partitions):
            for _ in range(batches):
                produce(session, "t", partition, batch)
    broker.stop()
    broker = brokers(folder / "data")
    stopped_read_bytes = broker.start_read_bytes
    with Session(broker.port) as session:
        for partition in range(used):
            produce(session, "t", partition, batch)
    broker.kill()
    broker = brokers(folder / "data")
    read_bytes = broker.start_read_bytes - stopped_read_bytes
    # As in Kafka, the start reads a segment that was written to as a whole. In other segments it reads what follows the
    # last index entry.
    log_bytes = used * (batches + 1) * BATCH_BYTES
    assert log_bytes <= read_bytes <= log_bytes + partitions * 100_000
    broker.stop()
    broker = brokers(folder / "data")
    assert broker.start_read_bytes - stopped_read_bytes < 100_000


@pytest.mark.long
@pytest.mark.parametrize("storage", ["disk", "memory"])
def test_connections_beyond_the_limit_of_descriptors_are_refused(
    brokers: Brokers, tmp_path: Path, storage: str
) -> None:
    """Partitions beyond the limit get an error.

    Others and new connections are served, and all are once descriptors are free.
    """
    most, partitions = 256, 300
    where = ("--memory", "512MB") if storage == "memory" else ("--data", str(tmp_path / "data"))
    broker = brokers.serve(*where, most_descriptors=most, errors=tmp_path / "errors")
    with Session(broker.port) as session:
        for number in range(2):
            session.call(wire_bytes.create_topics({f"t{number}": partitions}, {}))
        codes = [produced(session, "t0", partition, encoded_batch(None)) for partition in range(partitions)]
        assert codes == sorted(codes) and set(codes) == {0, STORAGE_ERROR}
        served = codes.count(0)
        assert most - 50 < served < most - SPARE_DESCRIPTORS
        assert produced(session, "t1", 0, encoded_batch(None)) == STORAGE_ERROR
        for partition in range(served):
            produce(session, "t0", partition, encoded_batch(None))
        with Session(broker.port) as another:
            another.call(wire_bytes.api_versions().request)
            assert wire_bytes.parse_metadata(another.call(wire_bytes.metadata(["t1"])))["t1"]
            produce(another, "t0", 1, encoded_batch(None))
        session.delete_topics(["t0"])
        for partition in range(100):
            produce(session, "t1", partition, encoded_batch(None))
    broker.stop()
    told = (tmp_path / "errors").read_text()
    assert 1 <= told.count("ERROR storage no-descriptors") <= 5 and "Too many open files" in told
    assert "partition-offline" not in told and "Traceback" not in told
