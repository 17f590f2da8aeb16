"""Produce and InitProducerId: appended batches, and every reason to refuse a batch."""

from __future__ import annotations

import struct
import time
from typing import Any

from compat_tests.scenarios.exchange import CLOSED, ZERO_UUID, Exchange, part, request, versions
from compat_tests.scenarios.registry import scenario
from pykafkad.wire.batch import build_batch, crc32c

T0 = 1_700_000_000_000
RECORDS = [(b"k1", b"v1", [("h", b"x")]), (None, b"v2"), (b"k3", None)]
KEPT = {"retention_ms": "-1"}


def batch(records: list | None = None, **fields: Any) -> bytearray:
    """A batch with a fixed timestamp."""
    return build_batch(records or RECORDS, timestamp_ms=T0, **fields)


def batch_of_now(records: list | None = None, **fields: Any) -> bytearray:
    """A batch of an idempotent producer with the current time; the broker forgets producers of old batches."""
    return build_batch(records or RECORDS, timestamp_ms=int(time.time() * 1000), **fields)


def to(topic: str, *rows: tuple[int, bytes | None], topic_id: bytes = ZERO_UUID) -> Any:
    """One topic of a Produce request; `rows` are (partition, records)."""
    data = [part("Produce", "PartitionProduceData", index=index, records=records) for index, records in rows]
    return part("Produce", "TopicProduceData", name=topic, topic_id=topic_id, partition_data=data)


def produce(broker: Exchange, version: int, *topics: Any, note: str = "", acks: int = -1, **more: Any) -> Any:
    """Record a Produce request."""
    return broker.ask("Produce", version, note=note, acks=acks, timeout_ms=5000, topic_data=list(topics), **more)


def try_batches(broker: Exchange, topic: str, batches: dict[str, bytes | None], version: int = 9) -> None:
    """Send each batch to partition 0 of `topic`, then a valid one: refused batches take no offset."""
    for note, records in batches.items():
        produce(broker, version, to(topic, (0, records)), note=note)
    produce(broker, version, to(topic, (0, batch())), note="good at last")


@scenario
def every_version(broker: Exchange) -> None:
    """Batches get consecutive offsets, with acks 1 and all, by topic name and from version 13 on by id."""
    name = broker.topic(partitions=2, **KEPT)
    topic_id = broker.topic_id(name)
    for version in versions("Produce"):
        for acks in (1, -1):
            produce(
                broker, version, to(name, (0, batch()), (1, batch()), topic_id=topic_id), acks=acks, note=f"acks {acks}"
            )


@scenario
def every_codec(broker: Exchange) -> None:
    """Every codec is accepted; zstd only from version 7 on (KIP-110)."""
    name = broker.topic(**KEPT)
    topic_id = broker.topic_id(name)
    for version in versions("Produce"):
        for codec in range(8):
            records = batch(codec=codec) if codec < 5 else with_attributes(codec)
            produce(broker, version, to(name, (0, records), topic_id=topic_id), note=f"codec {codec}")


def with_attributes(attributes: int, **fields: Any) -> bytearray:
    """A batch with overwritten attributes and a valid checksum."""
    changed = batch(**fields)
    struct.pack_into(">H", changed, 21, attributes)
    return checksummed(changed)


def checksummed(changed: bytearray) -> bytearray:
    """The batch with its checksum recomputed."""
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return changed


def patched(form: str, position: int, value: int, *, right_checksum: bool = True) -> bytearray:
    """A batch with one overwritten field in its header."""
    changed = batch()
    struct.pack_into(form, changed, position, value)
    return checksummed(changed) if right_checksum else changed


@scenario
def acks_zero(broker: Exchange) -> None:
    """With acks=0 there is no answer, so the next answer belongs to the next request; an error closes the
    connection.
    """
    name = broker.topic(**KEPT)
    topic_id = broker.topic_id(name)
    for version in (3, 8, 9, 12, 13):
        connection = broker.connect()
        fields = {"acks": 0, "timeout_ms": 1000, "topic_data": [to(name, (0, batch()), topic_id=topic_id)]}
        connection.send("Produce", version, request("Produce", version, **fields))
        connection.forget_last()
        produce(broker, version, to(name, (0, batch()), topic_id=topic_id), note="after acks=0", on=connection)
        fields["topic_data"] = [to(broker.name("none"), (0, batch()), topic_id=b"x" * 16)]
        connection.send("Produce", version, request("Produce", version, **fields))
        broker.record(f"Produce v{version} acks=0 with an error", connection.receive())
        assert broker.steps[-1].answer == CLOSED


@scenario
def impossible_acks(broker: Exchange) -> None:
    """acks other than 0, 1 and -1 are INVALID_REQUIRED_ACKS for every partition."""
    name = broker.topic(partitions=2)
    for version in (3, 5, 8, 9, 11):
        for acks in (2, -2):
            produce(broker, version, to(name, (0, batch()), (1, batch())), acks=acks, note=f"acks {acks}")


