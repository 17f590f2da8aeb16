"""Answers that stand in an outbox already, and may leave when what they tell of is committed."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError, StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.commits import Commits, DependentAnswer, FastAnswer
    from pykafkad.server.connection import Connection

NEVER = float("inf")


class HeldAnswers:
    """Answers of one turn that wait in their outboxes for the commit of one log."""

    __slots__ = ("_answers", "_commits", "_connections", "_fast_answers", "_log", "deadline", "is_settled")

    def __init__(self, commits: Commits, log: PartitionLog) -> None:
        self._commits = commits
        self._log = log
        self._fast_answers: list[FastAnswer] = []
        self._answers: list[tuple[float, DependentAnswer]] = []
        """Each with the second at which it has waited as long as its request allows."""
        self._connections: dict[Connection, None] = {}
        self.is_settled = False
        self.deadline = NEVER
        """The second at which the first of them is to be answered anyway."""

    def add_fast(self, row: FastAnswer) -> None:
        self._fast_answers.append(row)
        self.hold(row[1])

    def add(self, row: DependentAnswer, now: float) -> None:
        deadline = now + max(0, row[3].commit_timeout_ms) / 1000 if row[3].acks_all else NEVER
        self._answers.append((deadline, row))
        self.deadline = min(self.deadline, deadline)
        self.hold(row[1])

    def hold(self, connection: Connection) -> None:
        if connection not in self._connections:
            self._connections[connection] = None
            connection.hold()

    def settle(self, failure: Exception | None) -> None:
        """The log is committed as far as these answers need it, or never will be."""
        if self.is_settled:
            return
        self.is_settled = True
        try:
            if failure is None and not self._log.replica.has_min_isr:
                failure = KafkaError(errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
            if isinstance(failure, StorageFailure | KafkaError):
                self._commits.put_errors_into(
                    {self._log: failure}, self._fast_answers, [row for _, row in self._answers]
                )
            elif failure is not None:
                # A bug: which of the answers are true is not known, so whoever waits for one must ask again.
                for connection in self._connections:
                    connection.abort(f"unexpected error after a sync: {failure!r}")
        finally:
            for connection in self._connections:
                connection.release()

    def expire(self, now: float) -> None:
        """Answer those that have waited as long as their requests allow; the others go on waiting."""
        due = [row for deadline, row in self._answers if deadline <= now]
        self._answers = [each for each in self._answers if each[0] > now]
        self.deadline = min((deadline for deadline, _ in self._answers), default=NEVER)
        # A connection whose later answer waits for the same commit stays held: answers leave in order.
        held = {row[1] for row in self._fast_answers} | {row[1] for _, row in self._answers}
        released = [connection for connection in self._connections if connection not in held]
        try:
            self._commits.put_errors_into({self._log: KafkaError(errors.REQUEST_TIMED_OUT)}, [], due)
        finally:
            for connection in released:
                del self._connections[connection]
                connection.release()
