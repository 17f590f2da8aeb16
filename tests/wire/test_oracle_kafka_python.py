"""kafka-python's own codec as a second opinion: byte-equal in every version of every message that it knows."""

from __future__ import annotations

import importlib
import pkgutil
import warnings

import pytest

from pykafkad.wire import messages, notation
from tests.wire.values import Values


def _classes() -> dict[str, type]:
    with warnings.catch_warnings():
        # It reads its schemas through a function that Python 3.11 and 3.12 call deprecated.
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


class _Values(Values):
    """kafka-python takes records as bytes, and reads an ApiVersions answer with an error as version 0."""

    def integer(self, field: notation.Field) -> int:
        return 0 if field.name == "error_code" else super().integer(field)

    def scalar(self, field: notation.Field):
        value = super().scalar(field)
        return bytes(value) if isinstance(value, memoryview) else value


def _same(schema: notation.Message, struct: notation.Struct, version: int, ours: object, theirs: object, where: str) -> None:
    """Compares what the version carries, field by field; the names must agree too."""
    for field in struct.fields:
        if not field.alive(version):
            continue
        if field.name.endswith("authorized_operations"):
            continue  # They rename it and make a set of it; its bytes are compared with everything else's.
        left, right, path = getattr(ours, field.name), getattr(theirs, field.name), f"{where}.{field.name}"
        if field.default is ... and right is None:
            right = left if left == type(left)() else None  # A tagged struct that is not there is None for them, a default for us.
        if field.type is None and left is not None and right is not None:
            pairs = zip(left, right, strict=True) if field.is_array else [(left, right)]
            for index, (inner, other) in enumerate(pairs):
                _same(schema, field.struct, version, inner, other, f"{path}[{index}]")
        elif field.type == "uuid" and field.is_array and left is not None:
            assert left == [each.bytes for each in right], path
        else:
            assert left == (right.bytes if field.type == "uuid" else right), path


def test_the_oracle_knows_enough():
    """A guard against an oracle that silently shrinks."""
    assert len(SHARED) > 90


@pytest.mark.parametrize("name", SHARED)
def test_byte_equal_with_kafka_python(name):
    """They decode what we encode to the same values, and encode those to our bytes."""
    cls, theirs = messages.stored_class(name), THEIRS[name]
    for version in messages.valid_versions(cls):
        if not theirs.valid_versions[0] <= version <= theirs.valid_versions[1]:
            continue
        for seed in range(3):
            message = _Values((name, version, seed)).message(cls, version)
            data = bytes(messages.encode(message, version))
            decoded = theirs.decode(data, version=version)
            schema = messages.schema(cls)
            _same(schema, schema.root, version, message, decoded, f"{name} v{version}")
            decoded._header = None
            assert bytes(decoded.encode()) == data, f"{name} v{version}: {message!r}"
