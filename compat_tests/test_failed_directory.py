"""A directory of log.dirs that fails under a running broker: its partitions are offline, the others are served.

A restart brings them back. The same steps run against a real Kafka and against pykafkad, as processes whose directories
the test can spoil, and the answers are compared.
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

# Both brokers notice at the next checkpoint that the directory cannot be written.
SETTINGS = {"log.dirs": "{data},{data}-2,{data}-3", "replica.high.watermark.checkpoint.interval.ms": "300"}
STORAGE_ERROR = 56


def ask_everything(broker: Exchange, name: str, paths: list[str], note: str) -> None:
    """Record every answer that shows the state of partitions."""
    asked = [part("Metadata", "MetadataRequestTopic", name=name)]
    broker.ask("Metadata", 12, note=note, topics=asked, allow_auto_topic_creation=False)
    broker.ask(
        "DescribeTopicPartitions", 0, note=note, topics=[part("DescribeTopicPartitions", "TopicRequest", name=name)]
    )
    rows = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=[0, 1])]
    results = sorted(broker.quietly("DescribeLogDirs", 5, topics=rows).results, key=lambda result: result.log_dir)
    told = [(result.error_code, result.total_bytes > 0, result.usable_bytes > 0, result.topics) for result in results]
    broker.record(f"directories {note}", str(told).replace(broker.prefix, ""))
    ask_leaders(broker, name, note)
    rows = [part("ListOffsets", "ListOffsetsPartition", partition_index=index, timestamp=-1) for index in (0, 1)]
    broker.ask(
        "ListOffsets", 5, note=note, topics=[part("ListOffsets", "ListOffsetsTopic", name=name, partitions=rows)]
    )
    rows = [part("DescribeProducers", "TopicRequest", name=name, partition_indexes=[0, 1])]
    broker.ask("DescribeProducers", 0, note=note, topics=rows)
    for kind in (0, 1):
        fields = {"election_type": kind, "topic_partitions": [partitions(name, 0, 1)], "timeout_ms": 10_000}
        broker.ask("ElectLeaders", 2, note=f"{note} type {kind}", **fields)
    for number, path in enumerate(paths):
        moved(broker, 2, f"{note} to {number}", (path, name, [0, 1]))


def ask_leaders(broker: Exchange, name: str, note: str) -> None:
    """Write and read; Produce from version 10 and Fetch from version 16 on name the leader to a wrong client
    (KIP-951).
    """
    topic_id, _ = topic_id_and_epochs(broker, name)
    for version in (3, 9, 10, 13):
        produce(broker, version, to(name, (0, batch()), (1, batch()), topic_id=topic_id), note=note)
    for version in (5, 10, 11, 12, 16, 18):
        fetch(broker, version, from_topic(name, topic_id, row(0, 0), row(1, 0)), note=note)
    ask_with_epochs(broker, name, note)


def ask_with_epochs(broker: Exchange, name: str, note: str) -> None:
    """The answers to an older, the present and a newer leader epoch, with the leader they name (KIP-320, KIP-951)."""
    topic_id, present = topic_id_and_epochs(broker, name)
    for kind, change in (("older", -1), ("present", 0), ("newer", 1)):
        asked = {index: max(epoch + change, 0) for index, epoch in present.items()}
        for version in (11, 12, 15, 16, 18):
            rows = [row(index, 0, current_leader_epoch=epoch) for index, epoch in asked.items()]
            fields = {
                "max_wait_ms": 0,
                "min_bytes": 0,
                "max_bytes": 1_000_000,
                "topics": [from_topic(name, topic_id, *rows)],
            }
            answer = broker.quietly("Fetch", version, **fields)
            told = sorted(leader_told(each, present) for topic in answer.responses for each in topic.partitions)
            ends = [
                (end.node_id, end.host == "", str(end.port) == broker.bootstrap.rpartition(":")[2], end.rack)
                for end in answer.node_endpoints
            ]
            broker.record(f"Fetch v{version} {note}, {kind} epochs", f"{told} {ends}")
        for api, partition in (
            ("ListOffsets", "ListOffsetsPartition"),
            ("OffsetForLeaderEpoch", "OffsetForLeaderPartition"),
        ):
            given = {"timestamp": -1} if api == "ListOffsets" else {"leader_epoch": 0}
            number = "partition_index" if api == "ListOffsets" else "partition"
            rows = [
                part(api, partition, current_leader_epoch=epoch, **{number: index}, **given)
                for index, epoch in asked.items()
            ]
            topic = part(
                api,
                f"{partition.removesuffix('Partition')}Topic",
                **{"name" if api == "ListOffsets" else "topic": name},
                partitions=rows,
            )
            answer = broker.quietly(api, 4, replica_id=-1, topics=[topic])
            codes = sorted(
                (getattr(each, number), each.error_code) for topic in answer.topics for each in topic.partitions
            )
            broker.record(f"{api} v4 {note}, {kind} epochs", str(codes))


def leader_told(told: Any, present: dict[int, int]) -> tuple:
    """A row of a Fetch answer: its error, its leader, and the distance of its epoch from the present one."""
    leader = told.current_leader
    distance = leader.leader_epoch - present[told.partition_index] if leader.leader_epoch >= 0 else "none"
    return told.partition_index, told.error_code, leader.leader_id, distance, told.high_watermark >= 0


def topic_id_and_epochs(broker: Exchange, name: str) -> tuple[bytes, dict[int, int]]:
    """The topic's id and its leader epochs, from Metadata."""
    asked = [part("Metadata", "MetadataRequestTopic", name=name)]
    (topic,) = broker.quietly("Metadata", 12, topics=asked, allow_auto_topic_creation=False).topics
    return topic.topic_id, {each.partition_index: each.leader_epoch for each in topic.partitions}


