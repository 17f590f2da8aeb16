"""DescribeClientQuotas: rows and errors. tests/metadata/test_client_quotas.py tests filters."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import describe_client_quotas
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_client_quotas import RATE, alter, entry

Request = messages.DescribeClientQuotasRequest


@pytest.mark.parametrize("version", (0, 1))
def test_matching_entities_and_invalid_filters(version):
    cluster = Cluster()
    alter(cluster, entry({"user": "a", "client-id": None}, (RATE, 5.0)))
    answer = ask(cluster, describe_client_quotas, Request(components=[], strict=False), version)
    (row,) = answer.entries
    assert sorted((part.entity_type, part.entity_name) for part in row.entity) == [("client-id", None), ("user", "a")]
    assert [(each.key, each.value) for each in row.values] == [(RATE, 5.0)]
    wrong = Request(components=[Request.ComponentData(entity_type="user", match_type=0, match=None)], strict=False)
    answer = ask(cluster, describe_client_quotas, wrong, version)
    assert (answer.error_code, answer.entries) == (
        errors.INVALID_REQUEST,
        None,
    ) and "MATCH_TYPE_EXACT" in answer.error_message


def test_a_caller_without_permission_is_refused():
    denied = {("DescribeConfigs", "Cluster", "kafka-cluster")}
    answer = ask(Cluster(), describe_client_quotas, Request(components=[], strict=False), 1, denied=denied)
    assert answer.error_code == errors.CLUSTER_AUTHORIZATION_FAILED
