"""InitProducerId, versions 0 to 5.

Gives an idempotent producer an id, with epoch 0, that no other producer of the cluster has or had. From version 3 a
producer may name its old id; without a transactional id that changes nothing.

With a transactional id the producer gets the id of that transactional id and an epoch above all earlier ones, which
fences them; their open transaction is aborted first, and the answer is CONCURRENT_TRANSACTIONS meanwhile. A producer
that names its id and epoch goes on after an error, if no other took over (KIP-360), else it is PRODUCER_FENCED, or
INVALID_PRODUCER_EPOCH before version 4. Used-up epochs give a new id.

Gaps: none. (Version 6, two-phase commit of KIP-939, is not stable in Kafka 4.3.)
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
MAX_WAIT_SECONDS = 5.0
_KNOWS_FENCED_SINCE = 4

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Protocol

    from pykafkad.handlers.context import Context

    class ProducerIds(Hashable, Protocol):
        """The ids that this broker may give out."""

        def take(self) -> int | None:
            """The next unused id, or None."""

        def prepare(self) -> None:
            """Ask the controller for ids if none are left."""

        def ask(self) -> None:
            """Ask the controller for more ids."""


_IDEMPOTENT_WRITE, _WRITE_TRANSACTIONAL_ID = RULES["InitProducerId"]


def handle(ctx: Context, request: messages.InitProducerIdRequest) -> object:
    error_code = _refusal(ctx, request)
    if error_code:
        return messages.InitProducerIdResponse(error_code=error_code, producer_epoch=NO_PRODUCER_EPOCH)
    if request.transactional_id is not None:
        from pykafkad.coordinator.transaction_events import InitProducerId

        event = InitProducerId(ctx.token, request, ctx.version >= _KNOWS_FENCED_SINCE)
        return ctx.transactions.submit(request.transactional_id, event)
    producer_ids = ctx.producer_ids
    producer_id = producer_ids.take()
    if producer_id is None:
        if ctx.node_id not in ctx.metadata.brokers:
            # This broker is unregistered, so the controller gives it no ids.
            return _without_ids()
        producer_ids.ask()
        producer_id = producer_ids.take()
    if producer_id is None:
        return DelayedInitProducerId(producer_ids, ctx.now + MAX_WAIT_SECONDS)
    return messages.InitProducerIdResponse(producer_id=producer_id)


class DelayedInitProducerId:
    """Waits until the controller has assigned a block of producer ids. At the deadline the client is told to ask
    again."""

    __slots__ = ("_producer_ids", "deadline", "keys")

    ends_early = False

    def __init__(self, producer_ids: ProducerIds, deadline: float) -> None:
        self._producer_ids = producer_ids
        self.deadline = deadline
        self.keys = (producer_ids,)

    def __repr__(self) -> str:
        return f"DelayedInitProducerId(until {self.deadline})"

    def attempt(self, now: float) -> messages.InitProducerIdResponse | None:
        """The answer if an id is left; other requests may have taken them all."""
        producer_id = self._producer_ids.take()
        if producer_id is None:
            self._producer_ids.ask()
            return None
        return messages.InitProducerIdResponse(producer_id=producer_id)

    def expire(self, now: float) -> messages.InitProducerIdResponse:
        """The answer that makes a client ask again."""
        return _without_ids()


def _without_ids() -> messages.InitProducerIdResponse:
    return messages.InitProducerIdResponse(
        error_code=errors.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=NO_PRODUCER_EPOCH
    )


def _refusal(ctx: Context, request: messages.InitProducerIdRequest) -> int:
    if request.transactional_id is not None:
        if not may(ctx, _WRITE_TRANSACTIONAL_ID, request.transactional_id):
            return _WRITE_TRANSACTIONAL_ID.error
    elif not may(ctx, _IDEMPOTENT_WRITE):
        return _IDEMPOTENT_WRITE.error
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return errors.INVALID_REQUEST
    if request.transactional_id == "":
        return errors.INVALID_REQUEST
    if request.transactional_id is None:
        return errors.NONE
    if not 0 < request.transaction_timeout_ms <= ctx.settings.transaction_max_timeout_ms:
        return errors.INVALID_TRANSACTION_TIMEOUT
    return ctx.transactions.error_for(request.transactional_id)
