"""Brokers and controllers of the cluster, as the metadata log registers them."""

from __future__ import annotations

from pykafkad.wire import messages

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


def _endpoints(registration: object) -> dict[str, Endpoint]:
    """The endpoints of a registration record, by the listener's name."""
    return {end.name: Endpoint(end.name, end.host, end.port, end.security_protocol) for end in registration.end_points}


def _features(registration: object) -> dict[str, tuple[int, int]]:
    """The lowest and the highest level of each feature that the registered node can run."""
    return {each.name: (each.min_supported_version, each.max_supported_version) for each in registration.features}


class Broker:
    """A registered broker. `epoch` is the offset of its registration; `fenced` brokers are not shown to clients and get
    no leadership; `log_dirs` are the ids of its directories."""

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

    def __init__(self, record: object) -> None:
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

    def change(self, record: object) -> None:
        """Apply a BrokerRegistrationChangeRecord; the record's neutral values leave things as they are."""
        if record.fenced:
            self.fenced = record.fenced == FENCED
        if record.in_controlled_shutdown == IN_CONTROLLED_SHUTDOWN:
            self.in_controlled_shutdown = True
        if record.log_dirs:
            self.log_dirs = list(record.log_dirs)
        if record.cordoned_log_dirs is not None:
            self.cordoned_log_dirs = list(record.cordoned_log_dirs)

    def to_record(self) -> object:
        """The RegisterBrokerRecord that makes this broker what it is."""
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
        """Neither fenced nor on its way out: may lead partitions and stand in their ISR."""
        return not self.fenced and not self.in_controlled_shutdown


class ControllerRegistration:
    """A registered controller: where it listens and which feature levels it can run."""

    __slots__ = ("endpoints", "features", "id", "incarnation_id")

    def __init__(self, record: object) -> None:
        self.id = record.controller_id
        self.incarnation_id = record.incarnation_id
        self.endpoints = _endpoints(record)
        self.features = _features(record)

    def to_record(self) -> object:
        """The RegisterControllerRecord that makes this controller what it is."""
        record = messages.RegisterControllerRecord
        return record(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            end_points=_end_points(record.ControllerEndpoint, self.endpoints),
            features=_feature_ranges(record.ControllerFeature, self.features),
        )


def _end_points(row: type, endpoints: dict[str, Endpoint]) -> list[object]:
    return [
        row(name=end.name, host=end.host, port=end.port, security_protocol=end.security_protocol)
        for end in endpoints.values()
    ]


def _feature_ranges(row: type, features: dict[str, tuple[int, int]]) -> list[object]:
    return [
        row(name=name, min_supported_version=low, max_supported_version=high) for name, (low, high) in features.items()
    ]
