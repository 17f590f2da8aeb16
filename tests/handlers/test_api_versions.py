"""ApiVersions: what is offered, and how a client that asks too much learns what it may ask."""

import pytest

from pykafkad import errors
from pykafkad.handlers import table
from pykafkad.wire import frames, messages


def request(name="kafka-python", version="3.0.12"):
    return messages.ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", range(5))
def test_every_version_lists_what_is_offered(peer, version):
    """Every offered API with its range, in the order of the keys; before version 3 the request is empty."""
    answer = peer.ask(request() if version >= 3 else messages.ApiVersionsRequest(), version)
    assert answer.error_code == errors.NONE
    assert answer.throttle_time_ms == 0
    assert [(row.api_key, row.max_version) for row in answer.api_keys] == [(row.key, row.max_version) for row in table.ROWS if row.offered]


def test_produce_is_listed_from_version_0(peer):
    """Older librdkafka looks for Produce 0 before it compresses (KAFKA-18659); all others start where they are served."""
    listed = {row.api_key: row.min_version for row in peer.ask(request(), 4).api_keys}
    assert listed[0] == 0
    assert all(listed[row.key] == row.min_version for row in table.ROWS if row.offered and row.key != 0)


def test_transactions_are_absent(peer):
    """What is not offered is not in the list: clients then know."""
    listed = {row.api_key for row in peer.ask(request(), 4).api_keys}
    assert not listed & {24, 25, 26, 28, 65, 66, 68, 76, 78}


def test_a_version_above_ours_is_answered_in_version_0(peer):
    """UNSUPPORTED_VERSION, our own range of this API, response header 0: the client asks again with what it can read (KIP-511)."""
    body = b"\x00\x12\x00\x63\x00\x00\x00\x07\x00\x01x\x00" + b"\x02a\x02b\x00"
    peer.expected.append((messages.ApiVersionsResponse, 0, False))
    peer.send_bytes(len(body).to_bytes(4, "big") + body)
    (answer,) = peer.answers
    assert answer.error_code == errors.UNSUPPORTED_VERSION
    assert [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys] == [(18, 0, 4)]
    assert peer.closed is None


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a", ""), ("-a", "1"), ("a-", "1"), ("a b", "1"), ("a", "1_0"), ("é", "1")])
def test_names_of_software_have_a_pattern(peer, name, version):
    """Letters, digits, dots and dashes, with a letter or digit at both ends; else INVALID_REQUEST and no keys (KIP-511)."""
    answer = peer.ask(request(name, version), 3)
    assert (answer.error_code, answer.api_keys) == (errors.INVALID_REQUEST, [])


@pytest.mark.parametrize(("name", "version"), [("a", "1"), ("apache-kafka-java", "4.3.1"), ("librdkafka", "2.16.1-ssl.x")])
def test_names_that_clients_have(peer, name, version):
    """Those of real clients pass."""
    assert peer.ask(request(name, version), 3).error_code == errors.NONE


def test_features_with_minimum_0_from_version_4(peer):
    """Older clients cannot read a minimum of 0 and are not shown such a feature (KIP-1022)."""
    old = {row.name: (row.min_version, row.max_version) for row in peer.ask(request(), 3).supported_features}
    new = {row.name: (row.min_version, row.max_version) for row in peer.ask(request(), 4).supported_features}
    assert all(low > 0 for low, _ in old.values())
    assert old.items() < new.items()


def test_finalized_features(peer):
    """The metadata version of 4.3 is finalized; transaction.version is not, since clients would act on it."""
    answer = peer.ask(request(), 4)
    finalized = {row.name: row.max_version_level for row in answer.finalized_features}
    assert finalized["metadata.version"] == 30
    assert "transaction.version" not in finalized
    assert answer.finalized_features_epoch >= 0


def test_the_answer_has_response_header_0(peer):
    """Also in flexible versions: a client that does not know our range must be able to read it."""
    assert not frames.response_is_tagged(18, 4, frames.flexible_versions())
