"""Seeded values of every message, for the tests of the codec and the oracles."""

from __future__ import annotations

import math
import random

from pykafkad.wire import messages, notation

RANGES = {
    "int8": (-(2**7), 2**7),
    "int16": (-(2**15), 2**15),
    "int32": (-(2**31), 2**31),
    "int64": (-(2**63), 2**63),
    "uint16": (0, 2**16),
    "uint32": (0, 2**32),
}
TEXTS = ("", "a", "topic-1", "größe", "x" * 126, "y" * 127, "z" * 200)


class Values:
    """Draws messages of a class and version. Tests override methods where an oracle supports fewer values."""

    def __init__(self, seed: object) -> None:
        self.random = random.Random(repr(seed))

    def message(self, cls: type, version: int):
        """A message in which every field that the version carries is drawn. The others keep their defaults."""
        schema = messages.schema(cls)
        classes = {name: getattr(cls, name) for name in schema.structs}
        return self._struct(cls, schema.root, classes, version)

    def _struct(self, cls: type, struct: notation.Struct, classes: dict[str, type], version: int):
        return cls(
            **{field.name: self._value(field, classes, version) for field in struct.fields if field.alive(version)}
        )

    def _value(self, field: notation.Field, classes: dict[str, type], version: int):
        if field.nullable(version) and self.random.random() < 0.2:
            return None
        if field.is_array:
            return [self._element(field, classes, version) for _ in range(self.random.choice((0, 1, 2, 3)))]
        return self._element(field, classes, version)

    def _element(self, field: notation.Field, classes: dict[str, type], version: int):
        if field.type is None:
            return self._struct(classes[field.struct.name], field.struct, classes, version)
        return self.scalar(field)

    def scalar(self, field: notation.Field):
        """One value of a scalar type."""
        kind = field.type
        if kind in RANGES:
            return self.integer(field)
        if kind == "bool":
            return self.random.random() < 0.5
        if kind == "float64":
            return self.random.choice((0.0, 1.5, -2.25))
        if kind == "uuid":
            return self.random.randbytes(16)
        if kind == "string":
            return self.random.choice(TEXTS)
        if kind == "records":
            return memoryview(self.random.randbytes(self.random.choice((0, 1, 126, 300))))
        return self.random.randbytes(self.random.choice((0, 1, 127)))

    def integer(self, field: notation.Field) -> int:
        """An integer: small, at the limit of its type, or any."""
        low, high = RANGES[field.type]
        return self.random.choice((low, high - 1, 0, 1, max(low, -1), self.random.randrange(low, high)))


class EdgeValues(Values):
    """Draws values at the limits of their types half of the time.

    Such values are text outside the BMP, NaN and infinite floats, lengths around 127 and 16383.
    """

    LENGTHS = (0, 1, 2, 126, 127, 128, 129, 300)
    DOUBLES = (0.0, -0.0, 1.5, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308)
    budget = 400

    def _value(self, field: notation.Field, classes: dict[str, type], version: int):
        if not field.is_array or (field.nullable(version) and self.random.random() < 0.2):
            return super()._value(field, classes, version)
        count = self.random.randrange(4)
        if self.random.random() < 0.02:
            count = self.random.randrange(126, 130)
        count = min(count, self.budget)
        self.budget -= count
        return [self._element(field, classes, version) for _ in range(count)]

    def scalar(self, field: notation.Field):
        """A scalar value, often at the limits of its type."""
        draw, kind = self.random, field.type
        if kind == "float64":
            return draw.choice(self.DOUBLES)
        if kind == "string":
            if draw.random() < 0.7:
                return draw.choice((*TEXTS, "\0", "\U0001f600 astral", "\ufffd"))
            return "x" * (draw.choice((16383, 16384, 32767)) if draw.random() < 0.02 else draw.choice(self.LENGTHS))
        if kind == "uuid":
            return bytes(16) if draw.random() < 0.3 else draw.randbytes(16)
        if kind in ("bytes", "records"):
            size = draw.choice((16383, 16384)) if draw.random() < 0.02 else draw.choice(self.LENGTHS)
            return memoryview(draw.randbytes(size)) if kind == "records" else draw.randbytes(size)
        return super().scalar(field)


def every_version() -> list[tuple[str, int]]:
    """Every message's name with each of its versions."""
    return [
        (name, version)
        for name in messages.all_names()
        for version in messages.valid_versions(messages.stored_class(name))
    ]
