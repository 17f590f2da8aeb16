"""Nodes of older releases of Kafka in one cluster with those of pykafkad: each side speaks the versions that both know.

The clusters are at the metadata.version of the older release."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.brokers.kafka_process import CLUSTER_ID
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import unavailable
from compat_tests.quorum.nodes import (
    CONTROLLER,
    KAFKA,
    OURS,
    KafkaNode,
    go_round,
    our_node,
    unexpected_errors,
    until,
)
from compat_tests.setup.kafka_jars import JarsUnavailable, fetch_other_broker
from compat_tests.tools.runner import Outcome, ToolRunner

# The releases, and their newest metadata.version.
RELEASES = {"3.9": "3.9-IV0", "4.0": "4.0-IV3"}


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """An older one."""
    found: str = request.param
    return found


@pytest.fixture
def older_jars(release: str, kafka_jars: Path) -> Path:
    """Those of that release."""
    try:
        return fetch_other_broker(release)
    except JarsUnavailable as error:
        unavailable(str(error))
        raise


def complaints(process: PykafkadProcess) -> list[str]:
    """What a node says of requests that another does not understand."""
    words = ("unexpected-error", "peer-lacks-api", "request-not-sent", "envelope-refused")
    return [line for line in process.log_text().splitlines() if any(word in line for word in words)]


def test_a_broker_of_pykafkad_under_an_older_controller(
    older_jars: Path, tmp_path: Path, started: Callable[[ProcessBroker], None]
) -> None:
    """Beside a broker of the same older release."""
    port = free_port()
    controller = KafkaNode(older_jars, tmp_path / "controller", "controller", CONTROLLER, port)
    kafka = KafkaNode(older_jars, tmp_path / "kafka", "broker", KAFKA, port)
    ours = our_node(tmp_path / "ours", "broker", OURS, port)
    for each in (controller, ours, kafka):
        started(each)
    go_round(kafka, ours)
    ours.stop()
    assert complaints(ours) == []


def test_an_older_broker_under_a_controller_of_pykafkad(
    older_jars: Path, kafka_jars: Path, release: str, tmp_path: Path, started: Callable[[ProcessBroker], None]
) -> None:
    """Beside a broker of pykafkad. The tool of Kafka's newest release formats the directory for the older one."""
    port = free_port()
    controller = our_node(tmp_path / "controller", "controller", CONTROLLER, port)
    formatter = KafkaNode(kafka_jars, tmp_path / "formatter", "controller", CONTROLLER, port)
    command = [*formatter._java, "kafka.tools.StorageTool", "format", "--standalone", "-t", CLUSTER_ID]
    command += ["-c", str(formatter.properties_path), "--release-version", RELEASES[release]]
    properties = formatter.properties_path.read_text()
    formatter.properties_path.write_text(
        properties.replace(str(formatter.data_directory), str(controller.data_directory))
    )
    formatted = subprocess.run(command, capture_output=True, text=True)
    assert formatted.returncode == 0, formatted
    kafka = KafkaNode(older_jars, tmp_path / "kafka", "broker", KAFKA, port)
    ours = our_node(tmp_path / "ours", "broker", OURS, port)
    for each in (controller, ours, kafka):
        started(each)
    go_round(kafka, ours)
    for each in (ours, controller):
        each.stop()
        assert complaints(each) == []
        assert unexpected_errors(each) == []


def test_a_quorum_of_an_older_voter_and_one_of_pykafkad(
    older_jars: Path, release: str, runner: ToolRunner, tmp_path: Path, started: Callable[[ProcessBroker], None],
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    """Ours leads alone for longer than a majority may be silent, and goes on when it adds the older one. When that was
    killed, and nobody leads any more, both elect a leader: Kafka 3.9 does not know pre-votes."""
    if release != "3.9":
        request.getfixturevalue("whole_suites")
    ports = {CONTROLLER: free_port(), OURS: free_port()}
    servers = ",".join(f"localhost:{port}" for port in ports.values())
    more = {"controller_quorum_bootstrap_servers": servers, "controller_quorum_fetch_timeout_ms": "1000"}
    kafka = KafkaNode(older_jars, tmp_path / "kafka", "controller", CONTROLLER, ports[CONTROLLER], **more)
    data = str(tmp_path / "ours" / "data")
    ours = our_node(tmp_path / "ours", "controller", OURS, ports[OURS], log_dirs=data, **more)
    config = {node.bootstrap: str(node.properties_path) for node in (kafka, ours)}
    formatting = ["--cluster-id", CLUSTER_ID, "--no-initial-controllers", "--config", config[ours.bootstrap]]
    assert runner.run("storage", ["format", *formatting]).code == 0
    started(kafka)
    started(ours)

    def asked(*words: str, config: str = config[ours.bootstrap]) -> Outcome:
        through = ["--bootstrap-controller", servers, "--command-config", config]
        return runner.run("metadata-quorum", [*through, *words])

    def described() -> dict[int, list[str]]:
        """The rows of the replicas by their ids; none where nobody leads."""
        lines = asked("describe", "--replication").output.splitlines()[1:]
        return {int(words[0]): words for words in map(str.split, lines)}

    until("ours is added", lambda: asked("add-controller").code == 0)
    directory = described()[CONTROLLER][1]
    gone = ["--controller-id", str(CONTROLLER), "--controller-directory-id", directory]
    until("Kafka is removed", lambda: asked("remove-controller", *gone).code == 0)
    until("ours leads", lambda: " active-controller " in ours.log_text())
    begun = time.monotonic()
    until("ours has led for three fetch timeouts", lambda: time.monotonic() - begun > 3)
    until("Kafka is added", lambda: asked("add-controller", config=config[kafka.bootstrap]).code == 0)
    until("both vote", lambda: {row[-1] for row in described().values()} == {"Leader", "Follower"})
    assert " not-active-controller " not in ours.log_text()

    kafka.kill()
    until("nobody leads", lambda: " not-active-controller " in ours.log_text())
    kafka.start()
    until("somebody leads", lambda: {row[-1] for row in described().values()} == {"Leader", "Follower"})
    ours.stop()
    assert unexpected_errors(ours) == []
    assert ours.log_text().count("request-not-sent") <= 1, "named once a minute"
