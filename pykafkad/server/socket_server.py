"""The network side of one node: its listeners, its connections by their ids, and their limits.

The reactor, which several nodes may share, carries the bytes. What a node is told of its peers comes from here: whole
frames (`serve`), a frame behind a request that waits (`overtaken`), and ends (`lost`)."""

from __future__ import annotations

from pykafkad.server.binding import address_text, host_text
from pykafkad.server.connection import Connection
from pykafkad.server.connection_limits import ConnectionLimits
from pykafkad.server.frame_buffers import FrameBuffers
from pykafkad.server.peer_lines import PeerLines
from pykafkad.server.transport import PlainTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from socket import socket
    from typing import Any, Protocol

    from pykafkad.config import Settings
    from pykafkad.server.address_quotas import AddressQuotas
    from pykafkad.server.listeners import Listener
    from pykafkad.server.logins import Logins
    from pykafkad.server.logs import Logs
    from pykafkad.server.metrics import Metrics
    from pykafkad.server.reactor import Reactor
    from pykafkad.server.session import Sessions
    from pykafkad.server.tls_endpoint import TlsEndpoint
    from pykafkad.server.tls_renewal import TlsRenewal

    class Served(Protocol):
        """The node whose sockets these are."""

        logs: Logs
        metrics: Metrics
        sessions: Sessions

        def serve(self, connection: Connection, view: memoryview, start: int, end: int) -> None:
            """Serve the frame `view[start:end]`."""

        def end_early(self, connection: Connection) -> None:
            """A frame stands behind the request of `connection` that waits for news."""

        def connection_lost(self, connection: Connection) -> None:
            """Nobody waits for its answers any more."""


_ACCEPTS_PER_TURN = 128
_ACCEPT_PAUSE_SECONDS = 0.2
_IDLE_SCAN_SECONDS = 15.0


