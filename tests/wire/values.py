"""Seeded values for every message: what the codec tests and the oracles feed."""

from __future__ import annotations

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
    """Builds messages of a class and version. Overridden where an oracle knows fewer values."""

    def __init__(self, seed: object) -> None:
        self.random = random.Random(repr(seed))

    def message(self, cls: type, version: int):
        """A message in which every field that the version carries is drawn; the others keep their defaults."""
        schema = messages.schema(cls)
        classes = {name: getattr(cls, name) for name in schema.structs}
        return self._struct(cls, schema.root, classes, version)

    def _struct(self, cls: type, struct: notation.Struct, classes: dict[str, type], version: int):
        return cls(**{field.name: self._value(field, classes, version) for field in struct.fields if field.alive(version)})

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
        """An integer: small, at the edge, or anything."""
        low, high = RANGES[field.type]
        return self.random.choice((low, high - 1, 0, 1, max(low, -1), self.random.randrange(low, high)))


def every_version() -> list[tuple[str, int]]:
    """Every message's name with each of its versions."""
    return [(name, version) for name in messages.all_names() for version in messages.valid_versions(messages.stored_class(name))]
