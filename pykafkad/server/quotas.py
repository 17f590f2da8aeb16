"""The client quotas of one broker: what each request costs its client, and who is throttled for how long.

Made with the first quota. A request over a quota is answered at once, with the throttle time in its answer, and its
connection is muted for that time (KIP-219). A throttled Fetch or ShareFetch is answered without records, and what it
would have got does not count. The quota of the processor time counts the time between the decoding of a request and its
answer, or the moment from which it waits.

Sessions that a quota may concern have fast paths that look at it first (`quota_fast_paths.py`). Clients without a quota
are not measured; in Kafka, what they did counts if they get one within the windows."""

from __future__ import annotations

from pykafkad.quotas.client_quota import ClientQuota
from pykafkad.quotas.rate_sensor import RateSensor
from pykafkad.quotas.token_bucket import MutationQuota, TokenBucket
from pykafkad.server.produce_fast_path import PERCENT_PER_SECOND
from pykafkad.server.quota_fast_paths import QuotaFastPaths
from pykafkad.server.session import READY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.server.broker import Broker
    from pykafkad.server.connection import Connection
    from pykafkad.server.dispatch import ServedContext
    from pykafkad.server.session import FastPath

_STRICT_SINCE = {"CreateTopics": 6, "DeleteTopics": 5, "CreatePartitions": 3}
"""The version from which on an API has an error for changes over the quota (KIP-599). What Metadata creates counts too:
over the quota it creates nothing, and the client asks again."""

_EXEMPT = ("SaslHandshake", "SaslAuthenticate", "WriteTxnMarkers")
"""Logins are no client's requests yet, and markers are brokers'."""

_INT_MAX = 2**31 - 1


class Quotas:
    """All client quotas."""

    __slots__ = ("_broker", "_fast_paths", "consumer_byte_rate", "mutation_rate", "producer_byte_rate",
                 "request_percentage", "runtime", "unlimited")  # fmt: skip

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.runtime = broker.runtime
        settings = broker.settings
        count, window_ms = settings.quota_window_num, settings.quota_window_size_seconds * 1000
        changes = settings.controller_quota_window_num, settings.controller_quota_window_size_seconds * 1000
        self.producer_byte_rate = ClientQuota(lambda bound: RateSensor(count, window_ms, bound))
        self.consumer_byte_rate = ClientQuota(lambda bound: RateSensor(count, window_ms, bound))
        # Nobody who took too much processor time is throttled for longer than a window.
        self.request_percentage = ClientQuota(lambda bound: RateSensor(count, window_ms, bound, window_ms))
        self.unlimited = RateSensor(count, window_ms, None)
        """Counts for clients with another quota than the one that is asked for."""
        self.mutation_rate = ClientQuota(lambda bound: TokenBucket(*changes, bound))
        self._fast_paths = QuotaFastPaths(self)

    @property
    def now_ms(self) -> float:
        """Monotonic milliseconds at the start of this turn."""
        return self.runtime.now * 1000

    def follow(self) -> None:
        """Take over the quotas of the image. They count from the next request on."""
        limits: dict[str, dict[Any, float]] = {}
        addresses: dict[str, float] = {}
        for key, record in self._broker.image.client_quotas.items():
            entity: Any = key[:-1]
            names = dict(entity)
            if "ip" in names:
                addresses[names["ip"]] = record.value
                continue
            limits.setdefault(record.key, {})[names.get("user"), names.get("client-id")] = record.value
        self.producer_byte_rate.set_limits(limits.get("producer_byte_rate", {}))
        self.consumer_byte_rate.set_limits(limits.get("consumer_byte_rate", {}))
        self.request_percentage.set_limits(limits.get("request_percentage", {}))
        self.mutation_rate.set_limits(limits.get("controller_mutation_rate", {}))
        self._fast_paths.forget()
        self._broker.services.quotas = self
        self._follow_addresses(addresses)
        for connection in self._broker.socket_server.connections():
            connection.session.lend_again()

    def _follow_addresses(self, limits: dict[str, float]) -> None:
        server, settings = self._broker.socket_server, self._broker.settings
        if server.address_quotas is None:
            if not limits:
                return
            from pykafkad.server.address_quotas import AddressQuotas

            window_ms = settings.quota_window_size_seconds * 1000
            server.address_quotas = AddressQuotas(self.runtime, settings.quota_window_num, window_ms)
        server.address_quotas.set_limits(limits)

    def fast_paths(self, principal: str, fast_paths: dict[int, FastPath]) -> dict[int, FastPath]:
        """These fast paths, which look at the quotas first if one may concern the principal."""
        return self._fast_paths.of(principal, fast_paths)

    def begin(self, context: ServedContext, size_bytes: int) -> None:
        """A request of that size is served from now on."""
        name = context.row.name
        session = context.connection.session
        if name in _EXEMPT or session.stage is not READY:
            return
        user, client_id, now_ms = user_of(session.principal), context.client_id or "", self.now_ms
        request = self.request_percentage.sensor(user, client_id, now_ms)
        sent = mutations = None
        if name == "Produce":
            sent = self.producer_byte_rate.sensor(user, client_id, now_ms)
        elif name in ("Fetch", "ShareFetch"):
            sent = self.consumer_byte_rate.sensor(user, client_id, now_ms)
        elif name in _STRICT_SINCE or name == "Metadata":
            bucket = self.mutation_rate.sensor(user, client_id, now_ms)
            if bucket is not None:
                mutations = MutationQuota(bucket, context.version >= _STRICT_SINCE.get(name, 0), lambda: self.now_ms)
        if not (request is None and sent is None and mutations is None):
            context.quota = RequestQuota(self, context, size_bytes, request, sent, mutations)

    def throttle(self, connection: Connection, throttle_ms: int) -> None:
        """Mute the connection for that time."""
        connection.throttle(True)
        self.runtime.timers.set((self, connection.id), self.runtime.now + throttle_ms / 1000)

    def fired(self, connection_id: int) -> None:
        """The throttle time of a connection is over."""
        connection = self.runtime.reactor.connection(connection_id)
        if connection is not None:
            connection.throttle(False)

    def connection_lost(self, connection: Connection) -> None:
        """Nobody is throttled any more."""
        self.runtime.timers.cancel((self, connection.id))


