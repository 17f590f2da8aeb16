"""Every setting of topics, brokers and groups with values inside and outside its bounds, and the errors.

The names come from DescribeConfigs, so that no setting is left out. All requests only validate and change nothing.
"""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.configs import BROKER, GROUP, TOPIC, changed, resource
from compat_tests.scenarios.exchange import Exchange
from compat_tests.scenarios.registry import scenario

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(1, 10)
NUMBERS = (
    *(
        "",
        " ",
        "x",
        "-2",
        "-1",
        "0",
        "1",
        "2",
        "3",
        "5",
        "9",
        "10",
        "17",
        "18",
        "22",
        "23",
        "99",
        "100",
        "101",
        "1000",
        "5000",
        "14",
        "1024",
        "15000",
    ),
    *(
        "60000",
        "1000000",
        "1048575",
        "1048576",
        "3600000",
        "2147483647",
        "2147483648",
        "-2147483648",
        "-2147483649",
        "9223372036854775807",
    ),
    *("9223372036854775808", "-9223372036854775808", "1.5", "1e3", "0x10", "+7", " 7 ", "1_000", "07", "١"),
)
VALUES: dict[int, tuple[str, ...]] = {
    BOOLEAN: ("true", "false", "TRUE", " true ", "yes", "1", ""),
    INT: NUMBERS,
    SHORT: (*NUMBERS, "32767", "32768"),
    LONG: NUMBERS,
    DOUBLE: (*NUMBERS, "0.5", "1.0", "1.1", "-0.1", "NaN", "Infinity", "0.5f", "0x1p-1", "0x1p9999", "0x1", "0x1f"),
    STRING: ("", " ", "x", "producer", "gzip", "GZIP", "none", "CreateTime", "latest", "by_duration:P1D",
             "by_duration:PT1H", "by_duration:-P1D", "by_duration:1h",
             "by_duration:P1Y", "earliest", "read_committed", "READ_COMMITTED", "bidirectional", "DISABLED"),
    LIST: ("", " ", "x", "a,b", "a,,b", "a,a", "delete", "compact", "compact,delete", "delete,delete", "delete,x",
           "1:1", "1:1,2:1", "*", "1", "*,1:1"),
    CLASS: ("", "x"),
    PASSWORD: ("", "x"),
}  # fmt: skip


def alter(broker: Exchange, kind: int, name: str, *entry: Any) -> str:
    """The error code of one validated change."""
    resources = [changed("IncrementalAlterConfigs", kind, name, entry)]
    answer = broker.quietly("IncrementalAlterConfigs", 1, resources=resources, validate_only=True)
    return str(answer.responses[0].error_code)


def settings_of(broker: Exchange, kind: int, name: str) -> list[Any]:
    """All settings of a resource, by name."""
    answer = broker.quietly("DescribeConfigs", 4, resources=[resource(kind, name)])
    return sorted(answer.results[0].configs, key=lambda entry: entry.name)


def tried(broker: Exchange, kind: int, name: str, entry: Any, values: tuple[str, ...] | None = None) -> None:
    """Record the values of a setting's type (None: all values) on one resource as `value: error code`."""
    label = f"{entry.name} of {name.replace(broker.prefix, '')!r}"
    if entry.read_only:
        broker.record(label, alter(broker, kind, name, entry.name, SET, "1"))
        return
    codes = [
        f"{value!r}: {alter(broker, kind, name, entry.name, SET, value)}"
        for value in values or VALUES[entry.config_type]
    ]
    operations = ((DELETE, None), (APPEND, "x"), (SUBTRACT, "x"))
    # The machine's own listeners are not a default from which values can be subtracted.
    operations = operations[:1] if entry.name == "listeners" else operations
    codes += [
        f"{operation}: {alter(broker, kind, name, entry.name, operation, value)}" for operation, value in operations
    ]
    broker.record(label, "\n".join(codes))


@scenario
def of_a_topic(broker: Exchange) -> None:
    """Ranges, choices and forms of every topic setting."""
    name = broker.topic()
    for entry in settings_of(broker, TOPIC, name):
        tried(broker, TOPIC, name, entry)


@scenario
def of_a_group(broker: Exchange) -> None:
    """A group's settings have bounds that the broker sets, and are checked against each other."""
    name = broker.name("group")
    for entry in settings_of(broker, GROUP, name):
        tried(broker, GROUP, name, entry)


@scenario
def of_the_broker(broker: Exchange) -> None:
    """Which settings can change on a running broker, for one broker or for all, and to which values."""
    for entry in settings_of(broker, BROKER, "1"):
        tried(broker, BROKER, "1", entry)
        tried(broker, BROKER, "", entry, ("1", "x", "0"))
