"""The settings table: every broker, topic, group and client-metrics setting of Apache Kafka 4.3.1, one row each.

The rows are in the text files of `pykafkad/settings/`: name, type, default, allowed values, when a change applies,
whether this version acts on the setting, one line of help. Everything reads them: `Settings` and `TopicSettings`
(typed and slotted, with underscores in place of dots), the checks of CreateTopics and AlterConfigs (`validate*`),
DescribeConfigs (`settings/entries.py`), `pykafkad describe-config` and docs/settings.md.

Start reading at `Settings.from_properties` and `topic_settings`. `settings/sources.py` reads the sources of values,
strongest first: command line, `--set`, environment (`PYKAFKAD_NUM_PARTITIONS`), `server.properties`, default.
`Settings.set_dynamic` lays values that AlterConfigs changed live over these.
"""

from __future__ import annotations

from pykafkad.errors import INVALID_CONFIG, INVALID_REQUEST, ConfigError, KafkaError
from pykafkad.settings import authorizer_settings, notices, per_listener
from pykafkad.settings.rows import (
    ACT_AS,
    BROKER,
    BROKER_BY_ATTRIBUTE,
    CLIENT_METRICS,
    GROUP,
    OWN_DEFAULTS,
    ROWS,
    SCOPES,
    SERVED_RELEASE,
    TOPIC,
    InvalidValue,
    Row,
    own_defaults,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from pykafkad.settings.attributes import BrokerAttributes, TopicAttributes
    from pykafkad.settings.release import Release

__all__ = [
    "BROKER",
    "CLIENT_METRICS",
    "GROUP",
    "LISTENER_PREFIX",
    "ROWS",
    "SCOPES",
    "SYNONYM_GROUPS",
    "TOPIC",
    "InvalidValue",
    "Row",
    "Settings",
    "TopicSettings",
    "topic_settings",
    "validate",
    "validate_broker_changes",
    "validate_overrides",
]  # fmt: skip

# A setting may be given for one listener only, as listener.name.<listener>.<setting>.
LISTENER_PREFIX = per_listener.PREFIX

RACK_AWARE_SELECTOR = notices.RACK_AWARE_SELECTOR
"""The value of `replica.selector.class` that sends consumers to a replica in their rack (KIP-392)."""

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

# One quantity in several units: the first that is set counts.
SYNONYM_GROUPS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
)

# Pairs of broker settings of which the first must not exceed the second.
ORDERED_PAIRS = (
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
)


def _attributes(name: str, scope: str) -> type:
    """A class with one slot for each row of a scope."""
    return type(name, (), {"__slots__": tuple(row.attribute for row in ROWS[scope].values())})


# A type checker reads these two classes from `settings/attributes.pyi`, which is written from the same rows.
if not TYPE_CHECKING:
    BrokerAttributes = _attributes("BrokerAttributes", BROKER)
    TopicAttributes = _attributes("TopicAttributes", TOPIC)


