"""Compares our messages with the JSON that Kafka's converters print: every field of the version, by name and value."""

from __future__ import annotations

import base64

from pykafkad.wire import messages, notation

NO_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def difference(message: messages.Struct, printed: object, version: int) -> str | None:
    """Where `message` is not what Java printed; None when they are the same."""
    return _struct(messages.schema(type(message)).root, message, printed, version, type(message).__name__)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _struct(schema: notation.Struct, ours: object, printed: object, version: int, where: str) -> str | None:
    if not isinstance(printed, dict):
        return f"{where}: {printed!r} is no struct"
    rest = {_plain(name): value for name, value in printed.items()}
    for field in schema.fields:
        if not field.alive(version):
            continue
        value, path = getattr(ours, field.name), f"{where}.{field.name}"
        name = _plain(field.name)
        if name in rest:
            found = _value(field, value, rest.pop(name), version, path)
        elif field.type == "records" and name + "sizeinbytes" in rest:
            size = rest.pop(name + "sizeinbytes")
            found = None if size == (0 if value is None else len(value)) else f"{path}: {size} bytes of records"
        elif field.tag is not None:
            # A tagged field at its default is neither written nor printed.
            found = None if _is_default(field, value) else f"{path}: {value!r} is not printed"
        else:
            found = f"{path} is not printed"
        if found:
            return found
    return f"{where}: also printed: {sorted(rest)}" if rest else None


def _is_default(field: notation.Field, value: object) -> bool:
    return value == (value._root() if field.default is ... else field.default)


def _value(field: notation.Field, ours: object, printed: object, version: int, where: str) -> str | None:
    if ours is None or printed is None:
        return None if ours is printed else f"{where}: {ours!r} and {printed!r}"
    if not field.is_array:
        return _element(field, ours, printed, version, where)
    if not isinstance(printed, list) or len(printed) != len(ours):
        return f"{where}: {len(ours)} elements and {printed!r}"
    for index, (left, right) in enumerate(zip(ours, printed, strict=True)):
        found = _element(field, left, right, version, f"{where}[{index}]")
        if found:
            return found
    return None


def _element(field: notation.Field, ours: object, printed: object, version: int, where: str) -> str | None:
    if field.type is None:
        return _struct(field.struct, ours, printed, version, where)
    if field.type == "bytes":
        ours = base64.b64encode(ours).decode()
    elif field.type == "uuid":
        ours = base64.urlsafe_b64encode(ours).decode().rstrip("=")
    elif field.type == "float64":
        # Jackson prints NaN and the infinities, which JSON lacks, as text; repr tells 0.0 from -0.0.
        ours, printed = repr(ours), repr(NO_NUMBERS.get(printed, printed))
    return None if ours == printed and type(ours) is type(printed) else f"{where}: {ours!r} and {printed!r}"
