"""The rate of a client over the last windows, and the time after which it is back within its quota.

Kafka 4.3.1 measures so (`Rate` over a `WindowedSum`, `QuotaUtils.throttleTime`). A sample is as long as a window and
begins with the first record after the end of the one before it. Samples without a record for as long as all windows
together are emptied. The rate is the sum of all samples, divided by the time since the oldest began; that time counts
as at least all windows but one. Above the quota, the throttle time is what the measured time would have to be longer
for the rate to equal the quota.
"""

from __future__ import annotations

MAX_THROTTLE_MS = 2**31 - 1
"""What an answer can say. Kafka's number overflows instead."""

_ROUNDING_SECONDS = 1e-6
"""Seconds and milliseconds are rounded differently: `until` is never too late."""


class RateSensor:
    """What one client, or several who share a quota, did of late. Without a `bound` it never throttles.

    Measuring takes much longer than counting. As long as all that was counted since the last measurement, and what it
    found, would be within the quota in the shortest measured time, no measurement is needed.

    Who records very often adds to `at_most` itself, after it has called `settle` in a turn of the loop that begins at
    `until` or later, and has set `turn`. What it adds goes into the samples then, or when somebody asks."""

    __slots__ = (
        "_all_windows_ms",
        "_current",
        "_max_throttle_ms",
        "_min_measured_ms",
        "_sample",
        "_samples",
        "_settled",
        "_window_ms",
        "at_most",
        "bound",
        "safe",
        "turn",
        "until",
    )

    def __init__(
        self, sample_count: int, window_ms: int, bound: float | None, max_throttle_ms: int = MAX_THROTTLE_MS
    ) -> None:
        self._window_ms = window_ms
        self._all_windows_ms = sample_count * window_ms
        self._min_measured_ms = (sample_count - 1) * window_ms
        self._max_throttle_ms = max_throttle_ms
        # Each sample: when it began, its last record, and its sum. There is one more than windows, because the oldest
        # may have begun before the first window.
        self._samples: list[list[float]] = []
        self._current = 0
        # The one that grows; before the first record none does.
        self._sample = [float("-inf"), 0.0, 0.0]
        self.turn = float("-inf")
        """The last turn in which something was added to `at_most`: the monotonic second at which it began."""
        self.until = float("-inf")
        """What is added in turns before this monotonic second goes into one sample."""
        # `at_most` when all that it has was in the samples.
        self._settled = 0.0
        self.at_most = 0.0
        """No more than this counts now. While it is at most `safe`, `charge` finds no throttle time."""
        self.safe = 0.0
        self.bound: float | None = None
        self.set_bound(bound)

    def set_bound(self, bound: float | None) -> None:
        """Change the quota, in units per second; what was recorded stays."""
        self.bound = bound
        self.safe = float("inf") if bound is None else bound * self._min_measured_ms / 1000

    @property
    def most_at_once(self) -> float:
        """More than this is always throttled, even if nothing else was recorded (KAFKA-9677)."""
        return self.safe

    def charge(self, value: float, now_ms: float) -> int:
        """Record `value`; returns the throttle time in milliseconds, 0 within the quota."""
        # As `record` does; a call would cost as much again.
        if self.at_most != self._settled:
            self.settle()
        sample = self._sample
        if now_ms - sample[0] >= self._window_ms:
            sample = self._advance(now_ms)
        sample[1] = now_ms
        sample[2] += value
        self.at_most = self._settled = self.at_most + value
        return 0 if self.at_most <= self.safe else self.throttle_ms(now_ms)

    def record(self, value: float, now_ms: float) -> None:
        """Record `value`, which may be negative to take back what was recorded before. It counts with the next
        charge."""
        if self.at_most != self._settled:
            self.settle()
        sample = self._sample
        if now_ms - sample[0] >= self._window_ms:
            sample = self._advance(now_ms)
        sample[1] = now_ms
        sample[2] += value
        self.at_most = self._settled = self.at_most + value

    def settle(self) -> None:
        """Put into the samples what was added to `at_most` in turns up to `turn`."""
        if self.at_most == self._settled:
            return
        now_ms, value = self.turn * 1000, self.at_most - self._settled
        sample = self._sample
        if now_ms - sample[0] >= self._window_ms:
            sample = self._advance(now_ms)
        sample[1] = now_ms
        sample[2] += value
        self._settled = self.at_most

    def throttle_ms(self, now_ms: float) -> int:
        """How long the client must do nothing to be back within the quota."""
        total, measured_ms = self._measure(now_ms)
        bound = self.bound
        if bound is None:
            return 0
        rate = total / (measured_ms / 1000)
        if rate <= bound:
            return 0
        # The quota may be so small that the time is infinite.
        return int(min((rate - bound) / bound * measured_ms + 0.5, self._max_throttle_ms))

    def is_idle(self, now_ms: float) -> bool:
        """Whether nothing that was recorded counts any more."""
        if self.at_most != self._settled:
            self.settle()
        return all(now_ms - last >= self._all_windows_ms for _, last, _ in self._samples)

    def _advance(self, now_ms: float) -> list[float]:
        samples = self._samples
        self._sample = sample = [now_ms, now_ms, 0.0]
        self.until = (now_ms + self._window_ms) / 1000 - _ROUNDING_SECONDS
        if samples:
            self._current = (self._current + 1) % (self._all_windows_ms // self._window_ms + 1)
        samples[self._current : self._current + 1] = [sample]
        return sample

    def _measure(self, now_ms: float) -> tuple[float, float]:
        """The sum of all samples, and the milliseconds that it counts for."""
        if self.at_most != self._settled:
            self.settle()
        total, oldest = 0.0, now_ms
        for sample in self._samples:
            if now_ms - sample[1] >= self._all_windows_ms:
                sample[:] = now_ms, now_ms, 0.0
            total += sample[2]
            oldest = min(oldest, sample[0])
        self.at_most = self._settled = total
        return total, self._measured_ms(now_ms - oldest)

    def _measured_ms(self, elapsed_ms: float) -> float:
        """How long samples count for of which the oldest began so long ago."""
        full_windows = elapsed_ms // self._window_ms
        missing_ms = self._min_measured_ms - full_windows * self._window_ms
        return max(elapsed_ms + max(missing_ms, 0), 1)


class SimpleRateSensor(RateSensor):
    """What all replicas that share a throttle did of late (KIP-73). Its rate is Kafka's `SimpleRate`: the time that it
    counts for is at least one window, where client quotas count all windows but one. So a throttle answers sooner to a
    burst than a client quota does."""

    __slots__ = ()

    def set_bound(self, bound: float | None) -> None:
        """Change the quota, in units per second; what was recorded stays."""
        self.bound = bound
        self.safe = float("inf") if bound is None else bound * self._window_ms / 1000

    def is_exceeded(self, now_ms: float) -> bool:
        """Whether the rate is above the quota now."""
        if self.at_most <= self.safe:
            return False
        total, measured_ms = self._measure(now_ms)
        return self.bound is not None and total / (measured_ms / 1000) > self.bound

    def _measured_ms(self, elapsed_ms: float) -> float:
        return max(elapsed_ms, self._window_ms)
