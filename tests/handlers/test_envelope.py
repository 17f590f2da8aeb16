"""Envelope: requests of clients that a broker forwards to a controller that is alone."""

from __future__ import annotations

import struct

import pytest

from pykafkad import errors
from pykafkad.handlers import envelope, table
from pykafkad.handlers.envelope import FORWARDABLE
from pykafkad.settings.release import of
from pykafkad.wire import frames, messages
from tests.handlers.broker_requests import CLUSTER_ACTION, controller_world, join, registration

CORRELATION_ID = 77


class Recording:
    """An authorizer that allows what it is told to, and keeps the questions."""

    def __init__(self, *, refused=()):
        self.refused = refused
        self.asked = []

    def authorize(self, principal, client_address, operation, resource_type, resource_name):
        self.asked.append((principal, client_address, operation))
        return (principal, operation) not in self.refused


@pytest.fixture
def authorizer():
    return Recording()


@pytest.fixture
def world(authorizer):
    made = controller_world(authorizer=authorizer)
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


@pytest.fixture
def peer(world):
    return world.connect()


def principal(name="alice", *, kind="User", by_token=False, version=0):
    chunks = [bytearray(struct.pack(">h", version))]
    data = messages.DefaultPrincipalData(type=kind, name=name, token_authenticated=by_token)
    messages.encoder(messages.DefaultPrincipalData, 0)(data, chunks)
    return bytes(chunks[0])


def frame(request, version, key=None):
    """A request with its header, without its size."""
    own = messages.record_type(type(request))
    flexible_from = messages.flexible_from(type(request))
    flexible = flexible_from is not None and version >= flexible_from
    chunks = [frames.start_request(own if key is None else key, version, CORRELATION_ID, "client", flexible)]
    messages.encoder(type(request), version)(request, chunks)
    return b"".join(map(bytes, chunks))[4:]


def sealed(request, version, **changes):
    fields = {
        "request_data": frame(request, version) if not isinstance(request, bytes) else request,
        "request_principal": principal(),
        "client_host_address": bytes([10, 0, 0, 7]),
    }
    return messages.EnvelopeRequest(**{**fields, **changes})


def opened(answer, response, version, tagged):
    """The answer inside."""
    assert answer.error_code == 0
    view = memoryview(bytes(answer.response_data))
    correlation_id, position = frames.read_response_header(view, tagged)
    message, end = messages.decoder(response, version)(view, position)
    assert (correlation_id, end) == (CORRELATION_ID, len(view))
    return message


def send(world, peer, request):
    before = len(peer.answers)
    peer.send(request, 0)
    while len(peer.answers) == before:
        world.turn()
    return peer.answers[before]


def creation(name):
    topic = messages.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return messages.CreateTopicsRequest(topics=[topic], timeout_ms=1000)


@pytest.mark.parametrize("version", [4, 7])
def test_a_forwarded_request_is_decided_for_the_client(world, peer, authorizer, version):
    join(world, peer, 2)
    answer = send(world, peer, sealed(creation("t"), version))
    (row,) = opened(answer, messages.CreateTopicsResponse, version, version >= 5).topics
    assert (row.name, row.error_code) == ("t", 0)
    image = world.controller.image
    assert image.topic_askers.take(image.topics["t"].id) == {"client": "client", "principal": "User:alice"}
    assert ("User:alice", "10.0.0.7", "Create") in authorizer.asked
    assert ("User:ANONYMOUS", "127.0.0.1", "ClusterAction") in authorizer.asked


def test_what_the_client_may_not_do_is_refused_inside(world, peer, authorizer):
    join(world, peer, 2)
    authorizer.refused = {("User:alice", "Create")}
    (row,) = opened(send(world, peer, sealed(creation("t"), 7)), messages.CreateTopicsResponse, 7, True).topics
    assert row.error_code == errors.TOPIC_AUTHORIZATION_FAILED


def test_who_may_not_do_cluster_action_may_not_forward(world, peer, authorizer):
    authorizer.refused = {("User:ANONYMOUS", CLUSTER_ACTION[0])}
    answer = send(world, peer, sealed(creation("t"), 7))
    assert (answer.error_code, answer.response_data) == (errors.CLUSTER_AUTHORIZATION_FAILED, None)