class RequestQuota:
    """What one request costs: its sensors are None where no quota counts for the client."""

    __slots__ = ("_began", "_context", "_is_charged", "_quotas", "_request", "_sent", "_size_bytes", "_throttle_ms",
                 "mutations")  # fmt: skip

    def __init__(
        self,
        quotas: Quotas,
        context: ServedContext,
        size_bytes: int,
        request: RateSensor | None,
        sent: RateSensor | None,
        mutations: MutationQuota | None,
    ) -> None:
        self._quotas = quotas
        self._context = context
        self._size_bytes = size_bytes
        self._request = request
        self._sent = sent
        self.mutations = mutations
        """Counts the partitions that the request creates or deletes."""
        self._is_charged = False
        self._throttle_ms = 0
        self._began: float | None = quotas.runtime.clock.now() if request is not None else None

    @property
    def max_fetch_bytes(self) -> int:
        """More than this would be throttled even if the client had fetched nothing of late, and again each time that it
        asks."""
        return _INT_MAX if self._sent is None else int(min(self._sent.most_at_once, _INT_MAX))

    def throttles_fetch(self, size_bytes: int) -> bool:
        """Whether an answer of that size is over a quota. Then it must be empty, and its size does not count."""
        sent, now_ms = self._sent, self._quotas.now_ms
        self._throttle_ms = self._charge_time(now_ms)
        self._is_charged = True
        if sent is not None:
            self._throttle_ms = max(self._throttle_ms, sent.charge(size_bytes, now_ms))
            if self._throttle_ms:
                sent.record(-size_bytes, now_ms)
        return self._throttle_ms > 0

    def pause(self) -> None:
        """The request is answered, or waits from now on."""
        if self._request is not None and not self._is_charged:
            self._request.record(self._spent(), self._quotas.now_ms)

    def finish(self, message: Any) -> None:
        """The request is answered with `message`, or needs no answer (None)."""
        now_ms, throttle_ms, name = self._quotas.now_ms, self._throttle_ms, self._context.row.name
        if not self._is_charged:
            self._is_charged = True
            if message is not None:
                throttle_ms = self._charge_time(now_ms)
            if self._sent is not None and name == "Produce":
                throttle_ms = max(throttle_ms, self._sent.charge(self._size_bytes, now_ms))
        if self.mutations is not None and name in _STRICT_SINCE:
            throttle_ms = max(throttle_ms, self.mutations.throttle_ms)
        if throttle_ms:
            if hasattr(message, "throttle_time_ms"):
                message.throttle_time_ms = throttle_ms
            self._quotas.throttle(self._context.connection, throttle_ms)

    def _charge_time(self, now_ms: float) -> int:
        return 0 if self._request is None else self._request.charge(self._spent(), now_ms)

    def _spent(self) -> float:
        """The processor time since the request began, unless it has waited."""
        if self._began is None:
            return 0.0
        spent = self._quotas.runtime.clock.now() - self._began
        self._began = None
        return spent * PERCENT_PER_SECOND


def user_of(principal: str) -> str:
    """The user whom the quotas name, as `alice` of the principal `User:alice`."""
    return principal.partition(":")[2]
