"""PushTelemetry, version 0 (KIP-714).

A client's own metrics, in OpenTelemetry's format. An invalid id, and a push after the client's last one, are
INVALID_REQUEST. A push before the interval is over is THROTTLING_QUOTA_EXCEEDED, one with changed subscriptions
UNKNOWN_SUBSCRIPTION_ID, one above `telemetry.max.bytes` TELEMETRY_TOO_LARGE. An unknown codec is
UNSUPPORTED_COMPRESSION_TYPE. Without `pykafkad.client.telemetry.enable` the metrics are dropped, as in a Kafka without
a telemetry plug-in. With it they are decoded and stored in `client-metrics.jsonl` of the data directory (`pykafkad
client-metrics` prints them); metrics that cannot be decoded are INVALID_RECORD.

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
    """Checks a push, and hands the metrics over to be stored."""
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
