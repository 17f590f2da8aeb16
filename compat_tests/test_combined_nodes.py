"""Three nodes that are a broker and a controller each, of pykafkad and of Kafka in every mixture, with the settings
that Kafka's documentation has for them: the active one is killed while a client writes, and nothing is lost."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.brokers.kafka_process import CLUSTER_ID
from compat_tests.java_tools import JavaTools
from compat_tests.quorum.combined import (
    NODES,
    CombinedKafka,
    combined_pykafkad,
    combined_settings,
    format_by_the_other,
)
from compat_tests.quorum.nodes import KafkaNode, brokers_known
from compat_tests.test_cluster_processes import PARTITIONS, Writer
from compat_tests.tools.runner import Outcome, ToolRunner

STEP_SECONDS = 120.0
DIRECTORIES = {1: "3Db5QLSqSZieL3rJBUUegA", 2: "L3rJBUUegA3Db5QLSqSZiQ", 3: "QLSqSZieL3rJBUUegA3DbA"}


def until(what: str, holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + STEP_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"waited {STEP_SECONDS} s until {what}"
        time.sleep(0.1)


class Cluster:
    """`nodes` by their ids."""

    def __init__(self, runner: ToolRunner, nodes: dict[int, ProcessBroker]) -> None:
        self._runner = runner
        self.nodes = nodes
        self.bootstrap = ",".join(each.bootstrap for each in nodes.values())
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})

    def alive(self) -> list[int]:
        return [each for each, node in self.nodes.items() if node.process is not None]

    def tool(self, name: str, *arguments: str) -> Outcome:
        """What a tool prints, asked of a node that is there."""
        return self._runner.run(name, ["--bootstrap-server", self.nodes[self.alive()[0]].bootstrap, *arguments])

    def voters(self, through: int | None = None) -> list[dict[str, Any]]:
        """The voters as a broker tells of them, sorted by their ids; none if it fails."""
        text = self.quorum(through).get("CurrentVoters", "[]")
        return sorted(json.loads(text), key=lambda each: each["id"])

    def quorum(self, through: int | None = None) -> dict[str, str]:
        """What `kafka-metadata-quorum describe --status` says, by its words; nothing if it fails."""
        at = self.nodes[through or self.alive()[0]].bootstrap
        outcome = self._runner.run("metadata-quorum", ["--bootstrap-server", at, "describe", "--status"])
        lines = outcome.output.splitlines() if outcome.code == 0 else []
        return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}

    def active(self) -> int:
        """The active controller's id; 0 while there is none that has committed."""
        status = self.quorum()
        leader = int(status.get("LeaderId", 0))
        return leader if leader in self.alive() and status.get("HighWatermark", "-1") != "-1" else 0

    def in_sync(self) -> bool:
        """Whether every node serves and every replica of the topic is in sync."""
        found = self.admin.list_topics(timeout=30)
        # A broker may be asked that does not know it yet.
        partitions = found.topics["t"].partitions.values() if "t" in found.topics else ()
        return len(found.brokers) == len(self.nodes) and [len(each.isrs) for each in partitions] == [3] * PARTITIONS

    def values(self, count: int) -> list[bytes]:
        """What is in all partitions, once there are so many."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "reader", "enable.auto.commit": False})
        consumer.assign([TopicPartition("t", index, 0) for index in range(PARTITIONS)])
        found: list[bytes] = []

        def has_all() -> bool:
            found.extend(each.value() for each in consumer.consume(1000, timeout=0.5) if each.error() is None)
            return len(found) >= count

        until(f"{count} records are read", has_all)
        consumer.close()
        return found


@pytest.fixture
def tools(kafka_jars: Path, tmp_path: Path) -> JavaTools:
    """Kafka's tools; they read files and need no broker."""
    return JavaTools(kafka_jars, "", tmp_path / "log4j2.properties")


