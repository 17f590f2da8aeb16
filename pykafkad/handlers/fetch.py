"""Fetch, versions 4 to 18, with Kafka 3.x from 0 (`fetch_old_formats.py`).

Records leave as slices of the log's files. An answer holds whole batches. The first batch may start before the fetch
offset, and one batch is given even above the size limits. With less than `min_bytes` to give, the answer waits up to
`max_wait_ms` for an append, unless a partition has an error. `fetch_long.py` serves requests for thousands of
partitions.

Versions: 7 sessions (KIP-227, `fetch_sessions.py`), 9 leader epoch checks (KIP-320), 11 rack, 12 flexible and diverging
epochs (KIP-595), 13 topic ids (KIP-516), 15 replica state, 16 leader hints (KIP-951).

A caller with an old leader epoch (FENCED_LEADER_EPOCH), and one that asks for a partition which this broker does not
lead (NOT_LEADER_OR_FOLLOWER), learn the leader and its address. Consumers of version 11 and later may read from a
follower, up to its high watermark. With `replica.selector.class` of `RackAwareReplicaSelector` the leader tells a
consumer of another rack the replica in sync in its rack, and gives it no records (KIP-392).

A client over a quota gets an answer without records, and is throttled (`server/quotas.py`). An answer has no more than
its quota lets through in all windows, except for one batch.

An unknown isolation level is UNKNOWN_SERVER_ERROR.

On a controller's listener it is the metadata log that is fetched, by voters and observers (KIP-595). The leader alone
has records for them; an epoch that differs from its own, and a node that does not lead, answer who does.

Two departures, on purpose. First, a delayed Fetch ends as soon as another request arrives on its connection; in Kafka
that request waits. Second, a delayed Fetch is answered when the broker stops; Kafka closes the connection without an
answer, or answers FENCED_LEADER_EPOCH to a caller that sent an epoch.

Followers read up to the end of what is written, and tell the leader by their offset how far they have got. One that is
not in the assignment gets UNKNOWN_LEADER_EPOCH, one of an earlier life of its broker (KIP-903) NOT_LEADER_OR_FOLLOWER.
While the leader's throttle is exceeded (KIP-73), a follower that is not in sync gets no records of throttled
partitions; they do not count for `min_bytes` either.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers import fetch_replicas
from pykafkad.handlers.authorization import may, refusal
from pykafkad.handlers.authorization_rules import CLUSTER_ACTION, RULES
from pykafkad.handlers.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    INVALID_SESSION_ID,
    FetchPartition,
    FetchSession,
)
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.handlers.context import Context
    from pykafkad.handlers.controller_context import ControllerContext
    from pykafkad.log.partition_log import PartitionLog

_READ_TOPIC, _CLUSTER_ACTION = RULES["Fetch"]
_Topic = messages.FetchResponse.FetchableTopicResponse
_Row = messages.FetchResponse.PartitionData

_ZERO_ID = bytes(16)
_READ_COMMITTED = 1
_FOLLOWERS_SINCE = 11
_ZSTD_SINCE = 10
_BATCHES_SINCE = 4
# What counts for the quota of bytes besides the records.
_HEAD_BYTES = 20
_ROW_BYTES = 50
ISOLATION_LEVELS = (0, _READ_COMMITTED)


def handle(ctx: Context | ControllerContext, request: messages.FetchRequest) -> object:
    """An answer at once, or a `DelayedFetch`."""
    if ctx.on_controller:
        return _of_metadata(ctx, request)
    if request.isolation_level not in ISOLATION_LEVELS:
        from pykafkad.handlers.fetch_long import refused

        return refused(request, ctx.version)
    asked = _asked(ctx, request)
    if isinstance(asked, int):
        return messages.FetchResponse(error_code=asked)
    session, partitions, full = asked
    if session is not None and replica_id(ctx, request) >= 0:
        from pykafkad.handlers import fetch_follower

        return fetch_follower.serve(ctx, request, session, partitions, full)
    fetch = Fetch(ctx, request, session, partitions, full)
    rows, enough = fetch.read()
    return fetch.answer(rows) if enough else DelayedFetch(fetch, ctx.now)


def _of_metadata(ctx: ControllerContext, request: messages.FetchRequest) -> object:
    """The metadata log, for voters and observers, which the node's replica of it answers."""
    if not may(ctx, CLUSTER_ACTION):
        return messages.FetchResponse(error_code=CLUSTER_ACTION.error)
    return ctx.controller.ask_quorum(ctx.token, request)


