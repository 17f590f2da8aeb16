"""The throttle of one side of replication, leaders or followers: which replicas it is for, and whether it is exceeded
(KIP-73).

A topic names its throttled replicas as `partition:broker` pairs, or all of them by `*`
(`leader.replication.throttled.replicas`, `follower.replication.throttled.replicas`). A broker has one rate for all that
are its own. Only settings that were made live give a rate, as in Kafka, where these are no settings of
`server.properties`.
"""

from __future__ import annotations

from pykafkad.quotas.rate_sensor import SimpleRateSensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NO_RATE = 2**63 - 1
"""The default of both rates, in bytes per second."""

ALL_REPLICAS = "*"
MAX_TOPICS = 1_000
"""How many topics' lists are kept in their parsed form."""


class ReplicationThrottle:
    """One side's throttle on one broker. Times are monotonic milliseconds."""

    __slots__ = ("_broker_id", "_parsed", "_rate_name", "_sensor")

    def __init__(self, rate_name: str, broker_id: int, window_count: int, window_ms: int) -> None:
        self._rate_name = rate_name
        self._broker_id = broker_id
        self._sensor = SimpleRateSensor(window_count, window_ms, None)
        # By topic: the list as the topic's settings have it, and its partitions of this broker; None for all.
        self._parsed: dict[str, tuple[tuple[str, ...], frozenset[int] | None]] = {}

    def concerns(self, topic: str, partition: int, replicas: tuple[str, ...]) -> bool:
        """Whether this broker's replica is one of the throttled `replicas` of its topic."""
        if not replicas:
            return False
        known = self._parsed.get(topic)
        if known is None or known[0] is not replicas:
            if len(self._parsed) >= MAX_TOPICS:
                self._parsed.clear()
            known = self._parsed[topic] = (replicas, _partitions(replicas, self._broker_id))
        return known[1] is None or partition in known[1]

    def follow(self, *layers: Mapping[str, str]) -> bool:
        """Take the rate from the first layer of live settings that has one; returns whether there is any."""
        text = next((layer[self._rate_name] for layer in layers if self._rate_name in layer), None)
        rate = NO_RATE if text is None else int(text)
        bound = None if rate == NO_RATE else float(rate)
        if bound != self._sensor.bound:
            self._sensor.set_bound(bound)
        return bound is not None

    def record(self, size_bytes: int, now_ms: float) -> None:
        """Throttled replicas have copied so much; this counts whether or not the rate is exceeded."""
        self._sensor.record(size_bytes, now_ms)

    def is_exceeded(self, now_ms: float) -> bool:
        """Whether throttled replicas that are not in sync must wait."""
        return self._sensor.is_exceeded(now_ms)


def _partitions(replicas: tuple[str, ...], broker_id: int) -> frozenset[int] | None:
    """The partitions of which the broker's replica is named, or None for all."""
    if replicas == (ALL_REPLICAS,):
        return None
    pairs = [each.split(":") for each in replicas]
    return frozenset(int(partition) for partition, broker in pairs if int(broker) == broker_id)
