"""Protobuf schemas: protoc says what is one (`protobuf_compiler.py`), `protobuf_differences.py` compares two.

A schema is given as the text of a .proto file, or as its descriptor (FileDescriptorProto) in base64, as some clients
have it; it is kept as a text (`protobuf_text.py`)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any

from google.protobuf import descriptor_pb2, message

from pykafkad.registry import protobuf_compiler, protobuf_differences, protobuf_text
from pykafkad.registry.schema import Parsed

GOOGLE = "google/protobuf/"
OPTIONS = f"{GOOGLE}descriptor.proto"
"""The file that those import who have options of their own."""


def parse(text: str, references: Sequence[tuple[str, str]]) -> Parsed:
    """See `schema.Kind`."""
    compiled = protobuf_compiler.compiled(_source(text, references), tuple(references))
    files = protobuf_compiler.files(compiled)
    return Parsed(protobuf_text.text_of(files), files)


def _source(text: str, references: Sequence[tuple[str, str]]) -> str:
    """The text of a schema, which may be given as a descriptor. Raises ValueError."""
    try:
        content = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return text
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(content)
        return protobuf_text.text_of([*_imported(file, references), file])
    except (message.DecodeError, LookupError, StopIteration, TypeError, ValueError) as error:
        raise ValueError(
            f"it is no Protobuf schema: base64 of something that is no file's descriptor: {error}"
        ) from None


def _imported(file: Any, references: Sequence[tuple[str, str]]) -> list[Any]:
    """The files where options of somebody's own may come from. Raises ValueError."""
    if all(name.startswith(GOOGLE) and name != OPTIONS for name in file.dependency):
        return []
    for name in file.dependency:
        protobuf_compiler.check_name(name)
    imports = "".join(f'import "{name}";' for name in file.dependency)
    compiled = protobuf_compiler.compiled(f'syntax = "proto3"; {imports}', tuple(references))
    *found, stub = protobuf_compiler.files(compiled)
    file.name = stub.name
    return found


def normalized(parsed: Parsed) -> str:
    """See `schema.Kind`: the order of imports, fields and values does not count, that of messages does."""
    return protobuf_text.text_of(parsed.value, is_sorted=True)


def serialized(parsed: Parsed) -> str:
    """Its descriptor in base64: the format `serialized`."""
    return base64.b64encode(parsed.value[-1].SerializeToString()).decode()


def incompatibilities(reader: Parsed, writer: Parsed) -> list[str]:
    """See `schema.Kind`."""
    return [
        f"{{errorType:'{each.kind}', description:'at {each.place}'}}"
        for each in protobuf_differences.differences(writer.value, reader.value)
        if each.kind not in protobuf_differences.COMPATIBLE
    ]
