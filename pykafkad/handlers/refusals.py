"""What APIs answer whose machinery is not here: as Kafka does while the feature is switched off, and on the row that it
concerns."""

from __future__ import annotations

from pykafkad import errors

FEATURE_OFF = errors.UNSUPPORTED_VERSION
"""Kafka's code for a request to a feature whose level is 0."""
FEATURE_OFF_TEXT = errors.message(FEATURE_OFF)


def every_group(row: type, group_ids: list[str]) -> list[object]:
    """A row of class `row` for each group, refused."""
    return [row(group_id=group_id, error_code=FEATURE_OFF) for group_id in group_ids]


def every_state(result: type, row: type, topics: list[object]) -> list[object]:
    """A `result` for each topic of a request about the state of a share group, with a `row` for each partition,
    refused."""
    return [
        result(
            topic_id=topic.topic_id,
            partitions=[
                row(partition=each.partition, error_code=FEATURE_OFF, error_message=FEATURE_OFF_TEXT)
                for each in topic.partitions
            ],
        )
        for topic in topics
    ]
