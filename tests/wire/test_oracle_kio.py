"""kio's codec as a second opinion: equal bytes in every version of every message that it knows."""

from __future__ import annotations

import dataclasses
import datetime
import io
import uuid

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st
from kio.index import _resolve
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer

from pykafkad.wire import messages, notation
from tests import seeds
from tests.seeds import examples
from tests.wire.values import EdgeValues, Values

EXAMPLES = 1500


def _theirs() -> dict[str, dict[int, str]]:
    found: dict[str, dict[int, str]] = {}
    for versions in schema_name_map.values():
        for version, kinds in versions.items():
            for path in kinds.values():
                found.setdefault(path.rpartition(":")[2], {})[version] = path
    return found


THEIRS = _theirs()
SHARED = sorted(set(THEIRS) & set(messages.all_names()))


class _Values(EdgeValues):
    """Values that kio can handle.

    kio turns error codes, durations and timestamps into objects, so values are drawn from the range of these objects.
    """

    def integer(self, field: notation.Field) -> int:
        if "error_code" in field.name:
            return self.random.choice((-1, 0, 1, 35, 100))
        if field.name.endswith("_ms") or "time" in field.name:
            return self.random.choice((0, 1, 1000, 60_000))
        return super().integer(field)

    def scalar(self, field: notation.Field):
        # NaN does not equal itself, so it cannot be compared here. The test with Java's classes covers it.
        return self.random.choice((0.0, 1.5, -2.25)) if field.type == "float64" else super().scalar(field)


def _plain(value: object) -> object:
    """A value of kio as ours."""
    if value is None or isinstance(value, (bool, str, bytes, float)):
        return value
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    return int(value)


def _same(ours: object, theirs: object, where: str) -> None:
    if isinstance(ours, messages.Struct):
        for name in (field.name for field in dataclasses.fields(theirs)):
            own = next((each for each in (name, name + "_ms", name.rstrip("_")) if hasattr(ours, each)), None)
            assert own is not None, f"{where} has no {name}"
            _same(getattr(ours, own), getattr(theirs, name), f"{where}.{own}")
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), where
        for index, (left, right) in enumerate(zip(ours, theirs, strict=True)):
            _same(left, right, f"{where}[{index}]")
    else:
        plain = _plain(theirs)
        missing = {bytes(16): None, -1: None} if plain is None else {}
        assert (ours if not isinstance(ours, (bytes, int)) else missing.get(ours, ours)) == plain, where


def test_the_oracle_knows_enough():
    """The number of compared messages does not shrink unnoticed."""
    assert len(SHARED) > 180


def _shared_versions(name: str) -> list[int]:
    return [version for version in messages.known_versions(messages.stored_class(name)) if version in THEIRS[name]]


def _compare(name: str, version: int, values: Values) -> None:
    """kio decodes our bytes to the same values and encodes those to our bytes, which we decode again."""
    cls, entity = messages.stored_class(name), _resolve(THEIRS[name][version])
    message = values.message(cls, version)
    data = bytes(messages.encode(message, version))
    decoded, end = entity_reader(entity)(data, 0)
    assert end == len(data), f"{name} v{version}"
    _same(message, decoded, f"{name} v{version}")
    out = io.BytesIO()
    entity_writer(entity)(out, decoded)
    assert out.getvalue() == data, f"{name} v{version}: {message!r}"
    assert messages.decode(cls, version, out.getvalue()) == message


@pytest.mark.parametrize("name", seeds.sampled(SHARED, 8))
def test_every_version_byte_equal_with_kio(name):
    """The values are seeded, so that every version is always tried."""
    for version in _shared_versions(name):
        for seed in range(2):
            _compare(name, version, _Values((name, version, seed)))


@pytest.mark.long
@hypothesis_settings(max_examples=examples(EXAMPLES), deadline=None)
@given(
    st.sampled_from([(name, version) for name in SHARED for version in _shared_versions(name)]),
    st.integers(min_value=0),
)
def test_hypothesis_byte_equal_with_kio(which, seed):
    """Any message and version, with values of any seed."""
    _compare(*which, _Values(seed))
