"""The settings of the brokers of one process, and of its controller, out of the settings of a single broker.

Each broker has its own node id, listeners, directories and rack; everything else is the same for all."""

from __future__ import annotations

from pykafkad import uuids
from pykafkad.errors import ConfigError
from pykafkad.log import checkpoints
from pykafkad.server import quorum_settings
from pykafkad.settings import authorizer_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from random import Random

    from pykafkad.config import Settings
    from pykafkad.disk import Disk
    from pykafkad.server.listeners import Listener
    from pykafkad.server.node_links import NodeIdentity

CONTROLLER_ID = 3000
"""The node id of the controller, beyond those of the brokers; of several controllers that of the first."""

MAX_BROKERS = 100

ALONE = ("2.8", "3.4", "3.7")
"""Releases whose followers fetch in another way than those here."""

MAX_CONTROLLERS = 9

CONTROLLER_HOST = "127.0.0.1"
"""Where the controllers of a quorum are reached: in plain text and without logins, so by this machine alone."""

ANONYMOUS = "User:ANONYMOUS"

CONTROLLER_FOLDER = "controller"
"""The folder of a controller that is the only one; that of one of a quorum has its node id behind it."""

SERVING = "serving"
"""The state of a broker that clients can use."""


def _controller_folder(node_id: int) -> str:
    return f"{CONTROLLER_FOLDER}{node_id}"


_ALL_FOLDERS = {CONTROLLER_FOLDER, *(_controller_folder(CONTROLLER_ID + index) for index in range(MAX_CONTROLLERS))}

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


def of_quorum(
    settings: Settings,
    brokers: Sequence[Settings],
    ports: Sequence[int],
    disk: Disk,
    random: Random,
    identity: NodeIdentity | None = None,
) -> tuple[list[Settings], list[Settings]]:
    """Those of the controllers of a quorum, one at each of these ports, and of its `brokers` (`of_brokers`). Their
    directories belong to the cluster that is found in one of them, or to a new one. With an `identity` they reach each
    other by that. Raises ConfigError."""
    first, kind = of_controller(settings, brokers), type(settings)
    ids = [CONTROLLER_ID + index for index in range(len(ports))]
    if not ids or len(ids) > MAX_CONTROLLERS:
        raise ConfigError(f"--controllers {len(ids)}: must be from 1 to {MAX_CONTROLLERS}")
    for each in brokers:
        if each.node_id in ids:
            raise ConfigError(f"node.id: {each.node_id} is that of a controller; they have {ids[0]} to {ids[-1]}")
    name = quorum_settings.listener_of(settings)
    shared = {
        "controller.quorum.voters": ",".join(
            f"{each}@{CONTROLLER_HOST}:{port}" for each, port in zip(ids, ports, strict=True)
        ),
        "controller.listener.names": name,
        "listener.security.protocol.map": f"{settings.listener_security_protocol_map},{name}:PLAINTEXT",
    }
    left_out = ("controller.quorum.bootstrap.servers", "controller.quorum.auto.join.enable")
    controllers = []
    for node_id, port in zip(ids, ports, strict=True):
        own = {
            "node.id": str(node_id),
            "broker.id": str(node_id),
            "listeners": f"{name}://{CONTROLLER_HOST}:{port}",
            "log.dirs": f"{settings.log_directories[0]}/{_controller_folder(node_id)}",
        }
        texts = {key: text for key, text in first.static.items() if key not in (*left_out, "advertised.listeners")}
        controllers.append(kind({**texts, **shared, **own}))
    check_folders(settings, [_controller_folder(each) for each in ids], disk)
    shared["pykafkad.cluster.id"] = _cluster_id(settings, [*controllers, *brokers], disk, random)
    quorum = [kind({**each.static, **shared}) for each in controllers]
    members = [
        kind({**{key: text for key, text in each.static.items() if key not in left_out}, **shared}) for each in brokers
    ]
    if identity is None:
        return quorum, members
    from pykafkad.server import node_links

    return node_links.secured(quorum, members, identity)


