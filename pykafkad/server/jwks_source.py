"""Where the keys come from that verify tokens: a file, or an address that is asked beside the loop.

The first keys are read while the broker starts, which fails without them, as Kafka's does. A file is read again when it
has changed. An address is asked again after `sasl.oauthbearer.jwks.endpoint.refresh.ms`, and soon when a token names a
key that is not there. While it cannot be asked the keys of before count.
"""

from __future__ import annotations

import os

from pykafkad.errors import ConfigError, StartFailure
from pykafkad.sasl import jwks
from pykafkad.sasl.compact_jwt import InvalidToken
from pykafkad.sasl.token_rules import ENDPOINT
from pykafkad.server.offload import Offload, outcome_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.sasl.jwks import Key, Keys
    from pykafkad.sasl.token_rules import Endpoint
    from pykafkad.server.runtime import Runtime

FETCH_SECONDS = 10.0
"""No fetch is awaited longer, however slowly its bytes come."""

BYTES_MAX = 1 << 20
"""Key sets have some kilobytes."""

MISS_PAUSE_SECONDS = 60.0
"""So long a key that was not there is not asked for again, as in Kafka."""

MISSES_MAX = 16
"""How many ids of keys that were not there are remembered."""

KEY_ID_MAX = 1000
"""A longer id is nobody's, and is not asked for."""

LEAST_PAUSE_SECONDS = 1.0
"""Whatever tokens name, the issuer is not asked more often."""

_LOOK_SECONDS = 0.05


def open_keys(runtime: Runtime, endpoint: Endpoint) -> Keys:
    """The keys of an address. Raises ConfigError for a file that is no key set, and StartFailure for an address that
    gives none."""
    if endpoint.path is not None:
        return FileKeys(endpoint.path)
    fetch = _Fetch(endpoint, runtime.clock.now)
    return FetchedKeys(runtime, endpoint, fetch)


class FileKeys:
    """Keys that stand in a file."""

    __slots__ = ("_keys", "_path", "_seen")

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._keys: Sequence[Key] = ()
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise ConfigError(f"{ENDPOINT}: {path} has no keys: {_reason(error)}") from None

    def current(self) -> Sequence[Key]:
        """See `Keys`."""
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise InvalidToken(f"the file of the issuer's keys cannot be read: {_reason(error)}") from None
        return self._keys

    def miss(self, key_id: str | None) -> None:
        """See `Keys`. The file is as it is."""

    def close(self) -> None:
        """See `Keys`. The file is not open."""

    def _read(self) -> None:
        status = os.stat(self._path)
        seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        if seen == self._seen:
            return
        with open(self._path, "rb") as file:
            data = file.read(BYTES_MAX + 1)
        self._keys = parsed(data)
        self._seen = seen


class FetchedKeys:
    """Keys that an issuer publishes at an address."""

    __slots__ = ("_asked_at", "_endpoint", "_fetch", "_keys", "_missed", "_offload", "_pause_ms", "_runtime")

    def __init__(self, runtime: Runtime, endpoint: Endpoint, fetch: Callable[[], bytes]) -> None:
        self._runtime = runtime
        self._endpoint = endpoint
        self._fetch = fetch
        self._missed: dict[str, float] = {}
        self._offload: Offload | None = None
        self._pause_ms = endpoint.retry_ms
        try:
            self._keys: Sequence[Key] = self._parsed(outcome_within(fetch, FETCH_SECONDS))
        except (OSError, ValueError) as error:
            raise StartFailure(f"{ENDPOINT}: {endpoint.url} gives no keys: {_reason(error)}") from None
        self._asked_at = runtime.now
        self._ask_in(endpoint.refresh_ms)

    def current(self) -> Sequence[Key]:
        """See `Keys`."""
        return self._keys

    def miss(self, key_id: str | None) -> None:
        """See `Keys`."""
        now = self._runtime.now
        if key_id is None or len(key_id) > KEY_ID_MAX or now < self._missed.get(key_id, now):
            return
        self._missed.pop(key_id, None)
        while len(self._missed) >= MISSES_MAX:
            del self._missed[next(iter(self._missed))]
        self._missed[key_id] = now + MISS_PAUSE_SECONDS
        self._ask_in(max(0.0, 1000 * (self._asked_at + LEAST_PAUSE_SECONDS - now)))

    def close(self) -> None:
        """See `Keys`."""
        self._offload = None
        for each in ("ask", "look"):
            self._runtime.timers.cancel((self, each))

    def _ask_in(self, milliseconds: float) -> None:
        if self._offload is None:
            self._runtime.timers.set((self, "ask"), self._runtime.now + milliseconds / 1000)

    def fired(self, key: str) -> None:
        """It is time to ask, or to see whether the answer is there. The thread does not wake the loop: it may outlive
        the broker, which does not wait for an answer when it stops."""
        runtime = self._runtime
        if key == "ask":
            self._asked_at = runtime.now
            self._offload = Offload(_nobody, runtime.unexpected)
            self._offload.submit(self._fetch, self._take)
            self._offload.end_alone()
        elif self._offload is not None:
            self._offload.finished()
            if self._offload is not None and runtime.now > self._asked_at + FETCH_SECONDS:
                # Nobody will take what it still gives.
                self._take(_too_late())
        if self._offload is not None:
            runtime.timers.set((self, "look"), runtime.now + _LOOK_SECONDS)

    def _take(self, result: object) -> None:
        self._offload = None
        try:
            self._keys = self._parsed(result)
        except Exception as error:
            self._ask_again(error)
            return
        self._pause_ms = self._endpoint.retry_ms
        for key in self._keys:
            self._missed.pop(str(key.get("kid")), None)
        self._runtime.logs.info("server", "keys-fetched", url=self._endpoint.url, keys=len(self._keys))
        self._ask_in(self._endpoint.refresh_ms)

    @staticmethod
    def _parsed(result: object) -> Sequence[Key]:
        """The keys that a fetch brought. Raises what went wrong with it."""
        if isinstance(result, Exception):
            raise result
        assert isinstance(result, bytes)
        return parsed(result)

    def _ask_again(self, problem: Exception) -> None:
        if not isinstance(problem, OSError | ValueError):
            self._runtime.unexpected(problem)
        self._runtime.logs.warning(
            "server", "keys-not-fetched", url=self._endpoint.url, reason=_reason(problem), retry_ms=self._pause_ms
        )
        self._ask_in(self._pause_ms)
        self._pause_ms = min(2 * self._pause_ms, max(self._endpoint.retry_max_ms, self._endpoint.retry_ms))


class _Fetch:
    """Gets what stands at an address by HTTP or HTTPS."""

    __slots__ = ("_endpoint", "_now")

    def __init__(self, endpoint: Endpoint, now: Callable[[], float]) -> None:
        self._endpoint = endpoint
        self._now = now

    def __call__(self) -> bytes:
        """Raises OSError or ValueError; a thread has ended with it when nobody waits for it any more."""
        from pykafkad.server import http_fetch

        return http_fetch.get(self._endpoint.url, self._endpoint.trust_path, BYTES_MAX, FETCH_SECONDS, self._now)


def parsed(data: bytes) -> list[Key]:
    """The keys of a set as it was read. Raises ValueError."""
    if len(data) > BYTES_MAX:
        raise ValueError(f"it has more than {BYTES_MAX} bytes")
    return jwks.parse(data)


def _too_late() -> TimeoutError:
    return TimeoutError(f"it took more than {FETCH_SECONDS:g} s")


def _reason(error: object) -> object:
    return getattr(error, "strerror", None) or error


def _nobody() -> None:
    """Wake nobody."""
