"""Groups that change between the classic and the consumer protocol while they live (KIP-848)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.classic_group import ClassicGroup
from pykafkad.coordinator.consumer_group import ConsumerGroup
from pykafkad.coordinator.consumer_member import ConsumerMember
from pykafkad.coordinator.group_states import EMPTY
from pykafkad.errors import KafkaError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step
    from pykafkad.effects import StoredRecord


def upgraded(shard: GroupShard, step: Step, group: ClassicGroup, records: list[StoredRecord]) -> ConsumerGroup:
    """The consumer group that takes the place of a classic group. Raises `KafkaError` when it cannot."""
    if group.state is EMPTY:
        group.cancel_timers(step)
        records += group.tombstones()
        return ConsumerGroup(group.group_id)
    raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group.")


def downgrade_without(shard: GroupShard, step: Step, group: ConsumerGroup, members: list[ConsumerMember]) -> bool:
    """Turn the group into a classic one if all but these members speak the classic protocol. Whether it was done."""
    return False
