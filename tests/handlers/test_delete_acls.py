"""DeleteAcls: rows, and brokers without an authorizer. tests/metadata/test_acls.py tests filters."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.errors import ProtocolError
from pykafkad.handlers import delete_acls
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_acls import chosen, create, entry


def delete(cluster, *filters, version=3, denied=None):
    answer = ask(cluster, delete_acls, messages.DeleteAclsRequest(filters=list(filters)), version, denied=denied)
    return [(row.error_code, len(row.matching_acls)) for row in answer.filter_results]


@pytest.mark.parametrize("version", (1, 2, 3))
def test_each_filter_has_its_result(version):
    cluster = Cluster(authorizer_class_name=STANDARD_AUTHORIZER)
    create(cluster, entry("x"), entry("y"))
    rows = delete(
        cluster,
        chosen(resource_name_filter="x"),
        chosen(operation=99),
        chosen(resource_name_filter="z"),
        version=version,
    )
    assert rows == [(0, 1), (errors.INVALID_REQUEST, 0), (0, 0)]
    assert len(cluster.image.acls) == 1
    assert delete(cluster, version=version) == []


def test_a_refusal_stands_in_every_row():
    assert delete(Cluster(), chosen(), chosen(operation=99)) == [(errors.SECURITY_DISABLED, 0)] * 2
    assert delete(Cluster(), chosen(), denied={("Alter", "Cluster", "kafka-cluster")}) == [
        (errors.CLUSTER_AUTHORIZATION_FAILED, 0)
    ]
    for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        with pytest.raises(ProtocolError):
            delete(Cluster(), chosen(), chosen(**{field: 0}))
