"""Runs the log cleaner between the turns of the loop.

Every `log.cleaner.backoff.ms` the dirtiest logs are looked for, as many as `log.cleaner.threads` allows at once. Each
run is a generator that is given at most `STEP_SECONDS` per turn; what it hands out as a function goes to the offload
thread, and its result comes back. A run that ends is followed by the next look at once, as long as there is something
to clean. Segments of compacted logs that `compact,delete` or DeleteRecords have passed go here too, because nothing
else may touch a log that is being cleaned."""

from __future__ import annotations

from pykafkad.errors import StorageFailure
from pykafkad.log import retention

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.log.cleaner import Cleaned
    from pykafkad.log.cleaner_runs import CleanerRun, CleanerRuns
    from pykafkad.log.partition_log import PartitionLog
    from pykafkad.server.broker import Broker


STEP_SECONDS = 0.002
_LOOK = "look for dirty logs"


class Compaction:
    """See the module."""

    __slots__ = ("_began", "_broker", "_made_runs")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._made_runs: CleanerRuns | None = None
        self._began: dict[CleanerRun, float] = {}

    @property
    def _runs(self) -> CleanerRuns:
        if self._made_runs is None:
            # A broker serves before it looks for dirty logs.
            from pykafkad.log.cleaner_runs import CleanerRuns

            self._made_runs = CleanerRuns(self._broker.runtime.disk)
        return self._made_runs

    @property
    def busy(self) -> list[PartitionLog]:
        """The logs that are being cleaned."""
        return [] if self._made_runs is None else self._made_runs.busy

    def start(self) -> None:
        """Begin to look, unless `log.cleaner.enable` forbids it."""
        if self._broker.settings.log_cleaner_enable:
            self._look_again(self._broker.settings.log_cleaner_backoff_ms / 1000)

    def close(self) -> None:
        """Give up what is half done; its files are removed."""
        self._broker.runtime.timers.cancel((self, _LOOK))
        if self._made_runs is not None:
            self._made_runs.close()
        self._began.clear()

    def forget(self, logs: list[PartitionLog]) -> None:
        """Logs were deleted, or put back to an earlier state: nothing of them counts as clean any more."""
        try:
            self._runs.cleaner.forget(logs)
        except StorageFailure as failure:
            self._broker.logs.error("storage", "housekeeping-failed", job="cleaner checkpoint", reason=failure)

    def _look_again(self, seconds: float) -> None:
        self._broker.runtime.timers.set((self, _LOOK), self._broker.runtime.now + seconds)

    def fired(self, key: CleanerRun | str) -> None:
        """A timer of ours: look for logs, or go on with a run."""
        if not isinstance(key, str):
            self._work(key)
            return
        settings = self._broker.settings
        try:
            while self._begin():
                pass
            self._retention()
        finally:
            if len(self._runs) < settings.log_cleaner_threads or not self._runs:
                self._look_again(settings.log_cleaner_backoff_ms / 1000)

    def _begin(self) -> bool:
        """Begin one more run; False when there is nothing to clean, or enough runs go on."""
        broker = self._broker
        try:
            run = self._runs.begin(broker.partitions, broker.runtime.now_ms, broker.settings, broker.partitions.held)
        except StorageFailure as failure:
            broker.logs.error("storage", "housekeeping-failed", job="cleaning", reason=failure)
            return False
        if run is None:
            return False
        self._began[run] = broker.runtime.now
        broker.runtime.timers.set((self, run), broker.runtime.now)
        return True

    def _work(self, run: CleanerRun) -> None:
        """Give a run its part of this turn."""
        if run not in self._runs:
            return
        from pykafkad.log.cleaner import CleaningAborted
        from pykafkad.log.record_scan import BrokenRecords

        broker = self._broker
        until = broker.runtime.clock.now() + STEP_SECONDS
        log = run.log
        try:
            while True:
                job = run.step()
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
            if log.offline is not None:
                broker.log_failed(log, failure)
            self._failed(run, self._broker.logs.error, "cleaning-failed", failure)
        except BrokenRecords as reason:
            self._failed(run, self._broker.logs.error, "log-uncleanable", reason)

    def _pause(self, run: CleanerRun) -> float:
        return run.pause_seconds(self._broker.settings.log_cleaner_io_max_bytes_per_second)

    def _answered(self, run: CleanerRun, result: object) -> None:
        run.answer = result
        self._broker.runtime.timers.set((self, run), self._broker.runtime.now + self._pause(run))

    def _ended(self, run: CleanerRun, cleaned: Cleaned) -> None:
        self._runs.end(run)
        began = self._began.pop(run)
        log = run.log
        self._look_again(0)
        try:
            self._runs.cleaner.note_cleaned(log, cleaned.end_offset, self._broker.partitions)
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
            seconds=round(self._broker.runtime.clock.now() - began, 3),
        )

    def _failed(self, run: CleanerRun, tell: Callable[..., None], event: str, reason: Exception) -> None:
        self._runs.end(run)
        del self._began[run]
        self._look_again(self._broker.settings.log_cleaner_backoff_ms / 1000)
        tell("storage", event, topic=run.log.topic, partition=run.log.partition, reason=reason)

    def _retention(self) -> None:
        broker = self._broker
        for log in retention.logs_of_cleaner(broker.partitions, [*self.busy, *broker.partitions.held]):
            try:
                log.run_retention(broker.runtime.now_ms)
            except StorageFailure as failure:
                broker.log_failed(log, failure)
