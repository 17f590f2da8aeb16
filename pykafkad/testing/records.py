"""Records as a test writes and reads them, without a client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from pykafkad import errors
from pykafkad.testing import topics
from pykafkad.testing.partitioner import partition_of
from pykafkad.testing.wire_client import Refused, WireClient
from pykafkad.wire import messages
from pykafkad.wire.batch import BatchHeader, build_batch, parse_header
from pykafkad.wire.records import iterate_records

Text = str | bytes
"""A key, value or header; text is written as UTF-8."""

FETCH_BYTES = 8 << 20
FIRST_FETCH_BYTES = 64 << 10
"""Of a partition of which only some records are asked for."""

BATCH_BYTES = 512 * 1024
"""About so much is written as one batch."""


class Record(NamedTuple):
    """A record that a topic holds. Key, value and the values of headers are bytes, or None."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class NewRecord(NamedTuple):
    """A record to write. Without a `partition` its key chooses it as in a Java client; records without a key take
    turns. Without `timestamp_ms` it gets the time of the call."""

    value: Text | None
    key: Text | None = None
    headers: Mapping[str, Text | None] | Sequence[tuple[str, Text | None]] = MappingProxyType({})
    partition: int | None = None
    timestamp_ms: int | None = None


Writable = NewRecord | Text | None | tuple[Text | None, Text | None]
"""A record to write: a value alone (None: a tombstone), (key, value), or a `NewRecord`."""


def new_record(record: object) -> NewRecord:
    """`record` as a NewRecord. Raises TypeError for what is no `Writable`."""
    if isinstance(record, NewRecord):
        return record
    if record is None or isinstance(record, (str, bytes)):
        return NewRecord(record)
    if isinstance(record, tuple) and len(record) == 2:
        key, value = record
        return NewRecord(value, key)
    raise TypeError(f"a record is a value (bytes, str or None), a tuple (key, value) or a NewRecord, not {record!r}")


def _bytes(value: object, what: str) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"the {what} of a record is bytes, str or None, not {value!r}")


def write(client: WireClient, topic: str, records: Iterable[object], ahead_seconds: float = 0.0) -> list[Record]:
    """Write records to a topic, which is created where it is not there; what it holds of them now. `ahead_seconds` is
    how far the broker's clock is ahead. Raises Refused, and ValueError for a partition that the topic does not have."""
    written = [new_record(record) for record in records]
    count = topics.partition_counts(client, [topic]).get(topic)
    if count is None:
        topics.create_topics(client, {topic: None}, may_exist=True)
        count = topics.partition_counts(client, [topic])[topic]
    by_partition: dict[int, list[int]] = {}
    encoded = []
    now_ms = int((time.time() + ahead_seconds) * 1000)
    turns = 0
    for position, record in enumerate(written):
        key = _bytes(record.key, "key")
        pairs = record.headers.items() if isinstance(record.headers, Mapping) else record.headers
        headers = [(name, _bytes(value, f"header {name}")) for name, value in pairs]
        timestamp_ms = now_ms if record.timestamp_ms is None else record.timestamp_ms
        encoded.append((key, _bytes(record.value, "value"), headers, timestamp_ms))
        partition = record.partition
        if partition is None:
            partition = turns % count if key is None else partition_of(key, count)
            turns += key is None
        if not 0 <= partition < count:
            raise ValueError(f"{topic} has the partitions 0 to {count - 1}, not {partition}")
        by_partition.setdefault(partition, []).append(position)
    found: dict[int, Record] = {}
    for partition, positions in by_partition.items():
        for chosen in _batches(positions, encoded):
            base_offset = _append(client, topic, partition, [encoded[position] for position in chosen])
            for offset, position in enumerate(chosen, base_offset):
                key, value, headers, timestamp_ms = encoded[position]
                found[position] = Record(topic, partition, offset, timestamp_ms, key, value, tuple(headers))
    return [found[position] for position in range(len(written))]


