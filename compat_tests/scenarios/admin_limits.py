"""Admin requests at their limits: expired timeouts, sizes, repetitions, and settings of groups, metrics and loggers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from compat_tests.scenarios.configs import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    changed,
    describe,
    incremental,
    resource,
)
from compat_tests.scenarios.exchange import ZERO_UUID, Exchange, part, versions
from compat_tests.scenarios.registry import scenario
from compat_tests.scenarios.topics import assigned, create, partition_count, wanted

LARGEST = 10_000


def growing(name: str, count: int) -> Any:
    """One topic of a CreatePartitions request."""
    return part("CreatePartitions", "CreatePartitionsTopic", name=name, count=count, assignments=None)


@scenario
def timeouts_that_are_over(broker: Exchange) -> None:
    """With no time left nothing is done and every topic is REQUEST_TIMED_OUT, unless nothing would change anyway."""
    name = broker.topic("old")
    new = broker.name("new")
    for timeout_ms in (0, -1):
        note = f"timeout {timeout_ms}"
        for version in versions("CreateTopics"):
            topics = [wanted(new), wanted("a/b"), wanted(broker.name("two")), wanted(broker.name("two"))]
            broker.ask("CreateTopics", version, note=note, topics=topics, timeout_ms=timeout_ms)
        repeated = [wanted(new), wanted(new)]
        broker.ask("CreateTopics", 7, note=f"{note}, nothing to do", topics=repeated, timeout_ms=timeout_ms)
        for version in versions("CreatePartitions"):
            topics = [growing(name, 5), growing(broker.name("none"), 5)]
            broker.ask("CreatePartitions", version, note=note, topics=topics, timeout_ms=timeout_ms)
        states = [part("DeleteTopics", "DeleteTopicState", name=each) for each in (name, broker.name("none"))]
        broker.ask("DeleteTopics", 6, note=note, topics=states, timeout_ms=timeout_ms)
        broker.ask("DeleteTopics", 5, note=note, topic_names=[name], timeout_ms=timeout_ms)
        broker.ask("DeleteTopics", 6, note=f"{note}, nothing to do", topics=[], timeout_ms=timeout_ms)
    partition_count(broker, new)
    partition_count(broker, name)


@scenario
def creations_that_are_too_large(broker: Exchange) -> None:
    """More than 10 000 partitions, or records, in one request are refused for all its topics."""
    name, other = broker.name("large"), broker.name("other")
    create(broker, 7, wanted(name, LARGEST + 1), wanted(other), note="partitions", validate_only=True)
    create(broker, 7, wanted(name, LARGEST), note="records", validate_only=True)
    create(broker, 7, wanted(name, 0), wanted(other, 2_000_000_000), note="far too many")
    create(broker, 7, wanted(name, LARGEST - 1), note="just right", validate_only=True)


@scenario
def changes_that_are_too_large(broker: Exchange) -> None:
    """More than 10 000 settings in one request are refused for all its resources, even invalid ones; none is set."""
    name = broker.name("some")
    entries = [("consumer.session.timeout.ms", SET, "50000")]
    resources = [
        changed("IncrementalAlterConfigs", GROUP, f"{name}{number}", *entries) for number in range(LARGEST + 1)
    ]
    resources.append(changed("IncrementalAlterConfigs", GROUP, broker.name("wrong"), ("no.such", SET, "1")))
    resources.append(changed("IncrementalAlterConfigs", TOPIC, broker.name("none"), ("retention.ms", SET, "1")))
    answer = broker.quietly("IncrementalAlterConfigs", 1, resources=resources, validate_only=True)
    told = Counter((row.error_code, bool(row.error_message)) for row in answer.responses)
    broker.record("IncrementalAlterConfigs v1", f"{dict(told)}")


@scenario
def repeated_and_hidden_names(broker: Exchange) -> None:
    """A name that occurs three times, the metadata log's name, colliding names, and names that are invalid as well."""
    broker.topic("a.b")
    three = [wanted(broker.name("three")), wanted(broker.name("three"), 2), wanted(broker.name("three"), 3)]
    create(broker, 7, *three, wanted(broker.name("one")), note="three times")
    create(broker, 7, wanted("__cluster_metadata"), note="the metadata log")
    create(broker, 7, wanted(broker.name("a_b"), 0, 0, {"no.such": "1"}), note="several reasons")
    create(broker, 7, wanted(broker.name("c_d")), wanted(broker.name("c.d")), note="collide with each other")
    create(broker, 7, wanted(broker.name("m"), 2, -1, assignments=assigned((0, [1]))), note="assignment and count")
    ids = [part("DeleteTopics", "DeleteTopicState", topic_id=b"z" * 16, name=None)] * 2
    names = [part("DeleteTopics", "DeleteTopicState", name=each) for each in ("", "a/b", "twice", "twice")]
    broker.ask("DeleteTopics", 6, topics=ids + names, timeout_ms=10_000)


