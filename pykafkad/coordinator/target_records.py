"""The records of a target assignment. Consumer groups (KIP-848) and share groups (KIP-932) write them alike, each with
message classes of its own."""

from __future__ import annotations

from pykafkad.effects import StoredRecord
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.coordinator.assignors import Assignment


class TargetRecords:
    """The records of one type of groups. `kind` is how the names of its messages begin, such as `ShareGroup`."""

    __slots__ = ("_epoch_key", "_epoch_value", "_member_key", "_member_value")

    def __init__(self, kind: str) -> None:
        self._member_key: Any = getattr(messages, f"{kind}TargetAssignmentMemberKey")
        self._member_value: Any = getattr(messages, f"{kind}TargetAssignmentMemberValue")
        self._epoch_key: Any = getattr(messages, f"{kind}TargetAssignmentMetadataKey")
        self._epoch_value: Any = getattr(messages, f"{kind}TargetAssignmentMetadataValue")

    def target(self, group_id: str, member_id: str, target: Assignment) -> StoredRecord:
        """The record of what a member shall have."""
        rows = [
            self._member_value.TopicPartition(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in target.items()
        ]
        key = self._member_key(group_id=group_id, member_id=member_id)
        return StoredRecord(key, self._member_value(topic_partitions=rows))

    def target_epoch(self, group_id: str, epoch: int, timestamp_ms: int) -> StoredRecord:
        """The record of the group epoch that all targets are of, and when they were computed."""
        value = self._epoch_value(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
        return StoredRecord(self._epoch_key(group_id=group_id), value)
