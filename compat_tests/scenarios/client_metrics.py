"""Client-metrics resources, and the answers clients get: GetTelemetrySubscriptions, PushTelemetry, ListConfigResources.

Kafka answers the two telemetry APIs even where it does not advertise them; without a plug-in it drops pushed metrics.
Client instances have fixed ids here, so that subscription ids, which depend on them, can be compared.
"""

from __future__ import annotations

import hashlib
import time
from typing import Any

from compat_tests.scenarios.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    changed,
    describe,
    incremental,
    resource,
)
from compat_tests.scenarios.exchange import Connection, Exchange, versions
from compat_tests.scenarios.registry import scenario

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
THROTTLING_QUOTA_EXCEEDED = 89


def instance_id(name: str) -> bytes:
    """A client instance id that is the same in every run."""
    return hashlib.sha256(name.encode()).digest()[:16]


def subscribe(broker: Exchange, name: str, **values: str) -> None:
    """Set a subscription, not recorded, and wait until it takes effect; underscores stand for dots."""
    entries = [(key.replace("_", "."), SET, value) for key, value in values.items()]
    answer = broker.quietly(
        "IncrementalAlterConfigs", 1, resources=[changed("IncrementalAlterConfigs", CLIENT_METRICS, name, *entries)]
    )
    assert answer.responses[0].error_code == 0, answer
    broker.until(
        lambda: broker.quietly("ListConfigResources", 0),
        lambda answer: name in [row.resource_name for row in answer.config_resources],
    )
    broker.in_effect()


def unsubscribe(broker: Exchange, *names: str) -> None:
    """Remove subscriptions, not recorded."""
    broker.quietly("AlterConfigs", 2, resources=[changed("AlterConfigs", CLIENT_METRICS, name) for name in names])
    broker.until(
        lambda: broker.quietly("ListConfigResources", 0),
        lambda answer: not set(names) & {row.resource_name for row in answer.config_resources},
    )
    broker.in_effect()


def get(broker: Exchange, note: str, name: str, on: Connection | None = None) -> Any:
    """Record a GetTelemetrySubscriptions request."""
    return broker.ask("GetTelemetrySubscriptions", 0, note=note, on=on, client_instance_id=instance_id(name))


def push(broker: Exchange, note: str, name: str, subscription_id: int, **fields: Any) -> Any:
    """Record a PushTelemetry request."""
    wanted = {"terminating": False, "compression_type": 0, "metrics": b"", **fields}
    return broker.ask(
        "PushTelemetry", 0, note=note, client_instance_id=instance_id(name), subscription_id=subscription_id, **wanted
    )


@scenario
def subscriptions(broker: Exchange) -> None:
    """Which metrics a client must push and how often; subscription ids are checksums over both."""
    get(broker, "nothing is subscribed", "none")
    answer = broker.quietly("GetTelemetrySubscriptions", 0)
    again = broker.quietly("GetTelemetrySubscriptions", 0)
    broker.record(
        "ids of their own",
        f"{answer.client_instance_id == again.client_instance_id} {answer.requested_metrics} {answer.push_interval_ms}",
    )
    for number, (note, metrics, interval) in enumerate((
        ("one metric", "org.apache.kafka.producer.", 60_000),
        ("several", "a.b,c.d,e.f,org.apache.kafka.consumer.fetch.manager.,x", 1000),
        ("thirteen", ",".join(f"metric.{index}" for index in range(13)), 100),
        ("twelve", ",".join(f"m{index * 7}" for index in range(12)), 100),
        ("forty", ",".join(f"some.metric.{index * index}" for index in range(40)), 3_600_000),
        ("all", "*", 5000),
        ("all and one", "*,a.b", 5000),
        ("umlauts", "größe,höhe,a", 5000),
    )):  # fmt: skip
        name = f"{number}-{broker.name('one')}"
        subscribe(broker, name, metrics=metrics, interval_ms=str(interval))
        get(broker, note, note)
        unsubscribe(broker, name)
    names = [broker.name(f"many-{number}") for number in range(3)]
    for name, metrics, interval in zip(names, ("a,b,c", "c,d", "d,e,f"), ("7000", "3000", "9000"), strict=True):
        subscribe(broker, name, metrics=metrics, interval_ms=interval)
    answer = broker.quietly("GetTelemetrySubscriptions", 0, client_instance_id=instance_id("many"))
    broker.record("of three subscriptions", f"{sorted(answer.requested_metrics)} {answer.push_interval_ms}")
    unsubscribe(broker, *names)


