"""A quorum of one real Kafka controller and two replicas of pykafkad, with static voters: each side leads in turn, and
all end with the same log."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.brokers.broker import free_port
from compat_tests.brokers.kafka_process import CLUSTER_ID, KafkaProcess
from compat_tests.brokers.settings import as_properties
from compat_tests.quorum.replica_server import ReplicaServer

KAFKA = 1
OURS = (2, 3)
OBSERVER = 9
STEP_SECONDS = 120.0
# Who is not to lead waits so long before it asks for votes.
RELUCTANT = {"election": 30.0, "fetch": 10.0}
EAGER = {"election": 1.0, "fetch": 2.0}


class KafkaController(KafkaProcess):
    """A controller alone, with static voters; or as the first voter of a quorum whose voters are in its log."""

    is_dynamic = False

    def __init__(self, jars: Path, directory: Path, ports: dict[int, int]) -> None:
        super().__init__(jars, directory, port=ports[KAFKA])
        settings = {
            "process.roles": "controller",
            "node.id": str(KAFKA),
            "listeners": f"CONTROLLER://localhost:{self.port}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            **self._voters(ports),
            "log.dirs": str(self.data_directory),
            "metadata.log.max.snapshot.interval.ms": "2000",
        }
        self.properties_path.write_text(as_properties(settings))
        self.format_options = ["--standalone"] if self.is_dynamic else []

    def _voters(self, ports: dict[int, int]) -> dict[str, str]:
        if self.is_dynamic:
            servers = ",".join(f"localhost:{port}" for port in ports.values())
            return {"controller.quorum.bootstrap.servers": servers}
        return {"controller.quorum.voters": ",".join(f"{node}@localhost:{port}" for node, port in ports.items())}

    def has_snapshot(self) -> bool:
        """Whether it has made one, other than that of the formatting."""
        made = (self.data_directory / "__cluster_metadata-0").glob("*.checkpoint")
        return any(not each.name.startswith(f"{0:020}") for each in made)

    def log(self) -> bytes:
        """Its metadata log, from the beginning."""
        return (self.data_directory / "__cluster_metadata-0" / f"{0:020}.log").read_bytes()


async def until(what: str, holds: Callable[[], object], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Wait for something to be true."""
    deadline = time.monotonic() + STEP_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited {STEP_SECONDS} s until {what}"
        meanwhile()
        await asyncio.sleep(0.05)


async def kafka_leads(ours: list[ReplicaServer]) -> None:
    """Let Kafka win, and commit records of its own."""
    for each in ours:
        each.set_timeouts(**RELUCTANT)

    def resign() -> None:
        for each in ours:
            each.resign()

    await until("Kafka leads", lambda: all(each.machine.leader_id == KAFKA for each in ours), resign)
    ends = [each.machine.log.end_offset for each in ours]
    await until(
        "what Kafka appends is committed", lambda: all(each.high_watermark > max(ends) + 2 for each in ours), resign
    )


async def rounds(kafka: KafkaController, ours: list[ReplicaServer], observer: ReplicaServer) -> None:
    """Kafka leads; one of ours leads without Kafka, then with it; Kafka leads again, and an observer joins."""
    for each in ours:
        each.set_timeouts(**RELUCTANT)
        await each.start()
    await asyncio.to_thread(kafka.start)
    await kafka_leads(ours)
    kafka.kill()
    for each in ours:
        each.set_timeouts(**EAGER)
    await until("one of ours leads", lambda: any(each.is_leader for each in ours))

    def is_done() -> bool:
        """Whether whoever of ours leads has everything on all three."""
        return any(
            each.is_leader and each.high_watermark == each.machine.log.end_offset == each.fetched_by(KAFKA)
            for each in ours
        )

    for each in ours:
        if each.is_leader:
            for _ in range(5):
                each.propose()
    await asyncio.to_thread(kafka.start)
    await until("Kafka follows one of ours", is_done)
    await kafka_leads(ours)
    await until("Kafka has made a snapshot", kafka.has_snapshot)
    await observer.start()
    await until("the observer has a snapshot", lambda: observer.snapshot)
    await until("the observer has the log after it", lambda: observer.high_watermark > observer.start_offset + 2)


async def play(kafka: KafkaController, ours: list[ReplicaServer], observer: ReplicaServer) -> None:
    """The rounds, and the end of everybody."""
    try:
        await rounds(kafka, ours, observer)
    finally:
        await asyncio.to_thread(kafka.stop)
        for each in (*ours, observer):
            await each.close()


@pytest.mark.usefixtures("whole_suites")
def test_each_side_leads_and_follows(kafka_jars: Path, tmp_path: Path) -> None:
    """Both sides elect each other, and every log is the same, byte for byte."""
    ports = {node: free_port() for node in (KAFKA, *OURS)}
    kafka = KafkaController(kafka_jars, tmp_path, ports)
    ours = [ReplicaServer(node, list(ports), ports, CLUSTER_ID) for node in OURS]
    observer = ReplicaServer(OBSERVER, list(ports), ports, CLUSTER_ID)
    try:
        asyncio.run(play(kafka, ours, observer))
    finally:
        kafka.kill()
    assert [each.failures for each in (*ours, observer)] == [[], [], []]
    faults = [line for line in kafka.log_text().splitlines() if re.search(r"Encountered .*fault|IllegalState", line)]
    assert faults == []
    logs = [b"".join(each.batches) for each in ours] + [kafka.log()]
    common = min(map(len, logs))
    assert common > 1000 and len({log[:common] for log in logs}) == 1
    tail = b"".join(observer.batches)
    assert tail[: len(tail) // 2] in kafka.log()
    assert len({epoch for epoch, _ in ours[0].machine.log.epochs}) >= 3
