"""Incremental fetch sessions (KIP-227): the broker remembers what a consumer fetches, and only changes travel.

Session id 0 with epoch 0 asks for a new session, and epoch -1 for none. Any other request must have the session's next
epoch. The cache has `max.incremental.fetch.session.cache.slots` places. If all are taken, a new session replaces one
that was unused for two minutes. If there is none, it replaces the least valuable session, provided that the new one is
more valuable: followers come before consumers, then more partitions before fewer. Sessions younger than two minutes are
safe; a consumer's session is safe only from other consumers. A request that gets no place is served without a session
(session id 0 in the answer). So is one that would bring the partitions of all sessions above `MAX_PARTITIONS`, a limit
that Kafka does not have.
"""

from __future__ import annotations

from pykafkad import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random
    from typing import Any

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.wire import messages

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1

MAX_PARTITIONS = 1_000_000
"""Limit of the partitions in all sessions of a broker, so that idle sessions cannot fill the memory."""

_EVICTION_SECONDS = 120.0
_MAX_EPOCH = 2**31 - 1


class FetchPartition:
    """One partition of a fetch: what the request asks, and what the session's last answer said."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "follower_start_offset",
        "high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "quiet_changes",
        "quiet_follower",
        "quiet_log",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str | None, topic_id: bytes, asked: messages.FetchRequest.FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = asked.partition
        self.high_watermark = -1
        self.log_start_offset = -1
        # Of a follower that has everything and knows it: the log, the leader's view of the follower (None while that is
        # not in sync), and the count of changes of the metadata then (`fetch_follower.py`).
        self.quiet_log: PartitionLog | None = None
        self.quiet_follower: Any = None
        self.quiet_changes = 0
        self.update(asked)

    def update(self, asked: messages.FetchRequest.FetchPartition) -> None:
        """Take over the fields of a later request of the session."""
        self.fetch_offset = asked.fetch_offset
        self.follower_start_offset = asked.log_start_offset
        self.max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch

    def has_no_news(self, changes: int) -> bool:
        """Whether a follower, in sync or not, still has everything of the partition, and has been told of it."""
        log = self.quiet_log
        return not (
            log is None
            or self.quiet_changes != changes
            or log.closed
            or log.end_offset != self.fetch_offset
            or log.written_end_offset != self.fetch_offset
            or log.high_watermark != self.high_watermark
            or log.log_start_offset != self.log_start_offset
            or log.offline is not None
        )

    def is_quiet(self, changes: int, now: float) -> bool:
        """Whether that is so of a follower in sync. If so, it says now that it still has everything."""
        if self.quiet_follower is None or not self.has_no_news(changes):
            return False
        self.quiet_follower.is_still_caught_up(now)
        return True

    def would_have_news(self, row: messages.FetchResponse.PartitionData) -> bool:
        """Whether an incremental answer must contain the partition."""
        if row.error_code != errors.NONE or row.records or row.diverging_epoch.epoch >= 0:
            return True
        if row.preferred_read_replica >= 0:
            return True
        return row.high_watermark != self.high_watermark or row.log_start_offset != self.log_start_offset

    def has_news(self, row: messages.FetchResponse.PartitionData) -> bool:
        """Whether an incremental answer must contain the partition. Remembers the row as answered."""
        news = self.would_have_news(row)
        self.high_watermark = -1 if row.error_code != errors.NONE else row.high_watermark
        self.log_start_offset = row.log_start_offset
        return news


class FetchSession:
    """The partitions of one consumer or follower (`privileged`), in the order in which they are served.

    Partitions that got records go to the end. `settled` says whether the session was older than two minutes at its last
    use.
    """

    __slots__ = (
        "counted",
        "created",
        "epoch",
        "id",
        "last_used",
        "partitions",
        "privileged",
        "settled",
        "uses_topic_ids",
        "watched",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[object, FetchPartition],
        uses_topic_ids: bool,
        now: float,
        privileged: bool,
    ) -> None:
        self.id = session_id
        self.partitions = partitions
        self.uses_topic_ids = uses_topic_ids
        self.privileged = privileged
        self.epoch = 1
        self.created = now
        self.last_used = now
        self.settled = False
        self.counted = 0
        self.watched: tuple[int, int, dict[PartitionLog, object]] | None = None
        """A follower's partitions by their logs: the count of changes of the metadata and that of partitions then."""

    def next_epoch(self) -> None:
        """Advance the epoch. It wraps to 1, because 0 asks for a new session."""
        self.epoch = 1 if self.epoch >= _MAX_EPOCH else self.epoch + 1


class FetchSessions:
    """All sessions of a broker. Ids come from the given random numbers. `partitions` is the number of partitions in all
    sessions."""

    __slots__ = ("_random", "_sessions", "_slots", "partitions")

    def __init__(self, slots: int, random: Random) -> None:
        self._slots = slots
        self._random = random
        self._sessions: dict[int, FetchSession] = {}
        self.partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        return self._sessions.get(session_id)

    def remove(self, session_id: int) -> None:
        """End a session. An unknown id is ignored."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partitions -= session.counted

    def create(
        self, partitions: dict[object, FetchPartition], uses_topic_ids: bool, now: float, *, privileged: bool = False
    ) -> FetchSession | None:
        """A new session, or None if it gets no place."""
        if len(self._sessions) >= self._slots and not self._evict(len(partitions), now, privileged):
            return None
        if self.partitions + len(partitions) > MAX_PARTITIONS:
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._random.randrange(1, 2**31)
        session = FetchSession(session_id, partitions, uses_topic_ids, now, privileged)
        self._sessions[session_id] = session
        self.touch(session, now)
        return session

    def touch(self, session: FetchSession, now: float) -> bool:
        """Note a use of the session; the least recently used session is the first of the cache. Returns False, and ends
        the session, if its growth exceeds the limit for all sessions."""
        session.last_used = now
        session.settled = now - session.created > _EVICTION_SECONDS
        self.remove(session.id)
        if self.partitions + len(session.partitions) > MAX_PARTITIONS:
            return False
        self._sessions[session.id] = session
        session.counted = len(session.partitions)
        self.partitions += session.counted
        return True

    def _evict(self, size: int, now: float, privileged: bool) -> bool:
        if not self._sessions:
            return False
        victim: FetchSession | None = next(iter(self._sessions.values()))
        if victim is not None and now - victim.last_used <= _EVICTION_SECONDS:
            victim = min(
                (each for each in self._sessions.values() if each.settled or (privileged and not each.privileged)),
                key=lambda session: (session.privileged, session.counted),
                default=None,
            )
            if victim is None or (privileged, size) <= (victim.privileged, victim.counted):
                return False
        assert victim is not None
        self.remove(victim.id)
        return True
