"""Values of messages: shown to people, sorted, replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any

from pykafkad import uuids
from pykafkad.errors import KafkaError
from pykafkad.wire.batch import ATTRIBUTES_POSITION, CRC_POSITION, crc32c, parse_header
from pykafkad.wire.records import iterate_records

_UUID_BYTES = 16
_SHOWN_BYTES = 100
_PRODUCER_ID_POSITION = 43
_PRODUCER_ID = Struct(">q")
_CRC = Struct(">I")

Twin = Callable[[str, object], object]


def shown(value: object) -> object:
    """A value as JSON has it, and as people read it."""
    if isinstance(value, bytes | bytearray | memoryview):
        content = bytes(value)
        if len(content) == _UUID_BYTES:
            return uuids.to_text(content)
        return repr(content[:_SHOWN_BYTES]) + ("…" if len(content) > _SHOWN_BYTES else "")
    if hasattr(value, "_root"):
        return {name: shown(getattr(value, name)) for name in value._root.__slots__}
    if isinstance(value, list | tuple):
        return [shown(each) for each in value]
    return value


def sketch(row: Any, struct: Any, version: int) -> str:
    """What a row is sorted by: all that is neither an id nor a number of its broker."""
    parts: list[object] = []
    for field in struct.fields:
        if field.alive(version):
            value = getattr(row, field.name)
            if field.struct is not None and value is not None:
                rows = value if field.is_array else [value]
                parts.append(sorted(sketch(each, field.struct, version) for each in rows))
            elif field.type not in ("uuid", "records", "bytes"):
                parts.append(value)
    return repr(parts)


def kind(name: str, value: object, ids: Mapping[str, str]) -> str | None:
    """The kind of id that a field of this name holds, if any."""
    if isinstance(value, bytes):
        return "uuid" if len(value) == _UUID_BYTES else None
    for suffix, found in ids.items():
        # Such as v3_and_below_producer_id.
        if name.endswith(suffix):
            return found
    return "text" if isinstance(value, str) else None


def collect(value: Any, name: str, found: set[Any]) -> None:
    """Add what every field of that name holds in a message."""
    if isinstance(value, list):
        for each in value:
            collect(each, name, found)
    elif hasattr(value, "_root"):
        for slot in value._root.__slots__:
            inner = getattr(value, slot)
            if slot == name:
                found.add(inner)
            else:
                collect(inner, name, found)


def replace(message: Any, struct: Any, version: int, twin: Twin) -> bool:
    """Replace the ids in a request by their twins; whether there was one."""
    changed = False
    for field in struct.fields:
        if not field.alive(version):
            continue
        value = getattr(message, field.name)
        if value is None:
            continue
        if field.struct is not None:
            rows = value if field.is_array else [value]
            for each in rows:
                changed = replace(each, field.struct, version, twin) or changed
            continue
        if field.type == "records":
            found: Any = _with_twins(bytes(value), twin)
        elif field.is_array:
            found = [twin(field.name, _plain(field, each)) for each in value]
        else:
            found = twin(field.name, _plain(field, value))
        if found != (bytes(value) if isinstance(found, bytes) else value):
            setattr(message, field.name, found)
            changed = True
    return changed


def _plain(field: Any, value: Any) -> Any:
    return bytes(value) if field.type == "uuid" else value


def _with_twins(content: bytes, twin: Twin) -> bytes:
    """Batches with the twins of their producers' ids."""
    out = bytearray(content)
    at = 0
    while len(out) - at >= 61:
        header = parse_header(out, at)
        end = at + header.size_bytes
        if header.producer_id >= 0 and end <= len(out):
            _PRODUCER_ID.pack_into(out, at + _PRODUCER_ID_POSITION, twin("producer_id", header.producer_id))
            _CRC.pack_into(out, at + CRC_POSITION, crc32c(bytes(out[at + ATTRIBUTES_POSITION : end])))
        at = max(end, at + 61)
    return bytes(out)


def by_offset(content: Any) -> dict[int, tuple[Any, ...]]:
    """What counts of each record in batches, by its offset."""
    found: dict[int, tuple[Any, ...]] = {}
    view = memoryview(content if content is not None else b"")
    while len(view) >= 61:
        header = parse_header(view)
        if header.size_bytes > len(view):
            break
        try:
            for each in iterate_records(view[: header.size_bytes], header):
                found[each.offset] = header.is_control, header.is_transactional, each.key, each.value, each.headers
        except KafkaError as problem:
            found[header.base_offset] = ("a batch that can't be read", str(problem))
        view = view[header.size_bytes :]
    return found
