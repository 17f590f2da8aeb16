"""The only module that asks the operating system for the time.

Other code gets a `Clock`, or the two numbers that it returns. So a test can set the time.
"""

from __future__ import annotations

from time import monotonic, time_ns

TYPE_CHECKING = False


class Clock:
    """Real time. `now()` is for deadlines and never goes back; `now_ms()` is for timestamps of records."""

    __slots__ = ()

    if TYPE_CHECKING:

        def now(self) -> float:
            """Monotonic seconds, comparable only with other values of the same process."""

    else:
        # The hot path asks for it twice a request: without a call of Python it costs half.
        now = staticmethod(monotonic)

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, as in Kafka's timestamps."""
        return time_ns() // 1_000_000


class AdvancingClock(Clock):
    """Real time that can be moved forward: for a broker whose test does not want to wait for time-outs."""

    __slots__ = ("ahead_seconds",)

    def __init__(self) -> None:
        self.ahead_seconds = 0.0
        """How far it is ahead of real time."""

    def now(self) -> float:
        return monotonic() + self.ahead_seconds

    def now_ms(self) -> int:
        return time_ns() // 1_000_000 + int(self.ahead_seconds * 1000)


class ManualClock(Clock):
    """A clock that moves only when `advance` is called, for tests and simulation."""

    __slots__ = ("_now", "_now_ms")

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now = 0.0
        self._now_ms = now_ms

    def now(self) -> float:
        return self._now

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, seconds: float) -> None:
        """Moves both times forward together."""
        self._now += seconds
        self._now_ms += round(seconds * 1000)
