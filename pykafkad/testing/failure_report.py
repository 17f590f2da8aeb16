"""What a broker has when a test fails, as text for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pykafkad.testing import groups, topics
from pykafkad.testing.faults import Faults
from pykafkad.testing.wire_client import Refused, WireClient

Told = TypeVar("Told")

MANY_PARTITIONS = 1000
"""Of so many partitions the offsets are compared."""

MOST = 30
"""Of topics, groups and faults so many are told, and how many more there are."""


def text(client: WireClient, bootstrap: str, faults: Faults, first_topic: str | None = None) -> str:
    """Lines for topics with offsets, groups with members and lag, faults with what they did."""
    lines = [f"broker {bootstrap}"]
    counts = topics.partition_counts(client)
    names = sorted(counts, key=lambda name: (name != first_topic, name))
    lines += _some(names, lambda name: _topic(client, name, counts[name]))
    described = [_describe(client, name) for name in sorted(groups.list_groups(client))[: MOST + 1]]
    lines += _some(described, str)
    lines += _hints(client, [(name, index) for name in names[:MOST] for index in range(counts[name])], described)
    lines += _some(faults.every, lambda fault: f"fault {fault}: fired {fault.count} times")
    if len(lines) == 1:
        lines.append("no topics, no groups, no faults")
    return "\n".join(lines)


def _some(every: list[Told], line: Callable[[Told], str]) -> list[str]:
    lines = [line(each) for each in every[:MOST]]
    return lines if len(every) <= MOST else [*lines, f"and {len(every) - MOST} more"]


def _topic(client: WireClient, name: str, count: int) -> str:
    partitions = [(name, index) for index in range(count)]
    try:
        begins = topics.offsets(client, partitions, topics.EARLIEST)
        ends = topics.offsets(client, partitions, topics.LATEST)
    except Refused as refused:
        return f"topic {refused}"
    held = [f"{index}: {begins[name, index]} to {ends[name, index]}" for _, index in partitions[:MOST]]
    return f"topic {name}, offsets by partition: {', '.join(held)}{' …' if count > MOST else ''}"


def _describe(client: WireClient, name: str) -> groups.Group:
    try:
        return groups.describe(client, name)
    except Refused as refused:
        return groups.Group(name, state=str(refused))


def _hints(client: WireClient, partitions: list[topics.Partition], described: list[groups.Group]) -> list[str]:
    """Sentences about what often makes a test fail."""
    partitions = partitions[:MANY_PARTITIONS]
    begins = topics.offsets(client, partitions, topics.EARLIEST)
    ends = topics.offsets(client, partitions, topics.LATEST)
    stable = topics.offsets(client, partitions, topics.LATEST, topics.READ_COMMITTED)
    found = [
        f"hint: a transaction is open in {name}-{index}; "
        f"who reads committed records waits at offset {stable[name, index]}"
        for name, index in partitions
        if stable[name, index] < ends[name, index]
    ]
    for group in described:
        unread = sorted(
            f"{name}-{index}"
            for name, index in group.assigned
            if (name, index) not in group.offsets and begins.get((name, index), 0) < ends.get((name, index), 0)
        )
        if unread:
            found.append(
                f"hint: group {group.name} has committed nothing of {', '.join(unread[:MOST])}, which hold records: "
                "did its consumer start at the latest offset (auto.offset.reset), or does it not commit?"
            )
    return found[:MOST]
