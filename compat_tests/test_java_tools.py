"""Kafka's own command-line tools, which are the Java client at its newest: each does its work and says what it should."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.java_tools import JavaTools

FreshName = Callable[..., str]


@pytest.fixture
def tools(bootstrap: str, kafka_jars: Path, tmp_path: Path) -> JavaTools:
    """Kafka's tools, pointed at the broker under test."""
    return JavaTools(kafka_jars, bootstrap, tmp_path / "log4j2.properties")


def test_broker_api_versions(tools: JavaTools, bootstrap: str) -> None:
    """The tool finds the broker by its id and knows every API that it is told of."""
    output = tools.succeed("kafka-broker-api-versions")
    assert output.startswith(f"{bootstrap} (id: 1 rack: null isFenced: false)")
    for api in ("Produce(0): 0 to 13", "Fetch(1): 4 to 18", "Metadata(3): 0 to 13", "ApiVersions(18): 0 to 4"):
        assert api in output


def test_topics(tools: JavaTools, fresh_name: FreshName) -> None:
    """kafka-topics creates, describes, alters, lists and deletes; its errors are those of the broker."""
    topic = fresh_name()
    create = ("--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=1000000")
    assert f"Created topic {topic}" in tools.succeed("kafka-topics", *create)
    again = tools.run("kafka-topics", *create)
    assert again.code == 1 and f"Topic '{topic}' already exists." in again.output + again.errors
    described = tools.succeed("kafka-topics", "--describe", "--topic", topic)
    first_line = rf"Topic: {topic}\tTopicId: \S{{22}}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: .*retention.ms=1000000"
    assert re.search(first_line, described)
    assert f"\tTopic: {topic}\tPartition: 2\tLeader: 1\tReplicas: 1\tIsr: 1" in described
    tools.succeed("kafka-topics", "--alter", "--topic", topic, "--partitions", "5")
    assert topic in tools.succeed("kafka-topics", "--list").split()
    assert "PartitionCount: 5" in tools.succeed("kafka-topics", "--describe", "--topic", topic)
    tools.succeed("kafka-topics", "--delete", "--topic", topic)
    gone = tools.run("kafka-topics", "--describe", "--topic", topic)
    assert gone.code == 1 and f"Topic '{topic}' does not exist as expected" in gone.output + gone.errors


def test_configs(tools: JavaTools, fresh_name: FreshName) -> None:
    """kafka-configs sets, describes and deletes settings of topics and of the broker."""
    topic = fresh_name()
    tools.succeed("kafka-topics", "--create", "--topic", topic)
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    tools.succeed("kafka-configs", "--alter", *of_topic, "--add-config", "retention.ms=4711,cleanup.policy=[compact,delete]")
    described = tools.succeed("kafka-configs", "--describe", *of_topic)
    assert "retention.ms=4711 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=4711}" in described
    assert "cleanup.policy=compact,delete" in described
    tools.succeed("kafka-configs", "--alter", *of_topic, "--delete-config", "retention.ms,cleanup.policy")
    everything = tools.succeed("kafka-configs", "--describe", "--all", *of_topic)
    assert "retention.ms=604800000 sensitive=false synonyms={}" in everything
    assert "cleanup.policy=delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}" in everything
    refused = tools.run("kafka-configs", "--alter", *of_topic, "--add-config", "retention.ms=soon")
    assert refused.code == 1 and "Invalid value soon for configuration retention.ms" in refused.output + refused.errors
    of_broker = ("--entity-type", "brokers", "--entity-name", "1")
    tools.succeed("kafka-configs", "--alter", *of_broker, "--add-config", "log.cleaner.threads=2")
    assert "log.cleaner.threads=2" in tools.succeed("kafka-configs", "--describe", *of_broker)
    tools.succeed("kafka-configs", "--alter", *of_broker, "--delete-config", "log.cleaner.threads")


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_console_producer_and_consumer(tools: JavaTools, fresh_name: FreshName, compression: str) -> None:
    """Lines typed into the producer, with keys and headers, come out of the consumer; the group commits."""
    topic, group = fresh_name(), fresh_name("group")
    tools.succeed("kafka-topics", "--create", "--topic", topic)
    lines = "".join(f"h1:v{n},h2:w{n}\tkey-{n}\tvalue {n}\n" for n in range(20))
    shape = ("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true")
    tools.succeed("kafka-console-producer", "--topic", topic, "--compression-codec", compression, *shape, input=lines)
    shown = [item for name in ("key", "headers", "offset", "partition") for item in ("--formatter-property", f"print.{name}=true")]
    read = ("--topic", topic, "--group", group, "--from-beginning")
    output = tools.succeed("kafka-console-consumer", *read, "--max-messages", "20", *shown)
    assert output.splitlines() == [f"Partition:0\tOffset:{n}\th1:v{n},h2:w{n}\tkey-{n}\tvalue {n}" for n in range(20)]
    described = tools.succeed("kafka-consumer-groups", "--describe", "--group", group)
    assert re.search(rf"{group}\s+{topic}\s+0\s+20\s+20\s+0\s+-", described)


