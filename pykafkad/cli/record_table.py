"""Records as an Arrow table, which pandas, Polars and DuckDB take as it is; the package is the extra `table`.

Columns: `partition` (int32), `offset` (int64), `timestamp` (milliseconds, UTC; null where a record has none), `key` and
`value`, and `headers` (a list of name and bytes, in their order; a name may occur twice)."""

from __future__ import annotations

import json

from pykafkad.cli import extras
from pykafkad.cli.output import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Protocol

    class Record(Protocol):
        """A record as `pykafkad.testing` reads it, or as `record_of` makes it."""

        @property
        def topic(self) -> str: ...
        @property
        def partition(self) -> int: ...
        @property
        def offset(self) -> int: ...
        @property
        def timestamp_ms(self) -> int: ...
        @property
        def key(self) -> bytes | None: ...
        @property
        def value(self) -> bytes | None: ...
        @property
        def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


BYTES, TEXT, JSON = "bytes", "text", "json"
CONTENTS = (BYTES, TEXT, JSON)
"""What keys and values can be taken for."""


def load() -> Any:
    """The package pyarrow. Raises `Failure` with how to install it."""
    if sentence := extras.missing("pyarrow"):
        raise Failure(f"records as a table: {sentence}", 2)
    import pyarrow

    return pyarrow


def check_content(name: str, content: str) -> None:
    """Raises ValueError for what is not one of `CONTENTS`."""
    if content not in CONTENTS:
        raise ValueError(f"{name}={content!r}: must be one of {', '.join(CONTENTS)}")


def table(records: Iterable[Record], key: str = BYTES, value: str = BYTES) -> Any:
    """The records as a `pyarrow.Table`. `key` and `value` say what they are: `bytes`, `text` (UTF-8), or `json`, whose
    objects become structs with the fields that any of them has.

    Raises ValueError, which names the record, for one that is something else."""
    check_content("key", key)
    check_content("value", value)
    arrow = load()
    rows = list(records)
    header = arrow.struct([("name", arrow.string()), ("value", arrow.binary())])
    columns = {
        "partition": arrow.array([row.partition for row in rows], arrow.int32()),
        "offset": arrow.array([row.offset for row in rows], arrow.int64()),
        "timestamp": arrow.array(
            [None if row.timestamp_ms < 0 else row.timestamp_ms for row in rows], arrow.timestamp("ms", tz="UTC")
        ),
        "key": _column(arrow, "key", key, [(row, row.key) for row in rows]),
        "value": _column(arrow, "value", value, [(row, row.value) for row in rows]),
        "headers": arrow.array(
            [[{"name": name, "value": content} for name, content in row.headers] for row in rows], arrow.list_(header)
        ),
    }
    return arrow.table(columns)


def _column(arrow: Any, name: str, content: str, cells: list[tuple[Record, bytes | None]]) -> Any:
    if content == BYTES:
        return arrow.array([data for _, data in cells], arrow.binary())
    if content == TEXT:
        return arrow.array([_text(name, row, data) for row, data in cells], arrow.string())
    found = [None if data is None else _json(name, row, data) for row, data in cells]
    try:
        return arrow.array(found)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError) as error:
        raise ValueError(f"{name}s are JSON of different types, which are no column: {error}") from None


def _text(name: str, row: Record, data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"the {name} of {_place(row)} is no UTF-8 text: {error.reason} at byte {error.start}"
        ) from None


def _json(name: str, row: Record, data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the {name} of {_place(row)} is no JSON: {error}") from None


def _place(row: Record) -> str:
    return f"{row.topic}-{row.partition}@{row.offset}"
