"""Writes `messages.pyi`, the types of the classes that `messages.py` makes: `python -m pykafkad.wire.stub`.

A test compares the file with `text()`, so it cannot become stale.
"""

from __future__ import annotations

import os

from pykafkad.wire import messages, notation

PATH = os.path.join(os.path.dirname(__file__), "messages.pyi")

_HEAD = '''"""Types of `messages`: written by `python -m pykafkad.wire.stub`, not by hand.

Each field says its wire type, and the versions that carry it where not all do. A nested struct is an attribute of its
message.
"""

from collections.abc import Callable, Generator
from typing import Any, ClassVar, Protocol, TypeVar, dataclass_transform

from pykafkad.wire.notation import Message
from pykafkad.wire.primitives import CachedArray as CachedArray

class FileSlice(Protocol):
    chunk_size: int

    def __len__(self) -> int: ...

Buffer = bytes | bytearray | memoryview
Chunks = list[Any]
DIRECTORY: str
COLLECTIONS: tuple[str, ...]
S = TypeVar("S", bound="Struct")

@dataclass_transform(kw_only_default=True)
class Struct:
    __slots__: ClassVar[tuple[str, ...]]
    __hash__: None  # type: ignore[assignment]

def schema(cls: type[Struct]) -> Message: ...
def valid_versions(cls: type[Struct]) -> range: ...
def known_versions(cls: type[Struct]) -> range: ...
def flexible_from(cls: type[Struct]) -> int | None: ...
def decoder(cls: type[S], version: int) -> Callable[[Buffer, int], tuple[S, int]]: ...
def encoder(cls: type[S], version: int) -> Callable[[S, Chunks], None]: ...
def incremental(cls: type[Struct], version: int, direction: str) -> Callable[..., Generator[None, None, Any]]: ...
def encode(message: Struct, version: int) -> bytearray: ...
def decode(cls: type[S], version: int, buffer: Buffer) -> S: ...
def request_class(api_key: int) -> type[Struct]: ...
def response_class(api_key: int) -> type[Struct]: ...
def stored_class(name: str) -> type[Struct]: ...
def stored_types(file: str) -> dict[int, dict[str, type[Struct]]]: ...
def record_type(cls: type[Struct]) -> int: ...
def all_apis() -> list[tuple[int, str, range, int | None]]: ...
def all_known_apis() -> list[tuple[int, str, range, int | None]]: ...
def all_names() -> list[str]: ...
def all_known_names() -> list[str]: ...
'''

_TYPES = {
    "bool": "bool",
    "float64": "float",
    "uuid": "bytes",
    "string": "str",
    "bytes": "bytes",
    "records": "Buffer | FileSlice",
}


def _field(field: notation.Field, message: notation.Message) -> str:
    inner = f"{message.name}.{field.struct.name}" if field.struct else _TYPES.get(field.type or "", "int")
    annotation = f"list[{inner}]" if field.is_array else inner
    if field.null_from is not None:
        annotation += " | None"
    notes = [] if field.type is None or field.type in ("string", "bool", "bytes") else [field.type]
    first, last = max(field.first, message.oldest), min(field.last, message.newest)
    if (first, last) != (message.oldest, message.newest):
        notes.append(f"{first}-{last}" if last < message.newest else f"{first}+")
    if field.tag is not None:
        notes.append(f"tag {field.tag}")
    if (field.null_from is not None and field.default is not ...) or field.default not in (
        0,
        "",
        b"",
        bytes(16),
        [],
        ...,
    ):
        notes.append(f"= {field.default!r}")
    return f"{field.name}: {annotation} = ..." + (f"  # {', '.join(notes)}" if notes else "")


def _class(message: notation.Message) -> list[str]:
    versions = f"{message.oldest}-{message.newest}" if message.oldest != message.newest else str(message.oldest)
    flexible = "never flexible" if message.flexible_from is None else f"flexible from {message.flexible_from}"
    number = (
        ""
        if message.key is None
        else f"key {message.key}, "
        if message.kind in ("request", "response")
        else f"type {message.key}, "
    )
    lines = ["", f"class {message.name}(Struct):  # {number}versions {versions}, {flexible}"]
    for struct in message.structs.values():
        lines.append(f"    class {struct.name}(Struct):")
        lines += [f"        {_field(field, message)}" for field in struct.fields]
        lines.append("")
    lines += [f"    {_field(field, message)}" for field in message.root.fields]
    if lines[-1] == "" or len(lines) == 2:
        lines.append("    ...")
    return lines


def text() -> str:
    """The stub's content."""
    lines = []
    for name in messages.all_known_names():
        lines += _class(messages.schema(messages.stored_class(name)))
    return _HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    with open(PATH, "w", encoding="utf-8") as stream:
        stream.write(text())
