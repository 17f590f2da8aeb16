"""What the compiled functions call at run time: variable-length integers, limits and the errors of malformed bytes.

Positions are indexes into a memoryview of unsigned bytes. An index beyond the end raises `IndexError` or
`struct.error`, which each compiled function turns into `ProtocolError`."""

from __future__ import annotations

from pykafkad.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# Elements of all arrays and tags of all tag sections of one message together. The largest honest message is a fetch of
# every partition of a big cluster, a hundred thousand; a hostile one of a few megabytes could otherwise ask for
# gigabytes of objects, and keep the loop for seconds.
MAX_ELEMENTS = 200_000


class Kept(list):  # type: ignore[type-arg]
    """Structs of an array whose row says `keep`: what they encode to is remembered by version, so they may not change
    any more."""

    __slots__ = ("encoded",)

    def __init__(self, structs: Iterable[Any] = ()) -> None:
        super().__init__(structs)
        self.encoded: dict[int, bytes] = {}


# Tags of a request's or response's header. Kafka defines one; nothing else bounds the loop over them but the frame's
# size.
MAX_HEADER_TAGS = 1000


def read_uvarint(view: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits and five bytes; returns it and the position behind it."""
    value = shift = 0
    for index in range(position, position + 5):
        byte = view[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise ProtocolError(f"varint at byte {position} does not fit into 32 bits")
            return value, index + 1
        shift += 7
    raise ProtocolError(f"varint at byte {position} is longer than five bytes")


def append_uvarint(out: bytearray, value: int) -> None:
    """Appends an unsigned varint (0 <= value < 2**32)."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def unexpected_null(field: str) -> ProtocolError:
    """The error of a null where the version allows none."""
    return ProtocolError(f"{field} is null, which this version does not allow")


def overlong(field: str, size: int, position: int, limit: int) -> ProtocolError:
    """The error of a length that points beyond the message."""
    return ProtocolError(f"{field} claims {size} at byte {position}, but only {limit - position} bytes are left")


def too_many(field: str) -> ProtocolError:
    """The error of a message with more elements than `MAX_ELEMENTS`."""
    return ProtocolError(f"{field}: more than {MAX_ELEMENTS} elements in one message")


def odd_tag(field: str, position: int, end: int) -> ProtocolError:
    """The error of a known tagged field whose declared size is not the size of its value."""
    return ProtocolError(f"tagged field {field} ends at byte {position}, but declares its end at {end}")


def not_carried(field: str) -> ProtocolError:
    """The error of encoding a value that the version has no room for."""
    return ProtocolError(f"{field} is set, but this version does not carry it")


def too_long(field: str, size: int, limit: int) -> ProtocolError:
    """The error of a value longer than Kafka's length field can say, or of an id that is not 16 bytes."""
    return ProtocolError(f"{field} has {size} bytes; {limit} are allowed")
