"""Records of the metadata log as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykafkad.effects import StoredRecord
from pykafkad.errors import ProtocolError
from pykafkad.metadata import stored
from pykafkad.wire import messages


def test_frame_is_kafkas():
    """Frame version 1, type, version, body: the bytes that a real 4.3.1 wrote for its first feature record."""
    record = stored.record(messages.FeatureLevelRecord(name="metadata.version", feature_level=30))
    assert stored.encode(record) == (None, b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00")


def test_control_record_has_typed_key_and_bare_body():
    """A LeaderChange as a quorum of one writes it: key version 0 and type 2, body without a frame."""
    voter = messages.LeaderChangeMessage.Voter(voter_id=1)
    record = stored.control_record(messages.LeaderChangeMessage(version=0, leader_id=1, voters=[voter], granting_voters=[voter]))
    key, value = stored.encode(record)
    assert key == b"\0\0\0\2"
    assert value == b"\0\0" + b"\0\0\0\1" + b"\2\0\0\0\1\0" + b"\2\0\0\0\1\0" + b"\0"
    assert stored.is_control(record)
    assert stored.decode(key, value) == record


@pytest.mark.parametrize(("number", "name", "version"), [(number, *row) for number, row in stored.RECORDS.items()])
def test_every_type_comes_back(number, name, version):
    """The table's rows are the schemas' own numbers, and each type survives a round trip."""
    message = messages.stored_class(name)()
    key, value = stored.encode(stored.record(message))
    assert (key, value[:3]) == (None, bytes((1, number, version)))
    assert stored.decode(None, value) == StoredRecord(None, message)
    assert version == messages.valid_versions(type(message))[-1]


def test_unknown_types_and_versions_are_carried():
    """What a newer Kafka wrote is kept byte for byte."""
    for value in (b"\x01\x64\x00body", b"\x01\x02\x09body", b"\x01\xac\x02\x00body"):
        record = stored.decode(None, value)
        assert type(record.value) is stored.UnknownRecord
        assert stored.encode(record) == (None, value)
    record = stored.decode(b"\0\0\0\x09", b"\0\0body")
    assert stored.encode(record) == (b"\0\0\0\x09", b"\0\0body")


@pytest.mark.parametrize(
    "value",
    [b"", b"\x01", b"\x01\x02", b"\x02\x02\x00", b"\x01\x02\x00\x05ab", b"\x80\x80\x80\x80\x80\x80", b"\x01\x14\x00\x00extra"],
)
def test_broken_records_are_protocol_errors(value):
    """A frame of another version, a body that is cut short, bytes behind the end: refused, never guessed."""
    with pytest.raises(ProtocolError):
        stored.decode(None, value)


@pytest.mark.parametrize(("key", "value"), [(b"\0\0", b"\0\0"), (b"\0\0\0\2", b"\0"), (b"\0\0\0\3", b"\0\0\1"), (b"\0\0\0\5", b"\0\0\0\1\0x")])
def test_broken_control_records_are_protocol_errors(key, value):
    """The same for control records."""
    with pytest.raises(ProtocolError):
        stored.decode(key, value)


@given(value=st.binary(max_size=60))
def test_any_bytes_decode_or_are_refused(value):
    """Garbage gives a record or a ProtocolError, and nothing else."""
    for key in (None, b"\0\0\0\6"):
        try:
            stored.decode(key, value)
        except ProtocolError:
            pass


def test_types_that_nobody_knows_are_not_remembered_without_end():
    """They come out of the bytes of a log, four thousand million of them."""
    for number in range(1000, 1000 + 3 * stored.MAX_DECODERS):
        assert stored.decode(None, bytes((1, number & 0x7F | 0x80, number >> 7, 0))).value.type == number
        stored.decode(b"\0\0" + number.to_bytes(2, "big"), b"\0\0")
    assert stored._decoder_of.cache_info().currsize == stored._control_decoder_of.cache_info().currsize == stored.MAX_DECODERS
