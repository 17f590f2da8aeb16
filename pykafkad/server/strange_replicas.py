"""What the log says of other brokers that ask or answer what cannot be: followers with records that their leader never
had, or of an earlier life, and leaders whose batches do not fit.

They are refused by `log/replica.py` and `log/follower.py`; here they are named, with their address, each with one
reason once a minute. What a broker may ask while it has not heard of a new leader is named when it goes on for
`LASTING_SECONDS` with one partition."""

from __future__ import annotations

from collections import namedtuple

from pykafkad import errors
from pykafkad.server.peer_lines import PeerLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.follower import Pause
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.metadata.brokers import Endpoint
    from pykafkad.server.broker import Broker

LASTING_SECONDS = 5.0
"""For so long a follower is refused a partition, without a pause of that length, before it is named."""

MAX_REFUSALS = 1000
"""How many refusals are looked at, of one follower with one error each. Another takes the place of one that is over."""

_WORDS = {
    errors.FENCED_LEADER_EPOCH: "fetches in an older leader epoch",
    errors.UNKNOWN_LEADER_EPOCH: "fetches in a leader epoch, or as a replica, that is not known here",
    errors.NOT_LEADER_OR_FOLLOWER: "fetches with the epoch of an earlier life of its broker, or from no leader",
}


_Refusal = namedtuple("_Refusal", ("place", "first", "last"))
_Refusal.__doc__ = (
    """A partition that a follower does not get: since when it is refused, and when it was refused last."""
)


class StrangeReplicas:
    """`refused` for each partition that a follower was refused; `leader_refused` for what a leader sent."""

    __slots__ = ("_broker", "_lines", "_refusals")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._lines = PeerLines(broker.logs)
        self._refusals: dict[tuple[int, int], _Refusal] = {}
        """By follower and error; the one that was refused longest ago is the first."""

    def refused(
        self, peer: str, follower: int, log: PartitionLog, code: int, fetch_offset: int, last_fetched_epoch: int
    ) -> None:
        """A follower did not get what it asked for: by an error, or since the logs differ (OFFSET_OUT_OF_RANGE)."""
        if code == errors.OFFSET_OUT_OF_RANGE:
            end_offset, epoch = log.written_end_offset, log.leader_epoch
            if fetch_offset > end_offset and not 0 <= last_fetched_epoch < epoch:
                fields = {"fetch_offset": fetch_offset, "end_offset": end_offset, "leader_epoch": epoch}
                self._tell(peer, follower, log, "says that it has records which this leader never had", **fields)
        elif code in _WORDS and self._goes_on(follower, code, (log.topic, log.partition)):
            self._tell(peer, follower, log, _WORDS[code])

    def _goes_on(self, follower: int, code: int, place: tuple[str, int]) -> bool:
        """One partition after another may be refused for a moment, as those of a broker that is drained. So one of them
        is looked at, until it is refused no more."""
        now, key = self._broker.runtime.now, (follower, code)
        known = self._refusals.get(key)
        if known is None and not self._has_room(now):
            return False
        if known is None or now - known.last >= LASTING_SECONDS:
            known = _Refusal(place, now, now)
        elif known.place != place:
            return False
        self._refusals.pop(key, None)
        self._refusals[key] = known._replace(last=now)
        is_lasting: bool = now - known.first >= LASTING_SECONDS
        return is_lasting

    def _has_room(self, now: float) -> bool:
        """Whether one more refusal can be looked at; the one that was refused longest ago makes room if it is over."""
        if len(self._refusals) < MAX_REFUSALS:
            return True
        oldest = next(iter(self._refusals))
        if now - self._refusals[oldest].last < LASTING_SECONDS:
            return False
        del self._refusals[oldest]
        return True

    def _tell(self, peer: str, follower: int, log: PartitionLog, words: str, **fields: object) -> None:
        now = self._broker.runtime.now
        where = {"broker": follower, "topic": log.topic, "partition": log.partition}
        # All nodes of one machine have one address: the reason says which of them it is.
        self._lines.refused(now, "follower-refused", peer, f"broker {follower} {words}", **where, **fields)

    def leader_refused(self, leader: int, endpoint: Endpoint | None, log: PartitionLog, pause: Pause) -> None:
        """What a leader has answered is of no use."""
        where = {"leader": leader, "topic": log.topic, "partition": log.partition}
        if pause.is_usual:
            self._broker.logs.debug("server", "replica-fetch-paused", **where, reason=pause.reason)
            return
        peer = "unknown" if endpoint is None else f"{endpoint.host}:{endpoint.port}"
        self._lines.refused(
            self._broker.runtime.now, "leader-refused", peer, f"leader {leader}: {pause.reason}", **where
        )
