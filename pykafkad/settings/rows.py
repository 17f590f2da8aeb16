"""Rows of the settings table: reads the text files, parses, checks and prints one value as Kafka does."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

BROKER = "broker"
TOPIC = "topic"
GROUP = "group"
CLIENT_METRICS = "client-metrics"
SCOPES = (BROKER, TOPIC, GROUP, CLIENT_METRICS)

OWN_PREFIX = "pykafkad."
"""The prefix of pykafkad's own settings, which Kafka does not have."""

ACT_AS = "pykafkad.act.as"
"""The setting that names another release of Kafka to act as (`release.py`)."""
SERVED_RELEASE = "4.3"

# Ranges of Java's integers by type name.
INTEGER_RANGES = {"int": (-(2**31), 2**31 - 1), "short": (-(2**15), 2**15 - 1), "long": (-(2**63), 2**63 - 1)}


_NUMBER_STARTS = frozenset(".0123456789")


class InvalidValue(ValueError):
    """A setting does not allow this text. `reason` says what is allowed; `str()` is Kafka's sentence for clients."""

    def __init__(self, name: str, text: str | None, reason: str, *, whole: bool = False) -> None:
        super().__init__(reason if whole else f"Invalid value {text} for configuration {name}: {reason}")
        self.name = name
        self.text = text
        self.reason = reason


class Row:
    """One setting.

    `default` is a text or None. `applies` is when Kafka lets it change: `start`, `cluster`, `broker` (see broker.txt)
    or `live`. `shown_type` is the type in answers, which may differ in another release. `effect` says whether this
    version reads it, `acts_live` whether a live change counts at once. `broker_settings` is a tuple of (broker setting,
    factor) from which a topic or group inherits, strongest first.
    """

    __slots__ = (
        "_typed_default",
        "acts_live",
        "allowed",
        "applies",
        "attribute",
        "broker_settings",
        "default",
        "effect",
        "help",
        "internal",
        "kafka_default",
        "name",
        "scope",
        "shown_type",
        "type",
    )  # fmt: skip

    def __init__(self, scope: str, line: str) -> None:
        inherits = scope in (TOPIC, GROUP)
        columns = line.split(None, 6 if scope != CLIENT_METRICS else 5)
        name, self.type, default, self.allowed = columns[:4]
        self.shown_type = self.type
        self.scope = scope
        self.internal = name[-1] == "!"
        self.name = name = name[:-1] if self.internal else name
        self.attribute = name.replace(".", "_")
        self.applies = columns[4] if scope == BROKER else "live"
        self.effect = columns[-2] != "no"
        self.acts_live = columns[-2] == "yes" and self.applies != "start"
        self.help = columns[-1]
        self.broker_settings = _broker_settings(columns[4]) if inherits and columns[4] != "-" else ()
        if default[-1] == ")":
            default, _, kafka_default = default[:-1].partition("(")
            self.kafka_default = _default(kafka_default)
            self.default = _default(default)
        else:
            self.default = self.kafka_default = _default(default)
        self._typed_default: Any = ...

    @property
    def is_choice(self) -> bool:
        """Whether the value is a set of choices, such as cleanup.policy: the order of the list has no meaning."""
        return "|" in self.allowed

    @property
    def sensitive(self) -> bool:
        """Whether answers and logs hide the value."""
        return self.type == "password"

    @property
    def documented(self) -> bool:
        """Whether the documentation lists the setting: all but Kafka's internal ones.

        DescribeConfigs hides pykafkad's own too.
        """
        return not self.internal or self.name.startswith(OWN_PREFIX)

    def change_default(self, text: str | None) -> None:
        """Take the default of another release; where ours is not Kafka's, ours stays."""
        if self.default == self.kafka_default:
            self.default = text
        self.kafka_default = text
        self._typed_default = ...

    def typed_default(self) -> Any:
        """The default as a typed value; None when there is none."""
        if self._typed_default is ...:
            # Every broker of a process asks for every default, and no value can be changed.
            self._typed_default = None if self.default is None else self.parse(self.default)
        return self._typed_default

    def parse(self, text: str) -> Any:
        """The typed value of `text`. Raises `InvalidValue`."""
        text = text.strip()
        value = _PARSERS[self.type](self, text)
        if self.allowed != "any" and value is not None:
            _check(self, text, value)
        if self.type == "list":
            return frozenset(value) if self.is_choice else tuple(value)
        return value

    def normalised(self, text: str) -> str:
        """`text` as Kafka prints its parsed value. DescribeConfigs answers this form."""
        text = text.strip()
        if self.type == "boolean":
            return text.lower()
        if self.type == "list":
            return ",".join(part.strip() for part in text.split(",")) if text else ""
        if self.type in INTEGER_RANGES:
            return str(int(text))
        return java_double(_parse_double(self, text)) if self.type == "double" else text


