"""DescribeAcls: rows, grouping, and brokers without an authorizer. tests/metadata/test_acls.py tests filters."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.errors import ProtocolError
from pykafkad.handlers import describe_acls
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_acls import create, entry

ANYTHING = {
    "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "principal_filter": None,
    "host_filter": None,
    "operation": 1, "permission_type": 1,
}  # fmt: skip


def describe(cluster, version=3, *, denied=None, **fields):
    return ask(cluster, describe_acls, messages.DescribeAclsRequest(**{**ANYTHING, **fields}), version, denied=denied)


@pytest.mark.parametrize("version", (1, 2, 3))
def test_entries_are_grouped_by_resource(version):
    cluster = Cluster(authorizer_class_name=STANDARD_AUTHORIZER)
    create(cluster, entry("x"), entry("y"), entry("x", operation=4), entry("x", resource_pattern_type=4))
    answer = describe(cluster, version)
    assert answer.error_code == 0
    assert [(row.resource_name, row.pattern_type, len(row.acls)) for row in answer.resources] == [
        ("x", 3, 2),
        ("y", 3, 1),
        ("x", 4, 1),
    ]
    (row,) = describe(cluster, version, operation=4).resources
    assert [(acl.principal, acl.host, acl.operation, acl.permission_type) for acl in row.acls] == [
        ("User:a", "*", 4, 3)
    ]


def test_the_answer_has_the_refusal():
    assert describe(Cluster()).error_code == errors.SECURITY_DISABLED
    denied = {("Describe", "Cluster", "kafka-cluster")}
    assert describe(Cluster(), denied=denied).error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        with pytest.raises(ProtocolError):
            describe(Cluster(), **{field: 0})


def test_a_value_of_zero_closes_the_connection(world, peer):
    peer.send(messages.DescribeAclsRequest(**{**ANYTHING, "operation": 0}), 3)
    assert "DescribeAcls version 3" in peer.closed
