"""DescribeConfigs and the checks of AlterConfigs answer as a real Kafka 4.3.1 did (`tests/golden/kafka_4_3_1/`).

That broker was given the properties below, then live settings. The files have every row of its answers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pykafkad import config
from pykafkad.errors import INVALID_CONFIG, INVALID_REQUEST, KafkaError
from pykafkad.settings import entries, sources
from tests.rows import in_turn

GOLDEN = Path(__file__).parent.parent / "golden" / "kafka_4_3_1"

PROPERTIES = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:24611,CONTROLLER://localhost:24612
advertised.listeners=PLAINTEXT://localhost:24611,CONTROLLER://localhost:24612
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:24612
log.dirs=/var/lib/kafka
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.minutes=1000
log.roll.hours=5
num.partitions=2
unknown.thing=1
ssl.keystore.password=secret
queued.max.requests= 700  \n"""

LIVE_DEFAULTS = {
    "compression.type": "zstd", "group.consumer.assignment.interval.ms": "900", "log.flush.interval.ms": "5000",
    "log.retention.ms": "123456789", "message.max.bytes": "3000000", "min.insync.replicas": "1",
}  # fmt: skip
LIVE = {"message.max.bytes": "2000000"}

SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
TYPES = {number: name.upper() for name, number in entries.TYPE_IDS.items()} | {0: "UNKNOWN"}

# Intended differences: defaults of pykafkad that these properties do not replace (log.dirs replaces log.dir).
DIFFERENT = {
    row.name
    for row in config.ROWS[config.BROKER].values()
    if row.default != row.kafka_default and row.name != "log.dir" and f"\n{row.name}=" not in PROPERTIES
}

DESCRIBED: dict[str, Callable[[config.Settings], list[entries.Entry]]] = {
    "broker1": entries.describe_broker,
    "brokerdef": entries.describe_broker_defaults,
    "t1": lambda settings: entries.describe_topic(settings, {}),
    "t2": lambda settings: entries.describe_topic(
        settings, {"retention.ms": "5000", "cleanup.policy": "compact", "max.message.bytes": "4000000"}
    ),
    "g1": lambda settings: entries.describe_group(settings, {"consumer.session.timeout.ms": "50000"}),
    "g2": lambda settings: entries.describe_group(settings, {}),
    "c1": lambda settings: entries.describe_client_metrics(settings, {"interval.ms": "1000"}),
}


def _settings() -> config.Settings:
    properties = {name: (text, f"p:{line}") for name, text, line in sources.parse_properties(PROPERTIES)}
    settings = config.Settings.from_properties(properties)
    settings.set_dynamic(LIVE_DEFAULTS, LIVE)
    return settings


def _answered(resource: str) -> dict[str, list[str]]:
    rows = [line.split("\t") for line in (GOLDEN / "describe_configs.tsv").read_text().splitlines()]
    return {row[1]: row[2:] for row in rows if row[0] == resource}


def _columns(entry: entries.Entry) -> list[str]:
    synonyms = "".join(
        f"{SOURCES[source]}:{name}={'null' if text is None else text};" for name, text, source in entry.synonyms
    )
    return [
        "null" if entry.value is None else entry.value, SOURCES[entry.source], "ro" if entry.read_only else "rw",
        "sens" if entry.sensitive else "-", TYPES[entry.type_id], synonyms,
    ]  # fmt: skip


@pytest.mark.parametrize("resource", DESCRIBED)
def test_describe_configs_answers_what_kafka_answers(resource: str) -> None:
    """Names, values, sources, read-only and sensitive flags, types and ordered synonyms are equal for every setting."""
    ours = {entry.name: _columns(entry) for entry in DESCRIBED[resource](_settings())}
    kafka = _answered(resource)
    if resource == "broker1":
        assert {name for name in kafka if ours[name] != kafka[name]} == DIFFERENT
        ours.update({name: kafka[name] for name in DIFFERENT})
    assert ours == kafka


def test_settings_without_a_file_are_shown_as_set_at_start() -> None:
    """Without a property file, clients see the value as set at start, and Kafka's default among its synonyms."""
    settings = config.Settings.from_properties(sources.gather(None, {}, [], {}))
    ours = {entry.name: _columns(entry) for entry in entries.describe_broker(settings)}
    kafka = _answered("broker1")
    for name, (text, _) in sources.WITHOUT_FILE.items():
        assert ours[name] == kafka[name] and ours[name][:2] == [text, "STATIC_BROKER_CONFIG"]


# Live values whose error text is pykafkad's own: tests/settings/test_cross_checks.py and
# compat_tests/scenarios/setting_values.py test them.
NOT_CHECKED = {
    "log.cleaner.threads",
    "num.io.threads",
    "listeners",
    "max.connections.per.ip.overrides",
    "cordoned.log.dirs",
    "metric.reporters",
}


