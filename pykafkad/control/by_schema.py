"""Keys and values by the schemas of the broker's registry: what they hold, as JSON, and the way back.

Nothing here is imported without a registry: what reads and writes by schemas are libraries."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

from pykafkad.clock import Clock
from pykafkad.control.api_errors import BAD_REQUEST, NOT_FOUND, UNAVAILABLE, ApiError
from pykafkad.registry.registry_client import RegistryClient, RegistryFailure
from pykafkad.registry.schema import AVRO, JSON_SCHEMA, Schema
from pykafkad.registry.schema_values import NotBySchema, SchemaValues

KEPT_SECONDS = 2.0
"""So long a schema is not asked for again. With a reset of the broker its registry gives ids anew."""

_HEAD_BYTES = 5
_MESSAGE = re.compile(r"^\s*message\s+(\w+)", re.MULTILINE)


class _Remembering(RegistryClient):
    """Asks for each schema once."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._schemas: dict[int, Schema] = {}

    def by_id(self, schema_id: int) -> Schema:
        if schema_id not in self._schemas:
            self._schemas[schema_id] = super().by_id(schema_id)
        return self._schemas[schema_id]


class BySchema:
    """Reads and writes by the registry at an address, which is known once it is served. Safe from every thread."""

    def __init__(self, url: Callable[[], str], now: Callable[[], float] | None = None) -> None:
        self._url = url
        self._now = now or Clock().now
        self._lock = threading.Lock()
        self._made: tuple[_Remembering, SchemaValues] | None = None
        self._until = 0.0

    def _current(self) -> tuple[_Remembering, SchemaValues]:
        """Raises RegistryFailure before the registry is served."""
        with self._lock:
            now = self._now()
            if self._made is None or now >= self._until:
                try:
                    client = _Remembering(self._url())
                except ValueError:
                    raise RegistryFailure("the registry is not served yet") from None
                self._made, self._until = (client, SchemaValues(client)), now + KEPT_SECONDS
            return self._made

    # --- reading ------------------------------------------------------------------------------------------------------

    def shown(self, data: bytes | None, most_characters: int | None = None) -> dict[str, Any] | None:
        """What a key or value holds: id, type and name of its schema and the JSON, or the problem with it. None for
        bytes that no serializer with a schema has written. JSON that is longer is left out, and `is_cut`."""
        if data is None or len(data) < _HEAD_BYTES or data[0]:
            return None
        schema_id = int.from_bytes(data[1:_HEAD_BYTES], "big")
        found = {"id": schema_id, "type": "", "name": "", "json": None, "is_cut": False, "problem": None}
        try:
            client, values = self._current()
            decoded = values.decoded(data)
            schema = client.by_id(schema_id)
        except (NotBySchema, RegistryFailure) as problem:
            return {**found, "problem": str(problem)}
        text = json.dumps(decoded.value, ensure_ascii=False)
        is_cut = most_characters is not None and len(text) > most_characters
        return {
            **found,
            "type": schema.kind,
            "name": name_of(schema),
            "json": None if is_cut else text,
            "is_cut": is_cut,
        }

    # --- writing ------------------------------------------------------------------------------------------------------

    def encoder(self, subject: str, message: str | None, where: str) -> Callable[[Any, str], bytes]:
        """What writes JSON values by the latest schema of a subject; it is told where a value stands. It raises
        ApiError, as does this."""
        try:
            client, values = self._current()
            schema_id, schema = client.version(subject)
            encode = values.encoder(schema_id, schema, message)
        except RegistryFailure as failure:
            raise _refusal(failure, where) from None
        except NotBySchema as problem:
            raise ApiError(BAD_REQUEST, str(problem), where) from None

        def write(value: Any, at: str) -> bytes:
            try:
                return encode(value)
            except NotBySchema as problem:
                raise ApiError(BAD_REQUEST, f"it is not what the schema {schema_id} says: {problem}", at) from None

        return write

    # --- looking ------------------------------------------------------------------------------------------------------

    def subjects(self) -> list[str]:
        """All of them. Raises ApiError."""
        try:
            return [str(each) for each in self._current()[0].ask("/subjects")]
        except RegistryFailure as failure:
            raise _refusal(failure, "") from None

    def latest(self, subject: str) -> dict[str, Any] | None:
        """The latest schema of a subject; None where there is none. Raises ApiError."""
        try:
            schema_id, schema = self._current()[0].version(subject)
        except RegistryFailure as failure:
            if failure.status == NOT_FOUND:
                return None
            raise _refusal(failure, "") from None
        return {"subject": subject, **_described(schema_id, schema)}

    def schema(self, schema_id: int) -> dict[str, Any]:
        """The schema of an id. Raises ApiError."""
        try:
            return _described(schema_id, self._current()[0].by_id(schema_id))
        except RegistryFailure as failure:
            raise _refusal(failure, "path id") from None


def _described(schema_id: int, schema: Schema) -> dict[str, Any]:
    return {"id": schema_id, "type": schema.kind, "name": name_of(schema), "schema": schema.text}


def _refusal(failure: RegistryFailure, where: str) -> ApiError:
    status = NOT_FOUND if failure.status == NOT_FOUND else UNAVAILABLE
    return ApiError(status, str(failure), where, "GET /topics/{topic}/schemas lists subjects")


def name_of(schema: Schema) -> str:
    """What a schema calls its values; empty where it does not."""
    if schema.kind not in (AVRO, JSON_SCHEMA):
        found = _MESSAGE.search(schema.text)
        return "" if found is None else found[1]
    try:
        content = json.loads(schema.text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(content, dict):
        return ""
    name, space = content.get("name" if schema.kind == AVRO else "title", ""), content.get("namespace")
    return f"{space}.{name}" if schema.kind == AVRO and space and "." not in str(name) else str(name)
