"""The records of the metadata log as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pykafkad.effects import StoredRecord
from pykafkad.errors import ProtocolError
from pykafkad.metadata import record_codec
from pykafkad.wire import messages
from tests.rows import in_turn


def test_the_frame_equals_kafkas():
    """These are the bytes that Kafka 4.3.1 wrote for its first feature record: frame version 1, type, version, body."""
    record = record_codec.record(messages.FeatureLevelRecord(name="metadata.version", feature_level=30))
    assert record_codec.encode(record) == (None, b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00")


def test_control_record_has_typed_key_and_bare_body():
    """A LeaderChange of a quorum of one has key version 0 and type 2, and a body without a frame."""
    voter = messages.LeaderChangeMessage.Voter(voter_id=1)
    record = record_codec.control_record(
        messages.LeaderChangeMessage(version=0, leader_id=1, voters=[voter], granting_voters=[voter])
    )
    key, value = record_codec.encode(record)
    assert key == b"\0\0\0\2"
    assert value == b"\0\0" + b"\0\0\0\1" + b"\2\0\0\0\1\0" + b"\2\0\0\0\1\0" + b"\0"
    assert record_codec.is_control(record)
    assert record_codec.decode(key, value) == record


@in_turn("number, name, version", [(number, *row) for number, row in record_codec.RECORDS.items()])
def test_every_type_survives_encoding(number, name, version):
    """The numbers in the table equal those of the schemas."""
    message = messages.stored_class(name)()
    key, value = record_codec.encode(record_codec.record(message))
    assert (key, value[:3]) == (None, bytes((1, number, version)))
    assert record_codec.decode(None, value) == StoredRecord(None, message)
    assert version == messages.known_versions(type(message))[-1]


@pytest.mark.parametrize(("level", "version"), [(7, 0), (16, 0), (17, 1), (22, 1), (23, 2), (30, 2)])
def test_a_record_is_written_in_the_version_of_the_clusters_level(level, version):
    partition = messages.PartitionRecord(partition_id=0, topic_id=b"t" * 16, replicas=[1], isr=[1], leader=1)
    (record,) = record_codec.at_level([record_codec.record(partition)], level)
    _, value = record_codec.encode(record, level)
    assert value[:3] == bytes([record_codec.FRAME_VERSION, 3, version])


def test_records_of_unknown_types_and_versions_are_kept():
    """A record of a newer Kafka keeps its bytes."""
    for value in (b"\x01\x64\x00body", b"\x01\x02\x09body", b"\x01\xac\x02\x00body"):
        record = record_codec.decode(None, value)
        assert type(record.value) is record_codec.UnknownRecord
        assert record_codec.encode(record) == (None, value)
    record = record_codec.decode(b"\0\0\0\x09", b"\0\0body")
    assert record_codec.encode(record) == (b"\0\0\0\x09", b"\0\0body")


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\x01",
        b"\x01\x02",
        b"\x02\x02\x00",
        b"\x01\x02\x00\x05ab",
        b"\x80\x80\x80\x80\x80\x80",
        b"\x01\x14\x00\x00extra",
    ],
)
def test_damaged_records_are_protocol_errors(value):
    """The cases are another frame version, a body that is cut short, and bytes after its end."""
    with pytest.raises(ProtocolError):
        record_codec.decode(None, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [(b"\0\0", b"\0\0"), (b"\0\0\0\2", b"\0"), (b"\0\0\0\3", b"\0\0\1"), (b"\0\0\0\5", b"\0\0\0\1\0x")],
)
def test_damaged_control_records_are_protocol_errors(key, value):
    """The cases are the same as for data records."""
    with pytest.raises(ProtocolError):
        record_codec.decode(key, value)


@given(value=st.binary(max_size=60))
def test_any_bytes_decode_or_are_refused(value):
    """Random bytes give a record or a ProtocolError, and no other exception."""
    for key in (None, b"\0\0\0\6"):
        try:
            record_codec.decode(key, value)
        except ProtocolError:
            pass


def test_the_caches_of_decoders_are_bounded():
    """The types are read from the bytes of a log, which can name four thousand million of them."""
    for number in range(1000, 1000 + 3 * record_codec.MAX_DECODERS):
        assert record_codec.decode(None, bytes((1, number & 0x7F | 0x80, number >> 7, 0))).value.type == number
        record_codec.decode(b"\0\0" + number.to_bytes(2, "big"), b"\0\0")
    assert (
        record_codec._decoder_of.cache_info().currsize
        == record_codec._control_decoder_of.cache_info().currsize
        == record_codec.MAX_DECODERS
    )
