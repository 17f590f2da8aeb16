"""The differences that the cases allow between the tools' output for pykafkad and for Kafka 4.3.1, with reasons."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple


class Difference(NamedTuple):
    """One allowed difference: patterns for the case and the step's line, a regex for the line with its sign; and the
    reason.
    """

    case: str
    step: str
    line: str
    reason: str


ALLOWED = (
    Difference(
        "apis-versions",
        "broker-api-versions*",
        r"^[-+]\tStreamsGroup(Heartbeat|Describe)\(",
        "The groups of KIP-1071 are refused as with their feature off, and not advertised.",
    ),
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
        "quorum-features-*",
        "*features*",
        r"\bstreams\.version\b",
        "No feature is offered before its APIs are.",
    ),
    Difference(
        "quorum-features-changed",
        "features upgrade --release-version 4.3-IV0 --dry-run",
        r"exit code|can be upgraded|operation\(s\) failed",
        "A release's levels come all or none, and with 4.3-IV0 come features that are not offered yet.",
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
    Difference(
        "unoffered-newer-groups",
        "*",
        r"UnsupportedVersionException: |: (The version of API is not supported|"
        r"The node does not support \w+)|^[-+]The (version|node) ",
        "Refused alike; what is not advertised is refused by the client itself, in other words than a broker's with "
        "the feature off.",
    ),
)

# Rows that allowed a line in this run.
seen: set[Difference] = set()


def allowed(case: str, step: str, line: str) -> bool:
    """Whether the table has a row for a differing line; the row is then in `seen`."""
    rows = [
        row
        for row in ALLOWED
        if fnmatchcase(case, row.case) and fnmatchcase(step, row.step) and re.search(row.line, line)
    ]
    seen.update(rows)
    return bool(rows)