def handle_long(ctx: Context, request: messages.FetchRequest) -> Generator[None, None, object]:
    """The same, in steps, for a request that is decoded in steps."""
    from pykafkad.handlers import fetch_long

    return fetch_long.serve(ctx, request)


class DelayedFetch:
    """A Fetch that found less than `min_bytes`. It watches its logs, and at the deadline answers with the records that
    there are."""

    __slots__ = ("_fetch", "deadline", "keys")

    ends_early = True

    def __init__(self, fetch: Fetch, now: float) -> None:
        self._fetch = fetch
        self.keys = fetch.logs()
        self.deadline = now + fetch.max_wait_ms / 1000

    def __repr__(self) -> str:
        return f"DelayedFetch({len(self.keys)} partitions, at least {self._fetch.min_bytes} bytes)"

    def attempt(self, now: float) -> object | None:
        rows, enough = self._fetch.read()
        # A log that was replaced, as by a topic's restore from a snapshot, never wakes the operation.
        return self._fetch.answer(rows) if enough or any(log.closed for log in self.keys) else None

    def expire(self, now: float) -> object:
        return self._fetch.answer(self._fetch.read()[0])


def _asked(
    ctx: Context, request: messages.FetchRequest
) -> tuple[FetchSession | None, list[FetchPartition], bool] | int:
    """(session or None, partitions to read, whether the answer is a full one with all of them), or an error code."""
    sessions = ctx.fetch_sessions
    by_id = ctx.version >= 13
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id != INVALID_SESSION_ID:
            sessions.remove(request.session_id)
        partitions = _partitions(ctx, request, by_id)
        session = None
        if request.session_epoch == INITIAL_EPOCH and ctx.version >= 7:
            session = sessions.create(partitions, by_id, ctx.now, privileged=replica_id(ctx, request) >= 0)
        return session, list(partitions.values()), True
    session = sessions.get(request.session_id)
    if session is None:
        return errors.FETCH_SESSION_ID_NOT_FOUND
    if error := session_error(session, request, by_id):
        return error
    _update(ctx, session, request, by_id)
    if not session.partitions:
        sessions.remove(session.id)
        return None, list(_partitions(ctx, request, by_id).values()), True
    if not sessions.touch(session, ctx.now):
        return errors.FETCH_SESSION_ID_NOT_FOUND
    session.next_epoch()
    return session, list(session.partitions.values()), False


def session_error(session: FetchSession, request: messages.FetchRequest, by_id: bool) -> int:
    """The error of a request that cannot continue `session`; NONE if it can."""
    if session.epoch != request.session_epoch:
        return errors.INVALID_FETCH_SESSION_EPOCH
    return errors.FETCH_SESSION_TOPIC_ID_ERROR if session.uses_topic_ids != by_id else errors.NONE


def replica_id(ctx: Context, request: messages.FetchRequest) -> int:
    """The id of the broker that fetches; negative for a consumer."""
    return request.replica_state.replica_id if ctx.version >= 15 else request.replica_id


def topic_name(ctx: Context, topic_id: bytes) -> str | None:
    """The name of the topic with that id, or None."""
    topic = ctx.metadata.topic_by_id(topic_id)
    return None if topic is None else topic.name


def _partitions(ctx: Context, request: messages.FetchRequest, by_id: bool) -> dict[object, FetchPartition]:
    result: dict[object, FetchPartition] = {}
    for topic in request.topics:
        name = topic_name(ctx, topic.topic_id) if by_id else topic.topic
        for asked in topic.partitions:
            result[(topic.topic_id if by_id else name, asked.partition)] = FetchPartition(name, topic.topic_id, asked)
    return result


