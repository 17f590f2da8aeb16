"""Work that may block (deleting files, syncing) on one thread of its own; results come back as values.

The only module that imports `threading`, and that only when the first job arrives: a broker that never needs it never
pays for it.
"""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Semaphore, Thread
    from typing import Any


class Offload:
    """Jobs run in order on one thread. `wake()` is called from that thread when a result waits; `finished()` takes
    them. `failed(error)` hears of a bug in what a result leads to."""

    __slots__ = ("_failed", "_jobs", "_results", "_semaphore", "_thread", "_wake", "has_thread")

    _semaphore: Semaphore
    """Made together with the thread."""

    def __init__(self, wake: Callable[[], None], failed: Callable[[Exception], None]) -> None:
        self._wake = wake
        self._failed = failed
        self._jobs: deque[tuple[Callable[[], object], Callable[[object], None]] | None] = deque()
        self._results: deque[tuple[Callable[[object], None], object]] = deque()
        self._thread: Thread | None = None
        self.has_thread = True
        """Without one `submit` runs the job. That is faster where no job waits for a device, since threads wait for the
        interpreter."""

    def submit(self, job: Callable[[], object], then: Callable[[Any], None]) -> None:
        """Run `job()` off the loop; `then(result)` runs on the loop, with the exception as the result if it raised."""
        if self._thread is None:
            try:
                if self.has_thread:
                    self._start()
            except (OSError, RuntimeError):
                # No descriptor for the import, or no thread to be had: the loop does it itself, as somebody waits for
                # it.
                pass
            if self._thread is None:
                self._results.append((then, outcome(job)))
                self._wake()
                return
        self._jobs.append((job, then))
        self._semaphore.release()

    def _start(self) -> None:
        import threading

        semaphore = threading.Semaphore(0)
        thread = threading.Thread(target=self._work, name="offload", daemon=True)
        self._semaphore = semaphore
        thread.start()
        self._thread = thread

    def post(self, call: Callable[[object], None]) -> None:
        """Have the loop call `call(None)` in its next turn; safe from every thread."""
        self._results.append((call, None))
        self._wake()

    def finished(self) -> None:
        """Call `then` of every finished job, on the caller's thread."""
        while self._results:
            then, result = self._results.popleft()
            try:
                then(result)
            except Exception as error:
                self._failed(error)

    def close(self) -> None:
        """Finish the queued jobs, and those that their results lead to, and end the thread."""
        while self._thread is not None:
            self._jobs.append(None)
            self._semaphore.release()
            self._thread.join()
            self._thread = None
            self.finished()

    def end_alone(self) -> None:
        """Have the thread end when its jobs are done. Nobody waits for it, and there are no more jobs."""
        if self._thread is not None:
            self._jobs.append(None)
            self._semaphore.release()

    def _work(self) -> None:
        while True:
            self._semaphore.acquire()
            item = self._jobs.popleft()
            if item is None:
                return
            job, then = item
            self._results.append((then, outcome(job)))
            self._wake()


def outcome(job: Callable[[], object]) -> object:
    """What `job()` returns, or the exception that it raised."""
    try:
        return job()
    except Exception as error:
        return error


def outcome_within(job: Callable[[], object], seconds: float) -> object:
    """What `job()` returns, or the exception that it raised; a TimeoutError if it is not done in time, and then nobody
    waits for it."""
    import threading

    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(outcome(job)), name="offload", daemon=True)
    try:
        thread.start()
    except (OSError, RuntimeError):
        # As in `submit`: without a thread the caller does it.
        return outcome(job)
    thread.join(seconds)
    return results[0] if results else TimeoutError(f"it took more than {seconds:g} s")