def transcript(broker: Any, first_bootstrap: str) -> list[tuple[str, Any]]:
    """Spoil the third directory, ask everything, restart with the directory whole, and ask again."""
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
    broker.kill()
    # The obstacle stays, so the directory has failed from the start on.
    broker.start()
    without = followed_by(exchange, broker)
    without.until(lambda: leader_of(without, name, 0), lambda leader: leader == 1)
    without.until(lambda: code_of_leader(without, name, 0), lambda code: code == 0)
    ask_everything(without, name, paths, "failed from the start")
    broker.kill()
    third.unlink()
    shutil.move(f"{third}-away", third)
    broker.start()
    again = followed_by(without, broker)
    again.until(lambda: leader_of(again, name, 1), lambda leader: leader == 1)
    again.topic_id(name)
    asked = [part("Metadata", "MetadataRequestTopic", name=name)]
    metadata = again.quietly("Metadata", 12, topics=asked, allow_auto_topic_creation=False)
    found = [
        (row.partition_index, row.error_code, row.leader_id, row.isr_nodes) for row in metadata.topics[0].partitions
    ]
    again.record("after the restart", str(sorted(found)))
    fetch(again, 12, from_topic(name, ZERO_UUID, row(0, 0), row(1, 0)), note="after the restart")
    ask_with_epochs(again, name, "after the restart")
    # After the only broker is unregistered, no partition has a leader.
    again.ask("UnregisterBroker", 0, broker_id=1)
    again.until(lambda: leader_of(again, name, 0), lambda leader: leader == -1)
    for partition in (0, 1):
        again.until(lambda: code_of_leader(again, name, partition), lambda code: code != 0)  # noqa: B023
    ask_leaders(again, name, "unregistered")
    again.close()
    # An unregistered Kafka waits for ever for permission to stop.
    broker.kill()
    return normalised(again)


def followed_by(before: Exchange, broker: Any) -> Exchange:
    """The exchange that continues the transcript after the broker has restarted."""
    before.close()
    after = Exchange(broker.bootstrap, "failed-directory")
    after.prefix, after.steps = before.prefix, before.steps
    return after


def lies(exchange: Exchange, name: str, index: int) -> list[str]:
    """The directories that hold a partition."""
    rows = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=[index])]
    answer = exchange.quietly("DescribeLogDirs", 4, topics=rows)
    return [result.log_dir for result in answer.results if result.topics]


def failed(exchange: Exchange) -> list[bool]:
    """Which directories have failed, in the order of their paths."""
    answer = exchange.quietly("DescribeLogDirs", 4, topics=[])
    return [result.error_code == STORAGE_ERROR for result in sorted(answer.results, key=lambda result: result.log_dir)]


def leader_of(exchange: Exchange, name: str, index: int) -> int:
    asked = [part("Metadata", "MetadataRequestTopic", name=name)]
    (topic,) = exchange.quietly("Metadata", 12, topics=asked, allow_auto_topic_creation=False).topics
    return next((row.leader_id for row in topic.partitions if row.partition_index == index), -2)


def code_of_leader(exchange: Exchange, name: str, index: int) -> int:
    """The error code of the partition's leader: Kafka names a leader a moment before that leader knows of it."""
    rows = [part("ListOffsets", "ListOffsetsPartition", partition_index=index, timestamp=-1)]
    topics = [part("ListOffsets", "ListOffsetsTopic", name=name, partitions=rows)]
    return exchange.quietly("ListOffsets", 5, replica_id=-1, topics=topics).topics[0].partitions[0].error_code


def test_failed_directory(kafka_jars: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Both brokers answer the same for offline and for online partitions."""
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
        lines += [
            f"{label}: {path}: {left!r}, {right!r}" for _, path, left, right in differences(label, expected, found)
        ]
    assert not lines, "\n".join(lines)
