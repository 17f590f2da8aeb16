"""AlterClientQuotas: rows and errors. tests/metadata/test_client_quotas.py tests which quotas are valid."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import alter_client_quotas
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_client_quotas import RATE, describe, entry


def alter(cluster, version, *entries, denied=None, **fields):
    answer = ask(
        cluster,
        alter_client_quotas,
        messages.AlterClientQuotasRequest(entries=list(entries), **fields),
        version,
        denied=denied,
    )
    return [({part.entity_type: part.entity_name for part in row.entity}, row.error_code) for row in answer.entries]


@pytest.mark.parametrize("version", (0, 1))
def test_each_entity_has_its_result(version):
    cluster = Cluster()
    entries = [entry({"user": "a", "client-id": None}, (RATE, 5.0)), entry({"user": "b"}, (RATE, -5.0))]
    rows = [({"user": "a", "client-id": None}, 0), ({"user": "b"}, errors.INVALID_REQUEST)]
    assert alter(cluster, version, *entries, validate_only=True) == rows
    assert describe(cluster.image) == []
    assert alter(cluster, version, *entries) == rows
    assert describe(cluster.image) == [({"user": "a", "client-id": None}, {RATE: 5.0})]


def test_a_caller_without_permission_is_refused():
    denied = {("AlterConfigs", "Cluster", "kafka-cluster")}
    rows = alter(Cluster(), 1, entry({"user": "a"}, (RATE, 5.0)), denied=denied)
    assert rows == [({"user": "a"}, errors.CLUSTER_AUTHORIZATION_FAILED)]
