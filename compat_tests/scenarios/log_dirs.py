"""DescribeLogDirs and AlterReplicaLogDirs on a broker with one directory."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.produce import KEPT, batch
from compat_tests.scenarios.registry import scenario


def described(broker: Exchange, version: int, note: str, *topics: tuple[str, list[int]]) -> Any:
    """Ask for some partitions, into the transcript."""
    rows = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=indexes) for name, indexes in topics]
    return broker.ask("DescribeLogDirs", version, note=note, topics=rows)


def moved(broker: Exchange, version: int, note: str, *rows: tuple[str, str, list[int]]) -> Any:
    """Ask for moves, (path, topic, partitions) each, into the transcript."""
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
    """The directory where partition 0 of a topic lies."""
    rows = [part("DescribeLogDirs", "DescribableLogDirTopic", topic=name, partitions=[0])]
    answer = broker.quietly("DescribeLogDirs", 4, topics=rows)
    return next(result.log_dir for result in answer.results if result.topics)


@scenario
def sizes(broker: Exchange) -> None:
    """Sizes in bytes of those asked for; what is not there is left out; the directory is told whatever is asked."""
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
            topic.name: [(row.partition_index, row.partition_size, row.offset_lag, row.is_future_key) for row in topic.partitions]
            for result in everything.results
            for topic in result.topics
            if topic.name in (name, other)
        }
        broker.record(f"DescribeLogDirs v{version} everything", str([sorted(own[each]) for each in (name, other)]))


@scenario
def moves_refused(broker: Exchange) -> None:
    """To where it is already is a success; elsewhere is LOG_DIR_NOT_FOUND; a partition that is not here REPLICA_NOT_AVAILABLE."""
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
