"""CreateAcls: rows, and brokers without an authorizer. tests/metadata/test_acls.py tests which entries are valid."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.errors import ProtocolError
from pykafkad.handlers import create_acls
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_acls import entry


def create(cluster, *entries, version=3, denied=None):
    answer = ask(cluster, create_acls, messages.CreateAclsRequest(creations=list(entries)), version, denied=denied)
    return [row.error_code for row in answer.results]


@pytest.mark.parametrize("version", (1, 2, 3))
def test_each_entry_has_its_result(version):
    cluster = Cluster(authorizer_class_name=STANDARD_AUTHORIZER)
    assert create(cluster, entry("x"), entry(""), entry("y", resource_pattern_type=4), version=version) == [
        0,
        errors.INVALID_REQUEST,
        0,
    ]
    assert len(cluster.image.acls) == 2
    assert create(cluster, version=version) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"resource_type": 1},
        {"operation": 1},
        {"permission_type": 1},
        {"resource_pattern_type": 1},
        {"resource_pattern_type": 2},
    ],
)
def test_a_value_for_filters_fails_the_whole_request(fields):
    cluster = Cluster(authorizer_class_name=STANDARD_AUTHORIZER)
    assert create(cluster, entry("x"), entry("y", **fields)) == [errors.UNKNOWN_SERVER_ERROR] * 2
    assert not cluster.image.acls


def test_a_refusal_stands_in_every_row():
    assert create(Cluster(), entry(), entry("")) == [errors.SECURITY_DISABLED] * 2
    assert create(Cluster(), entry(), denied={("Alter", "Cluster", "kafka-cluster")}) == [
        errors.CLUSTER_AUTHORIZATION_FAILED
    ]
    for field in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        with pytest.raises(ProtocolError):
            create(Cluster(), entry(), entry(**{field: 0}))
