"""Settings as the broker sees them: types, warnings, live changes, inheritance by topics."""

from __future__ import annotations

from copy import copy

import pytest

from pykafkad import config
from pykafkad.errors import INVALID_CONFIG, ConfigError, KafkaError
from pykafkad.settings import authorizer_settings, notices


def _settings(**named: str) -> config.Settings:
    return config.Settings.from_properties({name.replace("_", "."): (text, "test:1") for name, text in named.items()})


def test_defaults_are_a_broker_for_tests() -> None:
    """Without settings there is a node id, both roles, and internal topics with one replica."""
    settings = config.Settings.from_properties({})
    assert settings.node_id == 1
    assert settings.process_roles == {"broker", "controller"}
    assert settings.offsets_topic_replication_factor == 1
    assert settings.log_directories == ("pykafkad-data",)
    assert settings.warnings == []


def test_settings_are_typed() -> None:
    """Values are numbers, booleans and tuples instead of texts."""
    settings = _settings(
        num_partitions="3", delete_topic_enable="false", listeners="PLAINTEXT://:1,OTHER://:2", log_dirs="/a,/b"
    )
    assert (settings.num_partitions, settings.delete_topic_enable) == (3, False)
    assert settings.listeners == ("PLAINTEXT://:1", "OTHER://:2")
    assert settings.log_directories == ("/a", "/b")
    assert settings.log_retention_ms is None


def test_an_unknown_attribute_is_an_error() -> None:
    """A typing error in the code cannot read or write a setting, because the class has slots."""
    settings = _settings()
    with pytest.raises(AttributeError):
        settings.num_partition  # noqa: B018
    with pytest.raises(AttributeError):
        settings.num_partition = 1


def test_an_invalid_value_names_origin_setting_and_what_is_allowed() -> None:
    """The message has what somebody needs to correct a server.properties."""
    with pytest.raises(ConfigError) as error:
        config.Settings.from_properties({"num.partitions": ("0", "server.properties:12")})
    assert str(error.value) == (
        "server.properties:12: num.partitions: "
        "Invalid value 0 for configuration num.partitions: Value must be at least 1"
    )


def test_warnings_name_settings_without_effect() -> None:
    """A broker with unknown names or unused settings still starts."""
    settings = config.Settings.from_properties({
        "zookeeper.connect": ("localhost:2181", "p:1"),
        "num.network.threads": ("8", "p:2"),
        "listener.name.internal.ssl.provider": ("SunJSSE", "p:3"),
        "listener.name.internal.ssl.protocol": ("TLSv1.2", "p:3"),
        "num.partitions": ("1", "p:4"),
        "num.partition": ("1", "p:5"),
        "retention.ms": ("1", "p:6"),
        "cleanup.policy": ("compact", "p:7"),
        "leader.replication.throttled.replicas": ("*", "p:8"),
    })  # fmt: skip
    of_topics = "is a setting of topics, not of brokers, and is ignored"
    assert settings.warnings == [
        "p:1: zookeeper.connect is not a setting of Kafka 4.3.1 and is ignored",
        "p:3: listener.name.internal.ssl.provider has no effect in this version of pykafkad",
        "p:5: num.partition is not a setting of Kafka 4.3.1 and is ignored (did you mean num.partitions?)",
        f"p:6: retention.ms {of_topics}; the broker's setting is log.retention.ms",
        f"p:7: cleanup.policy {of_topics}; the broker's setting is log.cleanup.policy",
        f"p:8: leader.replication.throttled.replicas {of_topics}",
    ]
    assert settings.without_effect == ["num.network.threads"]


def test_node_id_and_broker_id_are_the_same_setting() -> None:
    """Either may be given. Both must agree."""
    assert _settings(broker_id="7").node_id == 7
    assert _settings(node_id="7").broker_id == 7
    with pytest.raises(ConfigError, match=r"node.id=1 must equal broker.id=2"):
        _settings(node_id="1", broker_id="2")


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"process_roles": "broker"}, "process.roles: a broker alone needs to know where the controllers are"),
        ({"log_dirs": "/a,/a"}, "names a directory twice"),
        ({"group_min_session_timeout_ms": "9000000"}, "must not be above group.max.session.timeout.ms"),
        (
            {"group_max_session_timeout_ms": "1"},
            "group.max.session.timeout.ms: group.min.session.timeout.ms must not be above",
        ),
    ],
)
def test_contradicting_values_are_refused(properties: dict[str, str], words: str) -> None:
    """Each value is valid alone. The error names one of them and its origin."""
    with pytest.raises(ConfigError, match=words):
        _settings(**properties)


def test_live_values_override_static_ones() -> None:
    """This broker's live value comes first, then the live default of all brokers, server.properties, the default
    (KIP-226)."""
    settings = _settings(message_max_bytes="10")
    settings.set_dynamic({"message.max.bytes": "20"}, {"message.max.bytes": "30"})
    assert settings.message_max_bytes == 30
    settings.set_dynamic({"message.max.bytes": "20"}, {})
    assert settings.message_max_bytes == 20
    settings.set_dynamic({}, {})
    assert settings.message_max_bytes == 10
    settings = _settings()
    settings.set_dynamic({"log.retention.ms": "5"}, {})
    settings.set_dynamic({}, {})
    assert settings.log_retention_ms is None


