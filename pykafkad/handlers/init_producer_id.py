"""InitProducerId, versions 0 to 5.

Gives an idempotent producer an id, with epoch 0, that no other producer of the cluster has or had. From version 3 a
producer may name its old id; without a transactional id that changes nothing.

Gaps: transactions are not offered yet. A transactional id is UNSUPPORTED_VERSION, which clients show at once as a fatal
error; with a retriable error they would retry until they time out. librdkafka retries in any case and is refused
earlier, by FindCoordinator.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
MAX_WAIT_SECONDS = 5.0

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable
    from typing import Protocol

    from pykafkad.handlers.context import Context

    class ProducerIds(Hashable, Protocol):
        """The ids that this broker may give out."""

        def take(self) -> int | None:
            """The next unused id, or None."""

        def ask(self) -> None:
            """Ask the controller for more ids."""


_IDEMPOTENT_WRITE, _WRITE_TRANSACTIONAL_ID = RULES["InitProducerId"]


def handle(ctx: Context, request: messages.InitProducerIdRequest) -> object:
    error_code = _refusal(ctx, request)
    if error_code:
        return messages.InitProducerIdResponse(error_code=error_code, producer_epoch=NO_PRODUCER_EPOCH)
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
    return errors.NONE if request.transactional_id is None else errors.UNSUPPORTED_VERSION
