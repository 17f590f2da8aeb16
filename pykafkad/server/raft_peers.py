"""The other members of the metadata quorum, by their ids: where each is found, and the requests to it.

A member whose host is a name may have several addresses: after a connection that failed the next one is tried, and
after the last one the name is looked up again. Names are looked up beside the loop."""

from __future__ import annotations

from pykafkad.server import peer_security
from pykafkad.server.peer import Limits, Peer
from pykafkad.server.peer_types import REFUSED, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.server.peer_types import Security
    from pykafkad.server.runtime import Runtime

    Then = Callable[[object], object]

_RECONNECT_MS = 50
_RECONNECT_MAX_MS = 500
_MAX_WAITING = 10


class _Member:
    """One member. `waiting` are requests until its name is looked up; `peer` is the connection to one address."""

    __slots__ = ("_addresses", "_is_asking", "_limits", "_runtime", "_security", "_waiting", "host", "peer", "port")

    def __init__(self, runtime: Runtime, host: str, port: int, limits: Limits, security: Security) -> None:
        self.host = host
        self.port = port
        self.peer: Peer | None = None
        self._runtime = runtime
        self._limits = limits
        self._security = security
        self._addresses: list[str] = []
        self._waiting: list[tuple[Any, Then]] = []
        self._is_asking = False

    def send(self, request: Any, then: Then) -> None:
        if self.peer is not None:
            peer = self.peer
            peer.send(request, lambda outcome: self._ended(peer, outcome, then))
        elif len(self._waiting) >= _MAX_WAITING:
            self._runtime.call_later(0.0, lambda: then(REFUSED))
        else:
            self._waiting.append((request, then))
            self._look_up()

    def _ended(self, peer: Peer, outcome: object, then: Then) -> None:
        failed = type(outcome) is Failure and not outcome.is_final
        if failed and peer is self.peer and not _is_digits(self.host):
            self.peer = None
            peer.close()
        then(outcome)

    def _look_up(self) -> None:
        if self._addresses or _is_digits(self.host):
            self._connect(self._addresses.pop(0) if self._addresses else self.host)
        elif not self._is_asking:
            self._is_asking = True
            addresses = self._runtime.reactor.network.addresses
            host, port = self.host, self.port
            self._runtime.cpu_offload.submit(lambda: addresses(host, port), self._looked_up)

    def _looked_up(self, result: object) -> None:
        self._is_asking = False
        if isinstance(result, list) and result:
            self._addresses = list(result)
            self._look_up()
        else:
            waiting, self._waiting = self._waiting, []
            for _, then in waiting:
                then(REFUSED)

    def _connect(self, address: str) -> None:
        self.peer = Peer(
            self._runtime,
            address,
            self.port,
            client_id="raft-client",
            limits=self._limits,
            security=self._security,
            host_name=self.host,
        )
        waiting, self._waiting = self._waiting, []
        for request, then in waiting:
            self.send(request, then)

    def close(self) -> None:
        peer, self.peer = self.peer, None
        if peer is not None:
            peer.close()


class RaftPeers:
    """Those of one node. `located` tells the (host, port) of a member."""

    __slots__ = ("_limits", "_members", "_runtime", "_security")

    def __init__(self, runtime: Runtime, settings: Settings) -> None:
        """Raises ConfigError for what the settings lack to reach controllers."""
        self._security = peer_security.of_controllers(settings)
        timeout_ms = settings.controller_quorum_request_timeout_ms
        self._runtime = runtime
        self._members: dict[int, _Member] = {}
        self._limits = Limits(
            request_timeout_ms=timeout_ms,
            connect_timeout_ms=timeout_ms,
            backoff_ms=_RECONNECT_MS,
            backoff_max_ms=_RECONNECT_MAX_MS,
            # Who looks for the leader asks another voter meanwhile.
            waits_for_connection=False,
        )

    def locate(self, node_id: int, host: str, port: int) -> None:
        """Requests to a node go to (host, port) from now on."""
        known = self._members.get(node_id)
        if known is None or (known.host, known.port) != (host, port):
            if known is not None:
                known.close()
            self._members[node_id] = _Member(self._runtime, host, port, self._limits, self._security)

    def located(self, node_id: int) -> tuple[str, int] | None:
        """Where a node is, as (host, port)."""
        known = self._members.get(node_id)
        return None if known is None else (known.host, known.port)

    def send(self, node_id: int, request: Any, then: Then) -> None:
        """Send a request; `then(REFUSED)` in a later turn if nobody knows where the node is."""
        known = self._members.get(node_id)
        if known is None:
            self._runtime.call_later(0.0, lambda: then(REFUSED))
        else:
            known.send(request, then)

    def close(self) -> None:
        """Send nothing more."""
        for each in self._members.values():
            each.close()
        self._members.clear()


def _is_digits(host: str) -> bool:
    """Whether a host is an address already."""
    return ":" in host or host.replace(".", "").isdecimal()
