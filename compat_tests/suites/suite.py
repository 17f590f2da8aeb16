"""What a suite is: where it comes from, how it is built and run, and which differences between the brokers are
expected."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
# Test id to PASSED, FAILED or SKIPPED.
Outcomes = dict[str, str]


class SuiteUnavailable(Exception):
    """The suite cannot be run here; the message names what is missing and how to get it."""


@dataclass(frozen=True)
class Place:
    """Where one run of a suite happens: its built `source`, the broker's address, and a `scratch` folder for output."""

    source: Path
    bootstrap: str
    scratch: Path
    quick: bool

    @property
    def log_path(self) -> Path:
        """What the suite prints."""
        return self.scratch / "suite.log"


@dataclass(frozen=True)
class Suite:
    """One suite: `prepare` returns its built source in the cache, `run` its outcomes.

    `differences` maps patterns of test ids (as fnmatch knows them) to why they pass on Kafka and not on pykafkad;
    `unsteady` maps patterns to why a test passes one time and fails the next on either broker; `not_run` says what of
    the suite is left out, and why."""

    name: str
    version: str
    registry: str
    client: str
    prepare: Callable[[], Path]
    run: Callable[[Place], Outcomes]
    settings: Mapping[str, str] = field(default_factory=dict)
    # Settings of what pykafkad does not offer yet: it would refuse to start with them.
    settings_of_kafka: Mapping[str, str] = field(default_factory=dict)
    # The suite has the address localhost:9092 written into it.
    fixed_port: bool = False
    # In `make test`; the others are in `make test-long`.
    quick: bool = True
    differences: Mapping[str, str] = field(default_factory=dict)
    unsteady: Mapping[str, str] = field(default_factory=dict)
    not_run: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A suite that its registry's package does not carry, and what stands in for it."""

    name: str
    why: str
    instead: str


def reason_for(test: str, reasons: Mapping[str, str]) -> str | None:
    """The reason whose pattern matches `test`, or None."""
    for pattern, reason in reasons.items():
        # Parametrised ids hold brackets, which are a pattern's own; only * is meant as one here.
        if fnmatch.fnmatchcase(test, pattern.replace("[", "[[]")):
            return reason
    return None


@dataclass(frozen=True)
class Comparison:
    """The outcomes of one suite on both brokers, and what follows from them."""

    suite: Suite
    on_kafka: Outcomes
    here: Outcomes

    def seen_again(self, here: Outcomes) -> Comparison:
        """What is left of the differences after a second run on pykafkad: a test that passed in one of the two counts
        as passed."""
        passed = {test: outcome for test, outcome in here.items() if outcome == PASSED}
        return Comparison(self.suite, self.on_kafka, self.here | passed)

    def passed_on_kafka(self) -> int:
        """Tests that passed on the real Kafka."""
        return list(self.on_kafka.values()).count(PASSED)

    def passed_here(self) -> int:
        """Tests that passed on pykafkad."""
        return list(self.here.values()).count(PASSED)

    def only_on_kafka(self) -> dict[str, str | None]:
        """Tests that passed on Kafka and not here, with the reason that is known for each."""
        return {
            test: reason_for(test, {**self.suite.differences, **self.suite.unsteady})
            for test, outcome in sorted(self.on_kafka.items())
            if outcome == PASSED and self.here.get(test) != PASSED
        }

    def only_here(self) -> list[str]:
        """Tests that passed here and not on Kafka."""
        return sorted(
            test for test, outcome in self.here.items() if outcome == PASSED and self.on_kafka.get(test) != PASSED
        )

    def unexplained(self) -> list[str]:
        """Tests that passed on Kafka and not here, without a reason: bugs of ours."""
        return [test for test, reason in self.only_on_kafka().items() if reason is None]

    def outdated(self) -> list[str]:
        """Differences that are named and are none any more: every test of the pattern that ran passed on both
        brokers."""
        met = dict.fromkeys(self.suite.differences, False)
        seen = dict(met)
        for test in self.on_kafka:
            for pattern in met:
                if reason_for(test, {pattern: "x"}):
                    seen[pattern] = True
                    met[pattern] = met[pattern] or self.here.get(test) != PASSED
        return [pattern for pattern in met if seen[pattern] and not met[pattern]]
