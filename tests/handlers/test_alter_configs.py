"""AlterConfigs: checks and permissions. tests/metadata/test_configs.py tests which settings are valid."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import alter_configs
from pykafkad.metadata.image import TYPE_TOPIC
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_controller import create, topic

Request = messages.AlterConfigsRequest


@pytest.fixture
def cluster():
    made = Cluster()
    create(made, topic("a", retention_ms="1"), topic("b"))
    return made


def alter(cluster, *resources, version=2, denied=None, **fields):
    rows = [
        Request.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[Request.AlterableConfig(name=key, value=value) for key, value in values],
        )
        for kind, name, values in resources
    ]
    answer = ask(cluster, alter_configs, Request(resources=rows, **fields), version, denied=denied)
    return [(row.resource_name, row.error_code) for row in answer.responses]


@pytest.mark.parametrize("version", range(3))
def test_a_resource_gets_exactly_the_settings_of_the_request(cluster, version):
    assert alter(cluster, (2, "a", [("segment.ms", "60000")]), version=version) == [("a", 0)]
    assert cluster.image.configs(TYPE_TOPIC, "a") == {"segment.ms": "60000"}


def test_malformed_resources_have_their_own_errors(cluster):
    """Rows have the order of the request. Each resource and each key may come once; null values, other brokers and
    loggers are refused."""
    invalid = errors.INVALID_REQUEST
    rows = alter(
        cluster,
        (2, "a", [("retention.ms", None)]), (2, "b", [("retention.ms", "1"), ("retention.ms", "2")]), (4, "2", []),
        (4, "x", []),
        (8, "1", [("root", "INFO")]), (99, "y", []), (2, "c", []), (2, "c", []), (4, "1", [("log.retention.ms", "5")]),
        (4, "0_1", []), (4, "1 ", []), (4, "9" * 5000, []), (4, "+01", []),
    )  # fmt: skip
    assert rows == [
        ("a", invalid), ("b", invalid), ("2", invalid), ("x", invalid), ("1", invalid), ("y", invalid), ("c", invalid),
        ("c", invalid),
        ("1", 0), ("0_1", invalid), ("1 ", invalid), ("9" * 5000, invalid), ("+01", 0),
    ]  # fmt: skip
    assert cluster.settings.log_retention_ms == 5


def test_validate_only_changes_nothing(cluster):
    assert alter(cluster, (2, "b", [("retention.ms", "2")]), validate_only=True) == [("b", 0)]
    assert cluster.image.configs(TYPE_TOPIC, "b") == {}


def test_resources_need_permission(cluster):
    denied = {("AlterConfigs", "Topic", "a"), ("AlterConfigs", "Cluster", "kafka-cluster")}
    rows = alter(cluster, (2, "a", []), (4, "1", []), (2, "b", []), denied=denied)
    assert rows == [("a", errors.TOPIC_AUTHORIZATION_FAILED), ("1", errors.CLUSTER_AUTHORIZATION_FAILED), ("b", 0)]