class Settings(BrokerAttributes):
    """The broker's settings, typed: `settings.num_partitions`, `settings.log_dirs` …; None where Kafka has no value.

    `release` is the release of Kafka that is acted as (None: 4.3.1), `rows` are its settings.
    `static` holds the texts that were set at start, by name. `dynamic_default` and `dynamic_broker` hold the texts that
    were set live for all brokers and for this broker. `warnings` are sentences for the log about unknown names and
    settings that clients would notice and that have no effect here; `without_effect` are the names of other settings
    without effect. `described` caches DescribeConfigs entries; every change of the settings empties it.
    """

    __slots__ = (
        "_topic_defaults",
        "described",
        "dynamic_broker",
        "dynamic_default",
        "release",
        "rows",
        "static",
        "warnings",
        "without_effect",
    )

    def __init__(self, static: Mapping[str, str], parsed: Mapping[str, Any] | None = None) -> None:
        """`parsed` are values of `static` that have been read already, by the rows of the release."""
        self.release: Release | None = None
        self.rows: Mapping[str, dict[str, Row]] = ROWS
        name = static.get(ACT_AS, SERVED_RELEASE)
        if name != SERVED_RELEASE:
            from pykafkad.settings import release

            self.release = release.of(name)
            self.rows = self.release.rows
        rows = self.rows[BROKER]
        # A default that differs from Kafka's counts as set at start. DescribeConfigs then shows both values, as it does
        # for Kafka's sample server.properties, which sets the same ones.
        self.static = dict(OWN_DEFAULTS) if self.release is None else own_defaults(rows)
        self.static.update(static)
        # Kafka gives broker.id, the older name of node.id, the same value.
        self.static.setdefault("broker.id", self.static["node.id"])
        if "log.dirs" in static and "log.dir" not in static:
            del self.static["log.dir"]
        self.dynamic_default: dict[str, str] = {}
        self.dynamic_broker: dict[str, str] = {}
        self.warnings: list[str] = []
        self.without_effect: list[str] = []
        self.described: dict[tuple[object, ...], Any] = {}
        self._topic_defaults: TopicSettings | None = None
        # What another release does not have keeps its default, and what only it has is shown and not read.
        for name, text in self.static.items():
            if name in rows and name in ROWS[BROKER] and text is not rows[name].default:
                row = rows[name]
                setattr(self, row.attribute, row.parse(text) if parsed is None or name not in parsed else parsed[name])

    if not TYPE_CHECKING:

        def __getattr__(self, attribute):
            """A setting that has its default, at the first time that it is read: a broker reads few of them."""
            row = BROKER_BY_ATTRIBUTE.get(attribute)
            if row is None:
                raise AttributeError(f"there is no setting {attribute!r}", name=attribute, obj=self)
            value = self.rows[BROKER].get(row.name, row).typed_default()
            setattr(self, attribute, value)
            return value

    @classmethod
    def from_properties(cls, properties: Mapping[str, tuple[str, str]]) -> Settings:
        """Settings from `{name: (text, origin)}`. `origin` is the place of the text, such as `server.properties:12`.

        Raises `ConfigError` naming origin, setting and what is allowed. Unknown names, also those that the release
        does not have, and settings that this version does not act on become sentences in `warnings`.
        """
        properties = _with_node_id(properties)
        rows = ROWS[BROKER]
        acts_as = properties.get(ACT_AS, (SERVED_RELEASE, ""))[0]
        if acts_as != SERVED_RELEASE and acts_as in rows[ACT_AS].allowed.split("|"):
            from pykafkad.settings import release

            rows = release.of(acts_as).rows[BROKER]
        parsed = {}
        for name, (text, origin) in properties.items():
            row = rows.get(name)
            try:
                if row is not None:
                    parsed[name] = row.parse(text)
            except InvalidValue as error:
                raise ConfigError(f"{origin}: {name}: {error}") from None
        settings = cls({name: text for name, (text, _) in properties.items()}, parsed)
        _check_combinations(settings, properties)
        settings.warnings, settings.without_effect = notices.of(properties, acts_as, rows)
        return settings

    @property
    def log_directories(self) -> tuple[str, ...]:
        """The directories of the logs: `log.dirs`, else `log.dir`."""
        return self.log_dirs or self.log_dir

    def set_dynamic(self, defaults: Mapping[str, str], broker: Mapping[str, str]) -> None:
        """Lays the live values over the static ones, in place, so that every holder of these settings sees them.

        `defaults` are the cluster-wide values, `broker` those of this broker. An invalid text is skipped: it was
        checked when it was set, and a broker that has it in its metadata log must still start.
        """
        touched = {**self.dynamic_default, **self.dynamic_broker, **defaults, **broker}
        if not touched:
            return
        self.dynamic_default = dict(defaults)
        self.dynamic_broker = dict(broker)
        self.described = {}
        self._topic_defaults = None
        for name in touched:
            row = self.rows[BROKER].get(name)
            if row is None or name not in ROWS[BROKER]:
                continue
            for layer in (self.dynamic_broker, self.dynamic_default, self.static):
                text = layer.get(name)
                if text is not None:
                    try:
                        setattr(self, row.attribute, row.parse(text))
                        break
                    except InvalidValue:
                        continue
            else:
                setattr(self, row.attribute, row.typed_default())