def test_an_invalid_live_value_is_skipped() -> None:
    """Such a value may be in the metadata log, written by another version. The next weaker value counts."""
    settings = _settings(message_max_bytes="10")
    settings.set_dynamic({"message.max.bytes": "20"}, {"message.max.bytes": "many", "no.such": "1"})
    assert settings.message_max_bytes == 20


def test_topics_inherit_broker_settings() -> None:
    """The first unit that is set counts. Minutes and hours become milliseconds. A negative time is unlimited."""
    assert config.topic_settings(_settings(), {}).retention_ms == 7 * 24 * 3_600_000
    assert config.topic_settings(_settings(log_retention_hours="2"), {}).retention_ms == 7_200_000
    assert (
        config.topic_settings(_settings(log_retention_hours="2", log_retention_minutes="3"), {}).retention_ms == 180_000
    )
    assert config.topic_settings(_settings(log_retention_minutes="3", log_retention_ms="4"), {}).retention_ms == 4
    assert config.topic_settings(_settings(log_retention_hours="-1"), {}).retention_ms == -1
    assert config.topic_settings(_settings(log_flush_scheduler_interval_ms="9"), {}).flush_ms == 9
    assert (
        config.topic_settings(_settings(log_flush_scheduler_interval_ms="9", log_flush_interval_ms="8"), {}).flush_ms
        == 8
    )


def test_a_topics_own_settings_override_the_brokers() -> None:
    """Unknown and invalid overrides of an older log are skipped."""
    values = config.topic_settings(
        _settings(), {"retention.ms": "5", "cleanup.policy": "compact, delete", "old.one": "1", "segment.ms": "x"}
    )
    assert (values.retention_ms, values.cleanup_policy, values.segment_ms) == (
        5,
        {"compact", "delete"},
        7 * 24 * 3_600_000,
    )
    assert values.compacted and values.deleted
    neither = config.topic_settings(_settings(), {"cleanup.policy": ""})
    assert not neither.compacted and not neither.deleted


def test_the_internal_segment_size_overrides_the_segment_size() -> None:
    """Kafka's own tests use it to roll segments often, so the minimum of 1 MiB does not hold for it."""
    assert config.topic_settings(_settings(), {"internal.segment.bytes": "100"}).segment_bytes == 100


def test_topics_without_overrides_share_one_object_until_a_live_change() -> None:
    """Ten thousand partitions share one set of defaults."""
    settings = _settings()
    first = config.topic_settings(settings, {})
    assert config.topic_settings(settings, {}) is first
    settings.set_dynamic({"log.retention.ms": "5"}, {})
    assert first.retention_ms != 5
    assert config.topic_settings(settings, {}).retention_ms == 5


@pytest.mark.parametrize("expression", ["(", "a{2,1}", r"(a)\1", "(a{1000}){1000}"])
def test_an_invalid_regular_expression_is_refused(expression: str) -> None:
    """Also one that is too large, and one that only Java knows."""
    with pytest.raises(KafkaError, match="Illegal client matching pattern"):
        config.validate_overrides(config.CLIENT_METRICS, {"match": f"client_id={expression}"}, _settings())


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"},
            r"min.compaction.lag.ms \(10\) > max.compaction.lag.ms \(9\)",
        ),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled"),
        ({"no.such": "1"}, "Unknown topic config name: no.such"),
    ],
)
def test_topic_overrides_are_checked_together(overrides: dict[str, str], words: str) -> None:
    """The sentences are Kafka's."""
    with pytest.raises(KafkaError, match=words) as refused:
        config.validate_overrides(config.TOPIC, overrides, _settings())
    assert refused.value.code == INVALID_CONFIG


def test_remote_storage_needs_cleanup_policy_delete() -> None:
    """A compacted topic cannot use tiered storage (KIP-405)."""
    settings = _settings(remote_log_storage_system_enable="true")
    config.validate_overrides(config.TOPIC, {"remote.storage.enable": "true"}, settings)
    with pytest.raises(KafkaError, match="only supports topics with cleanup.policy=delete"):
        config.validate_overrides(
            config.TOPIC, {"remote.storage.enable": "true", "cleanup.policy": "compact"}, settings
        )


