"""AlterPartitionReassignments and ListPartitionReassignments on one broker."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.registry import scenario


def moved(name: str, *rows: tuple[int, list[int] | None]) -> Any:
    """One topic of a request: its partitions with their new replicas (None cancels a reassignment)."""
    partitions = [
        part("AlterPartitionReassignments", "ReassignablePartition", partition_index=p, replicas=r) for p, r in rows
    ]
    return part("AlterPartitionReassignments", "ReassignableTopic", name=name, partitions=partitions)


@scenario
def altered(broker: Exchange) -> None:
    """The present replicas are a success; each impossible assignment has its own error."""
    name = broker.topic("two", 2)
    rows = {
        "as it is": [1],
        "cancelled": None,
        "nobody": [],
        "a stranger": [7],
        "with a stranger": [1, 7],
        "one twice": [1, 1],
        "a stranger twice": [7, 7],
        "a negative one": [-1],
    }
    for version in versions("AlterPartitionReassignments"):
        for note, replicas in rows.items():
            broker.ask(
                "AlterPartitionReassignments",
                version,
                note=note,
                topics=[moved(name, (0, replicas))],
                timeout_ms=10_000,
            )
        topics = [
            moved(name, *((p, r) for p in (0, 1, 2, -1) for r in ([1], [9]))),
            moved(broker.name("none"), (0, [1]), (1, None)),
        ]
        broker.ask("AlterPartitionReassignments", version, note="mixed", topics=topics, timeout_ms=10_000)
        broker.ask(
            "AlterPartitionReassignments", version, note="no partitions", topics=[moved(name)], timeout_ms=10_000
        )
        broker.ask("AlterPartitionReassignments", version, note="nothing", topics=[], timeout_ms=10_000)
        broker.ask(
            "AlterPartitionReassignments", version, note="empty name", topics=[moved("", (0, [1]))], timeout_ms=10_000
        )
        twice = [moved(name, (0, [1])), moved(name, (0, None))]
        broker.ask("AlterPartitionReassignments", version, note="twice", topics=twice, timeout_ms=10_000)
        for timeout_ms in (0, -1):
            broker.ask(
                "AlterPartitionReassignments",
                version,
                note=f"timeout {timeout_ms}",
                topics=twice,
                timeout_ms=timeout_ms,
            )


@scenario
def other_replication_factor(broker: Exchange) -> None:
    """Version 1 may forbid another number of replicas; this is checked last."""
    name = broker.topic()
    for note, replicas in {"same": [1], "none": [], "a stranger": [1, 2], "cancelled": None}.items():
        fields = {"allow_replication_factor_change": False, "timeout_ms": 10_000}
        broker.ask("AlterPartitionReassignments", 1, note=note, topics=[moved(name, (0, replicas))], **fields)


@scenario
def listed(broker: Exchange) -> None:
    """One broker never has a reassignment in progress: the answer is always empty."""
    name = broker.topic()
    asked = [
        part("ListPartitionReassignments", "ListPartitionReassignmentsTopics", name=each, partition_indexes=[0, 1, -1])
        for each in (name, broker.name("none"), "")
    ]
    for version in versions("ListPartitionReassignments"):
        for note, topics in {"all": None, "none": [], "some": asked}.items():
            broker.ask("ListPartitionReassignments", version, note=note, topics=topics, timeout_ms=10_000)
