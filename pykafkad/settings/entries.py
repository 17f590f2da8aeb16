"""The answers of DescribeConfigs: every setting of a resource with its value, its source and its synonyms.

Order and content are Kafka 4.3.1's. A value set live for this broker overrides one set live for all brokers, then one
from `server.properties`, then the default. Of several units of one quantity the first that is set counts (KIP-226).
"""

from __future__ import annotations

from pykafkad.config import BROKER, CLIENT_METRICS, GROUP, LISTENER_PREFIX, SYNONYM_GROUPS, TOPIC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.config import Row, Settings

# Sources of a value, with the numbers of DescribeConfigs.
TOPIC_CONFIG = 1
DYNAMIC_BROKER_CONFIG = 2
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5
DYNAMIC_BROKER_LOGGER_CONFIG = 6
CLIENT_METRICS_CONFIG = 7
GROUP_CONFIG = 8

TYPE_IDS = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}
UNKNOWN_TYPE_ID = 0

_OWN_SOURCE = {TOPIC: TOPIC_CONFIG, GROUP: GROUP_CONFIG, CLIENT_METRICS: CLIENT_METRICS_CONFIG}


class Entry:
    """One setting of an answer. `synonyms` is a list of (name, text or None, source), strongest first."""

    __slots__ = ("help", "name", "read_only", "sensitive", "source", "synonyms", "type_id", "value")

    def __init__(
        self,
        name: str,
        value: str | None,
        synonyms: list[tuple[str, str | None, int]],
        row: Row | None,
        read_only: bool,
    ) -> None:
        self.name = name
        self.value = value
        self.synonyms = synonyms
        self.source = synonyms[0][2] if synonyms else DEFAULT_CONFIG
        self.read_only = read_only
        self.sensitive = row is None or row.sensitive
        self.type_id = UNKNOWN_TYPE_ID if row is None else TYPE_IDS[row.shown_type]
        self.help = None if row is None else row.help


def describe_broker(settings: Settings) -> list[Entry]:
    """Every setting of this broker. Unknown names that were set are included, without their values."""
    rows = settings.rows[BROKER]
    entries = []
    for row in rows.values():
        was_set = (
            row.name in settings.static or row.name in settings.dynamic_broker or row.name in settings.dynamic_default
        )
        if (row.internal or _has_no_default(row)) and not was_set:
            continue
        entries.append(
            Entry(
                row.name, _broker_value(settings, row), broker_synonyms(settings, row.name), row, row.applies == "start"
            )
        )
    for name in {**settings.static, **settings.dynamic_default, **settings.dynamic_broker}:
        if name not in rows:
            entries.append(Entry(name, None, broker_synonyms(settings, name), None, True))
    return entries


def describe_broker_defaults(settings: Settings) -> list[Entry]:
    """The settings that are set live for all brokers: the resource with the empty name."""
    entries = []
    for name, text in settings.dynamic_default.items():
        row = settings.rows[BROKER].get(name)
        shown = None if row is None or row.sensitive else text
        read_only = row is None or row.applies == "start"
        entries.append(Entry(name, shown, [(name, shown, DYNAMIC_DEFAULT_BROKER_CONFIG)], row, read_only))
    return entries


def describe_topic(settings: Settings, overrides: Mapping[str, str]) -> list[Entry]:
    """Every setting of a topic that has `overrides`."""
    return _describe(TOPIC, settings, overrides)


def describe_created_topic(settings: Settings, overrides: Mapping[str, str]) -> list[Entry]:
    """The settings of a topic as CreateTopics answers them, sorted by name.

    Each value is as it was typed, only converted to the topic's unit.
    """
    entries = sorted(describe_topic(settings, overrides), key=lambda entry: entry.name)
    for entry in entries:
        row = settings.rows[TOPIC][entry.name]
        if entry.name in overrides:
            entry.value = overrides[entry.name]
        else:
            entry.value, entry.source = _typed_for_broker(settings, row) or (entry.value, DEFAULT_CONFIG)
    return entries


def _typed_for_broker(settings: Settings, row: Row) -> tuple[str, int] | None:
    """The value of the broker's settings for a topic's `row`, and its source; None when they have none."""
    for layer, source in _layers(settings):
        for name, factor in row.broker_settings:
            if name in layer:
                return layer[name] if factor == 1 else str(int(layer[name].strip() or 0) * factor), source
    return None


def describe_group(settings: Settings, overrides: Mapping[str, str]) -> list[Entry]:
    """Every setting of a group (KIP-848 and later protocols) that has `overrides`."""
    return _describe(GROUP, settings, overrides)


