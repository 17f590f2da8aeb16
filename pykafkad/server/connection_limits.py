"""How many connections a node takes: in all, at a listener, from one address, in a second, and of strangers from one
address.

All but the last are Kafka's (SocketServer's ConnectionQuotas, KIP-402, KIP-612). Who is one too many in all or at its
listener waits in the system's backlog until another one ends, and who is one too many of its address is closed at once.
When connections come faster than `max.connection.creation.rate`, their listener pauses, as long as Kafka's arithmetic
says, and the others wait in the backlog.

The listener between brokers, where there are others too, is not held up by those: what is in all counts for the others
alone, and who comes there beyond `max.connections` ends the connection of another listener that was idle for longest.
A listener without limits of its own (`listener.name.<listener>.max.connections` and the rate) has those of the broker.

A stranger is a connection that has not finished its TLS handshake, or its login. Beyond the limit of its address the
oldest stranger there is closed: those that mean it log in and stay.

Gaps: Kafka takes one connection from the backlog before it waits, which costs its client nothing but gives it no answer
either; rates of single addresses are in `address_quotas.py`."""

from __future__ import annotations

from collections import deque

from pykafkad.settings.of_listener import ListenerSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.config import Settings
    from pykafkad.server.connection import Connection
    from pykafkad.server.listeners import Listener
    from pykafkad.server.tls_endpoint import TlsEndpoint

UNLIMITED = 2**31 - 1

_LEAST_SECONDS = 0.001


class _OfListener:
    """The limits of one listener, and how many connections it has."""

    __slots__ = ("count", "is_between_brokers", "max_connections", "rate", "rate_limit")

    def __init__(self) -> None:
        self.count = 0
        self.max_connections = UNLIMITED
        self.rate_limit = UNLIMITED
        self.rate = ConnectionRate(11, 1)
        self.is_between_brokers = False

    def follow(self, settings: Settings, listener: Listener) -> None:
        """Take the limits from the settings as they are now."""
        read = ListenerSettings(settings, listener.name)
        self.max_connections = read.value("max.connections")
        self.rate_limit = read.value("max.connection.creation.rate")
        named = settings.inter_broker_listener_name or settings.security_inter_broker_protocol
        self.is_between_brokers = listener.name.upper() == named.upper()
        windows = (settings.quota_window_num, settings.quota_window_size_seconds)
        if windows != self.rate.windows:
            self.rate = ConnectionRate(*windows)


