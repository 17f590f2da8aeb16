"""What clients from before Kafka 0.11 write and read, beside brokers of the releases that still served them.

Messages of magic 0 and 1 are written and read with Produce 0 to 2 and Fetch 0 to 3."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.brokers.release_sides import Sides, running_sides
from compat_tests.scenarios.exchange import Exchange, part
from pykafkad.errors import name
from pykafkad.wire import message_sets
from pykafkad.wire.batch import build_batch
from pykafkad.wire.compression import CODECS, ZSTD
from pykafkad.wire.records import Record, iterate_records

# The others are compared with --whole-suites.
IN_EVERY_RUN = ("3.9",)
RELEASES = ("2.8", "3.4", "3.7", "3.9")
# An hour ago: what is older than a week is deleted.
NOW_MS = int(time.time() * 1000) - 3_600_000
RECORDS = [Record(index, NOW_MS + index, b"k%d" % index, b"v" * 50, []) for index in range(3)]


@pytest.fixture(scope="module", params=RELEASES)
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """The release's own broker and ours."""
    release = request.param
    if release not in IN_EVERY_RUN:
        request.getfixturevalue("whole_suites")
    with running_sides(release, tmp_path_factory.mktemp("both")) as sides:
        yield sides


def produce(broker: Exchange, topic: str, version: int, records: bytes) -> str:
    """Error, offset and time of an append."""
    data = part("Produce", "PartitionProduceData", index=0, records=records)
    row = part("Produce", "TopicProduceData", name=topic, partition_data=[data])
    answer = broker.quietly("Produce", version, acks=-1, timeout_ms=10_000, topic_data=[row])
    (found,) = answer.responses[0].partition_responses
    return f"{name(found.error_code)} {found.base_offset} {'time' if found.log_append_time_ms > 0 else '-'}"


def fetch(broker: Exchange, topic: str, version: int, offset: int = 0) -> tuple[str, bytes]:
    """Error with high watermark, and the records."""
    row = part("Fetch", "FetchPartition", partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    wanted = part("Fetch", "FetchTopic", topic=topic, partitions=[row])
    answer = broker.quietly("Fetch", version, replica_id=-1, max_wait_ms=0, min_bytes=1, topics=[wanted])
    (found,) = answer.responses[0].partitions
    return f"{name(found.error_code)} {found.high_watermark}", bytes(found.records or b"")


def read(broker: Exchange, topic: str, version: int, offset: int = 0) -> list[str]:
    """Every message from an offset on, however many requests that takes, and the error that ends it."""
    found: list[str] = []
    while True:
        error, records = fetch(broker, topic, version, offset)
        more = dict(_messages(records))
        if not more or max(more) < offset:
            return [*found, error]
        found += [text for at, text in more.items() if at >= offset]
        offset = max(more) + 1


def _messages(records: bytes) -> Iterator[tuple[int, str]]:
    """Offset and text of each message, with that of the message around it, or of each record of batches."""
    for position, size, magic in message_sets.sizes(records):
        if magic == 2:
            for record in iterate_records(memoryview(records)[position : position + size]):
                yield record.offset, f"2 {record.offset} {_time(record.timestamp_ms)} {record.key} {record.value}"
            continue
        outer = message_sets.message_at(records, position, size)
        for each in message_sets.opened(outer) if outer.codec else [outer]:
            assert outer.is_intact and each.is_intact
            text = f"{magic} {outer.offset} {outer.attributes} {_time(outer.timestamp_ms)}"
            yield (
                each.offset,
                f"{text}: {each.offset} {each.attributes} {_time(each.timestamp_ms)} {each.key} {each.value}",
            )


def _time(timestamp_ms: int) -> str:
    return "none" if timestamp_ms < 0 else str(timestamp_ms - NOW_MS) if timestamp_ms < NOW_MS + 1000 else "now"


def compared(both: Sides, round_of: Any) -> None:
    """The same lines on both sides."""
    found = []
    for each in both:
        exchange = Exchange(each.bootstrap, "old")
        try:
            found.append(list(round_of(exchange)))
        finally:
            exchange.close()
    theirs, ours = found
    assert [(left, right) for left, right in zip(theirs, ours, strict=True) if left != right] == []


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != ZSTD])
@pytest.mark.parametrize("magic", [0, 1])
def test_what_old_producers_write(both: Sides, magic: int, codec: int) -> None:
    """All versions of Fetch read it, from its middle too, and all of Produce take it."""

    def round_of(broker: Exchange) -> Iterator[object]:
        topic = broker.topic()
        for version in range(3):
            yield produce(broker, topic, version, message_sets.written(RECORDS, magic, codec, 0))
        for version, offset in itertools.product(range(5), (0, 1, 4)):
            yield version, offset, read(broker, topic, version, offset)

    compared(both, round_of)


