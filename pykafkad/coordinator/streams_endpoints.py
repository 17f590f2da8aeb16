"""Which topic partitions the members of a streams group have, by the endpoints of their applications (KIP-1071). With
it an application finds the instance that answers a query."""

from __future__ import annotations

from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pykafkad.coordinator.group_types import ClusterView
    from pykafkad.coordinator.streams_group import StreamsGroup
    from pykafkad.coordinator.streams_member import StreamsMember
    from pykafkad.coordinator.streams_topics import ConfiguredTopology

    Row = messages.StreamsGroupHeartbeatResponse.EndpointToPartitions
    TopicPartition = messages.StreamsGroupHeartbeatResponse.TopicPartition


def partitions(
    group: StreamsGroup, updated: StreamsMember, configured: ConfiguredTopology, metadata: ClusterView
) -> list[Row]:
    """A row for each member with an endpoint; the member that asks comes last."""
    others = [member for member_id, member in group.members.items() if member_id != updated.member_id]
    return [_row(member, configured, metadata) for member in [*others, updated] if member.endpoint is not None]


def _row(member: StreamsMember, configured: ConfiguredTopology, metadata: ClusterView) -> Row:
    cls = messages.StreamsGroupHeartbeatResponse
    assert member.endpoint is not None
    host, port = member.endpoint
    return cls.EndpointToPartitions(
        user_endpoint=cls.Endpoint(host=host, port=port),
        active_partitions=_partitions(member.assigned.active, configured, metadata),
        standby_partitions=_partitions(member.assigned.standby, configured, metadata),
    )


def _partitions(
    tasks: Mapping[str, Iterable[int]], configured: ConfiguredTopology, metadata: ClusterView
) -> list[TopicPartition]:
    """The partitions of the source topics of tasks. A topic can have fewer partitions than its subtopology has tasks,
    and topics that are gone have none. (Kafka 4.3.1 names partitions that do not exist, KAFKA-20885, and fails when the
    topics are gone.)"""
    rows = []
    for subtopology_id, numbers in sorted(tasks.items()):
        subtopology = configured.subtopologies.get(subtopology_id)
        names = () if subtopology is None else {*subtopology.source_topics, *subtopology.repartition_sources}
        for name in sorted(names):
            topic = metadata.topics.get(name)
            count = 0 if topic is None else len(topic.partitions)
            found = [number for number in sorted(numbers) if number < count]
            if found:
                rows.append(messages.StreamsGroupHeartbeatResponse.TopicPartition(topic=name, partitions=found))
    return rows
