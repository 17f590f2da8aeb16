"""A real Kafka takes over a directory in which a consumer group of KIP-848 is alive, and gives it back.

The members notice nothing: their epochs go on, and no new epoch of the group begins, because both brokers compute the
same hash of the topics.
"""

from __future__ import annotations

from pathlib import Path

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.scenarios.consumer_groups import FIRST, LEAVE, SECOND, Group, Member
from compat_tests.scenarios.exchange import Exchange

RETRIABLE = (14, 15, 16, 69)


def test_a_consumer_group_moves_to_a_kafka_and_back(tmp_path: Path, kafka_jars: Path) -> None:
    """Two members, one of them static. A third joins under Kafka and leaves under pykafkad."""
    ours, kafka = PykafkadProcess(tmp_path), KafkaProcess(kafka_jars, tmp_path)
    exchange = started(ours)
    group = Group(exchange, partitions=6)
    members = [group.member(FIRST), group.member(SECOND, instance="static")]
    for member in members:
        member.beat(quietly=True)
    group.settle(*members)
    epochs = [member.epoch for member in members]
    owned = [member.owned for member in members]
    stop(ours, exchange)

    group.broker = exchange = started(kafka)
    go_on(group, *members)
    group.settle(*members)
    assert [member.epoch for member in members] == epochs and [member.owned for member in members] == owned
    third = group.member("third")
    third.beat(quietly=True)
    group.settle(*members, third)
    assert sorted(count(member) for member in (*members, third)) == [2, 2, 2]
    epochs = [member.epoch for member in (*members, third)]
    stop(kafka, exchange)

    group.broker = exchange = started(ours)
    go_on(group, *members, third)
    group.settle(*members, third)
    assert [member.epoch for member in (*members, third)] == epochs
    third.beat(quietly=True, member_epoch=LEAVE)
    group.settle(*members)
    assert [count(member) for member in members] == [3, 3]
    stop(ours, exchange)


def started(broker: ProcessBroker) -> Exchange:
    broker.start()
    return Exchange(broker.bootstrap, "takeover")


def stop(broker: ProcessBroker, exchange: Exchange) -> None:
    exchange.close()
    broker.stop()


def go_on(group: Group, *members: Member) -> None:
    """The first heartbeats at another broker: its coordinator has to load the group."""
    group.broker.coordinator(group.name)
    for member in members:
        answer = group.broker.until(
            lambda member=member: member.beat(quietly=True), lambda answer: answer.error_code not in RETRIABLE
        )
        assert answer.error_code == 0, answer


def count(member: Member) -> int:
    return sum(len(row.partitions) for row in member.owned)
