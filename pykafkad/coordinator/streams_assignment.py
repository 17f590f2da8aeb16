"""The target assignment of a streams group (KIP-1071): when it is computed, and what it follows from."""

from __future__ import annotations

from pykafkad.coordinator import group_settings, streams_assignor, streams_records, target_computation
from pykafkad.coordinator.streams_member import Target
from pykafkad.coordinator.target_computation import MEMBER_WORK, TASK_WORK

STANDBY_REPLICAS = "num.standby.replicas"
"""The setting that the assignor is given."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.coordinator.in_steps import Steps
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.step import Step
    from pykafkad.coordinator.streams_group import StreamsGroup
    from pykafkad.coordinator.streams_member import StreamsMember
    from pykafkad.coordinator.streams_topics import ConfiguredTopology
    from pykafkad.coordinator.target_computation import Outcome


def configs(shard: GroupShard, group_id: str) -> dict[str, str]:
    """The settings of the assignor. A change of them leads to a new assignment."""
    return {STANDBY_REPLICAS: str(group_settings.number(shard, group_id, "streams_num_standby_replicas"))}


def may_assign(shard: GroupShard, step: Step, group: StreamsGroup) -> bool:
    """Whether the last target is old enough for a new one."""
    interval_ms = group_settings.number(shard, group.group_id, "streams_assignment_interval_ms")
    since_ms = group.target_timestamp_ms
    return not since_ms or not interval_ms or step.now_ms >= since_ms + interval_ms


class TargetWork:
    """What the target of a group follows from. `updated` is the member that joins or changes now. While topics are
    missing there are no tasks, and nobody has one. `size` is how much work there is."""

    __slots__ = ("_copies", "_group_id", "_members", "_newest", "_subtopologies", "known", "size")

    def __init__(
        self,
        group: StreamsGroup,
        configured: ConfiguredTopology,
        settings: Mapping[str, str],
        updated: StreamsMember | None,
    ) -> None:
        self._group_id = group.group_id
        self.known = dict(group.targets)
        self._members = dict(group.members)
        self._newest = None
        if updated is not None:
            self._newest = updated.member_id if updated.member_id not in group.members else None
            self._members[updated.member_id] = updated
        self._copies = int(settings.get(STANDBY_REPLICAS, "0"))
        self._subtopologies = {
            subtopology_id: streams_assignor.Subtopology(each.task_count, bool(each.changelogs))
            for subtopology_id, each in configured.subtopologies.items()
            if configured.is_ready
        }
        tasks = sum(each.task_count * (1 + self._copies * each.is_stateful) for each in self._subtopologies.values())
        self.size = MEMBER_WORK * len(self._members) + TASK_WORK * tasks

    def steps(self) -> Steps[Outcome]:
        """The work."""
        return target_computation.outcome(self._assigned(), self._group_id, self.known, streams_records.target)

    def _assigned(self) -> Steps[dict[str, Target]]:
        """The targets of all members."""
        subscribers = {
            member_id: streams_assignor.Subscriber(member.process_id, self.known.get(member_id, Target()))
            for member_id, member in self._members.items()
        }
        yield
        return (
            yield from streams_assignor.assign_in_steps(subscribers, self._newest, self._subtopologies, self._copies)
        )


def request(step: Step, group: StreamsGroup, epoch: int, work: TargetWork) -> None:
    """Have the target computed in steps."""
    step.computation = target_computation.TargetComputation(
        group, epoch, work.known, work.steps(), streams_records.target_epoch
    )