def _changes() -> list[tuple[str, ...]]:
    rows = [line.split("\t") for line in (GOLDEN / "alter_configs.tsv").read_text().splitlines()]
    return [
        tuple(row)
        for row in rows
        if row[2] == "SET" and row[1] not in ("nosuch", "bad name") and (row[0] != "GROUP" or row[1])
    ]


@in_turn("row", [row for row in _changes() if row[3] not in NOT_CHECKED])
def test_live_changes_are_answered_as_by_kafka(row: tuple[str, ...]) -> None:
    """Every change that the real broker was sent gets the same answer, error and sentence."""
    kind, resource, _, name, text, result, *sentence = row
    scope = {
        "TOPIC": config.TOPIC,
        "GROUP": config.GROUP,
        "CLIENT_METRICS": config.CLIENT_METRICS,
        "BROKER": config.BROKER,
    }[kind]
    code = {"InvalidConfigurationException": INVALID_CONFIG, "InvalidRequestException": INVALID_REQUEST, "OK": None}[
        result
    ]

    def change() -> None:
        if scope == config.BROKER:
            config.validate_broker_changes({name: text}, config.Settings({}), one_broker=bool(resource))
        else:
            config.validate_overrides(scope, {name: text}, config.Settings({}))

    if code is None:
        change()
        return
    with pytest.raises(KafkaError) as refused:
        change()
    assert (refused.value.code, refused.value.text) == (code, sentence[0])


def test_a_live_value_in_milliseconds_hides_a_static_one_in_minutes() -> None:
    """The topic follows log.retention.ms. After that is deleted, log.retention.minutes counts again."""
    settings = _settings()
    assert config.topic_settings(settings, {}).retention_ms == 123456789
    settings.set_dynamic({}, {})
    assert config.topic_settings(settings, {}).retention_ms == 1000 * 60_000


def test_secrets_are_hidden() -> None:
    """A password's value is null in the entry and in all its synonyms."""
    entry = next(entry for entry in entries.describe_broker(_settings()) if entry.name == "ssl.keystore.password")
    assert entry.sensitive and entry.value is None
    assert [text for _, text, _ in entry.synonyms] == [None]


def test_a_listeners_own_setting_overrides_the_general_one() -> None:
    """listener.name.<listener>.<setting> has the general setting as its synonym (KIP-103)."""
    settings = config.Settings({"listener.name.internal.ssl.protocol": "TLSv1.2"})
    synonyms = entries.broker_synonyms(settings, "listener.name.internal.ssl.protocol")
    assert [name for name, _, _ in synonyms] == ["listener.name.internal.ssl.protocol", "ssl.protocol"]


def test_a_throttle_is_shown_only_while_it_is_set() -> None:
    """The rates of KIP-73 are set live only, and Kafka shows no default."""
    name = "leader.replication.throttled.rate"
    settings = config.Settings({})
    assert name not in {entry.name for entry in entries.describe_broker(settings)}
    settings.set_dynamic({}, {name: "1000"})
    (entry,) = (entry for entry in entries.describe_broker(settings) if entry.name == name)
    assert (entry.value, entry.synonyms) == ("1000", [(name, "1000", entries.DYNAMIC_BROKER_CONFIG)])


def test_created_topics_show_the_brokers_values_as_typed() -> None:
    """The values are in the topic's unit with their sources. Settings without a value show the default."""
    typed = {
        "log.retention.minutes": "-1",
        "unclean.leader.election.enable": "TRUE",
        "log.cleanup.policy": "delete , compact",
    }
    settings = config.Settings.from_properties(
        {name: (text, "") for name, text in {"node.id": "1", "process.roles": "broker,controller", **typed}.items()}
    )
    settings.set_dynamic({"log.cleanup.policy": " delete"}, {"log.roll.ms": "070"})
    found = {
        entry.name: (entry.value, entry.source)
        for entry in entries.describe_created_topic(settings, {"segment.bytes": "+9000000"})
    }
    assert found["retention.ms"] == ("-60000", entries.STATIC_BROKER_CONFIG)
    assert found["unclean.leader.election.enable"] == ("TRUE", entries.STATIC_BROKER_CONFIG)
    assert found["cleanup.policy"] == (" delete", entries.DYNAMIC_DEFAULT_BROKER_CONFIG)
    assert found["segment.ms"] == ("070", entries.DYNAMIC_BROKER_CONFIG)
    assert found["segment.bytes"] == ("+9000000", entries.TOPIC_CONFIG)
    assert found["compression.type"] == ("producer", entries.DEFAULT_CONFIG) and list(found) == sorted(found)