def _cluster_id(settings: Settings, nodes: Sequence[Settings], disk: Disk, random: Random) -> str:
    if settings.pykafkad_cluster_id:
        return settings.pykafkad_cluster_id
    for each in nodes:
        for path in each.log_directories:
            content = disk.read(f"{path}/{checkpoints.META_PROPERTIES_FILE}")
            found = checkpoints.decode_properties(content or b"").get("cluster.id")
            if found:
                return found
    return uuids.to_text(uuids.random_uuid(random))


def check_folders(settings: Settings, controllers: Sequence[str], disk: Disk) -> None:
    """Raises ConfigError unless the directories are new, or those of several brokers with these folders of
    controllers."""
    if settings.pykafkad_memory_max_bytes:
        # The directories are only names then, whatever is in them.
        return
    for path in settings.log_directories:
        if disk.exists(f"{path}/{checkpoints.META_PROPERTIES_FILE}"):
            raise ConfigError(f"log.dirs: {path} holds the data of a single broker; give several one of their own")
    path = settings.log_directories[0]
    found = sorted(each for each in (disk.listdir(path) if disk.exists(path) else ()) if each in _ALL_FOLDERS)
    if found and found != sorted(controllers):
        raise ConfigError(
            f"log.dirs: {path} has been begun with other options: its metadata is in {', '.join(found)}, and now it "
            f"would be in {', '.join(controllers)}; give --controllers and --processes as at its first start, or "
            "another directory"
        )


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
    if settings.pykafkad_act_as in ALONE:
        raise ConfigError(
            f"pykafkad.act.as: Kafka {settings.pykafkad_act_as} is acted as by a single broker; several can act as 3.9 "
            "or a newer one"
        )
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


def folders_of_several(disk: Disk, path: str) -> list[str]:
    """The folders of several brokers and their controllers that a directory has, sorted by name."""
    return [
        name
        for name in sorted(disk.listdir(path))
        if name in _ALL_FOLDERS or (name.startswith("broker") and name.removeprefix("broker").isdecimal())
        if disk.exists(f"{path}/{name}/meta.properties")
    ]


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


def index_between(settings: Settings, listening: Sequence[Listener]) -> int | None:
    """Which of a broker's listeners is that by which the others reach it; None where there is none."""
    name = settings.inter_broker_listener_name
    protocol = settings.security_inter_broker_protocol
    for index, each in enumerate(listening):
        if each.security_protocol == "PLAINTEXT" and (each.name == name.upper() if name else protocol == "PLAINTEXT"):
            return index
    return None


def needs_links(settings: Settings, listening: Sequence[Listener]) -> bool:
    """Whether the brokers of one process reach each other inside of it: they have no listener where nobody logs in, or
    who comes there may not do what brokers do."""
    return index_between(settings, listening) is None or (
        bool(settings.authorizer_class_name) and ANONYMOUS not in authorizer_settings.super_users(settings.static)
    )


def check_listeners(settings: Settings, listening: Sequence[Listener]) -> int:
    """Which of a broker's listeners is that by which the others reach it: one without TLS and logins, as which nobody
    but User:ANONYMOUS is known. Raises ConfigError where there is none."""
    between = index_between(settings, listening)
    if between is None:
        raise ConfigError(
            "listeners: several brokers reach each other by a PLAINTEXT listener, and there is none; add one and set "
            "inter.broker.listener.name to its name"
        )
    allowed = authorizer_settings.super_users(settings.static)
    if settings.authorizer_class_name and ANONYMOUS not in allowed:
        raise ConfigError(
            f"authorizer.class.name: several brokers reach each other as {ANONYMOUS}; give them a listener of "
            "their own that is bound to 127.0.0.1 (inter.broker.listener.name), give clients one with logins, and name "
            f"{ANONYMOUS} among super.users, who may do everything"
        )
    return between


def address_between(settings: Settings, addresses: Sequence[str]) -> str:
    """Of a broker's addresses, in the order of its listeners, that by which the others reach it. Raises ConfigError
    where there is none."""
    from pykafkad.server import node_links
    from pykafkad.server.run import parse_listeners

    listening = parse_listeners(settings)
    for listener, address in zip(listening, addresses, strict=True):
        if node_links.is_for_nodes(listener):
            return address
    return addresses[check_listeners(settings, listening)]
