"""The differences between the answers of pykafkad and Kafka 4.3.1 that the scenarios allow, with their reasons."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple


class Difference(NamedTuple):
    """One allowed difference: patterns for the scenario, the step's label and the dotted path of the field; and the
    reason.
    """

    scenario: str
    label: str
    path: str
    reason: str


ALLOWED = (
    Difference(
        "produce.*",
        "*",
        "responses.*.error_message",
        "Kafka refuses the batch without a message, pykafkad gives a reason; the error code is the same.",
    ),
    Difference(
        "internal_topics.partition_produced_twice",
        "Produce *",
        "responses*",
        "pykafkad appends and answers every row. No client sends two; dropping acknowledged records would be worse.",
    ),
    Difference(
        "restarts",
        "long poll *at restart *",
        "*",
        "A Fetch that waits when the broker stops is answered with what there is, as at the end of its wait. Kafka "
        "closes the connection, or, if the request names the leader epoch, answers FENCED_LEADER_EPOCH; either has the "
        "client look for the leader, as ours has by closing the connection after the answer.",
    ),
)


def allowed(scenario: str, label: str, path: str) -> bool:
    """Whether the table has a row for this difference."""
    return any(
        fnmatchcase(scenario, row.scenario) and fnmatchcase(label, row.label) and fnmatchcase(path, row.path)
        for row in ALLOWED
    )
