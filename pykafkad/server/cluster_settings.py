"""The settings of the brokers of one process, and of its controller, out of the settings of a single broker.

Each broker has its own node id, listeners, directories and rack; everything else is the same for all."""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.settings import authorizer_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pykafkad.config import Settings
    from pykafkad.server.listeners import Listener

CONTROLLER_ID = 3000
"""The node id of the controller, beyond those of the brokers."""

MAX_BROKERS = 100

ANONYMOUS = "User:ANONYMOUS"

CONTROLLER_FOLDER = "controller"

_REPLICATED = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "share.coordinator.state.topic.replication.factor": 3,
    "share.coordinator.state.topic.min.isr": 2,
}
"""Kafka's defaults, of which a single broker has 1; with fewer brokers as many as there are."""


def of_controller(settings: Settings, brokers: Sequence[Settings]) -> Settings:
    """Those of the controller of `brokers` (`of_brokers`): it keeps the metadata log beside their directories."""
    own = {
        "process.roles": "controller",
        "node.id": str(CONTROLLER_ID),
        "broker.id": str(CONTROLLER_ID),
        "log.dirs": f"{settings.log_directories[0]}/{CONTROLLER_FOLDER}",
        **{name: brokers[0].static[name] for name in _REPLICATED if name in brokers[0].static},
    }
    return type(settings)({**_without_directory(settings), **own})


def of_brokers(
    settings: Settings, count: int, racks: Sequence[str] = (), given: Collection[str] = ()
) -> list[Settings]:
    """Those of `count` brokers. The first has the node id and the ports of `settings`, each other one the next ones;
    port 0 stays 0. The `racks` are given to the brokers in turn. `given` are the names of the settings that somebody
    has chosen. Raises ConfigError for what cannot be."""
    if not 1 <= count <= MAX_BROKERS:
        raise ConfigError(f"--brokers {count}: must be from 1 to {MAX_BROKERS}")
    if "broker" not in settings.process_roles:
        raise ConfigError("--brokers: process.roles has no broker")
    if settings.metadata_log_dir:
        raise ConfigError(
            "metadata.log.dir: with several brokers the metadata log has a folder in the first of log.dirs"
        )
    replicated = {name: str(min(number, count)) for name, number in _REPLICATED.items() if name not in given}
    shared = {**_without_directory(settings), **replicated}
    result = [type(settings)({**shared, **_of_broker(settings, index, racks)}) for index in range(count)]
    ids = [each.node_id for each in result]
    if CONTROLLER_ID in ids:
        raise ConfigError(f"node.id: {CONTROLLER_ID} is that of the controller; the brokers have {ids[0]} to {ids[-1]}")
    _check_ports(result)
    return result


def _without_directory(settings: Settings) -> dict[str, str]:
    return {name: text for name, text in settings.static.items() if name != "log.dir"}


def _of_broker(settings: Settings, index: int, racks: Sequence[str]) -> dict[str, str]:
    node_id = str(settings.node_id + index)
    own = {
        "process.roles": "broker",
        "node.id": node_id,
        "broker.id": node_id,
        "listeners": ",".join(_shifted(entry, index) for entry in settings.listeners),
        "log.dirs": ",".join(folder(path, settings.node_id + index) for path in settings.log_directories),
    }
    if settings.advertised_listeners:
        own["advertised.listeners"] = ",".join(_shifted(entry, index) for entry in settings.advertised_listeners)
    if racks:
        own["broker.rack"] = racks[index % len(racks)]
    return own


def folder(path: str, node_id: int) -> str:
    """Where a broker keeps what a single one keeps in `path`. The name is none of a partition's folder."""
    return f"{path}/broker{node_id}"


def _shifted(entry: str, index: int) -> str:
    """A listener with the port of the broker of that index."""
    address, colon, port = entry.rpartition(":")
    return f"{address}{colon}{int(port) + index}" if port.isdecimal() and int(port) else entry


def _check_ports(brokers: list[Settings]) -> None:
    taken: dict[str, int] = {}
    for each in brokers:
        for entry in each.listeners:
            port = entry.rpartition(":")[2]
            if port == "0":
                continue
            if port in taken or not (port.isdecimal() and int(port) <= 65535):
                why = f"is also that of broker {taken[port]}" if port in taken else "is no port"
                raise ConfigError(
                    f"listeners: {entry} of broker {each.node_id} {why}; each broker listens one port above the one "
                    f"before it, so the ports of a broker's listeners must lie {len(brokers)} apart"
                )
            taken[port] = each.node_id


def check_listeners(settings: Settings, listening: Sequence[Listener]) -> None:
    """Raises ConfigError unless the brokers can reach each other: by a listener without TLS and logins, as which nobody
    but User:ANONYMOUS is known."""
    name = settings.inter_broker_listener_name
    protocol = settings.security_inter_broker_protocol
    if not any(
        each.security_protocol == "PLAINTEXT" and (each.name == name.upper() if name else protocol == "PLAINTEXT")
        for each in listening
    ):
        raise ConfigError(
            "listeners: several brokers reach each other by a PLAINTEXT listener, and there is none; add one and set "
            "inter.broker.listener.name to its name"
        )
    allowed = authorizer_settings.super_users(settings.static)
    if settings.authorizer_class_name and ANONYMOUS not in allowed:
        raise ConfigError(
            f"authorizer.class.name: several brokers reach each other as {ANONYMOUS}; name it among super.users"
        )
