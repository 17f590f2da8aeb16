"""System calls of a running pykafkad that fail or take long, by strace: full disk, broken device, no free descriptors.

Only pykafkad: a real Kafka whose only log directory fails shuts itself down. Acknowledgements are true, the affected
partition answers KAFKA_STORAGE_ERROR, the others are served, and after a restart every acknowledged record is there.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import unavailable
from compat_tests.samples import wait_until
from compat_tests.scenarios.exchange import ZERO_UUID, Exchange
from compat_tests.scenarios.fetch import fetch, from_topic, row
from compat_tests.scenarios.produce import KEPT, batch, produce, to
from compat_tests.setup import system_packages

STORAGE_ERROR = 56
BATCHES = 24
# A segment is full after seventeen of these records, so that each test sees a roll. Larger ones may go to the threads
# that write while writes are slow (`server/log_writer.py`), and strace counts the calls of each thread for itself.
VALUE = bytes(60_000)
SEGMENT = {"log.segment.bytes": "1048576", "replica.high.watermark.checkpoint.interval.ms": "200"}
GROUP_COMMIT = {"pykafkad.group.commit": "true"}


class Fault(NamedTuple):
    """An injected fault.

    `inject` is strace's expression, `path` the only file it applies to (None: every file). `fails` says whether
    producers of the partition get an error, `passes` whether they are served again when the fault ends, without a
    restart.
    """

    name: str
    inject: str
    path: str | None = None
    settings: Mapping[str, str] = MappingProxyType({})
    fails: bool = True
    passes: bool = False


LOG = "{name}-0/00000000000000000000.log"
FAULTS = (
    Fault("no space for the first write", "pwrite64,pwritev:error=ENOSPC:when=1", LOG),
    Fault("no space from the fourth write on", "pwrite64,pwritev:error=ENOSPC:when=4+", LOG),
    Fault("no space, and no way to cut", "pwrite64,pwritev,ftruncate:error=ENOSPC:when=3+", LOG),
    Fault("broken device at the seventh write", "pwrite64,pwritev:error=EIO:when=7", LOG),
    Fault("read-only from the second write on", "pwrite64,pwritev:error=EROFS:when=2+", LOG),
    Fault(
        "no descriptors for the files of a roll",
        "openat:error=EMFILE:when=1+",
        "{name}-0/00000000000000000000.index",
        passes=True,
    ),
    Fault(
        "no descriptors for the next segment",
        "openat:error=EMFILE:when=1+",
        "{name}-0/00000000000000000017.log",
        passes=True,
    ),
    Fault("no space for the files of a roll", "write:error=ENOSPC:when=1+", "{name}-0/00000000000000000000.index"),
    Fault("broken device at the first sync", "fdatasync:error=EIO:when=1", LOG, GROUP_COMMIT),
    Fault("broken device at the fifth sync", "fdatasync:error=EIO:when=5", LOG, GROUP_COMMIT),
    Fault("no space for a write before a sync", "pwrite64,pwritev:error=ENOSPC:when=6+", LOG, GROUP_COMMIT),
    Fault(
        "checkpoints cannot be renamed",
        "rename:error=EIO:when=1+",
        "replication-offset-checkpoint.next.tmp",
        fails=False,
    ),
    Fault(
        "checkpoints cannot be written",
        "write:error=ENOSPC:when=1+",
        "replication-offset-checkpoint.next.tmp",
        fails=False,
    ),
    Fault("slow writes", "pwrite64,pwritev:delay_enter=30000", fails=False),
    Fault("slow syncs", "fdatasync:delay_enter=40000", settings=GROUP_COMMIT, fails=False),
)


@contextmanager
def injected(broker: PykafkadProcess, fault: Fault, name: str, directory: Path) -> Iterator[None]:
    """Inject the fault while this context is open. Skips on a machine where processes cannot be traced."""
    calls = fault.inject.partition(":")[0]
    command = ["strace", "-f", "-q", "-p", str(broker.pid), "-o", str(directory / "strace.txt"), "-e", f"trace={calls}"]
    command += ["-e", f"inject={fault.inject}"]
    if fault.path is not None:
        command += ["-P", str(broker.data_directory / fault.path.format(name=name))]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not is_traced(broker.pid):
        if tracer.poll() is not None:
            unavailable(f"strace cannot trace a process on this machine: {tracer.stderr.read().strip()}")
        time.sleep(0.01)
    try:
        yield
    finally:
        tracer.terminate()
        tracer.communicate(timeout=100)


def is_traced(pid: int) -> bool:
    """Whether every thread of a process is traced: strace attaches to them one by one."""
    return all("TracerPid:\t0\n" not in path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status"))


@pytest.fixture
def strace() -> None:
    """The program strace."""
    still_missing = system_packages.install(system_packages.missing((system_packages.STRACE,)))
    if still_missing:
        unavailable(system_packages.how_to_get(system_packages.STRACE))


def send(exchange: Exchange, name: str, number: int) -> tuple[int, int]:
    """Send one batch; (error code, offset)."""
    answer = produce(exchange, 9, to(name, (0, batch([(b"%d" % number, VALUE)]))))
    (partition,) = answer.responses[0].partition_responses
    return partition.error_code, partition.base_offset


def keys(exchange: Exchange, name: str) -> dict[int, int]:
    """Offset -> number of every batch in the topic's partition."""
    found: dict[int, int] = {}
    while True:
        answer = fetch(exchange, 12, from_topic(name, ZERO_UUID, row(0, len(found))))
        (partition,) = answer.responses[0].partitions
        data = bytes(partition.records or b"")
        if not data:
            return found
        position = 0
        while position < len(data):
            size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
            # Length, attributes, timestamp and offset delta of the record take one to three bytes each; then its key
            # follows.
            record = data[position + 61 : position + 80]
            text = record[record.index(b"\0\0\0") + 3 :]
            found[int.from_bytes(data[position : position + 8], "big")] = int(text[1 : 1 + text[0] // 2])
            position += size


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_injected_fault(fault: Fault, strace: None, tmp_path: Path) -> None:
    """Acknowledged records are there, others were answered with an error, and other partitions are not affected."""
    broker = PykafkadProcess(tmp_path, {**SEGMENT, **fault.settings})
    broker.start()
    try:
        exchange = Exchange(broker.bootstrap, "injected")
        name, other = exchange.topic("faulty", **KEPT), exchange.topic("other", **KEPT)
        acknowledged: dict[int, int] = {}
        others: dict[int, int] = {}
        for number in range(2):
            acknowledged[send(exchange, name, number)[1]] = number
            others[send(exchange, other, number)[1]] = number
        codes = []
        with injected(broker, fault, name, tmp_path):
            for number in range(2, BATCHES):
                code, offset = send(exchange, name, number)
                codes.append(code)
                if not code:
                    acknowledged[offset] = number
                # Few records, so that the partition does not roll a segment while no file can be opened.
                if number % 3 == 0:
                    code, offset = send(exchange, other, number)
                    assert code == 0, f"{other} must not be affected, but its answer was {code}"
                    others[offset] = number
            if "error" in fault.inject and not fault.fails:
                wait_until(lambda: "housekeeping-failed" in broker.log_text(), "the fault was met")
        assert set(codes) <= {0, STORAGE_ERROR}, codes
        assert (STORAGE_ERROR in codes) == fault.fails, codes
        if fault.fails:
            assert codes == sorted(codes), "the partition stays out of service until a restart or the end of the fault"
            event = "no-descriptors" if fault.passes else "partition-offline"
            wait_until(lambda: event in broker.log_text(), "the log names the partition")
        if fault.passes:
            assert "partition-offline" not in broker.log_text()
            code, offset = send(exchange, name, BATCHES)
            assert (code, offset) == (0, len(acknowledged))
            acknowledged[offset] = BATCHES
            assert keys(exchange, name) == acknowledged
        assert keys(exchange, other) == others
        exchange.close()
        for stop in (broker.kill, broker.stop):
            stop()
            broker.start()
            exchange = Exchange(broker.bootstrap, "injected")
            exchange.until(lambda: send(exchange, name, 1000), lambda answer: answer[0] == 0)  # noqa: B023
            found = keys(exchange, name)
            assert acknowledged.items() <= found.items(), f"lost: {acknowledged.items() - found.items()}"
            assert keys(exchange, other) == others
            exchange.close()
        assert "Traceback" not in broker.log_text()
    finally:
        broker.close()
