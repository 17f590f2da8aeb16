"""DescribeCluster in all versions."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import describe_cluster
from pykafkad.wire import messages
from tests.metadata.cluster import CLUSTER_ID, Cluster
from tests.metadata.context import ask


def describe(cluster, version, **fields):
    denied = fields.pop("denied", None)
    return ask(cluster, describe_cluster, messages.DescribeClusterRequest(**fields), version, denied=denied)


@pytest.mark.parametrize("version", range(3))
def test_every_version_shows_brokers_and_a_controller(version):
    answer = describe(Cluster(), version)
    assert (answer.error_code, answer.cluster_id, answer.controller_id, answer.endpoint_type) == (0, CLUSTER_ID, 1, 1)
    assert [(row.broker_id, row.host, row.port, row.rack) for row in answer.brokers] == [(1, "localhost", 9092, None)]
    assert answer.cluster_authorized_operations == -(2**31)


def test_authorized_operations_come_on_request():
    cluster = Cluster()
    assert describe(cluster, 2, include_cluster_authorized_operations=True).cluster_authorized_operations == 8096
    denied = {("Describe", "Cluster", "kafka-cluster")}
    assert (
        describe(cluster, 2, include_cluster_authorized_operations=True, denied=denied).cluster_authorized_operations
        == 0
    )


@pytest.mark.parametrize(
    ("kind", "code"), [(2, errors.MISMATCHED_ENDPOINT_TYPE), (0, errors.UNSUPPORTED_ENDPOINT_TYPE), (9, 115)]
)
def test_a_broker_refuses_other_endpoint_types(kind, code):
    answer = describe(Cluster(), 1, endpoint_type=kind)
    assert (answer.error_code, answer.brokers, answer.controller_id) == (code, [], -1)
    assert answer.error_message


def test_fenced_brokers_come_on_request():
    cluster = Cluster()
    cluster.image.brokers[1].fenced = True
    assert (describe(cluster, 2).brokers, describe(cluster, 2).controller_id) == ([], -1)
    assert [row.is_fenced for row in describe(cluster, 2, include_fenced_brokers=True).brokers] == [True]
