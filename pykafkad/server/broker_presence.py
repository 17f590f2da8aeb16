"""Whether a broker still runs whose connection for heartbeats has ended.

A process that ends, however it ends, takes its connections and its listeners with it. So a controller that loses the
connection on which it heard a broker's heartbeats tries to connect to that broker: where its system refuses that, the
broker is gone, and is fenced at once. With Kafka that takes `broker.session.timeout.ms`; so it does here for whatever
else may have happened, such as a network that is cut or a machine without power, where nobody refuses anything.

A refusal says something only at the address at which the controller reached the broker before: it tries at the first
heartbeat, too. An address that is meant for clients elsewhere is never reached, and no refusal there counts. Nor does a
single one, as of a proxy that begins anew: the controller looks twice. A broker that has sent a heartbeat meanwhile
lives; one that is fenced by mistake is unfenced by its next heartbeat."""

from __future__ import annotations

import errno
from functools import partial

from pykafkad.metadata import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket
    from typing import Any

    from pykafkad.handlers.context import Connection, ReplyToken
    from pykafkad.metadata.brokers import Endpoint
    from pykafkad.server.controller_node import ControllerNode
    from pykafkad.wire.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse

    Life = tuple[int, int]
    Address = tuple[str, int]

LOOK_SECONDS = (0.005, 0.05, 0.5)
"""The times of the attempts: the listener of a process that ends may go after its connections."""

AGAIN_SECONDS = 0.05
"""The time from a refusal to the look that confirms it."""

_WRITE = 0x4
"""EPOLLOUT: an attempt to connect is over."""


class _Known:
    """A broker in one life: where a connection to it was made, if one was, and the looks since its own ended."""

    __slots__ = ("address", "attempt", "life", "was_refused")

    def __init__(self, life: Life) -> None:
        self.life = life
        self.address: Address | None = None
        self.attempt = 0
        self.was_refused = False


class _Heartbeat:
    """The token of a heartbeat: it counts when the controller has accepted it."""

    __slots__ = ("_connection", "_presence", "_request", "request_token")

    def __init__(
        self, presence: BrokerPresence, connection: Connection, request: BrokerHeartbeatRequest, token: ReplyToken
    ) -> None:
        self._presence = presence
        self._connection = connection
        self._request = request
        self.request_token = token

    def deliver(self, answer: BrokerHeartbeatResponse) -> None:
        """The controller's answer."""
        self._presence.answered(self._connection, self._request, answer.error_code)
        self._presence.replies.reply(self.request_token, answer)


class BrokerPresence:
    """The connections of one controller on which brokers send heartbeats, by (broker id, broker epoch)."""

    __slots__ = ("_connecting", "_heard", "_is_closed", "_known", "_node", "replies")

    def __init__(self, node: ControllerNode) -> None:
        self._node = node
        self.replies = node.runtime.replies
        self._heard: dict[object, Life] = {}
        self._connecting: dict[Life, socket] = {}
        self._is_closed = False
        # By broker id.
        self._known: dict[int, _Known] = {}

    def __len__(self) -> int:
        return len(self._heard)

    def token(self, connection: Connection, request: BrokerHeartbeatRequest, token: Any) -> object:
        """What stands for the heartbeat with that token until the controller answers it."""
        return _Heartbeat(self, connection, request, token)

    def answered(self, connection: Connection, request: BrokerHeartbeatRequest, code: int) -> None:
        """The controller has decided on a heartbeat."""
        is_there = self._node.runtime.reactor.connection(connection.id) is connection
        if code or not is_there or self._is_closed:
            return
        if request.broker_id == self._node.settings.node_id:
            # A broker in the process of this controller ends with it.
            return
        life = self._heard[connection] = request.broker_id, request.broker_epoch
        known = self._known.get(life[0])
        if (known is None or known.life != life) and self._endpoint(life) is not None:
            self._known[life[0]] = _Known(life)
            self._look(life, 0.0)

    def lost(self, connection: object) -> None:
        """A connection has ended."""
        life = self._heard.pop(connection, None)
        if life is None or life in self._heard.values():
            return
        known = self._known.get(life[0])
        if known is not None and known.life == life and known.address is not None:
            known.attempt, known.was_refused = 0, False
            self._look(life, LOOK_SECONDS[0])

    def close(self) -> None:
        """Nobody is looked at any more."""
        self._is_closed = True
        self._heard.clear()
        for life in list(self._connecting):
            self._take(life).close()

    def _look(self, life: Life, seconds: float) -> None:
        """Look after that time, in the place of any earlier one."""
        runtime = self._node.runtime
        runtime.timers.set((self, life), runtime.now + seconds)

    def _endpoint(self, life: Life) -> Endpoint | None:
        """Where other brokers reach the broker in this life; None if that is over, as far as is known."""
        broker = self._node.image.brokers.get(life[0])
        if broker is None or broker.epoch != life[1]:
            return None
        name = self._node.settings.inter_broker_listener_name
        return broker.endpoints.get(name or "") or next(iter(broker.endpoints.values()), None)

    def fired(self, life: Life) -> None:
        """It is time to look."""
        known, endpoint = self._known.get(life[0]), self._endpoint(life)
        if known is None or known.life != life or endpoint is None or life in self._connecting or self._is_closed:
            return
        if known.address is not None:
            if life not in self._heard.values():
                self._connect(known, known.address)
            return
        # Not on the thread of the syncs: a name server may take its time.
        addresses = self._node.runtime.reactor.network.addresses
        self._node.runtime.cpu_offload.submit(
            partial(addresses, endpoint.host, endpoint.port), partial(self._resolved, known, endpoint)
        )

    def _resolved(self, known: _Known, endpoint: Endpoint, addresses: object) -> None:
        if not isinstance(addresses, list) or not addresses or known.life in self._connecting or self._is_closed:
            # A node that ends does not begin what nobody would close.
            return
        self._connect(known, ("127.0.0.1" if endpoint.host == "localhost" else addresses[0], endpoint.port))

    def _connect(self, known: _Known, address: Address) -> None:
        reactor = self._node.runtime.reactor
        try:
            connecting = reactor.network.connect(*address)
        except OSError as error:
            self._looked(known, address, error.errno or errno.EIO)
            return
        try:
            reactor.watch(connecting.fileno(), lambda now: self._ended(known, address), _WRITE)
        except OSError:
            # Without a descriptor to spare the session's time decides.
            connecting.close()
            return
        self._connecting[known.life] = connecting

    def _take(self, life: Life) -> socket:
        connecting = self._connecting.pop(life)
        self._node.runtime.reactor.unwatch(connecting.fileno())
        return connecting

    def _ended(self, known: _Known, address: Address) -> None:
        connecting = self._take(known.life)
        code = self._node.runtime.reactor.network.connect_error(connecting)
        connecting.close()
        self._looked(known, address, code)

    def _looked(self, known: _Known, address: Address, code: int) -> None:
        if known.address is None:
            known.address = None if code else address
        elif known.life in self._heard.values():
            # It has connected anew, and lives.
            return
        elif code != errno.ECONNREFUSED:
            known.was_refused = False
            known.attempt += 1
            if known.attempt < len(LOOK_SECONDS):
                self._look(known.life, LOOK_SECONDS[known.attempt])
        elif not known.was_refused:
            known.was_refused = True
            self._look(known.life, AGAIN_SECONDS)
        else:
            self._node.submit(events.BrokerGone(*known.life))
