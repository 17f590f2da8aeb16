"""The APIs that are refused: Kafka's error in every row and in every version."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import table
from pykafkad.wire import messages
from tests.wire.values import Values

REFUSED = [
    (row, version)
    for row in table.ROWS
    if row.state == table.REFUSED
    for version in range(row.min_version, row.max_version + 1)
]
# Kafka's codes for unknown transactional ids, and for features that are off.
TELLING = {errors.UNSUPPORTED_VERSION, errors.INVALID_PRODUCER_ID_MAPPING}


class OfHere(Values):
    """Values for topics that exist, with one element in each list."""

    def __init__(self, topic_id: bytes) -> None:
        super().__init__("refused")
        self.topic_id = topic_id

    def _value(self, field, classes, version):
        if field.is_array:
            return [self._element(field, classes, version)]
        return self._element(field, classes, version)

    def scalar(self, field):
        if field.type == "string":
            return "t" if field.name in ("name", "topic_name") else "someone"
        if field.type == "uuid":
            return self.topic_id
        return {"bool": True, "bytes": b"x"}.get(field.type, 0)


def error_codes(value, found=None):
    """Every error code of an answer, with the names of the structs that carry it."""
    found = [] if found is None else found
    for name in value._root.__slots__:
        inner = getattr(value, name)
        if name.endswith("error_code"):
            found.append((type(value).__name__, inner))
        for each in inner if isinstance(inner, list) else ():
            if hasattr(each, "_root"):
                error_codes(each, found)
    return found


@pytest.fixture
def topic(world, peer):
    """The id of a topic `t` with one partition."""
    wanted = messages.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    return peer.ask(messages.CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7).topics[0].topic_id


@pytest.mark.parametrize(("row", "version"), REFUSED, ids=lambda value: getattr(value, "name", str(value)))
def test_every_row_is_refused_in_every_version(topic, peer, row, version):
    """The answer has one row for the one row of the request, with the refusal's error."""
    request = OfHere(topic).message(messages.request_class(row.key), version)
    answer = peer.ask(request, version)
    codes = {code for _, code in error_codes(answer)}
    assert codes - {errors.NONE} <= TELLING and codes & TELLING, error_codes(answer)
    assert len([code for _, code in error_codes(answer) if code]) == 1, "the one row of the request"
    assert peer.closed is None


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (messages.FindCoordinatorRequest(key_type=2, coordinator_keys=["group:topic:0"]), 6),
        (messages.FindCoordinatorRequest(key_type=2, coordinator_keys=["group:AAAAAAAAAAAAAAAAAAAAAQ:x"]), 6),
        (messages.FindCoordinatorRequest(key_type=2, coordinator_keys=[" :AAAAAAAAAAAAAAAAAAAAAQ:0"]), 6),
    ],
)
def test_a_malformed_key_is_an_invalid_request(peer, request_, version):
    """A share group's key that is not group, topic id and partition."""
    assert {code for _, code in error_codes(peer.ask(request_, version))} - {0} == {errors.INVALID_REQUEST}
