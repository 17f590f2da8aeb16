"""A real Kafka takes over a directory in which a streams group of KIP-1071 is alive, and gives it back.

The members notice nothing: their epochs go on, and no new epoch of the group begins, because both brokers compute the
same hash of the topics, and read each other's topology.
"""

from __future__ import annotations

from pathlib import Path

from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.scenarios.streams_groups import (
    FIRST,
    LEAVE,
    SECOND,
    THIRD,
    Group,
    Member,
    info,
    subtopology,
    topology,
)
from compat_tests.test_group_takeover import RETRIABLE, started, stop


def test_a_streams_group_moves_to_a_kafka_and_back(tmp_path: Path, kafka_jars: Path) -> None:
    """Two processes with a store. A third joins under Kafka and leaves under pykafkad."""
    ours, kafka = PykafkadProcess(tmp_path), KafkaProcess(kafka_jars, tmp_path)
    exchange = started(ours)
    group = Group(exchange, partitions=6)
    changelog = f"{group.name}-changelog"
    group.topology = topology(
        subtopology(0, group.topic, state_changelog_topics=[info(changelog, 0, 1, cleanup_policy="compact")])
    )
    members = [group.member(FIRST), group.member(SECOND)]
    members[0].beat(quietly=True)
    group.internal(changelog)
    settle(*members)
    assert [len(tasks(member)) for member in members] == [3, 3]
    epochs = [member.epoch for member in members]
    owned = [tasks(member) for member in members]
    stop(ours, exchange)

    group.broker = exchange = started(kafka)
    go_on(group, *members)
    settle(*members)
    assert [member.epoch for member in members] == epochs and [tasks(member) for member in members] == owned
    third = group.member(THIRD)
    settle(*members, third)
    assert [len(tasks(member)) for member in (*members, third)] == [2, 2, 2]
    epochs = [member.epoch for member in (*members, third)]
    stop(kafka, exchange)

    group.broker = exchange = started(ours)
    go_on(group, *members, third)
    settle(*members, third)
    assert [member.epoch for member in (*members, third)] == epochs
    third.beat(quietly=True, member_epoch=LEAVE)
    settle(*members)
    assert [len(tasks(member)) for member in members] == [3, 3]
    stop(ours, exchange)


def settle(*members: Member) -> None:
    """Heartbeats until all members have what they shall have."""
    for _ in range(4):
        for member in members:
            answer = member.beat(quietly=True)
            assert answer.error_code == 0, answer


def go_on(group: Group, *members: Member) -> None:
    """The first heartbeats at another broker: its coordinator has to load the group."""
    group.broker.coordinator(group.name)
    for member in members:
        answer = group.broker.until(
            lambda member=member: member.beat(quietly=True), lambda answer: answer.error_code not in RETRIABLE
        )
        assert answer.error_code == 0, answer


def tasks(member: Member) -> list[tuple[str, int]]:
    """The active tasks of a member."""
    return [(row.subtopology_id, number) for row in member.active for number in row.partitions]
