"""The thread that writes large batches (`log/large_writes.py`): the loop receives and serves meanwhile.

A write copies the batch to the page cache, without the interpreter's lock. From half a megabyte on that takes longer
than the hand-over to the thread: with batches of 1 MB the broker takes 1.2 times as many bytes a second by it. And the
system makes writers wait for the device when it has too much to write back, for up to 0.2 s each.

Writes run one after the other in the order in which they came. A batch is written from the buffer of the frame that it
came in, without a copy.

The bytes under way are bounded. Above the first bound, a connection that adds a write is muted until there is room;
everybody else is served. So a peer has one frame beyond the bound, in the buffer that it was received into. Small
batches that stand behind a write under way mute nobody: above the second bound the loop waits, as if it wrote itself.

Only the loop's thread calls this, but for what stands under "the thread"."""

from __future__ import annotations

import _thread
from collections import deque

from pykafkad.log import large_writes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pykafkad.log.append_rules import Writable
    from pykafkad.log.log_files import LogFiles
    from pykafkad.server.frame_buffers import FrameBuffers

    class Loop(Protocol):
        """The reactor."""

        may_look: bool

        def wake(self) -> None:
            """Results wait for `collect`; called from the thread."""


FROM_BYTES = 512 * 1024
"""Batches from this size on are written beside the loop. With smaller ones the hand-over costs too much."""

LIMIT_BYTES = 8 * 1024 * 1024
"""Above so many bytes under way connections that add to them are muted. It is a hundredth of a second's work of a disk
that takes 1 GB a second."""

HARD_LIMIT_FACTOR = 4
"""The loop waits above so many times the limit."""


class LogWriter:
    """See the module. `written(log)` is called on the loop when a write of `log` has ended. `frame_buffers` are those
    of the connections whose batches are written."""

    def __init__(
        self,
        loop: Loop,
        written: Callable[[Any], None],
        frame_buffers: FrameBuffers,
        *,
        from_bytes: int = FROM_BYTES,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        self.from_bytes = from_bytes
        self.limit_bytes = limit_bytes
        self.frame_buffers = frame_buffers
        self._loop = loop
        self._written = written
        self._queue: deque[large_writes.LargeWrite] = deque()
        self.done: deque[large_writes.LargeWrite] = deque()
        """Writes that ended, in order, until `collect` takes them."""
        self.bytes_under_way = 0
        self.has_thread = False
        self._is_closing = False
        self._is_told = False
        self._is_waiting = False
        # Whoever writes holds this lock: the thread, or the loop while the thread has not begun.
        self._writing = _thread.allocate_lock()
        # The thread sleeps by acquiring `_work`, and the loop by acquiring `_news`; the other one releases it.
        self._work = _locked()
        self._news = _locked()

    def take_frame(self, records: Writable) -> bytearray | None:
        """The buffer of the frame that `records` came in, which is not used again before their write has ended; None if
        they must be copied."""
        return self.frame_buffers.lend(getattr(records, "obj", None))

    def add(self, write: large_writes.LargeWrite) -> None:
        """Write beside the loop; above the second bound, wait for room."""
        self.bytes_under_way += write.size_bytes
        self._queue.append(write)
        self._loop.may_look = False
        if not self.has_thread:
            self._start()
        if self._work.locked():
            self._work.release()
        if self.bytes_under_way > self.limit_bytes:
            self.frame_buffers.is_full = True
            while self.bytes_under_way > HARD_LIMIT_FACTOR * self.limit_bytes:
                self._wait_for_one()

    def _start(self) -> None:
        try:
            _thread.start_new_thread(self._run, ())
            self.has_thread = True
        except RuntimeError:
            # No thread is to be had now: the loop writes itself.
            while self.write_next():
                pass

    def finish(self, log: LogFiles) -> None:
        """Wait until nothing of `log` is under way."""
        while log.writes_under_way:
            self._wait_for_one()

    def finish_all(self) -> None:
        """Wait until nothing is under way."""
        while self.bytes_under_way:
            self._wait_for_one()

    def close(self) -> None:
        """Finish everything and end the thread. What is added later is written on the loop."""
        self.finish_all()
        self._is_closing = True
        if self._work.locked():
            self._work.release()

    def collect(self) -> None:
        """Tell the logs of the writes that have ended."""
        self._is_told = False
        done = self.done
        while done:
            write = done.popleft()
            self.bytes_under_way -= write.size_bytes
            write.let_go()
            if write.frame is not None:
                try:
                    self.frame_buffers.give_back(write.frame)
                except BufferError:
                    # Its request is being served still, and waited for room. The buffer is not used again.
                    pass
            large_writes.ended(write.log, write)
            self._written(write.log)
        self._loop.may_look = not self.bytes_under_way
        if self.frame_buffers.is_full and self.bytes_under_way <= self.limit_bytes:
            self.frame_buffers.make_room()

    def _wait_for_one(self) -> None:
        """Wait until a write has ended; write it here if the thread has not begun."""
        self._is_waiting = True
        while not self.done:
            if self._writing.acquire(False):
                try:
                    self.write_next()
                finally:
                    self._writing.release()
            else:
                self._news.acquire()
        self._is_waiting = False
        self.collect()

    def write_next(self) -> bool:
        """Do the oldest write that has not begun; False if there is none. For one thread at a time."""
        try:
            write = self._queue.popleft()
        except IndexError:
            return False
        write.run()
        self.done.append(write)
        return True

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closing:
            self._work.acquire()
            with self._writing:
                while self.write_next():
                    self._tell()
            # The loop may wait for the end of what it took for a write.
            self._tell()

    def _tell(self) -> None:
        if self._is_waiting and self._news.locked():
            self._news.release()
        if not self._is_told and self.done:
            self._is_told = True
            self._loop.wake()


def _locked() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock
