"""A streams group (KIP-1071): its topology, its members, its target assignment and its epochs.

The group epoch counts the changes of members, topology, topics and settings. For each epoch the coordinator computes a
target: which member shall run which task. A member moves to its target step by step (`streams_reconciliation.py`), and
its own epoch says how far it has come.

All of this is hard state. Only `apply` functions change it, with the records of the log (`streams_rules.py`). The
indexes of processes follow from it. Soft state are the deadlines of the members, the topology as it stands against the
topics that exist, the request to shut the application down, and the epoch of the endpoints.
"""

from __future__ import annotations

from pykafkad.coordinator import streams_records
from pykafkad.coordinator.group_types import STREAMS
from pykafkad.coordinator.reconciled_group import ReconciledGroup
from pykafkad.effects import CancelTimer, SetTimer
from pykafkad.errors import NONE, STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION

NOT_READY = "NotReady"

TIMER_INITIAL = "initial"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.coordinator.step import Step
    from pykafkad.coordinator.streams_member import StreamsMember, Target
    from pykafkad.coordinator.streams_topics import ConfiguredTopology
    from pykafkad.coordinator.streams_topology import Topology
    from pykafkad.effects import StoredRecord
    from pykafkad.wire import messages


class StreamsGroup(ReconciledGroup):
    """One group. `validated_epoch` is the epoch of the topology whose topics are all there (-1: none).
    `assignment_configs` are the settings with which the last target was computed.

    `active_processes` says in which process an active task is, `copies` which copies are in a process, by
    kind. `configured` is the topology held against the topics, None until a heartbeat needs it. `is_delayed`: the group
    waits for its first members. `shutdown_member_id` is the member that asked the whole application to stop."""

    __slots__ = (
        "active_processes",
        "assignment_configs",
        "configured",
        "copies",
        "endpoint_epoch",
        "is_delayed",
        "shutdown_member_id",
        "topology",
        "validated_epoch",
    )

    type = STREAMS
    protocol_type: str | None = "streams"
    members: dict[str, StreamsMember]
    targets: dict[str, Target]

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.validated_epoch = 0
        self.assignment_configs: dict[str, str] = {}
        self.topology: Topology | None = None
        # What follows from the above.
        self.active_processes: dict[str, dict[int, str]] = {}
        self.copies: dict[tuple[str, str, str], set[int]] = {}
        # Soft state.
        self.is_delayed = False
        self.forget_topics()
        self.endpoint_epoch = 0
        self.shutdown_member_id: str | None = None

    def forget_topics(self) -> None:
        """The next heartbeat holds the topology against the topics."""
        self.configured: ConfiguredTopology | None = None
        self.topics_changed = True

    # What a shard asks of a group of any type.

    @property
    def state(self) -> str:
        """Kafka's name of the state. It follows from the epochs, the topology and the members."""
        is_ready = self.topology is not None and self.topology.epoch == self.validated_epoch
        return super().state if is_ready or not self.members else NOT_READY

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the topic is a source of the topology of a group with members."""
        return bool(self.members) and self.topology is not None and topic in self.topology.source_topics

    def tombstones(self) -> list[StoredRecord]:
        """The records that delete the group, without its offsets."""
        return streams_records.group_tombstones(self.group_id, list(self.members))

    def check_commit(self, request: messages.OffsetCommitRequest, has_member_epochs: bool = True) -> int:
        """The error code that refuses a commit as a whole, or NONE. `has_member_epochs`: the request is of a version
        (9 and later) that members of these groups may use.

        A member may name an older epoch than its own, if it had the tasks of all partitions of the request in that
        epoch: it may not have heard of the new one yet (KIP-1251).
        """
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and not self.members:
            return NONE
        member = self.members.get(request.member_id)
        if member is None:
            return UNKNOWN_MEMBER_ID
        if not has_member_epochs:
            return UNSUPPORTED_VERSION
        if epoch == member.epoch:
            return NONE
        if epoch > member.epoch or self.topology is None:
            return STALE_MEMBER_EPOCH
        for topic in request.topics:
            subtopology_id = self.topology.source_topics.get(topic.name)
            if subtopology_id is None:
                return STALE_MEMBER_EPOCH
            for partition in topic.partitions:
                since = member.assignment_epoch(subtopology_id, partition.partition_index)
                if since is None or epoch < since:
                    return STALE_MEMBER_EPOCH
        return NONE

    # Timers.

    def delay(self, step: Step, delay_ms: int) -> None:
        """Compute no target for `delay_ms`, unless the group waits already."""
        if not self.is_delayed and delay_ms > 0:
            self.is_delayed = True
            step.effects.append(SetTimer((TIMER_INITIAL, self.group_id), step.now + delay_ms / 1000))

    def cancel_timers(self, step: Step) -> None:
        """Cancel all timers of the group, which is deleted."""
        super().cancel_timers(step)
        if self.is_delayed:
            self.is_delayed = False
            step.effects.append(CancelTimer((TIMER_INITIAL, self.group_id)))

    # Hard state.

    def put(self, member: StreamsMember) -> None:
        """Add or replace a member."""
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        had = {} if before is None else _tasks(before)
        has = _tasks(member)
        if before is not None and before.process_id != member.process_id:
            self._release(before.process_id, had)
            had = {}
        # Only what has changed: a member may have thousands of tasks.
        self._release(member.process_id, {key: tasks - has.get(key, set()) for key, tasks in had.items()})
        for (kind, subtopology_id), tasks in has.items():
            new = tasks - had.get((kind, subtopology_id), set())
            if new and kind == "active":
                owners = self.active_processes.setdefault(subtopology_id, {})
                owners.update(dict.fromkeys(new, member.process_id))
            elif new:
                self.copies.setdefault((kind, subtopology_id, member.process_id), set()).update(new)

    def remove(self, member_id: str) -> None:
        """Remove a member, if it is there. With the last one the request to shut down ends."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._release(member.process_id, _tasks(member))
        if not self.members:
            self.shutdown_member_id = None

    def _release(self, process_id: str, tasks: dict[tuple[str, str], set[int]]) -> None:
        for (kind, subtopology_id), partitions in tasks.items():
            if kind == "active":
                owners = self.active_processes.get(subtopology_id, {})
                for partition in partitions:
                    if owners.get(partition) == process_id:
                        del owners[partition]
                if not owners:
                    self.active_processes.pop(subtopology_id, None)
            elif (copies := self.copies.get((kind, subtopology_id, process_id))) is not None:
                copies.difference_update(partitions)
                if not copies:
                    del self.copies[kind, subtopology_id, process_id]

    # Tasks that are free.

    def free_active(self, process_id: str, subtopology_id: str, wanted: frozenset[int]) -> frozenset[int]:
        """The active tasks that a member of the process may get."""
        taken = self.active_processes.get(subtopology_id, {})
        return wanted.difference(taken, *self._copies_in(process_id, subtopology_id))

    def free_copies(self, process_id: str, subtopology_id: str, wanted: frozenset[int]) -> frozenset[int]:
        """The standby or warm-up tasks that a member of the process may get."""
        owners = self.active_processes.get(subtopology_id, {})
        own = [partition for partition in wanted if owners.get(partition) == process_id]
        return wanted.difference(own, *self._copies_in(process_id, subtopology_id))

    def _copies_in(self, process_id: str, subtopology_id: str) -> list[set[int]]:
        kinds = ("standby", "warmup")
        return [self.copies.get((kind, subtopology_id, process_id), set()) for kind in kinds]


def _tasks(member: StreamsMember) -> dict[tuple[str, str], set[int]]:
    """Kind and subtopology id to the partitions of all tasks that a member has or is giving up."""
    found: dict[tuple[str, str], set[int]] = {}
    for tasks in (member.assigned, member.revoking):
        for kind in ("active", "standby", "warmup"):
            partitions: Any = getattr(tasks, kind)
            for subtopology_id, numbers in partitions.items():
                found.setdefault((kind, subtopology_id), set()).update(numbers)
    return found
