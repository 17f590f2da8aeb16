"""The differences that the cases allow between the tools' output for pykafkad and for Kafka 4.3.1, with reasons."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple


class Difference(NamedTuple):
    """One allowed difference: the name of its case, a pattern for the step's line, a regex for the line with its sign;
    and the reason.

    The run of the case fails if the difference has gone.
    """

    case: str
    step: str
    line: str
    reason: str


ALLOWED = (
    Difference(
        "configs-of-a-broker",
        "configs --alter --broker 1 --add-config *threads=*",
        r"InvalidRequestException: (/ by zero|Invalid value )",
        "Refused alike; our words say what is wrong with a number of threads, Kafka's are those of an exception of "
        "its own.",
    ),
    Difference(
        "configs-every-setting-of-a-broker",
        "*",
        r"^[-+]  (advertised\.listeners|controller\.quorum\.bootstrap\.servers|inter\.broker\.listener\.name"
        r"|listener\.security\.protocol\.map|listeners)=",
        "pykafkad is told its address on its command line, and needs no second listener for its controller.",
    ),
    Difference(
        "quorum-the-quorum",
        "figures metadata-quorum describe --status",
        r"CurrentVoters",
        "Our controller has no listener of its own, so there is no endpoint to tell.",
    ),
    Difference(
        "quorum-the-quorum",
        "metadata-quorum remove-controller *",
        r"VoterNotFoundException: Cannot remove voter",
        "Refused alike; Kafka's words hold a Java object's.",
    ),
)


def of_case(case: str) -> list[Difference]:
    """The rows of a case."""
    return [row for row in ALLOWED if row.case == case]


def allowing(case: str, step: str, line: str) -> list[Difference]:
    """The rows that allow a differing line; none if it is not allowed."""
    return [row for row in of_case(case) if fnmatchcase(step, row.step) and re.search(row.line, line)]
