"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs of topics, brokers, groups and other resources."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.registry import scenario

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
# Settings whose values belong to the machine or the process.
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
    """One resource of a DescribeConfigs request; None as keys means all."""
    fields = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return part("DescribeConfigs", "DescribeConfigsResource", **fields)


def describe(broker: Exchange, version: int, *resources: Any, note: str = "", **fields: Any) -> Any:
    """Record a DescribeConfigs request."""
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
    """Unknown topics, impossible names, unknown brokers, unknown kinds of resources."""
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
        describe(
            broker,
            version,
            resource(TOPIC, name, ["retention.ms"]),
            resource(TOPIC, name, ["segment.ms"]),
            note="twice",
        )


@scenario
def of_the_broker(broker: Exchange) -> None:
    """The broker's own settings and the cluster's dynamic defaults, except values that belong to the machine."""
    for version in versions("DescribeConfigs"):
        for asked in ("1", ""):
            answer = broker.quietly(
                "DescribeConfigs", version, resources=[resource(BROKER, asked)], include_synonyms=True
            )
            for result in answer.results:
                result.configs = [entry for entry in result.configs if entry.name not in OWN_VALUES]
            broker.record(f"DescribeConfigs v{version} broker {asked!r}", answer, version)


def changed(api: str, kind: int, name: str, *entries: tuple) -> Any:
    """One resource of an alter request; entries are (name, value) or (name, operation, value)."""
    names = ("name", "config_operation", "value") if api == "IncrementalAlterConfigs" else ("name", "value")
    configs = [part(api, "AlterableConfig", **dict(zip(names, entry, strict=True))) for entry in entries]
    return part(api, "AlterConfigsResource", resource_type=kind, resource_name=name, configs=configs)


