"""Snapshots of the metadata log: files `END_OFFSET-EPOCH.checkpoint` with the whole image as records (KIP-630).

A snapshot replaces all records below its end offset. The epoch in its name is that of the last of these records. The
offsets of its own batches begin with 0. It consists of a control batch with the header (and the quorum's version and
voters), data batches, and a control batch with the footer. The snapshot with end offset 0 is written by formatting and
holds the first voters. `bootstrap.checkpoint` has the same form and holds the first records of a new cluster."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError, ProtocolError
from pykafkad.metadata import features, record_codec, voters
from pykafkad.wire import messages
from pykafkad.wire.batch import HEADER_SIZE_BYTES, build_batch, header_of, parse_header, validate
from pykafkad.wire.records import encode_record, iterate_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.image import Image
    from pykafkad.metadata.topics import PartitionState, Topic
    from pykafkad.metadata.voters import Voter

SUFFIX = ".checkpoint"
_OFFSET_DIGITS = 20
_EPOCH_DIGITS = 10

BOOTSTRAP_FILE = "bootstrap.checkpoint"

RECORDS_PER_STEP = 200
"""The number of records that are encoded in one step, which takes one to two milliseconds of the loop."""

BATCH_BYTES = 7 * 1024 * 1024
"""A data batch ends at this size, like Kafka's. Kafka's metadata shell shows only the records of the first data
batch."""

_PIECE_BYTES = 1024 * 1024


def file_name(end_offset: int, epoch: int) -> str:
    """The file name of the snapshot of all records below `end_offset`."""
    return f"{end_offset:0{_OFFSET_DIGITS}}-{epoch:0{_EPOCH_DIGITS}}{SUFFIX}"


def parse_name(name: str) -> tuple[int, int] | None:
    """`(end offset, epoch)` of a snapshot's file name. None for any other name."""
    offset, dash, epoch = name.removesuffix(SUFFIX).partition("-")
    if not name.endswith(SUFFIX) or not dash or (len(offset), len(epoch)) != (_OFFSET_DIGITS, _EPOCH_DIGITS):
        return None
    if not (offset.isascii() and offset.isdigit() and epoch.isascii() and epoch.isdigit()):
        return None
    return int(offset), int(epoch)


def listed(names: Iterable[str]) -> list[tuple[int, int]]:
    """`(end offset, epoch)` of each snapshot among the names of a directory, the oldest first."""
    return sorted(found for found in map(parse_name, names) if found is not None)


def read(content: bytes) -> Iterator[StoredRecord]:
    """The records of a snapshot's file. Raises `KafkaError(CORRUPT_MESSAGE)` for an incomplete or damaged file, and
    `ProtocolError` for a record that cannot be decoded."""
    view = memoryview(content)
    position = 0
    finished = False
    while position < len(view):
        if len(view) - position < HEADER_SIZE_BYTES:
            raise KafkaError(errors.CORRUPT_MESSAGE, f"the {len(view) - position} bytes at {position} are not a batch")
        batch = view[position : position + parse_header(view, position).size_bytes]
        header = validate(batch)
        for record in iterate_records(batch, header):
            found = record_codec.decode(record.key if header.is_control else None, record.value or b"")
            finished = type(found.value).__name__ == "SnapshotFooterRecord"
            yield found
        position += len(batch)
    if not finished:
        raise KafkaError(errors.CORRUPT_MESSAGE, "the snapshot's footer is missing")


def last_timestamp_ms(content: bytes) -> int:
    """When the last record below the snapshot's end offset was written; 0 when its header cannot be read."""
    try:
        header: Any = next(read(content)).value
        timestamp_ms: int = header.last_contained_log_timestamp
    except (AttributeError, KafkaError, ProtocolError, StopIteration):
        return 0
    return timestamp_ms


def voters_only(voter_set: list[Voter], now_ms: int) -> bytes:
    """The snapshot with end offset 0, which formatting writes: the version and the voters of a new quorum."""
    return b"".join(
        _pieces(0, now_ms, [_header(now_ms), *_quorum_records(features.NEW_CLUSTER_KRAFT_VERSION, voter_set)], iter(()))
    )


def bootstrap(now_ms: int, levels: dict[str, int] = features.BOOTSTRAP) -> bytes:
    """The content of `bootstrap.checkpoint`: the features of a new cluster."""
    return of_records(now_ms, feature_levels(levels))


def feature_levels(levels: dict[str, int]) -> list[messages.Struct]:
    """What the records of a new cluster's features hold."""
    return [messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]


def of_records(now_ms: int, records: Iterable[messages.Struct]) -> bytes:
    """The same with these records."""
    return b"".join(_pieces(0, now_ms, [_header(0)], iter(records)))


