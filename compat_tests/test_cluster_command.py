"""`pykafkad cluster` on three brokers of a real Kafka and on three of pykafkad, and Kafka's own tools on both: what
moves, who leads, and what the tools print of it is the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.samples import wait_until
from compat_tests.test_broker_processes import KafkaNode
from compat_tests.tools.runner import Outcome, ToolRunner
from pykafkad.testing import Broker

BROKERS = (1, 2, 3)
LIMIT_SECONDS = 200


class Cluster(NamedTuple):
    """Three brokers. `bootstrap` is the address of the first, which nobody stops."""

    name: str
    bootstrap: str
    stop: Callable[[int], object]
    start: Callable[[int], object]


def kafka_cluster(jars: Path, directory: Path, stack: ExitStack) -> Cluster:
    """The first is the controller too."""
    (directory / "1").mkdir()
    first = KafkaProcess(jars, directory / "1")
    controller = re.search(r"bootstrap\.servers=localhost:(\d+)", first.properties_path.read_text())
    assert controller is not None
    nodes: dict[int, KafkaProcess] = {1: first}
    for number in BROKERS[1:]:
        nodes[number] = KafkaNode(jars, directory / str(number), "broker", number, int(controller[1]))
    for each in nodes.values():
        stack.callback(each.kill)
        each.start()
    return Cluster("kafka", first.bootstrap, lambda number: nodes[number].stop(), lambda number: nodes[number].start())


def our_cluster(stack: ExitStack) -> Cluster:
    """In a process of its own."""
    brokers = stack.enter_context(Broker(brokers=3, own_process=True))
    return Cluster("pykafkad", brokers.bootstrap.split(",")[0], brokers.stop_broker, brokers.start_broker)


@pytest.fixture(scope="module")
def clusters(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Cluster]]:
    """The real one first."""
    with ExitStack() as stack:
        made = [kafka_cluster(kafka_jars, tmp_path_factory.mktemp("kafka"), stack), our_cluster(stack)]
        for each in made:
            wait_until(lambda each=each: _is_whole(each), "all brokers serve")
        yield made


def _is_whole(cluster: Cluster) -> bool:
    found = _described(cluster)
    return [(row["broker"], row["state"]) for row in found["brokers"]] == [(each, "active") for each in BROKERS]


def _run(cluster: Cluster, *words: str, code: int = 0) -> tuple[str, str]:
    """Output and errors of a command."""
    command = [sys.executable, "-m", "pykafkad", *words, "--bootstrap", cluster.bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == code, done
    return done.stdout, done.stderr


def _described(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_run(cluster, "cluster", "describe", "--all", "--json")[0])
    return found


def _partitions(cluster: Cluster, topic: str) -> list[dict[str, Any]]:
    return [row for row in _described(cluster)["partitions"] if row["topic"] == topic]


def _replicas(cluster: Cluster, topic: str) -> list[list[int]]:
    return [row["replicas"] for row in _partitions(cluster, topic)]


def _broker(cluster: Cluster, number: int) -> dict[str, Any]:
    return next(row for row in _described(cluster)["brokers"] if row["broker"] == number)


@pytest.mark.parametrize("which", [0, 1], ids=["kafka", "pykafkad"])
def test_the_commands(clusters: list[Cluster], which: int) -> None:
    """Describe, move, elect, drain, and a broker that goes."""
    cluster = clusters[which]
    _run(cluster, "topics", "create", "moved:6", "--replication-factor", "3", "--config", "min.insync.replicas=2")
    wait_until(lambda: len(_replicas(cluster, "moved")) == 6, "the topic is there")
    _run(cluster, "produce", "moved", *(str(number) for number in range(60)))
    wait_until(lambda: [row["lag"] for row in _described(cluster)["brokers"]] == [0] * 3, "followers have everything")
    found = _described(cluster)
    assert [row["replicas"] for row in found["brokers"]] == [6] * 3 and found["refused"] == []
    assert found["counts"] == {
        "partitions": 6,
        "offline": 0,
        "under_replicated": 0,
        "under_min_isr": 0,
        "moving": 0,
        "not_led_by_preferred": 0,
    }
    (leader,) = (row for row in found["quorum"]["members"] if row["status"] == "leader")
    assert leader["lag"] == 0 and found["quorum"]["leader"] == leader["node"]

    drained = _run(cluster, "cluster", "drain", "3", code=1)[1]
    assert "broker 3 cannot be drained: 3 replicas of moved-0, moved-1" in drained
    assert "need 3 brokers, and 2 can take them (1, 2)" in drained

    assert _run(cluster, "cluster", "move", "moved:0", "--to", "2,1", "--wait")[0].endswith("moved\t0\t2,1\tmoved\n")
    _run(cluster, "cluster", "move", "moved", "--to", "3,2", "--wait")
    assert _replicas(cluster, "moved") == [[3, 2], [2, 3]] * 3
    _run(cluster, "cluster", "elect")
    wait_until(lambda: [row["leader"] for row in _partitions(cluster, "moved")] == [3, 2] * 3, "preferred leaders lead")
    assert _run(cluster, "cluster", "elect", "moved:1")[0].endswith("moved\t1\tnot needed\n")

    _run(cluster, "cluster", "drain", "3")
    wait_until(lambda: _broker(cluster, 3)["replicas"] == 0, "every broker knows")
    assert all(sorted(each) == [1, 2] for each in _replicas(cluster, "moved"))
    _run(cluster, "topics", "create", "placed:4", "--replication-factor", "2")
    wait_until(lambda: len(_replicas(cluster, "placed")) == 4, "the topic is there")
    assert all(sorted(each) == [1, 2] for each in _replicas(cluster, "placed"))
    assert "--to" in _run(cluster, "cluster", "move", "placed", "--to", "1,1", code=2)[1]

    cluster.stop(3)
    wait_until(lambda: _broker(cluster, 3)["state"] == "fenced", "the broker is fenced")
    assert _run(cluster, "status")[0].count("(fenced)") == 1
    assert json.loads(_run(cluster, "cluster", "move", "placed:0", "--to", "3,1", "--json")[0])["result"] == "moving"
    assert _described(cluster)["counts"]["moving"] == 1
    _run(cluster, "cluster", "move", "placed:0", "--cancel")
    assert "NO_REASSIGNMENT_IN_PROGRESS" in _run(cluster, "cluster", "move", "placed:0", "--cancel", code=1)[1]
    assert "PREFERRED_LEADER_NOT_AVAILABLE" not in _run(cluster, "cluster", "elect")[1]
    values = _run(cluster, "tail", "moved", "--from", "start", "-n", "60", "--json")[0].splitlines()
    assert sorted(int(json.loads(line)["value"]) for line in values) == list(range(60))
    cluster.start(3)
    wait_until(lambda: _broker(cluster, 3)["state"] == "active", "the broker is back")
    _run(cluster, "cluster", "undrain", "3")
    _run(cluster, "cluster", "balance")
    wait_until(
        lambda: sorted(row["replicas"] for row in _described(cluster)["brokers"]) == [6, 7, 7],
        "every broker has its share",
    )
    wait_until(lambda: not _described(cluster)["counts"]["not_led_by_preferred"], "preferred leaders lead")
    assert sorted(row["leaders"] for row in _described(cluster)["brokers"]) == [3, 3, 4]
    _run(cluster, "topics", "delete", "moved", "placed")


def _tool(runner: ToolRunner, cluster: Cluster, name: str, *words: str) -> Outcome:
    return runner.run(name, ["--bootstrap-server", cluster.bootstrap, *words])


def _neutral(outcome: Outcome) -> tuple[int, str, str]:
    """Without what a cluster draws by lot, the setting that `pykafkad.testing` begins with, and paths."""
    text = re.sub(r"TopicId: \S+", "TopicId: …", outcome.output).replace(",file.delete.delay.ms=0", "")
    text = re.sub(r'"log_dirs":\[("[^"]+",?)+\]', "log_dirs", text)
    return outcome.code, text, outcome.errors


def test_the_tools_of_kafka(clusters: list[Cluster], runner: ToolRunner, tmp_path: Path) -> None:
    """Those for topics, reassignments and elections print the same of both; kafka-metadata-quorum has the same rows and
    columns."""
    topic = "tools"
    plan = tmp_path / "plan.json"
    wanted = {0: [2, 3], 1: [3, 1, 2], 2: [1, 2]}
    rows = [{"topic": topic, "partition": index, "replicas": replicas} for index, replicas in wanted.items()]
    plan.write_text(json.dumps({"version": 1, "partitions": rows}))

    def all_of(cluster: Cluster) -> list[object]:
        seen: list[object] = []

        def note(name: str, *words: str) -> None:
            seen.append((name, words, _neutral(_tool(runner, cluster, name, *words))))

        note("topics", "--create", "--topic", topic, "--replica-assignment", "1:2:3,2:3:1,3:1:2")
        wait_until(lambda: len(_partitions(cluster, topic)) == 3, "the topic is there")
        note("topics", "--describe", "--topic", topic)
        note("reassign-partitions", "--reassignment-json-file", str(plan), "--execute")
        wait_until(lambda: _replicas(cluster, topic) == list(wanted.values()), "the replicas are there")
        note("reassign-partitions", "--reassignment-json-file", str(plan), "--verify")
        note("reassign-partitions", "--list")
        for index in wanted:
            note("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", str(index))
        wait_until(
            lambda: [row["leader"] for row in _partitions(cluster, topic)] == [2, 3, 1], "preferred leaders lead"
        )
        cluster.stop(3)
        wait_until(lambda: _partitions(cluster, topic)[1]["leader"] == 1, "another one leads")
        for option in ("under-replicated", "unavailable", "under-min-isr", "at-min-isr"):
            note("topics", "--describe", "--topic", topic, f"--{option}-partitions")
        note("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "1")
        cluster.start(3)
        wait_until(lambda: not any(row["trouble"] for row in _partitions(cluster, topic)), "all are in sync")
        note("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "1")
        for what in ("--status", "--replication"):
            outcome = _tool(runner, cluster, "metadata-quorum", "describe", what)
            heads = [line.partition(":")[0] for line in outcome.output.splitlines()]
            seen.append((what, outcome.code, heads if what == "--status" else heads[0].split()))
        return seen

    real, ours = (all_of(each) for each in clusters)
    for one, other in zip(real, ours, strict=True):
        assert other == one


def test_eligible_leaders_and_an_unclean_election(clusters: list[Cluster], runner: ToolRunner) -> None:
    """Who left an ISR below the minimum stays eligible (KIP-966), and kafka-topics shows it. Whoever is not eligible
    leads when kafka-leader-election says so."""

    def all_of(cluster: Cluster) -> list[object]:
        seen: list[object] = []

        def described(topic: str) -> str:
            return _tool(runner, cluster, "topics", "--describe", "--topic", topic).output

        def note(topic: str, isr: str) -> None:
            """What the tool prints as soon as this is the ISR."""
            wait_until(lambda: f"Isr: {isr}\t" in described(topic), f"the ISR of {topic} is {isr}")
            seen.append(_neutral(_tool(runner, cluster, "topics", "--describe", "--topic", topic)))

        for topic, replicas, least in (("eligible", "1:2:3", 3), ("unclean", "3:2", 1)):
            words = ("--topic", topic, "--replica-assignment", replicas, "--config", f"min.insync.replicas={least}")
            assert _tool(runner, cluster, "topics", "--create", *words).code == 0
            note(topic, replicas.replace(":", ","))
        cluster.stop(2)
        note("eligible", "1,3")
        note("unclean", "3")
        cluster.stop(3)
        note("eligible", "1")
        note("unclean", "")
        cluster.start(2)
        note("eligible", "1,2")
        note("unclean", "")
        election = ("--topic", "unclean", "--partition", "0")
        for kind in ("preferred", "unclean"):
            seen.append(_neutral(_tool(runner, cluster, "leader-election", "--election-type", kind, *election)))
        note("unclean", "2")
        cluster.start(3)
        note("eligible", "1,2,3")
        note("unclean", "2,3")
        return seen

    real, ours = (all_of(each) for each in clusters)
    for one, other in zip(real, ours, strict=True):
        assert other == one
    text = "".join(map(str, real))
    assert "Elr: 2\\t" in text and "Elr: 3\\t" in text and "Leader: none" in text, text
