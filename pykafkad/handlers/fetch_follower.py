"""Fetches of followers in sessions of many partitions, of which few have news at a time.

A partition is *quiet* for a follower in sync that has everything of it and has been told of it. That is seen by a look
at four numbers of its log, so a Fetch of thousands of partitions costs what those with news cost. Any change of the
partitions' metadata ends it: then all are looked at in full once, a share of them with each Fetch: an answer within a
session may leave out any partition, and the follower fetches again at once."""

from __future__ import annotations

from pykafkad.handlers.fetch import Fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.handlers.context import Context
    from pykafkad.handlers.fetch_sessions import FetchPartition, FetchSession
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.wire import messages

    Rows = Iterable[tuple[FetchPartition, messages.FetchResponse.PartitionData]]


AT_ONCE = 128
"""Partitions that one Fetch within a session looks at in full."""

SOON_MS = 50
"""How long a Fetch waits that leaves out followers which are not in sync, and have no news."""


def serve(
    ctx: Context,
    request: messages.FetchRequest,
    session: FetchSession,
    partitions: list[FetchPartition],
    full: bool,
) -> object:
    """An answer at once, or a `DelayedFollowerFetch`."""
    fetch = FollowerFetch(ctx, request, session, partitions, full)
    rows, enough = fetch.read()
    return fetch.answer(rows) if enough else DelayedFollowerFetch(ctx, fetch, session)


class FollowerFetch(Fetch):
    """A follower's Fetch in a session."""

    __slots__ = ("_all",)

    def __init__(
        self,
        ctx: Context,
        request: messages.FetchRequest,
        session: FetchSession,
        partitions: list[FetchPartition],
        full: bool,
    ) -> None:
        super().__init__(ctx, request, session, partitions, full)
        self._all = partitions

    def read(self, total: int = 0) -> tuple[list[tuple[FetchPartition, messages.FetchResponse.PartitionData]], bool]:
        """The rows of what has or may have news, and whether they suffice to answer now.

        Those of a part of many do if one of the others may have news. Followers that have everything and are not in
        sync, as while the controller does not take them for alive, are looked at in turn, but not without a pause."""
        changes = self._changes_if_quiet()
        if changes is None:
            return super().read(total)
        now = self._ctx.now
        quiet: list[FetchPartition] = []
        loud: list[FetchPartition] = []
        for each in self._all:
            (quiet if each.is_quiet(changes, now) else loud).append(each)
        # One that is quiet says that the leader knows something of what is asked.
        self._partitions = loud[:AT_ONCE] + quiet[:1]
        rows, enough = super().read(total)
        if len(loud) <= AT_ONCE:
            return rows, enough
        session = self._session
        assert session is not None
        for each in loud[:AT_ONCE]:
            # The next Fetch begins with the others.
            key = (each.topic_id if session.uses_topic_ids else each.topic, each.partition)
            if session.partitions.get(key) is each:
                session.partitions[key] = session.partitions.pop(key)
        if not all(each.has_no_news(changes) for each in loud[AT_ONCE:]):
            return rows, True
        self.max_wait_ms = min(self.max_wait_ms, SOON_MS)
        return rows, enough


def note_quiet(ctx: Context, rows: Rows, replica_id: int) -> None:
    """Remember which of the partitions that a follower is answered are quiet, or have no news, from now on."""
    partitions = ctx.partitions
    for partition, row in rows:
        partition.quiet_log = None
        if row.error_code or row.records or row.diverging_epoch.epoch >= 0 or partition.topic is None:
            continue
        log = partitions.get(partition.topic, partition.partition)
        if log is not None:
            partition.quiet_log, partition.quiet_changes = log, partitions.changes
            # One that is not in sync has more to do with each fetch: it may join. One whose fetch has said nothing, as
            # beyond the end that the leader knew of, is to say it again.
            follower = log.replica.follower(replica_id) if replica_id in log.replica.isr else None
            is_known = follower is not None and follower.end_offset == partition.fetch_offset
            partition.quiet_follower = follower if is_known else None


class DelayedFollowerFetch:
    """A follower's Fetch that found less than `min_bytes`. It listens to all that is touched: to be kept by each of its
    logs would cost more than the request."""

    __slots__ = ("_changes", "_ctx", "_fetch", "_logs", "_session", "deadline", "keys")

    ends_early = True

    def __init__(self, ctx: Context, fetch: Fetch, session: FetchSession) -> None:
        self._ctx = ctx
        self._fetch = fetch
        self._session = session
        self._changes = ctx.partitions.changes
        if (
            session.watched is None
            or session.watched[0] != self._changes
            or session.watched[1] != len(session.partitions)
        ):
            session.watched = self._changes, len(session.partitions), self._keys_by_log()
        self._logs: dict[PartitionLog, object] = session.watched[2]
        self.keys = (self,)
        self.deadline = ctx.now + fetch.max_wait_ms / 1000
        ctx.purgatory.listen(self)

    def __repr__(self) -> str:
        return f"DelayedFollowerFetch({len(self._logs)} partitions, at least {self._fetch.min_bytes} bytes)"

    def _keys_by_log(self) -> dict[PartitionLog, object]:
        found: dict[PartitionLog, object] = {}
        for key, partition in self._session.partitions.items():
            log = None if partition.topic is None else self._ctx.partitions.get(partition.topic, partition.partition)
            if log is not None:
                found[log] = key
        return found

    def is_touched_by(self, key: PartitionLog) -> bool:
        """Whether one of its logs has records for the follower, or may not be what it was."""
        known = self._logs.get(key)
        if known is None:
            return False
        partition = self._session.partitions.get(known)
        return (
            partition is None
            or key.closed
            or key.end_offset != partition.fetch_offset
            or key.offline is not None
            or self._ctx.partitions.changes != self._changes
        )

    def attempt(self, now: float) -> object | None:
        """The response if there is enough."""
        try:
            rows, enough = self._fetch.read()
        except BaseException:
            self._ctx.purgatory.ignore(self)
            raise
        # A log that was replaced, as by a topic's restore from a snapshot, never wakes the operation.
        if not enough and self._ctx.partitions.changes == self._changes:
            return None
        self._ctx.purgatory.ignore(self)
        return self._fetch.answer(rows)

    def expire(self, now: float) -> object:
        """The response with what there is."""
        self._ctx.purgatory.ignore(self)
        return self._fetch.answer(self._fetch.read()[0])
