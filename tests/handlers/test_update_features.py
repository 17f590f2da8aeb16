"""UpdateFeatures: the valid levels, all or none, and the effects of a change."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import update_features
from pykafkad.metadata import record_codec
from pykafkad.metadata.feature_updates import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE
from pykafkad.metadata.image import TYPE_BROKER
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_registrations import append

Request = messages.UpdateFeaturesRequest
ELR = "eligible.leader.replicas.version"
INVALID = errors.INVALID_UPDATE_VERSION


def update(cluster, version, *updates, denied=None, **fields):
    rows = [
        Request.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in updates
    ]
    return ask(cluster, update_features, Request(feature_updates=rows, **fields), version, denied=denied)


@pytest.mark.parametrize("version", range(3))
def test_a_success_has_rows_up_to_version_1(version):
    answer = update(Cluster(), version, ("metadata.version", 30, UPGRADE), (ELR, 1, UPGRADE), (ELR, 1, UPGRADE))
    assert (answer.error_code, answer.error_message) == (0, None)
    rows = [("metadata.version", 0, "NONE"), (ELR, 0, "NONE"), (ELR, 0, "NONE")]
    assert [(row.feature, row.error_code, row.error_message) for row in answer.results] == (rows if version < 2 else [])


@pytest.mark.parametrize(
    ("name", "level", "kind", "code"),
    [
        ("metadata.version", 30, UPGRADE, 0),
        ("metadata.version", 30, SAFE_DOWNGRADE, 0),
        ("metadata.version", 31, UPGRADE, INVALID),
        ("metadata.version", 29, UPGRADE, INVALID),
        ("metadata.version", 29, SAFE_DOWNGRADE, INVALID),
        ("metadata.version", 29, UNSAFE_DOWNGRADE, INVALID),
        ("metadata.version", 0, UNSAFE_DOWNGRADE, INVALID),
        ("metadata.version", 7, SAFE_DOWNGRADE, INVALID),
        ("metadata.version", 7, UNSAFE_DOWNGRADE, INVALID),
        (ELR, 1, UPGRADE, 0),
        (ELR, 0, UPGRADE, INVALID),
        (ELR, 0, SAFE_DOWNGRADE, 0),
        (ELR, 0, UNSAFE_DOWNGRADE, 0),
        (ELR, 2, UPGRADE, INVALID),
        (ELR, -1, SAFE_DOWNGRADE, INVALID),
        ("kraft.version", 1, UPGRADE, 0),
        ("kraft.version", 1, SAFE_DOWNGRADE, 0),
        ("kraft.version", 0, UPGRADE, INVALID),
        ("kraft.version", 0, SAFE_DOWNGRADE, INVALID),
        ("kraft.version", 2, UPGRADE, INVALID),
        ("group.version", 0, UPGRADE, INVALID),
        ("group.version", 0, SAFE_DOWNGRADE, 0),
        ("group.version", 1, UPGRADE, 0),
        ("group.version", 2, UPGRADE, INVALID),
        ("share.version", 0, UPGRADE, INVALID),
        ("share.version", 0, SAFE_DOWNGRADE, 0),
        ("share.version", 1, UPGRADE, 0),
        ("share.version", 2, UPGRADE, INVALID),
        ("streams.version", 0, UPGRADE, INVALID),
        ("streams.version", 0, SAFE_DOWNGRADE, 0),
        ("streams.version", 1, UPGRADE, 0),
        ("streams.version", 2, UPGRADE, INVALID),
        ("nope", 0, UPGRADE, INVALID),
        ("nope", 1, UPGRADE, INVALID),
        ("", 0, UPGRADE, INVALID),
        (ELR, 1, 0, INVALID),
        (ELR, 1, 4, INVALID),
        (ELR, 1, -1, INVALID),
    ],
)
def test_only_some_levels_are_valid(name, level, kind, code):
    """As in Kafka 4.3.1."""
    cluster = Cluster()
    before = len(cluster.disk.batches)
    answer = update(cluster, 2, (name, level, kind), validate_only=True)
    assert answer.error_code == code
    assert bool(answer.error_message) == bool(code)
    assert len(cluster.disk.batches) == before


def test_one_invalid_level_changes_nothing():
    cluster = Cluster()
    answer = update(cluster, 1, (ELR, 0, SAFE_DOWNGRADE), ("nope", 1, UPGRADE))
    assert (answer.error_code, answer.results) == (INVALID, [])
    assert "nope" in answer.error_message
    assert cluster.image.features[ELR] == 1


def test_a_feature_can_be_downgraded_and_upgraded_again():
    """With eligible leader replicas min.insync.replicas has one value for the cluster, in the log."""
    cluster = Cluster()
    assert update(cluster, 2, (ELR, 0, SAFE_DOWNGRADE)).error_code == 0
    assert ELR not in cluster.image.features
    assert update(cluster, 2, (ELR, 1, SAFE_DOWNGRADE)).error_code == INVALID, "a downgrade to a newer version"
    config = messages.ConfigRecord
    append(
        cluster,
        config(resource_type=TYPE_BROKER, resource_name="", name="min.insync.replicas", value=None),
        config(resource_type=TYPE_BROKER, resource_name="1", name="min.insync.replicas", value="2"),
        config(resource_type=TYPE_BROKER, resource_name="1", name="log.retention.ms", value="1000"),
    )
    assert update(cluster, 2, (ELR, 1, UPGRADE)).error_code == 0
    assert cluster.image.features[ELR] == 1
    assert cluster.image.configs(TYPE_BROKER, "") == {"min.insync.replicas": "1"}
    assert cluster.image.configs(TYPE_BROKER, "1") == {"log.retention.ms": "1000"}
    assert cluster.restart().image.features[ELR] == 1


def test_the_transaction_version_goes_up_and_down():
    """KIP-890: clients use what is finalized."""
    cluster = Cluster()
    assert cluster.image.finalized_features()["transaction.version"] == 2
    assert update(cluster, 2, ("transaction.version", 0, SAFE_DOWNGRADE)).error_code == 0
    assert "transaction.version" not in cluster.image.finalized_features()
    assert update(cluster, 2, ("transaction.version", 3, UPGRADE)).error_code == INVALID
    for level in (1, 2):
        assert update(cluster, 2, ("transaction.version", level, UPGRADE)).error_code == 0
        assert cluster.restart().image.features["transaction.version"] == level


def test_a_static_quorum_becomes_a_dynamic_one():
    """kraft.version 1: version and voters go into the log, as control records (KIP-853)."""
    cluster = Cluster()
    cluster.image.kraft_version = 0
    cluster.image.voters = []
    cluster.image.features["kraft.version"] = 0
    assert update(cluster, 2, ("kraft.version", 1, UPGRADE), validate_only=True).error_code == 0
    assert cluster.image.kraft_version == 0
    assert update(cluster, 2, ("kraft.version", 1, UPGRADE)).error_code == 0
    assert (cluster.image.kraft_version, cluster.image.voters) == (1, cluster.quorum.voters)
    names = [
        type(record_codec.decode(*record).value).__name__ for _, batch in cluster.disk.batches[-2:] for record in batch
    ]
    assert names == ["KRaftVersionRecord", "VotersRecord", "NoOpRecord"]


def test_an_empty_request_and_a_caller_without_permission():
    cluster = Cluster()
    assert update(cluster, 2).error_code == 0
    refused = update(cluster, 2, (ELR, 0, SAFE_DOWNGRADE), denied={("Alter", "Cluster", "kafka-cluster")})
    assert refused.error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    assert cluster.image.features[ELR] == 1
