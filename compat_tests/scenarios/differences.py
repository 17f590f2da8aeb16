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
        "streams_lives.streams_group_endpoints_that_kafka_does_not_tell",
        "StreamsGroupHeartbeat v0 missing",
        "*",
        "Kafka fails with UNKNOWN_SERVER_ERROR. pykafkad says which source topics are missing, as to other members.",
    ),
    Difference(
        "streams_lives.streams_group_endpoints_that_kafka_does_not_tell",
        "StreamsGroupHeartbeat v0 small *",
        "partitions_by_user_endpoint*",
        "Kafka 4.3.1 names partitions that do not exist (KAFKA-20885). pykafkad answers as Kafka does since 4.3.2.",
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


def allowing(scenario: str, label: str, path: str) -> list[Difference]:
    """The rows that allow this difference; none if it is not allowed."""
    return [
        row
        for row in ALLOWED
        if fnmatchcase(scenario, row.scenario) and fnmatchcase(label, row.label) and fnmatchcase(path, row.path)
    ]


def of_scenario(scenario: str) -> list[Difference]:
    """The rows of one scenario. The run of the scenario fails if the difference has gone."""
    return [row for row in ALLOWED if row.scenario == scenario]