@scenario
def malformed_metadata(broker: Exchange) -> None:
    """Topics without a name, and ids where the version has none, fail the whole request with one error."""
    for version in (10, 11, 12, 13):
        for note, topic_id in (("neither", ZERO_UUID), ("an id", b"x" * 16)):
            topics = [part("Metadata", "MetadataRequestTopic", topic_id=topic_id, name=None)]
            broker.ask("Metadata", version, note=note, topics=topics)


@scenario
def settings_together(broker: Exchange) -> None:
    """Values that contradict others, lists, repeated keys, and a minimum of in-sync replicas for one broker."""
    name = broker.topic()
    values = [("min.compaction.lag.ms", SET, "100"), ("max.compaction.lag.ms", SET, "10")]
    incremental(broker, 1, "lags", TOPIC, name, *values)
    incremental(broker, 1, "append to a default", TOPIC, name, ("cleanup.policy", APPEND, "compact,delete"))
    incremental(broker, 1, "append nonsense", TOPIC, name, ("cleanup.policy", APPEND, "burn"))
    incremental(broker, 1, "subtract all", TOPIC, name, ("cleanup.policy", SUBTRACT, "delete,compact"))
    incremental(broker, 1, "in-sync replicas", TOPIC, name, ("min.insync.replicas", SET, "1"))
    incremental(broker, 1, "of a broker", BROKER, "1", ("min.insync.replicas", SET, "1"))
    incremental(broker, 1, "of the cluster, removed", BROKER, "", ("min.insync.replicas", DELETE, None))
    incremental(broker, 1, "of the cluster", BROKER, "", ("min.insync.replicas", SET, "1"))
    incremental(broker, 1, "append to a number", BROKER, "1", ("log.retention.ms", APPEND, "1"))
    for note, entries in (("twice", [("retention.ms", "1"), ("retention.ms", "2")]), ("none", [])):
        broker.ask("AlterConfigs", 2, note=f"key {note}", resources=[changed("AlterConfigs", TOPIC, name, *entries)])
    for kind, on in ((BROKER_LOGGER, "1"), (99, "x"), (BROKER, "7"), (BROKER, "one")):
        broker.ask("AlterConfigs", 2, note=f"kind {kind} {on}", resources=[changed("AlterConfigs", kind, on)])
    for api in ("AlterConfigs", "IncrementalAlterConfigs"):
        broker.ask(api, 1, note="no resources", resources=[])
    describe(broker, 4, note="no resources")


@scenario
def groups_and_metrics(broker: Exchange) -> None:
    """Groups and client-metrics subscriptions have settings before they exist; their names and values are validated."""
    for kind, key, good in ((GROUP, "consumer.session.timeout.ms", "50000"), (CLIENT_METRICS, "interval.ms", "5000")):
        name = broker.name(f"of-{kind}")
        describe(broker, 4, resource(kind, name), include_synonyms=True, note=f"{kind} defaults")
        incremental(broker, 1, f"{kind} set", kind, name, (key, SET, good))
        broker.until(
            lambda kind=kind, name=name, key=key: broker.quietly(
                "DescribeConfigs", 4, resources=[resource(kind, name, [key])]
            ),
            lambda answer, good=good: answer.results[0].configs[0].value == good,
        )
        describe(broker, 4, resource(kind, name, [key]), include_synonyms=True, note=f"{kind} changed")
        incremental(broker, 1, f"{kind} unknown", kind, name, ("no.such", SET, "1"))
        incremental(broker, 1, f"{kind} bad value", kind, name, (key, SET, "x"))
        incremental(broker, 1, f"{kind} too small", kind, name, (key, SET, "1"))
        incremental(broker, 1, f"{kind} empty name", kind, "", (key, SET, good))
        incremental(broker, 1, f"{kind} back", kind, name, (key, DELETE, None))


@scenario
def log_levels(broker: Exchange) -> None:
    """Log levels of the broker: the operations and logger names that are refused."""
    for version in versions("IncrementalAlterConfigs"):
        for note, on, entry in (
            ("check", "1", ("root", SET, "DEBUG")),
            ("bad level", "1", ("root", SET, "LOUD")),
            ("removal", "1", ("root", DELETE, None)),
            ("append", "1", ("root", APPEND, "INFO")),
            ("subtract", "1", ("root", SUBTRACT, "INFO")),
            ("unknown logger", "1", ("no.such.logger", SET, "INFO")),
            ("another broker", "7", ("root", SET, "INFO")),
            ("no number", "one", ("root", SET, "INFO")),
            ("no broker", "", ("root", SET, "INFO")),
        ):
            incremental(broker, version, note, BROKER_LOGGER, on, entry, validate_only=True)
