"""A bucket of tokens that fills with time: changes of topics take tokens out of it (KIP-599).

It fills at the rate of its quota, up to what all windows together let through. Whoever finds tokens in it may take as
many as it wants, also more than there are; then nobody gets any before it is filled above zero again."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.quotas.rate_sensor import MAX_THROTTLE_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class TokenBucket:
    """The tokens of one client, or of several who share a quota. It begins full; without a `bound` it stays so."""

    __slots__ = ("_burst_seconds", "_last_ms", "_tokens", "bound")

    def __init__(self, sample_count: int, window_ms: int, bound: float | None) -> None:
        self._burst_seconds = sample_count * window_ms / 1000
        self._tokens = float("inf")
        self._last_ms = 0.0
        self.bound = bound

    def set_bound(self, bound: float | None) -> None:
        """Change the quota, in tokens per second; what was taken stays taken."""
        self.bound = bound

    def take(self, count: float, now_ms: float) -> None:
        """Take tokens, whether they are there or not."""
        if self.bound is not None:
            self._tokens = self._tokens_at(now_ms) - count

    def lacks_tokens(self, now_ms: float) -> bool:
        """Whether more were taken than there were."""
        return self._tokens_at(now_ms) < 0

    def throttle_ms(self, now_ms: float) -> int:
        """How long until the bucket does not lack tokens any more."""
        tokens, bound = self._tokens_at(now_ms), self.bound
        return int(min(-tokens / bound * 1000 + 0.5, MAX_THROTTLE_MS)) if bound is not None and tokens < 0 else 0

    def is_idle(self, now_ms: float) -> bool:
        """Whether the bucket is full."""
        return self.bound is None or self._tokens_at(now_ms) >= self._burst_seconds * self.bound

    def _tokens_at(self, now_ms: float) -> float:
        """The tokens that are there now, after what came in since the last time."""
        bound = self.bound
        if bound is not None:
            self._tokens = min(self._burst_seconds * bound, self._tokens + bound * (now_ms - self._last_ms) / 1000)
            self._last_ms = now_ms
        return self._tokens


class MutationQuota:
    """The changes of topics by one request. A strict one refuses what comes after the bucket was emptied; else the
    request is only throttled."""

    __slots__ = ("_bucket", "_is_strict", "_now_ms", "_throttled_at_ms", "_throttled_ms")

    def __init__(self, bucket: TokenBucket, is_strict: bool, now_ms: Callable[[], float]) -> None:
        self._bucket = bucket
        self._is_strict = is_strict
        self._now_ms = now_ms
        self._throttled_ms = 0
        self._throttled_at_ms = 0.0

    def record(self, partitions: int) -> None:
        """So many partitions are about to be created or deleted. Raises `KafkaError` if they may not be."""
        now_ms, bucket = self._now_ms(), self._bucket
        is_refused = self._is_strict and bucket.lacks_tokens(now_ms)
        if not is_refused:
            bucket.take(partitions, now_ms)
        if is_refused or not self._is_strict:
            self._throttled_ms, self._throttled_at_ms = bucket.throttle_ms(now_ms), now_ms
        if is_refused:
            raise KafkaError(errors.THROTTLING_QUOTA_EXCEEDED)

    @property
    def throttle_ms(self) -> int:
        """What is left by now of the throttle time."""
        return max(0, self._throttled_ms - int(self._now_ms() - self._throttled_at_ms)) if self._throttled_ms else 0