class ConnectionLimits:
    """The limits of one node, and the counts that they are compared with. Addresses are texts as in the `peer` of a
    connection, without the port."""

    __slots__ = (
        "_addresses",
        "_counts",
        "_exempt",
        "_limits",
        "_listeners",
        "_overrides",
        "_per_address",
        "_rate",
        "_rate_limit",
        "_strangers",
        "count",
        "max_connections",
        "strangers_per_address",
    )

    def __init__(self, max_connections: int) -> None:
        self.max_connections = max_connections
        """How many there may be in all."""
        self.count = 0
        """How many there are."""
        self._listeners: dict[Listener, _OfListener] = {}
        self.strangers_per_address = UNLIMITED
        """How many of one address may be there before they have logged in."""
        self._per_address = UNLIMITED
        self._overrides = ""
        self._addresses: dict[str, list[str]] = {}
        """Of the names in the overrides."""
        self._limits: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        self._strangers: dict[str, dict[int, tuple[Connection, TlsEndpoint | None]]] = {}
        self._rate_limit = UNLIMITED
        self._rate = ConnectionRate(11, 1)
        self._exempt: set[Listener] = set()

    def add(self, listener: Listener, settings: Settings | None) -> None:
        """Connections may come to the listener from now on; without settings it has no limits of its own. Raises
        ConfigError for limits that are no numbers."""
        of_listener = self._listeners[listener] = _OfListener()
        if settings is not None:
            of_listener.follow(settings, listener)

    def exempt(self, listener: Listener) -> None:
        """The listener's connections do not count: nobody from outside of this process can have one."""
        self._exempt.add(listener)

    def follow(self, settings: Settings, addresses: Callable[[str, int], list[str]]) -> list[str]:
        """Take the limits from the settings as they are now. `addresses(name, 0)` resolves a name, and raises OSError;
        it holds the loop, and is asked only about overrides that were not there before. Returns the names that it does
        not know."""
        self.max_connections = settings.max_connections
        self.strangers_per_address = settings.pykafkad_unauthenticated_connections_max_per_ip
        self._per_address = settings.max_connections_per_ip
        self._rate_limit = settings.max_connection_creation_rate
        for listener, of_listener in self._listeners.items():
            of_listener.follow(settings, listener)
        rate = (settings.quota_window_num, settings.quota_window_size_seconds)
        if rate != self._rate.windows:
            self._rate = ConnectionRate(*rate)
        if settings.max_connections_per_ip_overrides == self._overrides:
            return []
        self._overrides = settings.max_connections_per_ip_overrides
        return self._resolve(addresses)

    def _resolve(self, addresses: Callable[[str, int], list[str]]) -> list[str]:
        """Find the addresses of the overrides. A name that is not found now keeps the addresses that it had."""
        before, self._addresses, self._limits = self._addresses, {}, {}
        unknown = []
        for item in self._overrides.split(","):
            name, _, count = item.strip().rpartition(":")
            if not name:
                continue
            try:
                found = addresses(name.strip().strip("[]"), 0)
            except OSError:
                if name not in before:
                    unknown.append(name)
                    continue
                found = before[name]
            self._addresses[name] = found
            for each in found:
                self._limits[f"[{each}]" if ":" in each else each] = int(count)
        return unknown

    def refusal(self, address: str) -> dict[str, object] | None:
        """Why one more connection from an address is closed: reason and limit, or None."""
        limit = self._limits.get(address, self._per_address)
        if self._counts.get(address, 0) >= limit:
            return {"reason": "max.connections.per.ip", "limit": limit}
        return None

    def is_protected(self, listener: Listener) -> bool:
        """Whether it is the listener between brokers, and there are others."""
        of_listener = self._listeners.get(listener)
        return of_listener is not None and of_listener.is_between_brokers and len(self._listeners) > 1

    def full(self, listener: Listener) -> dict[str, object] | None:
        """Why one more connection of the listener has to wait: reason and limit, or None."""
        of_listener = self._listeners.get(listener)
        if of_listener is not None and of_listener.count >= of_listener.max_connections:
            return {"reason": "max.connections of the listener", "limit": of_listener.max_connections}
        if self.count >= self.max_connections and not self.is_protected(listener):
            return {"reason": "max.connections", "limit": self.max_connections}
        return None

    def excess(self, connections: list[Connection]) -> list[Connection]:
        """Those of all connections that are too many, idle for longest: some came to the listener between brokers, or
        the limit was lowered. Nobody's there is among them."""
        over = self.count - self.max_connections
        if over <= 0:
            return []
        others = [
            each for each in connections if not self.is_protected(each.listener) and each.listener not in self._exempt
        ]
        return sorted(others, key=lambda each: each.transport.last_active)[:over]

    def opened(self, connection: Connection) -> None:
        """A connection is served from now on."""
        if connection.listener in self._exempt:
            return
        address = address_of(connection)
        self._counts[address] = self._counts.get(address, 0) + 1
        self._count(connection.listener, 1)

    def _count(self, listener: Listener, change: int) -> None:
        self.count += change
        of_listener = self._listeners.get(listener)
        if of_listener is not None:
            of_listener.count += change

    def closed(self, connection: Connection) -> None:
        """It is not any more."""
        if connection.listener in self._exempt:
            return
        self._count(connection.listener, -1)
        address = address_of(connection)
        left = self._counts.get(address, 0) - 1
        if left > 0:
            self._counts[address] = left
        else:
            self._counts.pop(address, None)
        strangers = self._strangers.get(address)
        if strangers is not None and strangers.pop(connection.id, None) is not None and not strangers:
            del self._strangers[address]

    def met(self, connection: Connection, tls: TlsEndpoint | None) -> None:
        """A connection of a listener with TLS or SASL: a stranger until it is known."""
        address = address_of(connection)
        strangers = self._strangers.setdefault(address, {})
        if len(strangers) >= self.strangers_per_address:
            for each in [each for each, its_tls in strangers.values() if not _is_stranger(each, its_tls)]:
                del strangers[each.id]
            if len(strangers) >= self.strangers_per_address:
                oldest, _ = strangers.pop(next(iter(strangers)))
                oldest.close(f"more than {self.strangers_per_address} connections of its address have not logged in")
        strangers[connection.id] = connection, tls

    def pause_seconds(self, listener: Listener, now: float) -> float:
        """One more connection came to the listener: how long nobody is to be taken there."""
        pause = 0.0
        if self._rate_limit < UNLIMITED and not self.is_protected(listener):
            pause = self._rate.record(now, self._rate_limit)
        of_listener = self._listeners.get(listener)
        if of_listener is not None and of_listener.rate_limit < UNLIMITED:
            pause = max(pause, of_listener.rate.record(now, of_listener.rate_limit))
        return pause


class ConnectionRate:
    """Connections a second, over the `windows` (number, seconds) that have passed last: Kafka's Rate."""

    __slots__ = ("_samples", "windows")

    def __init__(self, count: int, seconds: int) -> None:
        self.windows = (count, seconds)
        # Each is its start, its last event, and how many there were. One more than counts may reach into the time
        # that is looked at.
        self._samples: deque[list[float]] = deque(maxlen=count + 1)

    def record(self, now: float, limit: float) -> float:
        """One more at the second `now`. How long to wait until the rate is back at the limit: a window at most."""
        samples = self._samples
        count, seconds = self.windows
        if not samples or now - samples[-1][0] >= seconds:
            samples.append([now, now, 0])
        samples[-1][1] = now
        samples[-1][2] += 1
        while now - samples[0][1] >= count * seconds:
            samples.popleft()
        elapsed = now - samples[0][0]
        full = int(elapsed / seconds)
        if full < count - 1:
            elapsed += (count - 1 - full) * seconds
        elapsed = max(elapsed, _LEAST_SECONDS)
        if limit <= 0:
            # In Kafka's arithmetic it takes for ever.
            return seconds
        rate = sum(each[2] for each in samples) / elapsed
        return min((rate - limit) / limit * elapsed, seconds) if rate > limit else 0.0


def address_of(connection: Connection) -> str:
    """The address of a connection's peer, without the port."""
    return connection.peer.rpartition(":")[0]


def _is_stranger(connection: Connection, tls: TlsEndpoint | None) -> bool:
    """Whether nobody knows yet who is at the other end."""
    login = connection.session.login
    return (tls is not None and tls.is_shaking(connection)) or (login is not None and not login.has_succeeded)
