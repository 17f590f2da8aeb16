"""What is appended, when it is committed, and everybody who waits for that.

Small batches are gathered per log and written once per turn. Large ones are written beside the loop, and those behind
them in the same log wait for them (`log_writer.py`). What a log has written is committed when its replica says so. With
one replica and no sync asked for, that is the end of the same turn, before anything leaves.

There is one way to wait: `after(log, offset, then)`. `add_answer` and `fast_answers` are the same for Produce answers
that stand in an outbox already: such an answer leaves in the same turn if its log is committed by then. Otherwise its
connection is *held*: nothing of its outbox leaves, so that answers stay in order. The connection goes on serving, up to
the outbox's limit. If the write or the sync fails, the answer is rewritten to KAFKA_STORAGE_ERROR before it leaves.

A log needs a sync before anything is committed with `pykafkad.group.commit`, and when `flush.messages` says so. Syncs
run off the loop, one round for all the logs that asked while the last round ran. What waits for a sync is neither
promised nor shown to readers. A sync that fails takes the log out of service."""

from __future__ import annotations

from collections import deque
from struct import Struct

from pykafkad import errors
from pykafkad.errors import KafkaError, StorageFailure
from pykafkad.log.replica import LEADER, Committed, ProposeIsr
from pykafkad.server.held_answers import NEVER, HeldAnswers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.syncing import SyncJob
    from pykafkad.server.broker import Broker
    from pykafkad.server.connection import Connection
    from pykafkad.server.dispatch import ServedContext
    from pykafkad.wire import messages

    Row = messages.ProduceResponse.PartitionProduceResponse
    Then = Callable[[Exception | None], object]
    FastAnswer = tuple[PartitionLog, Connection, int, int]
    DependentAnswer = tuple[list[tuple[PartitionLog, Row]], Connection, int, ServedContext, object]

_ERROR_AND_OFFSETS = Struct(">hqq")  # error code, base offset, log append time: the start of every produce answer's row

_EXPIRE = "expire"
_EXPIRY_SECONDS = 1.0


