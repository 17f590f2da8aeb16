"""A broker's registration with the active controller of another process, and its heartbeats.

It registers with a new incarnation, tells with each heartbeat how far it has read the metadata log, is served when the
controller has unfenced it, and leaves in a controlled shutdown, in which others lead its partitions before it goes.

    STARTING ──► RECOVERY ──► RUNNING ──► LEAVING ──► GONE
     registers,   opens its    serves      the controller
     reads its    logs, asks               moves its
     registration to be served             leaderships

Of the controller's errors none ends it: it asks again with each interval, as Kafka's brokers do. A controller that does
not know the broker's epoch (STALE_BROKER_EPOCH) has unregistered it on somebody's wish: the log says so, and the broker
registers again at its next start.

Or another process has been registered with the broker's node id while this one was not heard of, as one on a copy of
its directories: what this one leads, the other leads, too. It is named, and this process stops. Kafka's brokers go on,
and may acknowledge records that nobody will find."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.metadata import features
from pykafkad.server import listeners
from pykafkad.server.peer_types import Failure
from pykafkad.server.runtime import RuntimeNode
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.metadata.image import MetadataDelta
    from pykafkad.server.broker import Broker
    from pykafkad.server.controller_channel import ControllerChannel

STARTING = "starting"
RECOVERY = "recovery"
RUNNING = "running"
LEAVING = "leaving"
GONE = "gone"

SHUTDOWN_SECONDS = 60.0
"""How long a stop waits until the controller has moved the leaderships. Kafka waits five minutes."""

_SOON_SECONDS = 0.01
_SHUTDOWN_SOON_SECONDS = 0.05
_SEND = "send"
_TIMEOUT = "timeout"


class BrokerLifecycle(RuntimeNode):
    """`start` after the broker listens, and turns. `unfenced()` is called when clients are led to the broker."""

    def __init__(self, broker: Broker, channel: ControllerChannel, unfenced: Callable[[], object]) -> None:
        settings = broker.settings
        self.state = STARTING
        self.epoch = -1
        """The broker's epoch; -1 until it is registered."""
        self._broker = broker
        self._runtime = broker.runtime
        self.channel = channel
        self._unfenced = unfenced
        self._interval = settings.broker_heartbeat_interval_ms / 1000
        # A connection of its own: a heartbeat waits behind nothing.
        self._link = channel.link("heartbeat", max(settings.broker_session_timeout_ms // 2, 1))
        self.incarnation_id = b""
        """That of this life of the broker; empty until it starts."""
        self._log_dirs: list[bytes] = []
        self._offline: list[bytes] = []
        self._cordoned: list[bytes] | None = None
        self._is_in_flight = False
        self._sends_next = False
        """Whether something came up while a request was on its way."""
        self._has_told_of_error = 0
        self._session_seconds = settings.broker_session_timeout_ms / 1000
        self._heard_at = self._runtime.now
        """When a controller has last taken a heartbeat."""
        self.ended: Callable[[], object] | None = None
        """Called once, when nothing is sent any more."""
        channel.lifecycle = self

    def start(self, incarnation_id: bytes) -> None:
        """Register. Unless that comes to pass in `initial.broker.registration.timeout.ms`, the process stops."""
        self.incarnation_id = incarnation_id
        self._log_dirs = sorted(self._broker.directories.ids())
        timeout = self._broker.settings.initial_broker_registration_timeout_ms / 1000
        self._runtime.timers.set((self, _TIMEOUT), self._runtime.now + timeout)
        self._send()

    def directories_changed(self, online: list[bytes] | None, cordoned: list[bytes] | None) -> None:
        """Directories have failed, or are to take no new replicas; None where nothing changed."""
        if online is not None:
            self._offline = [each for each in self._log_dirs if each not in online]
        if cordoned is not None:
            self._cordoned = cordoned
        if self.epoch >= 0:
            self._send_soon(0.0)

    # ---- what the controller tells by the metadata

    def metadata_changed(self, delta: MetadataDelta) -> bool:
        """A broker that was fenced while it runs, as by a controller that was refused a connection to it, is served
        again when the controller hears of it: at once, not with the next interval."""
        node_id = self._broker.node_id
        if self.state == RUNNING and node_id in delta.brokers:
            own = self._broker.image.brokers.get(node_id)
            if own is not None and own.fenced and own.epoch == self.epoch:
                self._broker.logs.warning("server", "fenced-while-running", epoch=self.epoch)
                self._send_soon(0.0)
        return False

    def after_opening(self, answer: Callable[[], object]) -> None:
        """Nothing is opened here."""
        answer()

    # ---- the stop

    def leave(self) -> None:
        """Ask the controller to move what this broker leads; GONE is the state when that is done."""
        if self.state != RUNNING:
            self._end()
        else:
            self.state = LEAVING
            self._send_soon(0.0)

    def resign(self) -> None:
        """Leave, and wait for the end of that; clients are served until then."""
        if self.state != LEAVING:
            self.leave()
        runtime = self._runtime
        deadline = runtime.clock.now() + SHUTDOWN_SECONDS
        # The loop has ended; its turns go on here.
        while self.state == LEAVING and runtime.clock.now() < deadline:
            runtime.reactor.turn(runtime.seconds_to_next_turn(deadline))
        if self.state == LEAVING:
            self._broker.logs.warning("server", "controlled-shutdown-timed-out", seconds=SHUTDOWN_SECONDS)
            self._end()

    def _end(self) -> None:
        self.state = GONE
        for key in (_SEND, _TIMEOUT):
            self._runtime.timers.cancel((self, key))
        self._link.close()
        ended, self.ended = self.ended, None
        if ended is not None:
            ended()

    def close(self) -> None:
        """Send nothing more."""
        self._end()

    # ---- requests

    def fired(self, key: str) -> None:
        """A timer is due."""
        if key == _SEND:
            self._send()
        elif self.epoch < 0:
            self._broker.logs.error(
                "server",
                "not-registered",
                seconds=self._broker.settings.initial_broker_registration_timeout_ms / 1000,
                remedy="look at the controllers: controller.quorum.bootstrap.servers names them",
            )
            self._runtime.fail("no active controller has registered this broker in time")

    def _send_soon(self, seconds: float) -> None:
        if self._is_in_flight:
            self._sends_next = seconds <= 0.0
        elif self.state != GONE:
            self._runtime.timers.set((self, _SEND), self._runtime.now + seconds)

    def _send(self) -> None:
        if self._is_in_flight or self.state == GONE:
            return
        self._is_in_flight = True
        self._sends_next = False
        if self.epoch < 0:
            self._link.send(self._registration(), self._registered, self._session_seconds)
        else:
            self._link.send(self._heartbeat(), self._heard, self._session_seconds)

    def _registration(self) -> messages.BrokerRegistrationRequest:
        request, broker = messages.BrokerRegistrationRequest, self._broker
        return request(
            broker_id=broker.node_id,
            cluster_id=broker.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                request.Listener(
                    name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
                )
                for each in listeners.endpoints(broker.listeners)
            ],
            features=[
                request.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in features.supported(self._broker.settings).items()
            ],
            rack=broker.settings.broker_rack,
            log_dirs=self._log_dirs,
            previous_broker_epoch=broker.directories.broker_epoch,
        )

    def _registered(self, outcome: Any) -> None:
        self._is_in_flight = False
        if self.state == GONE:
            return
        if type(outcome) is Failure or outcome.error_code:
            self._tell_error("registration-failed", outcome)
            self._send_soon(self._interval)
            return
        self._has_told_of_error = 0
        self._runtime.timers.cancel((self, _TIMEOUT))
        self.epoch = outcome.broker_epoch
        self._broker.logs.info("server", "registered", epoch=self.epoch)
        self._send_soon(0.0)

    def _heartbeat(self) -> messages.BrokerHeartbeatRequest:
        level = self._broker.image.features.get(features.METADATA_VERSION, 0)
        return messages.BrokerHeartbeatRequest(
            broker_id=self._broker.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._broker.image.offset,
            want_fence=self.state == STARTING,
            want_shut_down=self.state == LEAVING,
            offline_log_dirs=self._offline,
            cordoned_log_dirs=self._cordoned if level >= features.CORDONED_SINCE else None,
        )

    def _heard(self, outcome: Any) -> None:
        self._is_in_flight = False
        if self.state == GONE:
            return
        if type(outcome) is Failure or outcome.error_code:
            code = self._tell_error("heartbeat-failed", outcome)
            if code == errors.STALE_BROKER_EPOCH and self._is_replaced():
                return
            if self.state == LEAVING and self._runtime.now - self._heard_at >= self._session_seconds:
                # A controller that was active meanwhile has fenced this broker. One that has just become active gives
                # it a session's time first, as it does for every broker.
                self._broker.logs.warning("server", "controlled-shutdown-given-up", error=errors.name(code))
                self._end()
            self._send_soon(self._interval)
            return
        self._has_told_of_error = 0
        self._heard_at = self._runtime.now
        if self.state == STARTING:
            self._has_heard_at_start(outcome)
        elif self.state == RECOVERY and not outcome.is_fenced:
            self.state = RUNNING
            self._broker.logs.info("server", "unfenced", epoch=self.epoch)
            self._unfenced()
            self._send_soon(self._interval)
        elif self.state == LEAVING:
            if outcome.should_shut_down:
                self._end()
            else:
                self._send_soon(_SHUTDOWN_SOON_SECONDS)
        else:
            self._send_soon(self._interval)
        if self._sends_next:
            self._send_soon(0.0)

    def _is_replaced(self) -> bool:
        """Whether the metadata names another process as this broker. Then this one ends."""
        broker = self._broker
        registered = broker.image.brokers.get(broker.node_id)
        if registered is None or registered.epoch <= self.epoch or registered.incarnation_id == self.incarnation_id:
            return False
        peer = ", ".join(f"{each.host}:{each.port}" for each in registered.endpoints.values())
        broker.logs.error(
            "server",
            "broker-replaced",
            broker=broker.node_id,
            epoch=self.epoch,
            peer=peer,
            peer_epoch=registered.epoch,
            remedy="give each process a node.id and log.dirs of its own; two on copies of one directory lose records",
        )
        self._end()
        self._runtime.fail(f"another process, at {peer}, is registered as broker {broker.node_id}")
        return True

    def _has_heard_at_start(self, answer: messages.BrokerHeartbeatResponse) -> None:
        own = self._broker.image.brokers.get(self._broker.node_id)
        if not answer.is_caught_up or own is None or own.epoch != self.epoch:
            self._send_soon(_SOON_SECONDS)
            return
        # What is there already is opened before clients are led here.
        self.channel.begin()
        self._broker.load()
        self.state = RECOVERY
        self._send_soon(0.0)

    def _tell_error(self, event: str, outcome: Any) -> int:
        """Once for each kind of error until something succeeds: it is asked again every few seconds. The error; that of
        no answer is REQUEST_TIMED_OUT."""
        code: int = errors.REQUEST_TIMED_OUT if type(outcome) is Failure else outcome.error_code
        if code != self._has_told_of_error:
            self._has_told_of_error = code
            self._broker.logs.warning("server", event, error=errors.name(code), broker=self._broker.node_id)
        return code