@scenario
def unknown_partitions(broker: Exchange) -> None:
    """An unknown topic, id or partition has its error in its row; other rows are not affected."""
    name = broker.topic(**KEPT)
    topic_id = broker.topic_id(name)
    for version in versions("Produce"):
        none = to(broker.name("none"), (0, batch()), (1, batch()), topic_id=b"y" * 16)
        rows = to(name, (0, batch()), (1, batch()), (-1, batch()), topic_id=topic_id)
        produce(broker, version, none, rows)
    produce(broker, 13, to("", (0, batch()), topic_id=ZERO_UUID), note="zero id")


@scenario
def no_records(broker: Exchange) -> None:
    """Empty records are refused. (Kafka never answers null records: its handler has a NullPointerException.)"""
    for version in (3, 7, 8, 9, 12):
        name = broker.topic(f"of-{version}", **KEPT)
        try_batches(broker, name, {"empty": b""}, version)


@scenario
def broken_headers(broker: Exchange) -> None:
    """Invalid batch headers: each is refused with its error, and the log stays unchanged."""
    name = broker.topic(**KEPT)
    try_batches(
        broker,
        name,
        {
            "wrong checksum": patched(">I", 17, 1, right_checksum=False),
            "length too large": patched(">i", 8, 10_000, right_checksum=False),
            "length too small": patched(">i", 8, 60, right_checksum=False),
            "length negative": patched(">i", 8, -1, right_checksum=False),
            "length zero": patched(">i", 8, 0, right_checksum=False),
            "base offset 5": patched(">q", 0, 5),
            "base offset negative": patched(">q", 0, -1),
            "leader epoch 77": patched(">i", 12, 77),
            "count too small": patched(">i", 57, 2),
            "count too large": patched(">i", 57, 4),
            "count zero": patched(">i", 57, 0),
            "count negative": patched(">i", 57, -1),
            "last offset delta 1": patched(">i", 23, 1),
            "last offset delta 9": patched(">i", 23, 9),
            "last offset delta negative": patched(">i", 23, -1),
            "control": with_attributes(0x20),
            "timestamp type LogAppendTime": with_attributes(0x08),
            "delete horizon": with_attributes(0x40),
            "unused attribute": with_attributes(0x80),
            "cut off": batch()[:-3],
            "one byte more": batch() + b"\0",
            "header only": batch()[:61],
            "half a header": batch()[:30],
            "few bytes": batch()[:5],
        },
    )


@scenario
def old_and_new_magic(broker: Exchange) -> None:
    """From version 3 on only batches of magic 2 are accepted."""
    name = broker.topic(**KEPT)
    old = {f"magic {magic}": patched(">B", 16, magic, right_checksum=False) for magic in (0, 1, 3, 255)}
    try_batches(broker, name, old)


@scenario
def two_batches(broker: Exchange) -> None:
    """A request may have one batch for each partition."""
    name = broker.topic(**KEPT)
    try_batches(broker, name, {"two": batch() + batch(), "one and a half": batch() + batch()[:40]})


@scenario
def broken_compression(broker: Exchange) -> None:
    """Bytes that do not decompress are refused where the broker must look inside."""
    name = broker.topic(**KEPT)
    for codec in (1, 2, 3, 4):
        changed = batch(codec=codec)
        changed[61:] = b"\x5a" * (len(changed) - 61)
        produce(broker, 9, to(name, (0, checksummed(changed))), note=f"codec {codec}")


@scenario
def record_limits(broker: Exchange) -> None:
    """The topic's `max.message.bytes` applies to the batch as it is sent."""
    name = broker.topic(max_message_bytes="1000", **KEPT)
    for size in (900, 939, 940, 2000):
        produce(broker, 9, to(name, (0, batch([(None, b"x" * size)]))), note=f"value of {size}")
    produce(broker, 9, to(name, (0, batch([(None, b"x" * 5000)], codec=1))), note="fits when compressed")


@scenario
def timestamps(broker: Exchange) -> None:
    """Timestamps outside the topic's window are INVALID_TIMESTAMP, reported for each record."""
    window = {"message_timestamp_before_max_ms": "1000", "message_timestamp_after_max_ms": "1000"}
    narrow = broker.topic("narrow", **window, **KEPT)
    wide = broker.topic("wide", **KEPT)
    appended = broker.topic("appended", message_timestamp_type="LogAppendTime", **KEPT)
    for version in (3, 7, 8, 9):
        for name in (narrow, wide, appended):
            for note, stamp in (("old", T0), ("none", -1), ("negative", -2), ("far", 9_000_000_000_000)):
                produce(broker, version, to(name, (0, build_batch(RECORDS, timestamp_ms=stamp))), note=f"{name} {note}")