class SocketServer:
    """The listeners and connections of one node, on a reactor that it may share."""

    def __init__(
        self, node: Served, reactor: Reactor, *, max_frame_bytes: int, idle_seconds: float, max_connections: int
    ) -> None:
        self.serve: Callable[[Connection, memoryview, int, int], None] = node.serve
        self.overtaken = node.end_early
        self.next_tick = 0.0
        """The monotonic second of the next look for idle connections, or of the end of a pause in accepting."""
        self._node = node
        self._reactor = reactor
        self.peer_lines = PeerLines(node.logs)
        self._max_frame_bytes = max_frame_bytes
        self._idle_seconds = idle_seconds
        self.limits = ConnectionLimits(max_connections)
        self._connections: dict[int, Connection] = {}
        self._listeners: list[tuple[socket, Listener]] = []
        self.logins: dict[Listener, Logins] = {}
        """Of the listeners with SASL."""
        self._tls: dict[Listener, TlsEndpoint] = {}
        """Of the listeners that encrypt."""
        self.tls_renewal: TlsRenewal | None = None
        """What renews their certificates, where there are any."""
        self.address_quotas: AddressQuotas | None = None
        """How many connections addresses may open; None where no quota has been set."""
        self.frame_buffers = FrameBuffers()
        self._next_idle_scan = 0.0
        self._paused_until: dict[Listener, float] = {}
        """The listeners at which connections came too fast."""
        self._full: set[Listener] = set()
        """Those that wait until a connection ends."""
        self._settings: Settings | None = None
        reactor.begin_ticking(self)

    @classmethod
    def of(cls, node: Served, reactor: Reactor, settings: Settings) -> SocketServer:
        """With the limits of the node's settings."""
        idle_ms = settings.connections_max_idle_ms
        server = cls(
            node,
            reactor,
            max_frame_bytes=settings.socket_request_max_bytes,
            idle_seconds=idle_ms / 1000 if idle_ms >= 0 else float("inf"),
            max_connections=settings.max_connections,
        )
        server._limit(settings)
        return server

    def _limit(self, settings: Settings) -> None:
        self._settings = settings
        unknown = self.limits.follow(settings, self._reactor.network.addresses)
        if unknown:
            reason = f"max.connections.per.ip.overrides: no address is known for {', '.join(unknown)}"
            self._node.logs.warning("server", "limits-not-known", reason=reason)
        self._close_excess()
        self._look_again()

    def __len__(self) -> int:
        return len(self._connections)

    # --- listening ----------------------------------------------------------------------------------------------

    def listen(
        self,
        host: str,
        port: int,
        listener: Listener,
        *,
        send_buffer_bytes: int | None,
        backlog: int,
        receive_buffer_bytes: int = -1,
        tls: TlsEndpoint | None = None,
    ) -> int:
        """Bind every address of `host` (all of them when empty) to one port and return it; 0 picks a free port. For
        the buffers see `bind_all`. With `tls` connections are encrypted. Raises OSError with the address in its
        text.
        """
        if tls is not None:
            self._tls[listener] = tls
            self._reactor.begin_ticking(tls)
        self.limits.add(listener, self._settings)
        for each in self._reactor.network.bind_all(host, port, send_buffer_bytes, backlog, receive_buffer_bytes):
            port = each.getsockname()[1]
            self._listeners.append((each, listener))
            self._watch(each, listener)
        return port

    def _watch(self, bound: socket, listener: Listener) -> None:
        self._reactor.watch(bound.fileno(), lambda now: self._accept(bound, listener, now))

    def check_live_settings(self, live: Mapping[str, str]) -> None:
        """Raises KafkaError unless the listeners can go on with `live` in place of this broker's live settings."""
        if self.tls_renewal is not None:
            self.tls_renewal.check(live)

    def settings_changed(self, settings: Settings, *, are_own: bool) -> None:
        """Live settings were set, be it to what they were, those of this broker if they `are_own`."""
        self._limit(settings)
        if are_own and self.tls_renewal is not None:
            self.tls_renewal.renew()

    def share_out(self, sharers: int) -> None:
        """What strangers may hold in all counts for so many clusters of the process: each has its share of it."""
        for tls in self._tls.values():
            tls.sharers = sharers
        for logins in self.logins.values():
            logins.bytes_taken.sharers = sharers

    def stop_listening(self) -> None:
        """Refuse new connections from now on."""
        for bound, _ in self._listeners:
            self._reactor.unwatch(bound.fileno())
            bound.close()
        self._listeners.clear()
        if self.address_quotas is not None:
            self.address_quotas.close()

    def _accept(self, bound: socket, listener: Listener, now: float) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            why = self.limits.full(listener)
            if why is not None:
                self._node.logs.info_once("server", "connections-wait", listener=str(listener), **why)
                self._full.add(listener)
                self._look_away(listener)
                return
            try:
                accepted, address = bound.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if isinstance(error, ConnectionError):
                    continue
                # Out of descriptors: without a pause the listener would stay readable and the loop would spin.
                self._node.logs.warning("server", "accept-failed", reason=error.strerror)
                for _, each in self._listeners:
                    self._pause_accepting(each, now + _ACCEPT_PAUSE_SECONDS)
                return
            why = self._refusal(accepted, address)
            if why is not None:
                self._node.metrics.connections_refused += 1
                self._tell_refused(address, **why)
                accepted.close()
                continue
            if self.address_quotas is not None and self.address_quotas.refuses(accepted, address[0]):
                self._node.metrics.connections_refused += 1
                continue
            try:
                accepted.setblocking(False)
                self._take(accepted, address, listener)
            except OSError as error:
                # Its peer has gone, which some systems tell only now, or no more descriptors can be waited for.
                self._node.metrics.connections_refused += 1
                self._tell_refused(address, reason=error.strerror)
                accepted.close()
                continue
            self._close_excess()
            pause = self.limits.pause_seconds(listener, now)
            if pause:
                self._pause_accepting(listener, now + pause)
                return

    def _refusal(self, accepted: socket, address: tuple[Any, ...]) -> dict[str, object] | None:
        """Why a connection that was accepted can't be kept; None if it can."""
        return self.limits.refusal(host_text(address)) or self._reactor.network.refusal(
            accepted.fileno(), len(self._connections)
        )

    def _pause_accepting(self, listener: Listener, until: float) -> None:
        self._paused_until[listener] = max(until, self._paused_until.get(listener, until))
        self._look_away(listener)
        self._plan_tick()

    def hold_connections(self) -> None:
        """Accept nobody until `accept_connections`; who connects waits in the listener's queue."""
        for _, listener in self._listeners:
            self._paused_until[listener] = float("inf")
            self._look_away(listener)

    def accept_connections(self) -> None:
        """The end of `hold_connections`."""
        self._paused_until.clear()
        self._look_again()

    def _look_away(self, listener: Listener) -> None:
        for bound, each in self._listeners:
            if each is listener:
                self._reactor.pause(bound.fileno(), True)

    def _look_again(self) -> None:
        """Accept where a listener is not paused any more, or has room again."""
        now = self._reactor.runtime.now
        self._full = {each for each in self._full if self.limits.full(each) is not None}
        for each in [each for each, until in self._paused_until.items() if now >= until]:
            del self._paused_until[each]
        for bound, listener in self._listeners:
            if listener not in self._full and listener not in self._paused_until:
                self._reactor.pause(bound.fileno(), False)

    def _close_excess(self) -> None:
        """Make room for those of the listener between brokers, and for a limit that was lowered."""
        for each in self.limits.excess(self.connections()) if self.limits.count > self.limits.max_connections else ():
            reason = f"more than max.connections {self.limits.max_connections}"
            self._reactor.drop_connection(each, reason)
            self.peer_lines.refused(self._reactor.runtime.now, "connection-closed", each.peer, reason)

    def _tell_refused(self, address: tuple[Any, ...], **why: Any) -> None:
        self.peer_lines.refused(self._reactor.runtime.now, "connection-refused", address_text(address), **why)

    def _take(self, accepted: socket, address: tuple[Any, ...], listener: Listener) -> Connection:
        reactor = self._reactor
        connection = self._connection(address_text(address))
        session = self._node.sessions.open(listener, connection.peer)
        connection.accepted(listener, accepted.getsockname()[:2], session)
        logins = self.logins.get(listener)
        if logins is not None:
            logins.begin(connection)
        tls = self._tls.get(listener)
        reactor.add(accepted, connection, PlainTransport if tls is None else tls.transport)
        self._opened(connection)
        if tls is not None or logins is not None:
            self.limits.met(connection, tls)
        return connection

    def _connection(self, peer: str) -> Connection:
        return Connection(self._reactor.next_connection_id(), peer, self, self._max_frame_bytes, self.frame_buffers)

    def _opened(self, connection: Connection) -> None:
        self._connections[connection.id] = connection
        self.limits.opened(connection)
        self._node.metrics.connections_accepted += 1

    def adopt_local(self, there: socket, listener: Listener) -> None:
        """Serve a broker of this process, which has the other end of a pair of sockets. Raises OSError."""
        from pykafkad.server.local_links import LocalSession

        connection = self._connection("local:0")
        connection.accepted(listener, ("", 0), LocalSession(self._node.sessions, listener, connection.peer))
        self._reactor.add(there, connection)
        self.limits.exempt(listener)
        self._opened(connection)

    # --- connections --------------------------------------------------------------------------------------------

    def connection(self, connection_id: int) -> Connection | None:
        """The living connection of that id."""
        return self._connections.get(connection_id)

    def connections(self) -> list[Connection]:
        """All that live, in the order of their ids."""
        return list(self._connections.values())

    def sockets(self) -> list[socket]:
        """Those that listen, and those of the connections: for a forked child, which closes its copies."""
        transports: list[Any] = [each.transport for each in self.connections()]
        return [bound for bound, _ in self._listeners] + [each.socket for each in transports]

    def hand_over(self, connection: Connection) -> socket:
        """Let go of a connection without closing it; its socket, for another server's `adopt`."""
        self._forget(connection)
        return self._reactor.remove_connection(connection)

    def _forget(self, connection: Connection) -> None:
        del self._connections[connection.id]
        self.limits.closed(connection)
        if self._full:
            self._look_again()

    def adopt(self, handed_over: socket, listener: Listener) -> Connection | None:
        """Take a socket that another server handed over; None if its peer has gone."""
        try:
            return self._take(handed_over, handed_over.getpeername(), listener)
        except OSError:
            handed_over.close()
            return None

    def close(self) -> None:
        """Close every listener and every connection."""
        self.stop_listening()
        for connection in self.connections():
            self._reactor.drop_connection(connection, "the broker stops")
        self._reactor.end_ticking(self)
        for tls in self._tls.values():
            self._reactor.end_ticking(tls)

    # --- what connections and the reactor tell --------------------------------------------------------------------

    def connected(self, connection: Connection) -> None:
        """Nobody is called from here."""

    def served_fast(self, count: int) -> None:
        """So many requests were served by fast paths."""
        self._node.metrics.requests += count

    def lost(self, connection: Connection, was_closed_here: bool) -> None:
        """A connection's transport is gone."""
        self._forget(connection)
        metrics = self._node.metrics
        metrics.connections_closed += 1
        login = connection.session.login
        refusal = None if login is None else login.refusal
        metrics.failed_authentications += refusal is not None
        metrics.frames_refused += was_closed_here
        if was_closed_here or refusal is not None:
            now = self._reactor.runtime.now
            self.peer_lines.refused(now, "connection-closed", connection.peer, refusal or connection.close_reason)
        else:
            self._node.logs.debug("server", "connection-closed", peer=connection.peer, reason=connection.close_reason)
        logins = self.logins.get(connection.listener)
        if logins is not None:
            logins.ended(connection)
        self._node.connection_lost(connection)

    def tick(self, now: float) -> None:
        """Close connections that have been idle for too long; accept again after a pause; look at the files of keys."""
        if self._paused_until and now >= min(self._paused_until.values()):
            self._look_again()
        if self.tls_renewal is not None and now >= self.tls_renewal.next_look:
            self.tls_renewal.look(now)
        if now >= self._next_idle_scan:
            self._next_idle_scan = now + min(_IDLE_SCAN_SECONDS, max(self._idle_seconds / 4, 0.05))
            if self.frame_buffers:
                self.frame_buffers.pop()
            for connection in self.connections():
                if connection.delayed is None and now - connection.transport.last_active > self._idle_seconds:
                    self._reactor.drop_connection(connection, "idle longer than connections.max.idle.ms")
        self._plan_tick()

    def _plan_tick(self) -> None:
        self.next_tick = min((self._next_idle_scan, *self._paused_until.values()))
        if self.tls_renewal is not None:
            self.next_tick = min(self.next_tick, self.tls_renewal.next_look)
        self._reactor.plan_tick(self.next_tick)
