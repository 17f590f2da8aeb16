"""Stored records equal those of Kafka's own classes.

`java_records.txt` has one line per version of each record of the internal logs, which no Python codec knows: name,
version, bytes. The values count upwards in the order of the fields, so swapped fields of one type would show. Apache
Kafka 4.3.1's class of that name decoded each line, its printed values were compared, and it encoded them to the same
bytes.
"""

from __future__ import annotations

import os

from pykafkad.wire import messages, notation
from tests.rows import in_turn
from tests.wire.values import RANGES, Values

with open(os.path.join(os.path.dirname(__file__), "java_records.txt"), encoding="ascii") as stream:
    LINES = [line.split() for line in stream]


class Numbered(Values):
    """A message in which every field holds the next number, in the form of its type.

    Arrays of scalars have two elements, arrays of structs one.
    """

    count = 0

    def _value(self, field: notation.Field, classes: dict[str, type], version: int):
        if not field.is_array:
            return self._element(field, classes, version)
        return [self._element(field, classes, version) for _ in range(1 if field.type is None else 2)]

    def scalar(self, field: notation.Field):
        """The next number."""
        self.count += 1
        if field.type in RANGES:
            return self.count + {"int8": 0, "int16": 25_600, "uint16": 25_600, "int64": 2**40}.get(field.type, 70_000)
        forms = {"string": f"s{self.count}", "bytes": b"b%d" % self.count, "bool": True, "float64": float(self.count)}
        forms["uuid"] = self.count.to_bytes(16, "big")
        return forms[field.type]


def test_every_version_of_the_internal_logs_has_a_line():
    """The file has a line for each version of every record class."""
    wanted = {
        (name, str(version))
        for file in messages.COLLECTIONS
        if file.startswith("stored_")
        for types in messages.stored_types(file).values()
        for cls in types.values()
        for name in [cls.__name__]
        for version in messages.valid_versions(cls)
    }
    assert {(name, version) for name, version, _ in LINES} == wanted


@in_turn("name, version, text", LINES)
def test_our_bytes_equal_kafkas(name, version, text):
    """The message that counts upwards encodes to the line's bytes, and they decode to the message."""
    cls = messages.stored_class(name)
    message = Numbered(0).message(cls, int(version))
    assert messages.encode(message, int(version)).hex() == text
    assert messages.decode(cls, int(version), bytes.fromhex(text)) == message
