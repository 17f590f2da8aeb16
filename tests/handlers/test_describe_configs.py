"""DescribeConfigs: resources, sources, keys, errors. tests/settings tests the entries themselves."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import describe_configs
from pykafkad.metadata import events
from pykafkad.metadata.configs import SET
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_controller import create, topic

Request = messages.DescribeConfigsRequest


@pytest.fixture
def cluster():
    made = Cluster(log_retention_ms="10")
    create(made, topic("a", retention_ms="5000"))
    return made


def describe(cluster, *resources, version=4, denied=None, **fields):
    rows = [
        Request.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name, keys in resources
    ]
    return ask(cluster, describe_configs, Request(resources=rows, **fields), version, denied=denied).results


def entries(result):
    return {row.name: row for row in result.configs}


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_describes_a_topic(cluster, version):
    """Source and synonyms from version 1, type and documentation from 3."""
    (result,) = describe(
        cluster, (2, "a", None), version=version, include_synonyms=True, include_documentation=version >= 3
    )
    found = entries(result)
    assert (result.error_code, result.resource_type, result.resource_name, len(found)) == (0, 2, "a", 33)
    retention = found["retention.ms"]
    assert (retention.value, retention.config_source, retention.read_only, retention.is_sensitive) == (
        "5000",
        1,
        False,
        False,
    )
    assert [(each.name, each.value, each.source) for each in retention.synonyms] == [
        ("retention.ms", "5000", 1), ("log.retention.ms", "10", 4), ("log.retention.hours", "168", 5),
    ]  # fmt: skip
    assert retention.config_type == (5 if version >= 3 else 0)
    assert bool(retention.documentation) == (version >= 3)


def test_synonyms_and_documentation_come_on_request(cluster):
    (result,) = describe(cluster, (2, "a", None))
    assert all(row.synonyms == [] and row.documentation is None for row in result.configs)


def test_configuration_keys_pick_settings(cluster):
    """Null and empty mean all; unknown names are ignored."""
    chosen, everything = describe(cluster, (2, "a", ["retention.ms", "nope"]), (2, "a", []))
    assert list(entries(chosen)) == ["retention.ms"]
    assert len(everything.configs) == 33


def test_the_sources_of_a_broker_setting_have_an_order(cluster):
    """A value for this broker comes before one for all brokers, then the file, then the default."""
    for name, value in (("", "1"), ("1", "2")):
        cluster.submit(events.AlterConfigs("t", [(4, name, [("log.retention.ms", SET, value)])], incremental=True))
    own, everyone, of_topic = describe(
        cluster,
        (4, "1", ["log.retention.ms", "num.partitions"]),
        (4, "", None),
        (2, "a", ["retention.ms"]),
        include_synonyms=True,
    )
    retention = entries(own)["log.retention.ms"]
    assert [(each.value, each.source) for each in retention.synonyms] == [("2", 2), ("1", 3), ("10", 4), ("168", 5)]
    assert entries(own)["num.partitions"].read_only
    assert set(entries(everyone)) == {"log.retention.ms", "min.insync.replicas"}
    assert [each.source for each in entries(of_topic)["retention.ms"].synonyms] == [1, 2, 3, 4, 5]


def test_secrets_have_no_value():
    cluster = Cluster(ssl_key_password="secret")
    found = entries(describe(cluster, (4, "1", ["ssl.key.password"]), include_synonyms=True)[0])["ssl.key.password"]
    assert (found.value, found.is_sensitive) == (None, True)
    assert all(each.value is None for each in found.synonyms)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (2, "nope", errors.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "a/b", errors.INVALID_TOPIC_EXCEPTION),
        (2, "", errors.INVALID_TOPIC_EXCEPTION),
        (4, "2", errors.INVALID_REQUEST),
        (4, "x", errors.INVALID_REQUEST),
        (4, "0_1", errors.INVALID_REQUEST),
        (4, " 1", errors.INVALID_REQUEST),
        (8, "", errors.INVALID_REQUEST),
        (8, "2", errors.INVALID_REQUEST),
        (8, "x", errors.INVALID_REQUEST),
        (16, "", errors.INVALID_REQUEST),
        (32, "", errors.INVALID_REQUEST),
    ],
)
def test_errors_stay_with_their_resource(cluster, kind, name, code):
    bad, good = describe(cluster, (kind, name, None), (2, "a", None))
    assert (bad.error_code, bad.configs, bad.resource_type, bad.resource_name) == (code, [], kind, name)
    assert (good.error_code, len(good.configs)) == (0, 33)


def test_an_unknown_type_fails_the_whole_request(cluster):
    assert [result.error_code for result in describe(cluster, (99, "x", None), (2, "a", None))] == [
        errors.INVALID_REQUEST
    ] * 2


def test_loggers_subscriptions_and_groups_have_defaults(cluster):
    """Also if they have no settings."""
    loggers, subscription, group = describe(cluster, (8, "1", None), (16, "s", None), (32, "g", None))
    (root,) = loggers.configs
    assert (root.name, root.value, root.config_source, root.is_sensitive, root.read_only) == (
        "root",
        "INFO",
        6,
        False,
        False,
    )
    assert entries(subscription)["interval.ms"].value == "300000"
    assert entries(group)["consumer.session.timeout.ms"].value == "45000"


def test_resources_need_permission(cluster):
    denied = {
        ("DescribeConfigs", "Topic", "a"),
        ("DescribeConfigs", "Cluster", "kafka-cluster"),
        ("DescribeConfigs", "Group", "g"),
    }
    results = describe(
        cluster, (2, "a", None), (4, "1", None), (8, "1", None), (16, "s", None), (32, "g", None), denied=denied
    )
    assert [result.error_code for result in results] == [
        errors.TOPIC_AUTHORIZATION_FAILED, errors.CLUSTER_AUTHORIZATION_FAILED, errors.CLUSTER_AUTHORIZATION_FAILED,
        errors.CLUSTER_AUTHORIZATION_FAILED, errors.GROUP_AUTHORIZATION_FAILED,
    ]  # fmt: skip


def test_cached_settings_follow_changes(cluster):
    """An answer comes from the cache until the broker's settings or the topic's own change."""
    describe(cluster, (2, "a", None))
    (kept,) = cluster.settings.described.values()
    describe(cluster, (2, "a", None))
    assert [id(each) for each in cluster.settings.described.values()] == [id(kept)]
    cluster.settings.set_dynamic({}, {"log.retention.ms": "77", "log.segment.bytes": "1048576"})
    after = entries(describe(cluster, (2, "a", None))[0])
    assert (after["retention.ms"].value, after["segment.bytes"].value) == ("5000", "1048576")
    create(cluster, topic("other"))
    assert entries(describe(cluster, (2, "other", None))[0])["retention.ms"].value == "77"
    for number in range(2 * describe_configs.MAX_KEPT):
        create(cluster, topic(f"t{number}", retention_ms=str(number)))
        assert entries(describe(cluster, (2, f"t{number}", None))[0])["retention.ms"].value == str(number)
        assert len(cluster.settings.described) <= describe_configs.MAX_KEPT
