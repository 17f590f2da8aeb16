"""DescribeLogDirs and AlterReplicaLogDirs, on a broker with one directory and with several."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import ZERO_UUID, Exchange, part, versions
from compat_tests.scenarios.fetch import fetch, from_topic, row
from compat_tests.scenarios.produce import KEPT, batch
from compat_tests.scenarios.registry import configured_scenario, scenario


def described(broker: Exchange, version: int, note: str, *topics: tuple[str, list[int]]) -> Any:
    """Record a DescribeLogDirs request for some partitions."""
    rows = [
        part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=indexes) for name, indexes in topics
    ]
    return broker.ask("DescribeLogDirs", version, note=note, topics=rows)


def moved(broker: Exchange, version: int, note: str, *rows: tuple[str, str, list[int]]) -> Any:
    """Record a request for moves; rows are (path, topic, partitions)."""
    dirs = [
        part(
            "AlterReplicaLogDirs",
            "AlterReplicaLogDir",
            path=path,
            topics=[part("AlterReplicaLogDirs", "AlterReplicaLogDirTopic", name=name, partitions=indexes)],
        )
        for path, name, indexes in rows
    ]
    return broker.ask("AlterReplicaLogDirs", version, note=note, dirs=dirs)


def own_path(broker: Exchange, name: str) -> str:
    """The directory that holds partition 0 of a topic."""
    rows = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=[0])]
    answer = broker.quietly("DescribeLogDirs", 4, topics=rows)
    return next(result.log_dir for result in answer.results if result.topics)


@scenario
def sizes(broker: Exchange) -> None:
    """Sizes in bytes of the requested partitions; unknown ones are left out; the directory itself is always listed."""
    name, other = broker.topic("two", 2, **KEPT), broker.topic("other", **KEPT)
    broker.produce(name, 1, batch())
    for version in versions("DescribeLogDirs"):
        described(broker, version, "both", (name, [0, 1, 2, -1]), (other, [0]), (broker.name("none"), [0]))
        described(broker, version, "twice", (name, [1, 1]), (name, [0]))
        described(broker, version, "nothing")
        described(broker, version, "no partitions", (name, []))
        described(broker, version, "metadata log", ("__cluster_metadata", [0]))
        everything = broker.quietly("DescribeLogDirs", version, topics=None)
        own = {
            topic.name: [
                (row.partition_index, row.partition_size, row.offset_lag, row.is_future_key) for row in topic.partitions
            ]
            for result in everything.results
            for topic in result.topics
            if topic.name in (name, other)
        }
        broker.record(f"DescribeLogDirs v{version} everything", str([sorted(own[each]) for each in (name, other)]))


@scenario
def moves_refused(broker: Exchange) -> None:
    """A move to the present directory succeeds, to an unknown one is LOG_DIR_NOT_FOUND; unknown partitions are
    REPLICA_NOT_AVAILABLE.
    """
    name = broker.topic("two", 2)
    long = "x" * 214
    path = own_path(broker, name)
    for version in versions("AlterReplicaLogDirs"):
        moved(broker, version, "in place", (path, name, [0, 1]))
        moved(broker, version, "elsewhere", ("/nowhere", name, [0, 1]), (path, name, [1]))
        moved(broker, version, "another spelling", (path + "/", name, [0]))
        moved(broker, version, "empty path", ("", name, [0]))
        moved(broker, version, "unknown partitions", (path, name, [0, 2, -1]), (path, broker.name("none"), [0]))
        moved(broker, version, "unknown in both", ("/nowhere", broker.name("none"), [0]))
        moved(broker, version, "long name", (path, long, [0]), ("/nowhere", long, [1]))
        moved(broker, version, "impossible name", (path, "a b", [0]), (path, "", [0]))
        moved(broker, version, "no partitions", (path, name, []))
        moved(broker, version, "nothing")


def arrived(broker: Exchange, name: str, path: str) -> None:
    """Wait until only one directory holds partition 0 of a topic, and record its row."""
    rows = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=[0])]

    def places(answer: Any) -> list[str]:
        return [result.log_dir for result in answer.results for topic in result.topics for _ in topic.partitions]

    broker.until(lambda: broker.quietly("DescribeLogDirs", 4, topics=rows), lambda answer: places(answer) == [path])
    described(broker, 5, "arrived", (name, [0]))


@configured_scenario
def moves_between_directories(broker: Exchange) -> None:
    """A replica moves to each directory in turn with its content, also during writes; readers notice nothing."""
    name = broker.topic("one", **KEPT)
    paths = sorted(result.log_dir for result in broker.quietly("DescribeLogDirs", 4, topics=[]).results)
    assert len(paths) == 3
    moved(broker, 2, "to the first", (paths[0], name, [0]))
    arrived(broker, name, paths[0])
    for number, path in enumerate((*paths[1:], *paths)):
        broker.produce(name, 0, batch())
        moved(broker, 1 + number % 2, f"move {number}", (path, name, [0]))
        broker.produce(name, 0, batch())
        moved(broker, 1 + number % 2, f"move {number} again", (path, name, [0]))
        arrived(broker, name, path)
        fetch(broker, 12, from_topic(name, ZERO_UUID, row(0, 0)), note=f"after move {number}")
    twice = ((paths[0], name, [0]), (paths[2], name, [0]))
    moved(broker, 2, "two directories, the last counts", *twice)
    arrived(broker, name, paths[2])


@configured_scenario
def directory_of_a_topic_to_come(broker: Exchange) -> None:
    """A move of a replica that does not exist yet is refused, but the replica is created in that directory later."""
    paths = sorted(result.log_dir for result in broker.quietly("DescribeLogDirs", 4, topics=[]).results)
    for number, path in enumerate(paths):
        moved(broker, 2, f"to come {number}", (path, broker.name(f"to-come-{number}"), [0]))
    for number, path in enumerate(paths):
        name = broker.topic(f"to-come-{number}")
        rows = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=[0])]
        answer = broker.quietly("DescribeLogDirs", 4, topics=rows)
        found = [result.log_dir == path for result in answer.results if result.topics]
        broker.record(f"directory of topic {number}", str(found))


@configured_scenario
def spread(broker: Exchange) -> None:
    """A new partition goes to the directory with the fewest partitions, so all directories get equally many."""
    for number in range(3):
        broker.topic(f"level-{number}", 3)
    name = broker.topic("many", 30)
    rows = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=list(range(30)))]
    answer = broker.quietly("DescribeLogDirs", 4, topics=rows)
    counts = sorted(len(topic.partitions) for result in answer.results for topic in result.topics)
    broker.record("all are there", str((len(counts), sum(counts), counts[0] > 0)))


@configured_scenario
def cordoned(broker: Exchange) -> None:
    """A cordoned directory takes no new partitions and no moves; version 5 shows that it is cordoned."""
    name = broker.topic("before")
    paths = sorted(result.log_dir for result in broker.quietly("DescribeLogDirs", 4, topics=[]).results)
    moved(broker, 2, "to the third", (paths[2], name, [0]))
    arrived(broker, name, paths[2])

    def cordon(value: str | None, note: str) -> None:
        operation = 0 if value is not None else 1
        change = part(
            "IncrementalAlterConfigs",
            "AlterableConfig",
            name="cordoned.log.dirs",
            config_operation=operation,
            value=value,
        )
        resource = part(
            "IncrementalAlterConfigs", "AlterConfigsResource", resource_type=4, resource_name="1", configs=[change]
        )
        broker.ask("IncrementalAlterConfigs", 1, note=note, resources=[resource])

    def told() -> list[bool]:
        answer = broker.quietly("DescribeLogDirs", 5, topics=[])
        return [result.is_cordoned for result in sorted(answer.results, key=lambda result: result.log_dir)]

    cordon("/nowhere", "no directory")
    cordon(f"*,{paths[0]}", "all and one")
    cordon(",".join(paths[:2]), "two of three")
    try:
        broker.until(told, lambda answer: answer == [True, True, False])
        described(broker, 5, "cordoned", (name, [0]))
        moved(broker, 2, "to a cordoned one", (paths[0], name, [0]), (paths[1], name, [0]))
        late = broker.topic("late", 4)
        rows = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=late, partitions=[0, 1, 2, 3])]
        answer = broker.quietly("DescribeLogDirs", 4, topics=rows)
        broker.record(
            "directories of late", str([result.log_dir == paths[2] for result in answer.results if result.topics])
        )
        cordon("*", "all")
        broker.until(told, lambda answer: answer == [True, True, True])

        def refused() -> Any:
            wanted = part(
                "CreateTopics", "CreatableTopic", name=broker.name("nowhere"), num_partitions=1, replication_factor=1
            )
            return broker.quietly("CreateTopics", 7, topics=[wanted], timeout_ms=10_000, validate_only=True)

        answer = broker.until(refused, lambda answer: answer.topics[0].error_code != 0)
        broker.record("nowhere to go", str(answer.topics[0].error_code))
    finally:
        cordon(None, "none")
        broker.until(told, lambda answer: not any(answer))