def test_a_groups_session_timeout_must_exceed_its_heartbeat_interval() -> None:
    """Each value may be within its own limits."""
    settings = _settings(group_consumer_min_session_timeout_ms="1", group_consumer_max_heartbeat_interval_ms="60000")
    with pytest.raises(
        KafkaError, match="consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    ):
        config.validate_overrides(
            config.GROUP, {"consumer.session.timeout.ms": "20000", "consumer.heartbeat.interval.ms": "20000"}, settings
        )


def test_validate_returns_the_typed_value() -> None:
    """A broker accepts names that only plug-ins know. A listener's own setting is checked like the general one."""
    assert config.validate(config.TOPIC, "retention.ms", "5") == 5
    assert config.validate(config.BROKER, "some.plugin.thing", "x") == "x"
    assert config.validate(config.BROKER, "listener.name.a.max.connections", "5") == 5
    with pytest.raises(KafkaError, match="Not a number of type INT"):
        config.validate(config.BROKER, "listener.name.a.max.connections", "x")


def test_deleting_is_always_allowed() -> None:
    """None deletes any setting of the metadata log, even one that could not be set live."""
    settings = config.Settings({})
    for name in ("message.max.bytes", "num.partitions", "ssl.keystore.type", "listeners", "no.such"):
        for one_broker in (True, False):
            config.validate_broker_changes({name: None}, settings, one_broker=one_broker)
    with pytest.raises(KafkaError, match=r"Cannot update these configs dynamically: \[num.partitions\]"):
        config.validate_broker_changes({"num.partitions": "1", "message.max.bytes": None}, settings, one_broker=True)


def test_only_kafkas_authorizer_is_accepted() -> None:
    """Another one would silently allow everything. Its own settings say nothing without it."""
    authorizer = {"authorizer.class.name": config.STANDARD_AUTHORIZER}
    settings = from_properties({**authorizer, "super.users": "User:a; User:CN=b,O=c ;"})
    assert settings.warnings == []
    assert authorizer_settings.super_users(settings.static) == ["User:a", "User:CN=b,O=c"]
    for name in ("super.users", "allow.everyone.if.no.acl.found"):
        (sentence,) = from_properties({"authorizer.class.name": "", name: "User:a"}).warnings
        assert sentence == f"test:1: {name} has no effect without authorizer.class.name"
    with pytest.raises(ConfigError, match=r"test:1: super.users: expected principals like User:alice, .* but got bob"):
        from_properties({**authorizer, "super.users": "User:alice;bob"})
    with pytest.raises(ConfigError, match=r"test:1: authorizer.class.name: my.Authorizer cannot run here"):
        from_properties({"authorizer.class.name": "my.Authorizer"})


@pytest.mark.parametrize("name", ["create.topic.policy.class.name", "alter.config.policy.class.name"])
def test_policies_are_warned_about(name: str) -> None:
    """Policies are Java classes, which cannot run here, so a warning says that nothing is refused."""
    assert [
        sentence
        for sentence in from_properties({name: "my.Policy"}).warnings
        if "my.Policy is a Java class" in sentence
    ]
    without = from_properties({name: ""})
    assert (without.warnings, without.without_effect) == ([], [name])


def test_a_selector_of_replicas_that_cannot_run_here_is_warned_about() -> None:
    """Kafka has one, which we have too; others are users' Java classes."""
    (sentence,) = from_properties({"replica.selector.class": "my.Selector"}).warnings
    assert sentence.endswith("=my.Selector is a Java class, which cannot run here: consumers fetch from leaders")
    for known in ("", config.RACK_AWARE_SELECTOR):
        settings = from_properties({"replica.selector.class": known})
        assert (settings.warnings, settings.without_effect) == ([], [])


def test_settings_that_clients_notice_are_a_warning_each_and_all_others_are_told_together() -> None:
    """What is set to its default changes nothing, whoever might notice it."""
    noticed = {
        "sasl.kerberos.kinit.cmd": "/bin/kinit",
        "ssl.provider": "SunJSSE",
    }
    harmless = {
        "num.io.threads": "9",
        "sasl.login.read.timeout.ms": "9",
        "transaction.two.phase.commit.enable": "false",
    }
    settings = from_properties(noticed)
    assert settings.warnings == [f"test:1: {name} has no effect in this version of pykafkad" for name in noticed]
    assert settings.without_effect == []
    settings = from_properties(harmless)
    assert settings.warnings == []
    assert settings.without_effect == list(harmless)


def test_each_family_that_clients_notice_has_a_setting_without_effect() -> None:
    """A setting that has got an effect leaves the table."""
    names = [row.name for row in config.ROWS[config.BROKER].values() if not row.effect]
    for family in (*notices.CLIENTS_NOTICE, *notices.CLIENTS_DO_NOT_NOTICE):
        assert any(name.startswith(family) for name in names), family


def from_properties(properties: dict[str, str]) -> config.Settings:
    """Settings that all have the same origin."""
    return config.Settings.from_properties({name: (text, "test:1") for name, text in properties.items()})


def test_a_default_is_laid_in_at_the_first_read_and_copies_have_all() -> None:
    settings = config.Settings.from_properties({"num.partitions": ("3", "here")})
    row = config.ROWS[config.BROKER]["log.retention.hours"]
    member = type(settings).log_retention_hours
    with pytest.raises(AttributeError):
        member.__get__(settings)
    assert settings.log_retention_hours == row.typed_default() == member.__get__(settings)
    other = copy(settings)
    assert all(
        getattr(other, row.attribute) == getattr(settings, row.attribute) for row in config.ROWS[config.BROKER].values()
    )
    assert other.num_partitions == 3
