"""Every answer that may show restarts, before, between and after them: pykafkad's equal Kafka's, field by field.

Each broker belongs to the test alone, so that epochs and ids count the test's own restarts.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers.broker import Broker
from compat_tests.brokers.choose import KafkaSource
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, assert_no_bug_logged
from compat_tests.restarts.cluster import Cluster
from compat_tests.restarts.groups import Groups
from compat_tests.restarts.partitions import Partitions
from compat_tests.scenarios.differences import allowing
from compat_tests.scenarios.exchange import CLOSED, Exchange
from compat_tests.scenarios.normalise import differences, normalised

WAYS = ("restart", "kill", "restart")
NOT_COORDINATOR = 16


def later(before: Exchange) -> Exchange:
    """The same transcript, continued on a new connection to the restarted broker."""
    before.close()
    after = Exchange(before.bootstrap, "")
    after.prefix, after.steps, after.asked = before.prefix, before.steps, before.asked
    return after


def seen(broker: Broker) -> list[tuple[str, object]]:
    """The transcript of one broker's restarts."""
    exchange = Exchange(broker.bootstrap, "restarts")
    partitions = Partitions(exchange)
    groups = Groups(exchange, partitions)
    cluster = Cluster(exchange, partitions)
    parts = (partitions, groups, cluster)
    partitions.write(exchange, "in the first life")
    for each in parts:
        each.record_state(exchange, "in the first life")
    for number, way in enumerate(WAYS, 1):
        groups.wait(exchange)
        cluster.wait(exchange)
        if way == "kill":
            broker.kill()
        else:
            broker.stop()
        note = f"{way} {number}"
        groups.record_waiting_answers(exchange, f"at {note}")
        cluster.record_waiting_answers(exchange, f"at {note}")
        broker.start()
        exchange = later(exchange)
        exchange.topic_id(partitions.name)
        for each in parts:
            each.record_state(exchange, f"after {note}")
        partitions.write(exchange, f"after {note}")
        groups.go_on(exchange, f"after {note}")
        partitions.record_state(exchange, f"at work after {note}")
    exchange.close()
    return normalised(exchange)


@pytest.fixture
def brokers(request: pytest.FixtureRequest, pytestconfig: pytest.Config, tmp_path: Path) -> list[Broker]:
    """The two compared brokers: a real Kafka and a pykafkad, or with `--against` two of one kind."""
    names = AGAINST[pytestconfig.getoption("--against")]
    made: list[Broker] = []
    for number, name in enumerate(names if len(names) == 2 else names * 2):
        directory = tmp_path / f"{name}-{number}"
        directory.mkdir()
        source: KafkaSource | None = request.getfixturevalue("kafka_source") if name == "kafka" else None
        broker = PykafkadProcess(directory) if source is None else source.broker(directory)
        request.addfinalizer(broker.close)
        made.append(broker)
    return made


def is_chance(label: str, *answers: tuple[str, Any]) -> bool:
    """Whether a difference is an accident: Kafka usually tells waiting members NOT_COORDINATOR, but may stop before
    that.
    """
    if re.match("(joining|syncing) at restart", label) is None:
        return False
    untold = [name for name, answer in answers if answer == CLOSED]
    return untold in (["kafka"], ["kafka", "kafka"]) and all(
        answer == CLOSED or answer["error_code"] == NOT_COORDINATOR for _, answer in answers
    )


def test_restarts_look_like_kafkas(brokers: list[Broker]) -> None:
    """Leader epochs, logs, producers, groups with their members, quorum epochs and settings are compared.

    The broker is restarted cleanly, then killed, then restarted cleanly again.
    """
    transcripts = []
    for broker in brokers:
        broker.start()
        try:
            transcripts.append(seen(broker))
        except Exception as error:
            error.add_note(f"against {broker.name}")
            raise
        broker.close()
        if isinstance(broker, PykafkadProcess):
            assert_no_bug_logged(broker)
    first, second = brokers
    assert [label for label, _ in transcripts[0]] == [label for label, _ in transcripts[1]]
    lines = [
        f"{label}: {path}: {first.name} {left!r}, {second.name} {right!r}"
        for (label, expected), (_, answered) in zip(*transcripts, strict=True)
        if not is_chance(label, (first.name, expected), (second.name, answered))
        for _, path, left, right in differences(label, expected, answered)
        if first.name == second.name or not allowing("restarts", label, path)
    ]
    assert not lines, "\n".join(lines[:60])