def incremental(broker: Exchange, version: int, note: str, kind: int, name: str, *entries: tuple, **more: Any) -> None:
    """Record an IncrementalAlterConfigs request for one resource."""
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
        change("unknown operation, validate only", ("retention.ms", -1, "9"), validate_only=True)
        change("unknown setting", ("no.such", SET, "9"))
        change("delete an unknown setting", ("no.such", DELETE, None))
        change("null value", ("retention.ms", SET, None))
        change("bad value beside a good one", ("retention.ms", SET, "x"), ("segment.ms", SET, "5000"))
        change("twice in one request", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
        change("unknown topic", ("retention.ms", SET, "1"), on=broker.name("none"))
        change("empty topic", ("retention.ms", SET, "1"), on="")
        change("nothing")
        settled(broker, name, "cleanup.policy", "compact")
        broker.in_effect()
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
    """Dynamic settings of the broker and of the cluster; read-only settings and nonsense are refused."""
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
    """A topic without its own value gets the cluster's dynamic default, which is named in the synonyms."""
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


@scenario
def odd_numbers(broker: Exchange) -> None:
    """Every number that Java's parser of doubles takes is accepted and answered as Java prints it, also by
    CreateTopics.
    """
    key = "min.cleanable.dirty.ratio"
    for index, value in enumerate(("0.5f", "NaN", "0x1p-1", ".25D", "-0", "1e-4")):
        config = part("CreateTopics", "CreatableTopicConfig", name=key, value=value)
        name = broker.name(f"{index}")
        topic = part(
            "CreateTopics", "CreatableTopic", name=name, num_partitions=1, replication_factor=1, configs=[config]
        )
        broker.ask("CreateTopics", 7, note=value, topics=[topic], timeout_ms=30_000)
        broker.until(
            lambda: broker.quietly("DescribeConfigs", 4, resources=[resource(TOPIC, name, [key])]),  # noqa: B023
            lambda answer: answer.results[0].error_code == 0,
        )
        describe(broker, 4, resource(TOPIC, name, [key]), note=value)


@scenario
def of_groups(broker: Exchange) -> None:
    """A group's settings are stored whether or not the group exists, described with their sources, and checked against
    the broker's bounds.
    """
    name = broker.name("group")

    def change(note: str, *entries: tuple, on: str = name, **more: Any) -> None:
        incremental(broker, 1, note, GROUP, on, *entries, **more)

    change("one", ("consumer.session.timeout.ms", SET, "50000"))
    change(
        "others", ("share.auto.offset.reset", SET, "by_duration:PT5M"), ("share.isolation.level", SET, "read_committed")
    )
    change("heartbeat above the session", ("consumer.heartbeat.interval.ms", SET, "60000"))
    change(
        "session below the heartbeat",
        ("consumer.session.timeout.ms", SET, "46000"),
        ("consumer.heartbeat.interval.ms", SET, "46000"),
    )
    change("below the broker's least", ("consumer.session.timeout.ms", SET, "44999"))
    change("above the broker's most", ("consumer.session.timeout.ms", SET, "60001"))
    change("a topic's setting", ("retention.ms", SET, "1"))
    change("a broker's setting", ("group.consumer.session.timeout.ms", SET, "50000"))
    change("append", ("share.auto.offset.reset", APPEND, "x"))
    change("delete what is not set", ("streams.num.standby.replicas", DELETE, None))
    change("validate only", ("streams.num.standby.replicas", SET, "1"), validate_only=True)
    change("no name", ("consumer.session.timeout.ms", SET, "50000"), on="")
    change("name of anything", ("consumer.session.timeout.ms", SET, "50000"), on=f"{name} / ä")
    for asked in (name, f"{name} / ä"):
        broker.until(
            lambda asked=asked: broker.quietly(
                "DescribeConfigs", 4, resources=[resource(GROUP, asked, ["consumer.session.timeout.ms"])]
            ),
            lambda answer: answer.results[0].configs[0].value == "50000",
        )
        for version in versions("DescribeConfigs"):
            describe(broker, version, resource(GROUP, asked), include_synonyms=True, note=asked)
    broker.ask(
        "AlterConfigs",
        2,
        note="replaced",
        resources=[changed("AlterConfigs", GROUP, name, ("share.heartbeat.interval.ms", "6000"))],
    )
    broker.ask(
        "AlterConfigs",
        2,
        note="bad",
        resources=[changed("AlterConfigs", GROUP, name, ("share.heartbeat.interval.ms", "1"))],
    )
    broker.until(
        lambda: broker.quietly(
            "DescribeConfigs", 4, resources=[resource(GROUP, name, ["share.heartbeat.interval.ms"])]
        ),
        lambda answer: answer.results[0].configs[0].value == "6000",
    )
    describe(broker, 4, resource(GROUP, name), include_synonyms=True, note="replaced")
    broker.ask(
        "AlterConfigs",
        2,
        note="emptied",
        resources=[changed("AlterConfigs", GROUP, each) for each in (name, f"{name} / ä")],
    )


@scenario
def good_beside_bad(broker: Exchange) -> None:
    """Every resource of a request has its own result, and valid ones are changed."""
    for api, last in (("AlterConfigs", 2), ("IncrementalAlterConfigs", 1)):
        for version in range(last + 1):
            name, other = broker.topic(f"{api}-{version}"), broker.topic(f"{api}-{version}-other")

            def entry(key: str, value: str | None, api: str = api) -> tuple:
                return (key, SET, value) if api == "IncrementalAlterConfigs" else (key, value)

            resources = [
                changed(api, TOPIC, name, entry("retention.ms", "123456")),
                changed(api, TOPIC, other, entry("retention.ms", "123456"), entry("segment.ms", "-1")),
                changed(api, TOPIC, "a b", entry("retention.ms", "1")),
                changed(api, TOPIC, broker.name("none"), entry("retention.ms", "1")),
                changed(api, TOPIC, "", entry("retention.ms", "1")),
                changed(api, BROKER, "1", entry("num.partitions", "2")),
                changed(api, BROKER, "", entry("listeners", "A://:1")),
                changed(api, BROKER, "7", entry("log.cleaner.threads", "2")),
                changed(api, BROKER, "one", entry("log.cleaner.threads", "2")),
                changed(api, GROUP, broker.name("group"), entry("no.such", "1")),
                changed(api, CLIENT_METRICS, broker.name("metrics"), entry("interval.ms", "1")),
                changed(api, BROKER_LOGGER, "7", entry("root", "INFO")),
                changed(api, 99, "x", entry("a", "1")),
                changed(api, TOPIC, f"{name}-null", entry("retention.ms", None)),
            ]
            broker.ask(api, version, note="validated", resources=resources, validate_only=True)
            describe(broker, 4, resource(TOPIC, name, ["retention.ms"]), note="validated")
            broker.ask(api, version, note="done", resources=resources)
            settled(broker, name, "retention.ms", "123456")
            describe(broker, 4, resource(TOPIC, other, ["retention.ms", "segment.ms"]), note="done")


@scenario
def unknown_operations(broker: Exchange) -> None:
    """Each kind of resource with an operation that does not exist, beside a valid one."""
    for version in versions("IncrementalAlterConfigs"):
        name = broker.topic(f"beside-{version}")
        good = changed("IncrementalAlterConfigs", TOPIC, name, ("retention.ms", SET, "123456"))
        for note, kind, bad_name, key in (
            ("topic", TOPIC, f"{name}-other", "segment.ms"),
            ("group", GROUP, broker.name("group"), "consumer.session.timeout.ms"),
            ("client metrics", CLIENT_METRICS, broker.name("metrics"), "interval.ms"),
            ("broker", BROKER, "1", "log.cleaner.threads"),
            ("all brokers", BROKER, "", "log.cleaner.threads"),
            ("logger", BROKER_LOGGER, "1", "root"),
        ):
            bad = changed("IncrementalAlterConfigs", kind, bad_name, (key, 9, "9"))
            broker.ask("IncrementalAlterConfigs", version, note=note, resources=[good, bad])
            describe(broker, 4, resource(TOPIC, name, ["segment.bytes"]), note=note)


@scenario
def settings_of_the_broker_replaced(broker: Exchange) -> None:
    """AlterConfigs of a broker removes every setting that it does not name, for one broker and for all."""
    for name in ("1", ""):

        def replace(note: str, *entries: tuple, **more: Any) -> None:
            broker.ask(
                "AlterConfigs",
                2,
                note=f"{note} {name!r}",  # noqa: B023
                resources=[changed("AlterConfigs", BROKER, name, *entries)],  # noqa: B023
                **more,
            )

        def waited(key: str, value: str | None) -> None:
            def current(answer: Any) -> str | None:
                return next((entry.value for entry in answer.results[0].configs), None)

            asked = [resource(BROKER, name, [key])]  # noqa: B023
            broker.until(
                lambda: broker.quietly("DescribeConfigs", 4, resources=asked), lambda answer: current(answer) == value
            )
            describe(broker, 4, *asked, include_synonyms=True, note=f"{key} of {name!r}")  # noqa: B023

        # The log of a new cluster holds a cluster-wide min.insync.replicas, which must stay.
        kept = () if name else (("min.insync.replicas", "1"),)
        replace("two", ("log.cleaner.backoff.ms", "16000"), ("message.max.bytes", "1048589"), *kept)
        waited("log.cleaner.backoff.ms", "16000")
        replace("validated", ("log.cleaner.backoff.ms", "17000"), *kept, validate_only=True)
        replace("read-only", ("num.partitions", "3"), *kept)
        replace("one", ("message.max.bytes", "1048590"), *kept)
        waited("message.max.bytes", "1048590")
        waited("log.cleaner.backoff.ms", "15000" if name else None)
        if not name:
            replace("without the minimum")
        replace("none", *kept)
        waited("message.max.bytes", "1048588" if name else None)
