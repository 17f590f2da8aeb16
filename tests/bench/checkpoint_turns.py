"""Prints the processor time, in milliseconds, of the loop's longest turn while a checkpoint is written.

`python -m tests.bench.checkpoint_turns COUNT FOLDER` creates COUNT partitions in FOLDER and prints the median of a few
checkpoints of their offsets."""

from __future__ import annotations

import sys
import time
from statistics import median
from threading import Thread

from pykafkad.config import Settings
from pykafkad.server.listeners import Listener
from pykafkad.server.wiring import Process
from tests.bench.session import Session

INTERVAL_SECONDS = 1
CHECKPOINTS = 5
PARTITIONS_EACH = 1000


class TimedTurns:
    """Measures the last step of each turn of a runtime, in which the housekeeping does its work."""

    def __init__(self, runtime):
        self._end_turn = runtime.end_turn
        self.longest_seconds = 0.0
        runtime.end_turn = self.end_turn

    def end_turn(self):
        begin = time.thread_time()
        self._end_turn()
        self.longest_seconds = max(self.longest_seconds, time.thread_time() - begin)


def main(count, folder):
    """Prints the median."""
    settings = Settings.from_properties(
        {
            "log.dirs": (folder, "the bench"),
            "replica.high.watermark.checkpoint.interval.ms": (str(1000 * INTERVAL_SECONDS), "the bench"),
        }
    )
    process = Process(settings, [Listener("PLAINTEXT", "localhost", 0)], [folder])
    process.start()
    turns = TimedTurns(process.runtime)
    thread = Thread(target=process.runtime.run)
    thread.start()
    try:
        with Session(process.listeners[0].port) as session:
            for number in range(count // PARTITIONS_EACH):
                session.create_topics({f"topic-{number}": PARTITIONS_EACH})
        longest = []
        for _ in range(CHECKPOINTS):
            time.sleep(2 * INTERVAL_SECONDS)
            turns.longest_seconds = 0.0
            time.sleep(2 * INTERVAL_SECONDS)
            longest.append(turns.longest_seconds)
    finally:
        process.runtime.stop("measured")
        thread.join()
        process.runtime.close()
    print(1e3 * median(longest))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