class Writing:
    """Writes a snapshot of the image as it is now, while the image goes on changing.

    Objects that do not change in place are collected at once, by reference. The old state of a partition that changes
    before it is written is kept. `pieces()` returns the file in pieces of at most `RECORDS_PER_STEP` records or a
    megabyte. The caller calls `close()` at the end, also when it gives up. An image has one writer at a time."""

    __slots__ = (
        "_before",
        "_configs",
        "_first",
        "_head",
        "_image",
        "_level",
        "_rest",
        "_topics",
        "end_offset",
        "epoch",
        "now_ms",
    )

    def __init__(self, image: Image, last_timestamp_ms: int, now_ms: int) -> None:
        """`last_timestamp_ms` is when the last record below the snapshot's end offset was written."""
        self.end_offset = image.offset + 1
        self.epoch = image.epoch
        self.now_ms = now_ms
        self._image = image
        self._level = image.features.get(features.METADATA_VERSION, features.LATEST_LEVEL)
        quorum_records = _quorum_records(image.kraft_version, image.voters) if image.kraft_version else []
        self._head = [_header(last_timestamp_ms), *quorum_records]
        levels = sorted(image.features.items(), key=lambda level: level[0] != features.METADATA_VERSION)
        self._first: list[messages.Struct] = [
            *(
                messages.FeatureLevelRecord(name=name, feature_level=level)
                for name, level in levels
                if name != features.KRAFT_VERSION
            ),
            *(broker.to_record() for broker in image.brokers.values()),
            *(controller.to_record() for controller in image.controllers.values()),
        ]
        self._topics = [(topic, len(topic.partitions)) for topic in image.topics.values()]
        self._configs = image.all_configs()
        self._rest: list[messages.Struct] = [
            *image.client_quotas.values(),
            messages.ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id),
            *image.acls.values(),
            *image.scram_credentials.values(),
            *image.delegation_tokens.values(),
        ]
        self._before: dict[PartitionState, messages.PartitionRecord] = {}
        image.before_change = self._keep

    def pieces(self) -> Iterator[bytes | bytearray | memoryview]:
        """The content of the file, piece by piece. After an empty piece the caller may pause; more pieces follow."""
        return _pieces(self.epoch, self.now_ms, self._head, self._records(), self._level)

    def close(self) -> None:
        """Stop keeping the old state of partitions that change."""
        self._image.before_change = None
        self._before.clear()

    def _keep(self, topic: Topic, state: PartitionState) -> None:
        if state not in self._before:
            self._before[state] = state.to_record(topic.id)

    def _records(self) -> Iterator[messages.Struct]:
        """The records in Kafka's order: features, nodes, topics, settings, and all others."""
        yield from self._first
        for topic, count in self._topics:
            yield messages.TopicRecord(name=topic.name, topic_id=topic.id)
            for state in topic.partitions[:count]:
                yield self._before.get(state) or state.to_record(topic.id)
        for (resource_type, resource_name), values in self._configs.items():
            for name, value in values.items():
                yield messages.ConfigRecord(
                    resource_type=resource_type, resource_name=resource_name, name=name, value=value
                )
        yield from self._rest


def _header(last_timestamp_ms: int) -> messages.SnapshotHeaderRecord:
    return messages.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=last_timestamp_ms)


def _quorum_records(kraft_version: int, voter_set: list[Voter]) -> list[messages.Struct]:
    return [messages.KRaftVersionRecord(version=0, k_raft_version=kraft_version), voters.to_record(voter_set)]


def _pieces(
    epoch: int,
    now_ms: int,
    head: list[messages.Struct],
    data: Iterator[messages.Struct],
    level: int = features.LATEST_LEVEL,
) -> Iterator[bytes | bytearray | memoryview]:
    """A control batch, data batches and a control batch, with offsets from 0. The data records are in the versions of a
    level of metadata.version."""
    yield _control_batch(head, 0, epoch, now_ms)
    offset = len(head)
    body = bytearray()
    count = 0
    for message in data:
        record = record_codec.record(message)
        if level < features.LATEST_LEVEL:
            lowered = record_codec.at_level([record], level)
            if not lowered:
                continue
            (record,) = lowered
        encode_record(body, count, 0, *record_codec.encode(record, level))
        count += 1
        if len(body) >= BATCH_BYTES:
            yield from _data_batch(body, count, offset, epoch, now_ms)
            offset += count
            body = bytearray()
            count = 0
        elif count % RECORDS_PER_STEP == 0:
            yield b""
    if body:
        yield from _data_batch(body, count, offset, epoch, now_ms)
        offset += count
    yield _control_batch([messages.SnapshotFooterRecord(version=0)], offset, epoch, now_ms)


def _control_batch(values: list[messages.Struct], offset: int, epoch: int, now_ms: int) -> bytearray:
    encoded = [record_codec.encode(record_codec.control_record(each)) for each in values]
    return build_batch(encoded, base_offset=offset, timestamp_ms=now_ms, leader_epoch=epoch, is_control=True)


def _data_batch(
    body: bytearray, count: int, offset: int, epoch: int, now_ms: int
) -> Iterator[bytes | bytearray | memoryview]:
    yield header_of(body, count, base_offset=offset, timestamp_ms=now_ms, leader_epoch=epoch)
    view = memoryview(body)
    for position in range(0, len(view), _PIECE_BYTES):
        yield view[position : position + _PIECE_BYTES]
