"""Kafka's own tools judge each kind of cluster that `serve --brokers 3` starts: replicas move and are elected, the
quorum is described, and what is on the disks is read when all have stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from compat_tests.brokers.served_brokers import ServedBrokers
from compat_tests.java_tools import JavaTools
from compat_tests.quorum.nodes import tool, until
from compat_tests.tools.runner import ToolRunner

TOPIC = "t"
PARTITIONS = 3
RECORDS = 300
SETTINGS = ("default.replication.factor=3", "min.insync.replicas=2", "auto.leader.rebalance.enable=false")
KINDS = {
    "one process": (),
    "one process, three controllers": ("--controllers", "3"),
    "processes": ("--processes",),
    "processes, three controllers": ("--processes", "--controllers", "3"),
}


@pytest.fixture(params=KINDS)
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServedBrokers]:
    """A cluster of each kind; the two between the smallest and the largest are left out without `--whole-suites`."""
    if len(KINDS[request.param]) in (1, 2):
        request.getfixturevalue("whole_suites")
    found = ServedBrokers(tmp_path, *KINDS[request.param], topic=f"{TOPIC}:{PARTITIONS}", settings=SETTINGS)
    found.start()
    yield found
    found.close()


def write(bootstrap: str) -> None:
    """Records in all partitions, acknowledged by all replicas in sync."""
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce(
            TOPIC, str(number), partition=number % PARTITIONS, on_delivery=lambda error, _: failures.append(error)
        )
    assert producer.flush(60) == 0 and failures == [None] * RECORDS


def test_the_tools(served: ServedBrokers, runner: ToolRunner, kafka_jars: Path, tmp_path: Path) -> None:
    """Every replica and every metadata log has the same, also in the eyes of Kafka's tools."""
    tools = JavaTools(kafka_jars, served.bootstrap, tmp_path / "log4j2.properties")

    def asked(name: str, *arguments: str) -> str:
        return tool(runner, name, served.bootstrap, *arguments)

    write(served.bootstrap)
    replicas = [[3, 1, 2], [1, 2, 3], [2, 3, 1]]
    rows = [{"topic": TOPIC, "partition": index, "replicas": each} for index, each in enumerate(replicas)]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": rows}))
    asked("reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
    verify = ("reassign-partitions", "--reassignment-json-file", str(plan), "--verify")
    until("all are reassigned", lambda: asked(*verify).count("is completed") == PARTITIONS)
    election = ["--bootstrap-server", served.bootstrap, "--election-type", "preferred", "--all-topic-partitions"]
    runner.run("leader-election", election)
    described = lambda: re.findall(r"Leader: (\d)", asked("topics", "--describe", "--topic", TOPIC))  # noqa: E731
    until("the first replicas lead", lambda: described() == ["3", "1", "2"])
    write(served.bootstrap)
    tools.verify_replicas(TOPIC, PARTITIONS)

    status = asked("metadata-quorum", "describe", "--status")
    voters, _, observers = status.partition("CurrentVoters")[2].partition("CurrentObservers")
    voter_ids = re.findall(r'"id": (\d+)', voters)
    lines = asked("metadata-quorum", "describe", "--replication").splitlines()[1:]
    roles = {line.split()[0]: line.split()[-1] for line in lines if line.strip()}
    assert [role for role in roles.values() if role == "Leader"] == ["Leader"]
    assert {each for each, role in roles.items() if role != "Observer"} == set(voter_ids)
    assert set(re.findall(r'"id": (\d+)', observers)) == set(roles) - set(voter_ids)

    assert served.stop() == 0, served.log()
    metadata_logs = sorted(served.data.glob("*/__cluster_metadata-0"))
    assert len(metadata_logs) >= len(voter_ids)
    for each in metadata_logs:
        segments = sorted(each.glob("*.log"))
        output = tools.dump_log([*segments, *each.glob("*.checkpoint")], "--cluster-metadata-decoder")
        for found in ("LeaderChange", '"type":"REGISTER_BROKER_RECORD"', '"type":"PARTITION_CHANGE_RECORD"'):
            assert found in output, (each, found)
        line, paths = tools.metadata_shell(segments[-1], f"cat /image/topics/byName/{TOPIC}/0", "PartitionRegistration")
        assert "replicas=[3, 1, 2]" in line, (each, line)
        assert {f"/image/cluster/brokers/{broker}" for broker in (1, 2, 3)} <= {*paths}, (each, paths)
    for index in range(PARTITIONS):
        first, *others = (batches(tools, served.data / f"broker{broker}" / f"{TOPIC}-{index}") for broker in (1, 2, 3))
        assert len(first) > 2 * RECORDS // PARTITIONS and all(each == first for each in others)


def batches(tools: JavaTools, folder: Path) -> list[str]:
    """What kafka-dump-log says of the batches and records of a replica."""
    output = tools.dump_log(sorted(folder.glob("*.log")), "--print-data-log")
    return [line for line in output.splitlines() if not line.startswith("Dumping ")]
