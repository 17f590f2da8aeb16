"""kafka-reassign-partitions moves a replica with a throttle (KIP-73), tells its progress, and removes the throttle."""

from __future__ import annotations

import json
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource

from compat_tests.tools.runner import ToolRunner
from pykafkad.testing import Broker

RECORDS, SIZE = 100, 20_000
RATE = 400_000
SECONDS = 60
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
FETCHES = {"replica.fetch.max.bytes": 100_000, "replica.fetch.response.max.bytes": 100_000}


def configs(admin: AdminClient, kind: ConfigResource.Type, name: str) -> dict[str, str]:
    """The settings of a resource that have a value."""
    (found,) = admin.describe_configs([ConfigResource(kind, name)]).values()
    return {each.name: each.value for each in found.result(SECONDS).values() if each.value}


def test_a_replica_moves_no_faster_than_the_tool_says(runner: ToolRunner, tmp_path: Path) -> None:
    with Broker(brokers=3, settings=FETCHES, topics={"t": 1}) as brokers:
        bootstrap = brokers.bootstrap
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        for _ in range(RECORDS):
            producer.produce("t", b"v" * SIZE)
        assert producer.flush(SECONDS) == 0
        admin = AdminClient({"bootstrap.servers": bootstrap})
        (old,) = admin.list_topics("t").topics["t"].partitions[0].replicas
        new = old % 3 + 1
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [new]}]}))

        def reassign(*arguments: str) -> str:
            """What the tool prints."""
            file = ("--reassignment-json-file", str(plan))
            outcome = runner.run("reassign-partitions", ["--bootstrap-server", bootstrap, *arguments, *file])
            assert outcome.code == 0, outcome
            return outcome.output

        began = time.monotonic()
        printed = reassign("--execute", "--throttle", str(RATE))
        assert f"The inter-broker throttle limit was set to {RATE} B/s" in printed
        of_topic = configs(admin, ConfigResource.Type.TOPIC, "t")
        assert [of_topic[name] for name in REPLICAS] == [f"0:{old}", f"0:{new}"]
        for node_id in (old, new):
            of_broker = configs(admin, ConfigResource.Type.BROKER, str(node_id))
            assert [of_broker[name] for name in RATES] == [str(RATE)] * 2
        while "is completed" not in (printed := reassign("--verify", "--preserve-throttles")):
            assert "is still in progress" in printed and time.monotonic() < began + SECONDS, printed
        took = time.monotonic() - began
        assert took > RECORDS * SIZE / RATE / 2, "the throttle has not held it back"
        printed = reassign("--verify")
        assert "Clearing broker-level throttles" in printed and "Clearing topic-level throttles" in printed
        assert not set(REPLICAS) & configs(admin, ConfigResource.Type.TOPIC, "t").keys()
        for node_id in (1, 2, 3):
            assert not set(RATES) & configs(admin, ConfigResource.Type.BROKER, str(node_id)).keys()
        assert admin.list_topics("t").topics["t"].partitions[0].replicas == [new]
