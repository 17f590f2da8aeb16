"""The size field and the headers around every message body. Nothing here reads or writes a socket.

    frame = size (int32, without itself) + header + body

Request header 1 is key, version, correlation id, client id; header 2 (flexible bodies, KIP-482) appends a tag section,
and its client id keeps the two-byte length. Response header 0 is the correlation id; header 1 appends a tag
section. An ApiVersions response has header 0 in every version, so that a client whose version was too high can read it
(KIP-511).
"""

from __future__ import annotations

from struct import Struct

from pykafkad.errors import ProtocolError
from pykafkad.wire import messages
from pykafkad.wire.primitives import MAX_HEADER_TAGS, append_uvarint, overlong, read_uvarint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

API_VERSIONS = 18
_SIZE = Struct(">i")
_REQUEST = Struct(">hhih")
_RESPONSE = Struct(">ii")


def peek_request(view: memoryview) -> tuple[int, int, int]:
    """The key, version and correlation id of a request frame without its size.

    They are read before the broker knows whether it supports the version.
    """
    if len(view) < 8:
        raise ProtocolError(f"request of {len(view)} bytes is shorter than a header")
    key, version, correlation_id, _ = _REQUEST.unpack_from(bytes(view[:8]) + b"\0\0", 0)
    return key, version, correlation_id


def read_request_header(view: memoryview, flexible_from: dict[int, int]) -> tuple[int, int, int, str, int]:
    """Reads (api_key, api_version, correlation_id, client_id, position of the body) of a request frame without its
    size.

    `flexible_from` maps an API key to its first flexible version (`flexible_versions()`). A key that is not in it has
    header 1. A null client id becomes the empty string. Raises `ProtocolError`.
    """
    limit = len(view)
    if limit < 10:
        raise ProtocolError(f"request of {limit} bytes is shorter than a header")
    key, version, correlation_id, size = _REQUEST.unpack_from(view, 0)
    position = 10
    client_id = ""
    if size > 0:
        position = 10 + size
        if position > limit:
            raise overlong("client id", size, 10, limit)
        client_id = str(view[10:position], "utf-8", "replace")
    if version >= flexible_from.get(key, 32767):
        if position < limit and view[position] == 0:
            position += 1
        else:
            position = _skip_tags(view, position, limit)
    return key, version, correlation_id, client_id, position


def _skip_tags(view: memoryview, position: int, limit: int) -> int:
    try:
        count, position = read_uvarint(view, position)
        if count > MAX_HEADER_TAGS:
            raise ProtocolError(f"header claims {count} tags, {MAX_HEADER_TAGS} are allowed")
        for _ in range(count):
            _, position = read_uvarint(view, position)
            size, position = read_uvarint(view, position)
            if size > limit - position:
                raise overlong("tag of a header", size, position, limit)
            position += size
    except IndexError:
        raise ProtocolError(f"header is cut off: {limit} bytes") from None
    return position


def flexible_versions() -> dict[int, int]:
    """Maps each API key that has flexible versions to the first of them."""
    return {key: first for key, _, _, first in messages.all_known_apis() if first is not None}


def response_is_tagged(api_key: int, api_version: int, flexible_from: dict[int, int]) -> bool:
    """Whether a response has header 1. A client needs this to read the response."""
    return api_key != API_VERSIONS and api_version >= flexible_from.get(api_key, 32767)


def start_response(correlation_id: int, tagged: bool) -> bytearray:
    """The first chunk of a response: room for the size field, then the header.

    The encoder of the body appends to it. `finish_frame` fills in the size.
    """
    out = bytearray(_RESPONSE.pack(0, correlation_id))
    if tagged:
        out.append(0)
    return out


def start_request(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None, tagged: bool
) -> bytearray:
    """The first chunk of a client's request: room for the size field, then the header."""
    name = b"" if client_id is None else client_id.encode()
    out = bytearray(4)
    out += _REQUEST.pack(api_key, api_version, correlation_id, -1 if client_id is None else len(name))
    out += name
    if tagged:
        append_uvarint(out, 0)
    return out


def read_response_header(view: memoryview, tagged: bool) -> tuple[int, int]:
    """Reads (correlation id, position of the body) of a response frame without its size, as a client does.

    Raises `ProtocolError`.
    """
    if len(view) < 4:
        raise ProtocolError(f"response of {len(view)} bytes is shorter than a header")
    (correlation_id,) = _SIZE.unpack_from(view, 0)
    return correlation_id, _skip_tags(view, 4, len(view)) if tagged else 4


def finish_frame(chunks: list[Any]) -> int:
    """Writes the size into the first chunk and drops an empty last one.

    Returns the number of bytes of all chunks, including the size field.
    """
    total = 0
    for chunk in chunks:
        size = getattr(chunk, "chunk_size", None)
        total += len(chunk) if size is None else size
    if total - 4 > 0x7FFFFFFF:
        raise ProtocolError(f"frame of {total - 4} bytes is too large for its size field")
    _SIZE.pack_into(chunks[0], 0, total - 4)
    if len(chunks) > 1 and getattr(chunks[-1], "chunk_size", None) is None and not chunks[-1]:
        chunks.pop()
    return total
