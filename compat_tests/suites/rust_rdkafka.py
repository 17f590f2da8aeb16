"""rust-rdkafka's integration tests, from its crate, which compiles librdkafka."""

from __future__ import annotations

from pathlib import Path

from compat_tests.setup.kafka_jars import KAFKA_VERSION
from compat_tests.suites import rust
from compat_tests.suites.packages import built, from_crates_io
from compat_tests.suites.suite import Outcomes, Place, Suite

VERSION = "0.39.0"
FETCH = from_crates_io("rdkafka", VERSION, "d7956f9ac12b5712e50372d9749a3102f4810a8d42481c5eae3748d36d585bcf")


def build(source: Path) -> None:
    """Without what only the crate's examples use."""
    rust.build(source, unused=["async-std", "chrono", "clap", "hdrhistogram", "smol"])


def run(place: Place) -> Outcomes:
    """All tests."""
    environment = {"KAFKA_HOST": place.bootstrap, "KAFKA_VERSION": KAFKA_VERSION, "RUST_LOG": "off"}
    return rust.run(place, environment, threads=4)


SUITE = Suite(
    name="rust-rdkafka",
    version=VERSION,
    registry="crates.io",
    client="Rust on librdkafka",
    prepare=lambda: built(f"rdkafka-{VERSION}", FETCH, build),
    run=run,
    settings={"num.partitions": "3", "node.id": "0"},
    unsteady={
        "test_low_producers::test_base_producer_timeout": "expects that a new topic takes longer than 100 ms (5 of 30 "
        "fail on Kafka)",
        "test_low_consumers::test_produce_consume_message_queue_nonempty_callback": "takes a late thread of "
        "librdkafka's for a message",
    },
)
