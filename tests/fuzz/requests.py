"""Requests that a broker with a few topics and groups understands, and damaged forms of them.

`PlausibleValues` fills every field of a request by its name, so that most requests get past the first check. `mutated`
then damages some: it changes bits, bytes and lengths, and cuts, doubles or inserts pieces. Record batches are damaged
on two levels: inside, with a corrected checksum, and outside.
"""

from __future__ import annotations

import random
import struct

from pykafkad.handlers import table
from pykafkad.wire import batch, frames, messages
from pykafkad.wire.batch import build_batch
from tests.wire.values import Values

TOPICS = ("plain", "compact", "gzip", "stamped", "missing", "__consumer_offsets", "", "..", "a/b")
GROUPS = ("g", "h", "")
EDGES = (-(2**31), -2, -1, 0, 1, 2, 3, 5, 127, 128, 65536, 2**31 - 1)
LARGE_EDGES = (*EDGES, -(2**63), 2**63 - 1, 2**32)
APIS = [(row.key, row.name, version) for row in table.ROWS for version in range(row.min_version, row.max_version + 1)]


class PlausibleValues(Values):
    """Draws values by the name of the field, mostly sensible ones and sometimes at the limits."""

    def __init__(self, seed: object, topic_ids: list[bytes]) -> None:
        super().__init__(seed)
        self.topic_ids = topic_ids
        self.member_ids = ["", "m"]

    def scalar(self, field):
        """A scalar value by the name of its field."""
        name, draw = field.name, self.random
        if field.type == "string":
            return self._text(name)
        if field.type == "records":
            return memoryview(hostile_batch(draw) if draw.random() < 0.5 else plain_batch(draw))
        if field.type == "uuid":
            return draw.choice((*self.topic_ids, bytes(16), b"\1" * 16))
        if field.type == "bytes":
            return draw.randbytes(draw.choice((0, 1, 30)))
        return super().scalar(field)

    def _text(self, name: str) -> str:
        draw = self.random
        if "topic" in name or name in ("name", "resource_name"):
            return draw.choice(TOPICS)
        if ("group" in name and "instance" not in name) or name == "key":
            return draw.choice(GROUPS)
        if name == "member_id":
            return draw.choice(self.member_ids)
        if name == "protocol_type":
            return "consumer"
        return draw.choice(
            ("", "range", "cleanup.policy", "retention.ms", "delete", "1000", "client-1.0", "größe", "x" * 300)
        )

    def integer(self, field) -> int:
        """Small numbers, as ids and counts are, and sometimes the limits of the type."""
        draw, name = self.random, field.name
        if name.endswith("_ms") and field.type == "int32":
            return draw.choice((0, 1, 100, 6000, 10_000, 10_000, 300_000, -1))
        if name in ("replication_factor", "acks"):
            return draw.choice((1, -1))
        if name == "count" or "num_partitions" in name:
            return draw.choice((1, 2, 3, -1, 0))
        if draw.random() < 0.85:
            return draw.choice((0, 0, 0, 1, 1, 2, 4))
        low, high = {
            "uint16": (0, 2**16 - 1),
            "int8": (-(2**7), 2**7 - 1),
            "int16": (-(2**15), 2**15 - 1),
            "int32": (-(2**31), 2**31 - 1),
        }.get(field.type, (-(2**63), 2**63 - 1))
        return max(low, min(high, draw.choice(LARGE_EDGES)))


def plain_batch(draw: random.Random) -> bytearray:
    """A batch as a client sends it, in any codec. Some are of an idempotent producer."""
    records = [
        (draw.choice((None, b"k")), draw.choice((None, b"", b"value" * 10))) for _ in range(draw.choice((1, 1, 3, 20)))
    ]
    idempotent = draw.random() < 0.3
    return build_batch(
        records,
        timestamp_ms=draw.choice((0, 1_000_000_000_000, -1)),
        codec=draw.choice((0, 0, 1, 2, 3, 4)),
        producer_id=draw.randrange(3) if idempotent else -1,
        producer_epoch=draw.randrange(2) if idempotent else -1,
        base_sequence=draw.choice((0, 1, 3, 2**31 - 1)) if idempotent else -1,
    )


def hostile_batch(draw: random.Random) -> bytearray:
    """A batch with some changed bytes, usually with a corrected checksum."""
    data = plain_batch(draw)
    for _ in range(draw.choice((1, 1, 2, 5))):
        if draw.random() < 0.4:
            # One field of the header gets a value at its limit: deltas, timestamps, producer, sequence, count.
            position, code = draw.choice(
                (
                    (8, "i"),
                    (16, "b"),
                    (21, "h"),
                    (23, "i"),
                    (27, "q"),
                    (35, "q"),
                    (43, "q"),
                    (51, "h"),
                    (53, "i"),
                    (57, "i"),
                )
            )
            size = struct.calcsize(code)
            value = draw.choice(LARGE_EDGES) & (256**size - 1)
            data[position : position + size] = value.to_bytes(size, "big")
        else:
            data[draw.randrange(8, len(data))] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
    if draw.random() < 0.1:
        del data[draw.randrange(len(data)) :]
    elif draw.random() < 0.8:
        struct.pack_into(">I", data, batch.CRC_POSITION, batch.crc32c(bytes(data[batch.ATTRIBUTES_POSITION :])))
    return data


def encoded(values: PlausibleValues, key: int, name: str, version: int, correlation_id: int) -> bytes:
    """The payload of a request: a frame without its size."""
    cls = messages.request_class(key)
    flexible_from = messages.flexible_from(cls)
    chunks = [
        frames.start_request(
            key,
            version,
            correlation_id,
            values.random.choice(("fuzz", "", None)),
            flexible_from is not None and version >= flexible_from,
        )
    ]
    messages.encoder(cls, version)(values.message(cls, version), chunks)
    return b"".join(bytes(chunk) for chunk in chunks)[4:]


def mutated(draw: random.Random, payload: bytes, other: bytes) -> bytes:
    """The payload after one to four random changes. Pieces of `other` may be inserted.

    Key, version and correlation id usually stay the same.
    """
    data = bytearray(payload)
    first = 8 if draw.random() < 0.95 else 0
    for _ in range(draw.choice((1, 1, 2, 4))):
        if len(data) <= first:
            break
        at = draw.randrange(first, len(data))
        kind = draw.randrange(7)
        if kind == 0:
            data[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            data[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + draw.choice((1, 2, 4, 8))]
        elif kind == 4:
            data[at:at] = data[at : at + draw.choice((1, 4, 30))]
        elif kind == 5:
            piece = draw.randrange(len(other) + 1)
            data[at : at + 8] = other[piece : piece + draw.choice((1, 4, 30))]
        else:
            data[at : at + 4] = struct.pack(">i", draw.choice(EDGES))
    return bytes(data)