class Commits:
    """Collects appends during a turn, writes them at its end, and tells everybody who waits what is committed."""

    __slots__ = (
        "_always_sync",
        "_answers",
        "_expiring",
        "_gathering",
        "_postponed",
        "_syncing",
        "_waits",
        "broker",
        "dirty",
        "fast_answers",
    )

    def __init__(self, broker: Broker) -> None:
        self.dirty: dict[PartitionLog, None] = {}
        """Logs that got records in this turn."""
        self.fast_answers: list[FastAnswer] = []
        """(log, connection, index, error position): the answer at `connection.outbox[index]`, with its error code at
        that position, depends on the commit of `log`."""
        self.broker = broker
        self._always_sync: bool = broker.settings.pykafkad_group_commit
        self._answers: list[DependentAnswer] = []
        # Answers that wait for other replicas, at most as long as their requests allow.
        self._expiring: list[HeldAnswers] = []
        # By log: who waits, in the order of the offsets.
        self._waits: dict[PartitionLog, deque[tuple[int, Then]]] = {}
        # The logs of the next round of syncs, and those of the round that runs.
        self._gathering: dict[PartitionLog, None] = {}
        self._syncing: dict[PartitionLog, None] = {}
        # Logs whose syncs wait for the end of a move.
        self._postponed: dict[PartitionLog, None] = {}

    # --- who waits ----------------------------------------------------------------------------------------------------

    def mark(self, log: PartitionLog) -> None:
        """`log` got records: they are written at the end of the turn."""
        self.dirty[log] = None

    def after(self, log: PartitionLog, offset: int, then: Then) -> None:
        """Call `then(None)` when `log` is committed up to `offset` (exclusive), or `then(failure)` when it never will
        be. What is committed already is told at once. A log's offsets are asked for in rising order."""
        if offset <= log.high_watermark:
            then(None)
            return
        waits = self._waits.get(log)
        if waits is None:
            waits = self._waits[log] = deque()
        waits.append((offset, then))

    def after_all(self, log: PartitionLog, then: Then) -> None:
        """`after` for everything that is appended by now. Nobody waits where nothing is under way."""
        if self.is_settled(log):
            then(log.offline)
        else:
            self.after(log, log.end_offset, then)

    def is_settled(self, log: PartitionLog) -> bool:
        """Whether everything that is appended is committed, as far as it will be."""
        return log not in self.dirty and log not in self._waits and not log.writes_under_way

    def add_answer(
        self,
        rows: list[tuple[PartitionLog, Row]],
        connection: Connection,
        index: int,
        context: ServedContext,
        message: object,
    ) -> None:
        """The answer `message` at `connection.outbox[index]` depends on logs; `rows`: (log, row of the answer) each."""
        for log, _ in rows:
            self.dirty[log] = None
        self._answers.append((rows, connection, index, context, message))

    def hold_for(self, log: PartitionLog, connection: Connection) -> None:
        """The connection's next answer tells of what `log` has appended: nothing of its outbox leaves before that is
        committed. If it never is, the connection is closed: its peer must ask again."""
        if self.is_settled(log):
            return

        def then(failure: Exception | None) -> None:
            if failure is not None:
                connection.abort(f"its answer depends on a write that failed: {failure}")
            connection.release()

        connection.hold()
        self.after(log, log.end_offset, then)

    def is_waiting(self, log: PartitionLog) -> bool:
        """Whether something of `log` is appended and not committed, and somebody waits for it."""
        return bool(log in self._waits or log in self._gathering or log in self._syncing or log.writes_under_way)

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits, for a sync or anything else."""
        return not (self._waits or self._gathering or self._syncing)

    @property
    def is_syncing(self) -> bool:
        """Whether a round of syncs runs or is to be begun."""
        return bool(self._gathering or self._syncing)

    # --- written and committed ----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Write every log that got records, and tell what is committed by that; repeat while that leads to appends."""
        while self.dirty:
            self._write()

    def write_all(self) -> None:
        """`finish`, after waiting for the writes that run beside the loop."""
        self.broker.log_writer.finish_all()
        self.finish()

    def _write(self) -> None:
        logs = list(self.dirty)
        self.dirty.clear()
        failed: dict[PartitionLog, StorageFailure] = {}
        behind: dict[PartitionLog, bool] = {}
        for log in logs:
            if log.closed:
                # Its topic was deleted in this very turn: what was gathered for it went with it.
                failed[log] = StorageFailure("write", log.directory, "the partition was deleted")
                continue
            try:
                # What was gathered behind a write under way is written when that has ended. Followers are not made to
                # wait for it.
                if not log.writes_under_way or not log.replica.commits_alone:
                    log.write_pending()
                if log.offline is not None:
                    # A large batch that was written at once failed, and took with it what was gathered before.
                    raise log.offline.copy()
            except StorageFailure as failure:
                failed[log] = failure
            else:
                self._written(log, behind)
        fast_answers, answers = self.fast_answers, self._answers
        if failed:
            for log, reason in failed.items():
                if not log.closed:
                    self.broker.log_failed(log, reason)
            self.put_errors_into(failed, fast_answers, answers)
        if behind:
            self._hold_answers(behind)
        fast_answers.clear()
        answers.clear()
        if self._waits:
            for log in logs:
                if log in failed:
                    self.fail(log, failed[log])
                elif log in self._waits:
                    self._settle(log, log.high_watermark)

    def _written(self, log: PartitionLog, behind: dict[PartitionLog, bool]) -> None:
        """`log` is written up to `written_end_offset`. If not all of that is committed, it is put among those `behind`,
        with whether it waits for a sync."""
        replica = log.replica
        needs_sync = False
        if self._always_sync or self._gathering or self._syncing or log.is_flush_due:
            needs_sync = self._needs_sync(log)
        if needs_sync:
            self._gathering[log] = None
            behind[log] = True
        if not replica.commits_alone:
            end_offset = log.written_end_offset
            self.tell_end(log)
            self.perform(log, replica.appended(end_offset, self.broker.runtime.now, is_durable=not needs_sync))
            # Followers wait for what is written, not for what is committed.
            self.broker.purgatory.touch(log)
            if log.high_watermark < end_offset:
                behind.setdefault(log, False)
        elif not needs_sync:
            log.advance_high_watermark(log.written_end_offset)
            purgatory = self.broker.purgatory
            if purgatory.count:
                purgatory.touch(log)
        if log.writes_under_way:
            behind[log] = True

    def recovered(self, log: PartitionLog) -> None:
        """A log is back in service: what was written before the failed write of its turn counts now."""
        if log.is_loaded and log.replica.role == LEADER:
            self._written(log, {})

    def tell_end(self, log: PartitionLog) -> None:
        """The replica was not told of what was written while it committed alone, nor of a log that was not open."""
        replica = log.replica
        if replica.end_offset < 0:
            epochs = log.epochs.entries
            is_begun = bool(epochs) and epochs[-1][0] == replica.leader_epoch
            replica.opened(epochs[-1][1] if is_begun else log.high_watermark, log.high_watermark)
        if replica.end_offset < log.high_watermark or replica.high_watermark < log.high_watermark:
            replica.opened(log.high_watermark, log.high_watermark)

    def perform(self, log: PartitionLog, effects: Iterable[object]) -> None:
        """Perform what a replica wants done."""
        for effect in effects:
            if type(effect) is Committed:
                log.advance_high_watermark(effect.end_offset)
                self.broker.purgatory.touch(log)
                self._settle(log, log.high_watermark)
            elif type(effect) is ProposeIsr:
                self.broker.replication.propose(log, effect)

    def _needs_sync(self, log: PartitionLog) -> bool:
        return self._always_sync or log.is_flush_due or log in self._gathering or log in self._syncing

    def _committed(self, log: PartitionLog, end_offset: int) -> None:
        replica = log.replica
        if replica.commits_alone:
            self.perform(log, (Committed(end_offset),))
            return
        self.tell_end(log)
        now = self.broker.runtime.now
        self.perform(log, replica.appended(log.written_end_offset, now, is_durable=False))
        self.perform(log, replica.synced(end_offset, now))
        if not replica.has_min_isr:
            # It is not going to be committed soon, and requests that asked for no more than a written record wait, too.
            self.fail(log, KafkaError(errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND))

    def _settle(self, log: PartitionLog, end_offset: int) -> None:
        waits = self._waits.get(log)
        if waits is None:
            return
        while waits and waits[0][0] <= end_offset:
            self._call(waits.popleft()[1], None)
        if not waits and self._waits.get(log) is waits:
            del self._waits[log]

    def fail(self, log: PartitionLog, failure: Exception) -> None:
        """Nothing more of `log` is going to be committed here."""
        waits = self._waits.pop(log, None)
        # Emptied as they are called: `_settle` may be in the middle of the same ones.
        while waits:
            self._call(waits.popleft()[1], failure)

    def _call(self, then: Then, failure: Exception | None) -> None:
        try:
            then(failure)
        except Exception as error:
            # A bug of one who waited is none of the others'.
            self.broker.runtime.unexpected(error)

    def put_errors_into(
        self,
        failed: Mapping[PartitionLog, Exception],
        fast_answers: list[FastAnswer],
        answers: list[DependentAnswer],
    ) -> None:
        """Rewrite the answers that depend on a log in `failed`; none of them has left."""
        trace = self.broker.runtime.trace
        for log, connection, index, position in fast_answers:
            if log in failed and index < len(connection.outbox):
                # The fast path's answers are one buffer each.
                answer = bytearray(connection.outbox[index])  # type: ignore[arg-type]
                _ERROR_AND_OFFSETS.pack_into(answer, position, _code(failed[log]), -1, -1)
                connection.outbox[index] = answer
                if trace is not None:
                    trace.rewritten(connection, answer)
        for rows, connection, index, context, message in answers:
            if not any(log in failed for log, _ in rows) or index >= len(connection.outbox):
                continue
            for log, row in rows:
                if log in failed:
                    row.error_code = _code(failed[log])
                    row.base_offset = row.log_append_time_ms = row.log_start_offset = -1
            chunks = self.broker.dispatcher.encode(context, message)
            if chunks is None:
                connection.close("a failed write could not be told")
            else:
                whole = connection.outbox[index] = b"".join(chunks)  # type: ignore[arg-type]
                if trace is not None:
                    trace.rewritten(connection, whole)

    # --- holding connections ------------------------------------------------------------------------------------------

    def _hold_answers(self, behind: dict[PartitionLog, bool]) -> None:
        """Keep the answers of this turn that wait for the commit of what is written. Without acks=all they wait for a
        sync only. With acks=all, and too few replicas in sync, they end with an error."""
        held = {log: HeldAnswers(self, log) for log in behind}
        lacking: dict[PartitionLog, Exception] = {
            log: KafkaError(errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
            for log, is_syncing in behind.items()
            if not is_syncing and not log.replica.has_min_isr
        }
        if lacking:
            self.put_errors_into(lacking, self.fast_answers, [row for row in self._answers if row[3].acks_all])
        for row in self.fast_answers:
            if row[0] in held and row[0] not in lacking:
                held[row[0]].add_fast(row)
        for answer in self._answers:
            for log, _ in answer[0]:
                if log in held and log not in lacking and (behind[log] or answer[3].acks_all):
                    held[log].add(answer, self.broker.runtime.now)
        for log, answers in held.items():
            if log not in lacking:
                self.after(log, log.end_offset, answers.settle)
                # Also those that wait for a write or a sync first: followers may be missing when that has ended.
                if answers.deadline < NEVER and not log.replica.commits_alone and not answers.is_settled:
                    if not self._expiring:
                        self._plan_expiry()
                    self._expiring.append(answers)

    def _plan_expiry(self) -> None:
        runtime = self.broker.runtime
        runtime.timers.set((self, _EXPIRE), runtime.now + _EXPIRY_SECONDS)

    def fired(self, _: str) -> None:
        """Answer those who have waited for other replicas as long as their requests allow."""
        now = self.broker.runtime.now
        waiting, self._expiring = self._expiring, []
        for answers in waiting:
            if not answers.is_settled and answers.deadline <= now:
                answers.expire(now)
        self._expiring += [answers for answers in waiting if not answers.is_settled and answers.deadline < NEVER]
        if self._expiring:
            self._plan_expiry()

    # --- syncs --------------------------------------------------------------------------------------------------------

    def postpone_syncs(self, log: PartitionLog) -> None:
        """Begin no sync of `log` until `resume_syncs`; what waits for one goes on waiting."""
        self._postponed[log] = None

    def resume_syncs(self, log: PartitionLog) -> None:
        """The next round of syncs may take `log` along again."""
        self._postponed.pop(log, None)

    def is_under_sync(self, log: PartitionLog) -> bool:
        """Whether a sync of `log` runs."""
        return log in self._syncing

    def begin(self) -> None:
        """At the end of a turn: begin the next round of syncs if none runs."""
        if self._gathering and not self._syncing:
            self._syncing, self._gathering = self._gathering, {}
            for log in self._postponed:
                if log in self._syncing:
                    del self._syncing[log]
                    self._gathering[log] = None
            if not self._syncing:
                return
            jobs = [log.whole_sync_job() for log in self._syncing if not log.closed and log.offline is None]
            self.broker.runtime.offload.submit(lambda: _sync(jobs), self._synced)

    def _synced(self, result: object) -> None:
        logs, self._syncing = self._syncing, {}
        bug: Exception | None = None
        outcomes: dict[object, tuple[SyncJob, Exception | None]] = {}
        if isinstance(result, Exception):
            bug = result
        else:
            results: list[tuple[SyncJob, Exception | None]] = result  # type: ignore[assignment]
            outcomes = {job.log: (job, error) for job, error in results}
        for log in logs:
            try:
                self._round_ended(log, *outcomes.get(log, (None, bug)))
            except Exception as error:
                bug = error
                self.fail(log, error)
        if bug is not None:
            raise bug

    def _round_ended(self, log: PartitionLog, job: SyncJob | None, error: Exception | None) -> None:
        failure: StorageFailure | None = None
        if error is not None:
            # Whatever a sync raised, it did not happen.
            failure = error if isinstance(error, StorageFailure) else StorageFailure("sync", log.directory, error)
            if job is not None:
                job.failed(failure)
            if not log.closed:
                self.broker.log_failed(log, failure)
        elif job is not None:
            job.finish()
        if log.closed:
            failure = StorageFailure("sync", log.directory, "the partition was deleted")
        elif failure is None:
            failure = log.offline
        if failure is None and job is not None:
            self._committed(log, job.end_offset)
        else:
            self.fail(log, failure or StorageFailure("sync", log.directory, "it was not tried"))


def _code(failure: Exception) -> int:
    return failure.code if isinstance(failure, KafkaError) else errors.KAFKA_STORAGE_ERROR


def _sync(jobs: list[SyncJob]) -> list[tuple[SyncJob, Exception | None]]:
    """Run every job, each for itself: one log's failure is not another's."""
    results: list[tuple[SyncJob, Exception | None]] = []
    for job in jobs:
        try:
            job.run()
        except Exception as error:
            results.append((job, error))
        else:
            results.append((job, None))
    return results
