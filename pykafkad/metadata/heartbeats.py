"""The sessions of the brokers that send heartbeats to this controller, and what each heartbeat makes of its broker.

A pure machine without records: it knows when each life of a broker was heard of last, how far each broker has read the
metadata log, and which brokers wait to shut down. None of it is in the log. A controller that becomes active gives
every unfenced broker a fresh session, as Kafka's does.

Brokers in the controller's own process send no heartbeats and are not in here: they live as long as the controller."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pykafkad.metadata.brokers import Broker
    from pykafkad.wire import messages

# The states that a heartbeat leads to (`BrokerControlState` in Kafka).
FENCED = "fenced"
UNFENCED = "unfenced"
CONTROLLED_SHUTDOWN = "controlled shutdown"
SHUTDOWN_NOW = "shutdown now"

_NEVER = float("inf")


class _Tracked:
    """What is known of one broker: the last offset of the metadata log that it has read, the offset of its registration
    record, and the offset that all others must have read before it may shut down (-1: it does not shut down)."""

    __slots__ = ("metadata_offset", "registered_at", "shutdown_offset")

    def __init__(self, registered_at: int) -> None:
        self.registered_at = registered_at
        self.metadata_offset = -1
        self.shutdown_offset = -1


class Heartbeats:
    """The sessions of an active controller. They end `session_timeout_seconds` after the last heartbeat."""

    __slots__ = ("_contacts", "_tracked", "session_timeout_seconds")

    def __init__(self, session_timeout_seconds: float) -> None:
        self.session_timeout_seconds = session_timeout_seconds
        # (broker id, broker epoch): when it was heard of last, in the order of these times.
        self._contacts: dict[tuple[int, int], float] = {}
        self._tracked: dict[int, _Tracked] = {}

    def begin(self, brokers: Iterable[Broker], now: float) -> None:
        """This controller becomes active: every broker that is not fenced gets a fresh session."""
        for broker in brokers:
            self._tracked[broker.id] = _Tracked(broker.epoch)
            if not broker.fenced:
                self.contact(broker.id, broker.epoch, now)

    def contact(self, broker_id: int, broker_epoch: int, now: float) -> None:
        """A life of a broker was heard of."""
        key = (broker_id, broker_epoch)
        self._contacts.pop(key, None)
        self._contacts[key] = now

    def is_alive(self, broker_id: int, broker_epoch: int, now: float) -> bool:
        """Whether this life of the broker has a session."""
        at = self._contacts.get((broker_id, broker_epoch))
        return at is not None and not self._is_overdue(at, now)

    def _is_overdue(self, at: float, now: float) -> bool:
        return at + self.session_timeout_seconds < now

    def take_overdue(self, now: float) -> tuple[int, int] | None:
        """The id and epoch of the broker that has been silent for longest, if for too long; its session has ended."""
        for key, at in self._contacts.items():
            if not self._is_overdue(at, now):
                return None
            del self._contacts[key]
            return key
        return None

    def next_deadline(self) -> float:
        """When the next session may be overdue; infinite without sessions. An eighth of the timeout later than that at
        most, as in Kafka, so that one check serves many sessions."""
        for at in self._contacts.values():
            return at + self.session_timeout_seconds * 1.125
        return _NEVER

    def register(self, broker_id: int, registered_at: int, *, is_new: bool) -> None:
        """A broker registered with a record at this offset; `is_new`: a new life of it, of which nothing is known."""
        if is_new or broker_id not in self._tracked:
            self._tracked[broker_id] = _Tracked(registered_at)
        else:
            self._tracked[broker_id].registered_at = registered_at

    def end_session(self, broker_id: int, broker_epoch: int) -> None:
        """This life of the broker is over; fine if it had no session."""
        self._contacts.pop((broker_id, broker_epoch), None)

    def forget(self, broker_id: int) -> None:
        """A broker is registered no more."""
        self._tracked.pop(broker_id, None)

    def is_caught_up(self, broker: Broker, request: messages.BrokerHeartbeatRequest) -> bool:
        """Whether the broker has read its own registration."""
        return request.current_metadata_offset >= self._of(broker).registered_at

    def _of(self, broker: Broker) -> _Tracked:
        known = self._tracked.get(broker.id)
        if known is None:
            known = self._tracked[broker.id] = _Tracked(broker.epoch)
        return known

    def next_state(
        self,
        broker: Broker,
        request: messages.BrokerHeartbeatRequest,
        has_leaderships: Callable[[], bool],
        brokers: dict[int, Broker],
    ) -> str:
        """What a heartbeat makes of its broker. `brokers` are all that are registered."""
        if self.is_shutting_down(broker):
            if has_leaderships() or self._of(broker).shutdown_offset > self._lowest_active_offset(brokers):
                return CONTROLLED_SHUTDOWN
            return SHUTDOWN_NOW
        if request.want_shut_down:
            if broker.fenced or request.want_fence or not has_leaderships():
                return SHUTDOWN_NOW
            return CONTROLLED_SHUTDOWN
        if request.want_fence:
            return FENCED
        return UNFENCED if not broker.fenced or self.is_caught_up(broker, request) else FENCED

    def is_shutting_down(self, broker: Broker) -> bool:
        """Whether the broker is in a controlled shutdown, and not fenced meanwhile."""
        return not broker.fenced and self._of(broker).shutdown_offset >= 0

    def _lowest_active_offset(self, brokers: dict[int, Broker]) -> float:
        """How far every broker has read that serves and stays."""
        return min(
            (
                tracked.metadata_offset
                for broker_id, tracked in self._tracked.items()
                if tracked.shutdown_offset < 0 and broker_id in brokers and not brokers[broker_id].fenced
            ),
            default=_NEVER,
        )

    def take(self, broker: Broker, request: messages.BrokerHeartbeatRequest, state: str, end_offset: int) -> None:
        """Note a heartbeat that leads to `state`. `end_offset` is the last offset of the log with its records."""
        known = self._of(broker)
        known.metadata_offset = request.current_metadata_offset
        if state in (FENCED, SHUTDOWN_NOW):
            known.shutdown_offset = -1
        elif state == CONTROLLED_SHUTDOWN and known.shutdown_offset < 0:
            known.shutdown_offset = end_offset
        if state == SHUTDOWN_NOW:
            # It sends nothing more, and its next life need not wait until this session is overdue.
            self.end_session(broker.id, broker.epoch)
