"""AlterPartition, versions 2 and 3, on a controller's listener (KIP-497).

The leader of partitions proposes other ISRs (`metadata/alter_partition.py`). Each partition has its own result; another
epoch than that of the broker's registration is STALE_BROKER_EPOCH. Version 3 has the epoch of each replica that joins
(KIP-903).

Gaps: none.
"""

from __future__ import annotations

from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION
from pykafkad.metadata.events import AlterPartition
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext


def handle(ctx: ControllerContext, request: messages.AlterPartitionRequest) -> object:
    """Submits the proposals to the controller."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.AlterPartitionResponse(error_code=CLUSTER_ACTION.error)
    return ctx.controller.submit(AlterPartition(ctx.token, request, ctx.version))
