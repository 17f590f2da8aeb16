"""Bugs to plant in the schema registry."""

from __future__ import annotations

from tests.planted.plant import Plant

PROTOBUF = ("tests/registry/test_protobuf.py",)
DIFFERENCES = "registry/protobuf_differences.py"

PLANTS = (
    Plant(
        "a field that moves into a oneof alone counts as two",
        DIFFERENCES,
        "if len(alone) + len(groups) > 1:",
        "if len(alone) + len(groups) > 0:",
        PROTOBUF,
    ),
    Plant(
        "a oneof that is gone with all its fields keeps from reading",
        DIFFERENCES,
        "elif not after.has_none_of(before, was_in):",
        "else:",
        PROTOBUF,
    ),
    Plant(
        "messages of imported files are not compared",
        DIFFERENCES,
        "elif not (earlier.is_own and later.is_own):",
        "elif False:",
        PROTOBUF,
    ),
    Plant(
        "messages that refer to themselves are compared without end",
        DIFFERENCES,
        "self._open.add(id(earlier))",
        "pass",
        PROTOBUF,
    ),
    Plant(
        "proto3's fields have a label that they do not say",
        DIFFERENCES,
        'if _is_in_oneof(field) or (self.file.syntax not in ("", "proto2") and not field.proto3_optional):',
        "if _is_in_oneof(field):",
        PROTOBUF,
    ),
    Plant(
        "a reference's name leads out of protoc's folder",
        "registry/protobuf_compiler.py",
        'any(part in ("", ".", "..") for part in parts)',
        "False",
        PROTOBUF,
    ),
    Plant(
        "options of one's own are lost where a schema is a descriptor",
        "registry/protobuf_schemas.py",
        "protobuf_text.text_of([*_imported(file, references), file])",
        "protobuf_text.text_of([file])",
        PROTOBUF,
    ),
    Plant(
        "the numbers of a normalized message stand in any order",
        "registry/protobuf_text.py",
        "return sorted(rows, key=key) if self._is_sorted else list(rows)",
        "return list(rows)",
        PROTOBUF,
    ),
    Plant(
        "a descriptor is answered as a text",
        "registry/routes.py",
        "given.is_descriptor",
        "False",
        PROTOBUF,
    ),
)