def describe_client_metrics(settings: Settings, overrides: Mapping[str, str]) -> list[Entry]:
    """Every setting of a client-metrics subscription (KIP-714); before Kafka 4.1 those that are set, and no more."""
    if settings.release is not None and "DescribeConfigs.set_client_metrics_only" in settings.release.answers:
        return [_as_set(name, text) for name, text in overrides.items()]
    return _describe(CLIENT_METRICS, settings, overrides)


def _as_set(name: str, text: str) -> Entry:
    entry = Entry(name, text, [], None, False)
    entry.source, entry.sensitive, entry.help = CLIENT_METRICS_CONFIG, False, ""
    return entry


def _describe(scope: str, settings: Settings, overrides: Mapping[str, str]) -> list[Entry]:
    entries = []
    for row in settings.rows[scope].values():
        text = overrides.get(row.name)
        if row.internal and text is None:
            continue
        synonyms = []
        is_older = settings.release is not None and settings.release.is_older
        if scope == GROUP and is_older:
            # Before Kafka 4.3 a group's settings do not say which settings of the broker stand behind them.
            if text is None:
                synonyms = [(row.name, _inherited_text(settings, row), DEFAULT_CONFIG)]
        elif scope == GROUP and not row.broker_settings:
            synonyms = [(row.name, _inherited_text(settings, row), DEFAULT_CONFIG)]
        elif row.broker_settings:
            synonyms = broker_synonyms(settings, row.broker_settings[0][0])
        if text is None:
            value = _inherited_text(settings, row)
        else:
            value = row.normalised(text)
            synonyms.insert(0, (row.name, value, _OWN_SOURCE[scope]))
        entries.append(Entry(row.name, value, synonyms, row, False))
    return entries


def _inherited_text(settings: Settings, row: Row) -> str | None:
    for name, factor in row.broker_settings:
        text = _broker_value(settings, settings.rows[BROKER][name])
        if text is not None:
            return text if factor == 1 else str(-1 if int(text) < 0 else int(text) * factor)
    return row.default


def _broker_value(settings: Settings, row: Row) -> str | None:
    """The effective value as Kafka prints it; None for secrets and for settings without a value."""
    if row.sensitive:
        return None
    for layer in (settings.dynamic_broker, settings.dynamic_default):
        if row.name in layer:
            return row.normalised(layer[row.name])
    # A live value in a smaller unit hides a static one in a larger unit: the value of the larger is then its default.
    names = _synonym_names(row.name)
    stronger = names[: names.index(row.name)]
    if row.name in settings.static and not any(
        name in settings.dynamic_broker or name in settings.dynamic_default for name in stronger
    ):
        return row.normalised(settings.static[row.name])
    return row.kafka_default


def broker_synonyms(settings: Settings, name: str) -> list[tuple[str, str | None, int]]:
    """All values of a broker setting with their sources, strongest first.

    No value that is weaker than the name's own stands before it.
    """
    names = _synonym_names(name)
    found = []
    for layer, source in _layers(settings):
        found += [(each, _shown(settings, each, layer[each]), source) for each in names if each in layer]
    for each in names:
        row = settings.rows[BROKER].get(each)
        if row is not None and row.kafka_default is not None and not _has_no_default(row):
            found.append((each, _shown(settings, each, row.kafka_default), DEFAULT_CONFIG))
    own = next((index for index, (each, _, _) in enumerate(found) if each == name), len(found))
    return found[own:]


def _layers(settings: Settings) -> tuple[tuple[Mapping[str, str], int], ...]:
    return (
        (settings.dynamic_broker, DYNAMIC_BROKER_CONFIG),
        (settings.dynamic_default, DYNAMIC_DEFAULT_BROKER_CONFIG),
        (settings.static, STATIC_BROKER_CONFIG),
    )


def _has_no_default(row: Row) -> bool:
    """Whether Kafka shows this setting only while it is set live, without a default: the throttles of replication."""
    ends = (".throttled.rate", "io.max.bytes.per.second")
    return row.applies == "cluster" and row.name.endswith(ends) and row.name != "log.cleaner.io.max.bytes.per.second"


def _synonym_names(name: str) -> tuple[str, ...]:
    if name.startswith(LISTENER_PREFIX):
        return (name, name.split(".", 3)[-1])
    # The flush interval falls back to the scheduler's interval, but not the other way round.
    if name == "log.flush.scheduler.interval.ms":
        return (name,)
    return next((group for group in SYNONYM_GROUPS if name in group), (name,))


def _shown(settings: Settings, name: str, text: str) -> str | None:
    row = settings.rows[BROKER].get(name)
    return None if row is None or row.sensitive else text
