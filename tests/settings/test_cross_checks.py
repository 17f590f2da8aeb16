"""Checks of broker settings against each other, at start and live.

compat_tests/scenarios/setting_values.py tries every setting with every kind of value.
"""

from __future__ import annotations

import pytest

from pykafkad import config, errors
from pykafkad.errors import ConfigError, KafkaError
from pykafkad.settings.cross_checks import THREADS


def settings(**values: str) -> config.Settings:
    """Broker settings, with underscores in place of dots."""
    return config.Settings.from_properties(
        {name.replace("_", "."): (value, "test:1") for name, value in values.items()}
    )


def change(base: config.Settings, *, one_broker: bool = True, **values: str | None) -> str | None:
    """The setting by which a live change is refused; None when it is accepted."""
    try:
        config.validate_broker_changes(
            {name.replace("_", "."): value for name, value in values.items()}, base, one_broker=one_broker
        )
    except KafkaError as error:
        assert error.code == errors.INVALID_REQUEST
        return error.text.rpartition(" for configuration ")[2].partition(":")[0]
    return None


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"log_roll_ms": "0"}, "log.roll.ms"),
        ({"log_roll_jitter_ms": "-1"}, "log.roll.jitter.ms"),
        ({"log_retention_ms": "0"}, "log.retention.ms"),
        ({"log_retention_hours": "0"}, "log.retention.ms"),
        ({"log_cleaner_dedupe_buffer_size": "1048576"}, "log.cleaner.dedupe.buffer.size"),
        ({"log_cleaner_dedupe_buffer_size": "2000000", "log_cleaner_threads": "2"}, "log.cleaner.dedupe.buffer.size"),
        ({"replica_fetch_wait_max_ms": "30001"}, "replica.fetch.wait.max.ms"),
        ({"queued_max_request_bytes": "5"}, "queued.max.request.bytes"),
        ({"max_connections_per_ip": "0"}, "max.connections.per.ip"),
        ({"max_connections_per_ip_overrides": "127.0.0.1"}, "max.connections.per.ip.overrides"),
        ({"connections_max_idle_ms": "100"}, "connection.failed.authentication.delay.ms"),
        (
            {"principal_builder_class": "my.Builder"},
            "principal.builder.class",
        ),
        ({"ssl_engine_factory_class": "my.Tls"}, "ssl.engine.factory.class"),
        ({"listener_name_x_ssl_engine_factory_class": "my.Tls"}, "listener.name.x.ssl.engine.factory.class"),
    ],
)
def test_contradicting_settings_are_refused_at_start(values, named):
    """The error names the setting and its origin."""
    with pytest.raises(ConfigError, match=rf"{named}: "):
        settings(**values)


def test_who_names_a_java_class_is_told_what_to_use_instead():
    with pytest.raises(ConfigError, match=r"names the Java class my\.Builder, .* remove it: ssl\.principal"):
        settings(principal_builder_class="my.Builder")
    settings(principal_builder_class=config.ROWS[config.BROKER]["principal.builder.class"].default)


def test_compatible_settings_are_accepted():
    settings(
        log_retention_ms="-1",
        log_roll_ms="1",
        max_connections_per_ip="0",
        max_connections_per_ip_overrides="127.0.0.1:5,::1:7,some-host:-1",
        connections_max_idle_ms="-1",
        queued_max_request_bytes="104857600",
        log_retention_hours="0",
    )


@pytest.mark.parametrize("name", THREADS)
def test_numbers_of_threads_double_or_halve_at_most(name):
    attribute = name.replace(".", "_")
    base = settings(**{attribute: "8"})
    for count, taken in (("3", False), ("4", True), ("8", True), ("16", True), ("17", False)):
        assert change(base, **{attribute: count}) == (None if taken else name)
    assert change(settings(**{attribute: "1"}), **{attribute: "2"}) is None


def test_local_retention_is_at_most_the_whole_retention():
    base = settings()
    assert (
        change(base, log_local_retention_ms="604800001")
        == change(base, log_local_retention_ms="-1")
        == "log.local.retention.ms"
    )
    assert change(base, log_local_retention_ms="604800000") is change(base, log_local_retention_bytes="7") is None
    assert change(base, log_local_retention_ms="5", log_retention_ms="4") == "log.local.retention.ms"
    assert change(base, log_local_retention_bytes="5", log_retention_bytes="4") == "log.local.retention.bytes"
    assert change(base, log_local_retention_ms="-1", log_retention_ms="-1") is None
    # The unit that counts is the first that is set.
    assert change(settings(log_retention_hours="1"), log_local_retention_ms="3600001") == "log.local.retention.ms"


def test_a_cluster_change_is_checked_against_the_brokers_own_values():
    """A change for all brokers is checked with the values that are set for this broker."""
    base = settings()
    base.set_dynamic({}, {"log.retention.ms": "1000"})
    assert change(base, one_broker=False, log_local_retention_ms="1001") == "log.local.retention.ms"
    assert change(base, one_broker=False, log_local_retention_ms="1000") is None
    assert change(base, log_retention_ms=None, log_local_retention_ms="1001") is None
    base.set_dynamic({}, {"log.local.retention.ms": "5"})
    assert change(base, one_broker=False, log_local_retention_ms="604800001") is None


@pytest.mark.parametrize(
    "values",
    [
        {"max_connections": "0"},
        {"max_connection_creation_rate": "0"},
        {"group_consumer_assignment_interval_ms": "15001"},
        {"listeners": "x"},
        {"listeners": "A://h:1,A://h"},
        {"listener_security_protocol_map": ""},
        {"listener_security_protocol_map": "A:B"},
        {"metric_reporters": "my.Reporter"},
        {"principal_builder_class": "my.Builder"},
        {"principal_builder_class": ""},
        {"ssl_engine_factory_class": "x"},
    ],
)
def test_contradicting_live_changes_are_refused(values):
    assert change(settings(), **values) == next(iter(values)).replace("_", ".")


def test_compatible_live_changes_are_accepted():
    base = settings(max_connections="0")
    assert change(base, max_connections_per_ip="5") is None
    assert change(base, listeners="A://:9,B://[::1]:9", listener_security_protocol_map="A:PLAINTEXT,B:SSL") is None
    assert change(base, metric_reporters="org.apache.kafka.common.metrics.JmxReporter", config_providers="a,,b") is None


def test_numbers_in_messages_are_printed_as_in_java():
    rows = config.ROWS[config.TOPIC]
    assert rows["retention.ms"].parse("\u0663") == rows["retention.ms"].parse("+3") == 3
    ratio = rows["min.cleanable.dirty.ratio"]
    assert ratio.parse("0.5f") == ratio.parse("5e-1") == ratio.parse(".5D") == 0.5
    for text in ("\u0661", "inf", "nan", "1_0", "0.5x", "f", ""):
        with pytest.raises(config.InvalidValue):
            ratio.parse(text)
