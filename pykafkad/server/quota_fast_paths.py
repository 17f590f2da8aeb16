"""Fast paths of sessions that a client quota may concern.

What they serve is within the quotas. A request that is over one is left to the general path, which tells the client the
throttle time. The processor time is known only afterwards, so it is the next request that learns of too much of it."""

from __future__ import annotations

from pykafkad.handlers import table
from pykafkad.server.produce_fast_path import PERCENT_PER_SECOND, ProduceFastPath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.quotas.client_quota import ClientQuota
    from pykafkad.quotas.rate_sensor import RateSensor
    from pykafkad.server.connection import Connection
    from pykafkad.server.quotas import Quotas
    from pykafkad.server.session import FastPath

    ClientSensors = tuple[RateSensor | None, RateSensor | None]
    """Of the bytes and of the processor time; None where no quota counts for the client."""

MAX_CALLERS = 2_000
"""How many callers' fast paths are remembered."""

MAX_REMEMBERED = 5_000
"""How many client ids a caller's fast path remembers."""
MAX_PREAMBLES = 100_000
"""How many preambles of Produce all callers together remember, of some 500 bytes each, 1 KB at most."""

MAX_CLIENT_ID_BYTES = 255
"""A request with a longer client id takes the general path."""

_NULL = 0xFFFF


class QuotaFastPaths:
    """The fast paths of all callers."""

    __slots__ = ("_callers", "_preambles", "_producers", "_quotas")

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._preambles = 0
        self._producers: list[ProduceFastPath] = []
        # By the caller and the fast paths that look at no quota: those, so that their id stays theirs, and the others.
        self._callers: dict[tuple[str, int], tuple[dict[int, FastPath], dict[int, FastPath]]] = {}

    def forget(self) -> None:
        """The quotas changed."""
        self._callers.clear()
        self._producers.clear()
        self._preambles = 0

    def of(self, principal: str, fast_paths: dict[int, FastPath]) -> dict[int, FastPath]:
        """These fast paths as they are, if no quota may concern the principal; else some that look at the quotas."""
        from pykafkad.server.quotas import user_of

        quotas, user = self._quotas, user_of(principal)
        kept = quotas.producer_byte_rate, quotas.consumer_byte_rate, quotas.request_percentage
        if not fast_paths or not any(each.concerns(user) for each in kept):
            return fast_paths
        key = (principal, id(fast_paths))
        known = self._callers.get(key)
        if known is None:
            if len(self._callers) >= MAX_CALLERS:
                self.forget()
            known = self._callers[key] = (fast_paths, self._new(user, fast_paths))
        return known[1]

    def _new(self, user: str, fast_paths: dict[int, FastPath]) -> dict[int, FastPath]:
        made: dict[tuple[int, FastPath], FastPath] = {}
        result: dict[int, FastPath] = {}
        for word, serve in fast_paths.items():
            key = word >> 16
            if (key, serve) not in made:
                row = table.by_key(key)
                assert row is not None
                made[key, serve] = self._metered(user, row.name, serve)
            result[word] = made[key, serve]
        return result

    def _metered(self, user: str, api: str, serve: FastPath) -> FastPath:
        client_quotas = _QuotaFastPath(self._quotas, user, api, serve)
        path = getattr(serve, "__self__", None)
        if not isinstance(path, ProduceFastPath):
            return client_quotas.serve
        metered = path.metered(client_quotas.of_producer, self._remembering)
        self._producers.append(metered)
        return metered.serve

    def _remembering(self) -> None:
        """A caller is about to remember one preamble more."""
        if self._preambles >= MAX_PREAMBLES:
            self._preambles = 0
            for each in self._producers:
                each.forget()
        self._preambles += 1


class _QuotaFastPath:
    """One API's fast path for one user."""

    __slots__ = ("_known", "_now", "_quotas", "_runtime", "_serve", "_user", "serve")

    def __init__(self, quotas: Quotas, user: str, api: str, serve: FastPath) -> None:
        self._quotas = quotas
        self._runtime = quotas.runtime
        self._now = quotas.runtime.clock.now
        self._user = user
        self._serve = serve
        # By the client id with its length before it.
        self._known: dict[bytes, ClientSensors] = {}
        self.serve: FastPath = self._fetch if api == "Fetch" else self._other

    def of_producer(self, client_id: memoryview) -> ClientSensors:
        """What counts the produce requests of a client. Raises LookupError for an id that can't be read here."""
        found = self._sensors(client_id, self._quotas.producer_byte_rate)
        if found is None:
            raise LookupError("the client id can't be read")
        sent, request = found
        if sent is None and request is not None:
            sent = self._quotas.unlimited
        return sent, request

    def _fetch(
        self, connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
    ) -> bool:
        sensors = self._sensors(view[start + 8 : end], self._quotas.consumer_byte_rate)
        if sensors is None:
            return False
        sent, request = sensors
        outbox = connection.outbox
        before = len(outbox)
        if request is None:
            is_served = self._serve(connection, view, start, end, version, correlation_id)
        else:
            is_served = self._timed(request, connection, view, start, end, version, correlation_id)
        if sent is None or not is_served:
            return is_served
        size_bytes = 0
        for chunk in outbox[before:]:
            size_bytes += len(chunk)
        if sent.charge(size_bytes, self._runtime.now * 1000):
            sent.record(-size_bytes, self._runtime.now * 1000)
            del outbox[before:]
            return False
        return True

    def _other(
        self, connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
    ) -> bool:
        sensors = self._sensors(view[start + 8 : end], None)
        if sensors is None:
            return False
        request = sensors[1]
        if request is None:
            return self._serve(connection, view, start, end, version, correlation_id)
        return self._timed(request, connection, view, start, end, version, correlation_id)

    def _timed(
        self,
        request: RateSensor,
        connection: Connection,
        view: memoryview,
        start: int,
        end: int,
        version: int,
        correlation_id: int,
    ) -> bool:
        """Serve the frame, and count the time that it takes. Nothing is served over the quota."""
        now_ms = self._runtime.now * 1000
        if request.at_most > request.safe and request.charge(0.0, now_ms):
            return False
        now = self._now
        began = now()
        is_served = self._serve(connection, view, start, end, version, correlation_id)
        request.record((now() - began) * PERCENT_PER_SECOND, now_ms)
        return is_served

    def _sensors(self, rest: memoryview, byte_rate: ClientQuota | None) -> ClientSensors | None:
        """The client's sensors; None if its id, with which `rest` begins, can't be read here."""
        if len(rest) < 2:
            return None
        length = rest[0] << 8 | rest[1]
        if length > MAX_CLIENT_ID_BYTES:
            if length != _NULL:
                return None
            length = 0
        client_id = rest[: 2 + length].tobytes()
        known = self._known.get(client_id)
        if known is None and 2 + length <= len(rest):
            known = self._look_up(client_id, byte_rate)
        return known

    def _remember(self, key: bytes, sensors: ClientSensors) -> None:
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = sensors

    def _look_up(self, client_id: bytes, byte_rate: ClientQuota | None) -> ClientSensors | None:
        try:
            name = client_id[2:].decode()
        except UnicodeDecodeError:
            return None
        quotas, now_ms = self._quotas, self._quotas.now_ms
        sent = None if byte_rate is None else byte_rate.sensor(self._user, name, now_ms)
        found = (sent, quotas.request_percentage.sensor(self._user, name, now_ms))
        self._remember(client_id, found)
        return found
