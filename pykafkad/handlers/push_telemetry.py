"""PushTelemetry, version 0 (KIP-714).

A client's own metrics, in OpenTelemetry's format. INVALID_REQUEST for an id that none can have and after a push that
said it was the last, THROTTLING_QUOTA_EXCEEDED before the interval is over, UNKNOWN_SUBSCRIPTION_ID when the
subscriptions have changed, UNSUPPORTED_COMPRESSION_TYPE, and TELEMETRY_TOO_LARGE above `telemetry.max.bytes`. Without
`pykafkad.client.telemetry.enable` the metrics are dropped, as Kafka without a telemetry plug-in drops them. With it
they are decoded and kept in `client-metrics.jsonl` of the data directory (`pykafkad client-metrics` prints it), and
what cannot be decoded is INVALID_RECORD.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.telemetry import RESERVED_IDS
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context


def handle(ctx: Context, request: messages.PushTelemetryRequest) -> object:
    """Checks a push, and hands it to whoever keeps it."""
    try:
        if request.client_instance_id in RESERVED_IDS:
            raise KafkaError(errors.INVALID_REQUEST)
        instance = ctx.telemetry.instance(ctx, bytes(request.client_instance_id))
        instance.check_push(request, ctx.settings.telemetry_max_bytes, ctx.now_ms)
        if request.metrics and ctx.settings.pykafkad_client_telemetry_enable:
            return ctx.client_metrics.keep(ctx.token, instance, request)
    except KafkaError as error:
        return messages.PushTelemetryResponse(error_code=error.code)
    return messages.PushTelemetryResponse()