def test_an_answer_that_needs_no_decision_comes_at_once(world, peer):
    partition = messages.DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = messages.DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    answer = send(world, peer, sealed(messages.DescribeQuorumRequest(topics=[topic]), 2))
    assert opened(answer, messages.DescribeQuorumResponse, 2, True).topics[0].partitions[0].leader_id == 1


@pytest.mark.parametrize("address", [bytes(15) + b"\1", bytes([192, 168, 1, 1])])
def test_addresses_of_both_kinds(world, peer, authorizer, address):
    send(world, peer, sealed(messages.UnregisterBrokerRequest(broker_id=9), 0, client_host_address=address))
    text = "::1" if len(address) == 16 else "192.168.1.1"
    assert ("User:alice", text, "Alter") in authorizer.asked


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"request_principal": None}, errors.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b""}, errors.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": principal(version=1)}, errors.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": principal()[:-3]}, errors.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"client_host_address": b"12345"}, errors.INVALID_REQUEST),
        ({"client_host_address": b""}, errors.INVALID_REQUEST),
        ({"request_data": b""}, errors.UNSUPPORTED_VERSION),
        ({"request_data": frame(creation("t"), 7)[:-2]}, errors.UNSUPPORTED_VERSION),
        ({"request_data": frame(creation("t"), 7)[:12]}, errors.UNSUPPORTED_VERSION),
        ({"request_data": b"\0\x13\0\x09" + frame(creation("t"), 7)[4:]}, errors.UNSUPPORTED_VERSION),
        ({"request_data": frame(messages.ApiVersionsRequest(), 0)}, errors.INVALID_REQUEST),
        ({"request_data": frame(messages.EnvelopeRequest(), 0)}, errors.INVALID_REQUEST),
        ({"request_data": b"\x7f\xff\0\0" + bytes(8)}, errors.INVALID_REQUEST),
    ],
)
def test_what_can_not_be_opened_is_refused(world, peer, changes, code):
    answer = send(world, peer, sealed(creation("t"), 7, **changes))
    assert (answer.error_code, answer.response_data) == (code, None)
    assert "t" not in world.controller.image.topics


def test_that_a_controller_is_not_active_stands_on_the_envelope():
    """So that the broker, not its client, looks for another controller."""

    def wrapped(key, version, message):
        return envelope._InnerToken("outer", None, key, version, 1).wrap(message)

    topic = messages.CreateTopicsResponse.CreatableTopicResult(name="t", error_code=errors.NOT_CONTROLLER)
    for answer in (
        wrapped(19, 7, messages.CreateTopicsResponse(topics=[topic])),
        wrapped(64, 0, messages.UnregisterBrokerResponse(error_code=errors.NOT_CONTROLLER)),
        wrapped(55, 2, messages.DescribeQuorumResponse(error_code=errors.NOT_LEADER_OR_FOLLOWER)),
    ):
        assert (answer.error_code, answer.response_data) == (errors.NOT_CONTROLLER, None)
    assert wrapped(64, 0, messages.UnregisterBrokerResponse(error_code=errors.NOT_LEADER_OR_FOLLOWER)).error_code == 0


@pytest.mark.parametrize(
    ("who", "code"),
    [
        (principal(), errors.DELEGATION_TOKEN_AUTH_DISABLED),
        (principal(by_token=True), errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        (principal("ANONYMOUS"), errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    ],
)
def test_who_came_by_a_token_gets_no_other(world, peer, who, code):
    answer = send(world, peer, sealed(messages.CreateDelegationTokenRequest(), 3, request_principal=who))
    assert opened(answer, messages.CreateDelegationTokenResponse, 3, True).error_code == code


def test_every_forwarded_api_is_one_that_controllers_answer():
    answered = {row.key for row in table.answered_on("controller", of("4.4"))}
    assert answered >= FORWARDABLE
    assert {row.key for row in table.ROWS if row.is_forwarded} <= FORWARDABLE


def test_nobody_gets_the_answer_of_a_connection_that_is_gone(world, peer):
    assert peer.ask(registration(world), 4).error_code == 0
    peer.send(sealed(creation("t"), 7), 0)
    peer.end()
    world.advance(1.0)
    assert world.runtime.metrics.unexpected_errors == 0
