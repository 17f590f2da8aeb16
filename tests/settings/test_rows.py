"""Values of settings are parsed, checked and printed as in Kafka."""

from __future__ import annotations

import pytest

from pykafkad.settings.rows import BROKER, ROWS, TOPIC, InvalidValue, Row, java_double


def _row(type_name: str, allowed: str = "any", default: str = "-") -> Row:
    return Row(BROKER, f"some.thing {type_name} {default} {allowed} start yes Help.")


@pytest.mark.parametrize(
    ("type_name", "text", "value"),
    [
        ("boolean", " TRUE ", True),
        ("boolean", "false", False),
        ("int", "+5", 5),
        ("int", "-2147483648", -(2**31)),
        ("long", "9223372036854775807", 2**63 - 1),
        ("short", " 7 ", 7),
        ("double", "1e-1", 0.1),
        ("double", "1.7976931348623157E308", 1.7976931348623157e308),
        ("string", "  a b ", "a b"),
        ("list", "a, b ,c", ("a", "b", "c")),
        ("list", "", ()),
        ("password", "s", "s"),
        ("class", "a.B", "a.B"),
    ],
)
def test_valid_texts_are_parsed(type_name: str, text: str, value: object) -> None:
    """Blanks around a value are ignored. A plus sign is allowed, as in Java."""
    assert _row(type_name).parse(text) == value


@pytest.mark.parametrize(
    ("type_name", "text", "words"),
    [
        ("boolean", "yes", "Expected value to be either true or false"),
        ("int", "2147483648", "Not a number of type INT"),
        ("int", "1_000", "Not a number of type INT"),
        ("int", "", "Not a number of type INT"),
        ("long", "9" * 5000, "Not a number of type LONG"),
        ("short", "40000", "Not a number of type SHORT"),
        ("double", "one", "Not a number of type DOUBLE"),
        ("double", "1_0", "Not a number of type DOUBLE"),
        ("list", "a,,b", "values must not be empty"),
    ],
)
def test_invalid_texts_are_refused(type_name: str, text: str, words: str) -> None:
    """The sentence is the one that Kafka's clients show."""
    with pytest.raises(InvalidValue, match=words):
        _row(type_name).parse(text)


@pytest.mark.parametrize(
    ("type_name", "allowed", "good", "bad", "words"),
    [
        ("int", "1..", "1", "0", "must be at least 1"),
        ("int", "1..9", "9", "10", "must be no more than 9"),
        ("int", "1..9|-1", "-1", "0", "between 1 and 9 or equal to -1"),
        ("double", "0..1", "0.5", "1.01", "must be no more than 1"),
        ("double", "0..1", "1", "2", "Invalid value 2.0 for"),
        ("int", "1..", "1", "-07", "Invalid value -7 for"),
        ("string", "a|b", "b", "B", "one of: a, b"),
        ("string", "i:a|b", "B", "c", "one of \\(case insensitive\\): a, b"),
        ("list", "a|b", "b,a", "a,c", "one of: a, b"),
        ("string", "non-empty", "x", " ", "must be non-empty"),
        ("list", "non-empty", "x", "", "must not be empty"),
        ("list", "replicas", "1:2,3:4", "1", "literal '\\*'"),
        ("list", "replicas", "*", "*,1:2", "literal '\\*'"),
        ("string", "reset", "by_duration:PT1H30M", "by_duration:1h", "by_duration"),
        ("string", "reset", "earliest", "", "by_duration"),
    ],
)
def test_each_form_of_the_allowed_column(type_name: str, allowed: str, good: str, bad: str, words: str) -> None:
    """A valid value is accepted. The error of an invalid one says what is allowed."""
    row = _row(type_name, allowed)
    row.parse(good)
    with pytest.raises(InvalidValue, match=words):
        row.parse(bad)


def test_marks_of_the_table() -> None:
    """Internal names, missing, empty and differing defaults, and inherited broker settings."""
    assert ROWS[TOPIC]["internal.segment.bytes"].internal
    assert _row("int").default is None
    assert _row("list", default='""').default == ""
    deviating = _row("int", default="1(3)")
    assert (deviating.default, deviating.kafka_default) == ("1", "3")
    required = _row("int", default="1(?)")
    assert (required.default, required.kafka_default) == ("1", None)
    assert ROWS[TOPIC]["retention.ms"].acts_live and ROWS[TOPIC]["retention.ms"].effect
    listeners = ROWS[BROKER]["listeners"]
    assert (listeners.applies, listeners.effect, listeners.acts_live) == ("broker", True, False)
    assert ROWS[TOPIC]["retention.ms"].broker_settings == (
        ("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000),
    )  # fmt: skip


def test_an_unknown_scope_is_a_key_error() -> None:
    """There are four scopes. An unknown one does not become a file name."""
    with pytest.raises(KeyError):
        ROWS["../broker"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1e7, "1.0E7"),
        (123456.5, "123456.5"),
        (12345678.0, "1.2345678E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (-2.5e-7, "-2.5E-7"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_printed_as_java_prints_them(value: float, text: str) -> None:
    """The expected texts are those of Java's Double.toString."""
    assert java_double(value) == text


@pytest.mark.parametrize(
    ("type_name", "text", "printed"),
    [
        ("boolean", "TRUE", "true"),
        ("int", " +07", "7"),
        ("double", "1e-1", "0.1"),
        ("list", "a , b", "a,b"),
        ("list", "", ""),
        ("string", " x ", "x"),
        ("double", "0.5f", "0.5"),
        ("double", "NaN", "NaN"),
        ("double", "-Infinity", "-Infinity"),
        ("double", "0x1.8p-1", "0.75"),
        ("double", "-0x1P+9999D", "-Infinity"),
    ],
)
def test_values_are_printed_as_parsed(type_name: str, text: str, printed: str) -> None:
    """DescribeConfigs answers the parsed value instead of the typed text."""
    assert _row(type_name).normalised(text) == printed
