"""The threads that write large batches (`log/large_writes.py`): the loop receives and serves meanwhile.

A write copies the batch to the page cache, without the interpreter's lock. From half a megabyte on that takes longer
than the hand-over to the thread: with batches of 1 MB the broker takes 1.2 times as many bytes a second by it. And the
system makes writers wait for the device when it has too much to write back, for up to 0.2 s each.

Where the system has no free memory at hand, a write takes three times as long: then smaller batches are written beside
the loop as well. The writes that the loop does itself tell how long they take; while smaller batches go to the threads,
one in `PROBE_EVERY` of them is written by the loop.

The writes of one log run one after the other in the order in which they came. Logs are written side by side, by up to
`MOST_THREADS` threads: where the system has to find fresh memory for the page cache, as on a virtual machine whose host
took it back, one thread would hold up all. A batch whose frame has a buffer of its own is written from that, without a
copy; that of a frame that was read together with others is copied into such a buffer.

The bytes under way are bounded. Above the first bound, a connection that adds a write is muted until there is room;
everybody else is served. So a peer has one frame beyond the bound, in the buffer that it was received into. Small
batches that stand behind a write under way mute nobody: above the second bound the loop waits, as if it wrote itself.

Only the loop's thread calls this, but for what stands under "the threads"."""

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

SLOW_FROM_BYTES = 64 * 1024
"""The same while writes are slow."""

SLOW_SECONDS_PER_BYTE, QUICK_SECONDS_PER_BYTE = 0.9e-9, 0.6e-9
"""Writes are slow from the first on, and until they are as quick as the second. Usually they take 0.3 to 0.4 ms a
megabyte, and up to 1.5 ms where memory must be found."""

PROBE_EVERY = 32
"""Of so many batches that only slow writes send to the threads, one is written by the loop."""

_MEAN_OF = 16
# How many writes of the loop the mean of their times goes back.

LIMIT_BYTES = 8 * 1024 * 1024
"""Above so many bytes under way connections that add to them are muted. It is a hundredth of a second's work of a disk
that takes 1 GB a second."""

MOST_THREADS = 2
"""One for each of two processors: more of them would take the loop's share of the time."""

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
        self.from_bytes = self._usual_from_bytes = from_bytes
        self.limit_bytes = limit_bytes
        self._seconds_per_byte = 0.0
        self._until_probe = PROBE_EVERY
        self.frame_buffers = frame_buffers
        self._loop = loop
        self._written = written
        self._queue: deque[large_writes.LargeWrite] = deque()
        self.done: deque[large_writes.LargeWrite] = deque()
        """Writes that ended, in order, until `collect` takes them."""
        self.bytes_under_way = 0
        self.threads_left = MOST_THREADS
        """How many threads may still be started."""
        self._is_closing = False
        self._is_told = False
        self._is_waiting = False
        # Whoever takes from the queue, or tells of an end, holds this lock for that moment.
        self._choosing = _thread.allocate_lock()
        # The logs that are written now.
        self._at_work: set[LogFiles] = set()
        # A thread sleeps by acquiring `_work`, and the loop by acquiring `_news`; another one releases it.
        self._work = _locked()
        self._news = _locked()

    def keep(self, records: Writable) -> tuple[memoryview, bytearray]:
        """The bytes of `records`, and the buffer that has them until their write has ended: that of the frame that they
        came in, if they came in one of their own, or another one with a copy."""
        frame = self.frame_buffers.lend(getattr(records, "obj", None))
        if frame is not None:
            return memoryview(records), frame
        copy = self.frame_buffers.copy_of(records)
        return memoryview(copy)[: len(records)], copy

    def takes(self, size_bytes: int) -> bool:
        """Whether a batch of at least `from_bytes` is to be written beside the loop, and not to tell how long writes
        take."""
        if size_bytes >= self._usual_from_bytes:
            return True
        self._until_probe = (self._until_probe - 1) % PROBE_EVERY
        return self._until_probe != 0

    def observe(self, size_bytes: int, seconds: float) -> None:
        """The loop has written a batch that took so long."""
        self._seconds_per_byte += (seconds / size_bytes - self._seconds_per_byte) / _MEAN_OF
        if self._seconds_per_byte > SLOW_SECONDS_PER_BYTE:
            self.from_bytes = min(SLOW_FROM_BYTES, self._usual_from_bytes)
        elif self._seconds_per_byte < QUICK_SECONDS_PER_BYTE:
            self.from_bytes = self._usual_from_bytes

    def add(self, write: large_writes.LargeWrite) -> None:
        """Write beside the loop; above the second bound, wait for room."""
        self.bytes_under_way += write.size_bytes
        self._loop.may_look = False
        with self._choosing:
            self._queue.append(write)
            is_busy = not self._wake()
        # All threads are busy if none of them came for the write before.
        if self.threads_left and (is_busy or self.threads_left == MOST_THREADS):
            self._start()
        if self.bytes_under_way > self.limit_bytes:
            self.frame_buffers.is_full = True
            while self.bytes_under_way > HARD_LIMIT_FACTOR * self.limit_bytes:
                self._wait_for_one()

    def _wake(self) -> bool:
        """Wake a thread, while holding `_choosing`; False if the last call has woken none yet."""
        if self._work.locked():
            self._work.release()
            return True
        return False

    def _start(self) -> None:
        try:
            _thread.start_new_thread(self._run, ())
            self.threads_left -= 1
        except RuntimeError:
            # No thread is to be had now. Without any the loop writes itself.
            while self.threads_left == MOST_THREADS and self.write_next():
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
        """Finish everything and end the threads. What is added later is written on the loop."""
        self.finish_all()
        self._is_closing = True
        self.threads_left = 0
        with self._choosing:
            self._wake()

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
        """Wait until a write has ended; do one here that no thread has begun."""
        self._is_waiting = True
        while not self.done:
            if self.write_next():
                # A thread that wanted the next write of the same log has gone to sleep meanwhile.
                with self._choosing:
                    self._wake()
            else:
                self._news.acquire()
        self._is_waiting = False
        self.collect()

    def write_next(self) -> bool:
        """Do the oldest write that has not begun, of a log that nobody writes; False if there is none."""
        with self._choosing:
            for write in self._queue:
                if write.log not in self._at_work:
                    break
            else:
                return False
            self._queue.remove(write)
            self._at_work.add(write.log)
        write.run()
        self.done.append(write)
        # Only now may another thread end the log's next write.
        self._at_work.remove(write.log)
        return True

    # --- the threads --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closing:
            self._work.acquire()
            while self.write_next():
                self._tell()
            # The loop may wait for the end of what it took for a write.
            self._tell()
        # The next one ends too.
        with self._choosing:
            self._wake()

    def _tell(self) -> None:
        with self._choosing:
            if self._is_waiting and self._news.locked():
                self._news.release()
            if self._is_told or not self.done:
                return
            self._is_told = True
        self._loop.wake()


def _locked() -> _thread.LockType:
    lock = _thread.allocate_lock()
    lock.acquire()
    return lock
