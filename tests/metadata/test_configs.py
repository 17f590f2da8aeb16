"""Changes of dynamic settings: whole resources, single operations, and refusals."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.metadata import events, record_codec
from pykafkad.metadata.configs import APPEND, DELETE, MAX_VALUE_LENGTH, SET, SUBTRACT, TYPE_CLIENT_METRICS, TYPE_GROUP
from pykafkad.metadata.image import TYPE_BROKER, TYPE_TOPIC
from tests.metadata.cluster import Cluster
from tests.metadata.test_controller import create, topic


@pytest.fixture
def cluster():
    made = Cluster()
    create(made, topic("a"), topic("b"))
    return made


def change(cluster, kind, name, *operations, **fields):
    """Incremental change of one resource; its error code."""
    response = cluster.submit(
        events.AlterConfigs("token", [(kind, name, list(operations))], incremental=True, **fields)
    )
    (row,) = response.responses
    assert (row.resource_type, row.resource_name) == (kind, name)
    return row.error_code


def replace(cluster, kind, name, **configs):
    """Legacy change of one resource; its error code."""
    named = {key.replace("_", "."): value for key, value in configs.items()}
    response = cluster.submit(events.AlterConfigs("token", [(kind, name, named)], incremental=False))
    return response.responses[0].error_code


def test_settings_are_set_and_deleted(cluster):
    assert change(cluster, TYPE_TOPIC, "a", ("retention.ms", SET, "1"), ("segment.ms", SET, "2")) == 0
    assert cluster.image.configs(TYPE_TOPIC, "a") == {"retention.ms": "1", "segment.ms": "2"}
    assert list(cluster.delta.configs) == [(TYPE_TOPIC, "a")]
    assert change(cluster, TYPE_TOPIC, "a", ("retention.ms", DELETE, None)) == 0
    assert cluster.image.configs(TYPE_TOPIC, "a") == {"segment.ms": "2"}
    assert change(cluster, TYPE_TOPIC, "a", ("segment.ms", DELETE, None)) == 0
    assert cluster.image.configs(TYPE_TOPIC, "a") == {}


def test_lists_grow_and_shrink(cluster):
    """APPEND begins with the default value and adds items that are missing. SUBTRACT removes items."""
    assert change(cluster, TYPE_TOPIC, "a", ("cleanup.policy", APPEND, "compact,delete")) == 0
    assert cluster.image.configs(TYPE_TOPIC, "a") == {"cleanup.policy": "delete,compact"}
    assert change(cluster, TYPE_TOPIC, "a", ("cleanup.policy", SUBTRACT, "delete,nothing")) == 0
    assert cluster.image.configs(TYPE_TOPIC, "a") == {"cleanup.policy": "compact"}
    assert change(cluster, TYPE_TOPIC, "a", ("retention.ms", APPEND, "1")) == errors.INVALID_CONFIG
    assert change(cluster, TYPE_TOPIC, "a", ("nope", SUBTRACT, "1")) == errors.INVALID_CONFIG


def test_unchanged_topic_values_write_nothing(cluster):
    change(cluster, TYPE_TOPIC, "a", ("retention.ms", SET, "1"))
    count = len(cluster.disk.batches)
    assert change(cluster, TYPE_TOPIC, "a", ("retention.ms", SET, "1"), ("nope", DELETE, None)) == 0
    assert len(cluster.disk.batches) == count


def test_unchanged_broker_values_are_written_again(cluster):
    """The broker then reloads the file that the value names, such as a key store (KAFKA-14136)."""
    for _ in range(2):
        count = len(cluster.disk.batches)
        assert change(cluster, TYPE_BROKER, "1", ("log.retention.ms", SET, "5000")) == 0
        assert len(cluster.disk.batches) == count + 1


@pytest.mark.parametrize(
    ("kind", "name", "operation", "code"),
    [
        (TYPE_TOPIC, "a", ("nope", SET, "1"), errors.INVALID_CONFIG),
        (TYPE_TOPIC, "a", ("retention.ms", SET, "x"), errors.INVALID_CONFIG),
        (TYPE_TOPIC, "a", ("retention.ms", SET, "1" * (MAX_VALUE_LENGTH + 1)), errors.INVALID_CONFIG),
        (TYPE_TOPIC, "a", ("retention.ms", 9, "1"), errors.UNKNOWN_SERVER_ERROR),
        (TYPE_TOPIC, "nope", ("retention.ms", SET, "1"), errors.UNKNOWN_TOPIC_OR_PARTITION),
        (TYPE_TOPIC, "", ("retention.ms", SET, "1"), errors.INVALID_REQUEST),
        (TYPE_TOPIC, "a/b", ("retention.ms", SET, "1"), errors.INVALID_TOPIC_EXCEPTION),
        (TYPE_BROKER, "1", ("num.partitions", SET, "3"), errors.INVALID_REQUEST),
        (TYPE_BROKER, "1", ("log.retention.ms", SET, "x"), errors.INVALID_REQUEST),
        (TYPE_BROKER, "7", ("log.retention.ms", SET, "1"), errors.BROKER_ID_NOT_REGISTERED),
        (TYPE_BROKER, "1", ("min.insync.replicas", SET, "1"), errors.INVALID_CONFIG),
        (TYPE_BROKER, "", ("min.insync.replicas", DELETE, None), errors.INVALID_CONFIG),
        (TYPE_BROKER, "", ("num.partitions", SET, "3"), errors.INVALID_REQUEST),
        (TYPE_GROUP, "", ("consumer.session.timeout.ms", SET, "50000"), errors.INVALID_REQUEST),
        (TYPE_GROUP, "g", ("nope", SET, "50000"), errors.INVALID_CONFIG),
        (TYPE_CLIENT_METRICS, "", ("interval.ms", SET, "5000"), errors.INVALID_REQUEST),
        (TYPE_CLIENT_METRICS, "s", ("nope", SET, "5000"), errors.INVALID_REQUEST),
    ],
)
def test_an_invalid_change_is_refused(cluster, kind, name, operation, code):
    """A resource is changed as a whole or not at all."""
    count = len(cluster.disk.batches)
    assert change(cluster, kind, name, operation) == code
    assert len(cluster.disk.batches) == count


def test_one_refused_value_refuses_its_resource_only(cluster):
    changes = [
        (TYPE_TOPIC, "a", [("retention.ms", SET, "1"), ("nope", SET, "1")]),
        (TYPE_TOPIC, "b", [("retention.ms", SET, "1")]),
    ]
    response = cluster.submit(events.AlterConfigs("token", changes, incremental=True, refused={1: "refused"}))
    assert [row if row == "refused" else row.error_code for row in response.responses] == [
        errors.INVALID_CONFIG,
        "refused",
        0,
    ]
    assert cluster.image.configs(TYPE_TOPIC, "a") == {}
    assert cluster.image.configs(TYPE_TOPIC, "b") == {"retention.ms": "1"}


def test_new_values_are_checked_together_with_present_ones(cluster):
    assert change(cluster, TYPE_TOPIC, "a", ("max.compaction.lag.ms", SET, "10")) == 0
    assert change(cluster, TYPE_TOPIC, "a", ("min.compaction.lag.ms", SET, "11")) == errors.INVALID_CONFIG
    assert (
        change(cluster, TYPE_TOPIC, "a", ("min.compaction.lag.ms", SET, "11"), ("max.compaction.lag.ms", DELETE, None))
        == 0
    )


def test_min_insync_replicas_clears_eligible_leaders(cluster):
    """The old lists of eligible leaders are not valid under a new minimum (KIP-966)."""
    assert change(cluster, TYPE_TOPIC, "a", ("min.insync.replicas", SET, "2")) == 0
    assert record_codec.decode(*cluster.disk.batches[-1][1][-1]).value.topic_name == "a"
    assert change(cluster, TYPE_BROKER, "", ("min.insync.replicas", SET, "2")) == 0
    assert record_codec.decode(*cluster.disk.batches[-1][1][-1]).value.topic_name == ""


def test_the_legacy_api_replaces_all_settings(cluster):
    assert replace(cluster, TYPE_TOPIC, "a", retention_ms="1", segment_ms="2") == 0
    assert replace(cluster, TYPE_TOPIC, "a", retention_ms="3") == 0
    assert cluster.image.configs(TYPE_TOPIC, "a") == {"retention.ms": "3"}
    assert replace(cluster, TYPE_TOPIC, "a") == 0
    assert cluster.image.configs(TYPE_TOPIC, "a") == {}
    assert replace(cluster, TYPE_TOPIC, "a", nope="1") == errors.INVALID_CONFIG
    # A new cluster has a cluster-wide minimum. A request without it would remove it.
    assert replace(cluster, TYPE_BROKER, "", log_retention_ms="1") == errors.INVALID_CONFIG


def test_validating_changes_nothing(cluster):
    count = len(cluster.disk.batches)
    assert change(cluster, TYPE_TOPIC, "a", ("retention.ms", SET, "1"), validate_only=True) == 0
    assert change(cluster, TYPE_TOPIC, "a", ("retention.ms", SET, "x"), validate_only=True) == errors.INVALID_CONFIG
    assert len(cluster.disk.batches) == count


def test_dynamic_broker_settings_take_effect(cluster):
    assert change(cluster, TYPE_BROKER, "", ("log.retention.ms", SET, "5000")) == 0
    assert cluster.settings.log_retention_ms == 5000
    assert change(cluster, TYPE_BROKER, "1", ("log.retention.ms", SET, "6000")) == 0
    assert cluster.settings.log_retention_ms == 6000


def test_settings_of_groups_and_client_metrics_are_stored(cluster):
    assert change(cluster, TYPE_GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")) == 0
    assert change(cluster, TYPE_CLIENT_METRICS, "s", ("interval.ms", SET, "5000")) == 0
    again = cluster.restart()
    assert again.image.configs(TYPE_GROUP, "g") == {"consumer.session.timeout.ms": "50000"}
    assert again.image.configs(TYPE_CLIENT_METRICS, "s") == {"interval.ms": "5000"}


def test_a_new_topics_own_values_are_returned_unchanged(cluster):
    """All other settings have their effective value, as Kafka prints it."""
    (row,) = create(cluster, topic("c", min_cleanable_dirty_ratio="0.50f", cleanup_policy="compact, delete"))
    shown = {entry.name: entry.value for entry in row.configs}
    assert (row.error_code, shown["min.cleanable.dirty.ratio"], shown["cleanup.policy"]) == (
        0,
        "0.50f",
        "compact, delete",
    )
    assert shown["retention.ms"] == "604800000"
