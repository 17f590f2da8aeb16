"""A suite: its source, how it is built and run, and the expected differences between the brokers."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
# Test id to PASSED, FAILED or SKIPPED.
Outcomes = dict[str, str]


class SuiteUnavailable(Exception):
    """The suite cannot run here; the message names what is missing and how to get it."""


@dataclass(frozen=True)
class Place:
    """The place of one run: the suite's built `source`, the broker's address, and a `scratch` folder for output."""

    source: Path
    bootstrap: str
    scratch: Path
    quick: bool

    @property
    def log_path(self) -> Path:
        """The file with the suite's output."""
        return self.scratch / "suite.log"


@dataclass(frozen=True)
class Suite:
    """One suite: `prepare` returns its built source in the cache, `run` its outcomes.

    `differences` maps patterns of test ids (in fnmatch syntax) to why they pass on Kafka and not on pykafkad.
    `unsteady` maps patterns to why a test sometimes fails on either broker. `not_run` names the part of the suite that
    is left out, and why.
    """

    name: str
    version: str
    registry: str
    client: str
    prepare: Callable[[], Path]
    run: Callable[[Place], Outcomes]
    settings: Mapping[str, str] = field(default_factory=dict)
    # Settings with which its tests log in, from `security.sasl_listener`.
    login_settings: Mapping[str, str] = field(default_factory=dict)
    # The suite has the fixed address localhost:9092.
    fixed_port: bool = False
    # `make test` runs these; `make test-long` runs all.
    quick: bool = True
    differences: Mapping[str, str] = field(default_factory=dict)
    unsteady: Mapping[str, str] = field(default_factory=dict)
    not_run: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A suite that its registry's package lacks, and the tests that replace it."""

    name: str
    why: str
    instead: str


def reason_for(test: str, reasons: Mapping[str, str]) -> str | None:
    """The reason whose pattern matches `test`, or None."""
    for pattern, reason in reasons.items():
        # Parametrised ids contain brackets, which fnmatch would interpret; only * is a wildcard here.
        if fnmatch.fnmatchcase(test, pattern.replace("[", "[[]")):
            return reason
    return None


@dataclass(frozen=True)
class Comparison:
    """The outcomes of one suite on both brokers, and their comparison."""

    suite: Suite
    on_kafka: Outcomes
    here: Outcomes

    def seen_again(self, here: Outcomes) -> Comparison:
        """The differences that remain after a second run on pykafkad: a test that passes in one of the two runs has
        passed.
        """
        passed = {test: outcome for test, outcome in here.items() if outcome == PASSED}
        return Comparison(self.suite, self.on_kafka, self.here | passed)

    def passed_on_kafka(self) -> int:
        """Tests that passed on the real Kafka."""
        return list(self.on_kafka.values()).count(PASSED)

    def passed_here(self) -> int:
        """Tests that passed on pykafkad."""
        return list(self.here.values()).count(PASSED)

    def only_on_kafka(self) -> dict[str, str | None]:
        """Tests that pass on Kafka and not on pykafkad, with the known reason for each."""
        return {
            test: reason_for(test, {**self.suite.differences, **self.suite.unsteady})
            for test, outcome in sorted(self.on_kafka.items())
            if outcome == PASSED and self.here.get(test) != PASSED
        }

    def only_here(self) -> list[str]:
        """Tests that pass on pykafkad and not on Kafka."""
        return sorted(
            test for test, outcome in self.here.items() if outcome == PASSED and self.on_kafka.get(test) != PASSED
        )

    def unexplained(self) -> list[str]:
        """Tests that pass on Kafka and not on pykafkad, without a reason: bugs of pykafkad."""
        return [test for test, reason in self.only_on_kafka().items() if reason is None]

    def outdated(self) -> list[str]:
        """Listed differences that no longer exist: every test of the pattern that ran passed on both brokers."""
        met = dict.fromkeys(self.suite.differences, False)
        seen = dict(met)
        for test in self.on_kafka:
            for pattern in met:
                if reason_for(test, {pattern: "x"}):
                    seen[pattern] = True
                    met[pattern] = met[pattern] or self.here.get(test) != PASSED
        return [pattern for pattern in met if seen[pattern] and not met[pattern]]
