"""`broker.clock`: the broker's time, which a test moves forward in place of waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykafkad.testing.operations import Running

MAX_SECONDS = 10 * 366 * 86400.0


class BrokerClock:
    """The clock of one broker, real time unless it is moved. `ahead_seconds` is how far it was moved."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.ahead_seconds = 0.0

    def __repr__(self) -> str:
        return f"BrokerClock({self.ahead_seconds:g} s ahead)"

    def advance(self, seconds: float) -> None:
        """Let time pass for the broker: sessions of members and transactions time out, retention and delayed deletions
        are done, delayed answers leave. What is due in between happens in its order.

        For clients no time passes: a consumer that is alive could send no heartbeat in the meantime, so that a jump
        beyond its session time-out ends its session. The clock is not set back, and a restart leaves it ahead; records
        that clients write afterwards with their own time are that old for the broker. Raises ValueError."""
        if not 0 < seconds <= MAX_SECONDS:
            raise ValueError(f"seconds: {seconds} is not above 0 and at most {MAX_SECONDS:.0f} (ten years)")
        self.ahead_seconds = self._running.advance_clock(seconds)
