"""Compares the answers to a request that meets a bug, for every API and version, with those that Kafka's request
classes make.
"""

from __future__ import annotations

import json
from pathlib import Path

from compat_tests.codec.java_json import difference
from compat_tests.codec.oracle import MessageOracle
from pykafkad import errors
from pykafkad.handlers import table, unexpected
from pykafkad.wire import messages, notation
from tests.wire.values import RANGES, Values

# Kafka answers these in the order of a hash table.
IN_NO_ORDER = ("Produce", "WriteTxnMarkers")
# Fields that may be null in a request and come back in the answer.
WITH_NULLS = ("Metadata", "DeleteTopics", "ElectLeaders", "ListPartitionReassignments", "AlterClientQuotas")


class Counted(Values):
    """Values in which every list has several distinct rows, so that a forgotten or a confused row shows.

    The caller says which nullable fields are null.
    """

    def __init__(self, seed: object, rows: int, nullable: tuple[str, ...]) -> None:
        super().__init__(seed)
        self._rows = rows
        self._nullable = nullable
        self.count = 0

    def _value(self, field: notation.Field, classes: dict[str, type], version: int) -> object:
        if field.nullable(version) and field.name in self._nullable:
            return None
        elements = [self._element(field, classes, version) for _ in range(self._rows if field.is_array else 1)]
        return elements if field.is_array else elements[0]

    def scalar(self, field: notation.Field) -> object:
        """The next number, or a text made of it."""
        self.count += 1
        if field.type in RANGES:
            return self.count
        return f"s{self.count}" if field.type == "string" else super().scalar(field)


def test_every_api_answers_a_bug_as_kafka_does(kafka_jars: Path, tmp_path: Path) -> None:
    """Error messages differ, so only their presence is compared."""
    asked = []
    for row in table.ROWS:
        cls = messages.request_class(row.key)
        for version in range(row.min_version, row.max_version + 1):
            for nullable in (
                (),
                *(((("name", "entity_name"), ("topics", "topic_partitions"))) if row.name in WITH_NULLS else ()),
            ):
                request = Counted((row.name, version), 1 if row.name in IN_NO_ORDER else 2, nullable).message(
                    cls, version
                )
                asked.append((row, version, request, messages.encode(request, version)))
    questions = [f"unexpected {row.key} {version} {data.hex() or '-'}" for row, version, _, data in asked]
    wrong = []
    for (row, version, request, _), line in zip(asked, MessageOracle(kafka_jars, tmp_path).ask(questions), strict=True):
        ours = unexpected.answer(row, version, request, errors.UNKNOWN_SERVER_ERROR)
        if line == "null":
            assert ours is None, f"{row.name} v{version}"
            continue
        assert ours is not None, f"{row.name} v{version}"
        again = messages.decode(type(ours), version, messages.encode(ours, version))
        found = difference(again, _our_sentences(json.loads(line)), version)
        if found:
            wrong.append(f"v{version} {found}")
    assert not wrong, "\n".join(wrong)


def _our_sentences(printed: object) -> object:
    if isinstance(printed, list):
        return [_our_sentences(each) for each in printed]
    if isinstance(printed, dict):
        return {
            name: errors.message(-1) if name == "errorMessage" and value else _our_sentences(value)
            for name, value in printed.items()
        }
    return printed