class TopicSettings(TopicAttributes):
    """One topic's settings, typed: `retention_ms`, `segment_bytes`, `cleanup_policy` (a frozenset) …

    `segment_bytes` includes Kafka's internal override for tests, `internal.segment.bytes`.
    """

    __slots__ = ()

    @property
    def compacted(self) -> bool:
        """Whether the log keeps the last value of every key."""
        return "compact" in self.cleanup_policy

    @property
    def deleted(self) -> bool:
        """Whether segments past retention are deleted."""
        return "delete" in self.cleanup_policy


def topic_settings(settings: Settings, overrides: Mapping[str, str]) -> TopicSettings:
    """A topic's settings: its own `overrides` (texts), else the broker's by Kafka's synonyms, else the defaults.

    Without overrides the result is the same object until the broker's settings change. Unknown and invalid overrides
    are skipped: `validate_overrides` checked them when they were set, and a topic that has them must still open.
    """
    if settings._topic_defaults is None:
        settings._topic_defaults = _topic_defaults(settings)
    defaults = settings._topic_defaults
    if not overrides:
        return defaults
    values = TopicSettings()
    rows = ROWS[TOPIC]
    for row in rows.values():
        value = getattr(defaults, row.attribute)
        text = overrides.get(row.name)
        if text is not None:
            try:
                value = row.parse(text)
            except InvalidValue:
                pass
        setattr(values, row.attribute, value)
    if values.internal_segment_bytes is not None:
        values.segment_bytes = values.internal_segment_bytes
    return values


def _topic_defaults(settings: Settings) -> TopicSettings:
    values = TopicSettings()
    for name, row in ROWS[TOPIC].items():
        setattr(values, row.attribute, inherited(settings, settings.rows[TOPIC].get(name, row)))
    return values


def inherited(settings: Settings, row: Row) -> Any:
    """The value that a topic or group without its own value for `row` inherits.

    It is the first broker setting that has a value, times its factor. A negative time means "without limit" and is -1
    in every unit, as in Kafka.
    """
    for name, factor in row.broker_settings:
        value = getattr(settings, name.replace(".", "_"))
        if value is not None:
            return value if factor == 1 else -1 if value < 0 else value * factor
    return row.typed_default()


