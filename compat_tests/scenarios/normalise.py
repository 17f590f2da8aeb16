"""Makes transcripts comparable: values that may differ between two brokers are replaced by descriptions.

An id becomes `kind#n`, numbered by first appearance in its transcript, so that "the same id again" is still compared.
Lists of structs are sorted, because no client may rely on their order. Everything else must be equal.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from compat_tests.scenarios.exchange import ZERO_UUID, Exchange
from pykafkad.wire import batch, messages, records

NOW_TOLERANCE_MS = 3_600_000
UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<=-)[A-Za-z0-9_-]{22}$")
# Field name to the kind of its id. A missing id stays as it is. 0 also means "missing", for a producer id only beside
# an error: the first one that a cluster gives out is 0.
NO_ID = (-1, "")
IDS = {"producer_id": "producer", "session_id": "session", "cluster_id": "cluster", "log_dir": "directory"}
# Texts for people: only their presence is compared.
TEXTS = ("error_message", "batch_index_error_message", "documentation")
# Sizes of the machine's disk, and an offset of the metadata log.
AMOUNTS = ("total_bytes", "usable_bytes", "finalized_features_epoch")


class Run(NamedTuple):
    """The values that belong to one run: its broker's port, the prefix of its names, and the ids seen so far."""

    port: int
    prefix: str
    numbers: dict[tuple[str, object], str]


class Volatile:
    """A value that differs between brokers.

    It prints as its number if it was seen before, else as its kind, and sorts the same way.
    """

    def __init__(self, run: Run, kind: str, value: object) -> None:
        self.key = (kind, value)
        self.run = run

    def __repr__(self) -> str:
        return self.run.numbers.get(self.key, self.key[0])

    def number(self) -> str:
        """Its number; it counts as seen from now on."""
        if self.key not in self.run.numbers:
            count = sum(1 for kind, _ in self.run.numbers if kind == self.key[0])
            self.run.numbers[self.key] = f"{self.key[0]}#{count + 1}"
        return self.run.numbers[self.key]


def normalised(exchange: Exchange) -> list[tuple[str, Any]]:
    """`(label, plain value)` for every step of a transcript."""
    run = Run(int(exchange.bootstrap.rsplit(":", 1)[1]), exchange.prefix, {})
    result = []
    for step in exchange.steps:
        plain = one_normalised(step.answer, step.version, run)
        # An unrecorded step only makes its ids known.
        if step.label is not None:
            result.append((step.label, plain))
    return result


def one_normalised(answer: Any, version: int, run: Run) -> Any:
    """One answer as plain values; new ids in it are added to the run's."""
    if isinstance(answer, str):
        return answer
    return _numbered(_struct(answer, messages.schema(type(answer)).root, version, run))


def _struct(value: Any, schema: Any, version: int, run: Run) -> dict[str, Any]:
    plain = {}
    for field in schema.fields:
        if field.alive(version):
            inner = getattr(value, field.name)
            is_no_id = field.name == "producer_id" and inner == 0 and getattr(value, "error_code", 0)
            plain[field.name] = inner if is_no_id else _field(field, inner, version, run)
    return plain


def _field(field: Any, value: Any, version: int, run: Run) -> Any:
    if value is None:
        return None
    if field.struct is not None:
        if not field.is_array:
            return _struct(value, field.struct, version, run)
        return sorted((_struct(item, field.struct, version, run) for item in value), key=repr)
    if field.is_array:
        return sorted((_scalar(field, item, run) for item in value), key=repr)
    return _scalar(field, value, run)


def _scalar(field: Any, value: Any, run: Run) -> Any:
    name = field.name
    if field.type == "uuid":
        return "zero uuid" if bytes(value) == ZERO_UUID else Volatile(run, "uuid", bytes(value))
    if field.type == "records":
        return list(_batches(value, run))
    if field.type == "bytes":
        return bytes(value).replace(run.prefix.encode(), b"")
    if name in IDS and value not in NO_ID and (value != 0 or name == "producer_id"):
        return Volatile(run, IDS[name], value)
    if name in TEXTS:
        return "a text" if value else value
    if name in AMOUNTS and value > 0:
        return "an amount"
    if name == "client_host" and value.startswith("/"):
        # A broker in a container sees its clients under another address.
        return "an address"
    if name == "port" and value == run.port:
        return "our port"
    if isinstance(value, str):
        return _text(value.replace(run.prefix, ""), run)
    if isinstance(value, int) and "time" in name:
        return _time(value)
    return value


def _text(value: str, run: Run) -> Any:
    found = UUID_TEXT.search(value)
    return Volatile(run, value.replace(found.group(), "") + "uuid", found.group()) if found else value


def _time(value: int) -> int | str:
    return "now" if abs(value - time.time() * 1000) < NOW_TOLERANCE_MS else value


def _batches(view: Any, run: Run) -> Iterator[dict[str, Any]]:
    """Every whole batch of a records field.

    Kafka cuts a file at the limit, so a partial batch may follow, which every client ignores. pykafkad ends with a
    whole batch.
    """
    position = 0
    while position < len(view):
        rest = memoryview(view)[position:]
        if len(rest) < 12 or struct.unpack_from(">i", rest, 8)[0] + 12 > len(rest):
            return
        header = batch.parse_header(rest)
        body = list(records.iterate_records(rest[: header.size_bytes], header))
        yield {
            "base_offset": header.base_offset,
            "leader_epoch": header.leader_epoch,
            "attributes": header.attributes,
            "last_offset_delta": header.last_offset_delta,
            "base_timestamp": _time(header.base_timestamp_ms),
            "max_timestamp": _time(header.max_timestamp_ms),
            "producer_id": Volatile(run, "producer", header.producer_id)
            if header.producer_id >= 0
            else header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
            "records": [[r.offset, _time(r.timestamp_ms), r.key, r.value, r.headers] for r in body],
        }
        position += header.size_bytes


def _numbered(value: Any) -> Any:
    if isinstance(value, Volatile):
        return value.number()
    if isinstance(value, dict):
        return {key: _numbered(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_numbered(inner) for inner in value]
    return value


def differences(label: str, expected: Any, found: Any, path: str = "") -> Iterator[tuple[str, str, Any, Any]]:
    """`(label, path, expected, found)` for every place where two normalised answers differ; paths are dotted."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in [*expected, *(key for key in found if key not in expected)]:
            inner = f"{path}.{key}" if path else key
            yield from differences(label, expected.get(key, "absent"), found.get(key, "absent"), inner)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (left, right) in enumerate(zip(expected, found, strict=True)):
            yield from differences(label, left, right, f"{path}.{index}")
    elif expected != found or type(expected) is not type(found):
        yield label, path, expected, found
