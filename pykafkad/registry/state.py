"""What the records of `_schemas` add up to: subjects with versions, ids, levels of compatibility, modes. Pure.

A version is soft deleted by a record that says so, and for good by a tombstone. Its number is not given again while any
later version is known. An id belongs to a schema, whichever subjects have it."""

from __future__ import annotations

from typing import NamedTuple

from pykafkad.registry.schema import Reference, Schema

GLOBAL = ""
"""The subject of levels and modes that hold where a subject has none of its own."""


class Version(NamedTuple):
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int
    schema: Schema
    is_deleted: bool = False


class State:
    """All subjects. Changed by `put` and `remove` alone, which the records call."""

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, Version]] = {}
        self.ids: dict[int, Schema] = {}
        self.id_of: dict[Schema, int] = {}
        self.levels: dict[str, str] = {}
        self.modes: dict[str, str] = {}
        self.last_id = 0

    def put(self, version: Version) -> None:
        """A version is there, or has become another."""
        self.subjects.setdefault(version.subject, {})[version.version] = version
        self.ids[version.schema_id] = version.schema
        self.id_of.setdefault(version.schema, version.schema_id)
        self.last_id = max(self.last_id, version.schema_id)

    def remove(self, subject: str, number: int) -> None:
        """A version is gone for good; its schema stays if another version has it."""
        versions = self.subjects.get(subject, {})
        gone = versions.pop(number, None)
        if not versions:
            self.subjects.pop(subject, None)
        if gone is None or any(
            each.schema_id == gone.schema_id for versions in self.subjects.values() for each in versions.values()
        ):
            return
        self.ids.pop(gone.schema_id, None)
        if self.id_of.get(gone.schema) == gone.schema_id:
            del self.id_of[gone.schema]

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """The versions of a subject in their order; with `deleted` also those that are soft deleted."""
        found = self.subjects.get(subject, {})
        return [found[number] for number in sorted(found) if deleted or not found[number].is_deleted]

    def having(self, schema_id: int, *, deleted: bool = False) -> list[Version]:
        """The versions with the schema of that id, by subject and number."""
        return [
            each
            for subject in sorted(self.subjects)
            for each in self.versions(subject, deleted=deleted)
            if each.schema_id == schema_id
        ]

    def referring(self, subject: str, number: int) -> list[Version]:
        """The versions, not deleted, whose schemas refer to a version of a subject."""
        return [
            each
            for name in sorted(self.subjects)
            for each in self.versions(name)
            if any((used.subject, used.version) == (subject, number) for used in each.schema.references)
        ]


def references_of(rows: object) -> tuple[Reference, ...]:
    """References as JSON has them. Raises ValueError."""
    if rows is None:
        return ()
    if not isinstance(rows, list):
        raise ValueError("references: must be a list")
    found = []
    for row in rows:
        fields = row if isinstance(row, dict) else {}
        name, subject, version = fields.get("name"), fields.get("subject"), fields.get("version")
        if not (isinstance(name, str) and isinstance(subject, str) and type(version) is int):
            raise ValueError("references: each has name, subject and version")
        found.append(Reference(name, subject, version))
    return tuple(found)