def test_consumer_groups(tools: JavaTools, fresh_name: FreshName) -> None:
    """kafka-consumer-groups lists, describes, resets offsets to everywhere it can, and deletes."""
    topic, group = fresh_name(), fresh_name("group")
    tools.succeed("kafka-topics", "--create", "--topic", topic)
    tools.succeed("kafka-console-producer", "--topic", topic, input="a\nb\nc\nd\n")
    reset = ("--group", group, "--topic", topic, "--reset-offsets", "--execute")
    for target, offset in ((("--to-earliest",), 0), (("--to-latest",), 4), (("--shift-by", "-1"), 3), (("--to-offset", "2"), 2)):
        output = tools.succeed("kafka-consumer-groups", *reset, *target)
        assert re.search(rf"{group}\s+{topic}\s+0\s+{offset}\b", output), output
    assert group in tools.succeed("kafka-consumer-groups", "--list").split()
    state = tools.succeed("kafka-consumer-groups", "--describe", "--group", group, "--state")
    assert re.search(rf"{group}\s+localhost:\d+ +\(1\)\s+-\s+Empty\s+0", state), state
    offsets = tools.succeed("kafka-consumer-groups", "--describe", "--group", group)
    assert re.search(rf"{group}\s+{topic}\s+0\s+2\s+4\s+2\s+-\s+-\s+-", offsets), offsets
    deleted = tools.succeed("kafka-consumer-groups", "--delete-offsets", "--group", group, "--topic", topic)
    assert "Successful" in deleted
    tools.succeed("kafka-consumer-groups", "--delete", "--group", group)
    missing = tools.run("kafka-consumer-groups", "--describe", "--group", group)
    assert f"Group {group} not found." in missing.output


def test_offsets_records_and_directories(tools: JavaTools, fresh_name: FreshName, tmp_path: Path) -> None:
    """kafka-get-offsets, kafka-delete-records, kafka-log-dirs and kafka-cluster."""
    topic = fresh_name()
    tools.succeed("kafka-topics", "--create", "--topic", topic, "--partitions", "2")
    tools.succeed("kafka-console-producer", "--topic", topic, "--sync", input="a\nb\nc\nd\n")
    latest = tools.succeed("kafka-get-offsets", "--topic", topic).splitlines()
    assert [line.rsplit(":", 1)[0] for line in latest] == [f"{topic}:0", f"{topic}:1"]
    assert sum(int(line.rsplit(":", 1)[1]) for line in latest) == 4
    earliest = tools.succeed("kafka-get-offsets", "--topic", topic, "--time", "earliest").splitlines()
    assert earliest == [f"{topic}:0:0", f"{topic}:1:0"]
    request = tmp_path / "offsets.json"
    request.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": -1}]}))
    low = latest[0].rsplit(":", 1)[1]
    assert f"partition: {topic}-0\tlow_watermark: {low}" in tools.succeed(
        "kafka-delete-records", "--offset-json-file", str(request)
    )
    described = tools.succeed("kafka-log-dirs", "--describe", "--topic-list", topic).splitlines()
    (directory,) = json.loads(described[-1])["brokers"][0]["logDirs"]
    assert sorted(entry["partition"] for entry in directory["partitions"]) == [f"{topic}-0", f"{topic}-1"]
    assert sum(entry["size"] for entry in directory["partitions"]) > 100
    assert re.search(r"Cluster ID: \S{22}", tools.succeed("kafka-cluster", "cluster-id", "--bootstrap-server", tools.bootstrap, connect=False))


def test_performance_tools(tools: JavaTools, fresh_name: FreshName) -> None:
    """The perf tools send and read what they were told to, with five requests in flight and acks=all."""
    topic = fresh_name()
    tools.succeed("kafka-topics", "--create", "--topic", topic, "--partitions", "3")
    load = ("--topic", topic, "--num-records", "50000", "--record-size", "100", "--throughput", "-1")
    produced = tools.succeed("kafka-producer-perf-test", *load, "--command-property", "acks=all")
    assert "50000 records sent" in produced
    consumed = tools.succeed("kafka-consumer-perf-test", "--topic", topic, "--num-records", "50000").splitlines()
    row = dict(zip(consumed[0].split(", "), consumed[-1].split(", "), strict=False))
    assert row["data.consumed.in.nMsg"] == "50000"
