"""Answers that wait for a sync, and the syncs: off the loop, one for all the requests that came while the last one ran.

A log takes part when a sync is due before its answers may leave: with `pykafkad.group.commit`, after every append;
without it, when `flush.messages` says so. What was appended to it is then neither promised nor shown to readers until
its sync has succeeded. A sync that fails takes the log out of service, and every answer that waited for it becomes an
error.

A connection whose answer waits is *held*: nothing of its outbox leaves, so its answers stay in order. It goes on
serving, up to the outbox's limit."""

from __future__ import annotations

from pykafkad.errors import StorageFailure
from pykafkad.server.connection import OUTBOX_LIMIT_BYTES
from pykafkad.server.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.log.syncing import SyncJob
    from pykafkad.server.connection import Connection

log_lines = logger("storage")


class Commit:
    """One round: the logs that it syncs, and what waits for them."""

    __slots__ = ("answers", "connections", "fast_answers", "logs", "replies")

    def __init__(self) -> None:
        self.logs: dict[PartitionLog, None] = {}
        self.connections: dict[Connection, None] = {}
        self.fast_answers: list[tuple] = []
        self.answers: list[tuple] = []
        self.replies: list[tuple[PartitionLog, Connection]] = []

    def hold(self, connection: Connection) -> None:
        """Nothing of the connection leaves before this round's end; with a full outbox it serves nothing either."""
        self.connections[connection] = None
        connection.held = True
        if connection.outbox_bytes > OUTBOX_LIMIT_BYTES:
            connection.blocked = connection.muted = True


class GroupCommit:
    """Gathers what needs a sync, has it synced, and lets the answers go."""

    __slots__ = ("_always", "_gathering", "_node", "_running")

    def __init__(self, node: object) -> None:
        self._node = node
        self._always = node.settings.pykafkad_group_commit
        self._gathering: Commit | None = None
        self._running: Commit | None = None

    def __contains__(self, log: object) -> bool:
        """Whether something of `log` is not synced yet that must be."""
        return (self._gathering is not None and log in self._gathering.logs) or (
            self._running is not None and log in self._running.logs
        )

    @property
    def is_plain(self) -> bool:
        """Whether only `flush.messages` can ask for a sync, and nothing waits for one."""
        return not self._always and self._gathering is None and self._running is None

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits for a sync."""
        return self._gathering is None and self._running is None

    def takes(self, log: PartitionLog) -> bool:
        """Have `log`, which was just written, synced if that is due; whether it is."""
        if not (self._always or log.is_flush_due or log in self):
            return False
        if self._gathering is None:
            self._gathering = Commit()
        self._gathering.logs[log] = None
        return True

    # --- holding ------------------------------------------------------------------------------------------------------

    def hold_answers(self, fast_answers: list[tuple], answers: list[tuple]) -> None:
        """Of a turn's covered answers (`writes.py`), keep those that depend on a log which is to be synced."""
        commit = self._gathering
        if commit is None:
            return
        for row in fast_answers:
            if row[0] in commit.logs:
                commit.fast_answers.append(row)
                # The flat path leaves this count to who keeps its answers for longer than a turn. A connection that was
                # lost meanwhile has no outbox any more.
                row[1].outbox_bytes += sum(map(len, row[1].outbox[row[2] : row[2] + 1]))
                commit.hold(row[1])
        for row in answers:
            if any(log in commit.logs for log, _ in row[0]):
                commit.answers.append(row)
                commit.hold(row[1])

    def hold_reply(self, log: PartitionLog, token: object) -> None:
        """The answer to `token` follows an append to `log`: it leaves after that is synced."""
        connection = self._node.connection_of(token)
        if connection is None:
            return
        commit = self._gathering if self._gathering is not None and log in self._gathering.logs else self._running
        commit.replies.append((log, connection))
        commit.hold(connection)

    def begin(self) -> None:
        """At the end of a turn: start the next round if none runs, and take what is held from those that are about to
        send."""
        if self._gathering is not None and self._running is None:
            commit = self._running = self._gathering
            self._gathering = None
            jobs = [log.whole_sync_job() for log in commit.logs if not log.closed and log.offline is None]
            self._node.offload.submit(lambda: _sync(jobs), lambda results: self._ended(commit, results))
        reactor = self._node.reactor
        if reactor.ready and not self.is_idle:
            reactor.ready = [connection for connection in reactor.ready if not connection.held]

    # --- letting go ---------------------------------------------------------------------------------------------------

    def _ended(self, commit: Commit, results: list[tuple[SyncJob, Exception | None]]) -> None:
        self._running = None
        try:
            self._synced(commit, results)
        except Exception:
            # A bug: which of the answers are true is not known, so that who waits for one must ask again.
            for connection in commit.connections:
                connection.outbox.clear()
                connection.close("unexpected error after a sync")
                self._node.reactor.release(connection)
            raise

    def _synced(self, commit: Commit, results: list[tuple[SyncJob, Exception | None]]) -> None:
        node = self._node
        failed: dict[object, Exception] = {}
        ends: dict[object, int] = {}
        for job, error in results:
            if error is None:
                job.finish()
                ends[job.log] = job.end_offset
            else:
                # Whatever a sync raised, it did not happen.
                failure = (
                    error if isinstance(error, StorageFailure) else StorageFailure("sync", job.log.directory, error)
                )
                job.failed(failure)
                node.log_failed(job.log, failure)
                failed[job.log] = failure
        for log in commit.logs:
            if log.closed:
                failed[log] = StorageFailure("sync", log.directory, "the partition was deleted")
            elif log.offline is not None:
                failed.setdefault(log, log.offline)
            else:
                node.log_committed(log, ends[log])
        if failed:
            node.writes.take_back(failed, commit.fast_answers, commit.answers)
            for log, connection in commit.replies:
                if log in failed:
                    # What a machine has done can't be turned into an error: the client must ask again.
                    connection.outbox.clear()
                    connection.close(f"its answer depends on a sync that failed: {failed[log]}")
        for connection in commit.connections:
            self._release(connection)

    def _release(self, connection: Connection) -> None:
        # What it was answered since then may wait for the next round.
        if self._gathering is not None and connection in self._gathering.connections:
            return
        connection.queued = False
        self._node.reactor.release(connection)


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
