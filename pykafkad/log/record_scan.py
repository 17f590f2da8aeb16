"""Walking the records of a batch for compaction: only keys, offsets, timestamps and tombstones are parsed.

The loops contain no calls, because they run for every record of every compacted log, and a call per field would make
them several times slower. Records are expected to be well-formed, as `log/append_rules.py` and Kafka leave them in a
log. Other bytes end the walk with `IndexError` or `BrokenRecords`."""

from __future__ import annotations

from pykafkad.log.offset_map import MAX_KEY_BYTES, SHARD_MASK, long_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class BrokenRecords(Exception):
    """Bytes that are not records."""


def _varint(body: bytes, position: int) -> tuple[int, int]:
    """(value before zigzag decoding, position after it)."""
    value = shift = 0
    while True:
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise BrokenRecords(f"a varint that ends at byte {position} is too long")


def _append_varint(out: bytearray, raw: int) -> None:
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


def index_keys(
    body: bytes, position: int, count: int, base_offset: int, start_offset: int, shards: list[dict[bytes, int]]
) -> int:
    """Enter the keys of `count` records from `position` on into the shards of an `OffsetMap`.

    Returns the position after them. Records without a key, and those below `start_offset`, are skipped.
    """
    for _ in range(count):
        raw = body[position]
        position += 1
        if raw > 0x7F:
            more = body[position]
            position += 1
            if more < 0x80:
                raw = raw & 0x7F | more << 7
            else:
                raw, position = _varint(body, position - 2)
        end = position + (raw >> 1)
        position += 1
        while body[position] > 0x7F:
            position += 1
        delta = body[position + 1]
        position += 2
        if delta > 0x7F:
            more = body[position]
            position += 1
            if more < 0x80:
                delta = delta & 0x7F | more << 7
            else:
                delta, position = _varint(body, position - 2)
        size = body[position]
        position += 1
        if size > 0x7F:
            size, position = _varint(body, position - 1)
        if not size & 1:
            key = body[position : position + (size >> 1)]
            offset = base_offset + (delta >> 1)
            if offset >= start_offset:
                if size > 2 * MAX_KEY_BYTES:
                    key = long_key(key)
                shards[hash(key) & SHARD_MASK][key] = offset
        position = end
    return position


class Retention:
    """Finds the records of one batch that stay, in steps.

    `runs` are the (start, end) positions in `body` of neighbouring records that stay. `kept` counts these records, and
    `has_tombstones` says whether one of them has no value."""

    __slots__ = (
        "_base_offset",
        "_latest_offset",
        "_latest_stamp",
        "_left",
        "_newest",
        "_tombstones_stay",
        "body",
        "has_tombstones",
        "kept",
        "position",
        "runs",
    )

    def __init__(
        self,
        body: bytes,
        position: int,
        count: int,
        base_offset: int,
        readers: Sequence[Callable[[bytes, int], int]],
        latest_offset: int,
        *,
        tombstones_stay: bool,
    ) -> None:
        self.body = body
        self.position = position
        self.runs: list[tuple[int, int]] = []
        self.kept = 0
        self.has_tombstones = False
        self._base_offset = base_offset
        self._latest_offset = latest_offset
        self._left = count
        self._newest = readers
        # The largest timestamp delta, zigzag-encoded. Negative deltas are odd in this encoding, and are ignored here.
        self._latest_stamp = -1
        self._tombstones_stay = tombstones_stay

    @property
    def latest_timestamp_delta(self) -> int | None:
        """The largest timestamp delta of the records that stay, None if all are negative."""
        return self._latest_stamp >> 1 if self._latest_stamp >= 0 else None

    def step(self, max_records: int) -> bool:
        """Check up to `max_records` more records; returns whether the batch is done."""
        body, position, newest, latest_stamp = self.body, self.position, self._newest, self._latest_stamp
        base_offset, latest_offset, tombstones_stay = self._base_offset, self._latest_offset, self._tombstones_stay
        runs, kept, count = self.runs, 0, min(self._left, max_records)
        run_start, run_end = runs.pop() if runs else (position, position)
        for _ in range(count):
            start = position
            raw, position = body[position], position + 1
            if raw > 0x7F:
                more, position = body[position], position + 1
                if more < 0x80:
                    raw = raw & 0x7F | more << 7
                else:
                    raw, position = _varint(body, position - 2)
            end = position + (raw >> 1)
            stamp, position = body[position + 1], position + 2
            if stamp > 0x7F:
                more, position = body[position], position + 1
                if more < 0x80:
                    stamp = stamp & 0x7F | more << 7
                else:
                    stamp, position = _varint(body, position - 2)
            delta, position = body[position], position + 1
            if delta > 0x7F:
                more, position = body[position], position + 1
                if more < 0x80:
                    delta = delta & 0x7F | more << 7
                else:
                    delta, position = _varint(body, position - 2)
            size, position = body[position], position + 1
            if size > 0x7F:
                size, position = _varint(body, position - 1)
            offset = base_offset + (delta >> 1)
            key_end = position if size & 1 else position + (size >> 1)
            is_tombstone = body[key_end] == 1
            if offset > latest_offset:
                stays = True
            elif size & 1 or (is_tombstone and not tombstones_stay):
                # Compaction removes records without a key.
                stays = False
            else:
                key = body[position:key_end] if size <= 2 * MAX_KEY_BYTES else long_key(body[position:key_end])
                stays = offset >= newest[hash(key) & SHARD_MASK](key, -1)
            if stays:
                kept += 1
                if stamp > latest_stamp and not stamp & 1:
                    latest_stamp = stamp
                if is_tombstone:
                    self.has_tombstones = True
                if run_end != start:
                    if run_end != run_start:
                        runs.append((run_start, run_end))
                    run_start = start
                run_end = end
            position = end
        if run_end != run_start:
            runs.append((run_start, run_end))
        if position > len(body):
            raise BrokenRecords(f"records end at byte {position} of {len(body)}")
        self.position, self._latest_stamp = position, latest_stamp
        self.kept += kept
        self._left -= count
        return not self._left


def shift_timestamps(body: bytes, position: int, count: int, shift: int, out: bytearray | None) -> tuple[int, int]:
    """(position after `count` records, their largest timestamp delta before the shift); `count` is at least 1.

    With `out` the records are appended to it, with `shift` added to their timestamp deltas.
    """
    largest = -(1 << 63)
    for _ in range(count):
        raw, begin = _varint(body, position)
        end = begin + (raw >> 1)
        raw, behind = _varint(body, begin + 1)
        delta = (raw >> 1) ^ -(raw & 1)
        if delta > largest:
            largest = delta
        if out is not None:
            delta += shift
            shifted = bytearray()
            _append_varint(shifted, (delta << 1) ^ (delta >> 63))
            _append_varint(out, 1 + len(shifted) + end - behind << 1)
            out += body[begin : begin + 1]
            out += shifted
            out += body[behind:end]
        position = end
    return position, largest
