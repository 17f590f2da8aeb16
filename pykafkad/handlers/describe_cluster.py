"""DescribeCluster, versions 0 to 2.

The cluster's id, its brokers under the caller's listener, and a controller: any live broker, because brokers forward.
From version 1 the request asks for brokers or controllers. A broker's listener answers with brokers and a controller's
with controllers; the other kind is MISMATCHED_ENDPOINT_TYPE and anything else UNSUPPORTED_ENDPOINT_TYPE. Version 2 can
ask for fenced brokers too.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.operations import NOT_ASKED, cluster_operations
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context
    from pykafkad.handlers.controller_context import ControllerContext

BROKERS = 1
CONTROLLERS = 2
NO_CONTROLLER = -1


def handle(ctx: Context | ControllerContext, request: messages.DescribeClusterRequest) -> object:
    """The cluster as a client sees it."""
    if request.endpoint_type != (CONTROLLERS if ctx.on_controller else BROKERS):
        return _wrong_endpoint(request.endpoint_type)
    if ctx.on_controller:
        return _controllers(ctx, request)
    image = ctx.metadata
    brokers = []
    for broker_id in sorted(image.brokers):
        broker = image.brokers[broker_id]
        if ctx.listener in broker.endpoints and (not broker.fenced or request.include_fenced_brokers):
            host, port = ctx.advertised(broker_id)
            brokers.append(
                messages.DescribeClusterResponse.DescribeClusterBroker(
                    broker_id=broker_id, host=host, port=port, rack=broker.rack, is_fenced=broker.fenced
                )
            )
    alive = [row.broker_id for row in brokers if not row.is_fenced]
    operations = cluster_operations(ctx) if request.include_cluster_authorized_operations else NOT_ASKED
    return messages.DescribeClusterResponse(
        cluster_id=ctx.cluster_id,
        controller_id=alive[0] if alive else NO_CONTROLLER,
        brokers=brokers,
        cluster_authorized_operations=operations,
    )


def _controllers(ctx: ControllerContext, request: messages.DescribeClusterRequest) -> object:
    """The registered controllers, under the caller's listener."""
    rows = []
    for controller_id in sorted(ctx.metadata.controllers):
        endpoint = ctx.metadata.controllers[controller_id].endpoints.get(ctx.listener)
        if endpoint is not None:
            rows.append(
                messages.DescribeClusterResponse.DescribeClusterBroker(
                    broker_id=controller_id, host=endpoint.host, port=endpoint.port
                )
            )
    operations = cluster_operations(ctx) if request.include_cluster_authorized_operations else NOT_ASKED
    return messages.DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        cluster_id=ctx.cluster_id,
        controller_id=ctx.controller.quorum.leader_id,
        brokers=rows,
        cluster_authorized_operations=operations,
    )


def _wrong_endpoint(endpoint_type: int) -> object:
    if endpoint_type in (BROKERS, CONTROLLERS):
        own, other = ("BROKER", "CONTROLLER") if endpoint_type == CONTROLLERS else ("CONTROLLER", "BROKER")
        code = errors.MISMATCHED_ENDPOINT_TYPE
        text = f"The request was sent to an endpoint of type {own}, but we wanted an endpoint of type {other}"
    else:
        code, text = errors.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}"
    return messages.DescribeClusterResponse(
        error_code=code, error_message=text, cluster_id="", controller_id=NO_CONTROLLER
    )