def _with_node_id(properties: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Gives `node.id` and `broker.id` the same value, as Kafka does. Raises `ConfigError` when they differ."""
    properties = dict(properties)
    node, broker = properties.get("node.id"), properties.get("broker.id")
    if node and broker and node[0].strip() != broker[0].strip():
        raise ConfigError(
            f"{node[1]}: node.id={node[0]} must equal broker.id={broker[0]} ({broker[1]}); or remove broker.id"
        )
    given = node or broker
    if given:
        properties["node.id"] = properties["broker.id"] = given
    return properties


def _check_combinations(settings: Settings, properties: Mapping[str, tuple[str, str]]) -> None:
    """Checks values that are valid alone but not together. Raises `ConfigError` naming one of them and its origin."""

    def fail(name: str, text: str) -> None:
        origin = properties[name][1] if name in properties else "default"
        raise ConfigError(f"{origin}: {name}: {text}")

    named = settings.controller_quorum_voters or settings.controller_quorum_bootstrap_servers
    if "controller" not in settings.process_roles and not named:
        fail(
            "process.roles",
            "a broker alone needs to know where the controllers are: name them with "
            "controller.quorum.bootstrap.servers or controller.quorum.voters, or use broker,controller",
        )
    if settings.authorizer_class_name not in ("", STANDARD_AUTHORIZER):
        fail(
            "authorizer.class.name",
            f"{settings.authorizer_class_name} cannot run here: remove it or name {STANDARD_AUTHORIZER}",
        )
    problem = authorizer_settings.super_users_problem(settings.static)
    if settings.authorizer_class_name and problem is not None:
        fail(authorizer_settings.SUPER_USERS, problem)
    if len(set(settings.log_directories)) != len(settings.log_directories):
        fail("log.dirs", "names a directory twice")
    problem = cordoned_problem(settings.cordoned_log_dirs, settings.log_directories)
    if problem is not None:
        fail("cordoned.log.dirs", problem)
    for smaller, larger in ORDERED_PAIRS:
        if getattr(settings, smaller.replace(".", "_")) > getattr(settings, larger.replace(".", "_")) and (
            smaller in properties or larger in properties
        ):
            fail(smaller if smaller in properties else larger, f"{smaller} must not be above {larger}")
    from pykafkad.settings import cross_checks

    for name, sentence in cross_checks.problems(cross_checks.Candidate(settings, {})):
        fail(name, sentence)


def cordoned_problem(cordoned: Sequence[str], directories: Sequence[str]) -> str | None:
    """The reason why these entries of `cordoned.log.dirs` are invalid; None when they are valid."""
    if "*" in cordoned:
        return "* means all directories and must be the only entry" if len(cordoned) > 1 else None
    unknown = [each for each in cordoned if each not in directories]
    return f"{', '.join(unknown)}: not in log.dirs" if unknown else None


# The error of an invalid value, by scope: Kafka answers changes of brokers with INVALID_REQUEST, the others with
# INVALID_CONFIG.
_ERRORS = {BROKER: INVALID_REQUEST, TOPIC: INVALID_CONFIG, GROUP: INVALID_CONFIG, CLIENT_METRICS: INVALID_CONFIG}
_UNKNOWN = {
    TOPIC: (INVALID_CONFIG, "Unknown topic config name: "),
    GROUP: (INVALID_CONFIG, "Unknown group config name: "),
    CLIENT_METRICS: (INVALID_REQUEST, "Unknown client metrics configuration: "),
}


def validate(scope: str, name: str, text: str, all_rows: Mapping[str, dict[str, Row]] = ROWS) -> object:
    """The typed value of one setting. Raises `KafkaError` with Kafka's code and sentence.

    For a broker, Kafka accepts names that it does not know, because plug-ins may read them. Such a text is returned
    unchanged.
    """
    row = all_rows[scope].get(name)
    if row is None:
        if scope == BROKER:
            base = all_rows[BROKER].get(name.split(".", 3)[-1]) if name.startswith(LISTENER_PREFIX) else None
            return text if base is None else validate(scope, base.name, text, all_rows)
        code, sentence = _UNKNOWN[scope]
        raise KafkaError(code, sentence + name)
    try:
        return row.parse(text)
    except InvalidValue as error:
        raise KafkaError(_ERRORS[scope], str(error)) from None


def validate_overrides(scope: str, overrides: Mapping[str, str], settings: Settings) -> None:
    """Checks all settings of one topic, group or client-metrics subscription, each alone and then together.

    Raises `KafkaError`.
    """
    for name, text in overrides.items():
        validate(scope, name, text, settings.rows)
    if scope == TOPIC:
        _check_topic(topic_settings(settings, overrides), settings)
    elif scope == GROUP:
        _check_group(overrides, settings)
    elif scope == CLIENT_METRICS:
        _check_client_metrics(overrides)


def _check_topic(values: TopicSettings, settings: Settings) -> None:
    if values.min_compaction_lag_ms > values.max_compaction_lag_ms:
        raise KafkaError(
            INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({values.min_compaction_lag_ms}) > "
            f"max.compaction.lag.ms ({values.max_compaction_lag_ms})",
        )
    if values.remote_storage_enable:
        if not settings.remote_log_storage_system_enable:
            sentence = (
                "Tiered Storage functionality is disabled in the broker. "
                "Topic cannot be configured with remote log storage."
            )
            raise KafkaError(INVALID_CONFIG, sentence)
        if values.cleanup_policy - {"delete"}:
            sentence = (
                "Remote log storage only supports topics with cleanup.policy=delete "
                "or cleanup.policy being an empty list."
            )
            raise KafkaError(INVALID_CONFIG, sentence)


def _check_group(overrides: Mapping[str, str], settings: Settings) -> None:
    """Checks that values lie within the broker's `group.<kind>.min.…` and `max.…`, and sessions outlast heartbeats."""
    rows = ROWS[GROUP]
    values = {
        name: inherited(settings, row) if name not in overrides else row.parse(overrides[name])
        for name, row in rows.items()
    }
    for name in overrides:
        kind, _, rest = name.partition(".")
        for bound, words in (("min", "greater"), ("max", "less")):
            broker_name = f"group.{kind}.{bound}.{rest.removeprefix('num.')}"
            limit = getattr(settings, broker_name.replace(".", "_"), None)
            if limit is not None and (values[name] < limit if bound == "min" else values[name] > limit):
                raise KafkaError(INVALID_CONFIG, f"{name} must be {words} than or equal to {broker_name}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if values[session] <= values[heartbeat]:
            raise KafkaError(INVALID_CONFIG, f"{session} must be greater than {heartbeat}")


CLIENT_MATCHES = frozenset(("client_instance_id", "client_id", "client_software_name", "client_software_version",
                            "client_source_address", "client_source_port"))  # fmt: skip


def _check_client_metrics(overrides: Mapping[str, str]) -> None:
    """Checks a client-metrics subscription (KIP-714): the bounds of the interval, and matches as `name=pattern`."""
    if "interval.ms" in overrides and not 100 <= int(overrides["interval.ms"]) <= 3600000:
        sentence = (
            f"Invalid value {int(overrides['interval.ms'])} for interval.ms, "
            "interval must be between 100 and 3600000 (1 hour)"
        )
        raise KafkaError(INVALID_REQUEST, sentence)
    for item in overrides.get("match", "").split(","):
        if item.strip() and not _is_client_match(item):
            raise KafkaError(INVALID_CONFIG, f"Illegal client matching pattern: {item.strip()}")


def _is_client_match(item: str) -> bool:
    """Whether an item is `name=expression` with a known name and a valid regular expression."""
    from pykafkad.settings import regular_expressions

    name, _, expression = item.partition("=")
    if name.strip() not in CLIENT_MATCHES or not expression.strip() or "=" in expression:
        return False
    try:
        regular_expressions.compiled(expression.strip())
    except ValueError:
        return False
    except regular_expressions.LibraryMissing as missing:
        raise KafkaError(INVALID_CONFIG, str(missing)) from None
    return True


def validate_broker_changes(changes: Mapping[str, str | None], settings: Settings, *, one_broker: bool) -> None:
    """Checks a live change of broker `settings`. Deleting (None) is always allowed. Raises `KafkaError`.

    `one_broker` says whether the change is for a named broker or is the default of all brokers.
    """
    rows = settings.rows[BROKER]
    set_texts = {name: text for name, text in changes.items() if text is not None}
    fixed = [name for name in set_texts if name in rows and rows[name].applies == "start"]
    if fixed:
        raise KafkaError(INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    listener_only = [name for name in set_texts if name in per_listener.LISTENER_ONLY]
    if listener_only:
        sentence = "These security configs can be dynamically updated only per-listener using the listener prefix: "
        raise KafkaError(INVALID_REQUEST, f"{sentence}[{', '.join(listener_only)}]")
    for name, text in set_texts.items():
        validate(BROKER, name, text, settings.rows)
    if not one_broker:
        own = [name for name in set_texts if _for_one_broker(name)]
        if own:
            sentence = "Cannot update these configs at default cluster level, broker id must be specified: "
            raise KafkaError(INVALID_REQUEST, f"{sentence}[{', '.join(own)}]")
    from pykafkad.settings import cross_checks

    candidate = cross_checks.Candidate(settings, changes, one_broker=one_broker)
    for name, sentence in (*cross_checks.problems(candidate), *cross_checks.steps_too_large(candidate)):
        raise KafkaError(INVALID_REQUEST, f"Invalid value for configuration {name}: it {sentence}")


def _for_one_broker(name: str) -> bool:
    row = ROWS[BROKER].get(name.split(".", 3)[-1] if name.startswith(LISTENER_PREFIX) else name)
    return row is not None and (
        row.applies == "broker" or (name.startswith(LISTENER_PREFIX) and row.applies != "cluster")
    )
