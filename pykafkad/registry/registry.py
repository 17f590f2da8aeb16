"""The operations of the registry on its state: register, look up, delete, compare, levels and modes.

Every change is a record that is kept first and then applied. Calls take turns, and `refresh` comes before each."""

from __future__ import annotations

from pykafkad.cli import extras
from pykafkad.registry import records, registry_errors as refused
from pykafkad.registry.schema import AVRO, JSON_SCHEMA, PROTOBUF, Kind, Parsed, Reference, Schema
from pykafkad.registry.state import GLOBAL, State, Version
from pykafkad.registry.store import Store

KINDS = (JSON_SCHEMA, PROTOBUF, AVRO)
"""The kinds of schemas."""

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
DEFAULT_LEVEL = "BACKWARD"
READWRITE, READONLY, READONLY_OVERRIDE, IMPORT = "READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"
MODES = (READWRITE, READONLY, READONLY_OVERRIDE, IMPORT)

MOST_VERSION = (1 << 31) - 1
LATEST = "latest"
MOST_REFERENCES = 1000
"""So many schemas may be behind the references of one."""


class Registry:
    """The registry that keeps its records in `store`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.state = State()
        self._last: object = None

    def refresh(self) -> None:
        """Read what the store has if that has changed: the broker may have been reset, or somebody else have written.
        Raises ValueError for a record of another program, OSError and Refused."""
        last = self.store.last()
        if last != self._last:
            state = State()
            for key, value in self.store.read():
                records.apply(state, key, value)
            self.state, self._last = state, last

    # --- schemas ------------------------------------------------------------------------------------------------------

    def parse(self, schema: Schema) -> Parsed:
        """A schema with what it refers to. Raises RegistryError."""
        kind = _kind(schema.kind)
        try:
            return kind.parse(schema.text, self._texts(schema.references))
        except (ValueError, RecursionError) as error:
            raise refused.invalid_schema(f"Invalid schema {schema.text[:200]}: {error}") from None

    def _kept(self, given: Schema, parsed: Parsed, is_normalized: bool) -> Schema:
        """A schema as it is kept."""
        if not is_normalized:
            return given._replace(text=parsed.text)
        references = tuple(sorted(set(given.references)))
        return given._replace(text=_kind(given.kind).normalized(parsed), references=references)

    def serialized(self, schema: Schema) -> Schema:
        """A schema in the format `serialized`, which Protobuf alone has. Raises RegistryError."""
        if schema.kind != PROTOBUF:
            return schema
        from pykafkad.registry import protobuf_schemas

        return schema._replace(text=protobuf_schemas.serialized(self.parse(schema)))

    def _texts(self, references: tuple[Reference, ...]) -> list[tuple[str, str]]:
        """Names and texts of everything that references lead to; what another one needs comes before it."""
        found: dict[str, str] = {}
        open_names: set[tuple[str, int]] = set()

        def add(each: Reference) -> None:
            if each.name in found or (each.subject, each.version) in open_names:
                return
            if len(open_names) >= MOST_REFERENCES:
                raise refused.invalid_schema(f"more than {MOST_REFERENCES} schemas are behind its references")
            open_names.add((each.subject, each.version))
            number = each.version
            version = (
                self.state.versions(each.subject)[-1:]
                if number == -1
                else [row for row in self.state.versions(each.subject, deleted=True) if row.version == number]
            )
            if not version:
                raise refused.invalid_schema(
                    f'No schema reference found for subject "{each.subject}" and version {number}'
                )
            for inner in version[0].schema.references:
                add(inner)
            found[each.name] = version[0].schema.text

        for reference in references:
            add(reference)
        return list(found.items())

    def register(
        self,
        subject: str,
        given: Schema,
        schema_id: int | None = None,
        number: int | None = None,
        *,
        is_normalized: bool = False,
    ) -> Version:
        """The version of a subject with that schema, a new one if there is none. `schema_id` and `number` are asked for
        in mode IMPORT alone. With `is_normalized` it is kept in the form that equal schemas share. Raises
        RegistryError."""
        mode = self._check_writable(subject)
        is_import = mode == IMPORT
        if schema_id is not None and schema_id >= 0 and not is_import:
            raise refused.operation_not_permitted(f"Subject '{subject}' is not in import mode")
        if is_import and (schema_id is None or schema_id < 0):
            raise refused.operation_not_permitted(f"Subject '{subject}' is in import mode")
        parsed = self.parse(given)
        schema = self._kept(given, parsed, is_normalized)
        every = self.state.versions(subject, deleted=True)
        for version in every:
            if not version.is_deleted and version.schema == schema and schema_id in (None, -1, version.schema_id):
                return version
        if not is_import:
            self._check_compatible(subject, parsed, given.kind)
            schema_id = self.state.id_of.get(schema, self.state.last_id + 1)
        assert schema_id is not None
        held = self.state.ids.get(schema_id)
        if held is not None and held != schema:
            text = f"Overwrite new schema with id {schema_id} is not permitted."
            raise refused.operation_not_permitted(text)
        if not (is_import and number is not None and number > 0):
            number = 1 + max((version.version for version in every), default=0)
        version = Version(subject, number, schema_id, schema)
        self._keep([records.version_record(version)])
        return version

    def look_up(self, subject: str, given: Schema, *, deleted: bool = False, is_normalized: bool = False) -> Version:
        """The newest version of a subject with that schema. Raises RegistryError."""
        if not self.state.versions(subject, deleted=deleted):
            raise refused.subject_not_found(subject)
        schema = self._kept(given, self.parse(given), is_normalized)
        for version in reversed(self.state.versions(subject, deleted=deleted)):
            if version.schema == schema:
                return version
        raise refused.schema_not_found()

    def version(self, subject: str, wanted: str, *, deleted: bool = False) -> Version:
        """A version by its number, or `latest` (also -1). Raises RegistryError."""
        number = _number(wanted)
        versions = self.state.versions(subject, deleted=deleted)
        if not versions and not self.state.versions(subject, deleted=True):
            raise refused.subject_not_found(subject)
        chosen = versions[-1:] if number is None else [each for each in versions if each.version == number]
        if not chosen:
            raise refused.version_not_found(wanted)
        return chosen[0]

    def subject_names(self, prefix: str = "", *, deleted: bool = False, deleted_only: bool = False) -> list[str]:
        """The subjects that have versions, in the order of their names."""
        found = []
        for subject in sorted(self.state.subjects):
            is_there = bool(self.state.versions(subject))
            if subject.startswith(prefix) and (not is_there if deleted_only else is_there or deleted):
                found.append(subject)
        return found

    # --- deletions ----------------------------------------------------------------------------------------------------

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete every version of a subject: softly, or afterwards for good. The numbers. Raises RegistryError."""
        self._check_writable(subject)
        every = self.state.versions(subject, deleted=True)
        if not every:
            raise refused.subject_not_found(subject)
        there = [version for version in every if not version.is_deleted]
        if permanent and there:
            raise refused.subject_not_soft_deleted(subject)
        if not permanent and not there:
            raise refused.subject_soft_deleted(subject)
        chosen = every if permanent else there
        self._check_unreferenced(chosen)
        changed = [records.level_record(subject, None)] if subject in self.state.levels and not permanent else []
        changed += [records.mode_record(subject, None)] if subject in self.state.modes and not permanent else []
        if permanent:
            changed += [records.version_tombstone(subject, version.version) for version in chosen]
        else:
            changed.append(records.subject_deletion_record(subject, chosen[-1].version))
        self._keep(changed)
        return [version.version for version in chosen]

    def delete_version(self, subject: str, wanted: str, *, permanent: bool = False) -> int:
        """Delete a version: softly, or afterwards for good. Its number. Raises RegistryError."""
        self._check_writable(subject)
        version = self.version(subject, wanted, deleted=True if _number(wanted) is not None else permanent)
        if permanent and not version.is_deleted:
            raise refused.version_not_soft_deleted(subject, version.version)
        if not permanent and version.is_deleted:
            raise refused.version_soft_deleted(subject, version.version)
        self._check_unreferenced([version])
        if permanent:
            self._keep([records.version_tombstone(subject, version.version)])
        else:
            self._keep([records.version_record(version._replace(is_deleted=True))])
        return version.version

    def _check_unreferenced(self, versions: list[Version]) -> None:
        for version in versions:
            if self.state.referring(version.subject, version.version):
                raise refused.reference_exists(version.subject, version.version)

    # --- compatibility ------------------------------------------------------------------------------------------------

    def level(self, subject: str) -> str:
        """The level that holds for a subject."""
        levels = self.state.levels
        return levels.get(subject) or levels.get(GLOBAL) or DEFAULT_LEVEL

    def set_level(self, subject: str, level: str | None) -> None:
        """Set the level of a subject, or the global one; None takes it back."""
        self._keep([records.level_record(subject, level)])

    def compare(self, subject: str, given: Schema, against: list[Version]) -> list[str]:
        """Why a schema is not compatible with each of these versions, at the level of the subject; empty if it is."""
        return self._differences(self.level(subject), self.parse(given), given.kind, against)

    def _check_compatible(self, subject: str, parsed: Parsed, kind: str) -> None:
        level = self.level(subject)
        versions = self.state.versions(subject)
        against = versions if level.endswith("_TRANSITIVE") else versions[-1:]
        found = self._differences(level, parsed, kind, against)
        if found:
            raise refused.incompatible(subject, found)

    def _differences(self, level: str, parsed: Parsed, kind: str, against: list[Version]) -> list[str]:
        direction = level.removesuffix("_TRANSITIVE")
        if direction == "NONE":
            return []
        module = _kind(kind)
        for version in reversed(against):
            if version.schema.kind != kind:
                found = ["Incompatible because of different schema type"]
            else:
                found = _incompatibilities(module, direction, parsed, self.parse(version.schema))
            if found:
                where = f"{{oldSchemaVersion: {version.version}}}"
                return [*found, where, f"{{oldSchema: '{version.schema.text}'}}", f"{{compatibility: '{level}'}}"]
        return []

    # --- modes --------------------------------------------------------------------------------------------------------

    def mode(self, subject: str) -> str:
        """The mode that holds for a subject."""
        modes = self.state.modes
        overriding = modes.get(GLOBAL)
        if overriding == READONLY_OVERRIDE:
            return overriding
        return modes.get(subject) or overriding or READWRITE

    def set_mode(self, subject: str, mode: str | None, *, force: bool = False) -> None:
        """Set the mode of a subject, or the global one; None takes it back. Raises RegistryError."""
        if mode == IMPORT and not force:
            has_any = self.state.subjects if subject == GLOBAL else self.state.versions(subject)
            if has_any:
                text = "Cannot import since found existing subjects" + (f" with name '{subject}'" if subject else "")
                raise refused.operation_not_permitted(text)
        self._keep([records.mode_record(subject, mode)])

    def _check_writable(self, subject: str) -> str:
        mode = self.mode(subject)
        if mode in (READONLY, READONLY_OVERRIDE):
            raise refused.operation_not_permitted(f"Subject {subject} is in read-only mode")
        return mode

    def _keep(self, changed: list[records.Pair]) -> None:
        self._last = self.store.append(changed)
        for key, value in changed:
            records.apply(self.state, key, value)


