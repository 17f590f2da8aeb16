"""Where pykafkad answers otherwise than Kafka 4.3.1, and why: the only differences that the scenarios allow."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple


class Difference(NamedTuple):
    """One allowed difference: patterns for the scenario, the step's label and the dotted path of the field; the reason."""

    scenario: str
    label: str
    path: str
    reason: str


ALLOWED: tuple[Difference, ...] = ()


def allowed(scenario: str, label: str, path: str) -> bool:
    """Whether the table has a row for it."""
    return any(
        fnmatchcase(scenario, row.scenario) and fnmatchcase(label, row.label) and fnmatchcase(path, row.path)
        for row in ALLOWED
    )
