"""The turn's writes: which logs got records, and which answers promise that they are written.

Small batches are gathered per log and written once per turn. Their answers are already in the outboxes by then; if the
write fails they are rewritten to KAFKA_STORAGE_ERROR before anything is sent, so no answer leaves that the disk did not
take."""

from __future__ import annotations

from struct import Struct

from pykafkad import errors
from pykafkad.server.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

log_lines = logger("storage")

_ERROR_AND_OFFSETS = Struct(">hqq")  # error code, base offset, log append time: the start of every produce answer's row


class Writes:
    """Collects during a turn, performs once at its end."""

    __slots__ = ("_answers", "_hold", "_on_failure", "_on_written", "_reencode", "dirty", "fast_answers")

    def __init__(
        self,
        on_written: Callable[[object], bool],
        on_failure: Callable[[object, Exception], None],
        reencode: Callable[[object, object], list[object] | None],
        hold: Callable[[list[tuple], list[tuple]], None],
    ) -> None:
        """`on_written(log)` says whether answers about the log must go on waiting; if any must, `hold` is given the
        turn's answers."""
        self.dirty: dict[object, None] = {}
        """Logs that got records in this turn."""
        self.fast_answers: list[tuple[object, object, int, int]] = []
        """(log, connection, index, error position): the answer at `connection.outbox[index]`, with its error code at
        that position, depends on the write of `log`."""
        self._answers: list[tuple[list[object], object, int, object, object]] = []
        self._on_written = on_written
        self._on_failure = on_failure
        self._reencode = reencode
        self._hold = hold

    def mark(self, log: object) -> None:
        """`log` got records that no answer depends on (acks=0)."""
        self.dirty[log] = None

    def cover(
        self, rows: list[tuple[object, object]], connection: object, index: int, context: object, message: object
    ) -> None:
        """The answer `message` at `connection.outbox[index]` depends on logs: `rows` is (log, row of the answer) each."""
        for log, _ in rows:
            self.dirty[log] = None
        self._answers.append((rows, connection, index, context, message))

    def finish(self) -> None:
        """Write every log once, tell what was written, and take back the answers whose write failed."""
        dirty = self.dirty
        if not dirty:
            return
        failed: dict[object, Exception] = {}
        waits = False
        for log in dirty:
            if log.closed:
                # Its topic was deleted in this very turn: what was gathered for it went with it.
                failed[log] = errors.StorageFailure("write", log.directory, "the partition was deleted")
                continue
            try:
                log.write_pending()
                if log.offline is not None:
                    # A large batch that was written at once failed, and took with it what was gathered before.
                    raise log.offline.copy()
            except errors.StorageFailure as failure:
                failed[log] = failure
                self._on_failure(log, failure)
            else:
                waits = self._on_written(log) or waits
        dirty.clear()
        if failed:
            self.take_back(failed, self.fast_answers, self._answers)
        if waits:
            self._hold(self.fast_answers, self._answers)
        self.fast_answers.clear()
        self._answers.clear()

    def take_back(self, failed: dict[object, Exception], fast_answers: list[tuple], answers: list[tuple]) -> None:
        """Rewrite the answers that depend on a log in `failed`; none of them has left."""
        for log, connection, index, position in fast_answers:
            if log in failed and index < len(connection.outbox):
                answer = bytearray(connection.outbox[index])
                _ERROR_AND_OFFSETS.pack_into(answer, position, errors.KAFKA_STORAGE_ERROR, -1, -1)
                connection.outbox[index] = answer
        for rows, connection, index, context, message in answers:
            if not any(log in failed for log, _ in rows) or index >= len(connection.outbox):
                continue
            for log, row in rows:
                if log in failed:
                    row.error_code = errors.KAFKA_STORAGE_ERROR
                    row.base_offset = row.log_append_time_ms = row.log_start_offset = -1
            chunks = self._reencode(context, message)
            if chunks is None:
                connection.close("a failed write could not be told")
            else:
                connection.outbox[index] = b"".join(chunks)
