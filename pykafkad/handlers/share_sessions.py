"""Share sessions (KIP-932): the broker remembers which partitions a member of a share group fetches.

A session belongs to one member and one connection, and ends with the connection. Epoch 0 begins a new session, -1 ends
it, and any other request must have the session's next epoch. There are at most `group.share.max.share.sessions`
sessions, and `MAX_PARTITIONS` partitions in all of them, a limit that Kafka does not have."""

from __future__ import annotations

INITIAL_EPOCH = 0
FINAL_EPOCH = -1

MAX_PARTITIONS = 1_000_000
"""Limit of the partitions in all sessions of a broker."""

_MAX_EPOCH = 2**31 - 1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Partition = tuple[bytes, int]
    """Topic id and index."""
    Member = tuple[str, str]
    """Group id and member id."""


class ShareSession:
    """One member's session. `partitions` are those that it fetches, each with whether the next answer must contain it
    even without records."""

    __slots__ = ("connection_id", "epoch", "partitions")

    def __init__(self, partitions: Iterable[Partition], connection_id: int) -> None:
        self.partitions: dict[Partition, bool] = dict.fromkeys(partitions, False)
        self.connection_id = connection_id
        self.epoch = 1

    def next_epoch(self) -> None:
        """Advance the epoch. It wraps to 1, because 0 asks for a new session."""
        self.epoch = 1 if self.epoch >= _MAX_EPOCH else self.epoch + 1


class ShareSessions:
    """All share sessions of a broker."""

    __slots__ = ("_by_connection", "_limit", "_members", "_sessions", "partitions")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: dict[Member, ShareSession] = {}
        self._by_connection: dict[int, dict[Member, None]] = {}
        self._members: dict[str, int] = {}
        self.partitions = 0
        """The number of partitions in all sessions."""

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, group_id: str, member_id: str) -> ShareSession | None:
        """The session of a member."""
        return self._sessions.get((group_id, member_id))

    def has_group(self, group_id: str) -> bool:
        """Whether a member of the group has a session."""
        return group_id in self._members

    def of_connection(self, connection_id: int) -> list[Member]:
        """The members whose sessions belong to a connection."""
        return list(self._by_connection.get(connection_id, ()))

    def create(
        self, group_id: str, member_id: str, partitions: Iterable[Partition], connection_id: int
    ) -> ShareSession | None:
        """A new session, or None if there are too many."""
        session = ShareSession(partitions, connection_id)
        if len(self._sessions) >= self._limit or self.partitions + len(session.partitions) > MAX_PARTITIONS:
            return None
        member = group_id, member_id
        self._sessions[member] = session
        self._by_connection.setdefault(connection_id, {})[member] = None
        self._members[group_id] = self._members.get(group_id, 0) + 1
        self.partitions += len(session.partitions)
        return session

    def update(self, session: ShareSession, added: list[Partition], removed: list[Partition]) -> bool:
        """Change what a session fetches. Returns False, and changes nothing, if it would exceed the limit."""
        if self.partitions + len(added) > MAX_PARTITIONS:
            return False
        before = len(session.partitions)
        for partition in added:
            session.partitions.setdefault(partition, True)
        for partition in removed:
            session.partitions.pop(partition, None)
        self.partitions += len(session.partitions) - before
        return True

    def remove(self, group_id: str, member_id: str) -> ShareSession | None:
        """End a member's session."""
        member = group_id, member_id
        session = self._sessions.pop(member, None)
        if session is None:
            return None
        self.partitions -= len(session.partitions)
        members = self._by_connection[session.connection_id]
        del members[member]
        if not members:
            del self._by_connection[session.connection_id]
        self._members[group_id] -= 1
        if not self._members[group_id]:
            del self._members[group_id]
        return session
