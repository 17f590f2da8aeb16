"""Runs the log cleaner between the turns of the loop.

Every `log.cleaner.backoff.ms` the dirtiest logs are looked for, as many as `log.cleaner.threads` allows at once. Each
run is a generator that is given at most `STEP_SECONDS` per turn; what it hands out as a function goes to the offload
thread, and its result comes back. A run that ends is followed by the next look at once, as long as there is something
to clean. Segments of compacted logs that `compact,delete` or DeleteRecords have passed go here too, because nothing
else may touch a log that is being cleaned."""

from __future__ import annotations

from pykafkad.errors import StorageFailure
from pykafkad.log.cleaner import CleaningAborted, LogCleaner
from pykafkad.log.compaction import Io
from pykafkad.log.record_scan import BrokenRecords

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.log.cleaner import Candidate, Cleaned
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker


STEP_SECONDS = 0.002
_LOOK = "look for dirty logs"
# Below this a chunk would hold single batches only.
_MIN_CHUNK_BYTES = 16 * 1024


class _Run:
    """One log that is being cleaned."""

    __slots__ = ("answer", "began", "candidate", "counted_bytes", "io", "steps")

    def __init__(self, candidate: Candidate, io: Io, steps: object, now: float) -> None:
        self.began = now
        self.candidate = candidate
        self.io = io
        self.steps = steps
        self.answer: object = None
        self.counted_bytes = 0


class Compaction:
    """See the module. `busy` are the logs that are being cleaned."""

    __slots__ = ("_broker", "_cleaner", "_runs")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._cleaner = LogCleaner(broker.runtime.disk)
        self._runs: list[_Run] = []

    @property
    def busy(self) -> list[PartitionLog]:
        return [run.candidate.log for run in self._runs]

    def start(self) -> None:
        """Begin to look, unless `log.cleaner.enable` forbids it."""
        if self._broker.settings.log_cleaner_enable:
            self._look_again(self._broker.settings.log_cleaner_backoff_ms / 1000)

    def close(self) -> None:
        """Give up what is half done; its files go."""
        for run in self._runs:
            run.steps.close()
        self._runs.clear()

    def forget(self, logs: list[PartitionLog]) -> None:
        """Logs were deleted, or put back to an earlier state: nothing of them counts as clean any more."""
        try:
            self._cleaner.forget(logs)
        except StorageFailure as failure:
            self._broker.logs.error("storage", "housekeeping-failed", job="cleaner checkpoint", reason=failure)

    def _look_again(self, seconds: float) -> None:
        self._broker.runtime.timers.set((self, _LOOK), self._broker.runtime.now + seconds)

    def fired(self, key: object) -> None:
        """A timer of ours: look for logs, or go on with a run."""
        if key is not _LOOK:
            self._work(key)
            return
        settings = self._broker.settings
        try:
            while len(self._runs) < settings.log_cleaner_threads and self._begin():
                pass
            self._retention()
        finally:
            if len(self._runs) < settings.log_cleaner_threads or not self._runs:
                self._look_again(settings.log_cleaner_backoff_ms / 1000)

    def _begin(self) -> bool:
        """Begin to clean the dirtiest log; False when none is dirty enough."""
        broker, settings = self._broker, self._broker.settings
        try:
            candidate = self._cleaner.pick(broker.partitions, broker.runtime.now_ms, self.busy)
        except StorageFailure as failure:
            self._broker.logs.error("storage", "housekeeping-failed", job="cleaning", reason=failure)
            return False
        if candidate is None:
            return False
        # A producer that is forgotten needs no batch that says what it wrote last.
        candidate.log.producers.expire(broker.runtime.now_ms, settings.producer_id_expiration_ms)
        threads = settings.log_cleaner_threads
        io = Io(max(_MIN_CHUNK_BYTES, settings.log_cleaner_io_buffer_size // threads // 2))
        steps = self._cleaner.clean(
            candidate,
            broker.runtime.now_ms,
            io,
            buffer_bytes=settings.log_cleaner_dedupe_buffer_size // threads,
            load_factor=settings.log_cleaner_io_buffer_load_factor,
        )
        run = _Run(candidate, io, steps, broker.runtime.now)
        self._runs.append(run)
        broker.runtime.timers.set((self, run), broker.runtime.now)
        return True

    def _work(self, run: _Run) -> None:
        """Give a run its part of this turn."""
        if run not in self._runs:
            return
        broker = self._broker
        until = broker.runtime.clock.now() + STEP_SECONDS
        log = run.candidate.log
        try:
            while True:
                job = run.steps.send(run.answer)
                run.answer = None
                if job is not None:
                    broker.runtime.offload.submit(job, lambda result: self._answered(run, result))
                    return
                if broker.runtime.clock.now() >= until:
                    broker.runtime.timers.set((self, run), broker.runtime.now + self._pause(run))
                    return
        except StopIteration as end:
            self._ended(run, end.value)
        except CleaningAborted as reason:
            self._failed(run, self._broker.logs.info, "cleaning-given-up", reason)
        except StorageFailure as failure:
            if log.offline is failure:
                broker.log_failed(log, failure)
            self._failed(run, self._broker.logs.error, "cleaning-failed", failure)
        except BrokenRecords as reason:
            self._failed(run, self._broker.logs.error, "log-uncleanable", reason)

    def _pause(self, run: _Run) -> float:
        """What `log.cleaner.io.max.bytes.per.second` asks for what was read and written since the last pause."""
        moved, run.counted_bytes = run.io.moved_bytes - run.counted_bytes, run.io.moved_bytes
        rate = self._broker.settings.log_cleaner_io_max_bytes_per_second
        return moved / rate if rate > 0 else 0.0

    def _answered(self, run: _Run, result: object) -> None:
        run.answer = result
        self._broker.runtime.timers.set((self, run), self._broker.runtime.now + self._pause(run))

    def _ended(self, run: _Run, cleaned: Cleaned) -> None:
        self._runs.remove(run)
        log = run.candidate.log
        self._look_again(0)
        try:
            self._cleaner.note_cleaned(log, cleaned.end_offset, self._broker.partitions)
        except StorageFailure as failure:
            # The next run begins where this one did.
            self._broker.logs.error("storage", "housekeeping-failed", job="cleaner checkpoint", reason=failure)
            self._look_again(self._broker.settings.log_cleaner_backoff_ms / 1000)
        self._broker.logs.info(
            "storage",
            "cleaned",
            topic=log.topic,
            partition=log.partition,
            start=run.candidate.first_dirty_offset,
            end=cleaned.end_offset,
            read_bytes=cleaned.read_bytes,
            written_bytes=cleaned.written_bytes,
            seconds=round(self._broker.runtime.clock.now() - run.began, 3),
        )

    def _failed(self, run: _Run, tell: Callable[..., None], event: str, reason: Exception) -> None:
        self._runs.remove(run)
        self._look_again(self._broker.settings.log_cleaner_backoff_ms / 1000)
        tell("storage", event, topic=run.candidate.log.topic, partition=run.candidate.log.partition, reason=reason)

    def _retention(self) -> None:
        broker, busy = self._broker, self.busy
        for log in list(broker.partitions):
            if "compact" in log.settings.cleanup_policy and log.is_loaded and log.offline is None and log not in busy:
                try:
                    log.run_retention(broker.runtime.now_ms)
                except StorageFailure as failure:
                    broker.log_failed(log, failure)