@pytest.mark.parametrize("codec", CODECS)
def test_what_newer_producers_write(both: Sides, codec: int) -> None:
    """Batches are made messages, without headers; those with zstd cannot be."""

    def round_of(broker: Exchange) -> Iterator[object]:
        topic = broker.topic()
        rows = [(b"k", b"v", (("h", b"x"),), NOW_MS), (None, None, (), NOW_MS + 5)]
        for _ in range(2):
            batch = bytes(build_batch(rows, codec=codec))
            broker.produce(topic, 0, batch)
            yield produce(broker, topic, 2, batch)
        for version, offset in itertools.product((0, 1, 2, 3, 4, 9, 10), (0, 1)):
            yield version, offset, read(broker, topic, version, offset)

    compared(both, round_of)


@pytest.mark.parametrize(
    "settings",
    [
        {"message_timestamp_type": "LogAppendTime"},
        {"compression_type": "lz4"},
        {"compression_type": "uncompressed"},
        {"compression_type": "zstd"},
        {"cleanup_policy": "compact"},
        {"message_downconversion_enable": "false"},
        {"max_message_bytes": "150"},
    ],
    ids=str,
)
def test_settings_of_topics(both: Sides, settings: dict[str, str]) -> None:
    """Whatever the topic asks for is done with converted messages too."""

    def round_of(broker: Exchange) -> Iterator[object]:
        topic = broker.topic(**settings)
        for magic, codec in ((0, 0), (1, 0), (1, 1)):
            yield produce(broker, topic, 2, message_sets.written(RECORDS, magic, codec, 0))
        if "message_timestamp_type" in settings:
            # Before Kafka 3.6, topics with CreateTime refused this, too.
            yield produce(broker, topic, 2, message_sets.written(RECORDS, 1, 0, 0, NOW_MS))
        yield produce(broker, topic, 2, message_sets.written([RECORDS[0]._replace(key=None)], 1, 0, 0))
        for version in (0, 2, 4, 9, 10):
            yield version, read(broker, topic, version)

    compared(both, round_of)


def _bad_sets() -> dict[str, bytes]:
    plain = message_sets.written(RECORDS, 1, 0, 0)
    older = message_sets.written(RECORDS, 0, 0, 0)
    packed = message_sets.written(RECORDS, 1, 1, 0)
    batch = bytes(build_batch([(b"k", b"v")]))
    one = message_sets.written(RECORDS[:1], 1, 0, 0)
    twice = message_sets.written([RECORDS[0]._replace(value=None)], 1, 0, 0)
    return {
        "nothing": b"",
        "a part of a message": plain[:20],
        "a part behind messages": plain + plain[:20],
        "a wrong checksum": one[:-1] + bytes((one[-1] ^ 1,)),
        "two magics": plain + older,
        "two compressed": packed + packed,
        "a compressed one behind another": plain + packed,
        "a size that is too small": plain[:8] + struct.pack(">i", 3) + plain[12:],
        "an unknown magic": plain[:16] + b"\x07" + plain[17:],
        "two batches": batch + batch,
        "a batch behind messages": plain + batch,
        "a null value": twice,
        "zstd": _wrapped(RECORDS, 4),
        "no codec that there is": _wrapped(RECORDS, 6),
        "bytes that are not compressed": _wrapped(RECORDS, 1),
        "messages of another magic inside": _wrapped(RECORDS, 1, compress_as=0),
        "a compressed one inside": _wrapped_twice(),
    }


def _wrapped(records: list[Record], codec: int, compress_as: int | None = None) -> bytes:
    from pykafkad.wire.compression import compress

    content = message_sets.written(records, 1 if compress_as is None else compress_as, 0, 0)
    if compress_as is not None:
        content = compress(codec, content)
    return _message(codec, content)


def _wrapped_twice() -> bytes:
    from pykafkad.wire.compression import compress

    return _message(1, compress(1, message_sets.written(RECORDS, 1, 1, 0)))


def _message(attributes: int, value: bytes) -> bytes:
    from zlib import crc32

    body = bytes((1, attributes)) + struct.pack(">qii", NOW_MS, -1, len(value)) + value
    return struct.pack(">qiI", 2, len(body) + 4, crc32(body)) + body


@pytest.mark.parametrize("what", _bad_sets())
def test_what_is_refused(both: Sides, what: str) -> None:
    """With which error, and that nothing of it is appended."""

    def round_of(broker: Exchange) -> Iterator[object]:
        topic = broker.topic()
        for version in (0, 2):
            yield produce(broker, topic, version, _bad_sets()[what])
        yield read(broker, topic, 4)

    compared(both, round_of)
