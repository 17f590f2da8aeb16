"""Brokers and controllers of both kinds in one cluster: a real Kafka broker and one of pykafkad under a controller of
pykafkad, and a broker of pykafkad under a real Kafka controller. Kafka's tools and a client see one cluster."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.quorum.nodes import (
    CONTROLLER,
    KAFKA,
    OURS,
    TOPIC,
    KafkaNode,
    described,
    go_round,
    our_node,
    read,
    tool,
    unexpected_errors,
    until,
    write,
)
from compat_tests.tools.runner import ToolRunner


def test_both_kinds_of_brokers_under_a_controller_of_pykafkad(
    kafka_jars: Path, runner: ToolRunner, tmp_path: Path, started: Callable[..., ProcessBroker]
) -> None:
    """Each leads and follows the other, and takes over when the other leaves."""
    port = free_port()
    controller = our_node(tmp_path / "controller", "controller", CONTROLLER, port)
    started(controller)
    ours = our_node(tmp_path / "ours", "broker", OURS, port)
    kafka = KafkaNode(kafka_jars, tmp_path / "kafka", "broker", KAFKA, port)
    started(ours)
    started(kafka)

    def create() -> None:
        assert f"Created topic {TOPIC}" in tool(
            runner, "topics", kafka.bootstrap, "--create", "--topic", TOPIC, "--replica-assignment", "2:3,3:2"
        )

    written = go_round(kafka, ours, create)
    replication = tool(runner, "metadata-quorum", ours.bootstrap, "describe", "--replication")
    roles = {int(node): role for node, role in re.findall(r"^(\d+)\s.*\s(\w+)\s*$", replication, re.MULTILINE)}
    assert roles == {CONTROLLER: "Leader", KAFKA: "Observer", OURS: "Observer"}
    kafka.stop()
    assert read(ours.bootstrap, len(written)) == written
    for each in (ours, controller):
        each.stop()
        assert unexpected_errors(each) == []


def test_a_broker_of_pykafkad_under_a_controller_of_kafka(
    kafka_jars: Path, runner: ToolRunner, tmp_path: Path, started: Callable[..., ProcessBroker]
) -> None:
    """It registers, leads, changes the metadata for its clients, and is shut down cleanly."""
    port = free_port()
    controller = KafkaNode(kafka_jars, tmp_path / "controller", "controller", CONTROLLER, port)
    started(controller)
    ours = our_node(tmp_path / "ours", "broker", OURS, port)
    started(ours)
    arguments = ("--create", "--topic", TOPIC, "--partitions", "2", "--replication-factor", "1")
    assert f"Created topic {TOPIC}" in tool(runner, "topics", ours.bootstrap, *arguments)
    until("ours leads", lambda: described(ours.bootstrap) == {0: (OURS, {OURS}), 1: (OURS, {OURS})})
    written = write(ours.bootstrap, "first")
    changed = ("--alter", "--entity-type", "topics", "--entity-name", TOPIC, "--add-config", "retention.ms=604800001")
    assert "Completed updating config" in tool(runner, "configs", ours.bootstrap, *changed)
    until(
        "ours knows the setting",
        lambda: (
            "retention.ms=604800001"
            in tool(runner, "configs", ours.bootstrap, "--describe", "--entity-type", "topics", "--entity-name", TOPIC)
        ),
    )
    status = tool(runner, "metadata-quorum", ours.bootstrap, "describe", "--status")
    assert re.search(r"LeaderId:\s+1\b", status) and re.search(r'CurrentObservers:.*"id": 3', status)
    assert f"localhost:{ours.bootstrap.rpartition(':')[2]} (id: 3" in tool(
        runner, "broker-api-versions", ours.bootstrap
    )

    ours.stop()
    told = re.compile("(id 3|broker 3|brokerId=3).*(controlled shutdown|SHUTDOWN_NOW|immediate shutdown)")
    until("the controller says so", lambda: told.search(controller.log_text()))
    ours.start()
    written += write(ours.bootstrap, "second")
    assert read(ours.bootstrap, len(written)) == sorted(written, key=lambda each: each[0])
    ours.stop()
    assert unexpected_errors(ours) == []
    controller.stop()
