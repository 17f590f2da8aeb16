"""The throttles of replication (KIP-73): reassigned replicas copy no faster than they may.

Made with the first live setting of a broker. A leader leaves out of its answers the records of throttled partitions
whose follower is not in sync, while its rate is exceeded; a follower does not fetch throttled partitions that it lags
behind in. Everything that throttled replicas copy counts, in sync or not. So replicas in sync are never held back, and
the rate is what those that catch up may use."""

from __future__ import annotations

from pykafkad.quotas.replication_throttle import ReplicationThrottle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker

_ANSWER_BYTES = 16
_ROW_BYTES = 50
"""About what an answer, and a row of it, has besides the records."""


class ReplicationThrottles:
    """Both throttles of one broker, which is the leader of some partitions and the follower of others."""

    __slots__ = ("_broker", "_followed", "_led")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        settings = broker.settings
        windows = settings.replication_quota_window_num, settings.replication_quota_window_size_seconds * 1000
        self._led = ReplicationThrottle(_setting("leader_replication_throttled_rate"), broker.node_id, *windows)
        self._followed = ReplicationThrottle(_setting("follower_replication_throttled_rate"), broker.node_id, *windows)

    def withholds(self, log: PartitionLog, follower: int) -> bool:
        """Whether this leader gives a follower no records of the partition now."""
        return (
            follower not in log.replica.isr
            and self._is_counted(self._led)
            and self._is_led_throttled(log)
            and self._led.is_exceeded(self._now_ms)
        )

    def sent(self, rows: Iterable[tuple[PartitionLog, int]]) -> None:
        """A follower is answered: each partition's log, and the size of its records in bytes."""
        if self._is_counted(self._led):
            size_bytes = _ANSWER_BYTES + sum(_ROW_BYTES + size for log, size in rows if self._is_led_throttled(log))
            self._led.record(size_bytes, self._now_ms)

    def delays(self, log: PartitionLog, lag: int | None) -> bool:
        """Whether this follower does not fetch the partition now. `lag` is how many offsets it is behind the leader's
        high watermark, None as long as that is not known."""
        return (
            (lag is None or lag > 0)
            and self._is_counted(self._followed)
            and self._is_followed_throttled(log)
            and self._followed.is_exceeded(self._now_ms)
        )

    def received(self, log: PartitionLog, size_bytes: int) -> None:
        """This follower has appended so many bytes of records to its replica."""
        if self._is_counted(self._followed) and self._is_followed_throttled(log):
            self._followed.record(size_bytes, self._now_ms)

    def _is_counted(self, throttle: ReplicationThrottle) -> bool:
        settings = self._broker.settings
        return throttle.follow(settings.dynamic_broker, settings.dynamic_default)

    def _is_led_throttled(self, log: PartitionLog) -> bool:
        return self._led.concerns(log.topic, log.partition, log.settings.leader_replication_throttled_replicas)

    def _is_followed_throttled(self, log: PartitionLog) -> bool:
        return self._followed.concerns(log.topic, log.partition, log.settings.follower_replication_throttled_replicas)

    @property
    def _now_ms(self) -> float:
        return self._broker.runtime.now * 1000


def _setting(attribute: str) -> str:
    """The name of a setting. These are read from the live settings, by their names, because others do not count."""
    return attribute.replace("_", ".")
