"""Bugs to plant in the schema registry."""

from __future__ import annotations

from tests.planted.plant import Plant

PROTOBUF = ("tests/registry/test_protobuf.py",)
VALUES = ("tests/registry/test_values.py",)
COMMANDS = ("tests/cli/test_by_schema.py",)
DIFFERENCES = "registry/protobuf_differences.py"

CLIENT = ("tests/registry/test_registry_client.py",)
SITES = ("tests/registry/test_sites.py",)

PLANTS = (
    Plant(
        "a registry's login goes along to where it sends one",
        "cli/token_source.py",
        "        request.HTTPDefaultErrorHandler(),\n",
        "        request.HTTPRedirectHandler(),\n        request.HTTPDefaultErrorHandler(),\n",
        CLIENT,
    ),
    Plant(
        "web pages of other sites write schemas",
        "registry/application.py",
        "if origin is not None and",
        "if origin is None and",
        SITES,
    ),
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
    Plant(
        "an id that nobody knew is never asked for again",
        "registry/schema_values.py",
        'return f"the registry {self._client.url} knows',
        'found = f"the registry {self._client.url} knows',
        VALUES,
    ),
    Plant(
        "schemas are remembered without a limit",
        "registry/schema_values.py",
        "self._codecs.clear()",
        "pass",
        VALUES,
    ),
    Plant(
        "bytes behind an Avro value are overlooked",
        "registry/avro_values.py",
        "if left := len(data) - stream.tell():",
        "if left := 0:",
        VALUES,
    ),
    Plant(
        "the first message is written as every other",
        "registry/protobuf_values.py",
        "if indexes == (0,):",
        "if False:",
        VALUES,
    ),
    Plant(
        "a registry's password is in its errors",
        "registry/registry_client.py",
        "urlunsplit((parts.scheme, address,",
        "urlunsplit((parts.scheme, parts.netloc,",
        VALUES,
    ),
    Plant(
        "a tombstone is written by the schema",
        "cli/produce.py",
        "_bytes(value) if write is None or value is None else write(value)",
        "_bytes(value) if write is None else write(value)",
        COMMANDS,
    ),
    Plant(
        "a value without a schema is shown as any other",
        "cli/by_schema.py",
        '**({} if is_optional else {f"{name}_problem": str(error)})',
        "**{}",
        COMMANDS,
    ),
)
