"""AddRaftVoter: every refusal of a quorum of one voter, in Kafka's order."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import add_raft_voter
from pykafkad.wire import messages
from tests.metadata.cluster import CLUSTER_ID, DIRECTORY_ID, NODE_ID, Cluster
from tests.metadata.context import ask

Request = messages.AddRaftVoterRequest
LISTENERS = [Request.Listener(name="controller", host="h", port=1)]
GOOD = {"cluster_id": None, "voter_id": 2, "voter_directory_id": b"x" * 16, "listeners": LISTENERS}


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, errors.REQUEST_TIMED_OUT),
        ({"cluster_id": CLUSTER_ID}, errors.REQUEST_TIMED_OUT),
        ({"cluster_id": "other", "voter_id": -1}, errors.INCONSISTENT_CLUSTER_ID),
        ({"voter_id": -1}, errors.INVALID_REQUEST),
        ({"voter_directory_id": bytes(16)}, errors.INVALID_REQUEST),
        ({"voter_id": NODE_ID}, errors.DUPLICATE_VOTER),
        ({"voter_id": NODE_ID, "voter_directory_id": DIRECTORY_ID}, errors.DUPLICATE_VOTER),
        ({"listeners": []}, errors.INVALID_REQUEST),
        ({"listeners": [Request.Listener(name="PLAINTEXT", host="h", port=1)]}, errors.INVALID_REQUEST),
    ],
)
def test_each_refusal_has_its_code(version, fields, code):
    answer = ask(Cluster(), add_raft_voter, Request(**{**GOOD, **fields}), version)
    assert (answer.error_code, bool(answer.error_message)) == (code, True)


def test_a_static_quorum_takes_no_voters():
    cluster = Cluster()
    cluster.image.kraft_version = 0
    assert ask(cluster, add_raft_voter, Request(**GOOD), 0).error_code == errors.UNSUPPORTED_VERSION


def test_a_caller_without_permission_is_refused():
    answer = ask(Cluster(), add_raft_voter, Request(**GOOD), 0, denied={("Alter", "Cluster", "kafka-cluster")})
    assert answer.error_code == errors.CLUSTER_AUTHORIZATION_FAILED
