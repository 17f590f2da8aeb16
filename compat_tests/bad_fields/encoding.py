"""Encodes a request from its schema and plain dicts, without any rule about what a field may hold.

Our own codec refuses to write a null where none is allowed. This one writes it, and takes `Raw` bytes in place of any
value.
"""

from __future__ import annotations

import struct
from typing import Any

from pykafkad.wire import messages, notation

INTEGERS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I", "int64": ">q", "float64": ">d"}
Plain = dict[str, Any]


class Raw(bytes):
    """Bytes that are written in place of a field's value, its length prefix included."""


def complete(plain: Plain, fields: list[notation.Field], version: int) -> Plain:
    """A copy with every field that `version` carries; absent fields get their default, fields of other versions are
    dropped.
    """
    made: Plain = {}
    for field in fields:
        if not field.alive(version):
            continue
        value = plain.get(field.name, ...)
        if value is ...:
            value = _default(field, version)
        elif field.struct is not None and value is not None:
            inner = field.struct.fields
            value = (
                [complete(item, inner, version) for item in value]
                if field.is_array
                else complete(value, inner, version)
            )
        made[field.name] = value
    return made


def _default(field: notation.Field, version: int) -> Any:
    return complete({}, field.struct.fields, version) if field.default is ... else field.default


def body(cls: type, version: int, plain: Plain, extra_tag: bool = False) -> bytes:
    """The body of a request of class `cls`; with `extra_tag` it ends with an unknown tagged field."""
    schema = messages.schema(cls)
    return _struct(schema.root.fields, plain, version, schema.flexible(version), extra_tag)


def _struct(fields: list[notation.Field], plain: Plain, version: int, flexible: bool, extra_tag: bool = False) -> bytes:
    alive = [field for field in fields if field.alive(version)]
    out = b"".join(_field(field, plain[field.name], version, flexible) for field in alive if field.tag is None)
    if flexible:
        told = [field for field in alive if field.tag is not None and plain[field.name] != _default(field, version)]
        tagged = {field.tag: _field(field, plain[field.name], version, flexible) for field in told}
        if extra_tag:
            tagged[100] = b"unknown"
        out += uvarint(len(tagged))
        for tag, value in sorted(tagged.items()):
            out += uvarint(tag) + uvarint(len(value)) + value
    return out


def _field(field: notation.Field, value: Any, version: int, flexible: bool) -> bytes:
    if isinstance(value, Raw):
        return bytes(value)
    compact = flexible and not field.rigid
    if field.is_array:
        if value is None:
            return length(None, ">i", compact)
        return length(len(value), ">i", compact) + b"".join(_element(field, item, version, flexible) for item in value)
    return _element(field, value, version, flexible)


def _element(field: notation.Field, value: Any, version: int, flexible: bool) -> bytes:
    if isinstance(value, Raw):
        return bytes(value)
    if field.struct is not None:
        nullable = field.null_from is not None and not field.is_array
        if value is None:
            return b"\xff"
        return (b"\1" if nullable else b"") + _struct(field.struct.fields, value, version, flexible)
    kind = field.type
    if kind in INTEGERS:
        return struct.pack(INTEGERS[kind], value)
    if kind == "bool":
        return b"\1" if value else b"\0"
    if kind == "uuid":
        return bytes(value)
    form = ">h" if kind == "string" else ">i"
    data = None if value is None else value.encode("utf-8", "surrogateescape") if kind == "string" else bytes(value)
    return length(None if data is None else len(data), form, flexible and not field.rigid) + (data or b"")


def length(count: int | None, form: str, compact: bool) -> bytes:
    """The length prefix of a text, bytes or an array; None stands for null."""
    if compact:
        return uvarint(0 if count is None else count + 1)
    return struct.pack(form, -1 if count is None else count)


def uvarint(value: int) -> bytes:
    """An unsigned number in groups of seven bits (KIP-482)."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