@scenario
def matching(broker: Exchange) -> None:
    """A subscription applies to the clients that match all its patterns, each pattern as a whole."""
    fields = {"client_software_name": "scenario.lib", "client_software_version": "1.2.3"}
    text_id = "[A-Za-z0-9_-]{22}"
    for number, (note, match) in enumerate((
        ("client id", "client_id=scenario"),
        ("part of a client id", "client_id=scen"),
        ("pattern", "client_id=sc.*"),
        ("software", "client_software_name=scenario\\.lib,client_software_version=1\\..*"),
        ("other software", "client_software_name=unknown"),
        ("one of two", "client_id=scenario,client_software_version=2.*"),
        ("address", "client_source_address=127\\.0\\.0\\.1"),
        ("other address", "client_source_address=10\\..*"),
        ("port", "client_source_port={port}"),
        ("other port", "client_source_port=1"),
        ("instance", f"client_instance_id={text_id}"),
        ("blanks", " client_id = scenario "),
    )):  # fmt: skip
        name = f"{number}-{broker.name('match')}"
        # The broker forgets an instance when the connection it used last closes, so each instance has its own.
        connection = broker.connect()
        broker.quietly("ApiVersions", 3, on=connection, **fields)
        match = match.replace("{port}", str(connection.socket.getsockname()[1]))
        subscribe(broker, name, metrics="matched", interval_ms="500", match=match)
        get(broker, note, note, on=connection)
        if "software" in note:
            get(broker, f"{note}, of a client that did not tell its own", f"{note} untold", on=broker.connect())
        unsubscribe(broker, name)


@scenario
def pushes(broker: Exchange) -> None:
    """Pushes and requests are accepted at their times; wrong ones have their own errors."""
    name = broker.name("pushed")
    subscribe(broker, name, metrics="*", interval_ms="3600000")
    subscription = get(broker, "first", "a")
    known = subscription.subscription_id
    get(broker, "again at once", "a")
    push(broker, "at once", "a", known, metrics=b"")
    push(broker, "again at once", "a", known)
    get(broker, "after a push", "a")
    push(broker, "the last one", "a", known, terminating=True)
    push(broker, "after the last one", "a", known)
    get(broker, "after the end", "a")
    get(broker, "b", "b")
    push(broker, "wrong subscription", "b", 7)
    get(broker, "after a wrong subscription", "b")
    get(broker, "once more", "b")
    broker.ask("PushTelemetry", 0, note="reserved id", client_instance_id=bytes(15) + b"\1", subscription_id=1)
    broker.ask("PushTelemetry", 0, note="no id", client_instance_id=bytes(16), subscription_id=1)
    for note, fields in (
        ("unknown compression", {"compression_type": 5}),
        ("negative compression", {"compression_type": -1}),
        ("too large", {"metrics": bytes(1024 * 1024 + 1)}),
        ("as large as may be", {"metrics": bytes(1024 * 1024)}),
        ("unknown compression, wrong subscription", {"compression_type": 5, "subscription_id": 8}),
        ("too large, the last one", {"metrics": bytes(1024 * 1024 + 1), "terminating": True}),
        ("nobody reads it", {"metrics": b"no metrics at all"}),
    ):
        answer = get(broker, f"before {note}", note)
        push(broker, note, note, fields.pop("subscription_id", answer.subscription_id), **fields)
        get(broker, f"after {note}", note)
        push(broker, f"after {note}", note, answer.subscription_id)
    push(broker, "without a question", "c", 3)
    # A changed subscription starts anew; a short interval lets clients push again.
    subscribe(broker, f"{name}-2", metrics="a", interval_ms="100")
    answer = get(broker, "changed subscriptions", "a")
    push(broker, "old subscription", "a", known)
    time.sleep(0.15)
    push(broker, "after the interval", "a", answer.subscription_id)
    time.sleep(0.15)
    get(broker, "asked after the interval", "a")
    unsubscribe(broker, name, f"{name}-2")


