"""DescribeUserScramCredentials: users and permissions."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import describe_user_scram_credentials
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster
from tests.metadata.context import ask
from tests.metadata.test_credentials import added, alter

Request = messages.DescribeUserScramCredentialsRequest


def describe(cluster, users, denied=None):
    asked = None if users is None else [Request.UserName(name=name) for name in users]
    answer = ask(cluster, describe_user_scram_credentials, Request(users=asked), 0, denied=denied)
    return answer.error_code, [
        (row.user, row.error_code, [info.mechanism for info in row.credential_infos]) for row in answer.results
    ]


def test_users_and_their_errors():
    cluster = Cluster()
    alter(cluster, (), [added("a", 1), added("b", 2)])
    everybody = (0, [("a", 0, [1]), ("b", 0, [2])])
    assert describe(cluster, None) == describe(cluster, []) == everybody
    assert describe(cluster, ["b", "c"]) == (0, [("b", 0, [2]), ("c", errors.RESOURCE_NOT_FOUND, [])])


def test_a_caller_without_permission_is_refused():
    code = errors.CLUSTER_AUTHORIZATION_FAILED
    assert describe(Cluster(), ["a"], denied={("Describe", "Cluster", "kafka-cluster")}) == (code, [("", code, [])])