@pytest.fixture
def start(kafka_jars: Path, tmp_path: Path, runner: ToolRunner) -> Iterator[Callable[..., Cluster]]:
    """Starts the nodes of these ids as real Kafkas, and the others as pykafkad."""
    with ExitStack() as stack:

        def start(kafkas: tuple[int, ...], *, is_dynamic: bool) -> Cluster:
            brokers, controllers = ({each: free_port() for each in NODES} for _ in range(2))
            voters = ",".join(f"{each}@localhost:{port}:{DIRECTORIES[each]}" for each, port in controllers.items())
            nodes: dict[int, ProcessBroker] = {}
            for each in NODES:
                settings = combined_settings(each, brokers, controllers, is_dynamic=is_dynamic)
                place = tmp_path / f"node-{each}"
                if each in kafkas:
                    nodes[each] = CombinedKafka(kafka_jars, place, settings, brokers[each])
                else:
                    nodes[each] = combined_pykafkad(place, settings, brokers[each])
                stack.callback(nodes[each].kill)
                format_by_the_other(runner, nodes[each], *(["--initial-controllers", voters] if is_dynamic else []))
            start_all(nodes)
            cluster = Cluster(runner, nodes)
            until("all brokers are known", lambda: len(cluster.admin.list_topics(timeout=30).brokers) == len(NODES))
            return cluster

        yield start


def start_all(nodes: dict[int, ProcessBroker]) -> None:
    """At the same time: none is ready before two of them are there."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(nodes)) as threads:
        list(threads.map(lambda each: each.start(), nodes.values()))


MIXTURES = [
    pytest.param((), False, id="three of pykafkad"),
    pytest.param((), True, id="three of pykafkad, voters in the log"),
    pytest.param((1,), False, id="one Kafka"),
    pytest.param((1,), True, id="one Kafka, voters in the log"),
    pytest.param((1, 2), False, id="two Kafkas"),
    pytest.param((1, 2, 3), False, id="three Kafkas"),
]


@pytest.mark.parametrize(("kafkas", "is_dynamic"), MIXTURES)
def test_the_active_node_is_killed_and_clients_go_on(
    start: Callable[..., Cluster],
    tools: JavaTools,
    tmp_path: Path,
    kafkas: tuple[int, ...],
    is_dynamic: bool,
    request: pytest.FixtureRequest,
) -> None:
    """A node of each kind is killed while it is active, comes back and is in sync. One of ours is stopped. Every broker
    tells an administrator of the same voters. What was acknowledged is there, once."""
    if len(kafkas) > 1:
        request.getfixturevalue("whole_suites")
    cluster = start(kafkas, is_dynamic=is_dynamic)
    cluster.admin.create_topics([NewTopic("t", PARTITIONS, 3)])["t"].result(STEP_SECONDS)
    until("all replicas are in sync", cluster.in_sync)
    for each in NODES:
        assert re.findall(r'"id": (\d)', cluster.quorum(each)["CurrentVoters"]) == ["1", "2", "3"]
    killed: set[bool] = set()
    wanted_kinds = {each in kafkas for each in NODES}
    writer = Writer(cluster.bootstrap)
    try:
        writer.wait_for_all_partitions()
        for _ in range(7):
            until("a controller is active", cluster.active)
            active = cluster.active()
            cluster.nodes[active].kill()
            killed.add(active in kafkas)
            until("another is active", lambda gone=active: cluster.active() not in (0, gone))
            writer.wait_for_all_partitions()
            cluster.nodes[active].start()
            until("all replicas are in sync", cluster.in_sync)
            if killed == wanted_kinds:
                break
        cluster.nodes[3].stop()
        writer.wait_for_all_partitions()
        cluster.nodes[3].start()
        until("all replicas are in sync", cluster.in_sync)
    finally:
        writer.close()
    assert killed == wanted_kinds
    assert writer.errors == []
    wanted = sorted(writer.acknowledged)
    assert sorted(cluster.values(len(wanted))) == wanted
    JavaTools(tools.jars, cluster.bootstrap, tmp_path / "log4j2.properties").verify_replicas("t", PARTITIONS)
    for each, node in cluster.nodes.items():
        faults = re.findall(r".*(?:Encountered .*fault|IllegalState|unexpected-error).*", node.log_text())
        assert faults == [], each
    check_files(cluster, tools)


@pytest.mark.parametrize("kafkas", [(), (1,), (1, 2, 3)], ids=["pykafkad", "one Kafka", "three Kafkas"])
def test_static_voters_move_into_the_log_and_change_there(
    start: Callable[..., Cluster], kafkas: tuple[int, ...], request: pytest.FixtureRequest
) -> None:
    """kraft.version is raised to 1, a controller is removed and added again, all by Kafka's tools, and everybody tells
    of the same voters. Before the upgrade the tools are refused."""
    if len(kafkas) > 1:
        request.getfixturevalue("whole_suites")
    cluster = start(kafkas, is_dynamic=False)
    until("a controller is active", cluster.active)
    config = str(cluster.nodes[3].directory / "server.properties")
    refused = cluster.tool("metadata-quorum", "--command-config", config, "add-controller")
    assert refused.code == 1 and "kraft.version feature is 0" in refused.errors + refused.output
    # Each voter tells the active controller of its directory, and registers, within some seconds.
    raised = lambda: cluster.tool("features", "upgrade", "--feature", "kraft.version=1").code == 0  # noqa: E731
    until("kraft.version is raised", raised)
    assert raised()
    described = cluster.tool("features", "describe").output
    assert re.search(r"kraft.version\s.*FinalizedVersionLevel: 1", described), described
    directories = {each["id"]: each["directoryId"] for each in cluster.voters()}
    meta = (cluster.nodes[3].directory / "data" / "meta.properties").read_text()
    assert f"directory.id={directories[3]}\n" in meta and len(set(directories.values())) == 3
    gone = ["--controller-id", "3", "--controller-directory-id", directories[3]]
    assert cluster.tool("metadata-quorum", "remove-controller", *gone).code == 0
    for each in NODES:
        until(f"{each} knows two voters", lambda at=each: [row["id"] for row in cluster.voters(at)] == [1, 2])
    assert cluster.tool("metadata-quorum", "remove-controller", *gone).code == 1
    added = lambda: cluster.tool("metadata-quorum", "--command-config", config, "add-controller").code == 0  # noqa: E731
    until("the third is a voter again", added)
    for each in NODES:
        until(f"{each} knows three voters", lambda at=each: [row["id"] for row in cluster.voters(at)] == [1, 2, 3])
    cluster.nodes[cluster.active()].kill()
    until("another is active", cluster.active)
    for each, node in cluster.nodes.items():
        assert "unexpected-error" not in node.log_text(), each
        node.kill()


def check_files(cluster: Cluster, tools: JavaTools) -> None:
    """Kafka's tools read the metadata log of a stopped node of pykafkad."""
    node = cluster.nodes[3]
    node.stop()
    segments = sorted((node.directory / "data" / "__cluster_metadata-0").glob("*.log"))
    output = tools.dump_log(segments, "--cluster-metadata-decoder")
    assert "REGISTER_BROKER_RECORD" in output or "REGISTER_CONTROLLER_RECORD" in output
    line, paths = tools.metadata_shell(segments[-1], "cat /image/topics/byName/t/0", "PartitionRegistration")
    assert re.search(r"replicas=\[\d, \d, \d\]", line) and "leaderRecoveryState=RECOVERED" in line, line
    for each in NODES:
        assert {f"/image/cluster/brokers/{each}", f"/image/cluster/controllers/{each}"} <= {*paths}, paths
    for each in list(cluster.nodes.values()):
        each.kill()


