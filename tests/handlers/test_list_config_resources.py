"""ListConfigResources: everything that has settings, by type."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import list_config_resources
from pykafkad.metadata import events
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_controller import create, topic


@pytest.fixture
def cluster():
    made = Cluster()
    create(made, topic("t", retention_ms="1"), topic("u"))
    changes = [(16, "metrics", {"interval.ms": "1000"}), (32, "group", {"consumer.session.timeout.ms": "50000"})]
    made.submit(events.AlterConfigs("t", changes, incremental=False))
    return made


def listed(cluster, types=(), version=1, denied=None):
    answer = ask(
        cluster,
        list_config_resources,
        messages.ListConfigResourcesRequest(resource_types=list(types)),
        version,
        denied=denied,
    )
    return answer.error_code, sorted((row.resource_type, row.resource_name) for row in answer.config_resources)


def test_version_0_lists_subscriptions(cluster):
    assert listed(cluster, version=0) == (0, [(16, "metrics")])


def test_the_request_names_types_or_means_all(cluster):
    everything = [(2, "t"), (2, "u"), (4, "1"), (8, "1"), (16, "metrics"), (32, "group")]
    assert listed(cluster) == (0, everything)
    for kind in (2, 4, 8, 16, 32):
        assert listed(cluster, [kind]) == (0, [row for row in everything if row[0] == kind])
    assert listed(cluster, [32, 32]) == (0, [(32, "group")])
    for kind in (0, 1, 3, 99, -1):
        assert listed(cluster, [2, kind]) == (errors.UNSUPPORTED_VERSION, [])


def test_a_resource_without_settings_is_not_listed(cluster):
    cluster.submit(events.AlterConfigs("t", [(16, "metrics", {}), (32, "group", {})], incremental=False))
    assert listed(cluster, [16, 32]) == (0, [])


def test_a_caller_without_permission_is_refused(cluster):
    assert listed(cluster, denied={("DescribeConfigs", "Cluster", "kafka-cluster")}) == (
        errors.CLUSTER_AUTHORIZATION_FAILED,
        [],
    )
