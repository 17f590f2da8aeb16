"""The topology of a streams group (KIP-1071): its subtopologies, and the topics that each of them reads and writes.

A subtopology has a task for every partition of its source topics. Repartition topics connect subtopologies, changelog
topics hold the state of tasks; both are internal topics, which the coordinator has created.
"""

from __future__ import annotations

from pykafkad.coordinator.assignors import text_order
from pykafkad.errors import UNKNOWN_SERVER_ERROR, KafkaError
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    Value = messages.StreamsGroupTopologyValue
    Subtopology = messages.StreamsGroupTopologyValue.Subtopology


class Topology:
    """`value` is the record. `subtopologies` are by id, in the order in which Kafka goes through them, on which the
    partition counts of some topologies depend. `source_topics` maps each source topic, repartition topics among them,
    to the id of its subtopology. `required_topics` are the topics whose changes concern the group.

    Raises `KafkaError` (UNKNOWN_SERVER_ERROR, as Kafka answers) for a negative epoch and for an id that stands twice.
    """

    __slots__ = ("epoch", "required_topics", "source_topics", "subtopologies", "value")

    def __init__(self, value: Value) -> None:
        by_id = {each.subtopology_id: each for each in value.subtopologies}
        if value.epoch < 0 or len(by_id) < len(value.subtopologies):
            raise KafkaError(UNKNOWN_SERVER_ERROR)
        self.value = value
        self.epoch = value.epoch
        self.subtopologies: dict[str, Subtopology] = {each: by_id[each] for each in text_order(by_id)}
        self.source_topics: dict[str, str] = {}
        self.required_topics: dict[str, None] = {}
        for subtopology_id, subtopology in self.subtopologies.items():
            sources = [*subtopology.source_topics, *(each.name for each in subtopology.repartition_source_topics)]
            self.source_topics.update(dict.fromkeys(sources, subtopology_id))
            self.required_topics.update(dict.fromkeys(sources))
            self.required_topics.update(dict.fromkeys(each.name for each in subtopology.state_changelog_topics))

    def __eq__(self, other: object) -> bool:
        return type(other) is Topology and (self.epoch, self.subtopologies) == (other.epoch, other.subtopologies)

    __hash__ = None  # type: ignore[assignment]


def of_request(topology: messages.StreamsGroupHeartbeatRequest.Topology) -> Topology:
    """The topology that a member brings. Raises `KafkaError`."""
    value = messages.StreamsGroupTopologyValue
    return Topology(
        value(
            epoch=topology.epoch,
            subtopologies=[
                value.Subtopology(
                    subtopology_id=each.subtopology_id,
                    source_topics=each.source_topics,
                    source_topic_regex=each.source_topic_regex,
                    repartition_sink_topics=each.repartition_sink_topics,
                    repartition_source_topics=[_topic(topic) for topic in each.repartition_source_topics],
                    state_changelog_topics=[_topic(topic) for topic in each.state_changelog_topics],
                    copartition_groups=[
                        value.CopartitionGroup(
                            source_topics=group.source_topics,
                            source_topic_regex=group.source_topic_regex,
                            repartition_source_topics=group.repartition_source_topics,
                        )
                        for group in each.copartition_groups
                    ],
                )
                for each in topology.subtopologies
            ],
        )
    )


def _topic(topic: messages.StreamsGroupHeartbeatRequest.TopicInfo) -> messages.StreamsGroupTopologyValue.TopicInfo:
    value = messages.StreamsGroupTopologyValue
    return value.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[value.TopicConfig(key=each.key, value=each.value) for each in topic.topic_configs],
    )