@scenario
def resources_listed(broker: Exchange) -> None:
    """Every resource with settings: topics and brokers always, subscriptions and groups once something was set."""
    topic, metrics, group = broker.topic(), broker.name("metrics"), broker.name("group")
    subscribe(broker, metrics, metrics="a")
    incremental(broker, 1, "group", GROUP, group, ("consumer.session.timeout.ms", SET, "50000"))

    def listed(note: str, version: int, types: list[int]) -> Any:
        answer = broker.quietly("ListConfigResources", version, resource_types=types)
        brokers = (BROKER, BROKER_LOGGER)
        answer.config_resources = [
            row
            for row in answer.config_resources
            if row.resource_name.startswith(broker.prefix) or row.resource_type in brokers
        ]
        if note:
            broker.record(f"ListConfigResources v{version} {note}", answer, version)
        return answer

    broker.until(lambda: listed("", 1, [GROUP]), lambda answer: answer.config_resources)
    for version in versions("ListConfigResources"):
        listed("all", version, [])
    for types in (
        [TOPIC],
        [BROKER],
        [BROKER_LOGGER],
        [CLIENT_METRICS],
        [GROUP],
        [TOPIC, GROUP],
        [GROUP, GROUP],
        [0],
        [1],
        [3],
        [99],
        [-1],
        [TOPIC, 3],
    ):
        listed(str(types), 1, types)
    incremental(broker, 1, "group back", GROUP, group, ("consumer.session.timeout.ms", DELETE, None))
    unsubscribe(broker, metrics)
    broker.until(lambda: listed("", 1, [GROUP]), lambda answer: not answer.config_resources)
    listed("afterwards", 1, [])
    assert topic


@scenario
def subscription_settings(broker: Exchange) -> None:
    """A subscription's settings are validated alone and together and described with their sources.

    The subscription is gone when its last setting is removed.
    """
    name = broker.name("metrics")

    def change(note: str, *entries: tuple, on: str = name, **more: Any) -> None:
        incremental(broker, 1, note, CLIENT_METRICS, on, *entries, **more)

    for value in ("100", "3600000", "99", "3600001", "-1", "x", "", "1.5", " 500 "):
        change(f"interval {value!r}", ("interval.ms", SET, value))
    for value in ("", "a", "a,b", "a, b", "a,a", "a,,b", "*", "*,*", "no metric"):
        change(f"metrics {value!r}", ("metrics", SET, value))
    for value in ("", "client_id=a", "client_id=a,client_id=b", "client_id=a,client_id=a", "client_id=", "client_id",
                  "=a", "no_such=a", "client_id=a=b", "client_id=[a-z", "client_id=(", "client_id=*", " client_id = a ",
                  "client_source_port=9.*,client_software_name=x"):  # fmt: skip
        change(f"match {value!r}", ("match", SET, value))
    change("unknown", ("no.such", SET, "1"))
    change("unknown deleted", ("no.such", DELETE, None))
    change("no name", ("interval.ms", SET, "1000"), on="")
    change("name of anything", ("interval.ms", SET, "1000"), on=f"{name} / ä")
    change("append", ("metrics", APPEND, "appended"))
    change("append what is there", ("metrics", APPEND, "appended"))
    change("subtract", ("metrics", SUBTRACT, "appended"))
    change("append to a number", ("interval.ms", APPEND, "1"))
    change("validate only", ("interval.ms", SET, "777"), validate_only=True)
    change("good and bad", ("interval.ms", SET, "888"), ("match", SET, "x"))
    subscribe(broker, name, interval_ms="12345", metrics="last")
    for asked in (name, broker.name("nothing")):
        for version in versions("DescribeConfigs"):
            describe(broker, version, resource(CLIENT_METRICS, asked), include_synonyms=True, note=asked)
    describe(broker, 4, resource(CLIENT_METRICS, name, ["match"]), note="chosen")
    broker.ask(
        "AlterConfigs", 2, note="bad", resources=[changed("AlterConfigs", CLIENT_METRICS, name, ("interval.ms", "1"))]
    )
    broker.ask(
        "AlterConfigs",
        2,
        note="replaced",
        resources=[changed("AlterConfigs", CLIENT_METRICS, name, ("interval.ms", "1000"))],
    )
    broker.ask(
        "AlterConfigs",
        2,
        note="no name",
        resources=[changed("AlterConfigs", CLIENT_METRICS, "", ("interval.ms", "1000"))],
    )
    unsubscribe(broker, name, f"{name} / ä")
    describe(broker, 4, resource(CLIENT_METRICS, name), note="gone")
