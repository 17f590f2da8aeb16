"""IncrementalAlterConfigs: checks and broker loggers. tests/metadata/test_configs.py tests which settings are valid."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import describe_configs, incremental_alter_configs
from pykafkad.metadata.configs import APPEND, DELETE, SET, SUBTRACT
from pykafkad.metadata.image import TYPE_TOPIC
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import FakeContext, ask
from tests.metadata.test_controller import create, topic

Request = messages.IncrementalAlterConfigsRequest


@pytest.fixture
def cluster():
    made = Cluster()
    create(made, topic("a", retention_ms="1"), topic("b"))
    return made


def alter(cluster, *resources, version=1, ctx=None, **fields):
    rows = [
        Request.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                Request.AlterableConfig(name=key, config_operation=operation, value=value)
                for key, operation, value in values
            ],
        )
        for kind, name, values in resources
    ]
    answer = ask(cluster, incremental_alter_configs, Request(resources=rows, **fields), version, ctx=ctx)
    return [(row.resource_name, row.error_code) for row in answer.responses]


@pytest.mark.parametrize("version", range(2))
def test_single_settings_change(cluster, version):
    values = [("segment.ms", SET, "60000"), ("cleanup.policy", APPEND, "compact"), ("retention.ms", DELETE, None)]
    assert alter(cluster, (2, "a", values), version=version) == [("a", 0)]
    assert cluster.image.configs(TYPE_TOPIC, "a") == {"segment.ms": "60000", "cleanup.policy": "delete,compact"}


def test_only_a_deletion_may_have_a_null_value(cluster):
    """Any other operation with null is refused."""
    rows = alter(
        cluster,
        (2, "a", [("retention.ms", SET, None)]), (2, "b", [("retention.ms", DELETE, None)]),
        (2, "c", [("x", SUBTRACT, None)]),
        (99, "y", []), (2, "nope", [("retention.ms", SET, "1")]),
    )  # fmt: skip
    assert rows == [("a", 42), ("b", 0), ("c", 42), ("y", 42), ("nope", errors.UNKNOWN_TOPIC_OR_PARTITION)]


def test_log_levels_change_at_once(cluster):
    """KIP-412: Kafka's six levels are mapped to four."""
    ctx = FakeContext(cluster, 1, set())
    for level, ours, shown in (
        ("DEBUG", "debug", "DEBUG"),
        ("FATAL", "error", "ERROR"),
        ("TRACE", "debug", "DEBUG"),
        ("WARN", "warning", "WARN"),
    ):
        assert alter(cluster, (8, "1", [("root", SET, level)]), ctx=ctx) == [("1", 0)]
        assert ctx.log_level == ours
        resource = messages.DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=8, resource_name="1", configuration_keys=None
        )
        ctx.version = 4
        described = ask(cluster, describe_configs, messages.DescribeConfigsRequest(resources=[resource]), 4, ctx=ctx)
        assert described.results[0].configs[0].value == shown
        ctx.version = 1
    assert alter(cluster, (8, "1", [("root", SET, "INFO")]), ctx=ctx, validate_only=True) == [("1", 0)]
    assert ctx.log_level == "warning"


@pytest.mark.parametrize(
    ("name", "operation", "code"),
    [
        ("1", ("root", SET, "LOUD"), errors.INVALID_CONFIG),
        ("1", ("kafka.server.KafkaApis", SET, "INFO"), errors.INVALID_CONFIG),
        ("1", ("root", DELETE, None), errors.INVALID_REQUEST),
        ("1", ("root", APPEND, "INFO"), errors.INVALID_REQUEST),
        ("1", ("root", SUBTRACT, "INFO"), errors.INVALID_REQUEST),
        ("1", ("root", 9, "INFO"), errors.UNKNOWN_SERVER_ERROR),
        ("2", ("root", SET, "INFO"), errors.INVALID_REQUEST),
        ("0_1", ("root", SET, "INFO"), errors.INVALID_REQUEST),
        ("", ("root", SET, "INFO"), errors.INVALID_REQUEST),
    ],
)
def test_invalid_log_levels_change_nothing(cluster, name, operation, code):
    """One invalid operation leaves all levels unchanged."""
    ctx = FakeContext(cluster, 1, set())
    operations = [operation] if operation[0] == "root" else [("root", SET, "ERROR"), operation]
    assert alter(cluster, (8, name, operations), ctx=ctx) == [(name, code)]
    assert ctx.log_level == "info"
