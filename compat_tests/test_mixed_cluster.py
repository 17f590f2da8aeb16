"""A real Kafka broker and two of pykafkad in one cluster under load: each leads everything in turn, moved there by
Kafka's tools, and is killed then; the tools read what all of them have."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import assert_no_bug_logged
from compat_tests.java_tools import JavaTools
from compat_tests.load.load import NUMBERS, Load, until
from compat_tests.load.writers import PARTITIONS
from compat_tests.quorum.nodes import CONTROLLER, KAFKA, REPLICATED, KafkaNode, our_node, tool
from compat_tests.tools.runner import ToolRunner

OURS = (3, 4)
MOVED_BY_HAND = {"auto_leader_rebalance_enable": "false"}


class Mixed(NamedTuple):
    """The nodes, the brokers among them by their ids, and Kafka's tools."""

    controller: ProcessBroker
    brokers: dict[int, ProcessBroker]
    runner: ToolRunner

    @property
    def bootstrap(self) -> str:
        return ",".join(each.bootstrap for each in self.brokers.values())

    def tool(self, name: str, *arguments: str) -> str:
        return tool(self.runner, name, self.bootstrap, *arguments)


@pytest.fixture(params=["kafka", "pykafkad"])
def mixed(
    request: pytest.FixtureRequest, kafka_jars: Path, tmp_path: Path, runner: ToolRunner,
    started: Callable[[ProcessBroker], ProcessBroker],
) -> Iterator[Mixed]:  # fmt: skip
    """The controller is of the one kind or of the other."""
    port, more = free_port(), {**REPLICATED, **MOVED_BY_HAND}
    made: dict[int, ProcessBroker] = {KAFKA: KafkaNode(kafka_jars, tmp_path / "kafka", "broker", KAFKA, port, **more)}
    for each in OURS:
        made[each] = our_node(tmp_path / str(each), "broker", each, port, **more)
    place = tmp_path / "controller"
    controller: ProcessBroker = (
        KafkaNode(kafka_jars, place, "controller", CONTROLLER, port, **more)
        if request.param == "kafka"
        else our_node(place, "controller", CONTROLLER, port, **more)
    )
    for node in (controller, *made.values()):
        started(node)
    yield Mixed(controller, made, runner)
    for node in (*made.values(), controller):
        node.stop()
        if isinstance(node, PykafkadProcess):
            assert_no_bug_logged(node)


def leaders(load: Load) -> set[int]:
    """Of all partitions; 0 stands for one that lacks a replica in sync."""
    topics = load.admin.list_topics(timeout=10).topics.values()
    rows = [row for topic in topics for row in topic.partitions.values()]
    return {row.leader if len(row.isrs) == len(row.replicas) else 0 for row in rows}


def lead_everything(mixed: Mixed, load: Load, leader: int, plan: Path) -> None:
    """Have a broker lead every partition: it becomes the first of the replicas, and is elected. A real Kafka leads next
    only where nobody else does: Kafka 4.3.1 that was killed writes wrong offsets into its index of aborted transactions
    (as last stable offset that of a transaction which was open in the end), and so gives readers aborted records."""
    replicas = [leader, *(each for each in (*OURS, KAFKA) if each != leader)]
    topics = load.admin.list_topics(timeout=10).topics.values()
    rows = [
        {"topic": topic.topic, "partition": index, "replicas": replicas}
        for topic in topics
        for index in topic.partitions
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": rows}))
    assert "Successfully started partition reassignment" in mixed.tool(
        "reassign-partitions", "--reassignment-json-file", str(plan), "--execute"
    )
    until(
        "every partition is reassigned",
        lambda: (
            mixed.tool("reassign-partitions", "--reassignment-json-file", str(plan), "--verify").count("is completed")
            == len(rows)
        ),
    )
    mixed.runner.run(
        "leader-election",
        ["--bootstrap-server", mixed.bootstrap, "--election-type", "preferred", "--all-topic-partitions"],
    )
    until(f"{leader} leads", lambda: leaders(load) == {leader})


def batches(runner: ToolRunner, node: ProcessBroker, partition: int) -> list[str]:
    """What kafka-dump-log says of the batches and records of a replica."""
    folder = node.directory / "data" / f"{NUMBERS}-{partition}"
    files = ",".join(str(each) for each in sorted(folder.glob("*.log")))
    outcome = runner.run("dump-log", ["--files", files, "--print-data-log"])
    assert outcome.code == 0 and "isvalid: false" not in outcome.output, outcome
    return [line for line in outcome.output.splitlines() if not line.startswith("Dumping ")]


# Either kind takes minutes. Asked for here, before the tools have a JVM.
@pytest.mark.usefixtures("whole_suites")
@pytest.mark.timeout(900)
def test_each_broker_leads_everything_and_is_killed(
    mixed: Mixed, kafka_jars: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nothing is lost, nothing is there twice, the order is kept; and all replicas are the same, batch by batch."""
    load = Load(mixed.bootstrap, tmp_path / "clients")
    try:
        load.goes_on()
        for leader, broker in mixed.brokers.items():
            lead_everything(mixed, load, leader, tmp_path / "plan.json")
            load.goes_on()
            broker.kill()
            load.goes_on()
            broker.start()
            until("every partition has all its replicas", lambda: 0 not in leaders(load))
        status = mixed.tool("metadata-quorum", "describe", "--status")
        assert set(re.findall(r'"id": (\d+)', status.partition("CurrentObservers")[2])) == {"2", "3", "4"}
        faults = load.end([each for each in mixed.brokers.values() if isinstance(each, KafkaNode)])
        with capfd.disabled():
            print(f"\n{mixed.controller.name} controls: {load.summary()}")
        assert (faults, load.errors()) == ([], [])
        JavaTools(kafka_jars, mixed.bootstrap, tmp_path / "log4j2.properties").verify_replicas(NUMBERS, PARTITIONS)
    finally:
        load.close()
    for broker in mixed.brokers.values():
        broker.stop()
    for partition in range(PARTITIONS):
        first, *others = (batches(mixed.runner, each, partition) for each in mixed.brokers.values())
        assert len(first) > 100 and all(each == first for each in others)
