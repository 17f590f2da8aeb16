"""A slow machine: a turn has time for few steps."""

from __future__ import annotations

from pykafkad.clock import ManualClock


class SlowClock(ManualClock):
    """Every look at the time takes `seconds`."""

    seconds = 0.0

    def now(self):
        if self.seconds:
            self.advance(self.seconds)
        return super().now()
