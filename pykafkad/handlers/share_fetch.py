"""ShareFetch, versions 1 to 2 (KIP-932).

A member of a share group gets records, which are then its own until it gives them back or its lock on them runs out.
The request may give records back too; what it asks for is then answered together with the outcome of that. The first
request of a member begins a share session with the partitions that it fetches (epoch 0); later ones name only changes.
Epoch -1 ends the session and releases what the member has.

The answer has the batches of the log that hold acquired records, and the ranges of offsets that the member got. With
less than `min_bytes` to give, it waits up to `max_wait_ms`. It also waits for what the request gives back to be stored.
Version 2 renews locks (KIP-1222) and acquires exactly `max_records` on request (KIP-1206); version 1 acquires whole
batches.

A delayed ShareFetch ends as soon as another request arrives on its connection; in Kafka that request waits.

A member over a quota gets an answer without records, with the outcome of what it gave back, and is throttled
(`server/quotas.py`). As in Kafka, the records that it would have got stay acquired until their lock runs out. An answer
has no more than its quota lets through in all windows, except for one batch.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import refusal
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.share_acknowledgements import Acknowledgements, add_leaders, request_error
from pykafkad.handlers.share_reading import Scan
from pykafkad.handlers.share_sessions import FINAL_EPOCH, INITIAL_EPOCH
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.handlers.context import Context
    from pykafkad.handlers.services import LedSharePartition
    from pykafkad.handlers.share_sessions import ShareSession
    from pykafkad.log.file_slice import FileSlice

    Partition = tuple[bytes, int]
    """Topic id and index."""

_READ_GROUP, _READ_TOPIC = RULES["ShareFetch"]
_Topic = messages.ShareFetchResponse.ShareFetchableTopicResponse
_Row = messages.ShareFetchResponse.PartitionData
_BATCH_OPTIMIZED, _RECORD_LIMIT = 0, 1

# What counts for the quota of bytes besides the records.
_HEAD_BYTES = 18
_ROW_BYTES = 36
_ACQUIRED_BYTES = 18


def handle(ctx: Context, request: messages.ShareFetchRequest) -> object:
    """An answer at once, or a `DelayedShareFetch`."""
    error = request_error(ctx, request, _READ_GROUP)
    is_renewal = ctx.version >= 2 and request.is_renew_ack
    if (
        not error
        and is_renewal
        and (request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms) != ((0, 0, 0, 0))
    ):
        error = errors.INVALID_REQUEST
    if not error and ctx.version >= 2 and request.share_acquire_mode not in (_BATCH_OPTIMIZED, _RECORD_LIMIT):
        # Kafka throws IllegalArgumentException here.
        error = errors.UNKNOWN_SERVER_ERROR
    if error:
        return messages.ShareFetchResponse(error_code=error)
    gives_back = any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions)
    is_full = request.share_session_epoch == INITIAL_EPOCH
    session = _session(ctx, request, gives_back)
    if session == errors.SHARE_SESSION_LIMIT_REACHED:
        return _Pause(ctx.now, request.max_wait_ms)
    if isinstance(session, int):
        return messages.ShareFetchResponse(error_code=session)
    is_final = request.share_session_epoch == FINAL_EPOCH
    fetch = ShareFetch(ctx, request, session, is_full)
    if not is_final and not is_renewal:
        fetch.open(_rotated(list(session.partitions), request.share_session_epoch))
    delayed = DelayedShareFetch(fetch, ctx.now)
    acknowledgements = fetch.acknowledgements = Acknowledgements(lambda: ctx.share_groups.touch(delayed))
    if gives_back:
        acknowledgements.submit(ctx, request, _READ_TOPIC)
    else:
        acknowledgements.submit_nothing()
    answer = delayed.attempt(ctx.now) if request.max_wait_ms > 0 else delayed.expire(ctx.now)
    return delayed if answer is None else answer


def _session(ctx: Context, request: messages.ShareFetchRequest, gives_back: bool) -> ShareSession | int:
    """The session of the request, which has its next epoch then, or an error code."""
    sessions = ctx.share_groups.sessions
    member = request.group_id or "", request.member_id or ""
    session = sessions.get(*member)
    named = [(bytes(topic.topic_id), each.partition_index) for topic in request.topics for each in topic.partitions]
    if request.share_session_epoch == INITIAL_EPOCH:
        if gives_back:
            return errors.INVALID_REQUEST
        sessions.remove(*member)
        return sessions.create(*member, named, ctx.connection.id) or errors.SHARE_SESSION_LIMIT_REACHED
    if session is None:
        return errors.SHARE_SESSION_NOT_FOUND
    if request.share_session_epoch == FINAL_EPOCH:
        return session
    if session.epoch != request.share_session_epoch:
        return errors.INVALID_SHARE_SESSION_EPOCH
    forgotten = [
        (bytes(topic.topic_id), index) for topic in request.forgotten_topics_data for index in topic.partitions
    ]
    if not sessions.update(session, named, forgotten):
        return errors.SHARE_SESSION_LIMIT_REACHED
    session.next_epoch()
    return session


def _rotated(partitions: list[Partition], epoch: int) -> list[Partition]:
    """The partitions in another order for each epoch, so that `max_records` starves none."""
    if len(partitions) < 2 or epoch < 1:
        return partitions
    at = epoch % len(partitions)
    return partitions[at:] + partitions[:at]


class _Pause:
    """A consumer that gets no session waits as long as its fetch would have, so that it does not ask at once again."""

    __slots__ = ("deadline",)

    ends_early = True
    keys = ()

    def __init__(self, now: float, max_wait_ms: int) -> None:
        self.deadline = now + max(0, max_wait_ms) / 1000

    def attempt(self, now: float) -> object | None:
        return None

    def expire(self, now: float) -> object:
        return messages.ShareFetchResponse(error_code=errors.SHARE_SESSION_LIMIT_REACHED)


class DelayedShareFetch:
    """A ShareFetch that found less than `min_bytes`, or whose acknowledgements are being stored. It watches itself, its
    share partitions and their logs."""

    __slots__ = ("_fetch", "_is_over", "deadline", "keys")

    ends_early = True

    def __init__(self, fetch: ShareFetch, now: float) -> None:
        self._fetch = fetch
        self._is_over = False
        self.keys = [self, *fetch.led, *dict.fromkeys(led.log for led in fetch.led)]
        self.deadline = now + max(0, fetch.request.max_wait_ms) / 1000

    def __repr__(self) -> str:
        return f"DelayedShareFetch({len(self._fetch.led)} partitions, at least {self._fetch.request.min_bytes} bytes)"

    def attempt(self, now: float) -> object | None:
        return self._fetch.attempt(now, is_over=self._is_over)

    def expire(self, now: float) -> object | None:
        """None as long as the acknowledgements are not stored; the answer follows then."""
        self._is_over = True
        return self.attempt(now)


class ShareFetch:
    """One request while it is served."""

    __slots__ = ("_ctx", "_errors", "_is_committed", "_is_full", "_session", "acknowledgements", "led", "request")

    acknowledgements: Acknowledgements

    def __init__(self, ctx: Context, request: messages.ShareFetchRequest, session: ShareSession, is_full: bool) -> None:
        self._ctx = ctx
        self.request = request
        self._session = session
        self._is_full = is_full
        self._is_committed = ctx.share_groups.limits(request.group_id or "").is_read_committed
        self._errors: dict[Partition, int] = {}
        self.led: list[LedSharePartition] = []

    def open(self, partitions: Iterable[Partition]) -> None:
        """Find the share partitions; those that cannot be read have an error."""
        ctx, group_id = self._ctx, self.request.group_id or ""
        is_idle = not self.request.max_records or not self._max_bytes
        for topic_id, index in partitions:
            topic = ctx.metadata.topic_by_id(topic_id)
            if topic is None:
                self._errors[topic_id, index] = errors.UNKNOWN_TOPIC_ID
                continue
            code = refusal(ctx, _READ_TOPIC, topic.name)
            if not code and not 0 <= index < len(topic.partitions):
                code = errors.UNKNOWN_TOPIC_OR_PARTITION
            log = None if code else ctx.partitions.get(topic.name, index)
            if not code and (log is None or log in ctx.partitions.not_led_here):
                code = errors.NOT_LEADER_OR_FOLLOWER
            if code:
                self._errors[topic_id, index] = code
            elif log is not None and not is_idle:
                self.led.append(ctx.share_groups.open((group_id, topic_id, index), log))

    @property
    def _max_bytes(self) -> int:
        most, quota = min(self.request.max_bytes, self._ctx.settings.fetch_max_bytes), self._ctx.quota
        return most if quota is None else min(most, quota.max_fetch_bytes)

    # Reading and acquiring.

    def attempt(self, now: float, *, is_over: bool) -> object | None:
        """The answer, or None while there is none yet. `is_over`: no waiting for more records."""
        if not self.acknowledgements.is_done:
            return None
        if not self.led:
            return self._answer({})
        for led in self.led:
            if led.error:
                self._errors[led.key[1:]] = led.error
        acquirable = [led for led in self.led if led.is_active and led.of.can_acquire()]
        rows: dict[Partition, _Row] = {}
        read = self._read(acquirable, rows)
        size = sum(records.chunk_size for _, _, records in read)
        is_failed = bool(rows) or all(led.error for led in self.led)
        if not is_over and not is_failed and (not acquirable or size < min(self.request.min_bytes, self._max_bytes)):
            return None
        left = self.request.max_records
        for led, fetch_offset, records in read:
            row, count = self._acquire(led, fetch_offset, records, left, now)
            rows[led.key[1:]] = row
            left -= count
        for led in acquirable:
            rows.setdefault(led.key[1:], _row(led.key[2]))
        return self._answer(rows)

    def _read(
        self, acquirable: list[LedSharePartition], rows: dict[Partition, _Row]
    ) -> list[tuple[LedSharePartition, int, FileSlice]]:
        """What the logs have; a row for each that cannot be read is added to `rows`."""
        found = []
        share, rest = divmod(self._max_bytes, max(1, len(acquirable)))
        for position, led in enumerate(acquirable):
            log, offset = led.log, led.of.next_fetch_offset()
            try:
                end_offset = log.last_stable_offset if self._is_committed else log.high_watermark
                records = log.read(offset, share + (rest if position == 0 else 0), end_offset=end_offset)
            except errors.KafkaError as error:
                rows[led.key[1:]] = _row(led.key[2], self._read_error(led, error))
            except errors.StorageFailure as failure:
                self._ctx.storage_failed(log, failure)
                rows[led.key[1:]] = _row(led.key[2], errors.KAFKA_STORAGE_ERROR)
            else:
                if records is not None:
                    found.append((led, offset, records))
        return found

    @staticmethod
    def _read_error(led: LedSharePartition, error: errors.KafkaError) -> int:
        """A log whose start has moved is no error: the share partition follows it."""
        if error.code != errors.OFFSET_OUT_OF_RANGE:
            return error.code
        led.of.log_start_moved(led.log.log_start_offset)
        return errors.NONE

    def _acquire(
        self, led: LedSharePartition, fetch_offset: int, records: FileSlice, left: int, now: float
    ) -> tuple[_Row, int]:
        row = _row(led.key[2])
        if left <= 0:
            return row, 0
        request, of = self.request, led.of
        # What lies behind the records in flight is acquired from its start on, so no more need be looked at.
        scan = Scan(records, max(fetch_offset, of.end_offset + 1) + min(left, of.limits.max_record_locks) - 1)
        acquired, count = of.acquire(
            request.member_id or "",
            scan.batches,
            fetch_offset,
            left,
            request.batch_size,
            now,
            is_record_limit=self._ctx.version >= 2 and request.share_acquire_mode == _RECORD_LIMIT,
            aborted=scan.aborted(led.log, fetch_offset) if self._is_committed else (),
        )
        led.plan()
        if acquired:
            row.records = scan.between(acquired[0].first_offset, acquired[-1].last_offset)
            row.acquired_records = [
                messages.ShareFetchResponse.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=times)
                for first, last, times in acquired
            ]
        return row, count

    # The answer.

    def _answer(self, rows: dict[Partition, _Row]) -> messages.ShareFetchResponse:
        ctx, request = self._ctx, self.request
        for partition, code in self._errors.items():
            rows[partition] = _row(partition[1], code)
        if self._is_throttled(rows):
            told: dict[Partition, _Row] = {}
        elif self._is_full:
            told = rows
        else:
            told = {key: row for key, row in rows.items() if self._tells(key, row)}
        for partition, (code, text) in self.acknowledgements.outcomes.items():
            row = told.get(partition)
            if row is None:
                row = told[partition] = _row(partition[1])
            row.acknowledge_error_code, row.acknowledge_error_message = code, text
        if request.share_session_epoch == FINAL_EPOCH:
            ctx.share_groups.release(request.group_id or "", request.member_id or "")
        topics: dict[bytes, _Topic] = {}
        for (topic_id, _), row in told.items():
            topics.setdefault(topic_id, _Topic(topic_id=topic_id)).partitions.append(row)
        response = messages.ShareFetchResponse(
            acquisition_lock_timeout_ms=ctx.share_groups.limits(request.group_id or "").lock_duration_ms,
            responses=list(topics.values()),
        )
        pairs = [(topic_id, row) for (topic_id, _), row in told.items()]
        add_leaders(ctx, response, pairs, messages.ShareFetchResponse.LeaderIdAndEpoch)
        return response

    def _is_throttled(self, rows: dict[Partition, _Row]) -> bool:
        """Whether an answer with these rows is over a quota: it is empty then, and its session stays as it is."""
        quota = self._ctx.quota
        if quota is None:
            return False
        told = (row for partition, row in rows.items() if self._is_full or self._has_news(partition, row))
        size_bytes = _HEAD_BYTES
        for row in told:
            size_bytes += _ROW_BYTES + len(row.records or b"") + _ACQUIRED_BYTES * len(row.acquired_records)
        return quota.throttles_fetch(size_bytes)

    def _has_news(self, partition: Partition, row: Any) -> bool:
        """Whether a later answer of the session must contain the partition: it has records or an error, or is new."""
        is_due = self._session.partitions.get(partition, True)
        return is_due or bool(row.records) or row.error_code != errors.NONE

    def _tells(self, partition: Partition, row: Any) -> bool:
        """The same; the session knows then that it was told."""
        has_news = self._has_news(partition, row)
        partitions = self._session.partitions
        if partition in partitions:
            partitions[partition] = row.error_code != errors.NONE
            if row.records:
                # Partitions with records go to the end.
                partitions[partition] = partitions.pop(partition)
        return has_news


def _row(index: int, code: int = errors.NONE) -> _Row:
    return _Row(partition_index=index, error_code=code, records=b"")
