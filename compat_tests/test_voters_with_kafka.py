"""A quorum that a real Kafka controller begins alone, whose voters are in its log (kraft.version 1, KIP-853): replicas
of pykafkad join it by themselves, remove Kafka, and add it again."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from compat_tests.brokers.broker import free_port
from compat_tests.brokers.kafka_process import CLUSTER_ID
from compat_tests.quorum.replica_server import ReplicaServer
from compat_tests.test_quorum_with_kafka import EAGER, KAFKA, OURS, RELUCTANT, KafkaController, until
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.voters import Voter
from pykafkad.raft import forms


class DynamicController(KafkaController):
    """The first voter."""

    is_dynamic = True


def voter_ids(replica: ReplicaServer) -> list[int]:
    """The voters that a replica has, all of them committed."""
    machine = replica.machine
    return sorted(each.id for each in machine.voters) if machine.voter_sets.offset < machine.high_watermark else []


def leader_of(ours: list[ReplicaServer]) -> ReplicaServer | None:
    return next((each for each in ours if each.is_leader), None)


async def rounds(kafka: DynamicController, ours: list[ReplicaServer]) -> None:
    """Kafka adds ours; ours remove it while it is away, and add it again."""
    for each in ours:
        each.set_timeouts(**RELUCTANT)
    await asyncio.to_thread(kafka.start)
    for each in ours:
        each.set_timeouts(election=RELUCTANT["election"], fetch=1.0)
        await each.start()
    everybody = [KAFKA, *OURS]
    await until("all are voters", lambda: all(voter_ids(each) == everybody for each in ours))
    before = next(each for each in ours[0].machine.voters if each.id == KAFKA)
    kafka.kill()
    for each in ours:
        each.set_timeouts(**EAGER)
    await until("one of ours leads", lambda: leader_of(ours))
    leader = leader_of(ours)
    assert leader is not None
    removed = await leader.ask(forms.remove_voter_request(CLUSTER_ID, before.key))
    assert (removed.error_code, voter_ids(leader)) == (0, list(OURS))
    await asyncio.to_thread(kafka.start)

    def has_caught_up() -> bool:
        """Whether Kafka follows as an observer, and has all that there is."""
        known = leader.machine.role.observers.get(before.key) if leader.is_leader else None
        return known is not None and known.end_offset == leader.machine.log.end_offset

    await until("Kafka observes", has_caught_up)
    again = Voter(*before.key, [Endpoint("CONTROLLER", "localhost", kafka.port)])
    added = await leader.ask(forms.add_voter_request(CLUSTER_ID, again, 10_000, ack_when_committed=True))
    assert (added.error_code, added.error_message, voter_ids(leader)) == (0, None, everybody)
    await until("Kafka votes", lambda: leader.fetched_by(KAFKA) == leader.machine.log.end_offset)


async def play(kafka: DynamicController, ours: list[ReplicaServer]) -> None:
    """The rounds, and the end of everybody."""
    try:
        await rounds(kafka, ours)
    finally:
        await asyncio.to_thread(kafka.stop)
        for each in ours:
            await each.close()


@pytest.mark.usefixtures("whole_suites")
def test_voters_come_and_go(kafka_jars: Path, tmp_path: Path) -> None:
    """Each side adds the other, and every log is the same, byte for byte."""
    ports = {node: free_port() for node in (KAFKA, *OURS)}
    kafka = DynamicController(kafka_jars, tmp_path, ports)
    ours = [ReplicaServer(node, [], ports, CLUSTER_ID, joins=True) for node in OURS]
    try:
        asyncio.run(play(kafka, ours))
    finally:
        kafka.kill()
    assert [each.failures for each in ours] == [[], []]
    faults = [line for line in kafka.log_text().splitlines() if re.search(r"Encountered .*fault|IllegalState", line)]
    assert faults == []
    logs = [b"".join(each.batches) for each in ours if not each.start_offset] + [kafka.log()]
    common = min(map(len, logs))
    assert common > 1000 and len({log[:common] for log in logs}) == 1
