"""Dynamic settings of topics, brokers, groups and client-metrics subscriptions: their changes, checks and records.

The rows of `pykafkad.config` say what a setting is (type, range, scope). This module holds what Kafka's controller does
besides. A resource fails or succeeds as a whole, independently of the other resources in the request."""

from __future__ import annotations

from pykafkad import config, errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import record_codec
from pykafkad.metadata.features import CORDONED_SINCE, ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION
from pykafkad.metadata.image import TYPE_BROKER, TYPE_TOPIC, Image
from pykafkad.metadata.topics import name_problem
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord

    Operation = tuple[str, int, str]

TYPE_BROKER_LOGGER = 8
TYPE_CLIENT_METRICS = 16
TYPE_GROUP = 32

# Resource type of requests and records to the scope of its settings in `config`.
SCOPES = {
    TYPE_TOPIC: config.TOPIC,
    TYPE_BROKER: config.BROKER,
    TYPE_CLIENT_METRICS: config.CLIENT_METRICS,
    TYPE_GROUP: config.GROUP,
}

SET = 0
DELETE = 1
APPEND = 2
SUBTRACT = 3
OPERATION_NAMES = {SET: "SET", DELETE: "DELETE", APPEND: "APPEND", SUBTRACT: "SUBTRACT"}

MIN_INSYNC_REPLICAS = "min.insync.replicas"
MAX_VALUE_LENGTH = 32767


def record(resource_type: int, name: str, key: str, value: str | None) -> StoredRecord:
    """The record that sets one setting of a resource. With None it removes the setting."""
    return record_codec.record(
        messages.ConfigRecord(resource_type=resource_type, resource_name=name, name=key, value=value)
    )


def minimum_for_elr(image: Image, settings: Settings) -> list[StoredRecord]:
    """The records that are needed before eligible leader replicas: min.insync.replicas must have a cluster-wide value
    in the log, and none for single brokers (KIP-966)."""
    records = []
    if MIN_INSYNC_REPLICAS not in image.configs(TYPE_BROKER, ""):
        default = config.ROWS[config.BROKER][MIN_INSYNC_REPLICAS].default
        records.append(record(TYPE_BROKER, "", MIN_INSYNC_REPLICAS, settings.static.get(MIN_INSYNC_REPLICAS, default)))
    for (resource_type, name), values in image.all_configs().items():
        if resource_type == TYPE_BROKER and name and MIN_INSYNC_REPLICAS in values:
            records.append(record(TYPE_BROKER, name, MIN_INSYNC_REPLICAS, None))
    return records


def check_topic(name: str, overrides: dict[str, str], settings: Settings) -> None:
    """Raises `KafkaError` when a topic may not have these settings."""
    if overrides:
        for value in overrides.values():
            _check_length(value)
        config.validate_overrides(config.TOPIC, overrides, settings)


def created_topic_configs(
    overrides: dict[str, str], settings: Settings
) -> list[messages.CreateTopicsResponse.CreatableTopicConfigs]:
    """All settings of a new topic for the CreateTopics response: their effective values and sources, by name."""
    from pykafkad.settings.entries import describe_created_topic

    return [
        messages.CreateTopicsResponse.CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in describe_created_topic(settings, overrides)
    ]


