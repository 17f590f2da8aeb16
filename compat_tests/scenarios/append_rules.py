"""How a topic's settings change a batch before it is stored: codecs and levels, the broker's own time, sizes."""

from __future__ import annotations

from compat_tests.scenarios.exchange import Exchange
from compat_tests.scenarios.fetch import fetch, from_topic, row
from compat_tests.scenarios.produce import KEPT, RECORDS, T0, batch, batch_of_now, new_producer, produce, to
from compat_tests.scenarios.registry import scenario
from pykafkad.wire.batch import build_batch

TYPES = ("uncompressed", "gzip", "snappy", "lz4", "zstd", "producer")
# Timestamps that fall and rise, so that the largest is neither the first nor the last.
UNEVEN = [(b"a", b"x" * 200, [("h", None)], T0 + 5), (b"b", None, (), T0 + 9), (b"c", b"", (), T0 - 3)]


def stored(broker: Exchange, name: str, note: str) -> None:
    """Record every stored batch."""
    fetch(broker, 12, from_topic(name, broker.topic_id(name), row(0, 0, max_bytes=1 << 20)), note=note)


@scenario
def recompression(broker: Exchange) -> None:
    """Every codec into every `compression.type`: records, headers and timestamps stay, the codec is the topic's."""
    for kind in TYPES:
        name = broker.topic(kind, compression_type=kind, **KEPT)
        for codec in range(5):
            produce(broker, 9, to(name, (0, build_batch(UNEVEN, codec=codec))), note=f"{codec} into {kind}")
        stored(broker, name, kind)


@scenario
def recompression_of_idempotent_batches(broker: Exchange) -> None:
    """Sequence numbers survive recompression, and a duplicate is still recognised."""
    name = broker.topic(compression_type="zstd", **KEPT)
    producer_id, _ = new_producer(broker)
    ids = {"producer_id": producer_id, "producer_epoch": 0}
    for sequence in (0, 3, 3, 9):
        produce(
            broker, 9, to(name, (0, batch_of_now(codec=1, base_sequence=sequence, **ids))), note=f"sequence {sequence}"
        )
    stored(broker, name, "stored")


@scenario
def compression_levels(broker: Exchange) -> None:
    """The lowest and the highest level of each codec (KIP-390)."""
    levels = {"gzip": ("1", "9", "-1"), "lz4": ("1", "17"), "zstd": ("-131072", "1", "22")}
    for kind, values in levels.items():
        for level in values:
            name = broker.topic(f"{kind}{level}", compression_type=kind, **{f"compression_{kind}_level": level}, **KEPT)
            produce(
                broker, 9, to(name, (0, build_batch([(b"k", b"abc" * 5000)], timestamp_ms=T0))), note=f"{kind} {level}"
            )
            stored(broker, name, f"{kind} {level}")


@scenario
def log_append_time(broker: Exchange) -> None:
    """Every record gets the broker's time, with and without a new codec; the answer carries that time."""
    for kind in ("producer", "gzip"):
        name = broker.topic(kind, message_timestamp_type="LogAppendTime", compression_type=kind, **KEPT)
        for codec in (0, 1, 2):
            produce(broker, 9, to(name, (0, build_batch(UNEVEN, codec=codec))), note=f"{codec} into {kind}")
        stored(broker, name, kind)


@scenario
def compacted_topic_with_the_brokers_time(broker: Exchange) -> None:
    """A missing key is refused whatever the codec, and the errors name the records."""
    name = broker.topic(cleanup_policy="compact", message_timestamp_type="LogAppendTime", compression_type="lz4")
    for codec in range(5):
        produce(broker, 9, to(name, (0, batch(codec=codec))), note=f"{codec} without a key")
        produce(
            broker,
            9,
            to(name, (0, build_batch([RECORDS[0], RECORDS[2]], timestamp_ms=T0, codec=codec))),
            note=f"{codec} with keys",
        )
    stored(broker, name, "stored")


@scenario
def sizes_after_recompression(broker: Exchange) -> None:
    """`max.message.bytes` applies to the batch as received and as stored; no batch is larger than a segment."""
    plain = broker.topic("plain", compression_type="uncompressed", max_message_bytes="2000", **KEPT)
    for size in (1000, 1900, 5000):
        produce(broker, 9, to(plain, (0, batch([(None, b"x" * size)], codec=1))), note=f"{size} opened")
    small = broker.topic("small", internal_segment_bytes="1000", **KEPT)
    for size in (800, 931, 932, 1500):
        produce(broker, 9, to(small, (0, batch([(None, b"x" * size)]))), note=f"{size} in a small segment")
    stored(broker, small, "small segments")


@scenario
def max_timestamps_that_lie(broker: Exchange) -> None:
    """Kafka reads the records of each batch and stores the largest timestamp that it finds there."""
    from compat_tests.scenarios.produce import checksummed

    for kind in ("producer", "gzip"):
        name = broker.topic(kind, compression_type=kind, cleanup_policy="compact")
        lying = build_batch(UNEVEN)
        lying[35:43] = (T0 + 60).to_bytes(8, "big")
        produce(broker, 9, to(name, (0, checksummed(lying))), note=kind)
        stored(broker, name, kind)
