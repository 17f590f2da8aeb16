"""Metrics that clients push (KIP-714), kept for whoever wants to see them.

`client-metrics.jsonl` in the data directory has one JSON object a line for each push: when it came, who sent it
(instance, client id, software, address), the labels of the client, and its metrics, each with its points. When the file
has reached `FILE_BYTES` it becomes `client-metrics.1.jsonl`, in the place of the one before. Opening, decoding and
writing are done off the loop."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.context import DEFERRED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.disk import Disk
    from pykafkad.handlers.telemetry import ClientInstance, Telemetry
    from pykafkad.server.broker import Broker
    from pykafkad.wire import messages


FILE_NAME = "client-metrics.jsonl"
OLD_FILE_NAME = "client-metrics.1.jsonl"
FILE_BYTES = 8 * 1024 * 1024
LINE_BYTES = 4 * 1024 * 1024
"""A push that would take a longer line is kept without its metrics, only counted."""

MAX_SOFTWARE = 100

MAX_PENDING = 64
"""Pushes that may wait to be decoded; one more is told THROTTLING_QUOTA_EXCEEDED and comes again at its next interval.
"""

_CLIENT_METRICS_CONFIG = 16


class ClientMetrics:
    """A node's clients that push, and the file that their metrics go to. What it needs is loaded when the first of them
    asks."""

    __slots__ = ("_broker", "_pending", "_software", "_telemetry")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._pending = 0
        self._software: dict[tuple[str, str], tuple[str, str]] = {}
        self._telemetry: Telemetry | None = None

    @property
    def telemetry(self) -> Telemetry:
        """Who is subscribed to what."""
        if self._telemetry is None:
            from pykafkad.handlers.telemetry import Telemetry

            self._telemetry = Telemetry(self._broker.runtime.random)
        return self._telemetry

    def shared_software(self, name: str, version: str) -> tuple[str, str]:
        """The pair, as one value for all connections that have it; beyond `MAX_SOFTWARE` different ones each has its
        own."""
        pair = (name, version)
        if len(self._software) < MAX_SOFTWARE:
            return self._software.setdefault(pair, pair)
        return self._software.get(pair, pair)

    def configs_changed(self, resources: Iterable[tuple[int, str]]) -> None:
        """These `(resource type, name)` got other settings: subscriptions among them are looked at anew."""
        if self._telemetry is not None and any(kind == _CLIENT_METRICS_CONFIG for kind, _ in resources):
            self._telemetry.version += 1

    def disconnected(self, connection_id: int) -> None:
        """A connection has ended."""
        if self._telemetry is not None:
            self._telemetry.disconnected(connection_id)

    def keep(self, token: object, instance: ClientInstance, request: messages.PushTelemetryRequest) -> object:
        """Decode and keep a push; the answer follows. DEFERRED. Raises `KafkaError` when too many wait already."""
        broker = self._broker
        if self._pending >= MAX_PENDING:
            raise KafkaError(errors.THROTTLING_QUOTA_EXCEEDED)
        push = _Push(instance, request, broker.runtime.now_ms, broker.settings.telemetry_max_bytes)
        self._pending += 1
        broker.runtime.offload.submit(
            lambda: push.keep(broker.runtime.disk, broker.directory.path),
            lambda result: self._kept(token, instance, result),
        )
        return DEFERRED

    def _kept(self, token: object, instance: ClientInstance, result: object) -> None:
        from pykafkad.wire import messages

        self._pending -= 1
        code = errors.NONE
        if isinstance(result, Exception):
            code = instance.last_error = errors.INVALID_RECORD
            self._broker.logs.warning(
                "client_metrics", "client-metrics-not-kept", client_id=instance.attributes["client_id"], reason=result
            )
        else:
            self._broker.logs.debug(
                "client_metrics", "client-metrics-kept", client_id=instance.attributes["client_id"], metrics=result
            )
        self._broker.runtime.replies.reply(token, messages.PushTelemetryResponse(error_code=code))


class _Push:
    """One push as values, for the thread that decodes it."""

    __slots__ = ("_codec", "_data", "_description", "_max_bytes")

    def __init__(
        self, instance: ClientInstance, request: messages.PushTelemetryRequest, now_ms: int, max_bytes: int
    ) -> None:
        self._codec = request.compression_type
        self._data = bytes(request.metrics)
        self._max_bytes = max_bytes
        self._description = {
            "received_ms": now_ms,
            **instance.attributes,
            "subscription_id": instance.subscription_id,
            "terminating": request.terminating,
        }

    def keep(self, disk: Disk, directory: str) -> int:
        """Write the line; the number of metrics. Raises what says that these are no metrics, or that the disk
        failed."""
        import json

        from pykafkad.handlers import otlp

        labels, metrics = otlp.decode(self._codec, self._data, self._max_bytes)
        line = json.dumps(
            {**self._description, "labels": labels, "metrics": metrics}, ensure_ascii=False, allow_nan=True
        ).encode()
        if len(line) > LINE_BYTES:
            line = json.dumps(
                {**self._description, "labels": {}, "metrics": [], "left_out": len(metrics)}, ensure_ascii=False
            ).encode()
        append_line(disk, directory, line)
        return len(metrics)


def append_line(disk: Disk, directory: str, line: bytes) -> None:
    """Add a line to the file of `directory`; a full one becomes the old one first. Raises StorageFailure."""
    path = f"{directory}/{FILE_NAME}"
    size = disk.size(path) if disk.exists(path) else 0
    if size and size + len(line) >= FILE_BYTES:
        disk.rename(path, f"{directory}/{OLD_FILE_NAME}")
        size = 0
    file = disk.open(path, create=True)
    try:
        file.pwrite(line + b"\n", size)
    finally:
        file.close()
