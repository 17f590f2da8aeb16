"""The table of error codes equals kafka-python's."""

from __future__ import annotations

import pytest

from pykafkad import errors


def test_codes_are_dense_and_named() -> None:
    """Kafka 4.3.1 has the codes -1 to 133 without gaps, and Kafka 4.4.0 up to 136."""
    codes = errors.codes()
    assert sorted(codes) == list(range(-1, 137))
    assert len(set(codes.values())) == len(codes)
    assert errors.name(3) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert errors.name(9999) == "ERROR_9999"
    assert errors.message(3) == "Unknown topic or partition."


# Names that kafka-python writes differently from Kafka's Errors.java.
OTHER_NAMES = {
    -1: "UNKNOWN",
    0: "NO_ERROR",
    6: "NOT_LEADER_FOR_PARTITION",
    10: "MESSAGE_SIZE_TOO_LARGE",
    17: "INVALID_TOPIC",
    39: "INVALID_REPLICATION_ASSIGNMENT",
}


def test_names_and_codes_equal_kafka_pythons() -> None:
    """Every code that kafka-python knows has the same name here."""
    kafka_errors = pytest.importorskip("kafka.errors")
    known = {
        cls.errno: cls.message
        for cls in vars(kafka_errors).values()
        if isinstance(cls, type)
        and issubclass(cls, kafka_errors.BrokerResponseError)
        and isinstance(getattr(cls, "errno", None), int)
    }
    assert len(known) > 80
    different = {
        code: (name, errors.name(code))
        for code, name in known.items()
        if name != errors.name(code) and OTHER_NAMES.get(code) != name
    }
    assert different == {}


def test_the_text_of_a_kafka_error_has_the_codes_name() -> None:
    """A traceback shows the code's name."""
    error = errors.KafkaError(errors.INVALID_CONFIG, "no such")
    assert str(error) == "INVALID_CONFIG: no such"
    assert (error.code, error.text, error.record_errors) == (40, "no such", [])
    assert str(errors.StorageFailure("write", "/x", "full")) == "write /x: full"
