"""`--registry URL` of `tail` and `produce`: keys and values by the schemas of a registry, as JSON."""

from __future__ import annotations

import json
import os

from pykafkad.cli.output import Failure, json_bytes, readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    from pykafkad.registry.registry_client import RegistryClient

KINDS = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}
"""How the names of files with schemas end."""


def add_reading(parser: argparse.ArgumentParser) -> None:
    """The option of `pykafkad tail`."""
    parser.add_argument(
        "--registry",
        metavar="URL",
        help="show values, and keys, that serializers of this schema registry wrote as JSON: Avro, JSON Schema and "
        "Protobuf; with --json they are JSON values, and value_schema_id says which schema, value_problem why there "
        "is none",
    )


def add_writing(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad produce`."""
    parser.add_argument(
        "--registry",
        metavar="URL",
        help="values are JSON, and are written by a schema of this registry as its serializers do",
    )
    parser.add_argument(
        "--schema",
        metavar="FILE|SUBJECT",
        help="with --registry: the schema, in a file (.avsc, .json or .proto) that is registered for the subject "
        "TOPIC-value, or the latest one of a subject (default: that of TOPIC-value)",
    )
    parser.add_argument(
        "--message", metavar="NAME", help="with a Protobuf schema: which of its messages (default: the first)"
    )


def _client(url: str) -> RegistryClient:
    from pykafkad.registry.registry_client import RegistryClient

    try:
        return RegistryClient(url)
    except ValueError as error:
        raise Failure(f"--registry {error}", 2) from None


class Reader:
    """Keys and values of records as `tail` shows them."""

    def __init__(self, url: str) -> None:
        from pykafkad.registry.schema_values import SchemaValues

        self._values = SchemaValues(_client(url))

    def as_fields(self, name: str, data: bytes | None, *, is_optional: bool = False) -> dict[str, Any]:
        """The fields of a JSON line for a key or a value: what it is, and the id of its schema or why there is none;
        nothing is said of an optional one. Raises Failure for a registry that does not answer."""
        if data is None:
            return {name: None}
        from pykafkad.registry.registry_client import RegistryFailure
        from pykafkad.registry.schema_values import NotBySchema

        try:
            found = self._values.decoded(data)
        except NotBySchema as error:
            return {name: json_bytes(data), **({} if is_optional else {f"{name}_problem": str(error)})}
        except RegistryFailure as failure:
            raise Failure(str(failure)) from None
        return {name: found.value, f"{name}_schema_id": found.schema_id}

    def as_text(self, name: str, data: bytes | None, *, is_optional: bool = False) -> str | None:
        """The same as a text for people; None stays None."""
        if data is None:
            return None
        fields = self.as_fields(name, data, is_optional=is_optional)
        if f"{name}_schema_id" in fields:
            return json.dumps(fields[name], ensure_ascii=False, separators=(",", ":"))
        problem = fields.get(f"{name}_problem")
        return f"{readable(data)}{f' (no value by a schema: {problem})' if problem else ''}"


def writer(options: argparse.Namespace) -> Callable[[Any], bytes] | None:
    """What writes the values of `produce` by a schema; None without a registry. It raises ValueError for a value that
    the schema does not allow. Raises Failure."""
    if options.registry is None:
        if options.schema is not None or options.message is not None:
            raise Failure("--schema and --message need --registry URL", 2)
        return None
    from pykafkad.registry.registry_client import RegistryFailure
    from pykafkad.registry.schema_values import NotBySchema, SchemaValues

    client = _client(options.registry)
    subject = f"{options.topic}-value"
    try:
        if options.schema is not None and _is_file(options.schema):
            schema = _of_file(options.schema)
            schema_id = client.register(subject, schema)
        else:
            schema_id, schema = client.version(options.schema or subject)
        encode = SchemaValues(client).encoder(schema_id, schema, options.message)
    except (RegistryFailure, NotBySchema) as error:
        raise Failure(f"--schema {options.schema or subject}: {error}") from None

    def write(value: Any) -> bytes:
        try:
            return encode(value)
        except NotBySchema as error:
            raise ValueError(f"its value is not what the schema {schema_id} says: {error}") from None

    return write


def _is_file(text: str) -> bool:
    return os.path.splitext(text)[1] in KINDS or os.path.sep in text


def _of_file(path: str) -> Any:
    from pykafkad.registry.schema import Schema

    kind = KINDS.get(os.path.splitext(path)[1])
    if kind is None:
        raise Failure(f"--schema {path}: a file with a schema is named {', '.join(f'*{each}' for each in KINDS)}", 2)
    try:
        with open(path, encoding="utf-8") as file:
            return Schema(kind, file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"--schema {path}: {getattr(error, 'strerror', None) or error}", 2) from None
