"""Functions that the compiled decoders and encoders call: variable-length integers, limits, errors of malformed bytes.

Positions are indexes into a memoryview of unsigned bytes. An index beyond the end raises `IndexError` or
`struct.error`, which each compiled function turns into `ProtocolError`.
"""

from __future__ import annotations

from pykafkad.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

# The limit of elements of all arrays, plus tags of all tag sections, in one message. The largest honest message is a
# fetch of every partition of a big cluster, about a hundred thousand. Without a limit, a hostile message of a few
# megabytes could ask for gigabytes of objects and block the loop for seconds.
MAX_ELEMENTS = 200_000


class CachedArray(list):  # type: ignore[type-arg]
    """The structs of an array whose row says `cached`. The array remembers its encoded bytes by version.

    The structs must not change any more.
    """

    __slots__ = ("encoded",)

    def __init__(self, structs: Iterable[Any] = ()) -> None:
        super().__init__(structs)
        self.encoded: dict[int, bytes] = {}


# The limit of tags in a header. Kafka defines only one. Without this limit, only the frame size bounds the loop over
# them.
MAX_HEADER_TAGS = 1000


def read_uvarint(view: memoryview, position: int) -> tuple[int, int]:
    """Reads an unsigned varint of at most 32 bits and five bytes; returns its value and the position after it."""
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
    """The error of a null in a version that allows none."""
    return ProtocolError(f"{field} is null, which this version does not allow")


def overlong(field: str, size: int, position: int, limit: int) -> ProtocolError:
    """The error of a length that reaches beyond the message."""
    return ProtocolError(f"{field} claims {size} bytes at byte {position}, but only {limit - position} bytes are left")


def too_many(field: str) -> ProtocolError:
    """The error of a message with more elements than `MAX_ELEMENTS`."""
    return ProtocolError(f"{field}: more than {MAX_ELEMENTS} elements in one message")


def odd_tag(field: str, position: int, end: int) -> ProtocolError:
    """The error of a known tagged field whose declared size is not the size of its value."""
    return ProtocolError(f"tagged field {field} ends at byte {position}, but declares its end at {end}")


def not_carried(field: str) -> ProtocolError:
    """The error of encoding a value that the version does not carry."""
    return ProtocolError(f"{field} is set, but this version does not carry it")


def too_long(field: str, size: int, limit: int) -> ProtocolError:
    """The error of a value that is longer than Kafka's length field can say, or of an id that is not 16 bytes."""
    return ProtocolError(f"{field} has {size} bytes; {limit} are allowed")
