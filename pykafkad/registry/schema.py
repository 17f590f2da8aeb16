"""A schema as it is registered, and what each kind of schemas must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

AVRO = "AVRO"
JSON_SCHEMA = "JSON"
PROTOBUF = "PROTOBUF"


class Reference(NamedTuple):
    """A name that a schema uses for a version of a subject."""

    name: str
    subject: str
    version: int


class Schema(NamedTuple):
    """A schema's text with its kind and the names that it refers to. Equal schemas have the same id."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()

    @property
    def is_descriptor(self) -> bool:
        """Whether it is Protobuf's descriptor in base64; no .proto file that says something is without these marks."""
        return self.kind == PROTOBUF and not set(self.text) & set(";{")


class Parsed(NamedTuple):
    """A schema that its library has read. `text` is the same for schemas that differ in white space alone; `value` is
    the library's own."""

    text: str
    value: Any


class Kind(Protocol):
    """A kind of schemas: a module of this package."""

    def parse(self, text: str, references: Sequence[tuple[str, str]]) -> Parsed:
        """A schema with what it refers to (name, text), in the order in which that must be read. Raises ValueError."""

    def normalized(self, parsed: Parsed) -> str:
        """The text that is the same for schemas that say the same, as far as this kind knows such a text."""

    def incompatibilities(self, reader: Parsed, writer: Parsed) -> list[str]:
        """Why data of `writer` cannot be read by `reader`; empty if it can."""
