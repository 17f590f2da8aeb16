"""The producer ids that a broker gives out: a block that the controller has assigned, and the next one when it is used
up."""

from __future__ import annotations

from pykafkad.coordinator.producer_ids import ProducerIds
from pykafkad.metadata.events import AllocateProducerIds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.server.broker import Broker
    from pykafkad.wire import messages

_ASK_AGAIN_SECONDS = 1.0


class ProducerIdBlocks:
    """`take` gives an id. Who finds none calls `ask` and waits: as a key of the purgatory this object is touched when a
    block has come."""

    __slots__ = ("_asked_at", "_broker", "_ids")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._ids = ProducerIds()
        self._asked_at: float | None = None

    def take(self) -> int | None:
        """The next unused id, or None when the block is used up."""
        return self._ids.take()

    def prepare(self) -> None:
        """Somebody will soon want an id: have some by then. Raises KafkaError."""
        if self._ids.next_id == self._ids.end_id and self._broker.node_id in self._broker.image.brokers:
            self.ask()

    def ask(self) -> None:
        """Ask the controller for a block, unless it was asked within the last second. Raises KafkaError."""
        broker = self._broker
        now = broker.runtime.now
        if self._asked_at is not None and now - self._asked_at < _ASK_AGAIN_SECONDS:
            return
        self._asked_at = now
        epoch = broker.image.brokers[broker.node_id].epoch
        try:
            broker.controller.submit(AllocateProducerIds(self, broker.node_id, epoch))
        except Exception:
            self._asked_at = None
            raise

    def deliver(self, message: messages.AllocateProducerIdsResponse) -> None:
        """The controller's answer. After a refusal, as by a controller that knows another life of this broker, the next
        request waits until a second is over."""
        if message.error_code:
            return
        self._asked_at = None
        self._ids.refill(message.producer_id_start, message.producer_id_len)
        self._broker.purgatory.touch(self)
