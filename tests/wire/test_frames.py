"""Frames and headers: valid ones, incomplete ones and ones with false lengths."""

from __future__ import annotations

import struct

import pytest

from pykafkad.errors import ProtocolError
from pykafkad.wire import frames, messages
from pykafkad.wire.primitives import MAX_HEADER_TAGS, append_uvarint

FLEXIBLE = frames.flexible_versions()


def test_flexible_versions_of_every_api():
    """All APIs have flexible versions but SaslHandshake and OffsetDelete, as in Kafka."""
    assert FLEXIBLE[0] == 9 and FLEXIBLE[18] == 3 and FLEXIBLE[52] == 0
    assert {key for key, _, _, _ in messages.all_apis()} - set(FLEXIBLE) == {17, 47}


@pytest.mark.parametrize(
    ("key", "version", "client", "text"),
    [
        (0, 8, "cli", "0000 0008 00000007 0003 636c69"),
        (0, 9, "cli", "0000 0009 00000007 0003 636c69 00"),
        (18, 3, "", "0012 0003 00000007 0000 00"),
        (17, 1, "é", "0011 0001 00000007 0002 c3a9"),
    ],
)
def test_request_headers_of_both_versions(key, version, client, text):
    """Header 2 keeps the two-byte length of the client id (an exception of KIP-482) and adds tags."""
    data = bytes.fromhex(text.replace(" ", ""))
    assert frames.read_request_header(memoryview(data + b"body"), FLEXIBLE) == (key, version, 7, client, len(data))
    assert frames.peek_request(memoryview(data)) == (key, version, 7)
    tagged = version >= FLEXIBLE.get(key, 99)
    assert frames.start_request(key, version, 7, client, tagged) == bytes(4) + data
    header = messages.RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=7, client_id=client
    )
    assert messages.encode(header, 2 if tagged else 1) == data


def test_a_negative_length_is_an_empty_client_id():
    """Kafka's parser treats any negative length so."""
    assert frames.read_request_header(memoryview(bytes.fromhex("00000008" + "00000007" + "ffff")), FLEXIBLE)[3:] == (
        "",
        10,
    )
    assert frames.read_request_header(memoryview(bytes.fromhex("00000008" + "00000007" + "8000")), FLEXIBLE)[3:] == (
        "",
        10,
    )
    assert frames.start_request(0, 8, 7, None, False)[-2:] == b"\xff\xff"


def test_an_unknown_api_key_has_header_1():
    """An unknown API has no flexible versions. The caller refuses it by its key."""
    assert frames.read_request_header(memoryview(bytes.fromhex("03e70009" + "00000007" + "0000")), FLEXIBLE) == (
        999,
        9,
        7,
        "",
        10,
    )


def test_header_tags_are_skipped():
    """Unknown tagged fields of a header are skipped, including long ones."""
    head = bytes.fromhex("00000009000000070000")
    tags = b"\2" + b"\0\1x" + b"\x81\1" + b"\x81\1" + bytes(129)
    assert frames.read_request_header(memoryview(head + tags + b"b"), FLEXIBLE)[4] == 10 + len(tags)
    assert frames.read_response_header(memoryview(b"\0\0\0\7" + tags), True) == (7, 4 + len(tags))


def test_incomplete_and_false_headers_are_refused():
    """Each is a `ProtocolError`."""
    whole = bytes.fromhex("0000 0009 00000007 0003 636c69 01 05 02 0000".replace(" ", ""))
    assert frames.read_request_header(memoryview(whole), FLEXIBLE)[4] == len(whole)
    for end in range(len(whole)):
        with pytest.raises(ProtocolError):
            frames.read_request_header(memoryview(whole[:end]), FLEXIBLE)
    with pytest.raises(ProtocolError, match="client id claims 32767"):
        frames.read_request_header(memoryview(bytes.fromhex("00000008000000077fff")), FLEXIBLE)
    with pytest.raises(ProtocolError, match="claims 4294967295"):
        frames.read_request_header(
            memoryview(bytes.fromhex("0000000900000007000001") + b"\0\xff\xff\xff\xff\x0f"), FLEXIBLE
        )
    for end in range(8):
        with pytest.raises(ProtocolError, match="shorter than a header"):
            frames.peek_request(memoryview(whole[:end]))
    with pytest.raises(ProtocolError, match="shorter than a header"):
        frames.read_response_header(memoryview(b"\0\0\0"), False)


def test_response_headers():
    """Flexible versions have header 1, except ApiVersions (KIP-511)."""
    assert frames.response_is_tagged(0, 9, FLEXIBLE) and not frames.response_is_tagged(0, 8, FLEXIBLE)
    assert not any(frames.response_is_tagged(18, version, FLEXIBLE) for version in range(5))
    assert not frames.response_is_tagged(17, 1, FLEXIBLE)
    assert frames.start_response(7, False) == bytes(4) + b"\0\0\0\7"
    assert frames.start_response(-7, True) == bytes(4) + b"\xff\xff\xff\xf9" + b"\0"
    assert frames.read_response_header(memoryview(b"\0\0\0\7rest"), False) == (7, 4)


class _Slice:
    chunk_size = 1000


def test_the_frame_size_counts_file_slices():
    """A file slice counts with its length. An empty last buffer is dropped, to save a system call."""
    chunks = [frames.start_response(7, False)]
    assert frames.finish_frame(chunks) == 8 and chunks == [b"\0\0\0\4\0\0\0\7"]
    chunks = [frames.start_response(7, True), _Slice(), bytearray(b"xy"), _Slice(), bytearray()]
    assert frames.finish_frame(chunks) == 9 + 2002
    assert chunks[0][:4] == (2007).to_bytes(4, "big") and len(chunks) == 4
    huge = _Slice()
    huge.chunk_size = 2**31
    with pytest.raises(ProtocolError, match="too large"):
        frames.finish_frame([bytearray(4), huge])


def test_the_tags_of_a_header_are_limited():
    """A header with a hundred megabytes of tags would block the loop for half a minute."""
    for count, fits in ((MAX_HEADER_TAGS, True), (MAX_HEADER_TAGS + 1, False)):
        header = bytearray(struct.pack(">hhih", 18, 3, 1, -1))
        append_uvarint(header, count)
        header += bytes(2 * count)
        if fits:
            assert frames.read_request_header(memoryview(header), FLEXIBLE)[4] == len(header)
        else:
            with pytest.raises(ProtocolError, match="1001 tags"):
                frames.read_request_header(memoryview(header), FLEXIBLE)
