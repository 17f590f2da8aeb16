"""Programs in processes of their own, to be killed as a machine's failure would kill them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

TIMEOUT_S = 400
REPOSITORY = Path(__file__).resolve().parents[2]


class IncrementalTask:
    """A Python module run as a program, with its Java process in its group; its output is in `log`."""

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
                # What a killed process leaves behind lies with the rest of the test.
                env={**os.environ, "TMPDIR": str(directory)},
                start_new_session=True,
            )

    def run(self) -> str:
        """Wait until it ends, which has to be with success; returns what it printed."""
        try:
            status = self._process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        assert status == 0, self.log.read_text()[-4000:]
        return self.log.read_text()

    def kill_after_batches(self, checkpoint: Path, batches: int) -> None:
        """SIGKILL, to Python and Java at once, when so many batches are committed in `checkpoint`."""
        deadline = time.monotonic() + TIMEOUT_S
        while committed_batches(checkpoint) < batches:
            assert self._process.poll() is None, f"ended before it could be killed:\n{self.log.read_text()[-4000:]}"
            assert time.monotonic() < deadline, self.log.read_text()[-4000:]
            time.sleep(0.01)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to the whole group."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def committed_batches(checkpoint: Path) -> int:
    """How many batches a streaming query has committed in its checkpoint."""
    commits = checkpoint / "commits"
    return sum(path.name.isdigit() for path in commits.iterdir()) if commits.is_dir() else 0
