"""Fetch for thousands of partitions: the work of `fetch.py` in steps of a few partitions each.

Every partition is read as it is at its step. A delayed long Fetch is not registered under each of its logs. It is told
of every log that is touched, compares it with its own logs, and reads all partitions again if one of them was touched.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import fetch
from pykafkad.handlers.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, INVALID_SESSION_ID, FetchPartition
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context
    from pykafkad.handlers.fetch_sessions import FetchSession

    Rows = list[tuple[FetchPartition, messages.FetchResponse.PartitionData]]
    Asked = tuple[FetchSession | None, list[FetchPartition], bool] | int
    from pykafkad.log.partition_log import PartitionLog

AT_ONCE = 8
"""Partitions per step. Reading a partition that was not used yet opens its log."""

_FREED_AT_ONCE = 500

_UNKNOWN = (errors.UNKNOWN_TOPIC_ID, errors.UNKNOWN_TOPIC_OR_PARTITION, errors.TOPIC_AUTHORIZATION_FAILED)
_NEVER = 1 << 62


def serve(ctx: Context, request: messages.FetchRequest) -> Generator[None, None, object]:
    """As `fetch.handle`, in steps."""
    if request.isolation_level not in fetch.ISOLATION_LEVELS:
        return (yield from refused(request, ctx.version))
    asked = yield from _asked(ctx, request)
    if isinstance(asked, int):
        return messages.FetchResponse(error_code=asked)
    session, partitions, full = asked
    long = _LongFetch(ctx, request, session, partitions, full)
    rows, enough = yield from long.read_in_steps()
    if enough:
        return (yield from long.answer_in_steps(rows))
    yield from _free_in_steps(rows)
    return (yield from DelayedLongFetch(ctx, long).begin())


def refused(request: messages.FetchRequest, version: int) -> Generator[None, None, messages.FetchResponse]:
    """The answer to a request that is refused as a whole; before version 13 each row has the error too."""
    topics: list[messages.FetchResponse.FetchableTopicResponse] = []
    for topic in request.topics if version < 13 else ():
        topics.append(messages.FetchResponse.FetchableTopicResponse(topic=topic.topic, partitions=[]))
        for each in topic.partitions:
            yield
            row = messages.FetchResponse.PartitionData(
                partition_index=each.partition,
                error_code=errors.UNKNOWN_SERVER_ERROR,
                high_watermark=-1,
                last_stable_offset=-1,
                log_start_offset=-1,
                records=b"",
            )
            topics[-1].partitions.append(row)
    return messages.FetchResponse(
        error_code=errors.UNKNOWN_SERVER_ERROR, session_id=request.session_id, responses=topics
    )


def _free_in_steps(rows: Rows) -> Generator[None, None, None]:
    """Free rows in steps, because freeing them takes almost as long as making them."""
    while rows:
        yield
        del rows[-_FREED_AT_ONCE:]


def _asked(ctx: Context, request: messages.FetchRequest) -> Generator[None, None, Asked]:
    """As `fetch._asked`, in steps."""
    sessions = ctx.fetch_sessions
    by_id = ctx.version >= 13
    if request.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH):
        session = sessions.get(request.session_id)
        if session is None:
            return errors.FETCH_SESSION_ID_NOT_FOUND
        if error := fetch.session_error(session, request, by_id):
            return error
        return (yield from _updated(ctx, session, request, by_id))
    if request.session_id != INVALID_SESSION_ID:
        sessions.remove(request.session_id)
    partitions = yield from _partitions(ctx, request, by_id)
    created: FetchSession | None = None
    if request.session_epoch == INITIAL_EPOCH and ctx.version >= 7:
        created = sessions.create(partitions, by_id, ctx.now, privileged=fetch.replica_id(ctx, request) >= 0)
    return created, list(partitions.values()), True


def _partitions(
    ctx: Context, request: messages.FetchRequest, by_id: bool
) -> Generator[None, None, dict[object, FetchPartition]]:
    result: dict[object, FetchPartition] = {}
    for topic in request.topics:
        name = fetch.topic_name(ctx, topic.topic_id) if by_id else topic.topic
        for asked in topic.partitions:
            yield
            result[(topic.topic_id if by_id else name, asked.partition)] = FetchPartition(name, topic.topic_id, asked)
    return result


def _updated(
    ctx: Context, session: FetchSession, request: messages.FetchRequest, by_id: bool
) -> Generator[None, None, Asked]:
    sessions = ctx.fetch_sessions
    # The epoch changes now, so that a second request with it is refused while the first is served.
    session.next_epoch()
    epoch = session.epoch
    new = yield from _partitions(ctx, request, by_id)
    for key, asked in new.items():
        yield
        known = session.partitions.get(key)
        if known is not None:
            asked.high_watermark = known.high_watermark
            asked.log_start_offset = known.log_start_offset
        session.partitions[key] = asked
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield
            session.partitions.pop((topic.topic_id if by_id else topic.topic, index), None)
    for partition in list(session.partitions.values()) if by_id else ():
        yield
        if partition.topic is None:
            partition.topic = fetch.topic_name(ctx, partition.topic_id)
    if session.epoch != epoch:
        return errors.INVALID_FETCH_SESSION_EPOCH
    if not session.partitions:
        sessions.remove(session.id)
        return None, list(new.values()), True
    # Another session may have evicted this one between the steps.
    if sessions.get(session.id) is not session or not sessions.touch(session, ctx.now):
        return errors.FETCH_SESSION_ID_NOT_FOUND
    return session, list(session.partitions.values()), False


class _LongFetch(fetch.Fetch):
    """A `Fetch` whose `read` and `answer` are called with some partitions at a time."""

    __slots__ = ("_all", "_least_bytes", "_most_bytes")

    def __init__(
        self,
        ctx: Context,
        request: messages.FetchRequest,
        session: FetchSession | None,
        partitions: list[FetchPartition],
        full: bool,
    ) -> None:
        super().__init__(ctx, request, session, partitions, full)
        self._all = partitions
        self._most_bytes = self.max_bytes
        self._least_bytes = self.min_bytes
        # Only the sum over all steps can be compared with min_bytes.
        self.min_bytes = _NEVER

    def read_in_steps(self) -> Generator[None, None, tuple[Rows, bool]]:
        """As `read`, in steps."""
        rows: list[tuple[FetchPartition, messages.FetchResponse.PartitionData]] = []
        unknown: list[tuple[FetchPartition, messages.FetchResponse.PartitionData]] = []
        left = self._most_bytes
        total = 0
        enough = self.max_wait_ms <= 0
        for start in range(0, len(self._all), AT_ONCE):
            yield
            self._partitions = self._all[start : start + AT_ONCE]
            self.max_bytes = left
            some, is_enough = self.read(total)
            known = [each for each in some if not _is_unknown(each[1])]
            unknown += some[len(known) :]
            if known:
                # `read` always has enough if all partitions are unknown, so such steps do not count.
                enough = enough or is_enough
                rows += known
                size = sum(len(row.records) for _, row in known if row.records)
                total += size
                if any(not row.error_code for _, row in known):
                    left = max(0, left - size)
        return rows + unknown, enough or not rows or total >= self._least_bytes

    def logs_in_steps(self, found: dict[PartitionLog, None]) -> Generator[None, None, None]:
        """As `logs`, in steps; adds them to `found`."""
        absent: set[FetchPartition] = set()
        for start in range(0, len(self._all), AT_ONCE):
            yield
            self._partitions = self._all[start : start + AT_ONCE]
            found.update(dict.fromkeys(self.logs()))
            absent |= self._absent or set()
        self._absent = absent

    def answer_in_steps(
        self, rows: list[tuple[FetchPartition, messages.FetchResponse.PartitionData]]
    ) -> Generator[None, None, messages.FetchResponse]:
        """As `answer`, in steps."""
        throttled = self.throttled(rows)
        if throttled is not None:
            return throttled
        whole = self.answer_with(rows[:AT_ONCE])
        for start in range(AT_ONCE, len(rows), AT_ONCE):
            yield
            part = self.answer_with(rows[start : start + AT_ONCE])
            if part.error_code:
                return part
            topics = whole.responses
            for topic in part.responses:
                if topics and (topics[-1].topic, topics[-1].topic_id) == (topic.topic, topic.topic_id):
                    topics[-1].partitions += topic.partitions
                else:
                    topics.append(topic)
            known = {endpoint.node_id for endpoint in whole.node_endpoints}
            # A new list: structs share their default values.
            whole.node_endpoints = whole.node_endpoints + [
                each for each in part.node_endpoints if each.node_id not in known
            ]
        return whole


def _is_unknown(row: messages.FetchResponse.PartitionData) -> bool:
    """Whether `read` put the row behind all others, because the partition has no log."""
    return row.error_code in _UNKNOWN and row.aborted_transactions is not None


class DelayedLongFetch:
    """A long Fetch that found less than `min_bytes`.

    Its attempts and its expiry are generators. They return the response, or this operation if it must wait again.
    """

    __slots__ = ("_ctx", "_fetch", "_is_touched", "_logs", "deadline", "keys")

    ends_early = True

    def __init__(self, ctx: Context, long: _LongFetch) -> None:
        self._ctx = ctx
        self._fetch = long
        self._logs: dict[PartitionLog, None] = {}
        self._is_touched = False
        self.keys = (self,)
        self.deadline = ctx.now + long.max_wait_ms / 1000

    def __repr__(self) -> str:
        return f"DelayedLongFetch({len(self._logs)} partitions)"

    def is_touched_by(self, key: object) -> bool:
        """Note and return whether the touched key is one of its logs."""
        if key not in self._logs:
            return False
        self._is_touched = True
        return True

    def begin(self) -> Generator[None, None, object]:
        """Collect the logs to watch, and read again."""
        yield from self._fetch.logs_in_steps(self._logs)
        self._ctx.purgatory.listen(self)
        return (yield from self.attempt(self._ctx.now))

    def attempt(self, now: float) -> Generator[None, None, object]:
        """The response if there is enough, else this operation, to be delayed again."""
        try:
            while True:
                self._is_touched = False
                rows, enough = yield from self._fetch.read_in_steps()
                if enough or self._ctx.now >= self.deadline or (yield from self._is_closed()):
                    break
                yield from _free_in_steps(rows)
                if not self._is_touched:
                    return self
        except BaseException:
            self._ctx.purgatory.ignore(self)
            raise
        self._ctx.purgatory.ignore(self)
        return (yield from self._fetch.answer_in_steps(rows))

    def expire(self, now: float) -> Generator[None, None, object]:
        """The response with the records that there are."""
        self._ctx.purgatory.ignore(self)
        rows, _ = yield from self._fetch.read_in_steps()
        return (yield from self._fetch.answer_in_steps(rows))

    def _is_closed(self) -> Generator[None, None, bool]:
        """Whether one of its logs is closed. A closed log, as one that a topic's restore from a snapshot replaced,
        never wakes the operation."""
        for log in self._logs:
            yield
            if log.closed:
                return True
        return False
