"""Writing large batches beside the loop: the log hands them to a writer, and goes on.

A log has its writes under way in a row, and everything that is written to it later stands behind them, so that its file
grows in the order of its offsets. What is under way counts as appended and not as written: it is neither read nor
committed nor synced. Whoever needs the whole log in its file (a roll, a close, a move, a snapshot of the data) calls
`write_pending` or `finish`, which wait for what is under way."""

from __future__ import annotations

from collections import deque

from pykafkad.errors import StorageFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from pykafkad.disk import File
    from pykafkad.log.append_rules import Writable
    from pykafkad.log.log_files import LogFiles
    from pykafkad.log.segment import Segment

    class Writer(Protocol):
        """What writes beside the loop: `server/log_writer.py`."""

        from_bytes: int
        """The size of a batch from which on it may be written beside the loop."""

        def takes(self, size_bytes: int) -> bool:
            """Whether a batch of at least that size is to be written beside the loop."""

        def observe(self, size_bytes: int, seconds: float) -> None:
            """The loop has written a batch itself, which took so long."""

        def keep(self, records: Writable) -> tuple[memoryview, bytearray]:
            """The bytes of `records`, and the buffer that has them until their write has ended: that of the frame that
            they came in, or another one with a copy."""

        def add(self, write: LargeWrite) -> None:
            """Begin a write, in the order of the calls."""

        def finish(self, log: LogFiles) -> None:
            """Wait until no write of `log` is under way."""


TIMED_FROM_BYTES = 32 * 1024
"""The writer learns how long the loop's writes of batches take from this size on."""


class LargeWrite:
    """One write under way: `pieces` go to `file` from `position` on. `run` is called once, on any thread; then
    `failure` says how it ended. `frame` is the buffer that has the batch, and `gather` what the log gathered before.
    The log ends at `end_offset` after it."""

    __slots__ = ("end_offset", "end_position", "failure", "file", "frame", "gather", "log", "pieces", "position")

    def __init__(
        self,
        log: LogFiles,
        file: File,
        position: int,
        pieces: list[memoryview | bytes],
        end_offset: int,
        gather: memoryview | None,
        frame: bytearray | None,
    ) -> None:
        self.log = log
        self.file = file
        self.position = position
        self.pieces = pieces
        self.end_position = position + sum(map(len, pieces))
        self.end_offset = end_offset
        self.gather = gather
        self.frame = frame
        self.failure: StorageFailure | None = None

    @property
    def size_bytes(self) -> int:
        """How many bytes are written."""
        return self.end_position - self.position

    def run(self) -> None:
        """Write, unless a write before it has failed: a file has no holes. Raises nothing."""
        log = self.log
        if log.write_failure is None:
            try:
                self.file.pwritev(self.pieces, self.position)
                return
            except StorageFailure as failure:
                log.write_failure = failure.copy()
            except Exception as error:
                log.write_failure = StorageFailure("write", self.file.path, repr(error))
        self.failure = log.write_failure

    def let_go(self) -> None:
        """Forget the bytes, so that the frame's buffer can be used again."""
        for piece in self.pieces:
            if isinstance(piece, memoryview):
                piece.release()
        self.pieces = []


def begin(log: LogFiles, segment: Segment, records: Writable | None, end_offset: int) -> None:
    """Hand what `log` has gathered, and behind it `records`, to its writer. The log then ends at `end_offset`.

    Raises `StorageFailure` if the log fails while the writer makes room."""
    writer = log.writer
    assert writer is not None
    pieces: list[memoryview | bytes] = []
    gather, fill = log.take_gathered()
    if gather is not None:
        pieces.append(gather[:fill])
    frame = None
    if records is not None:
        kept, frame = writer.keep(records)
        pieces.append(kept)
    under_way = log.writes_under_way
    if not isinstance(under_way, deque):
        under_way = log.writes_under_way = deque()
    position = under_way[-1].end_position if under_way else segment.written_size
    write = LargeWrite(log, segment.file, position, pieces, end_offset, gather, frame)
    under_way.append(write)
    writer.add(write)
    if log.offline is not None:
        raise log.offline.copy()


def ended(log: LogFiles, write: LargeWrite) -> None:
    """The oldest write under way has ended; called on the loop. A failure takes the log out of service."""
    under_way = log.writes_under_way
    assert isinstance(under_way, deque) and under_way[0] is write, "writes end in their order"
    under_way.popleft()
    if write.gather is not None:
        log.give_back(write.gather)
    if log.offline is not None or log.closed:
        # The log was cut to what was written before it failed.
        return
    failure = write.failure
    if failure is None:
        log.wrote(write.end_position, write.end_offset)
    else:
        log.fail(failure)


def finish(log: LogFiles) -> None:
    """Wait until nothing is under way. Raises nothing: a failure has taken the log out of service."""
    if log.writes_under_way and log.writer is not None:
        log.writer.finish(log)


def wait(log: LogFiles) -> None:
    """`finish`, which raises `StorageFailure` if something that was under way failed."""
    if log.writes_under_way:
        finish(log)
        if log.offline is not None:
            raise log.offline.copy()
