"""The engine without instrumentation: it makes hundreds of thousands of random changes to valid bytes."""

from __future__ import annotations

import random
import re
import resource
import signal
import time
from collections.abc import Callable, Iterable
from itertools import accumulate
from pathlib import Path

from tests.fuzz import decoders, directories, kerberos, logins
from tests.fuzz.target import Finding, Target

TARGETS = decoders.TARGETS + directories.TARGETS + logins.TARGETS + kerberos.TARGETS
# Targets that have a name together.
GROUPS = {"logins": frozenset(target.name for target in logins.TARGETS + kerberos.TARGETS)}
# The limit of one input. The slowest valid one decompresses a batch of a megabyte.
LIMIT_SECONDS = 2.0
# The limit of the process's growth over a whole run.
LIMIT_GROWTH_MB = 150
ROUND_INPUTS = 1000
# The limit in wall-clock time, for an input that never ends.
ROUND_SECONDS = 120.0
EDGES = (
    b"\0",
    b"\1",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x80\x01",
    b"\xff\xff",
    b"\0\0\0\0\0\0\0\0",
)


def mutated(draw: random.Random, data: bytes, other: bytes) -> bytes:
    """The bytes after up to four random changes. Pieces of `other` may be inserted."""
    chance = draw.random
    if chance() < 0.04:
        return data[:1] + draw.randbytes(int(chance() * 60))
    found = bytearray(data)
    for _ in range(1 if chance() < 0.5 else int(chance() * 5)):
        size = len(found)
        at, kind = int(chance() * size), int(chance() * 8)
        if not size:
            break
        if kind < 2:
            found[at] ^= 1 << int(chance() * 8)
        elif kind < 4:
            edge = EDGES[int(chance() * len(EDGES))]
            found[at : at + len(edge)] = edge
        elif kind == 4:
            del found[at:]
        elif kind == 5:
            del found[at : at + (1, 2, 4, 8)[int(chance() * 4)]]
        elif kind == 6:
            found[at:at] = found[at : at + 1 + int(chance() * 30)]
        else:
            piece = int(chance() * len(other))
            found[at : at + 8] = other[piece : piece + int(chance() * 40)]
    return bytes(found)


class Report:
    """The results of a run by target: inputs, inputs that gave a value, the slowest in seconds."""

    def __init__(self) -> None:
        self.inputs: dict[str, int] = {}
        self.values: dict[str, int] = {}
        self.slowest: dict[str, float] = {}
        self.findings: list[str] = []
        self.growth_mb = 0.0

    @property
    def total(self) -> int:
        """The number of all inputs."""
        return sum(self.inputs.values())

    def lines(self) -> list[str]:
        """The results as a text."""
        rows = [f"{'target':<14}{'inputs':>12}{'values':>12}{'refused':>12}{'slowest ms':>12}"]
        for name, count in self.inputs.items():
            values = self.values[name]
            rows.append(f"{name:<14}{count:>12}{values:>12}{count - values:>12}{self.slowest[name] * 1000:>12.1f}")
        rows.append(f"{self.total} inputs, {len(self.findings)} findings, {self.growth_mb:.0f} MB growth")
        return rows + self.findings


def _alarm(*_: object) -> None:
    raise Finding(f"took longer than {ROUND_INPUTS} inputs may")


def _forget_peak() -> None:
    """Resets the peak of the process's memory, so that the peak of earlier work does not count as growth."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        # Not every kernel has this file.
        pass


def _grown_mb(before_kb: int) -> float:
    return (_peak_kb() - before_kb) / 1024


def _peak_kb() -> int:
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    # Some sandboxes do not report VmHWM. The peak of getrusage cannot be reset.
    return int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def run(
    inputs: int,
    seed: object,
    targets: Iterable[Target] = TARGETS,
    progress: Callable[[Report], None] = lambda report: None,
) -> Report:
    """Feeds `inputs` inputs to the targets. A finding is recorded with its bytes, and the run continues."""
    draw = random.Random(f"fuzz {seed}")
    targets = list(targets)
    weights = list(accumulate(target.weight for target in targets))
    report = Report()
    for target in targets:
        report.inputs[target.name] = report.values[target.name] = 0
        report.slowest[target.name] = 0.0
    for target in targets:
        target.check(target.example(draw))
    _forget_peak()
    before_kb = _peak_kb()
    previous = signal.signal(signal.SIGALRM, _alarm)
    try:
        left = inputs
        while left > 0:
            _round(draw, targets, weights, min(left, ROUND_INPUTS), report)
            left -= ROUND_INPUTS
            report.growth_mb = _grown_mb(before_kb)
            progress(report)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    if report.growth_mb > LIMIT_GROWTH_MB:
        report.findings.append(f"the process grew by {report.growth_mb:.0f} MB")
    return report


def _round(draw: random.Random, targets: list[Target], weights: list[int], count: int, report: Report) -> None:
    signal.setitimer(signal.ITIMER_REAL, ROUND_SECONDS)
    other = b"\0" * 20
    for target in draw.choices(targets, cum_weights=weights, k=count):
        example = target.example(draw)
        data = mutated(draw, example, other)
        other = example
        started = time.thread_time()
        try:
            gave_value = target.check(data)
        except Exception as error:  # Any other exception is a finding.
            report.findings.append(f"{target.name}: {type(error).__name__}: {error}: {data.hex()}")
            gave_value = False
            signal.setitimer(signal.ITIMER_REAL, ROUND_SECONDS)
        taken = time.thread_time() - started
        report.inputs[target.name] += 1
        report.values[target.name] += gave_value
        if taken > report.slowest[target.name]:
            report.slowest[target.name] = taken
            if taken > LIMIT_SECONDS:
                report.findings.append(f"{target.name}: {taken:.1f} s: {data.hex()}")
