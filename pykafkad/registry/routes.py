"""The table of all routes of the registry: method, path, the names that a query may have, and the function.

`call(registry, arguments)` is given the parts of the path, the query's fields (texts; `true` or `false` where the table
says so) and the body's JSON as `body`. It returns what the answer has as JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pykafkad.registry import registry_errors as refused
from pykafkad.registry.registry import KINDS, LEVELS, MODES, Registry
from pykafkad.registry.registry_errors import RegistryError
from pykafkad.registry.schema import AVRO, Schema
from pykafkad.registry.state import GLOBAL, Version, references_of

Arguments = dict[str, Any]


class Route(NamedTuple):
    """One route; names in braces stand for a part of the path. `flags` of the query are `true` or `false`."""

    method: str
    path: str
    call: Callable[[Registry, Arguments], Any]
    flags: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


def _schema(body: Any) -> Schema:
    """The schema that a body has. Raises RegistryError."""
    fields = body if isinstance(body, dict) else {}
    text, kind = fields.get("schema"), fields.get("schemaType") or AVRO
    if not isinstance(text, str) or not text.strip():
        raise refused.invalid_schema("Empty schema")
    if not isinstance(kind, str):
        raise refused.invalid_schema(f"Invalid schema type {kind}: must be one of {', '.join(KINDS)}")
    try:
        return Schema(kind, text, references_of(fields.get("references")))
    except ValueError as error:
        raise refused.invalid_schema(str(error)) from None


def _integer(body: Any, name: str) -> int | None:
    value = body.get(name)
    if value is None or type(value) is int:
        return value
    raise RegistryError(42201, f"{name}: must be a whole number, not {value!r}")


def _described(version: Version) -> dict[str, Any]:
    """A version as answers have it; the type of Avro is left out there."""
    found: dict[str, Any] = {"subject": version.subject, "version": version.version, "id": version.schema_id}
    return found | _content(version.schema)


def _content(schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {} if schema.kind == AVRO else {"schemaType": schema.kind}
    if schema.references:
        found["references"] = [each._asdict() for each in schema.references]
    return found | {"schema": schema.text}


def _in_format(registry: Registry, schema: Schema, arguments: Arguments) -> Schema:
    """A schema in the format that is asked for; a format that its kind does not have counts for nothing."""
    return registry.serialized(schema) if arguments.get("format") == "serialized" else schema


def _version_in_format(
    registry: Registry, version: Version, arguments: Arguments, given: Schema | None = None
) -> Version:
    """Without a format, a schema that was given as a descriptor comes back as one: confluent-kafka keeps the answer in
    place of what it gave."""
    if given is not None and not arguments.get("format") and given.is_descriptor:
        arguments = {**arguments, "format": "serialized"}
    return version._replace(schema=_in_format(registry, version.schema, arguments))


def _page(rows: list[Any], arguments: Arguments) -> list[Any]:
    try:
        first, count = int(arguments.get("offset") or 0), int(arguments.get("limit") or -1)
    except ValueError:
        raise RegistryError(400, "offset and limit: must be whole numbers") from None
    first = max(first, 0)
    return rows[first : first + count] if count >= 0 else rows[first:]


def _subjects(registry: Registry, arguments: Arguments) -> list[str]:
    prefix = (arguments.get("subjectPrefix") or "").removeprefix(":*:")
    return _page(
        registry.subject_names(prefix, deleted=arguments["deleted"], deleted_only=arguments["deletedOnly"]), arguments
    )


def _look_up(registry: Registry, arguments: Arguments) -> dict[str, Any]:
    schema = _schema(arguments["body"])
    found = registry.look_up(
        arguments["subject"], schema, deleted=arguments["deleted"], is_normalized=arguments["normalize"]
    )
    return _described(_version_in_format(registry, found, arguments, schema))


def _delete_subject(registry: Registry, arguments: Arguments) -> list[int]:
    return registry.delete_subject(arguments["subject"], permanent=arguments["permanent"])


def _versions(registry: Registry, arguments: Arguments) -> list[int]:
    subject, with_deleted, only = arguments["subject"], arguments["deleted"], arguments["deletedOnly"]
    found = registry.state.versions(subject, deleted=with_deleted or only)
    if not found:
        raise refused.subject_not_found(subject)
    return _page([each.version for each in found if each.is_deleted or not only], arguments)


def _register(registry: Registry, arguments: Arguments) -> dict[str, Any]:
    schema = _schema(arguments["body"])
    asked_id, asked_version = _integer(arguments["body"], "id"), _integer(arguments["body"], "version")
    version = registry.register(
        arguments["subject"], schema, asked_id, asked_version, is_normalized=arguments["normalize"]
    )
    version = _version_in_format(registry, version, arguments, schema)
    return {"id": version.schema_id, "version": version.version, **_content(version.schema)}


def _version(registry: Registry, arguments: Arguments) -> dict[str, Any]:
    version = registry.version(arguments["subject"], arguments["version"], deleted=arguments["deleted"])
    return _described(_version_in_format(registry, version, arguments))


def _version_schema(registry: Registry, arguments: Arguments) -> Text:
    version = registry.version(arguments["subject"], arguments["version"], deleted=arguments["deleted"])
    return Text(_in_format(registry, version.schema, arguments).text)


def _referenced_by(registry: Registry, arguments: Arguments) -> list[int]:
    version = registry.version(arguments["subject"], arguments["version"], deleted=True)
    return _page(sorted({each.schema_id for each in registry.state.referring(*version[:2])}), arguments)


def _delete_version(registry: Registry, arguments: Arguments) -> int:
    return registry.delete_version(arguments["subject"], arguments["version"], permanent=arguments["permanent"])


class Text(str):
    """An answer that is a text as it is, and no JSON text."""


def _by_id(registry: Registry, arguments: Arguments) -> tuple[int, Schema]:
    text = arguments["id"]
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise RegistryError(404, f"HTTP 404 Not Found: the id {text[:20]} is no number")
    schema = registry.state.ids.get(int(text))
    if schema is None:
        raise refused.schema_not_found(int(text))
    return int(text), schema


def _id(registry: Registry, arguments: Arguments) -> dict[str, Any]:
    _, schema = _by_id(registry, arguments)
    more = {"maxId": registry.state.last_id} if arguments["fetchMaxId"] else {}
    return _content(_in_format(registry, schema, arguments)) | more


def _id_schema(registry: Registry, arguments: Arguments) -> Text:
    return Text(_in_format(registry, _by_id(registry, arguments)[1], arguments).text)


def _having(registry: Registry, arguments: Arguments) -> list[Version]:
    number, _ = _by_id(registry, arguments)
    only = arguments.get("subject")
    return [
        each for each in registry.state.having(number, deleted=arguments["deleted"]) if only in (None, each.subject)
    ]


def _id_subjects(registry: Registry, arguments: Arguments) -> list[str]:
    return _page(sorted({each.subject for each in _having(registry, arguments)}), arguments)


def _id_versions(registry: Registry, arguments: Arguments) -> list[dict[str, Any]]:
    rows = [{"subject": each.subject, "version": each.version} for each in _having(registry, arguments)]
    return _page(rows, arguments)


def _types(registry: Registry, arguments: Arguments) -> list[str]:
    return list(KINDS)


def _schemas(registry: Registry, arguments: Arguments) -> list[dict[str, Any]]:
    found = []
    prefix = (arguments.get("subjectPrefix") or "").removeprefix(":*:")
    for subject in registry.subject_names(prefix, deleted=arguments["deleted"]):
        versions = registry.state.versions(subject, deleted=arguments["deleted"])
        found += versions[-1:] if arguments["latestOnly"] else versions
    return [_described(version) for version in _page(found, arguments)]


def _test_version(registry: Registry, arguments: Arguments) -> dict[str, Any]:
    against = [registry.version(arguments["subject"], arguments["version"])]
    return _tested(registry, arguments, against)


def _test_all(registry: Registry, arguments: Arguments) -> dict[str, Any]:
    versions = registry.state.versions(arguments["subject"])
    is_transitive = registry.level(arguments["subject"]).endswith("_TRANSITIVE")
    return _tested(registry, arguments, versions if is_transitive else versions[-1:])


def _tested(registry: Registry, arguments: Arguments, against: list[Version]) -> dict[str, Any]:
    found = registry.compare(arguments["subject"], _schema(arguments["body"]), against)
    more = {"messages": found} if arguments["verbose"] else {}
    return {"is_compatible": not found, **more}


def _word(body: Any, name: str) -> str:
    """A word of the body in capital letters; empty if there is none."""
    word = body.get(name) if isinstance(body, dict) else None
    return word.upper() if isinstance(word, str) else ""


def _get_level(registry: Registry, arguments: Arguments) -> dict[str, str]:
    subject = arguments.get("subject", GLOBAL)
    if subject != GLOBAL and subject not in registry.state.levels and not arguments["defaultToGlobal"]:
        raise refused.compatibility_not_configured(subject)
    return {"compatibilityLevel": registry.level(subject)}


def _set_level(registry: Registry, arguments: Arguments) -> dict[str, str]:
    level = _word(arguments["body"], "compatibility")
    if level not in LEVELS:
        text = f"Invalid compatibility level. Valid values are {', '.join(level.lower() for level in LEVELS)}"
        raise RegistryError(42203, text)
    registry.set_level(arguments.get("subject", GLOBAL), level)
    return {"compatibility": level}


def _delete_level(registry: Registry, arguments: Arguments) -> dict[str, str]:
    subject = arguments.get("subject", GLOBAL)
    if subject != GLOBAL and subject not in registry.state.levels:
        raise refused.subject_not_found(subject)
    level = registry.level(subject)
    registry.set_level(subject, None)
    return {"compatibilityLevel": level}


def _get_mode(registry: Registry, arguments: Arguments) -> dict[str, str]:
    subject = arguments.get("subject", GLOBAL)
    if subject != GLOBAL and subject not in registry.state.modes and not arguments["defaultToGlobal"]:
        raise refused.mode_not_configured(subject)
    return {"mode": registry.mode(subject)}


def _set_mode(registry: Registry, arguments: Arguments) -> dict[str, str]:
    mode = _word(arguments["body"], "mode")
    if mode not in MODES:
        raise RegistryError(42204, f"Invalid mode. Valid values are {', '.join(mode.lower() for mode in MODES)}")
    registry.set_mode(arguments.get("subject", GLOBAL), mode, force=arguments["force"])
    return {"mode": mode}


def _delete_mode(registry: Registry, arguments: Arguments) -> dict[str, str]:
    subject = arguments.get("subject", GLOBAL)
    if subject != GLOBAL and subject not in registry.state.modes:
        raise refused.subject_not_found(subject)
    mode = registry.mode(subject)
    registry.set_mode(subject, None)
    return {"mode": mode}


def _nothing(registry: Registry, arguments: Arguments) -> dict[str, str]:
    return {}


_PAGE = ("offset", "limit")

ROUTES = (
    Route("GET", "/", _nothing),
    Route("GET", "/subjects", _subjects, ("deleted", "deletedOnly"), ("subjectPrefix", *_PAGE)),
    Route("POST", "/subjects/{subject}", _look_up, ("deleted", "normalize"), ("format",)),
    Route("DELETE", "/subjects/{subject}", _delete_subject, ("permanent",)),
    Route("GET", "/subjects/{subject}/versions", _versions, ("deleted", "deletedOnly"), _PAGE),
    Route("POST", "/subjects/{subject}/versions", _register, ("normalize",), ("format",)),
    Route("GET", "/subjects/{subject}/versions/{version}", _version, ("deleted",), ("format", "referenceFormat")),
    Route("DELETE", "/subjects/{subject}/versions/{version}", _delete_version, ("permanent",)),
    Route("GET", "/subjects/{subject}/versions/{version}/schema", _version_schema, ("deleted",), ("format",)),
    Route("GET", "/subjects/{subject}/versions/{version}/referencedby", _referenced_by, ("deleted",), _PAGE),
    Route("GET", "/schemas", _schemas, ("deleted", "latestOnly"), ("subjectPrefix", *_PAGE)),
    Route("GET", "/schemas/types", _types),
    Route("GET", "/schemas/ids/{id}", _id, ("fetchMaxId",), ("subject", "format", "referenceFormat")),
    Route("GET", "/schemas/ids/{id}/schema", _id_schema, (), ("subject", "format")),
    Route("GET", "/schemas/ids/{id}/subjects", _id_subjects, ("deleted",), ("subject", *_PAGE)),
    Route("GET", "/schemas/ids/{id}/versions", _id_versions, ("deleted",), ("subject", *_PAGE)),
    Route("POST", "/compatibility/subjects/{subject}/versions", _test_all, ("verbose", "normalize")),
    Route("POST", "/compatibility/subjects/{subject}/versions/{version}", _test_version, ("verbose", "normalize")),
    Route("GET", "/config", _get_level, ("defaultToGlobal",)),
    Route("PUT", "/config", _set_level),
    Route("DELETE", "/config", _delete_level),
    Route("GET", "/config/{subject}", _get_level, ("defaultToGlobal",)),
    Route("PUT", "/config/{subject}", _set_level),
    Route("DELETE", "/config/{subject}", _delete_level),
    Route("GET", "/mode", _get_mode, ("defaultToGlobal",)),
    Route("PUT", "/mode", _set_mode, ("force",)),
    Route("DELETE", "/mode", _delete_mode, ("recursive",)),
    Route("GET", "/mode/{subject}", _get_mode, ("defaultToGlobal",)),
    Route("PUT", "/mode/{subject}", _set_mode, ("force",)),
    Route("DELETE", "/mode/{subject}", _delete_mode, ("recursive",)),
)


def find(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The route of a path, and its parts as they were sent. Raises RegistryError."""
    given = path.rstrip("/").split("/")
    methods = []
    for row in ROUTES:
        wanted = row.path.rstrip("/").split("/")
        if len(wanted) != len(given):
            continue
        parts = {}
        for name, text in zip(wanted, given, strict=True):
            if name.startswith("{") and text:
                parts[name[1:-1]] = text
            elif name != text:
                break
        else:
            if row.method == method:
                return row, parts
            methods.append(row.method)
    if methods:
        raise RegistryError(405, "HTTP 405 Method Not Allowed")
    raise RegistryError(404, "HTTP 404 Not Found")
