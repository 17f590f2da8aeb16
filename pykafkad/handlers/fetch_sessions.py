"""Incremental fetch sessions (KIP-227): what a consumer asks for is remembered, and only changes travel.

Session id 0 with epoch 0 asks for a new session, epoch -1 for none; otherwise the epoch must be the one expected next.
The cache has `max.incremental.fetch.session.cache.slots` places. When all are taken, a newcomer gets the place of a
session that was unused for two minutes; else that of the least worthy one, if it is worthier itself: followers before
consumers, then who has more partitions. Sessions of less than two minutes are safe, those of consumers only from other
consumers. Else the newcomer goes without (session id 0 in the answer, which is legal), as it does when the sessions
together hold `MAX_PARTITIONS`, a bound that Kafka does not have."""

from __future__ import annotations

from pykafkad import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

    from pykafkad.wire import messages

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1

MAX_PARTITIONS = 1_000_000
"""Partitions that all sessions of a broker may hold together, so that idle sessions cannot fill the memory."""

_EVICTION_SECONDS = 120.0
_MAX_EPOCH = 2**31 - 1


class FetchPartition:
    """One partition of a fetch: what was asked, and what the session last told about it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str | None, topic_id: bytes, asked: messages.FetchRequest.FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = asked.partition
        self.high_watermark = -1
        self.log_start_offset = -1
        self.update(asked)

    def update(self, asked: messages.FetchRequest.FetchPartition) -> None:
        """Take over what a later request of the session asks."""
        self.fetch_offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch

    def has_news(self, row: messages.FetchResponse.PartitionData) -> bool:
        """Whether an incremental answer must mention the partition; remembers what is told."""
        news = row.error_code != errors.NONE or bool(row.records) or row.diverging_epoch.epoch >= 0
        if row.high_watermark != self.high_watermark or row.log_start_offset != self.log_start_offset:
            news = True
        self.high_watermark = -1 if row.error_code != errors.NONE else row.high_watermark
        self.log_start_offset = row.log_start_offset
        return news


class FetchSession:
    """The partitions of one consumer or follower (`privileged`), in the order in which they are served: those that got
    records go to the end. `settled`: it was older than two minutes when it was last used."""

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

    def next_epoch(self) -> None:
        """Epochs wrap to 1: 0 would ask for a new session."""
        self.epoch = 1 if self.epoch >= _MAX_EPOCH else self.epoch + 1


class FetchSessions:
    """All sessions of a broker. Ids are drawn from the random numbers handed in; `partitions` counts what they hold."""

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
        """End a session; an unknown one is fine."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.partitions -= session.counted

    def create(
        self, partitions: dict[object, FetchPartition], uses_topic_ids: bool, now: float, *, privileged: bool = False
    ) -> FetchSession | None:
        """A new session, or None when the cache is full of better ones."""
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
        """Keep the cache in the order of last use: its first session is the stalest. False, and the session ended, when
        it has grown beyond what all may hold together."""
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
