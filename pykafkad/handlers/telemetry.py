"""Clients that push their own metrics (KIP-714): their subscriptions, and the times of their requests.

A subscription is a client-metrics resource of the image. A client instance gets the metrics of all subscriptions that
match it and the shortest of their intervals. Its subscription id is Kafka's checksum of these, so that a client which
moves from a Kafka to this broker keeps the id. An instance is forgotten when its connection ends, or after three
intervals, and at least a minute, without a request.
"""

from __future__ import annotations

from pykafkad import config, errors, uuids
from pykafkad.errors import KafkaError
from pykafkad.metadata.configs import TYPE_CLIENT_METRICS
from pykafkad.wire.batch import crc32c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from pykafkad.handlers.context import Context
    from pykafkad.metadata.image import Image
    from pykafkad.wire import messages

MAX_INSTANCES = 16384
"""Limit of the remembered client instances. Above it the least recently active one is forgotten."""

DEFAULT_INTERVAL_MS = 300_000
ALL_METRICS = "*"
COMPRESSION_TYPES = range(5)

_LEAST_EXPIRY_MS = 60_000
RESERVED_IDS = (uuids.ZERO, b"\0" * 15 + b"\1")

# Errors after which a client may ask for its subscriptions before its interval is over.
_ASK_AGAIN = (errors.UNKNOWN_SUBSCRIPTION_ID, errors.UNSUPPORTED_COMPRESSION_TYPE)


class ClientInstance:
    """One client: its subscription, and the times of its last requests (wall-clock milliseconds)."""

    __slots__ = (
        "attributes",
        "expires_ms",
        "id",
        "interval_ms",
        "last_error",
        "last_get_ms",
        "last_push_ms",
        "metrics",
        "subscription_id",
        "terminating",
        "version",
    )

    def __init__(
        self, instance_id: bytes, attributes: dict[str, str], metrics: list[str], interval_ms: int, version: int
    ) -> None:
        self.id = instance_id
        self.attributes = attributes
        self.metrics = metrics
        self.interval_ms = interval_ms
        self.version = version
        self.subscription_id = subscription_id(instance_id, metrics, interval_ms)
        self.last_get_ms = 0
        self.last_push_ms = 0
        self.last_error = errors.NONE
        self.terminating = False
        self.expires_ms = 0

    def check_get(self, now_ms: int, *, always_waits: bool = False) -> None:
        """Check that it may ask for its subscriptions now. Raises `KafkaError`."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) >= self.interval_ms:
            self.last_get_ms = now_ms
        elif always_waits or self.last_error not in _ASK_AGAIN:
            raise KafkaError(errors.THROTTLING_QUOTA_EXCEEDED)
        self.last_error = errors.NONE

    def check_push(self, request: messages.PushTelemetryRequest, max_bytes: int, now_ms: int) -> None:
        """Check that it may push this now. Raises `KafkaError`."""
        try:
            self._check_push(request, max_bytes, now_ms)
            self.last_error = errors.NONE
        except KafkaError as error:
            self.last_error = error.code
            raise
        finally:
            self.terminating = request.terminating

    def _check_push(self, request: messages.PushTelemetryRequest, max_bytes: int, now_ms: int) -> None:
        if self.terminating:
            raise KafkaError(errors.INVALID_REQUEST)
        if now_ms - self.last_push_ms >= self.interval_ms:
            self.last_push_ms = now_ms
        elif not request.terminating:
            raise KafkaError(errors.THROTTLING_QUOTA_EXCEEDED)
        if request.subscription_id != self.subscription_id:
            raise KafkaError(errors.UNKNOWN_SUBSCRIPTION_ID)
        if request.compression_type not in COMPRESSION_TYPES:
            raise KafkaError(errors.UNSUPPORTED_COMPRESSION_TYPE)
        if len(request.metrics) > max_bytes:
            raise KafkaError(errors.TELEMETRY_TOO_LARGE)


class Telemetry:
    """All client instances of a broker. `version` counts the changes of subscriptions."""

    __slots__ = ("_by_connection", "_instances", "_random", "version")

    def __init__(self, random: Random) -> None:
        self._random = random
        self._instances: dict[bytes, ClientInstance] = {}
        self._by_connection: dict[int, bytes] = {}
        self.version = 0

    def __len__(self) -> int:
        return len(self._instances)

    def new_id(self) -> bytes:
        """An unused id."""
        while True:
            value = uuids.random_uuid(self._random)
            if value not in self._instances:
                return value

    def instance(self, ctx: Context, instance_id: bytes) -> ClientInstance:
        """The instance with this id, created or updated to the present subscriptions."""
        now_ms = ctx.now_ms
        # Removed and added again, so that the first of the dict is the least recently active.
        found = self._instances.pop(instance_id, None)
        if found is None or found.expires_ms <= now_ms:
            found = self._make(instance_id, _attributes(ctx, instance_id), ctx)
        elif found.version < self.version:
            found = self._make(instance_id, found.attributes, ctx)
        found.expires_ms = now_ms + max(_LEAST_EXPIRY_MS, 3 * found.interval_ms)
        while len(self._instances) >= MAX_INSTANCES:
            del self._instances[next(iter(self._instances))]
        self._instances[instance_id] = found
        return found

    def _make(self, instance_id: bytes, attributes: dict[str, str], ctx: Context) -> ClientInstance:
        self._by_connection[ctx.connection.id] = instance_id
        metrics, interval_ms = subscribed(ctx.metadata, attributes)
        return ClientInstance(instance_id, attributes, metrics, interval_ms, self.version)

    def disconnected(self, connection_id: int) -> None:
        """Forget the instance of a connection that has ended."""
        instance_id = self._by_connection.pop(connection_id, None)
        if instance_id is not None:
            self._instances.pop(instance_id, None)


def _attributes(ctx: Context, instance_id: bytes) -> dict[str, str]:
    """The attributes of a client that a subscription's `match` may name."""
    address, _, port = ctx.connection.peer.rpartition(":")
    name, version = ctx.client_software
    return {
        "client_instance_id": uuids.to_text(instance_id),
        "client_id": ctx.client_id or "",
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": address.strip("[]"),
        "client_source_port": port,
    }


