"""Whether a broker still runs whose connection for heartbeats has ended.

A process that ends, however it ends, takes its connections and its listeners with it. So a controller that loses the
connection on which it heard a broker's heartbeats tries to connect to that broker: where its system refuses that, the
broker is gone, and is fenced at once. With Kafka that takes `broker.session.timeout.ms`; so it does here for whatever
else may have happened, such as a network that is cut or a machine without power, where nobody refuses anything.

A refusal says something only where the controller reached the broker before: it tries at the first heartbeat, too. An
address that is meant for clients elsewhere is never reached, and no refusal there counts. A broker that is fenced by
mistake is unfenced by its next heartbeat."""

from __future__ import annotations

import errno
from functools import partial

from pykafkad.metadata import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

    from pykafkad.metadata.brokers import Endpoint
    from pykafkad.server.controller_node import ControllerNode
    from pykafkad.wire.messages import BrokerHeartbeatRequest

    Life = tuple[int, int]

LOOK_SECONDS = (0.005, 0.05, 0.5)
"""The times of the attempts: the listener of a process that ends may go after its connections."""

_FIRST = -1
"""The attempt at the first heartbeat."""

_WRITE = 0x4
"""EPOLLOUT: an attempt to connect is over."""


class BrokerPresence:
    """The connections of one controller on which brokers send heartbeats, by (broker id, broker epoch)."""

    __slots__ = ("_connecting", "_heard", "_is_closed", "_node", "_reached")

    def __init__(self, node: ControllerNode) -> None:
        self._node = node
        self._heard: dict[object, Life] = {}
        self._connecting: dict[Life, socket] = {}
        self._is_closed = False
        # By broker id the life, and whether a connection to it was made.
        self._reached: dict[int, tuple[Life, bool]] = {}

    def __len__(self) -> int:
        return len(self._heard)

    def heard(self, connection: object, request: BrokerHeartbeatRequest) -> None:
        """A broker has sent a heartbeat."""
        life = self._heard[connection] = request.broker_id, request.broker_epoch
        known = self._reached.get(life[0])
        if (known is None or known[0] != life) and self._endpoint(life) is not None:
            self._reached[life[0]] = life, False
            self._node.runtime.timers.set((self, (life, _FIRST)), self._node.runtime.now)

    def lost(self, connection: object) -> None:
        """A connection has ended."""
        life = self._heard.pop(connection, None)
        if life is not None and life not in self._heard.values() and self._reached.get(life[0]) == (life, True):
            self._look_later(life, 0)

    def close(self) -> None:
        """Nobody is looked at any more."""
        self._is_closed = True
        self._heard.clear()
        for life in list(self._connecting):
            self._take(life).close()

    def _look_later(self, life: Life, attempt: int) -> None:
        if attempt < len(LOOK_SECONDS):
            runtime = self._node.runtime
            runtime.timers.set((self, (life, attempt)), runtime.now + LOOK_SECONDS[attempt])

    def _endpoint(self, life: Life) -> Endpoint | None:
        """Where other brokers reach the broker in this life; None if that is over, as far as is known."""
        broker = self._node.image.brokers.get(life[0])
        if broker is None or broker.epoch != life[1]:
            return None
        name = self._node.settings.inter_broker_listener_name
        return broker.endpoints.get(name or "") or next(iter(broker.endpoints.values()), None)

    def fired(self, key: tuple[Life, int]) -> None:
        """It is time to look."""
        life, attempt = key
        endpoint = self._endpoint(life)
        if endpoint is None or life in self._connecting or self._is_closed:
            return
        addresses = self._node.runtime.reactor.network.addresses
        self._node.runtime.offload.submit(
            partial(addresses, endpoint.host, endpoint.port), partial(self._resolved, life, attempt, endpoint)
        )

    def _resolved(self, life: Life, attempt: int, endpoint: Endpoint, addresses: object) -> None:
        if not isinstance(addresses, list) or not addresses or life in self._connecting or self._is_closed:
            # A node that ends does not begin what nobody would close.
            return
        reactor = self._node.runtime.reactor
        host = "127.0.0.1" if endpoint.host == "localhost" else addresses[0]
        try:
            connecting = reactor.network.connect(host, endpoint.port)
        except OSError as error:
            self._answered(life, attempt, error.errno or 0)
            return
        try:
            reactor.watch(connecting.fileno(), lambda now: self._ended(life, attempt), _WRITE)
        except OSError:
            # Without a descriptor to spare the session's time decides.
            connecting.close()
            return
        self._connecting[life] = connecting

    def _take(self, life: Life) -> socket:
        connecting = self._connecting.pop(life)
        self._node.runtime.reactor.unwatch(connecting.fileno())
        return connecting

    def _ended(self, life: Life, attempt: int) -> None:
        connecting = self._take(life)
        code = self._node.runtime.reactor.network.connect_error(connecting)
        connecting.close()
        self._answered(life, attempt, code)

    def _answered(self, life: Life, attempt: int, code: int) -> None:
        node = self._node
        if attempt == _FIRST:
            self._reached[life[0]] = life, not code
        elif code != errno.ECONNREFUSED:
            self._look_later(life, attempt + 1)
        else:
            node.submit(events.BrokerGone(*life))