@scenario
def keyless_on_compacted(broker: Exchange) -> None:
    """A compacted topic refuses the batch and names the records without a key (KIP-467)."""
    name = broker.topic(cleanup_policy="compact")
    for version in (3, 7, 8, 9):
        produce(broker, version, to(name, (0, batch())))
        produce(broker, version, to(name, (0, batch([(b"k", b"v")]))), note="with key")


def new_producer(broker: Exchange) -> tuple[int, int]:
    """A new producer id and its epoch."""
    # The first producer id of a cluster waits until the broker has a block of ids.
    answer = broker.until(
        lambda: broker.quietly("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000),
        lambda answer: answer.error_code == 0,
    )
    return answer.producer_id, answer.producer_epoch


@scenario
def producer_ids(broker: Exchange) -> None:
    """Every request gets a new id with epoch 0; the ids that an idempotent producer sends are ignored."""
    new_producer(broker)
    for version in range(6):
        for _ in range(2):
            broker.ask("InitProducerId", version, transactional_id=None, transaction_timeout_ms=60_000)
    for producer_id, epoch in ((77, 3), (77, -1), (-1, 3)):
        fields = {"transactional_id": None, "producer_id": producer_id, "producer_epoch": epoch}
        broker.ask("InitProducerId", 4, note=f"{producer_id} {epoch}", transaction_timeout_ms=60_000, **fields)


@scenario
def sequences(broker: Exchange) -> None:
    """Batches of an idempotent producer must follow each other; a duplicate is answered with its first offset."""
    name = broker.topic(partitions=2, **KEPT)
    producer_id, _ = new_producer(broker)

    def send(note: str, sequence: int, epoch: int = 0, partition: int = 0, records: list | None = None) -> None:
        ids = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}
        produce(broker, 9, to(name, (partition, batch_of_now(records, **ids))), note=note)

    send("first", 0)
    send("second", 3)
    send("second again", 3)
    send("first again", 0)
    send("gap", 7)
    send("third", 6)
    for number in range(4):
        send(f"filler {number}", 9 + 3 * number)
    send("first, now out of the window of five", 0)
    send("older than the window", 3)
    send("the last five's oldest", 9)
    send("overlapping", 20)
    send("same start, shorter", 18, records=RECORDS[:1])
    send("no sequence", -1)
    send("other partition begins in the middle", 40, partition=1)
    send("next epoch not at 0", 5, epoch=1)
    send("next epoch at 0", 0, epoch=1)
    send("old epoch", 21)
    send("next epoch goes on", 3, epoch=1)


@scenario
def sequence_wraps(broker: Exchange) -> None:
    """The sequence after 2147483647 is 0, also within a batch."""
    name = broker.topic(**KEPT)
    producer_id, _ = new_producer(broker)
    for sequence in (2147483646, 1, 4):
        ids = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
        produce(broker, 9, to(name, (0, batch_of_now(**ids))), note=f"from {sequence}")


@scenario
def strange_producers(broker: Exchange) -> None:
    """A producer id that was never given out is accepted; an epoch or a sequence without an id is not."""
    name = broker.topic(**KEPT)
    for note, ids in (
        ("unknown id", {"producer_id": 987_654_321, "producer_epoch": 0, "base_sequence": 0}),
        ("no epoch", {"producer_id": 987_654_322, "producer_epoch": -1, "base_sequence": 0}),
        ("no sequence", {"producer_id": 987_654_323, "producer_epoch": 0, "base_sequence": -1}),
        ("negative id", {"producer_id": -2, "producer_epoch": 0, "base_sequence": 0}),
        ("sequence only", {"producer_id": -1, "producer_epoch": -1, "base_sequence": 7}),
    ):
        produce(broker, 9, to(name, (0, batch(**ids))), note=note)


@scenario
def same_partition_twice(broker: Exchange) -> None:
    """Two rows for one partition in one request."""
    name = broker.topic(**KEPT)
    produce(broker, 9, to(name, (0, batch())), note="first")
    produce(broker, 9, to(name), note="no rows")
    produce(broker, 9, note="no topics")


@scenario
def min_insync_replicas(broker: Exchange) -> None:
    """A `min.insync.replicas` above the number of replicas: no more replicas than exist are waited for."""
    name = broker.topic(min_insync_replicas="2", **KEPT)
    for version in (3, 9):
        for acks in (-1, 1):
            produce(broker, version, to(name, (0, batch())), acks=acks, note=f"acks {acks}")


@scenario
def least_in_sync_replicas(broker: Exchange) -> None:
    """`min.insync.replicas` never asks for more copies than a partition has: with one replica, acks=all is served."""
    name = broker.topic(min_insync_replicas="2", **KEPT)
    topic_id = broker.topic_id(name)
    for version in versions("Produce"):
        for acks in (1, -1):
            produce(broker, version, to(name, (0, batch()), topic_id=topic_id), acks=acks, note=f"acks {acks}")