class Alteration:
    """The records of one AlterConfigs or IncrementalAlterConfigs, checked against one image."""

    __slots__ = ("image", "records", "settings")

    def __init__(self, image: Image, settings: Settings) -> None:
        self.image = image
        self.settings = settings
        self.records: list[StoredRecord] = []

    def resource(self, resource_type: int, name: str, operations: Any, incremental: bool) -> None:
        """Add the records for one resource. Raises `KafkaError`, and adds no record, for a change that is not allowed.

        `operations` is a list of (setting, operation, value). Unless `incremental` it is a dict of setting to value,
        which replaces all settings of the resource.
        """
        current = self.image.configs(resource_type, name)
        if incremental:
            wanted = self._incremental(resource_type, operations, current)
        else:
            wanted = dict(operations)
            wanted.update((key, None) for key in current if key not in operations)
        # A broker gets a record for an unchanged value too: it then reloads the file that the value names
        # (KAFKA-14136).
        changed = {
            key: value for key, value in wanted.items() if resource_type == TYPE_BROKER or value != current.get(key)
        }
        self._check(resource_type, name, changed, current)
        for key, value in changed.items():
            self.records.append(record(resource_type, name, key, value))
        if MIN_INSYNC_REPLICAS in changed and self._elr:
            topic = name if resource_type == TYPE_TOPIC else ""
            self.records.append(record_codec.record(messages.ClearElrRecord(topic_name=topic)))

    @property
    def _elr(self) -> bool:
        return self.image.features.get(ELIGIBLE_LEADER_REPLICAS, 0) > 0

    def _incremental(
        self, resource_type: int, operations: list[Operation], current: dict[str, str]
    ) -> dict[str, str | None]:
        """The value of each setting after the operations; None removes the setting."""
        wanted: dict[str, str | None] = {}
        for key, operation, value in operations:
            if operation == SET:
                wanted[key] = value
            elif operation == DELETE:
                wanted[key] = None
            else:
                wanted[key] = self._listed(resource_type, key, operation, value, current.get(key))
        return wanted

    def _listed(self, resource_type: int, key: str, operation: int, value: str, current: str | None) -> str:
        """The value of a list after APPEND or SUBTRACT. A list that is not set begins with its default value."""
        # Kafka's controller knows only the types of topic and broker settings. So the lists of a subscription can be
        # set but not appended to.
        row = config.ROWS[SCOPES[resource_type]].get(key) if resource_type in (TYPE_TOPIC, TYPE_BROKER) else None
        if row is None or row.type != "list":
            text = f"Can't {OPERATION_NAMES[operation]} to key {key} because its type is not LIST."
            raise KafkaError(errors.INVALID_CONFIG, text)
        if current is None:
            current = row.default
        items = [item for item in (current or "").split(",") if item]
        for item in value.split(","):
            if operation == APPEND and item not in items:
                items.append(item)
            elif operation == SUBTRACT and item in items:
                items.remove(item)
        return ",".join(items)

    def _check(self, resource_type: int, name: str, changed: dict[str, str | None], current: dict[str, str]) -> None:
        for value in changed.values():
            if value is not None:
                _check_length(value)
        whole = {key: value for key, value in {**current, **changed}.items() if value is not None}
        if resource_type == TYPE_TOPIC:
            problem = "Default topic resources are not allowed." if not name else None
            if problem:
                raise KafkaError(errors.INVALID_REQUEST, problem)
            problem = name_problem(name)
            if problem:
                raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, problem)
            config.validate_overrides(config.TOPIC, whole, self.settings)
            if name not in self.image.topics:
                raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        elif resource_type == TYPE_BROKER:
            config.validate_broker_changes(changed, self.settings, one_broker=bool(name))
            if MIN_INSYNC_REPLICAS in changed and self._elr:
                _check_min_insync_replicas(name, changed[MIN_INSYNC_REPLICAS])
            if "cordoned.log.dirs" in changed and self.image.features[METADATA_VERSION] < CORDONED_SINCE:
                text = (
                    "The cordoned.log.dirs configuration value cannot be set because it requires "
                    "metadata.version >= 4.3-IV0"
                )
                raise KafkaError(errors.INVALID_CONFIG, text)
            _check_cordoned(changed.get("cordoned.log.dirs"), self.settings)
            if name and int(name) not in self.image.brokers:
                raise KafkaError(errors.BROKER_ID_NOT_REGISTERED, f"No broker with id {name} found.")
        elif resource_type == TYPE_GROUP:
            if not name:
                raise KafkaError(errors.INVALID_REQUEST, "Default group resources are not allowed.")
            config.validate_overrides(config.GROUP, whole, self.settings)
        else:
            if not name:
                raise KafkaError(errors.INVALID_REQUEST, "Subscription name can't be empty")
            config.validate_overrides(config.CLIENT_METRICS, whole, self.settings)


def _check_length(value: str) -> None:
    if len(value) > MAX_VALUE_LENGTH:
        text = (
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{MAX_VALUE_LENGTH} bytes."
        )
        raise KafkaError(errors.INVALID_CONFIG, text)


def _check_cordoned(value: str | None, settings: Settings) -> None:
    """Raises `KafkaError` unless every item is a directory of `log.dirs`, or the value is a star for all of them."""
    items = [item.strip() for item in (value or "").split(",") if item.strip()]
    problem = config.cordoned_problem(items, settings.log_directories)
    if problem is not None:
        raise KafkaError(
            errors.INVALID_REQUEST, f"Invalid value {value} for configuration cordoned.log.dirs: {problem}"
        )


def _check_min_insync_replicas(name: str, value: str | None) -> None:
    """Raises `KafkaError` for changes that eligible leader replicas do not allow: the cluster-wide value cannot be
    removed, and a single broker cannot have its own."""
    if name:
        text = f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled."
        raise KafkaError(errors.INVALID_CONFIG, text)
    if value is None:
        text = f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled."
        raise KafkaError(errors.INVALID_CONFIG, text)
