"""A partition's log fails at its leader, a pykafkad broker: another one leads at once. Controllers are of either kind.

A limit for the size of the process's files stands for a disk that takes no more of the one partition."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.conftest import assert_no_bug_logged
from compat_tests.quorum.nodes import CONTROLLER, KAFKA, OURS, TOPIC, KafkaNode, described, our_node, read, until, write

OTHER = 4


@pytest.mark.parametrize("controls", ["kafka", "pykafkad"])
def test_another_broker_leads_when_a_log_has_failed(
    controls: str, kafka_jars: Path, tmp_path: Path, started: Callable[[ProcessBroker], ProcessBroker]
) -> None:
    """Clients go on with the others, of both kinds; the broker is in sync again when it has been started again."""
    port = free_port()
    place = tmp_path / "controller"
    controller: ProcessBroker = (
        KafkaNode(kafka_jars, place, "controller", CONTROLLER, port)
        if controls == "kafka"
        else our_node(place, "controller", CONTROLLER, port)
    )
    brokers: dict[int, ProcessBroker] = {
        OURS: our_node(tmp_path / "ours", "broker", OURS, port),
        OTHER: our_node(tmp_path / "other", "broker", OTHER, port),
        KAFKA: KafkaNode(kafka_jars, tmp_path / "kafka", "broker", KAFKA, port),
    }
    for node in (controller, *brokers.values()):
        started(node)
    bootstrap = ",".join(each.bootstrap for each in brokers.values())
    admin = AdminClient({"bootstrap.servers": bootstrap})
    assigned = [[OURS, OTHER, KAFKA], [OURS, KAFKA, OTHER]]
    until("all brokers are known", lambda: set(admin.list_topics(timeout=30).brokers) == set(brokers))
    admin.create_topics([NewTopic(TOPIC, num_partitions=2, replica_assignment=assigned)])[TOPIC].result(60)
    until("all are in sync", lambda: all(len(isr) == 3 for _, isr in described(bootstrap).values()))
    written = write(bootstrap, "before" * 3000)
    broker = brokers[OURS]
    size_bytes = max(each.stat().st_size for each in (broker.directory / "data").glob(f"{TOPIC}-*/*.log"))
    resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))
    written += write(bootstrap, "meanwhile")
    until(
        "others lead",
        lambda: all(leader != OURS and isr == {OTHER, KAFKA} for leader, isr in described(bootstrap).values()),
    )
    written += write(bootstrap, "after")
    assert broker.log_text().count("partition-offline") == 2
    broker.stop()
    broker.start()
    until("all are in sync again", lambda: all(len(isr) == 3 for _, isr in described(bootstrap).values()))
    found = read(bootstrap, len(written))
    assert [each for each in found if each[0] == 0] == [each for each in written if each[0] == 0]
    assert [each for each in found if each[0] == 1] == [each for each in written if each[0] == 1]
    for node in (*brokers.values(), controller):
        if not isinstance(node, KafkaNode):
            assert_no_bug_logged(node)
