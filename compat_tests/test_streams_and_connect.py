"""Kafka Streams and Kafka Connect, which use internal topics, groups with their own protocols, and admin calls."""

from __future__ import annotations

import http.client
import json
import struct
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.broker import free_port
from compat_tests.exactly_once.open_transactions import open_offsets
from compat_tests.samples import wait_until
from compat_tests.tools.runner import ToolRunner

FreshName = Callable[..., str]
Start = Callable[..., subprocess.Popen]
# The example's fixed topic names.
INPUT, OUTPUT = "streams-plaintext-input", "streams-wordcount-output"
LINES = 120


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_streams_counts_words(
    protocol: str, bootstrap: str, start_java: Start, runner: ToolRunner, fresh_name: FreshName, tmp_path: Path
) -> None:
    """Words are counted through a repartition topic, which DeleteRecords empties, and a compacted changelog.

    A tool then removes both: the reset tool, or that of streams groups with the group.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    make_empty(admin, NewTopic(INPUT, 2, 1), NewTopic(OUTPUT, 1, 1))
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(LINES):
        # The reset tool wants offsets of both partitions, and one batch would have every line in one of them.
        producer.produce(INPUT, f"all streams lead to w{number % 7}".encode(), partition=number % 2)
    producer.flush()
    name = fresh_name("application")
    application = start_java(
        "org.apache.kafka.streams.examples.wordcount.WordCountDemo",
        application_id=name, bootstrap_servers=bootstrap, state_dir=tmp_path / "state", commit_interval_ms=200,
        repartition_purge_interval_ms=200, statestore_cache_max_bytes=0, group_protocol=protocol,
    )  # fmt: skip
    expected = {
        "all": LINES,
        "streams": LINES,
        "lead": LINES,
        "to": LINES,
        **{f"w{n}": len(range(n, LINES, 7)) for n in range(7)},
    }
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": fresh_name("group"), "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([OUTPUT])
    counted: dict[str, int] = {}

    def all_counted() -> bool:
        for message in consumer.consume(1000, 0.2):
            assert message.error() is None, message.error()
            counted[message.key().decode()] = struct.unpack(">q", message.value())[0]
        return counted == expected

    wait_until(all_counted, "every word is counted")
    consumer.close()
    own = {topic for topic in admin.list_topics().topics if topic.startswith(name)}
    assert sorted(topic.rpartition("-")[2] for topic in own) == ["changelog", "repartition"]
    (repartition,) = (topic for topic in own if topic.endswith("repartition"))
    watched = Consumer({"bootstrap.servers": bootstrap, "group.id": name + "-watch"})
    low = lambda partition: watched.get_watermark_offsets(TopicPartition(repartition, partition), timeout=100)[0]  # noqa: E731
    wait_until(lambda: low(0) + low(1) > 0, "what was counted is deleted from the repartition topic")
    watched.close()
    if protocol == "streams":
        at = ("--bootstrap-server", bootstrap, "--group", name)
        described = tool(runner, "--describe", *at, "--state")
        assert described.split()[-2:] == ["Stable", "1"], described
        assert INPUT in tool(runner, "--describe", *at, "--offsets")
        assert "ACTIVE" in tool(runner, "--describe", *at, "--members")
    application.terminate()
    application.wait(100)
    if protocol == "streams":
        wait_until(lambda: "Empty" in tool(runner, "--describe", *at, "--state"), "the member has left")
        assert INPUT in tool(runner, "--reset-offsets", *at, "--input-topic", INPUT, "--to-earliest", "--execute")
        assert "successful" in tool(runner, "--delete", *at, "--delete-all-internal-topics")
    else:
        outcome = runner.run(
            "streams-application-reset",
            ["--bootstrap-server", bootstrap, "--application-id", name, "--input-topics", INPUT, "--force"],
        )
        assert outcome.code == 0, outcome
    wait_until(lambda: not own & set(admin.list_topics().topics), "the internal topics are gone")


def tool(runner: ToolRunner, *arguments: str) -> str:
    """What kafka-streams-groups prints."""
    outcome = runner.run("streams-groups", arguments)
    assert outcome.code == 0, outcome
    return outcome.output


def make_empty(admin: AdminClient, *topics: NewTopic) -> None:
    """Create topics, in place of those of the same names."""
    names = [topic.topic for topic in topics]
    there = [name for name in names if name in admin.list_topics().topics]
    if there:
        for deleted in admin.delete_topics(there).values():
            deleted.result(100)
        wait_until(lambda: not set(names) & set(admin.list_topics().topics), "the topics are deleted")
    for created in admin.create_topics(list(topics)).values():
        created.result(100)


def test_connect_moves_a_file_through_a_topic(
    bootstrap: str, start_java: Start, fresh_name: FreshName, tmp_path: Path
) -> None:
    """A worker in a group of type `connect` keeps connectors, offsets and states in compacted topics.

    The source works exactly once, also when the worker is killed while a transaction is open. The offsets of a sink can
    be reset.
    """
    name, port = fresh_name("connect"), free_port()
    json_form = {
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    }
    start_worker = lambda: start_java(  # noqa: E731
        "org.apache.kafka.connect.cli.ConnectDistributed",
        **json_form, group_id=name, bootstrap_servers=bootstrap, listeners=f"http://localhost:{port}",
        plugin_discovery="service_load", offset_flush_interval_ms=500, session_timeout_ms=3000,
        heartbeat_interval_ms=500, exactly_once_source_support="enabled",
        **{f"{kind}.storage.{key}": value for kind in ("offset", "config", "status") for key, value in
           (("topic", f"{name}-{kind}"), ("replication.factor", 1))},
    )  # fmt: skip
    worker = start_worker()

    def asked(
        method: str, path: str, body: dict[str, str] | None = None, check: Callable[[Any], bool] = lambda answer: True
    ) -> bool:
        """Whether the worker gives that answer; it does not while it starts or its group rebalances."""
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(
            f"http://localhost:{port}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=100) as answer:
                return check(json.loads(answer.read() or "null"))
        except (OSError, http.client.HTTPException):
            return False

    wait_until(lambda: asked("GET", "/connectors", check=lambda names: names == []), "the worker serves")
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    file_stream = "org.apache.kafka.connect.file.FileStream"
    lines = f"{name}-lines"
    once = {
        "exactly.once.support": "required",
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "1000",
    }
    configs = {
        "in": {"connector.class": f"{file_stream}SourceConnector", "file": str(source), "topic": lines, **once},
        "out": {
            "connector.class": f"{file_stream}SinkConnector",
            "file": str(sink),
            "topics": lines,
            "consumer.override.isolation.level": "read_committed",
        },
    }
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(lines, 1, 1)])[lines].result(100)
    source.touch()
    make = lambda connector: asked("PUT", f"/connectors/{connector}/config", configs[connector])  # noqa: E731
    wait_until(lambda: make("in"), "the source is made")
    written = 0

    def one_more_is_in_an_open_transaction() -> bool:
        nonlocal written
        if written < LINES:
            with source.open("a") as file:
                file.write(f"line {written}\n")
            written += 1
        return open_offsets(admin, lines, 1) > 0

    wait_until(one_more_is_in_an_open_transaction, "a transaction of the source is open")
    worker.kill()
    worker.wait(100)
    with source.open("a") as file:
        file.writelines(f"line {number}\n" for number in range(written, LINES))
    start_worker()
    wait_until(lambda: make("out"), "the sink is made")
    wait_until(lambda: sink.exists() and sink.read_text() == source.read_text(), "the lines came through")
    wait_until(lambda: asked("PUT", "/connectors/out/stop"), "the sink is stopped")
    partition = {"kafka_topic": lines, "kafka_partition": 0}
    wait_until(
        lambda: asked(
            "GET",
            "/connectors/out/offsets",
            check=lambda answer: [each["partition"] for each in answer["offsets"]] == [partition],
        ),
        "its offsets are committed",
    )
    wait_until(lambda: asked("DELETE", "/connectors/out/offsets"), "they are reset")
    wait_until(lambda: asked("PUT", "/connectors/out/resume"), "the sink goes on")
    wait_until(lambda: sink.read_text() == source.read_text() * 2, "it read everything again")