def _default(text: str) -> str | None:
    return None if text in ("-", "?") else "" if text == '""' else text


def _broker_settings(column: str) -> tuple[tuple[str, int], ...]:
    settings = []
    for item in column.split(","):
        name, _, factor = item.partition("*")
        settings.append((name, int(factor or 1)))
    return tuple(settings)


def java_double(value: float) -> str:
    """A double as Java prints it (0.5, 1.0E-5, 1.7976931348623157E308, NaN, -Infinity). Clients compare these texts."""
    if value - value != 0:
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        return text if "e" not in text else f"{value:f}".rstrip("0")
    digits, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits, _, exponent = f"{value:.17e}".partition("e")
        digits = repr(float(digits))
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"


def _parse_boolean(row: Row, text: str) -> bool:
    lowered = text.lower()
    if lowered == "true":
        return True
    if lowered == "false":
        return False
    raise InvalidValue(row.name, text, "Expected value to be either true or false")


def _parse_integer(row: Row, text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    # Java accepts the decimal digits of any script, as Python does.
    if digits.isdecimal():
        value = int(text) if len(digits) <= 20 else None
        least, most = INTEGER_RANGES[row.type]
        if value is not None and least <= value <= most:
            return value
    raise InvalidValue(row.name, text, f"Not a number of type {row.type.upper()}")


def _parse_double(row: Row, text: str) -> float:
    unsigned = text[1:] if text[:1] in ("-", "+") else text
    if unsigned not in ("NaN", "Infinity"):
        # Java's literals may end in a type letter. Python's words for NaN and infinity are not valid in Java.
        text = text[:-1] if unsigned[:1] in _NUMBER_STARTS and text[-1:] in ("d", "D", "f", "F") else text
        if not unsigned.isascii() or unsigned[:1] not in _NUMBER_STARTS or "_" in text:
            raise InvalidValue(row.name, text, "Not a number of type DOUBLE")
    try:
        if unsigned[:2] in ("0x", "0X") and "p" in text.lower():
            return float.fromhex(text)
        return float(text)
    except OverflowError:
        return float("-inf" if text[0] == "-" else "inf")
    except ValueError:
        raise InvalidValue(row.name, text, "Not a number of type DOUBLE") from None


def _parse_text(row: Row, text: str) -> str:
    return text


def _parse_list(row: Row, text: str) -> list[str]:
    if not text:
        return []
    items = [item.strip() for item in text.split(",")]
    if "" in items and row.allowed not in ("replicas", "blanks"):
        raise InvalidValue(row.name, text, f"Configuration '{row.name}' values must not be empty.", whole=True)
    return items


_PARSERS: dict[str, Callable[[Row, str], Any]] = {
    "boolean": _parse_boolean,
    "int": _parse_integer,
    "long": _parse_integer,
    "short": _parse_integer,
    "double": _parse_double,
    "string": _parse_text,
    "class": _parse_text,
    "password": _parse_text,
    "list": _parse_list,
}


def _check(row: Row, text: str, value: Any) -> None:
    """Checks a parsed value against the `allowed` column. Raises `InvalidValue`."""
    allowed = row.allowed
    if allowed == "non-empty":
        if not value:
            if row.type == "list":
                reason = f"Configuration '{row.name}' must not be empty. Valid values include: any non-empty value"
                raise InvalidValue(row.name, text, reason, whole=True)
            raise InvalidValue(row.name, text, "String must be non-empty")
    elif allowed == "blanks":
        return
    elif allowed == "replicas":
        _check_replicas(row, text, value)
    elif allowed == "reset":
        _check_reset(row, text)
    elif ".." in allowed:
        _check_range(row, text, value)
    else:
        _check_choice(row, allowed, [text] if row.type != "list" else value)


def _check_choice(row: Row, allowed: str, values: list[str]) -> None:
    any_case = allowed.startswith("i:")
    choices = (allowed[2:] if any_case else allowed).split("|")
    known = [choice.lower() for choice in choices] if any_case else choices
    for value in values:
        if (value.lower() if any_case else value) not in known:
            case = " (case insensitive)" if any_case else ""
            raise InvalidValue(row.name, value, f"String must be one of{case}: {', '.join(choices)}")


def _check_range(row: Row, text: str, value: float) -> None:
    bounds, _, exception = row.allowed.partition("|")
    least, _, most = bounds.partition("..")
    # Kafka's message shows the parsed number.
    text = str(value)
    if exception:
        if not (float(least) <= value <= float(most) or value == float(exception)):
            raise InvalidValue(row.name, text, f"Value must be between {least} and {most} or equal to {exception}")
    elif value < float(least):
        raise InvalidValue(row.name, text, f"Value must be at least {least}")
    elif most and value > float(most):
        raise InvalidValue(row.name, text, f"Value must be no more than {most}")


def _check_replicas(row: Row, text: str, value: list[str]) -> None:
    """Checks throttled replicas: `*`, or partition:broker pairs (KIP-73)."""
    for item in value:
        partition, _, broker = item.partition(":")
        if value != ["*"] and not (partition.isdigit() and broker.isdigit()):
            form = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
            reason = f"{row.name} must be the literal '*' or a list of replicas in the following format: {form}"
            raise InvalidValue(row.name, f"[{', '.join(value)}]", reason)


def _check_reset(row: Row, text: str) -> None:
    """Checks the start of a share group (KIP-932): earliest, latest, or a duration back from now."""
    if text in ("earliest", "latest"):
        return
    kind, _, duration = text.partition(":")
    if kind != "by_duration" or not _is_duration(duration):
        reason = (
            f"Invalid value `{text}` for configuration {row.name}. The value must be either 'earliest', 'latest' or "
            "of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        raise InvalidValue(row.name, text, reason)


def _is_duration(text: str) -> bool:
    from pykafkad.settings.durations import milliseconds

    try:
        milliseconds(text)
    except ValueError:
        return False
    return True


class _Rows(dict[str, dict[str, Row]]):
    """Maps each scope to {name: Row}. The text file of a scope is read on first use."""

    def __missing__(self, scope: str) -> dict[str, Row]:
        if scope not in SCOPES:
            raise KeyError(scope)
        path = f"{__file__.rpartition('/')[0]}/{scope.replace('-', '_')}.txt"
        rows = {}
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                if line[0] not in "#\n":
                    row = Row(scope, line.rstrip())
                    rows[row.name] = row
        self[scope] = rows
        return rows


ROWS = _Rows()


def own_defaults(rows: Mapping[str, Row]) -> dict[str, str]:
    """The defaults that are not Kafka's."""
    return {
        row.name: row.default for row in rows.values() if row.default is not None and row.default != row.kafka_default
    }


OWN_DEFAULTS = own_defaults(ROWS[BROKER])
BROKER_BY_ATTRIBUTE = {row.attribute: row for row in ROWS[BROKER].values()}
