"""Programs in their own processes, which tests kill like a machine's failure would."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

TIMEOUT_S = 400
REPOSITORY = Path(__file__).resolve().parents[2]


class ModuleProcess:
    """A Python module run as a program, in a process group with its Java process; `log` has its output."""

    def __init__(self, directory: Path, module: str, *arguments: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.log = directory / f"job-{time.monotonic_ns()}.log"
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=REPOSITORY,
                # Files that a killed process leaves are in the test's folder.
                env={**os.environ, "TMPDIR": str(directory)},
                start_new_session=True,
            )

    def run(self) -> str:
        """Wait until it ends, which must be a success; returns its output."""
        try:
            status = self._process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        assert status == 0, self.log.read_text()[-4000:]
        return self.log.read_text()

    def kill_after_batches(self, checkpoint: Path, batches: int) -> None:
        """Kill Python and Java at once with SIGKILL, when `checkpoint` has this many committed batches."""
        self.wait_for(lambda: committed_batches(checkpoint) >= batches)
        self.kill()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition is true, while the job runs."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert self._process.poll() is None, f"the job ended before:\n{self.log.read_text()[-4000:]}"
            assert time.monotonic() < deadline, self.log.read_text()[-4000:]
            time.sleep(0.01)

    def wait_until_killed(self) -> None:
        """Wait until somebody has killed it."""
        assert self._process.wait(TIMEOUT_S) == -signal.SIGKILL, self.log.read_text()[-4000:]

    def kill(self) -> None:
        """SIGKILL to the whole group."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def committed_batches(checkpoint: Path) -> int:
    """How many batches a streaming query has committed in its checkpoint."""
    commits = checkpoint / "commits"
    return sum(path.name.isdigit() for path in commits.iterdir()) if commits.is_dir() else 0
