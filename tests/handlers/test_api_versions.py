"""ApiVersions, and requests with an API or version that is not answered."""

import struct

import pytest

from pykafkad import errors
from pykafkad.handlers import table
from pykafkad.wire import messages
from tests.rows import in_turn


@pytest.mark.parametrize("version", range(5))
def test_every_advertised_api_is_listed_with_its_range(peer, version):
    named = {"client_software_name": "test", "client_software_version": "1"} if version >= 3 else {}
    answer = peer.ask(messages.ApiVersionsRequest(**named), version)
    listed = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    assert listed == {
        row.key: (row.advertised_min, row.max_version) for row in table.ROWS if row.advertised_min is not None
    }
    assert listed[0] == (0, 13), "old librdkafka compresses only if Produce 0 is advertised (KAFKA-18659)"
    assert all(low <= high for low, high in listed.values())


def test_features_with_minimum_0_are_listed_from_version_4(peer):
    """KIP-1022: clients before version 4 can't parse a minimum of 0."""
    names = {"client_software_name": "test", "client_software_version": "1"}
    third = {
        feature.name: feature.min_version
        for feature in peer.ask(messages.ApiVersionsRequest(**names), 3).supported_features
    }
    fourth = {feature.name for feature in peer.ask(messages.ApiVersionsRequest(**names), 4).supported_features}
    assert third and all(third.values())
    assert set(third) < fourth


@pytest.mark.parametrize("version", [5, 100, 32767, -1])
def test_a_version_above_ours_is_answered_in_version_0_with_our_range(world, peer, version):
    """Clients then ask again in a version that both sides have. The body of an unknown version cannot be decoded."""
    peer.expected.append((messages.ApiVersionsResponse, 0, False))
    peer.send_bytes(struct.pack(">ihhih", 14, 18, version, 7, 0) + b"\xff\xff\xff\xff")
    (answer,) = peer.answers
    assert answer.error_code == errors.UNSUPPORTED_VERSION
    assert [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys] == [(18, 0, 4)]
    assert peer.closed is None


@pytest.mark.parametrize(
    ("name", "software_version"),
    [("", "1"), ("test", ""), ("-test", "1"), ("te st", "1"), ("test", "1."), ("tést", "1")],
)
def test_client_software_outside_the_pattern_is_refused(peer, name, software_version):
    """KIP-511. The answer lists no APIs, as in Kafka."""
    answer = peer.ask(
        messages.ApiVersionsRequest(client_software_name=name, client_software_version=software_version), 3
    )
    assert (answer.error_code, answer.api_keys) == (errors.INVALID_REQUEST, [])


@in_turn(
    "key, version",
    [
        (-1, 0),
        (4, 0),
        (5, 0),
        (6, 0),
        (7, 0),
        (58, 0),
        (93, 0),
        (32767, 0),
        (0, 2),
        (0, 14),
        (1, 3),
        (1, 19),
        (68, 2),
        (26, 6),
        (76, 0),
        (92, 1),
    ],
)
def test_an_unknown_api_or_version_closes_the_connection(world, key, version):
    """Clients cannot decode an answer to an unknown request. A closed connection is an error that they expect."""
    peer = world.connect()
    peer.send_bytes(struct.pack(">ihhih", 10, key, version, 1, -1))
    assert "not answered here" in peer.closed
    assert peer.received == b""


@in_turn("size", range(14))
def test_a_request_that_is_cut_short_closes_the_connection(world, size):
    whole = world.connect().encode(messages.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 0)[4:]
    peer = world.connect()
    cut = whole[: size if size < 10 else len(whole) - 14 + size]
    peer.send_bytes(struct.pack(">i", len(cut)) + cut)
    assert peer.closed is not None
    assert world.connect().ask(messages.ApiVersionsRequest(), 0).error_code == 0, "other connections are served"


def test_bytes_after_the_fields_of_a_request_are_ignored(peer):
    """As in Kafka, only the fields of the schema are decoded."""
    frame = peer.encode(messages.ApiVersionsRequest(), 0)
    peer.send_bytes(struct.pack(">i", len(frame)) + frame[4:] + b"tail")
    assert peer.answers[0].error_code == 0
