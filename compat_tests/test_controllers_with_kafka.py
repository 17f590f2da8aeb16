"""A quorum of one real Kafka controller and two of pykafkad, each a process of its own: it elects, commits, and fails
over between both kinds; Kafka's tool describes it the same through each of them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.quorum.controllers import KafkaVoter, PykafkadVoter
from compat_tests.tools.runner import ToolRunner

KAFKA = 1
OURS = (2, 3)
STEP_SECONDS = 120.0


def until(what: str, holds: Callable[[], object]) -> None:
    """Wait for something to be true."""
    deadline = time.monotonic() + STEP_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited {STEP_SECONDS} s until {what}"
        time.sleep(0.1)


class Quorum:
    """The voters of a quorum by their ids, and what Kafka's tools say of it."""

    def __init__(self, runner: ToolRunner, voters: dict[int, ProcessBroker]) -> None:
        self._runner = runner
        self.voters = voters
        self.down: set[int] = set()

    def _tool(self, name: str, *arguments: str, through: int | None = None) -> str:
        """What a tool prints; nothing if it fails."""
        alive = [each for each in self.voters if each not in self.down]
        at = self.voters[through or alive[0]].bootstrap
        outcome = self._runner.run(name, ["--bootstrap-controller", at, *arguments])
        return outcome.output if outcome.code == 0 else ""

    def status(self, through: int | None = None) -> dict[str, str]:
        """What `kafka-metadata-quorum describe --status` says, by its words."""
        lines = self._tool("metadata-quorum", "describe", "--status", through=through).splitlines()
        return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}

    def leader(self) -> int:
        """The leader's id; 0 while nobody knows one that has committed in its epoch."""
        status = self.status()
        known = status.get("HighWatermark", "-1") != "-1"
        leader = int(status.get("LeaderId", 0)) if known else 0
        return 0 if leader in self.down else leader

    def lags(self) -> dict[int, int]:
        """How far each voter and observer is behind, by its id."""
        rows = [line.split() for line in self._tool("metadata-quorum", "describe", "--replication").splitlines()[1:]]
        return {int(row[0]): int(row[3]) for row in rows if len(row) > 3}

    def kill(self, node_id: int) -> None:
        self.voters[node_id].kill()
        self.down.add(node_id)

    def start(self, node_id: int) -> None:
        self.voters[node_id].start()
        self.down.discard(node_id)

    def set_retention(self, hours: int) -> None:
        """Have the active controller change a setting of the cluster."""
        arguments = ["--alter", "--entity-type", "brokers", "--entity-default"]
        until(
            "a setting is changed",
            lambda: self._tool("configs", *arguments, "--add-config", f"log.retention.ms={hours * 3_600_000}"),
        )


def metadata_log(voter: ProcessBroker) -> bytes:
    """The records of a voter's metadata log, without what a segment's file reserves. One that fetched nothing before
    the leader's first snapshot begins where that ends."""
    (path,) = (voter.directory / "data" / "__cluster_metadata-0").glob("*.log")
    return path.read_bytes().rstrip(b"\0")


@pytest.fixture
def quorum(kafka_jars: Path, tmp_path: Path, runner: ToolRunner) -> Iterator[Quorum]:
    """All three are started."""
    ports = {node: free_port() for node in (KAFKA, *OURS)}
    with ExitStack() as stack:
        kafka = KafkaVoter(kafka_jars, tmp_path, KAFKA, ports)
        voters: dict[int, ProcessBroker] = {KAFKA: kafka}
        for each in OURS:
            voters[each] = PykafkadVoter(kafka, tmp_path / f"voter-{each}", each, ports)
        for voter in voters.values():
            stack.callback(voter.close)
        for each in OURS:
            voters[each].start()
        kafka.start()
        yield Quorum(runner, voters)


@pytest.mark.usefixtures("whole_suites")
def test_leadership_goes_round(quorum: Quorum) -> None:
    """Each kind leads, commits and is killed; whoever comes back catches up."""
    led = set()
    for hours in range(1, 8):
        until("somebody leads", quorum.leader)
        quorum.set_retention(hours)
        leader = quorum.leader()
        until("all have everything", lambda: list(quorum.lags().values()) == [0, 0, 0])
        for each in quorum.voters:
            status = quorum.status(each)
            assert re.findall(r'"id": (\d)', status["CurrentVoters"]) == ["1", "2", "3"], status
        led.add(leader == KAFKA)
        if led == {True, False}:
            break
        quorum.kill(leader)
        until("another leads", quorum.leader)
        quorum.start(leader)
    assert led == {True, False}
    until("all have everything", lambda: list(quorum.lags().values()) == [0, 0, 0])
    for voter in quorum.voters.values():
        voter.stop()
    logs = [metadata_log(voter) for voter in quorum.voters.values()]
    whole = max(logs, key=len)
    assert len(whole) > 1000
    for log in logs:
        begin = whole.find(log[:100])
        # Whoever stopped last has appended to its own.
        common = min(len(log), len(whole) - begin)
        assert begin >= 0 and common > 500 and log[:common] == whole[begin : begin + common]
    assert whole.count(b"log.retention.ms") >= len(led)
    for node_id, voter in quorum.voters.items():
        faults = re.findall(r".*(?:Encountered .*fault|IllegalState|unexpected-error).*", voter.log_text())
        assert faults == [], node_id
