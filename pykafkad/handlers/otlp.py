"""Decoding of OpenTelemetry's metrics, as clients push them (KIP-714), into plain values."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.wire import compression

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def decode(codec: int, data: bytes, max_bytes: int) -> tuple[dict[str, object], list[dict[str, object]]]:
    """The labels and the metrics of a `MetricsData` message, compressed with `codec` (0 for not at all).

    A metric has `name`, `type`, `unit`, and `points`. A point has `attributes`, `time_ms`, `start_ms`, and `value` or
    the fields of a histogram. Raises `KafkaError` for bytes that are no such message or decompress to more than
    `max_bytes`.
    """
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

    if codec:
        data = compression.decompress(codec, data, max_bytes)
    message = MetricsData()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise KafkaError(errors.INVALID_RECORD, f"not OpenTelemetry's MetricsData: {error}") from None
    labels: dict[str, object] = {}
    metrics = []
    for resource in message.resource_metrics:
        labels.update(_attributes(resource.resource.attributes))
        for scope in resource.scope_metrics:
            metrics += [_metric(metric) for metric in scope.metrics]
    return labels, metrics


def _metric(metric: Any) -> dict[str, object]:
    kind = metric.WhichOneof("data")
    plain: dict[str, object] = {"name": metric.name, "type": kind}
    if metric.unit:
        plain["unit"] = metric.unit
    if kind is None:
        return {**plain, "points": []}
    body = getattr(metric, kind)
    if kind == "sum":
        plain["monotonic"] = body.is_monotonic
    if kind in ("sum", "histogram", "exponential_histogram"):
        plain["temporality"] = {1: "delta", 2: "cumulative"}.get(body.aggregation_temporality, "unspecified")
    return {**plain, "points": [_point(point) for point in body.data_points]}


def _point(point: Any) -> dict[str, object]:
    plain: dict[str, object] = {
        "attributes": _attributes(point.attributes),
        "time_ms": point.time_unix_nano // 1_000_000,
    }
    if point.start_time_unix_nano:
        plain["start_ms"] = point.start_time_unix_nano // 1_000_000
    if hasattr(point, "as_double"):
        value = point.WhichOneof("value")
        plain["value"] = getattr(point, value) if value else None
        return plain
    plain["count"], plain["sum"] = point.count, point.sum
    for name in ("bucket_counts", "explicit_bounds"):
        if hasattr(point, name):
            plain[name] = list(getattr(point, name))
    return plain


def _attributes(pairs: Iterable[Any]) -> dict[str, object]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> object:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    inner = getattr(value, kind)
    return inner.hex() if kind == "bytes_value" else inner
