"""kafka-python's codec as a second opinion: equal bytes in every version of every message that it knows."""

from __future__ import annotations

import importlib
import pkgutil
import warnings

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from pykafkad.wire import messages, notation
from tests import seeds
from tests.seeds import examples
from tests.wire.values import EdgeValues, Values

EXAMPLES = 1500


def _classes() -> dict[str, type]:
    with warnings.catch_warnings():
        # kafka-python reads its schemas with a function that Python 3.11 and 3.12 deprecate.
        warnings.simplefilter("ignore", DeprecationWarning)
        return _load()


def _load() -> dict[str, type]:
    import kafka.protocol
    from kafka.protocol.api_message import ApiMessage

    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if ".old" not in module.name:
            importlib.import_module(module.name)
    found = {}
    pending = [ApiMessage]
    while pending:
        cls = pending.pop()
        pending += cls.__subclasses__()
        if getattr(cls, "_json", None) is not None and cls._class_version is None:
            found[cls._json["name"]] = cls
    return found


THEIRS = _classes()
SHARED = sorted(set(THEIRS) & set(messages.all_names()))


class _Values(EdgeValues):
    """Values that kafka-python can handle: records as bytes, and errors of ApiVersions only in version 0."""

    def integer(self, field: notation.Field) -> int:
        return 0 if field.name == "error_code" else super().integer(field)

    def scalar(self, field: notation.Field):
        if field.type == "uuid":
            # kafka-python decodes sixteen zeros to None.
            return self.random.randbytes(16)
        if field.type == "float64":
            # NaN does not equal itself, so it cannot be compared here. The test with Java's classes covers it.
            return self.random.choice((0.0, 1.5, -2.25))
        value = super().scalar(field)
        return bytes(value) if isinstance(value, memoryview) else value


def _same(
    schema: notation.Message, struct: notation.Struct, version: int, ours: object, theirs: object, where: str
) -> None:
    """Compares the fields that the version carries, by name."""
    for field in struct.fields:
        if not field.alive(version):
            continue
        if field.name.endswith("authorized_operations"):
            continue  # kafka-python renames this field and makes a set of it. The comparison of bytes covers it.
        left, right, path = getattr(ours, field.name), getattr(theirs, field.name), f"{where}.{field.name}"
        if field.default is ... and right is None:
            right = (
                left if left == type(left)() else None
            )  # A tagged struct that is absent is None in kafka-python and a default here.
        if field.type is None and left is not None and right is not None:
            pairs = zip(left, right, strict=True) if field.is_array else [(left, right)]
            for index, (inner, other) in enumerate(pairs):
                _same(schema, field.struct, version, inner, other, f"{path}[{index}]")
        elif field.type == "uuid" and field.is_array and left is not None:
            assert left == [each.bytes for each in right], path
        else:
            assert left == (right.bytes if field.type == "uuid" else right), path


def test_the_oracle_knows_enough():
    """The number of compared messages does not shrink unnoticed."""
    assert len(SHARED) > 90


def _shared_versions(name: str) -> list[int]:
    first, last = THEIRS[name].valid_versions
    return [version for version in messages.known_versions(messages.stored_class(name)) if first <= version <= last]


def _compare(name: str, version: int, values: Values) -> None:
    """kafka-python decodes our bytes to the same values and encodes those to our bytes, which we decode again."""
    cls = messages.stored_class(name)
    schema, message = messages.schema(cls), values.message(cls, version)
    data = bytes(messages.encode(message, version))
    decoded = THEIRS[name].decode(data, version=version)
    _same(schema, schema.root, version, message, decoded, f"{name} v{version}")
    decoded._header = None
    theirs = bytes(decoded.encode())
    assert theirs == data, f"{name} v{version}: {message!r}"
    assert messages.decode(cls, version, theirs) == message


@pytest.mark.parametrize("name", seeds.sampled(SHARED, 4))
def test_every_version_byte_equal_with_kafka_python(name):
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
def test_hypothesis_byte_equal_with_kafka_python(which, seed):
    """Any message and version, with values of any seed."""
    _compare(*which, _Values(seed))
