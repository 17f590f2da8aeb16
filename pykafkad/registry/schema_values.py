"""Values as serializers of a schema registry write them: a zero, the id of a schema in four bytes, and what the schema
says; as JSON for people and programs.

What Avro has and JSON has not: bytes are text where they are UTF-8, else `{"hex": "…"}`; dates and times are in ISO
8601, decimals and UUIDs are text; the value of a union stands without its type."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from pykafkad.cli import extras
from pykafkad.registry.registry_client import NOT_FOUND, RegistryClient, RegistryFailure
from pykafkad.registry.schema import AVRO, JSON_SCHEMA, PROTOBUF, Schema

_HEAD = struct.Struct(">bI")
MOST_SCHEMAS = 1000
"""So many are remembered; then all are forgotten."""

PACKAGES = {
    AVRO: ("avro.schema",),
    JSON_SCHEMA: ("jsonschema.validators",),
    PROTOBUF: ("google.protobuf.descriptor_pb2", "grpc_tools.protoc"),
}


class NotBySchema(Exception):
    """Bytes or a value that cannot be read or written by a schema."""


class Codec(NamedTuple):
    """What reads and writes the values of one schema: both raise ValueError."""

    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]


class Decoded(NamedTuple):
    """A value as JSON, and the id of its schema."""

    schema_id: int
    value: Any


class SchemaValues:
    """Reads and writes values by the schemas of a registry."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._codecs: dict[int, Codec | str] = {}

    def decoded(self, data: bytes) -> Decoded:
        """A value that a serializer has written. Raises NotBySchema, and RegistryFailure for a registry that does not
        answer."""
        if len(data) < _HEAD.size or data[0]:
            raise NotBySchema("it does not begin with 0 and the id of a schema")
        schema_id = _HEAD.unpack_from(data)[1]
        codec = self._codecs.get(schema_id) or self._learn(schema_id)
        if isinstance(codec, str):
            raise NotBySchema(codec)
        try:
            return Decoded(schema_id, codec.decode(data[_HEAD.size :]))
        except (ValueError, RecursionError) as error:
            raise NotBySchema(f"it is not what the schema {schema_id} says: {error}") from None

    def _learn(self, schema_id: int) -> Codec | str:
        """What reads by a schema, or why nobody can. Both are remembered: a schema does not change."""
        if len(self._codecs) >= MOST_SCHEMAS:
            self._codecs.clear()
        found: Codec | str
        try:
            found = self._codec(self._client.by_id(schema_id))
        except RegistryFailure as failure:
            if failure.status != NOT_FOUND:
                raise
            # It may be registered at any time.
            return f"the registry {self._client.url} knows no schema with the id {schema_id}"
        except NotBySchema as error:
            found = f"the schema {schema_id} cannot be used: {error}"
        self._codecs[schema_id] = found
        return found

    def encoder(self, schema_id: int, schema: Schema, message: str | None = None) -> Callable[[Any], bytes]:
        """What writes JSON values by a schema; `message` names one of Protobuf, else it is the first. It raises
        NotBySchema, as does this. Raises RegistryFailure."""
        codec = self._codec(schema, message)
        head = _HEAD.pack(0, schema_id)

        def encode(value: Any) -> bytes:
            try:
                return head + codec.encode(value)
            except (ValueError, RecursionError) as error:
                raise NotBySchema(" ".join(str(error).split())) from None

        return encode

    def _codec(self, schema: Schema, message: str | None = None) -> Codec:
        for package in PACKAGES.get(schema.kind, ()):
            if sentence := extras.missing(package):
                raise NotBySchema(sentence)
        references = self._client.texts(schema.references)
        if message is not None and schema.kind != PROTOBUF:
            raise NotBySchema(f"a schema of {schema.kind} has no messages with names")
        try:
            if schema.kind == AVRO:
                from pykafkad.registry import avro_values

                return Codec(*avro_values.codec(schema.text, references))
            if schema.kind == JSON_SCHEMA:
                return Codec(json.loads, _json_encoder(schema.text, references))
            if schema.kind == PROTOBUF:
                from pykafkad.registry import protobuf_values

                return Codec(*protobuf_values.codec(schema.text, references, message))
        except (ValueError, RecursionError) as error:
            raise NotBySchema(str(error)) from None
        raise NotBySchema(f"schemas of the type {schema.kind} are not known here")


def _json_encoder(text: str, references: list[tuple[str, str]]) -> Callable[[Any], bytes]:
    from jsonschema import exceptions, validators
    from referencing import Registry, exceptions as unresolved, jsonschema as dialects

    schema = json.loads(text)
    loaded = [(name, json.loads(referred)) for name, referred in references]
    if not all(isinstance(each, dict | bool) for each in (schema, *(each for _, each in loaded))):
        raise ValueError("it is no JSON Schema: an object, true or false")
    resources = [(name, dialects.DRAFT7.create_resource(each)) for name, each in loaded]
    kind = validators.validator_for(schema, default=validators.Draft7Validator)
    try:
        kind.check_schema(schema)
    except exceptions.SchemaError as error:
        raise ValueError(f"it is no JSON Schema: {error.message}") from None
    validator = kind(schema, registry=Registry().with_resources(resources))

    def encode(value: Any) -> bytes:
        try:
            validator.validate(value)
        except exceptions.ValidationError as error:
            place = "/".join(map(str, error.absolute_path))
            raise ValueError(error.message + (f" at {place}" if place else "")) from None
        except (exceptions.UnknownType, re.error, TypeError) as error:
            told = f"unknown type {error.type!r}" if isinstance(error, exceptions.UnknownType) else error
            raise ValueError(f"the schema is no JSON Schema: {told}") from None
        except unresolved.Unresolvable as error:
            raise ValueError(f"the schema refers to {error}, which is not there") from None
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    return encode
