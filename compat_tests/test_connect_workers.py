"""Kafka Connect as a standalone worker, and as two workers of one group of which one is killed."""

from __future__ import annotations

import http.client
import json
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.brokers.broker import free_port
from compat_tests.samples import wait_until

FreshName = Callable[..., str]
Start = Callable[..., subprocess.Popen]
LINES = 200
SECONDS = 100
FILE_STREAM = "org.apache.kafka.connect.file.FileStream"
WORKER = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "plugin.discovery": "service_load",
    "offset.flush.interval.ms": 500,
}


class Worker:
    """The REST interface of a Connect worker on a port of localhost."""

    def __init__(self) -> None:
        self.url = f"http://localhost:{free_port()}"
        self.name = self.url.removeprefix("http://")

    def asked(
        self, method: str, path: str, body: object = None, check: Callable[[Any], bool] = lambda answer: True
    ) -> bool:
        """Whether the worker gives that answer; it gives none while it starts or its group rebalances."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return check(json.loads(answer.read() or "null"))
        except (OSError, http.client.HTTPException):
            return False

    def owners(self, connectors: tuple[str, ...]) -> dict[str, str]:
        """For each task that runs, the worker that it runs on."""
        found: dict[str, str] = {}

        def note(answer: Any) -> bool:
            for name in connectors:
                # A connector that was just made may have no status yet.
                for task in answer.get(name, {}).get("status", {}).get("tasks", ()):
                    if task["state"] == "RUNNING":
                        found[f"{name}-{task['id']}"] = task["worker_id"]
            return True

        return found if self.asked("GET", "/connectors?expand=status", check=note) else {}


def written(path: Path, numbers: range) -> None:
    """Append a line for each number."""
    with path.open("a") as file:
        file.writelines(f"line {number}\n" for number in numbers)


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def values_of(bootstrap: str, topic: str) -> list[str]:
    """The values that read_committed shows of partition 0."""
    settings = {"group.id": "-", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    while (message := consumer.poll(SECONDS)) is not None and message.error() is None:
        found.append(json.loads(message.value())["payload"])
    consumer.close()
    return found


def create(bootstrap: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        made.result(SECONDS)


def test_a_standalone_worker_goes_on_where_it_stopped(
    bootstrap: str, start_java: Start, fresh_name: FreshName, tmp_path: Path
) -> None:
    """Its offsets of the source are in a file, those of the sink in a group. After a stop each line comes once."""
    source, sink, topic = tmp_path / "in.txt", tmp_path / "out.txt", fresh_name()
    create(bootstrap, topic)
    connectors = {
        "source": {"connector.class": f"{FILE_STREAM}SourceConnector", "file": source, "topic": topic},
        "sink": {"connector.class": f"{FILE_STREAM}SinkConnector", "file": sink, "topics": topic},
    }
    files = []
    for kind, properties in connectors.items():
        files.append(tmp_path / f"{kind}.properties")
        named = {"name": fresh_name(kind), **properties}
        files[-1].write_text("".join(f"{name}={value}\n" for name, value in named.items()))
    worker = {**WORKER, "bootstrap.servers": bootstrap, "offset.storage.file.filename": tmp_path / "offsets"}
    worker["listeners"] = f"http://localhost:{free_port()}"
    for begin, end in ((0, LINES // 2), (LINES // 2, LINES)):
        written(source, range(begin, end))
        process = start_java("org.apache.kafka.connect.cli.ConnectStandalone", also=files, **worker)
        wait_until(lambda end=end: len(lines_of(sink)) >= end, f"{end} lines came through")
        process.terminate()
        process.wait(SECONDS)
    assert sink.read_text() == source.read_text()


@pytest.mark.usefixtures("whole_suites")
def test_two_workers_share_the_tasks_and_one_is_killed(
    bootstrap: str, start_java: Start, fresh_name: FreshName, tmp_path: Path
) -> None:
    """Each has some of the four tasks, until one has all. The sources work exactly once, the sinks at least once."""
    name, kinds = fresh_name("connect"), ("one", "two")
    topics = {kind: f"{name}-{kind}" for kind in kinds}
    create(bootstrap, *topics.values())
    workers = [Worker() for _ in kinds]
    storage = {
        f"{kind}.storage.{key}": value for kind in ("offset", "config", "status")
        for key, value in (("topic", f"{name}-{kind}s"), ("replication.factor", 1))
    }  # fmt: skip
    start = lambda worker: start_java(  # noqa: E731
        "org.apache.kafka.connect.cli.ConnectDistributed", called=worker.name.replace(":", "-"), **WORKER, **storage,
        group_id=name, bootstrap_servers=bootstrap, listeners=worker.url, session_timeout_ms=3000,
        heartbeat_interval_ms=500, scheduled_rebalance_max_delay_ms=500, exactly_once_source_support="enabled",
    )  # fmt: skip
    processes = [start(worker) for worker in workers]
    connectors: dict[str, dict[str, str]] = {}
    for kind, topic in topics.items():
        written(tmp_path / kind, range(LINES // 2))
        connectors[f"source-{kind}"] = {
            "connector.class": f"{FILE_STREAM}SourceConnector",
            "file": str(tmp_path / kind),
            "topic": topic,
            "exactly.once.support": "required",
        }
        connectors[f"sink-{kind}"] = {
            "connector.class": f"{FILE_STREAM}SinkConnector",
            "file": str(tmp_path / f"{kind}.out"),
            "topics": topic,
            "consumer.override.isolation.level": "read_committed",
        }
    for connector, config in connectors.items():
        path = f"/connectors/{connector}/config"
        wait_until(lambda path=path, config=config: workers[0].asked("PUT", path, config), f"{connector} is made")
    names = tuple(connectors)
    shared = lambda: (owners := workers[1].owners(names)) and len(owners) == 4 and len({*owners.values()}) == 2  # noqa: E731
    wait_until(shared, "both workers have tasks")
    came = lambda kind, end: set(lines_of(tmp_path / f"{kind}.out")) == {f"line {number}" for number in range(end)}  # noqa: E731
    wait_until(lambda: all(came(kind, LINES // 2) for kind in kinds), "the first lines came through")
    processes[0].kill()
    processes[0].wait(SECONDS)
    for kind in kinds:
        written(tmp_path / kind, range(LINES // 2, LINES))
    wait_until(lambda: all(came(kind, LINES) for kind in kinds), "all lines came through")
    wait_until(lambda: [*workers[1].owners(names).values()] == 4 * [workers[1].name], "the other has all tasks")
    for kind, topic in topics.items():
        assert values_of(bootstrap, topic) == lines_of(tmp_path / kind)
    processes[1].terminate()
    processes[1].wait(SECONDS)
