"""The brokers and controllers that are registered in the metadata log."""

from __future__ import annotations

from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    Row = TypeVar("Row")
    Registration = messages.RegisterBrokerRecord | messages.RegisterControllerRecord

FENCED = 1
UNFENCED = -1
IN_CONTROLLED_SHUTDOWN = 1


class Endpoint:
    """One listener of a node: `name`, `host`, `port` and Kafka's number of the security protocol (0 PLAINTEXT, 1 SSL,
    2 SASL_PLAINTEXT, 3 SASL_SSL)."""

    __slots__ = ("host", "name", "port", "security_protocol")

    def __init__(self, name: str, host: str, port: int, security_protocol: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol

    def __repr__(self) -> str:
        return f"Endpoint({self.name}://{self.host}:{self.port})"


def _endpoints(registration: Registration) -> dict[str, Endpoint]:
    """The endpoints of a registration record, by listener name."""
    rows: Iterable[Any] = registration.end_points
    return {row.name: Endpoint(row.name, row.host, row.port, row.security_protocol) for row in rows}


def _features(registration: Registration) -> dict[str, tuple[int, int]]:
    """The lowest and the highest level of each feature that the registered node supports."""
    rows: Iterable[Any] = registration.features
    return {row.name: (row.min_supported_version, row.max_supported_version) for row in rows}


class Broker:
    """A registered broker. `epoch` is the offset of its registration record. A fenced broker is not shown to clients
    and leads no partitions. `log_dirs` are the ids of its log directories."""

    __slots__ = (
        "cordoned_log_dirs",
        "endpoints",
        "epoch",
        "features",
        "fenced",
        "id",
        "in_controlled_shutdown",
        "incarnation_id",
        "log_dirs",
        "rack",
    )

    def __init__(self, record: messages.RegisterBrokerRecord) -> None:
        self.id = record.broker_id
        self.epoch = record.broker_epoch
        self.incarnation_id = record.incarnation_id
        self.endpoints = _endpoints(record)
        self.features = _features(record)
        self.rack = record.rack
        self.fenced = record.fenced
        self.in_controlled_shutdown = record.in_controlled_shutdown
        self.log_dirs = list(record.log_dirs)
        self.cordoned_log_dirs = list(record.cordoned_log_dirs or ())

    def change(self, record: messages.BrokerRegistrationChangeRecord) -> None:
        """Apply a BrokerRegistrationChangeRecord. Fields with their neutral value do not change."""
        if record.fenced:
            self.fenced = record.fenced == FENCED
        if record.in_controlled_shutdown == IN_CONTROLLED_SHUTDOWN:
            self.in_controlled_shutdown = True
        if record.log_dirs:
            self.log_dirs = list(record.log_dirs)
        if record.cordoned_log_dirs is not None:
            self.cordoned_log_dirs = list(record.cordoned_log_dirs)

    def to_record(self) -> messages.RegisterBrokerRecord:
        """The RegisterBrokerRecord with the present state of the broker."""
        record = messages.RegisterBrokerRecord
        return record(
            broker_id=self.id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=_end_points(record.BrokerEndpoint, self.endpoints),
            features=_feature_ranges(record.BrokerFeature, self.features),
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=self.log_dirs,
            cordoned_log_dirs=self.cordoned_log_dirs,
        )

    @property
    def active(self) -> bool:
        """Whether the broker may lead partitions and be in their ISR: it is neither fenced nor shutting down."""
        return not self.fenced and not self.in_controlled_shutdown


class ControllerRegistration:
    """A registered controller: its listeners, and the feature levels that it supports."""

    __slots__ = ("endpoints", "features", "id", "incarnation_id")

    def __init__(self, record: messages.RegisterControllerRecord) -> None:
        self.id = record.controller_id
        self.incarnation_id = record.incarnation_id
        self.endpoints = _endpoints(record)
        self.features = _features(record)

    def to_record(self) -> messages.RegisterControllerRecord:
        """The RegisterControllerRecord with the present state of the controller."""
        record = messages.RegisterControllerRecord
        return record(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            end_points=_end_points(record.ControllerEndpoint, self.endpoints),
            features=_feature_ranges(record.ControllerFeature, self.features),
        )


def _end_points(row: Callable[..., Row], endpoints: dict[str, Endpoint]) -> list[Row]:
    return [
        row(name=end.name, host=end.host, port=end.port, security_protocol=end.security_protocol)
        for end in endpoints.values()
    ]


def _feature_ranges(row: Callable[..., Row], features: dict[str, tuple[int, int]]) -> list[Row]:
    return [
        row(name=name, min_supported_version=low, max_supported_version=high) for name, (low, high) in features.items()
    ]
