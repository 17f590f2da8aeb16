"""A Kafka Streams application with `exactly_once_v2` is killed in the middle of transactions; its results are exact.

It runs under the classic group protocol and under that of streams groups (KIP-1071).
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.conftest import unavailable
from compat_tests.exactly_once.open_transactions import open_offsets
from compat_tests.samples import wait_until
from compat_tests.scenarios.exchange import Exchange, part

SOURCE = Path(__file__).with_name("ExactStreams.java")
INPUTS = ("lines", "left", "right")
OUTPUTS = ("words", "windows", "pairs")
PARTITIONS = 2
RECORDS = 3000
RECORDS_PER_SECOND = 300
WORDS = 7
WINDOW_MS = 10_000
OPEN_RECORDS = 20
GROUP_RESOURCE, SET = 32, 0
# How soon a killed member is given up, in each protocol: the client's own settings, or the group's.
IN_CLIENT = {"session_timeout_ms": 3000, "heartbeat_interval_ms": 500}
IN_GROUP = {
    "streams.session.timeout.ms": "3000",
    "streams.heartbeat.interval.ms": "500",
    "streams.initial.rebalance.delay.ms": "500",
}
Results = dict[str, dict[str, list[str]]]


@pytest.fixture(scope="session")
def classes(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the compiled application."""
    if shutil.which("javac") is None:
        unavailable("the application is compiled with javac, which comes with a JDK and not with a Java alone")
    directory = tmp_path_factory.mktemp("classes")
    command = ["javac", "-cp", f"{kafka_jars}/*", "-d", str(directory), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return directory


class Feed(threading.Thread):
    """Writes the input at a steady pace; record `number` has the time `first_ms` plus ten milliseconds a number."""

    def __init__(self, bootstrap: str, topics: dict[str, str], first_ms: int) -> None:
        super().__init__(name="feed", daemon=True)
        self.topics, self.first_ms = topics, first_ms
        self.producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})

    def run(self) -> None:
        begun = time.monotonic()
        for number in range(RECORDS):
            time_ms = self.first_ms + 10 * number
            values = {"lines": f"all w{number % WORDS}", "left": f"l{number}", "right": f"r{number}"}
            for kind, value in values.items():
                self.producer.produce(self.topics[kind], value, f"k{number}", timestamp=time_ms)
            self.producer.poll(0)
            time.sleep(max(0.0, begun + number / RECORDS_PER_SECOND - time.monotonic()))
        self.producer.flush(300)

    def expected(self) -> Results:
        """The values that each key of each output gets, in their order; each change of a count is a record."""
        words: Counter[str] = Counter()
        windows: Counter[str] = Counter()
        for number in range(RECORDS):
            time_ms = self.first_ms + 10 * number
            for word in ("all", f"w{number % WORDS}"):
                words[word] += 1
                windows[f"{word}@{time_ms - time_ms % WINDOW_MS}"] += 1
        counted = {"words": words, "windows": windows}
        results: Results = {
            kind: {key: [str(value + 1) for value in range(count)] for key, count in counts.items()}
            for kind, counts in counted.items()
        }
        return results | {"pairs": {f"k{number}": [f"l{number}+r{number}"] for number in range(RECORDS)}}


def set_group(bootstrap: str, group: str, settings: dict[str, str]) -> None:
    """Give a group settings of its own."""
    exchange = Exchange(bootstrap, "settings")
    api = "IncrementalAlterConfigs"
    rows = [
        part(api, "AlterableConfig", name=name, config_operation=SET, value=value) for name, value in settings.items()
    ]
    resource = part(api, "AlterConfigsResource", resource_type=GROUP_RESOURCE, resource_name=group, configs=rows)
    answer = exchange.quietly(api, 1, resources=[resource])
    exchange.close()
    assert answer.responses[0].error_code == 0, answer


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_killed_streams_give_exact_results(
    protocol: str,
    bootstrap: str,
    start_java: Callable[..., subprocess.Popen],
    classes: Path,
    fresh_name: Callable[..., str],
    tmp_path: Path,
) -> None:
    """Counts, counts in windows and joined pairs are each written once, in order, through two kills.

    After the first kill the application has its state directory, so it takes its transactional ids over. After the
    second it has none, so its new ids wait for the time-out of the open transactions.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = {kind: fresh_name(kind) for kind in INPUTS + OUTPUTS}
    for made in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics.values()]).values():
        made.result(100)
    application = fresh_name("application")
    if protocol == "streams":
        set_group(bootstrap, application, IN_GROUP)

    def start(state: Path) -> subprocess.Popen:
        names = {f"name.of.{kind}": topic for kind, topic in topics.items()}
        return start_java(
            "ExactStreams", classes=classes, **names, application_id=application, bootstrap_servers=bootstrap,
            state_dir=state, processing_guarantee="exactly_once_v2", group_protocol=protocol, num_stream_threads=2,
            commit_interval_ms=500, statestore_cache_max_bytes=0, transaction_timeout_ms=5000,
            auto_offset_reset="earliest", **(IN_CLIENT if protocol == "classic" else {}),
        )  # fmt: skip

    def some_are_open() -> bool:
        assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
        return open_offsets(admin, topics["words"], PARTITIONS) > OPEN_RECORDS

    feed = Feed(bootstrap, topics, int(time.time() * 1000) // WINDOW_MS * WINDOW_MS)
    feed.start()
    process = start(tmp_path / "first")
    for state in ("first", "second"):
        wait_until(some_are_open, "records of an open transaction are in the topic")
        process.kill()
        process.wait(100)
        process = start(tmp_path / state)
    feed.join(300)
    expected = feed.expected()
    assert read(bootstrap, topics, expected, fresh_name("reader")) == expected
    process.terminate()
    process.wait(100)
    assert uncommitted(bootstrap, topics["words"]) > sum(map(len, expected["words"].values())), "no kill hit"


def read(bootstrap: str, topics: dict[str, str], expected: Results, group: str) -> Results:
    """What a read_committed consumer is given, once that is as much as expected and the topics are at their end."""
    settings = {"group.id": group, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    kinds = {topics[kind]: kind for kind in OUTPUTS}
    consumer.assign([TopicPartition(topic, partition, 0) for topic in kinds for partition in range(PARTITIONS)])
    results: Results = {kind: defaultdict(list) for kind in OUTPUTS}
    wanted = sum(len(values) for kind in expected.values() for values in kind.values())
    found = 0

    def complete() -> bool:
        nonlocal found
        messages = consumer.consume(5000, 1.0)
        for message in messages:
            assert message.error() is None, message.error()
            results[kinds[message.topic()]][message.key().decode()].append(message.value().decode())
        found += len(messages)
        return found >= wanted and not messages

    wait_until(complete, "all results are written")
    consumer.close()
    return results


def uncommitted(bootstrap: str, topic: str) -> int:
    """How many records a read_uncommitted consumer is given, also those of aborted transactions."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "-", "isolation.level": "read_uncommitted"})
    partitions = [TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)]
    consumer.assign(partitions)
    found = 0
    ends = [consumer.get_watermark_offsets(partition, timeout=100)[1] for partition in partitions]
    deadline = time.monotonic() + 60
    while [position.offset for position in consumer.position(partitions)] != ends and time.monotonic() < deadline:
        found += len(consumer.consume(5000, 0.5))
    consumer.close()
    return found
