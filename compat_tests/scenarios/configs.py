"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, of topics, brokers, groups and what else there is."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.registry import scenario

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
# Settings whose values are the machine's or the process's own.
OWN_VALUES = (
    "listeners",
    "advertised.listeners",
    "controller.quorum.bootstrap.servers",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "log.dir",
    "log.dirs",
)


def resource(kind: int, name: str, keys: list[str] | None = None) -> Any:
    """One resource of a DescribeConfigs request; keys None is all of them."""
    fields = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return part("DescribeConfigs", "DescribeConfigsResource", **fields)


def describe(broker: Exchange, version: int, *resources: Any, note: str = "", **fields: Any) -> Any:
    """Send a DescribeConfigs request into the transcript."""
    return broker.ask("DescribeConfigs", version, note=note, resources=list(resources), **fields)


@scenario
def of_a_topic(broker: Exchange) -> None:
    """All settings of a topic with value, source, type, and synonyms when asked for."""
    name = broker.topic(retention_ms="5000", cleanup_policy="compact,delete", segment_bytes="2000000")
    for version in versions("DescribeConfigs"):
        for synonyms in (False, True):
            describe(broker, version, resource(TOPIC, name), include_synonyms=synonyms, note=f"synonyms {synonyms}")
        describe(broker, version, resource(TOPIC, name, ["retention.ms", "no.such", "segment.bytes"]), note="chosen")
        describe(broker, version, resource(TOPIC, name, []), note="no keys")
        if version >= 3:
            describe(broker, version, resource(TOPIC, name), include_documentation=True, note="documentation")


@scenario
def errors(broker: Exchange) -> None:
    """Unknown topics, impossible names, strange brokers, unknown kinds of resources."""
    name = broker.topic()
    for version in versions("DescribeConfigs"):
        for note, asked in (
            ("unknown topic", resource(TOPIC, broker.name("none"))),
            ("bad topic", resource(TOPIC, "a b")),
            ("empty topic", resource(TOPIC, "")),
            ("other broker", resource(BROKER, "7")),
            ("broker without number", resource(BROKER, "one")),
            ("logger of another broker", resource(BROKER_LOGGER, "7")),
            ("kind 0", resource(0, name)),
            ("kind 3", resource(3, name)),
            ("kind 99", resource(99, name)),
            ("group", resource(GROUP, broker.name("group"))),
            ("empty group", resource(GROUP, "")),
            ("client metrics", resource(CLIENT_METRICS, broker.name("metrics"))),
        ):
            describe(broker, version, asked, resource(TOPIC, name, ["retention.ms"]), note=note)
        describe(broker, version, resource(TOPIC, name, ["retention.ms"]), resource(TOPIC, name, ["segment.ms"]), note="twice")


@scenario
def of_the_broker(broker: Exchange) -> None:
    """The broker's own settings and the cluster's dynamic defaults, but for the values that are a machine's own."""
    for version in versions("DescribeConfigs"):
        for asked in ("1", ""):
            answer = broker.quietly("DescribeConfigs", version, resources=[resource(BROKER, asked)], include_synonyms=True)
            for result in answer.results:
                result.configs = [entry for entry in result.configs if entry.name not in OWN_VALUES]
            broker.record(f"DescribeConfigs v{version} broker {asked!r}", answer, version)


def changed(api: str, kind: int, name: str, *entries: tuple) -> Any:
    """One resource of an alter request; entries are (name, value) or (name, operation, value)."""
    names = ("name", "config_operation", "value") if api == "IncrementalAlterConfigs" else ("name", "value")
    configs = [part(api, "AlterableConfig", **dict(zip(names, entry, strict=True))) for entry in entries]
    return part(api, "AlterConfigsResource", resource_type=kind, resource_name=name, configs=configs)


def incremental(broker: Exchange, version: int, note: str, kind: int, name: str, *entries: tuple, **more: Any) -> None:
    """Send an IncrementalAlterConfigs request for one resource."""
    resources = [changed("IncrementalAlterConfigs", kind, name, *entries)]
    broker.ask("IncrementalAlterConfigs", version, note=note, resources=resources, **more)


def settled(broker: Exchange, name: str, key: str, value: str) -> None:
    """Wait until a topic's setting has a value."""
    broker.until(
        lambda: broker.quietly("DescribeConfigs", 4, resources=[resource(TOPIC, name, [key])]),
        lambda answer: answer.results[0].configs[0].value == value,
    )


