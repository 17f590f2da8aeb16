"""InitProducerId, versions 0 to 5.

Gives an idempotent producer an id that no other producer of the cluster has or ever had, with epoch 0. From version 3 a
producer may name the id it had; without a transactional id that changes nothing.

Gaps: transactions are not offered yet. A transactional id is answered with UNSUPPORTED_VERSION, which clients show at
once as a fatal error; a retriable one would have them ask until they time out. librdkafka, which asks on, is told
before: FindCoordinator."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.operations import CLUSTER_NAME
from pykafkad.wire import messages

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: object) -> object:
    error_code = _refusal(ctx, request)
    if error_code:
        return messages.InitProducerIdResponse(error_code=error_code, producer_epoch=NO_PRODUCER_EPOCH)
    producer_ids = ctx.producer_ids
    producer_id = producer_ids.take()
    if producer_id is not None:
        return messages.InitProducerIdResponse(producer_id=producer_id)
    from pykafkad.metadata.events import AllocateProducerIds

    def respond(first_id: int, count: int) -> object:
        producer_ids.refill(first_id, count)
        return messages.InitProducerIdResponse(producer_id=producer_ids.take())

    broker = ctx.metadata.brokers.get(ctx.node_id)
    if broker is None:
        # The controller was told to forget this broker, and gives it nothing any more.
        return messages.InitProducerIdResponse(
            error_code=errors.COORDINATOR_LOAD_IN_PROGRESS, producer_epoch=NO_PRODUCER_EPOCH
        )
    return ctx.controller.submit(AllocateProducerIds(ctx.token, ctx.node_id, broker.epoch, respond))


def _refusal(ctx: Context, request: object) -> int:
    if request.transactional_id is not None:
        if not ctx.allowed("Write", "TransactionalId", request.transactional_id):
            return errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not ctx.allowed("IdempotentWrite", "Cluster", CLUSTER_NAME):
        return errors.CLUSTER_AUTHORIZATION_FAILED
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return errors.INVALID_REQUEST
    if request.transactional_id == "":
        return errors.INVALID_REQUEST
    return errors.NONE if request.transactional_id is None else errors.UNSUPPORTED_VERSION
