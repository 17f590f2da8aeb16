"""Listeners as values: parsing `listeners` and `advertised.listeners`, and what to tell a caller.

With nothing advertised, an answer carries the host and port by which the caller reached this broker, so that a
container, a tunnel or port 0 work with no setting."""

from __future__ import annotations

from pykafkad import config
from pykafkad.errors import ConfigError
from pykafkad.metadata.brokers import Endpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.config import Settings
    from pykafkad.server.logs import Logs
    from pykafkad.server.socket_server import SocketServer
    from pykafkad.server.tls_endpoint import TlsEndpoint
    from pykafkad.server.tls_renewal import TlsRenewal

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""The security protocols. The index of each is Kafka's number for it."""

ENCRYPTED = ("SSL", "SASL_SSL")
_WILDCARDS = ("", "0.0.0.0", "::")


class Listener:
    """One listener: its name, the address it binds, the address it advertises (None: as reached), and its security
    protocol."""

    __slots__ = ("_advertised", "host", "name", "port", "security_protocol")

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        advertised: tuple[str, int] | None = None,
        security_protocol: str = "PLAINTEXT",
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.security_protocol = security_protocol
        self._advertised = advertised

    def __repr__(self) -> str:
        return f"Listener({self.name}, {self.host}:{self.port})"

    @property
    def has_sasl(self) -> bool:
        """Whether its connections log in by SASL."""
        return self.security_protocol.startswith("SASL_")

    def advertised(self, reached: tuple[str, int]) -> tuple[str, int]:
        """What to tell a caller whose connection ends at our `reached` (host, port).

        A listener on a name answers with that name, as clients compare the text; one on a wildcard with the address
        reached."""
        if self._advertised is not None:
            return self._advertised[0], self._advertised[1] or reached[1]
        if self.host not in _WILDCARDS:
            return self.host, reached[1]
        host = reached[0].removeprefix("::ffff:")
        return ("localhost" if host in ("127.0.0.1", "::1") else host), reached[1]

    def address(self) -> str:
        """Host and port for people, a newcomer's client can use it as it is."""
        host = "localhost" if self.host in _WILDCARDS else self.host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def parse_address(text: str, setting: str) -> tuple[str, int]:
    """`HOST:PORT`, `[V6]:PORT`, `:PORT` to (host, port); raises ConfigError naming the setting."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{setting}: {text!r} is not HOST:PORT with a port from 0 to 65535")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigError(f"{setting}: write an IPv6 address in brackets, [{host}]:{port}, not {text!r}")
    return ("" if host == "*" else host), int(port)


def as_settings(addresses: list[tuple[str, int]], security: str, protocol: str = "PLAINTEXT") -> dict[str, str]:
    """The settings that make a broker listen at these (host, port) pairs by a security protocol; `security` is what
    `listener.security.protocol.map` is without them."""
    protocols = [entry for entry in security.split(",") if entry.strip()]
    mapped = {
        entry.partition(":")[0].strip().upper()
        for entry in protocols
        if entry.partition(":")[2].strip().upper() == protocol
    }
    names = [protocol if number == 0 else f"{protocol}_{number + 1}" for number in range(len(addresses))]
    texts = [
        f"{name}://{f'[{host}]' if ':' in host else host}:{port}"
        for name, (host, port) in zip(names, addresses, strict=True)
    ]
    lacking = [name for name in names if name not in mapped]
    if not lacking:
        return {"listeners": ",".join(texts)}
    others = [entry for entry in protocols if entry.partition(":")[0].strip().upper() not in lacking]
    return {
        "listeners": ",".join(texts),
        "listener.security.protocol.map": ",".join([*others, *(f"{name}:{protocol}" for name in lacking)]),
    }


def endpoints(listening: list[Listener]) -> list[Endpoint]:
    """What a node registers of its bound listeners."""
    return [
        Endpoint(
            each.name,
            *each.advertised((each.host or "localhost", each.port)),
            PROTOCOLS.index(each.security_protocol),
        )
        for each in listening
    ]


def bind(socket_server: SocketServer, listening: list[Listener], settings: Settings, logs: Logs) -> None:
    """Have `socket_server` listen; the listeners get their ports. Raises OSError with the address in its text, and
    ConfigError for settings of TLS that cannot be."""
    # Kafka's defaults are not ours: unless they are set, the address decides, and buffers grow.
    send_buffer_bytes = settings.socket_send_buffer_bytes if "socket.send.buffer.bytes" in settings.static else None
    is_set = "socket.receive.buffer.bytes" in settings.static
    receive_buffer_bytes = settings.socket_receive_buffer_bytes if is_set else -1
    for listener in listening:
        tls = None
        if listener.security_protocol in ENCRYPTED:
            from pykafkad.server.tls_renewal import TlsRenewal

            if socket_server.tls_renewal is None:
                socket_server.tls_renewal = TlsRenewal(settings, logs)
            tls = _endpoint(socket_server.tls_renewal, listener, settings, logs)
        listener.port = socket_server.listen(
            listener.host,
            listener.port,
            listener,
            send_buffer_bytes=send_buffer_bytes,
            receive_buffer_bytes=receive_buffer_bytes,
            backlog=settings.socket_listen_backlog_size,
            tls=tls,
        )


def _endpoint(renewal: TlsRenewal, listener: Listener, settings: Settings, logs: Logs) -> TlsEndpoint:
    """What the settings make of a listener with TLS. Live ones were right when they were set, and a file that they name
    may be gone: then those of the start count, as in Kafka. Raises ConfigError."""
    try:
        return renewal.add(settings, listener)
    except ConfigError as error:
        if not settings.dynamic_broker:
            raise
        endpoint = renewal.add(type(settings)(settings.static), listener)
        logs.error("server", "live-settings-ignored", listener=listener.name, reason=error)
        return endpoint


def of_settings(settings: Settings, *, of_controller: bool) -> list[Listener]:
    """Where the settings have the broker, or the controller, listen. Raises ConfigError."""
    return parse(
        list(settings.listeners),
        list(settings.advertised_listeners or ()),
        security_entries(settings),
        list(settings.controller_listener_names or ()),
        of_controller=of_controller,
    )


def parse(
    listeners: list[str],
    advertised: list[str],
    security: list[str],
    controller_names: list[str],
    *,
    of_controller: bool = False,
) -> list[Listener]:
    """The broker's listeners out of Kafka's settings (`NAME://HOST:PORT` entries), or those of the controller: the
    names in `controller.listener.names`. Raises ConfigError for duplicates and for malformed entries.
    """
    protocols = _security_protocols(security)
    announced = dict(_split(entry, "advertised.listeners") for entry in advertised)
    controllers = {name.upper() for name in controller_names}
    result: list[Listener] = []
    others = set(controllers)
    for entry in listeners:
        name, (host, port) = _split(entry, "listeners")
        if (name in controllers) != of_controller:
            others.add(name)
            continue
        if any(each.name == name for each in result):
            raise ConfigError(f"listeners: the name {name} stands twice; every listener needs a name of its own")
        protocol = protocols.get(name)
        if protocol is None:
            raise ConfigError(
                f"listeners: {name} has no security protocol; add {name}:PLAINTEXT to listener.security.protocol.map"
            )
        result.append(Listener(name, host, port, announced.get(name), protocol))
    unknown = set(announced) - {each.name for each in result} - others
    if unknown:
        raise ConfigError(f"advertised.listeners: {', '.join(sorted(unknown))} is not among listeners")
    for name, (host, _) in announced.items():
        if host in _WILDCARDS:
            raise ConfigError(
                f"advertised.listeners: {name} advertises {host or 'an empty host'}, which no client can connect to"
            )
    if not result and of_controller:
        raise ConfigError(
            "listeners: a controller of several nodes needs a listener of controller.listener.names, such as "
            "CONTROLLER://localhost:9093 with controller.listener.names=CONTROLLER"
        )
    if not result:
        raise ConfigError(
            "listeners: no broker listener is left; give at least one, such as PLAINTEXT://localhost:9092"
        )
    return result


def protocol_of(settings: Settings, name: str) -> str:
    """The security protocol of a listener, of this node or of others. Raises ConfigError for one that has none."""
    protocols = _security_protocols(security_entries(settings))
    found = protocols.get(name.upper())
    if found is None:
        raise ConfigError(
            f"listener.security.protocol.map: {name} has no security protocol; add {name}:PLAINTEXT, or what it speaks"
        )
    return found


def security_entries(settings: Settings) -> list[str]:
    """`listener.security.protocol.map`, with what is added where it is not set."""
    entries: list[str] = settings.listener_security_protocol_map.split(",")
    if "listener.security.protocol.map" not in settings.static:
        entries += default_protocols(list(settings.listeners), list(settings.controller_listener_names or ()))
    return entries


def default_protocols(listeners: list[str], controller_names: list[str]) -> list[str]:
    """Entries for controller listeners where `listener.security.protocol.map` is not set: plain text, unless a listener
    is named as a protocol that encrypts or authenticates (KafkaConfig of Kafka 4.3)."""
    names = {entry.strip().partition("://")[0].upper() for entry in listeners} | {
        name.upper() for name in controller_names
    }
    if names & (set(PROTOCOLS) - {"PLAINTEXT"}):
        return []
    return [f"{name}:PLAINTEXT" for name in controller_names if name.upper() != "PLAINTEXT"]


def implied_protocols(properties: dict[str, str]) -> list[str]:
    """The same out of a node's settings as texts: whoever sets `listener.security.protocol.map` writes them down."""
    if "listener.security.protocol.map" in properties:
        return []
    listed = []
    for name in ("listeners", "controller.listener.names"):
        text = properties.get(name, config.ROWS[config.BROKER][name].default) or ""
        listed.append([each.strip() for each in text.split(",") if each.strip()])
    return default_protocols(*listed)


def _security_protocols(entries: list[str]) -> dict[str, str]:
    """`listener.security.protocol.map` (`NAME:PROTOCOL` entries) as listener's name to protocol."""
    protocols = {}
    for entry in entries:
        name, _, protocol = entry.partition(":")
        if not name.strip() or protocol.strip().upper() not in PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map: {entry!r} is not NAME:PROTOCOL with one of {', '.join(PROTOCOLS)}"
            )
        protocols[name.strip().upper()] = protocol.strip().upper()
    return protocols


def _split(entry: str, setting: str) -> tuple[str, tuple[str, int]]:
    name, separator, address = entry.strip().partition("://")
    if not separator or not name:
        raise ConfigError(f"{setting}: {entry!r} is not NAME://HOST:PORT")
    return name.upper(), parse_address(address, setting)