@scenario
def incrementally_changed(broker: Exchange) -> None:
    """Set, delete, append, subtract; errors change nothing."""
    for version in versions("IncrementalAlterConfigs"):
        name = broker.topic(f"of-{version}")

        def change(note: str, *entries: tuple, on: str = name, **more: Any) -> None:
            incremental(broker, version, note, TOPIC, on, *entries, **more)  # noqa: B023

        change("set", ("retention.ms", SET, "1000"), ("segment.ms", SET, "2000"))
        change("append", ("cleanup.policy", APPEND, "compact"))
        change("append again", ("cleanup.policy", APPEND, "compact"))
        settled(broker, name, "cleanup.policy", "delete,compact")
        change("subtract", ("cleanup.policy", SUBTRACT, "delete"))
        change("subtract what is not there", ("cleanup.policy", SUBTRACT, "delete"))
        change("delete", ("segment.ms", DELETE, None))
        change("delete what is not set", ("segment.bytes", DELETE, None))
        change("validate only", ("retention.ms", SET, "9"), validate_only=True)
        change("append to a number", ("retention.ms", APPEND, "9"))
        change("subtract from a number", ("retention.ms", SUBTRACT, "9"))
        change("unknown operation", ("retention.ms", 9, "9"))
        change("unknown setting", ("no.such", SET, "9"))
        change("delete an unknown setting", ("no.such", DELETE, None))
        change("null value", ("retention.ms", SET, None))
        change("bad value beside a good one", ("retention.ms", SET, "x"), ("segment.ms", SET, "5000"))
        change("twice in one request", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
        change("unknown topic", ("retention.ms", SET, "1"), on=broker.name("none"))
        change("empty topic", ("retention.ms", SET, "1"), on="")
        change("nothing")
        settled(broker, name, "cleanup.policy", "compact")
        describe(broker, 4, resource(TOPIC, name), note="afterwards", include_synonyms=True)


@scenario
def replaced(broker: Exchange) -> None:
    """AlterConfigs replaces everything that was set before."""
    for version in versions("AlterConfigs"):
        name = broker.topic(f"of-{version}", retention_ms="1", segment_ms="2")

        def change(note: str, *entries: tuple, on: str = name, **more: Any) -> None:
            resources = [changed("AlterConfigs", TOPIC, on, *entries)]
            broker.ask("AlterConfigs", version, note=note, resources=resources, **more)  # noqa: B023

        change("bad value", ("retention.ms", "x"))
        change("unknown setting", ("no.such", "x"))
        change("unknown topic", ("retention.ms", "1"), on=broker.name("none"))
        change("validate only", ("retention.ms", "77"), validate_only=True)
        change("null value", ("retention.ms", None))
        change("replace", ("max.message.bytes", "5000"))
        settled(broker, name, "max.message.bytes", "5000")
        describe(broker, 4, resource(TOPIC, name), note="afterwards")


@scenario
def broker_changes(broker: Exchange) -> None:
    """Dynamic settings of the broker and of the cluster; read-only ones and nonsense are refused."""
    for kind, name in ((BROKER, "1"), (BROKER, "")):
        for note, entries in (
            ("dynamic", [("log.cleaner.threads", SET, "2")]),
            ("read-only", [("num.partitions", SET, "2")]),
            ("unknown", [("no.such", SET, "2")]),
            ("bad value", [("log.cleaner.threads", SET, "many")]),
            ("back", [("log.cleaner.threads", DELETE, None)]),
        ):
            incremental(broker, 1, f"{note} for {name!r}", kind, name, *entries)
    incremental(broker, 1, "another broker", BROKER, "7", ("log.cleaner.threads", SET, "2"))
    incremental(broker, 1, "no number", BROKER, "one", ("log.cleaner.threads", SET, "2"))
    for kind in (0, 3, 99):
        incremental(broker, 1, f"kind {kind}", kind, "x", ("a", SET, "2"))
    resources = [changed("IncrementalAlterConfigs", TOPIC, broker.name("same"), ("retention.ms", SET, "1"))] * 2
    broker.ask("IncrementalAlterConfigs", 1, note="resource twice", resources=resources)


@scenario
def topic_defaults_of_the_cluster(broker: Exchange) -> None:
    """A dynamic default of the cluster is what a topic without its own value gets, named in the synonyms."""
    name = broker.topic()
    incremental(broker, 1, "cluster default", BROKER, "", ("log.retention.ms", SET, "86400000"))
    settled(broker, name, "retention.ms", "86400000")
    describe(broker, 4, resource(TOPIC, name, ["retention.ms"]), include_synonyms=True)
    incremental(broker, 1, "own default", BROKER, "1", ("log.retention.ms", SET, "96400000"))
    settled(broker, name, "retention.ms", "96400000")
    describe(broker, 4, resource(TOPIC, name, ["retention.ms"]), include_synonyms=True, note="of the broker")
    incremental(broker, 1, "cluster default back", BROKER, "", ("log.retention.ms", DELETE, None))
    incremental(broker, 1, "own default back", BROKER, "1", ("log.retention.ms", DELETE, None))
    settled(broker, name, "retention.ms", "604800000")
