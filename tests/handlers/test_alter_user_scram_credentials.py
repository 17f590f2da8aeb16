"""AlterUserScramCredentials: rows and permissions. tests/metadata/test_credentials.py tests which credentials are
valid."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import alter_user_scram_credentials
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_credentials import added, removed


def alter(cluster, deletions, upsertions, denied=None):
    request = messages.AlterUserScramCredentialsRequest(deletions=deletions, upsertions=upsertions)
    answer = ask(cluster, alter_user_scram_credentials, request, 0, denied=denied)
    return [(row.user, row.error_code) for row in answer.results]


def test_each_user_has_a_result():
    cluster = Cluster()
    assert alter(cluster, [removed("b")], [added("a")]) == [("a", 0), ("b", errors.RESOURCE_NOT_FOUND)]
    assert alter(cluster, [removed("a")], []) == [("a", 0)]
    assert not cluster.image.scram_credentials


def test_a_caller_without_permission_is_refused():
    code = errors.CLUSTER_AUTHORIZATION_FAILED
    rows = alter(Cluster(), [removed("b")], [added("a"), added("b")], denied={("Alter", "Cluster", "kafka-cluster")})
    assert rows == [("a", code), ("b", code)]