_Encoded = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]


def _batches(positions: list[int], encoded: list[_Encoded]) -> Iterable[list[int]]:
    batch: list[int] = []
    size = 0
    for position in positions:
        key, value, _, _ = encoded[position]
        length = len(key or b"") + len(value or b"")
        if batch and size + length > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(position)
        size += length
    if batch:
        yield batch


def _append(client: WireClient, topic: str, partition: int, records: list[_Encoded]) -> int:
    request = messages.ProduceRequest
    data = request.PartitionProduceData(index=partition, records=bytes(build_batch(records)))
    answer = client.ask(
        "Produce",
        acks=-1,
        timeout_ms=topics.TIMEOUT_MS,
        topic_data=[request.TopicProduceData(name=topic, partition_data=[data])],
    )
    row = answer.responses[0].partition_responses[0]
    if row.error_code:
        raise Refused(f"records to {topic}-{partition}", row.error_code, row.error_message)
    base_offset: int = row.base_offset
    return base_offset


class Found(NamedTuple):
    """Records that were read, and how many offsets of what was asked for were left out: as many records at most."""

    records: list[Record]
    left_out: int = 0


class Wanted(NamedTuple):
    """Which records of a topic are read: those of one partition or of all; from an offset on; the first `limit` of
    them, or the `last` ones."""

    partition: int | None = None
    offset: int | None = None
    limit: int | None = None
    last: bool = False
    isolation_level: int = topics.READ_UNCOMMITTED

    def check(self) -> None:
        """Raises ValueError for what could mean nothing."""
        if self.limit is not None and (type(self.limit) is not int or self.limit < 1):
            raise ValueError(f"limit: {self.limit!r} is no number from 1 on; None stands for no limit")
        if self.offset is None:
            return
        if type(self.offset) is not int or self.offset < 0:
            raise ValueError(f"offset: {self.offset!r} is no number from 0 on")
        if self.partition is None:
            raise ValueError(f"offset: {self.offset} is that of one partition; say which one")
        if self.last:
            raise ValueError(f"offset: {self.offset} and last are both there; give one of them")


Bounds = dict[topics.Partition, tuple[int, int]]
"""The first offset of each partition and the one after its last record."""


def bounds(client: WireClient, topic: str, wanted: Wanted) -> Bounds:
    """Those of the partitions that are wanted. Raises Refused for a topic that is not there, and ValueError for such a
    partition."""
    wanted.check()
    count = topics.partition_counts(client, [topic]).get(topic)
    if count is None:
        raise Refused(f"records of {topic}", errors.UNKNOWN_TOPIC_OR_PARTITION)
    partition = wanted.partition
    if partition is not None and not 0 <= partition < count:
        raise ValueError(f"{topic} has the partitions 0 to {count - 1}, not {partition}")
    chosen = [(topic, index) for index in (range(count) if partition is None else [partition])]
    begins = topics.offsets(client, chosen, topics.EARLIEST)
    ends = topics.offsets(client, chosen, topics.LATEST, wanted.isolation_level)
    return {each: (begins[each], ends[each]) for each in chosen}


def read(client: WireClient, topic: str, wanted: Wanted) -> Found:
    """What a topic holds now of what is wanted, in the order of partitions and offsets; no more is read than that.
    Raises as `bounds`."""
    found: list[Record] = []
    left_out = 0
    limit = wanted.limit
    for (_, index), (begin, end) in bounds(client, topic, wanted).items():
        position = begin if wanted.offset is None else max(begin, wanted.offset)
        needed = limit
        if limit is not None and wanted.last:
            left_out += max(0, end - limit - position)
            position = max(position, end - limit)
        elif limit is not None:
            needed = limit - len(found)
        records, position = _read_partition(client, topic, index, (position, end), needed, wanted.isolation_level)
        found += records
        left_out += max(0, end - position)
        if limit is not None and len(found) > limit:
            # Those of several partitions: the newest of them.
            left_out += len(found) - limit
            found = sorted(found, key=_age)[-limit:]
    return Found(sorted(found, key=_place) if wanted.last else found, left_out)


