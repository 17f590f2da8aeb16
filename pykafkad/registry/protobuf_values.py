"""Messages of a Protobuf schema as JSON, in Protobuf's own form of it.

Before the message stands which one of the schema's it is: how many numbers there are and each of them, the place in
the file and then in the message around it, as zigzag varints; a zero alone is the first message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf import descriptor_pool, json_format, message as messages, message_factory

from pykafkad.registry import protobuf_schemas

Indexes = tuple[int, ...]

MOST_DEPTH = 100
MOST_VARINT_BYTES = 5


def codec(
    text: str, references: Sequence[tuple[str, str]], name: str | None = None
) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    """What reads any message of a schema, and what writes the one of that name (the first one); both raise ValueError,
    as does this."""
    files = protobuf_schemas.parse(text, references).value
    pool: Any = descriptor_pool.DescriptorPool()
    try:
        for each in files:
            pool.Add(each)
    except TypeError as error:
        raise ValueError(f"it is no Protobuf schema that can be read here: {error}") from None
    names = _names(files[-1])
    wanted = _wanted(names, files[-1].package, name)

    def decode(data: bytes) -> Any:
        indexes, start = read_indexes(data)
        if indexes not in names:
            raise ValueError(f"the schema has no message at {'/'.join(map(str, indexes))}")
        found = message_factory.GetMessageClass(pool.FindMessageTypeByName(names[indexes]))
        try:
            read = found.FromString(data[start:])
            return json_format.MessageToDict(read, descriptor_pool=pool)
        except (messages.DecodeError, json_format.Error, TypeError) as error:
            raise ValueError(str(error)) from None

    def encode(value: Any) -> bytes:
        if wanted not in names:
            raise ValueError("the schema has no message")
        made = message_factory.GetMessageClass(pool.FindMessageTypeByName(names[wanted]))()
        try:
            json_format.ParseDict(value, made, descriptor_pool=pool)
        except (json_format.Error, AttributeError, TypeError) as error:
            raise ValueError(str(error)) from None
        return written_indexes(wanted) + bytes(made.SerializeToString())

    return decode, encode


def _names(file: Any) -> dict[Indexes, str]:
    """The messages of a file by their places."""
    found: dict[Indexes, str] = {}

    def add(place: Indexes, prefix: str, inside: Any) -> None:
        for number, each in enumerate(inside):
            if not each.options.map_entry:
                found[(*place, number)] = f"{prefix}{each.name}"
            add((*place, number), f"{prefix}{each.name}.", each.nested_type)

    add((), f"{file.package}." if file.package else "", file.message_type)
    return found


def _wanted(names: dict[Indexes, str], package: str, name: str | None) -> Indexes:
    """The place of a message with that name, with or without the package. Raises ValueError."""
    if name is None:
        return (0,)
    for place, each in names.items():
        if each in (name, f"{package}.{name}"):
            return place
    raise ValueError(f"the schema has no message {name}; it has {', '.join(names.values()) or 'none'}")


def read_indexes(data: bytes) -> tuple[Indexes, int]:
    """The place of a message, and where it begins. Raises ValueError."""
    count, position = _varint(data, 0)
    if count == 0:
        return (0,), position
    if not 0 < count <= MOST_DEPTH:
        raise ValueError(f"{count} numbers say which message it is; 0 to {MOST_DEPTH} can be")
    found = []
    for _ in range(count):
        number, position = _varint(data, position)
        found.append(number)
    return tuple(found), position


def written_indexes(indexes: Indexes) -> bytes:
    """The same, as it stands before a message."""
    if indexes == (0,):
        return b"\0"
    return b"".join(_zigzag(number) for number in (len(indexes), *indexes))


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * MOST_VARINT_BYTES, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
    raise ValueError("the numbers are cut off that say which message it is")


def _zigzag(number: int) -> bytes:
    value, found = number << 1, bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
