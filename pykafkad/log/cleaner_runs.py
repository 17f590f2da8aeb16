"""The cleaner's runs: how many logs are cleaned at a time, and what each run may use of memory and of bandwidth.

`log.cleaner.threads` runs go on at a time and share the buffers, as Kafka's cleaner threads do. A rate limit
(`log.cleaner.io.max.bytes.per.second`) holds for each run: after a step it pauses for as long as the bytes of that step
take at the rate. Nothing here waits or starts threads; `server/compaction.py` gives the runs their time."""

from __future__ import annotations

from pykafkad.log.cleaner import LogCleaner
from pykafkad.log.compaction import Io

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pykafkad.disk import Disk
    from pykafkad.log.cleaner import Candidate, Cleaned
    from pykafkad.log.compaction import Steps
    from pykafkad.log.log_config import CleanerConfig
    from pykafkad.log.partition_log import PartitionLog

# A smaller chunk would hold single batches only.
MIN_CHUNK_BYTES = 16 * 1024


class CleanerRun:
    """One log that is being cleaned. `answer` is the result of the job that the last step asked for."""

    __slots__ = ("_counted_bytes", "_io", "_steps", "answer", "candidate")

    def __init__(self, candidate: Candidate, io: Io, steps: Steps[Cleaned]) -> None:
        self.candidate = candidate
        self.answer: object = None
        self._io = io
        self._steps = steps
        self._counted_bytes = 0

    @property
    def log(self) -> PartitionLog:
        """The log that is being cleaned."""
        return self.candidate.log

    def step(self) -> Callable[[], object] | None:
        """Take one small step. Returns a job for another thread, or None when the next step can follow at once.

        Raises `StopIteration` with a `Cleaned` at the end, and what `LogCleaner.clean` raises."""
        answer, self.answer = self.answer, None
        return self._steps.send(answer)

    def pause_seconds(self, bytes_per_second: float) -> float:
        """How long the run pauses for the bytes that it read and wrote since the last pause; a rate of 0 is none."""
        moved, self._counted_bytes = self._io.moved_bytes - self._counted_bytes, self._io.moved_bytes
        return moved / bytes_per_second if bytes_per_second > 0 else 0.0

    def close(self) -> None:
        """Give up; the log keeps its old segments, and the half-written ones are removed."""
        self._steps.close()


class CleanerRuns:
    """The runs that go on, and the choice of the log for the next one."""

    __slots__ = ("_runs", "cleaner")

    def __init__(self, disk: Disk) -> None:
        self.cleaner = LogCleaner(disk)
        self._runs: list[CleanerRun] = []

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, run: object) -> bool:
        return run in self._runs

    @property
    def busy(self) -> list[PartitionLog]:
        """The logs that are being cleaned."""
        return [run.log for run in self._runs]

    def begin(
        self,
        logs: Iterable[PartitionLog],
        now_ms: int,
        settings: CleanerConfig,
        held: Iterable[PartitionLog] = (),
    ) -> CleanerRun | None:
        """Begin to clean the dirtiest log; None when no log is dirty enough or as many runs go on as may. Those in
        `held` are about to be cut, and are skipped.

        Raises `StorageFailure`."""
        threads = settings.log_cleaner_threads
        if len(self._runs) >= threads:
            return None
        candidate = self.cleaner.pick(logs, now_ms, [*self.busy, *held])
        if candidate is None:
            return None
        # The last batch of an expired producer need not be kept.
        candidate.log.producers.expire(now_ms, settings.producer_id_expiration_ms)
        # A run reads into one half of its buffer and writes from the other.
        io = Io(max(MIN_CHUNK_BYTES, settings.log_cleaner_io_buffer_size // threads // 2))
        steps = self.cleaner.clean(
            candidate,
            now_ms,
            io,
            buffer_bytes=settings.log_cleaner_dedupe_buffer_size // threads,
            load_factor=settings.log_cleaner_io_buffer_load_factor,
        )
        run = CleanerRun(candidate, io, steps)
        self._runs.append(run)
        return run

    def end(self, run: CleanerRun) -> None:
        """The run has ended; its log may be chosen again."""
        self._runs.remove(run)

    def close(self) -> None:
        """Give up all runs."""
        for run in self._runs:
            run.close()
        self._runs.clear()
