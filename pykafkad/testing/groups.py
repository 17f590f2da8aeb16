"""Groups as a test sees them: members, assignments, committed offsets and lag; and offsets committed for one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pykafkad import errors
from pykafkad.testing import topics
from pykafkad.testing.topics import Partition
from pykafkad.testing.wire_client import Refused, WireClient
from pykafkad.wire import messages

GROUP, TRANSACTION = 0, 1
"""Key types of FindCoordinator."""

PASSING = (
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
)
"""Errors of a coordinator that will be there in a moment."""

_DESCRIBED_BY = {"consumer": "ConsumerGroupDescribe", "share": "ShareGroupDescribe"}
"""APIs that describe groups by their types; classic groups have one of another shape."""

DEAD = "Dead"
"""The state of a group that is not there."""


class Member(NamedTuple):
    """A member of a group, and the partitions that it has."""

    member_id: str
    client_id: str
    assigned: frozenset[Partition] = frozenset()


class Group(NamedTuple):
    """A group as it is now. `type` is classic, consumer or share. `state` is Kafka's word: Stable, Empty,
    PreparingRebalance, CompletingRebalance, Assigning, Reconciling or Dead; `lag` has the partitions with a committed
    offset."""

    name: str
    type: str = ""
    state: str = DEAD
    members: tuple[Member, ...] = ()
    offsets: Mapping[Partition, int] = MappingProxyType({})
    lag: Mapping[Partition, int] = MappingProxyType({})

    @property
    def assigned(self) -> frozenset[Partition]:
        """The partitions that members have."""
        return frozenset().union(*(member.assigned for member in self.members))

    def __str__(self) -> str:
        if self.state == DEAD and not self.offsets:
            return f"group {self.name}: there is none"
        members = (
            "; ".join(
                f"{member.client_id or member.member_id} has {_names(member.assigned)}" for member in self.members
            )
            or "none"
        )
        lag = ", ".join(f"{topic}-{index} {lag}" for (topic, index), lag in sorted(self.lag.items())) or "no offsets"
        return f"group {self.name}: {self.state}, members: {members}, lag: {lag}"


def _names(partitions: frozenset[Partition]) -> str:
    return ", ".join(f"{topic}-{index}" for topic, index in sorted(partitions)) or "nothing"


def list_groups(client: WireClient) -> dict[str, tuple[str, str]]:
    """Type and state of every group, by name. A broker that names no type has classic groups alone."""
    answer = client.ask("ListGroups")
    return {row.group_id: (row.group_type or "classic", row.group_state) for row in answer.groups}


def describe(client: WireClient, name: str) -> Group:
    """The group of that name as it is now; one of the state Dead where there is none."""
    kind, state = list_groups(client).get(name, ("", DEAD))
    kind = kind.lower()
    members: tuple[Member, ...] = ()
    if kind in _DESCRIBED_BY:
        row = client.ask(_DESCRIBED_BY[kind], group_ids=[name]).groups[0]
        state, members = row.group_state or state, tuple(_consumer_member(each) for each in row.members)
    elif kind == "classic":
        row = client.ask("DescribeGroups", groups=[name]).groups[0]
        state, members = row.group_state or state, tuple(_classic_member(each) for each in row.members)
    committed = offsets(client, name)
    ends = topics.partition_counts(client, sorted({topic for topic, _ in committed})) if committed else {}
    there = [(topic, index) for topic, index in committed if index < ends.get(topic, 0)]
    end_offsets = topics.offsets(client, there, topics.LATEST)
    lag = {each: end_offsets[each] - committed[each] for each in there}
    return Group(name, kind, state, members, committed, lag)


def _consumer_member(row: Any) -> Member:
    assigned = {(each.topic_name, index) for each in row.assignment.topic_partitions for index in each.partitions}
    return Member(row.member_id, row.client_id, frozenset(assigned))


def _classic_member(row: Any) -> Member:
    content = bytes(row.member_assignment)
    assigned: set[Partition] = set()
    if len(content) >= 2:
        # Other group types (Kafka Connect) put something else there; theirs is not shown.
        try:
            decoded, _ = messages.decoder(messages.ConsumerProtocolAssignment, 0)(memoryview(content), 2)
            assigned = {(each.topic, index) for each in decoded.assigned_partitions for index in each.partitions}
        except errors.ProtocolError:
            assigned = set()
    return Member(row.member_id, row.client_id, frozenset(assigned))


def offsets(client: WireClient, name: str) -> dict[Partition, int]:
    """What a group has committed."""
    asked = messages.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None)
    row = client.ask("OffsetFetch", groups=[asked]).groups[0]
    if row.error_code in PASSING:
        return {}
    if row.error_code:
        raise Refused(f"offsets of the group {name}", row.error_code)
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in row.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    }


def find_coordinator(client: WireClient, name: str, kind: int = GROUP) -> int:
    """The error code of a look for a coordinator, whose topic is created by that."""
    row = client.ask("FindCoordinator", key_type=kind, coordinator_keys=[name]).coordinators[0]
    code: int = row.error_code
    return code


def commit(client: WireClient, name: str, committed: Mapping[Partition, int]) -> int:
    """Commit offsets for a group without members; NONE, or one of `PASSING` after which to ask again. Raises Refused
    for another error."""
    code = find_coordinator(client, name)
    if code in PASSING:
        return code
    request = messages.OffsetCommitRequest
    rows: dict[str, messages.OffsetCommitRequest.OffsetCommitRequestTopic] = {}
    for (topic, index), offset in committed.items():
        row = rows.setdefault(topic, request.OffsetCommitRequestTopic(name=topic))
        row.partitions.append(
            request.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
        )
    answer = client.ask("OffsetCommit", group_id=name, topics=list(rows.values()))
    for topic in answer.topics:
        for partition in topic.partitions:
            code = int(partition.error_code)
            if code in PASSING:
                return code
            if code:
                raise Refused(f"offset of {topic.name}-{partition.partition_index} for the group {name}", code)
    return errors.NONE


def transaction_state(client: WireClient, transactional_id: str) -> str:
    """The state of a transactional id, in Kafka's words (Ongoing, CompleteCommit …); empty where it is unknown."""
    row = client.ask("DescribeTransactions", transactional_ids=[transactional_id]).transaction_states[0]
    state: str = "" if row.error_code else row.transaction_state
    return state
