"""The description of a streams group, as StreamsGroupDescribe shows it (KIP-1071)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.streams_group import StreamsGroup
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.streams_member import StreamsMember, Target, Tasks
    from pykafkad.coordinator.streams_topics import ConfiguredTopology, InternalTopic
    from pykafkad.coordinator.streams_topology import Topology

Group = messages.StreamsGroupDescribeResponse.DescribedGroup
_Topology = messages.StreamsGroupDescribeResponse.Topology
_Subtopology = messages.StreamsGroupDescribeResponse.Subtopology
_TopicInfo = messages.StreamsGroupDescribeResponse.TopicInfo
_KeyValue = messages.StreamsGroupDescribeResponse.KeyValue
_Member = messages.StreamsGroupDescribeResponse.Member
_Endpoint = messages.StreamsGroupDescribeResponse.Endpoint
_Assignment = messages.StreamsGroupDescribeResponse.Assignment
_TaskIds = messages.StreamsGroupDescribeResponse.TaskIds


def describe(shard: GroupShard, group_id: str) -> Group:
    """The row of a group. Its error is GROUP_ID_NOT_FOUND when there is no streams group with the id."""
    group = shard.groups.get(group_id)
    if not isinstance(group, StreamsGroup):
        text = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a streams group."
        return Group(group_id=group_id, error_code=errors.GROUP_ID_NOT_FOUND, error_message=text)
    return Group(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        topology=_topology(group),
        members=[_member(member, group.targets.get(member.member_id)) for member in group.members.values()],
    )


def _topology(group: StreamsGroup) -> _Topology | None:
    """The topology with the numbers of partitions that internal topics have, once all topics are there; else as the
    members brought it."""
    if group.configured is not None and group.configured.is_ready:
        return _configured(group.configured)
    return None if group.topology is None else _brought(group.topology)


def _configured(topology: ConfiguredTopology) -> _Topology:
    return _Topology(
        epoch=topology.epoch,
        subtopologies=[
            _Subtopology(
                subtopology_id=subtopology_id,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.sink_topics),
                repartition_source_topics=_internal(each.repartition_sources),
                state_changelog_topics=_internal(each.changelogs),
            )
            for subtopology_id, each in topology.subtopologies.items()
        ],
    )


def _internal(topics: Mapping[str, InternalTopic]) -> list[_TopicInfo]:
    return [
        _TopicInfo(
            name=name,
            partitions=topic.partition_count,
            replication_factor=topic.replication_factor,
            topic_configs=[_KeyValue(key=key, value=value) for key, value in topic.configs.items()],
        )
        for name, topic in sorted(topics.items())
    ]


def _brought(topology: Topology) -> _Topology:
    return _Topology(
        epoch=topology.epoch,
        subtopologies=[
            _Subtopology(
                subtopology_id=subtopology_id,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.repartition_sink_topics),
                repartition_source_topics=_infos(each.repartition_source_topics),
                state_changelog_topics=_infos(each.state_changelog_topics),
            )
            for subtopology_id, each in sorted(topology.subtopologies.items())
        ],
    )


def _infos(topics: Iterable[messages.StreamsGroupTopologyValue.TopicInfo]) -> list[_TopicInfo]:
    return [
        _TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[_KeyValue(key=each.key, value=each.value) for each in topic.topic_configs],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(member: StreamsMember, target: Target | None) -> _Member:
    endpoint = member.endpoint
    return _Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else _Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[_KeyValue(key=key, value=value) for key, value in member.client_tags.items()],
        assignment=_assignment(member.assigned),
        target_assignment=_Assignment() if target is None else _assignment(target),
    )


def _assignment(tasks: Tasks | Target) -> _Assignment:
    return _Assignment(
        active_tasks=_rows(tasks.active), standby_tasks=_rows(tasks.standby), warmup_tasks=_rows(tasks.warmup)
    )


def _rows(tasks: Mapping[str, Iterable[int]]) -> list[_TaskIds]:
    return [_TaskIds(subtopology_id=each, partitions=sorted(numbers)) for each, numbers in sorted(tasks.items())]