def _kind(name: str) -> Kind:
    """The module of a kind, which is imported when a schema of it comes. Raises RegistryError."""
    if name == AVRO:
        from pykafkad.registry import avro_schemas

        return avro_schemas
    if name == JSON_SCHEMA:
        from pykafkad.registry import json_schemas

        return json_schemas
    if name == PROTOBUF:
        for package in ("google.protobuf.descriptor_pb2", "grpc_tools.protoc"):
            if sentence := extras.missing(package):
                raise refused.invalid_schema(f"Invalid schema type {name}: {sentence}")
        from pykafkad.registry import protobuf_schemas

        return protobuf_schemas
    raise refused.invalid_schema(f"Invalid schema type {name}: must be one of {', '.join(KINDS)}")


def _incompatibilities(module: Kind, direction: str, later: Parsed, earlier: Parsed) -> list[str]:
    try:
        found = module.incompatibilities(later, earlier) if direction in ("BACKWARD", "FULL") else []
        if direction in ("FORWARD", "FULL"):
            found += module.incompatibilities(earlier, later)
    except (ValueError, RecursionError, OverflowError) as error:
        raise refused.invalid_schema(str(error)) from None
    return found


def _number(wanted: str) -> int | None:
    """The number of a version; None for the latest. Raises RegistryError."""
    if wanted in (LATEST, "-1"):
        return None
    if not (wanted.isascii() and wanted.isdigit() and len(wanted) <= 10 and 1 <= int(wanted) <= MOST_VERSION):
        raise refused.invalid_version(wanted)
    return int(wanted)