def test_a_node_alone_is_joined_by_a_kafka(kafka_jars: Path, tmp_path: Path) -> None:
    """It has Kafka's own `server.properties` for one node, and was not formatted. The Kafka's broker leads and follows,
    and goes in a controlled shutdown."""
    port, controller_port = free_port(), free_port()
    settings = combined_settings(1, {1: port}, {1: controller_port}, is_dynamic=True)
    settings |= {"min.insync.replicas": "1", "pykafkad.cluster.id": CLUSTER_ID, "offsets.topic.replication.factor": "1"}
    alone = combined_pykafkad(tmp_path / "alone", settings, port)
    kafka = KafkaNode(kafka_jars, tmp_path / "kafka", "broker", 2, controller_port)
    try:
        alone.start()
        kafka.start()
        until("both are known", lambda: brokers_known(alone.bootstrap) == brokers_known(kafka.bootstrap) == [1, 2])
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic("t", PARTITIONS, 2)])["t"].result(STEP_SECONDS)
        partitions = lambda: admin.list_topics("t", timeout=30).topics["t"].partitions.values()  # noqa: E731
        until("both lead and follow", lambda: [sorted(each.isrs) for each in partitions()] == [[1, 2]] * PARTITIONS)
        assert {each.leader for each in partitions()} == {1, 2}
        writer = Writer(f"{alone.bootstrap},{kafka.bootstrap}")
        try:
            writer.wait_for_all_partitions()
            kafka.stop()
            writer.wait_for_all_partitions()
        finally:
            writer.close()
        assert writer.errors == []
        # Its own earlier life is no obstacle: it is back long before the session of that would be over.
        alone.kill()
        alone.start()
        assert "unexpected-error" not in alone.log_text()
    finally:
        kafka.kill()
        alone.kill()
