"""All suites, in the order of the report card, and the suites that no registry carries."""

from __future__ import annotations

from compat_tests.suites import confluent_kafka_go, franz_go, kafka_go, kafka_python, rskafka, rust_rdkafka
from compat_tests.suites.suite import LeftOut, Suite

SUITES: tuple[Suite, ...] = (
    kafka_python.SUITE,
    kafka_go.SUITE,
    rskafka.SUITE,
    rust_rdkafka.SUITE,
    confluent_kafka_go.SUITE,
    franz_go.SUITE,
)

LEFT_OUT: tuple[LeftOut, ...] = (
    LeftOut(
        "aiokafka 0.14.0",
        "its source distribution on PyPI holds no tests",
        "tests of ours with it: `compat_tests/test_aiokafka.py`",
    ),
    LeftOut(
        "confluent-kafka-python 2.16.1",
        "its source distribution on PyPI holds no tests",
        "tests of ours with it: `compat_tests/test_confluent_kafka.py`; librdkafka under rust-rdkafka and "
        "confluent-kafka-go",
    ),
    LeftOut(
        "kafkajs 2.2.4",
        "its npm package holds no tests that use a broker",
        "tests of ours with it: `compat_tests/test_kafkajs.py`",
    ),
    LeftOut(
        "confluent-kafka-javascript 1.10.1",
        "its npm package holds none of its own tests",
        "librdkafka under rust-rdkafka and confluent-kafka-go",
    ),
)


def suite_named(name: str) -> Suite:
    """The suite of that name; KeyError if there is none."""
    return {suite.name: suite for suite in SUITES}[name]
