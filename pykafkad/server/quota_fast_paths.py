"""Fast paths of sessions that a client quota may concern.

What they serve is within the quotas. A request that is over one is left to the general path, which tells the client the
throttle time. The processor time is known only afterwards, so it is the next request that learns of too much of it."""

from __future__ import annotations

from pykafkad.handlers import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.quotas.client_quota import ClientQuota
    from pykafkad.quotas.rate_sensor import RateSensor
    from pykafkad.server.connection import Connection
    from pykafkad.server.quotas import Quotas
    from pykafkad.server.session import FastPath

    Sensors = tuple[RateSensor | None, RateSensor | None]
    """Of the bytes and of the processor time; None where no quota counts for the client."""

MAX_CALLERS = 2_000
"""How many callers' fast paths are remembered."""

MAX_REMEMBERED = 5_000
MAX_PREAMBLE_BYTES = 400
"""How many client ids and preambles a caller's fast path remembers, and how long a preamble may be."""

PERCENT_PER_SECOND = 100.0
"""What a second of processor time counts."""

MAX_CLIENT_ID_BYTES = 255
"""A request with a longer client id takes the general path."""

_NULL = 0xFFFF


class QuotaFastPaths:
    """The fast paths of all callers."""

    __slots__ = ("_callers", "_quotas")

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        # By the caller and the fast paths that look at no quota: those, so that their id stays theirs, and the others.
        self._callers: dict[tuple[str, int], tuple[dict[int, FastPath], dict[int, FastPath]]] = {}

    def forget(self) -> None:
        """The quotas changed."""
        self._callers.clear()

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
                self._callers.clear()
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
                made[key, serve] = _QuotaFastPath(self._quotas, user, row.name, serve).serve
            result[word] = made[key, serve]
        return result


class _QuotaFastPath:
    """One API's fast path for one user."""

    __slots__ = ("_known", "_now", "_quotas", "_runtime", "_serve", "_user", "serve")

    def __init__(self, quotas: Quotas, user: str, api: str, serve: FastPath) -> None:
        self._quotas = quotas
        self._runtime = quotas.runtime
        self._now = quotas.runtime.clock.now
        self._user = user
        self._serve = serve
        # By the client id with its length before it, and by preambles of Produce, which begin with that.
        self._known: dict[bytes, Sensors] = {}
        self.serve: FastPath = {"Produce": self._produce, "Fetch": self._fetch}.get(api, self._other)

    def _produce(
        self, connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
    ) -> bool:
        # The bytes of the preamble that this connection sent last begin with a client id, or are not known.
        sensors = self._known.get(view[start + 8 : start + connection.preamble_length].tobytes())
        if sensors is None:
            sensors = self._sensors(view, start, end, connection.preamble_length, self._quotas.producer_byte_rate)
            if sensors is None:
                return False
        sent, request = sensors
        now_ms = self._runtime.now * 1000
        if sent is not None and sent.charge(end - start, now_ms):
            is_served = False
        elif request is None:
            is_served = self._serve(connection, view, start, end, version, correlation_id)
        elif request.at_most > request.safe and request.charge(0.0, now_ms):
            is_served = False
        else:
            # As `_timed` does; a call would cost a tenth of all that quotas cost here.
            now = self._now
            began = now()
            is_served = self._serve(connection, view, start, end, version, correlation_id)
            request.record((now() - began) * PERCENT_PER_SECOND, now_ms)
        if not is_served and sent is not None:
            sent.record(start - end, now_ms)
        return is_served

    def _fetch(
        self, connection: Connection, view: memoryview, start: int, end: int, version: int, correlation_id: int
    ) -> bool:
        sensors = self._sensors(view, start, end, 0, self._quotas.consumer_byte_rate)
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
        sensors = self._sensors(view, start, end, 0, None)
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

    def _sensors(
        self, view: memoryview, start: int, end: int, preamble_length: int, byte_rate: ClientQuota | None
    ) -> Sensors | None:
        """The client's sensors; None if its id can't be read here. A preamble of that length that begins with the id is
        remembered, too."""
        if end - start < 10:
            return None
        length = view[start + 8] << 8 | view[start + 9]
        if length > MAX_CLIENT_ID_BYTES:
            if length != _NULL:
                return None
            length = 0
        client_id = view[start + 8 : start + 10 + length].tobytes()
        known = self._known.get(client_id)
        if known is None and start + 10 + length <= end:
            known = self._look_up(client_id, byte_rate)
        if known is not None and 10 + length < preamble_length <= min(MAX_PREAMBLE_BYTES, end - start):
            self._remember(view[start + 8 : start + preamble_length].tobytes(), known)
        return known

    def _remember(self, key: bytes, sensors: Sensors) -> None:
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[key] = sensors

    def _look_up(self, client_id: bytes, byte_rate: ClientQuota | None) -> Sensors | None:
        try:
            name = client_id[2:].decode()
        except UnicodeDecodeError:
            return None
        quotas, now_ms = self._quotas, self._quotas.now_ms
        sent = None if byte_rate is None else byte_rate.sensor(self._user, name, now_ms)
        found = (sent, quotas.request_percentage.sensor(self._user, name, now_ms))
        self._remember(client_id, found)
        return found
