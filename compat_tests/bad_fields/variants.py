"""A request with one field changed at a time; a field's type and name decide which values it gets.

In an array the first element is changed. The values:

* integers: the ends of the type, -2, -1, 0, 1, and a number no broker, partition or version has;
* texts: null, empty, unknown, the longest that the wire carries, 249 and 250 letters, characters that names may not
  have;
* arrays: null, empty, the same element twice, a good one beside a bad one in both orders, lengths that lie;
* uuids: zero, Kafka's reserved ones, an unknown one; bytes and records: null, empty, garbage.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from compat_tests.bad_fields.encoding import Plain, Raw, length
from pykafkad.wire import messages, notation

Make = Callable[[Any], Any]
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
LONGEST_TEXT = 32_767
UNKNOWN_TEXT = "unknown"
UNKNOWN_NUMBER = 77
UNKNOWN_UUID = bytes(range(100, 116))
TEXTS = {
    "empty": "",
    "unknown": UNKNOWN_TEXT,
    "longest": "x" * LONGEST_TEXT,
    "249 letters": "x" * 249,
    "250 letters": "x" * 250,
    "dot": ".",
    "two dots": "..",
    "slash": "a/b",
    "space": " ",
    "letters beyond ASCII": "größe",
    "zero byte": "a\0b",
    "bytes that are no UTF-8": "\udcff\udcfe",
    "padded": " a ",
}
# The values above that a broker would create as a topic, if it creates topics on demand.
CREATABLE = (UNKNOWN_TEXT, "x" * 249)
MORE_THAN_THERE_IS = 2_147_483_647


class Variant(NamedTuple):
    """One change: `path` names the field (`topics.partitions.index`), `what` names its new value."""

    path: str
    what: str
    keys: tuple[Any, ...]
    make: Make

    def applied(self, plain: Plain) -> Plain:
        """Change `plain` in place and return it."""
        if self.keys:
            owner = _at(plain, self.keys[:-1])
            owner[self.keys[-1]] = self.make(owner[self.keys[-1]])
        return plain


def variants(cls: type, version: int, base: Plain) -> Iterator[Variant]:
    """The unchanged request first, then the request with each field in turn changed."""
    schema = messages.schema(cls)
    yield Variant("", "as it is", (), lambda value: value)
    for path, keys, field in _fields(schema.root.fields, base, version, (), ()):
        for what, make in _values(field, _at(base, keys), version, schema.flexible(version)):
            yield Variant(path, what, keys, make)


def _at(plain: Any, keys: tuple[Any, ...]) -> Any:
    for key in keys:
        plain = plain[key]
    return plain


def _to(value: Any) -> Make:
    return lambda original: value


def _fields(
    fields: list[notation.Field], plain: Plain, version: int, path: tuple[str, ...], keys: tuple[Any, ...]
) -> Iterator[tuple[str, tuple[Any, ...], notation.Field]]:
    """Every field of the request with the keys that lead to it; inside an array they lead through its first element."""
    for field in fields:
        if not field.alive(version):
            continue
        here, way = (*path, field.name), (*keys, field.name)
        yield ".".join(here), way, field
        value = plain[field.name]
        if field.struct is not None and value:
            inner = value[0] if field.is_array else value
            yield from _fields(field.struct.fields, inner, version, here, (*way, 0) if field.is_array else way)


def _values(field: notation.Field, original: Any, version: int, flexible: bool) -> Iterator[tuple[str, Make]]:
    if field.is_array:
        yield from _arrays(field, original, version, flexible)
    elif field.struct is not None:
        if original is not None:
            yield "null", _to(None)
    else:
        for what, value in _scalars(field, flexible):
            if value != original or isinstance(value, Raw):
                yield what, _to(value)


def _scalars(field: notation.Field, flexible: bool) -> Iterator[tuple[str, Any]]:
    kind = field.type
    if kind in BITS:
        half = 1 << (BITS[kind] - 1)
        for value in dict.fromkeys((-half, -2, -1, 0, 1, 2, 3, UNKNOWN_NUMBER, half - 1)):
            yield str(value), value
    elif kind == "float64":
        for value in (0.0, -1.0, 0.5, 1e308, float("inf"), float("nan")):
            yield str(value), value
    elif kind == "uint16":
        for value in (0, 1, 65535):
            yield str(value), value
    elif kind == "bool":
        yield "true", True
        yield "false", False
        yield "two", Raw(b"\2")
    elif kind == "uuid":
        yield "zero", bytes(16)
        yield "one", bytes(15) + b"\1"
        yield "unknown", UNKNOWN_UUID
    elif kind == "string":
        yield "null", None
        yield from TEXTS.items()
        yield "length beyond the end", Raw(length(30_000, ">h", flexible))
        if not flexible:
            yield "length -2", Raw(b"\xff\xfe")
    else:
        yield "null", None
        yield "empty", b""
        yield "one byte", b"\1"
        yield "a hundred bytes", bytes(range(100))
        yield "length beyond the end", Raw(length(MORE_THAN_THERE_IS if not flexible else 1 << 20, ">i", flexible))
        if not flexible:
            yield "length -2", Raw(b"\xff\xff\xff\xfe")


def _arrays(
    field: notation.Field, original: list[Any] | None, version: int, flexible: bool
) -> Iterator[tuple[str, Make]]:
    if original is not None:
        yield "null", _to(None)
    if original != []:
        yield "empty", _to([])
    if not flexible:
        yield "count -2", _to(Raw(b"\xff\xff\xff\xfe"))
    yield "count beyond the end", _to(Raw(length(MORE_THAN_THERE_IS if not flexible else 1 << 20, ">i", flexible)))
    if field.struct is not None:
        if original:
            bad = lambda row: _bad_struct(field.struct, row, version)  # noqa: E731
            yield "twice", lambda rows: [rows[0], rows[0]]
            yield "good and bad", lambda rows: [rows[0], bad(rows[0])]
            yield "bad and good", lambda rows: [bad(rows[0]), rows[0]]
            yield "bad twice", lambda rows: [bad(rows[0]), bad(rows[0])]
        return
    for what, value in _more_scalars(field, flexible):
        yield f"and {what}", lambda row, value=value: [*(row or []), value]
        yield f"only {what}", _to([value])
    if original:
        yield "twice", lambda row: [*row, *row]


def _more_scalars(field: notation.Field, flexible: bool) -> Iterator[tuple[str, Any]]:
    yield "an unknown one", _bad_scalar(field.type)
    if field.type == "string":
        yield "an empty one", ""
        yield "a null one", Raw(length(None, ">h", flexible))
        yield "an illegal one", "a/b"
    if field.type in BITS:
        yield "a negative one", -1
        yield "the greatest", (1 << (BITS[field.type] - 1)) - 1


def _bad_scalar(kind: str) -> Any:
    return {"string": UNKNOWN_TEXT, "uuid": UNKNOWN_UUID}.get(kind, UNKNOWN_NUMBER)


def _bad_struct(struct: notation.Struct, good: Plain, version: int) -> Plain:
    """A row that names something unknown: its first text, number or id is replaced. Nested rows stay the same."""
    bad = copy.deepcopy(good)
    for field in struct.fields:
        if field.alive(version) and not field.is_array and field.struct is None and field.type != "bool":
            bad[field.name] = _bad_scalar(field.type)
            break
    return bad
