"""Bugs of programs that make topics and change settings."""

from __future__ import annotations

from concurrent.futures import wait
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from compat_tests.bugs.case import QUICK, VALUES, Case, Run


def admin(run: Run) -> AdminClient:
    return AdminClient(run.broker.client_config("confluent") | QUICK)


def done(futures: dict[Any, Any], run: Run) -> bool:
    """Whether it worked, for who looks; who does not, finds that it did."""
    wait(futures.values())
    return not run.is_mended or not any(each.exception() for each in futures.values())


def does_not_look_at_new_topics(run: Run) -> None:
    """Makes a topic of six partitions, and does not look whether there is one. The first record makes another."""
    client = admin(run)
    for _ in range(3):
        if done(client.create_topics([NewTopic("orders", 6, 1)]), run):
            break
    producer = run.producer()
    producer.produce("orders", "value")
    producer.flush(10)


def has_six_partitions(run: Run, _: object) -> None:
    assert run.broker.topics()["orders"] == 6


def does_not_look_at_settings(run: Run) -> None:
    """Changes the retention, and does not look whether it is another."""
    client = admin(run)
    entry = ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
    for _ in range(3):
        resource = ConfigResource(ResourceType.TOPIC, "out", incremental_configs=[entry])
        if done(client.incremental_alter_configs([resource]), run):
            break


def keeps_an_hour(run: Run, _: object) -> None:
    rows = {each["name"]: each["value"] for each in run.broker.settings("out")}
    assert rows["retention.ms"] == "3600000"


def takes_an_existing_topic_for_a_failure(run: Run) -> list[str]:
    """Makes a topic before it writes; it may have been made by a request whose answer was lost."""
    client = admin(run)
    for _ in range(2):
        try:
            client.create_topics([NewTopic("orders", 1, 1)])["orders"].result(10)
            break
        except KafkaException as error:
            if run.is_mended and error.args[0].name() == "TOPIC_ALREADY_EXISTS":
                break
    else:
        return []
    producer = run.producer()
    for value in VALUES:
        producer.produce("orders", value)
    producer.flush(10)
    return run.written("orders")


def all_of_them(_: Run, result: list[str]) -> None:
    assert result == VALUES


CASES = (
    Case(
        "does not look whether its topic was made",
        lambda broker: broker.faults.answer("CreateTopics", "POLICY_VIOLATION"),
        does_not_look_at_new_topics,
        has_six_partitions,
    ),
    Case(
        "does not look whether its settings were taken",
        lambda broker: broker.faults.answer("IncrementalAlterConfigs", "POLICY_VIOLATION"),
        does_not_look_at_settings,
        keeps_an_hour,
    ),
    Case(
        "takes an existing topic for a failure",
        lambda broker: broker.faults.close_after("CreateTopics"),
        takes_an_existing_topic_for_a_failure,
        all_of_them,
    ),
)