def _age(record: Record) -> tuple[int, int, int]:
    return record.timestamp_ms, record.partition, record.offset


def _place(record: Record) -> tuple[int, int]:
    return record.partition, record.offset


def _read_partition(
    client: WireClient, topic: str, partition: int, offsets: tuple[int, int], needed: int | None, isolation_level: int
) -> tuple[list[Record], int]:
    """So many records at most from the first of `offsets` on, below the second one; and where to go on."""
    position, end_offset = offsets
    found: list[Record] = []
    max_bytes = FETCH_BYTES if needed is None else FIRST_FETCH_BYTES
    while position < end_offset and (needed is None or len(found) < needed):
        left = None if needed is None else needed - len(found)
        records, position = _fetch(client, topic, partition, position, isolation_level, max_bytes, left)
        found += [record for record in records if record.offset < end_offset]
        max_bytes = min(4 * max_bytes, FETCH_BYTES)
    return found, position


def awaited(look: Callable[[], Bounds], read_now: Callable[[], Found], count: int) -> Callable[[], Found]:
    """Looks for `count` records again and again; they are read when there may be so many, and again when something
    has changed since."""
    last: tuple[Bounds, Found] = ({}, Found([]))

    def found() -> Found:
        nonlocal last
        try:
            there = look()
            if there != last[0] and sum(end - begin for begin, end in there.values()) >= count:
                last = there, read_now()
        except Refused as refused:
            if refused.code != errors.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            last = {}, Found([])
        return last[1]

    return found


def _fetch(
    client: WireClient,
    topic: str,
    partition: int,
    position: int,
    isolation_level: int,
    max_bytes: int,
    needed: int | None,
) -> tuple[list[Record], int]:
    """Records from `position` on, and where to go on."""
    request = messages.FetchRequest
    asked = request.FetchPartition(partition=partition, fetch_offset=position, partition_max_bytes=max_bytes)
    answer = client.ask(
        "Fetch",
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=isolation_level,
        topics=[request.FetchTopic(topic=topic, partitions=[asked])],
    )
    row = answer.responses[0].partitions[0]
    if row.error_code:
        raise Refused(f"records of {topic}-{partition}", row.error_code)
    found = []
    next_position = None
    for header, view in answered_batches(row):
        for each in iterate_records(view, header) if view is not None else ():
            if each.offset >= position:
                found.append(
                    Record(topic, partition, each.offset, each.timestamp_ms, each.key, each.value, tuple(each.headers))
                )
                if len(found) == needed:
                    return found, each.offset + 1
        next_position = header.end_offset
    if next_position is None:
        raise Refused(f"records of {topic}-{partition} from {position}", errors.UNKNOWN_SERVER_ERROR, "there were none")
    return found, next_position


def answered_batches(row: messages.FetchResponse.PartitionData) -> Iterator[tuple[BatchHeader, memoryview | None]]:
    """The whole batches that a Fetch has answered for a partition: the header of each, and its bytes, or None where a
    consumer leaves it out: control batches, and what the answer says is of aborted transactions."""
    content: Any = row.records if row.records is not None else b""
    ignored = sorted(row.aborted_transactions or (), key=lambda each: each.first_offset)
    aborting: set[int] = set()
    at = 0
    while len(content) - at >= 61:
        view = memoryview(content)[at:]
        header = parse_header(view)
        if header.size_bytes > len(view):
            break
        at += header.size_bytes
        while ignored and ignored[0].first_offset <= header.last_offset:
            aborting.add(ignored.pop(0).producer_id)
        if header.is_control:
            aborting.discard(header.producer_id)
            yield header, None
        else:
            is_left_out = header.is_transactional and header.producer_id in aborting
            yield header, None if is_left_out else view[: header.size_bytes]
