"""What the log says of other brokers that ask or answer what cannot be: followers with records that their leader never
had, or of an earlier life, and leaders whose batches do not fit.

They are refused by `log/replica.py` and `log/follower.py`; here they are named, with their address. A host is named
with one reason once a minute. What a broker may ask while it has not heard of a new leader is named when it goes on for
`LASTING_SECONDS`."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.server.peer_lines import PeerLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.follower import Pause
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.brokers import Endpoint
    from pykafkad.server.broker import Broker

LASTING_SECONDS = 5.0
"""For so long a follower is refused, without a pause of that length, before it is named."""

MAX_FOLLOWERS = 1000
"""Of how many followers it is known since when they are refused; the others are not looked at."""

_WORDS = {
    errors.FENCED_LEADER_EPOCH: "it fetches in an older leader epoch",
    errors.UNKNOWN_LEADER_EPOCH: "it fetches in a leader epoch, or as a replica, that is not known here",
    errors.NOT_LEADER_OR_FOLLOWER: "it fetches with the epoch of an earlier life of its broker, or from no leader",
}


class StrangeReplicas:
    """`refused` for each partition that a follower was refused; `leader_refused` for what a leader sent."""

    __slots__ = ("_broker", "_lines", "_since")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._lines = PeerLines(broker.logs)
        self._since: dict[tuple[int, int], tuple[float, float]] = {}
        """By follower and error: since when it was refused, and when last."""

    def refused(
        self, peer: str, follower: int, log: PartitionLog, code: int, fetch_offset: int, last_fetched_epoch: int
    ) -> None:
        """A follower did not get what it asked for: by an error, or since the logs differ (OFFSET_OUT_OF_RANGE)."""
        if code == errors.OFFSET_OUT_OF_RANGE:
            end_offset, epoch = log.written_end_offset, log.leader_epoch
            if fetch_offset > end_offset and not 0 <= last_fetched_epoch < epoch:
                fields = {"fetch_offset": fetch_offset, "end_offset": end_offset, "leader_epoch": epoch}
                self._tell(peer, follower, log, "it says that it has records which this leader never had", **fields)
        elif code in _WORDS and self._goes_on(follower, code):
            self._tell(peer, follower, log, _WORDS[code])

    def _goes_on(self, follower: int, code: int) -> bool:
        now, key = self._broker.runtime.now, (follower, code)
        known = self._since.get(key)
        if known is None and len(self._since) >= MAX_FOLLOWERS:
            return False
        first, last = known or (now, now)
        if now - last >= LASTING_SECONDS:
            first = now
        self._since[key] = first, now
        return now - first >= LASTING_SECONDS

    def _tell(self, peer: str, follower: int, log: PartitionLog, reason: str, **fields: object) -> None:
        now = self._broker.runtime.now
        where = {"broker": follower, "topic": log.topic, "partition": log.partition}
        self._lines.refused(now, "follower-refused", peer, reason, **where, **fields)

    def leader_refused(self, leader: int, endpoint: Endpoint | None, log: PartitionLog, pause: Pause) -> None:
        """What a leader has answered is of no use."""
        where = {"leader": leader, "topic": log.topic, "partition": log.partition}
        if pause.is_usual:
            self._broker.logs.debug("server", "replica-fetch-paused", **where, reason=pause.reason)
            return
        peer = "unknown" if endpoint is None else f"{endpoint.host}:{endpoint.port}"
        self._lines.refused(self._broker.runtime.now, "leader-refused", peer, pause.reason, **where)
