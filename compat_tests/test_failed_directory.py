"""A directory of log.dirs that fails under a running broker: what lies there is offline, the rest is served, a start brings it back.

The same steps against a real Kafka and against pykafkad, as processes whose directories the test can spoil; answers compared.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers.choose import broker_process
from compat_tests.conftest import AGAINST
from compat_tests.scenarios.elections import partitions
from compat_tests.scenarios.exchange import ZERO_UUID, Exchange, part
from compat_tests.scenarios.fetch import fetch, from_topic, row
from compat_tests.scenarios.log_dirs import arrived, moved
from compat_tests.scenarios.normalise import differences, normalised
from compat_tests.scenarios.produce import KEPT, batch, produce, to

# Both notice at the next checkpoint that they cannot write there any more.
SETTINGS = {"log.dirs": "{data},{data}-2,{data}-3", "replica.high.watermark.checkpoint.interval.ms": "300"}
STORAGE_ERROR = 56


def ask_everything(broker: Exchange, name: str, paths: list[str], note: str) -> None:
    """Whatever tells how partitions are, into the transcript."""
    asked = [part("Metadata", "MetadataRequestTopic", name=name)]
    broker.ask("Metadata", 12, note=note, topics=asked, allow_auto_topic_creation=False)
    broker.ask("DescribeTopicPartitions", 0, note=note, topics=[part("DescribeTopicPartitions", "TopicRequest", name=name)])
    rows = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=[0, 1])]
    results = sorted(broker.quietly("DescribeLogDirs", 5, topics=rows).results, key=lambda result: result.log_dir)
    told = [(result.error_code, result.total_bytes > 0, result.usable_bytes > 0, result.topics) for result in results]
    broker.record(f"directories {note}", str(told).replace(broker.prefix, ""))
    for version in (3, 9):
        produce(broker, version, to(name, (0, batch()), (1, batch())), note=note)
    for version in (5, 12):
        fetch(broker, version, from_topic(name, ZERO_UUID, row(0, 0), row(1, 0)), note=note)
    rows = [part("ListOffsets", "ListOffsetsPartition", partition_index=index, timestamp=-1) for index in (0, 1)]
    broker.ask("ListOffsets", 5, note=note, topics=[part("ListOffsets", "ListOffsetsTopic", name=name, partitions=rows)])
    rows = [part("DescribeProducers", "TopicRequest", name=name, partition_indexes=[0, 1])]
    broker.ask("DescribeProducers", 0, note=note, topics=rows)
    for kind in (0, 1):
        fields = {"election_type": kind, "topic_partitions": [partitions(name, 0, 1)], "timeout_ms": 10_000}
        broker.ask("ElectLeaders", 2, note=f"{note} type {kind}", **fields)
    for number, path in enumerate(paths):
        moved(broker, 2, f"{note} to {number}", (path, name, [0, 1]))


def transcript(broker: Any, first_bootstrap: str) -> list[tuple[str, Any]]:
    """Spoil the third directory, look around, start again with it whole, look again."""
    exchange = Exchange(first_bootstrap, "failed-directory")
    name = exchange.topic("two", 2, **KEPT)
    paths = [str(broker.data_directory), f"{broker.data_directory}-2", f"{broker.data_directory}-3"]
    for partition, path in ((0, paths[1]), (1, paths[2])):
        moved(exchange, 2, f"partition {partition}", (path, name, [partition]))
    arrived(exchange, name, paths[1])
    exchange.until(lambda: lies(exchange, name, 1), lambda found: found == [paths[2]])
    for partition in (0, 1):
        exchange.produce(name, partition, batch())
    third = Path(paths[2])
    shutil.move(third, f"{third}-away")
    third.write_text("in the way")
    exchange.until(lambda: failed(exchange), lambda found: found == [False, False, True])
    exchange.until(lambda: leader_of(exchange, name, 1), lambda leader: leader == -1)
    ask_everything(exchange, name, paths, "failed")
    late = exchange.topic("late", 4)
    exchange.record("late", str(sorted(path != paths[2] for index in range(4) for path in lies(exchange, late, index))))
    exchange.close()
    broker.kill()
    third.unlink()
    shutil.move(f"{third}-away", third)
    broker.start()
    again = Exchange(broker.bootstrap, "failed-directory")
    again.prefix, again.steps = exchange.prefix, exchange.steps
    again.until(lambda: leader_of(again, name, 1), lambda leader: leader == 1)
    again.topic_id(name)
    asked = [part("Metadata", "MetadataRequestTopic", name=name)]
    metadata = again.quietly("Metadata", 12, topics=asked, allow_auto_topic_creation=False)
    found = [(row.partition_index, row.error_code, row.leader_id, row.isr_nodes) for row in metadata.topics[0].partitions]
    again.record("after the restart", str(sorted(found)))
    fetch(again, 12, from_topic(name, ZERO_UUID, row(0, 0), row(1, 0)), note="after the restart")
    again.close()
    return normalised(again)


def lies(exchange: Exchange, name: str, index: int) -> list[str]:
    """The directories that hold a partition."""
    rows = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=[index])]
    answer = exchange.quietly("DescribeLogDirs", 4, topics=rows)
    return [result.log_dir for result in answer.results if result.topics]


def failed(exchange: Exchange) -> list[bool]:
    """Which directories are given up, in the order of their paths."""
    answer = exchange.quietly("DescribeLogDirs", 4, topics=[])
    return [result.error_code == STORAGE_ERROR for result in sorted(answer.results, key=lambda result: result.log_dir)]


def leader_of(exchange: Exchange, name: str, index: int) -> int:
    asked = [part("Metadata", "MetadataRequestTopic", name=name)]
    (topic,) = exchange.quietly("Metadata", 12, topics=asked, allow_auto_topic_creation=False).topics
    return next((row.leader_id for row in topic.partitions if row.partition_index == index), -2)


def test_failed_directory(kafka_jars: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Both brokers say the same of what is offline, and of what is not."""
    transcripts = {}
    for name in AGAINST[pytestconfig.getoption("--against")]:
        (tmp_path / name).mkdir()
        broker = broker_process(name, kafka_jars, tmp_path / name, SETTINGS)
        try:
            broker.start()
            transcripts[name] = transcript(broker, broker.bootstrap)
        finally:
            broker.close()
    first, second = (list(transcripts.values()) * 2)[:2]
    lines = []
    for (label, expected), (other, found) in zip(first, second, strict=True):
        assert label == other
        lines += [f"{label}: {path}: {left!r}, {right!r}" for _, path, left, right in differences(label, expected, found)]
    assert not lines, "\n".join(lines)