def subscribed(image: Image, attributes: dict[str, str]) -> tuple[list[str], int]:
    """The metrics (prefixes; `*` for all) and the interval of all subscriptions that match a client."""
    metrics: list[str] = []
    interval_ms = DEFAULT_INTERVAL_MS
    names = [name for kind, name in image.all_configs() if kind == TYPE_CLIENT_METRICS]
    rows = config.ROWS[config.CLIENT_METRICS]
    for name in java_set_order(names):
        values = image.configs(TYPE_CLIENT_METRICS, name)
        parsed = {
            row.name: row.parse(values[row.name]) if row.name in values else row.typed_default()
            for row in rows.values()
        }
        if _matches(parsed["match"], attributes):
            metrics += java_set_order(parsed["metrics"], of_a_list=True)
            interval_ms = min(interval_ms, parsed["interval.ms"])
    return [ALL_METRICS] if ALL_METRICS in metrics else java_set_order(metrics), interval_ms


def _matches(patterns: Iterable[str], attributes: dict[str, str]) -> bool:
    from pykafkad.settings.regular_expressions import LibraryMissing, matches

    # If an attribute has two patterns, the last counts.
    expressions = dict(pattern.split("=", 1) for pattern in patterns)
    try:
        return all(matches(expression.strip(), attributes[name.strip()]) for name, expression in expressions.items())
    except (ValueError, LibraryMissing):
        # The pattern was set on a Kafka, whose expressions are not all RE2's, or while the library was installed.
        return False


def subscription_id(instance_id: bytes, metrics: list[str], interval_ms: int) -> int:
    """Kafka's subscription id: the CRC-32C of the metrics, as Java prints a set, and the interval, mixed with Java's
    hash of the instance id."""
    crc = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    mixed = int.from_bytes(instance_id[:8], "big") ^ int.from_bytes(instance_id[8:], "big")
    value = crc ^ (mixed >> 32) ^ (mixed & 0xFFFFFFFF)
    return value - 2**32 if value >= 2**31 else value


def java_set_order(texts: Iterable[str], *, of_a_list: bool = False) -> list[str]:
    """The texts, each once, in the order of Java's HashSet, on which Kafka's subscription ids depend.

    `of_a_list` says that the set was made from a list, which gives it a larger capacity.
    """
    unique = list(dict.fromkeys(texts))
    room = 16
    while 3 * room < 4 * len(unique) or (of_a_list and room < int(len(unique) / 0.75) + 1):
        room *= 2
    return sorted(unique, key=lambda text: _java_spread_hash(text) & (room - 1))


def _java_spread_hash(text: str) -> int:
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(data), 2):
        value = (31 * value + (data[index] << 8 | data[index + 1])) & 0xFFFFFFFF
    return value ^ value >> 16