def _update(ctx: Context, session: FetchSession, request: messages.FetchRequest, by_id: bool) -> None:
    for key, asked in _partitions(ctx, request, by_id).items():
        known = session.partitions.get(key)
        if known is None:
            session.partitions[key] = asked
        else:
            asked.high_watermark = known.high_watermark
            asked.log_start_offset = known.log_start_offset
            session.partitions[key] = asked
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.partitions.pop((topic.topic_id if by_id else topic.topic, index), None)
    if by_id:
        for partition in session.partitions.values():
            if partition.topic is None:
                # The topic of an id that was unknown at first may have been created since.
                partition.topic = topic_name(ctx, partition.topic_id)


class Fetch:
    """One request while it is served. A delayed request is read several times before it is answered."""

    __slots__ = (
        "_absent",
        "_converts",
        "_counted",
        "_ctx",
        "_follower",
        "_full",
        "_not_led_here",
        "_partitions",
        "_rack",
        "_read_committed",
        "_refusals",
        "_replica_epoch",
        "_replica_id",
        "_session",
        "_session_epoch",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
    )

    def __init__(
        self,
        ctx: Context,
        request: messages.FetchRequest,
        session: FetchSession | None,
        partitions: list[FetchPartition],
        full: bool,
    ) -> None:
        self._ctx = ctx
        # Partitions without a log when the wait began; None before the wait.
        self._absent: set[FetchPartition] | None = None
        self._session = session
        self._session_epoch = session.epoch if session is not None else 0
        self._partitions = partitions
        self._full = full
        self._read_committed = request.isolation_level == _READ_COMMITTED
        self._replica_id = replica_id(ctx, request)
        self._replica_epoch = request.replica_state.replica_epoch if ctx.version >= 15 else -1
        self._follower = self._replica_id >= 0
        # What the follower has said of itself; it says it once, however often the partitions are read.
        self._counted: set[FetchPartition] = set()
        # The rack of a consumer that is told which replica to read from (KIP-392), or an empty text.
        self._rack = fetch_replicas.rack_of_caller(ctx, request) if not self._follower else ""
        self._not_led_here = ctx.partitions.not_led_here
        release = ctx.settings.release
        # Whether the caller may not understand what the log has.
        self._converts = release is not None and ctx.version < _ZSTD_SINCE and release.has_old_formats
        # Topic to its error or NONE. Each topic is decided once, when it is first read.
        self._refusals: dict[str | None, int] = {}
        self.max_bytes = min(request.max_bytes, ctx.settings.fetch_max_bytes)
        if ctx.quota is not None:
            self.max_bytes = min(self.max_bytes, ctx.quota.max_fetch_bytes)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        self.max_wait_ms = request.max_wait_ms

    def logs(self) -> list[PartitionLog]:
        """The logs that the request waits for from now on."""
        found: dict[PartitionLog, None] = {}
        self._absent = absent = set()
        for partition in self._partitions:
            log = self._log(partition)
            if log is None:
                absent.add(partition)
            else:
                found[log] = None
        return list(found)

    def read(self, total: int = 0) -> tuple[list[tuple[FetchPartition, _Row]], bool]:
        """The pairs (partition, response row), and whether they suffice to answer now. `total` bytes have been read
        before."""
        rows = []
        unknown = []
        left = self.max_bytes
        enough = self.max_wait_ms <= 0
        interesting = False
        changes = self._changes_if_quiet()
        for partition in self._partitions:
            if changes is not None and partition.is_quiet(changes, self._ctx.now):
                interesting = True
                continue
            row = _Row(
                partition_index=partition.partition,
                high_watermark=-1,
                last_stable_offset=-1,
                log_start_offset=-1,
                aborted_transactions=None,
                records=b"",
            )
            log = self._log(partition)
            if log is None:
                row.error_code = self._refusal(partition.topic)
                if row.error_code == errors.NONE and partition.topic is not None:
                    row.error_code = self._ctx.error_of_absent(partition.topic, partition.partition)
                # A log that goes during the wait ends it; one that was absent from the start does not.
                has_gone = self._absent is not None and partition not in self._absent
                if has_gone or row.error_code == errors.NOT_LEADER_OR_FOLLOWER:
                    enough = True
                    rows.append((partition, row))
                    continue
                row.aborted_transactions = []
                unknown.append((partition, row))
                continue
            interesting = True
            try:
                size = self._read_one(partition, row, log, left, total == 0)
            except errors.KafkaError as error:
                row.error_code = error.code
                enough = True
                fetch_replicas.tell(self._ctx, self._replica_id, partition, log, error.code)
            except errors.StorageFailure as failure:
                self._ctx.storage_failed(log, failure)
                row.error_code = errors.KAFKA_STORAGE_ERROR if self._ctx.version > 5 else errors.NOT_LEADER_OR_FOLLOWER
                enough = True
            else:
                if row.diverging_epoch.epoch >= 0:
                    fetch_replicas.tell(self._ctx, self._replica_id, partition, log, errors.OFFSET_OUT_OF_RANGE)
                if row.diverging_epoch.epoch >= 0 or row.preferred_read_replica >= 0:
                    enough = True
                total += size
                left = max(0, left - size)
            rows.append((partition, row))
        return rows + unknown, enough or not interesting or total >= self.min_bytes

    def _changes_if_quiet(self) -> int | None:
        """The count of the metadata's changes if partitions without news may be left out; None if all are answered."""
        if not self._follower or self._full or self._refusal("") != errors.NONE:
            return None
        return self._ctx.partitions.changes

    def answer(self, rows: list[tuple[FetchPartition, _Row]]) -> messages.FetchResponse:
        """The response; an incremental one leaves out partitions without news."""
        return self.throttled(rows) or self.answer_with(rows)

    def throttled(self, rows: list[tuple[FetchPartition, _Row]]) -> messages.FetchResponse | None:
        """The response of a client that is over a quota: it has no rows, begins no session, and changes none
        (KIP-219). None within the quotas."""
        quota, session = self._ctx.quota, self._session
        if quota is None or self._follower or not quota.throttles_fetch(self._size_of(rows)):
            return None
        if session is not None and self._full:
            self._ctx.fetch_sessions.remove(session.id)
            session = None
        return messages.FetchResponse(session_id=INVALID_SESSION_ID if session is None else session.id)

    def _size_of(self, rows: list[tuple[FetchPartition, _Row]]) -> int:
        """About as many bytes as the response with these rows has."""
        size_bytes = _HEAD_BYTES
        for partition, row in rows:
            if self._full or partition.would_have_news(row):
                size_bytes += _ROW_BYTES + (len(row.records) if row.records else 0)
        return size_bytes

    def answer_with(self, rows: list[tuple[FetchPartition, _Row]]) -> messages.FetchResponse:
        """The response, whatever the quotas say."""
        session, read = self._session, rows
        session_id = INVALID_SESSION_ID if session is None else session.id
        if session is not None:
            if session.epoch != self._session_epoch:
                return messages.FetchResponse(error_code=errors.INVALID_FETCH_SESSION_EPOCH, session_id=session_id)
            told = []
            for partition, row in rows:
                if partition.has_news(row) or self._full:
                    told.append((partition, row))
                    if not self._full and row.records:
                        key = (partition.topic_id if session.uses_topic_ids else partition.topic, partition.partition)
                        if session.partitions.get(key) is partition:
                            # Partitions with records go to the end, so that max_bytes starves no others.
                            del session.partitions[key]
                            session.partitions[key] = partition
            rows = told
        if self._follower:
            if session is not None:
                from pykafkad.handlers.fetch_follower import note_quiet

                note_quiet(self._ctx, read, self._replica_id)
            self._count_sent(rows)
        topics: list[_Topic] = []
        last: object = None
        for partition, row in rows:
            of_topic = partition.topic_id if self._ctx.version >= 13 else partition.topic
            if of_topic != last or not topics:
                topics.append(_Topic(topic=partition.topic or "", topic_id=partition.topic_id, partitions=[]))
                last = of_topic
            topics[-1].partitions.append(row)
        response = messages.FetchResponse(session_id=session_id, responses=topics)
        if self._ctx.version >= 16:
            fetch_replicas.add_leaders(self._ctx, response, rows, with_addresses=not self._follower)
        return response

    def _count_sent(self, rows: list[tuple[FetchPartition, _Row]]) -> None:
        found = ((self._log(partition), len(row.records) if row.records else 0) for partition, row in rows)
        self._ctx.replication.sent([(log, size) for log, size in found if log is not None])

    def _log(self, partition: FetchPartition) -> PartitionLog | None:
        if partition.topic is None or self._refusal(partition.topic) != errors.NONE:
            return None
        return self._ctx.partitions.get(partition.topic, partition.partition)

    def _refusal(self, topic: str | None) -> int:
        """The error that keeps the caller from reading a topic at all, or NONE. A name of None stands for an unknown
        id."""
        code = self._refusals.get(topic)
        if code is None:
            if self._follower:
                code = refusal(self._ctx, _CLUSTER_ACTION)
            elif topic is not None:
                code = refusal(self._ctx, _READ_TOPIC, topic)
            if not code:
                code = errors.UNKNOWN_TOPIC_ID if topic is None else errors.NONE
            self._refusals[topic] = code
        return code

    def _read_one(
        self, partition: FetchPartition, row: _Row, log: PartitionLog, left: int, minimum_one_batch: bool
    ) -> int:
        """Fill `row` from `log`. Returns the size of the records in bytes. Raises KafkaError or StorageFailure."""
        # A log that cannot be written can still be read, unless its directory is offline.
        if log.closed and log.offline is not None:
            raise log.offline.copy()
        if partition.topic_id != _ZERO_ID and partition.topic_id != log.topic_id:
            raise errors.KafkaError(errors.INCONSISTENT_TOPIC_ID)
        asked, is_followed = partition.current_leader_epoch, log in self._not_led_here
        epoch = self._not_led_here[log] if is_followed else log.leader_epoch
        if asked >= 0 and asked != epoch:
            raise errors.KafkaError(errors.FENCED_LEADER_EPOCH if asked < epoch else errors.UNKNOWN_LEADER_EPOCH)
        # Consumers that know of followers may read from one (KIP-392).
        if is_followed and (self._follower or self._ctx.version < _FOLLOWERS_SINCE):
            raise errors.KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        if self._follower:
            self._ctx.replication.check_follower(log, self._replica_id, self._replica_epoch, asked)
        diverging = fetch_replicas.diverging(partition, log)
        row.high_watermark = log.high_watermark
        row.last_stable_offset = log.last_stable_offset
        row.log_start_offset = log.log_start_offset
        if diverging is not None:
            row.diverging_epoch = diverging
            return 0
        if self._rack and not is_followed:
            row.preferred_read_replica = fetch_replicas.preferred(self._ctx, log, self._rack, partition.fetch_offset)
            if row.preferred_read_replica >= 0:
                return 0
        limit = min(partition.max_bytes, left)
        try:
            records = log.read(
                partition.fetch_offset,
                max(limit, 0),
                end_offset=self._end_of_read(log),
                minimum_one_batch=minimum_one_batch or limit < 0,
            )
            if limit < 0 and records is not None:
                raise errors.KafkaError(errors.UNKNOWN_SERVER_ERROR, f"{limit} bytes cannot be read")
            if self._follower and records is not None and self._ctx.replication.withholds(log, self._replica_id):
                records = None
        except errors.KafkaError:
            row.high_watermark = row.last_stable_offset = row.log_start_offset = -1
            raise
        if self._follower and partition not in self._counted:
            self._counted.add(partition)
            offsets = partition.fetch_offset, self._replica_epoch, partition.follower_start_offset
            self._ctx.replication.fetched(log, self._replica_id, *offsets)
        if self._read_committed:
            row.aborted_transactions = []
        if self._converts:
            from pykafkad.handlers.fetch_old_formats import as_understood

            try:
                understood = as_understood(self._ctx, log, records, partition.fetch_offset)
            except errors.KafkaError:
                row.high_watermark = row.last_stable_offset = row.log_start_offset = -1
                raise
            if self._ctx.version < _BATCHES_SINCE:
                row.records = understood
                return 0 if records is None else records.chunk_size
        if records is None:
            return 0
        row.records = records
        if self._read_committed and log.has_aborted:
            row.aborted_transactions = [
                messages.FetchResponse.AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in log.aborted_transactions(partition.fetch_offset, records)
            ]
        return records.chunk_size

    def _end_of_read(self, log: PartitionLog) -> int:
        if self._follower:
            return log.written_end_offset
        return log.last_stable_offset if self._read_committed else log.high_watermark
