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


ALLOWED = (
    Difference(
        "produce.*",
        "*",
        "responses.*.error_message",
        "Where Kafka refuses a batch without a word, ours says why; the code is the same.",
    ),
    Difference(
        "internal_topics.partition_produced_twice",
        "Produce *",
        "responses*",
        "We append and answer every row. No client sends two; dropping records that were answered for would be worse.",
    ),
    Difference(
        "internal_topics.transactional_batches",
        "*",
        "*",
        "Transactions are not offered yet: their batches are refused with INVALID_TXN_STATE, and nothing is appended.",
    ),
)


def allowed(scenario: str, label: str, path: str) -> bool:
    """Whether the table has a row for it."""
    return any(
        fnmatchcase(scenario, row.scenario) and fnmatchcase(label, row.label) and fnmatchcase(path, row.path)
        for row in ALLOWED
    )
