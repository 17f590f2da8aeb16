"""GetTelemetrySubscriptions, version 0 (KIP-714).

The metrics that a client is to push and their interval, from the client-metrics resources that match it. A client
without an id gets one. A request before the interval is over is THROTTLING_QUOTA_EXCEEDED, unless the subscriptions
changed or the last push got UNKNOWN_SUBSCRIPTION_ID or UNSUPPORTED_COMPRESSION_TYPE. The API is answered but not
advertised, as in a Kafka without a telemetry plug-in; `pykafkad.client.telemetry.enable` advertises it.

Gaps: of Java's regular expressions only those that RE2 has too, without references and look-around.
"""

from __future__ import annotations

from pykafkad import uuids
from pykafkad.errors import KafkaError
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.context import Context

# zstd, lz4, gzip, snappy, in the order of preference.
ACCEPTED_COMPRESSION_TYPES = [4, 3, 1, 2]


def handle(ctx: Context, request: messages.GetTelemetrySubscriptionsRequest) -> object:
    """The subscription of one client instance."""
    telemetry = ctx.telemetry
    instance_id = request.client_instance_id
    if instance_id == uuids.ZERO:
        instance_id = telemetry.new_id()
    instance = telemetry.instance(ctx, bytes(instance_id))
    try:
        release = ctx.settings.release
        waits = release is not None and "GetTelemetrySubscriptions.waits_after_errors" in release.answers
        instance.check_get(ctx.now_ms, always_waits=waits)
    except KafkaError as error:
        return messages.GetTelemetrySubscriptionsResponse(error_code=error.code)
    return messages.GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=ACCEPTED_COMPRESSION_TYPES,
        push_interval_ms=instance.interval_ms,
        telemetry_max_bytes=ctx.settings.telemetry_max_bytes,
        delta_temporality=True,
        requested_metrics=instance.metrics,
    )
