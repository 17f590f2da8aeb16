"""ElectLeaders on one broker."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.registry import scenario

UNSUPPORTED_TYPES = (2, -1, 127)


def partitions(name: str, *indexes: int) -> Any:
    """One topic of a request."""
    return part("ElectLeaders", "TopicPartitions", topic=name, partitions=list(indexes))


@scenario
def not_needed(broker: Exchange) -> None:
    """A partition with a leader is ELECTION_NOT_NEEDED for both types; unknown partitions have their own error."""
    name = broker.topic("two", 2)
    for version in versions("ElectLeaders"):
        for election_type in (0, 1) if version else (0,):
            fields = {"election_type": election_type, "timeout_ms": 10_000}
            asked = [partitions(name, 0, 1, 2, -1, 0), partitions(broker.name("none"), 0, 1), partitions("", 0)]
            broker.ask("ElectLeaders", version, note=f"type {election_type}", topic_partitions=asked, **fields)
            asked = [partitions(name, 0), partitions(name, 1), partitions(broker.name("none"))]
            broker.ask("ElectLeaders", version, note=f"type {election_type} twice", topic_partitions=asked, **fields)
            broker.ask("ElectLeaders", version, note=f"type {election_type} nothing", topic_partitions=[], **fields)
        for timeout_ms in (0, -1):
            asked = [partitions(name, 0)]
            broker.ask(
                "ElectLeaders", version, note=f"timeout {timeout_ms}", topic_partitions=asked, timeout_ms=timeout_ms
            )


@scenario
def all_partitions(broker: Exchange) -> None:
    """Null topics mean all: the answer names each topic, but no partition that needs no election."""
    name = broker.topic("two", 2)
    for version in versions("ElectLeaders"):
        answer = broker.quietly("ElectLeaders", version, topic_partitions=None, timeout_ms=10_000)
        own = [row for row in answer.replica_election_results if row.topic == name]
        broker.record(f"ElectLeaders v{version}", f"{answer.error_code} {[len(row.partition_result) for row in own]}")
        others = [row for row in answer.replica_election_results if row.partition_result]
        broker.record(f"ElectLeaders v{version} others", str(others))


@scenario
def unknown_types(broker: Exchange) -> None:
    """There are two election types."""
    name = broker.topic()
    for version in (1, 2):
        for election_type in UNSUPPORTED_TYPES:
            for note, asked in {"one": [partitions(name, 0)], "all": None, "none": []}.items():
                fields = {"election_type": election_type, "topic_partitions": asked, "timeout_ms": 10_000}
                broker.ask("ElectLeaders", version, note=f"type {election_type} {note}", **fields)
