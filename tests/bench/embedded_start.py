"""Prints how many milliseconds a broker takes from its constructor to serving, in a process that has imported it.

`python -m tests.bench.embedded_start COUNT FOLDER` prints the median of COUNT starts, after one that is not counted.
The data is in memory, and FOLDER stays empty."""

from __future__ import annotations

import sys
import time
from statistics import median

from pykafkad.clock import Clock
from pykafkad.config import Settings
from pykafkad.memory_disk import MemoryDisk
from pykafkad.server.listeners import Listener
from pykafkad.server.wiring import Process

DISK_BYTES = 64 * 1024 * 1024
DIRECTORY = "/data"


def start_ms():
    """Milliseconds from the constructor to a bound listener behind which every API is served."""
    settings = Settings.from_properties({"log.dirs": (DIRECTORY, "the bench")})
    clock = Clock()
    begin = time.perf_counter()
    broker = Process(
        settings, [Listener("PLAINTEXT", "localhost", 0)], [DIRECTORY], clock=clock, disk=MemoryDisk(DISK_BYTES, clock)
    )
    broker.start()
    took_ms = 1e3 * (time.perf_counter() - begin)
    broker.runtime.close()
    return took_ms


def main(count):
    """Prints the median."""
    start_ms()
    print(median(start_ms() for _ in range(count)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
