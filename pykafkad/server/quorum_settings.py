"""The metadata quorum as the settings name it: its static voters, and where it is found."""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.voters import Voter
from pykafkad.server.listeners import parse_address
from pykafkad.uuids import ZERO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.config import Settings

_VOTERS = "controller.quorum.voters"
_BOOTSTRAP = "controller.quorum.bootstrap.servers"
DEFAULT_LISTENER = "CONTROLLER"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def has_others(settings: Settings) -> bool:
    """Whether other processes take part in the quorum: as brokers of a controller that is alone in its process, or as
    voters."""
    named = settings.controller_quorum_voters, settings.controller_quorum_bootstrap_servers
    return "broker" not in settings.process_roles or max(map(len, named)) > 1


def listens_for_nodes(settings: Settings) -> bool:
    """Whether the controller of a process that is a broker, too, is there for other nodes: it has a listener for them,
    or the settings name some."""
    return has_others(settings) or bool(_own_addresses(settings))


def needs_format(settings: Settings) -> bool:
    """Whether the node joins a cluster that has begun elsewhere, or begins one with others: its directory must have
    been formatted with the id of that cluster."""
    servers = settings.controller_quorum_bootstrap_servers
    if len(settings.controller_quorum_voters) > 1 or len(servers) > 1:
        return True
    return bool(servers) and listens_for_nodes(settings) and not begins_alone(settings)


def begins_alone(settings: Settings) -> bool:
    """Whether the settings name no other voter: a new directory begins a quorum. The usual file of a broker with its
    controller names that as the only bootstrap server."""
    if settings.controller_quorum_voters:
        return False
    servers = bootstrap_servers(settings)
    if not servers:
        return True
    return "broker" in settings.process_roles and set(servers) <= _own_addresses(settings)


def _own_addresses(settings: Settings) -> set[tuple[str, int]]:
    """The (host, port) pairs by which this node's controller is reached here."""
    names = {name.upper() for name in settings.controller_listener_names or ()}
    found = set()
    for setting, entries in (
        ("listeners", settings.listeners),
        ("advertised.listeners", settings.advertised_listeners or ()),
    ):
        for entry in entries:
            name, separator, address = entry.strip().partition("://")
            if separator and name.upper() in names:
                host, port = parse_address(address, setting)
                found |= {(host, port), *((each, port) for each in _LOOPBACK)}
    return found


def listener_of(settings: Settings) -> str:
    """The name of the listener by which controllers reach each other: the first of `controller.listener.names`."""
    return next(iter(settings.controller_listener_names or ()), DEFAULT_LISTENER)


def static_voters(settings: Settings) -> list[Voter]:
    """The voters of `controller.quorum.voters`; their directories are not known. Raises ConfigError."""
    found: dict[int, Voter] = {}
    for entry in settings.controller_quorum_voters:
        number, at, address = entry.partition("@")
        if not at or not number.strip().isdecimal() or int(number) in found:
            raise ConfigError(f"{_VOTERS}: {entry!r} is not ID@HOST:PORT with an id of its own")
        host, port = parse_address(address, _VOTERS)
        found[int(number)] = Voter(int(number), ZERO, [Endpoint(listener_of(settings), host, port)])
    return list(found.values())


def bootstrap_servers(settings: Settings) -> list[tuple[str, int]]:
    """The (host, port) pairs of `controller.quorum.bootstrap.servers`. Raises ConfigError."""
    return [parse_address(each, _BOOTSTRAP) for each in settings.controller_quorum_bootstrap_servers]
