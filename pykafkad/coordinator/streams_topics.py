"""The topics of a streams group's topology, held against the topics that exist (KIP-1071).

`configure` decides how many partitions each internal topic has and how many tasks each subtopology, and finds what is
missing or has the wrong number of partitions. The order of its checks is Kafka's.
"""

from __future__ import annotations

from pykafkad.coordinator.assignors import text_order
from pykafkad.errors import STREAMS_INVALID_TOPOLOGY, UNKNOWN_SERVER_ERROR, KafkaError
from pykafkad.wire import messages

STALE_TOPOLOGY = 0
MISSING_SOURCE_TOPICS = 1
INCORRECTLY_PARTITIONED_TOPICS = 2
MISSING_INTERNAL_TOPICS = 3
SHUTDOWN_APPLICATION = 4
ASSIGNMENT_DELAYED = 5
"""The codes of the statuses in the answers to heartbeats."""

TOPICS_NAMED = 3
"""How many topics a status names. It counts the others."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pykafkad.coordinator.group_types import ClusterView
    from pykafkad.coordinator.streams_topology import Topology

    Subtopology = messages.StreamsGroupTopologyValue.Subtopology
    TopicInfo = messages.StreamsGroupTopologyValue.TopicInfo
    CreatableTopic = messages.CreateTopicsRequest.CreatableTopic
    Status = tuple[int, str]
    """The code of a status and its text."""


class InternalTopic:
    """A repartition or changelog topic with its partition count. A `replication_factor` of 0 is the broker's."""

    __slots__ = ("configs", "name", "partition_count", "replication_factor")

    def __init__(self, name: str, partition_count: int, replication_factor: int, configs: dict[str, str]) -> None:
        self.name = name
        self.partition_count = partition_count
        self.replication_factor = replication_factor
        self.configs = configs

    def creatable(self) -> CreatableTopic:
        """The row of a CreateTopics request for the topic."""
        cls = messages.CreateTopicsRequest
        return cls.CreatableTopic(
            name=self.name,
            num_partitions=self.partition_count,
            replication_factor=self.replication_factor or -1,
            configs=[cls.CreatableTopicConfig(name=name, value=value) for name, value in self.configs.items()],
        )


class ConfiguredSubtopology:
    """A subtopology with its number of tasks. `source_topics` are those that are no repartition topics."""

    __slots__ = ("changelogs", "repartition_sources", "sink_topics", "source_topics", "task_count")

    def __init__(
        self,
        subtopology: Subtopology,
        task_count: int,
        repartition_sources: dict[str, InternalTopic],
        changelogs: dict[str, InternalTopic],
    ) -> None:
        self.task_count = task_count
        self.source_topics = dict.fromkeys(subtopology.source_topics)
        self.sink_topics = dict.fromkeys(subtopology.repartition_sink_topics)
        self.repartition_sources = repartition_sources
        self.changelogs = changelogs


class ConfiguredTopology:
    """A topology with the numbers of its tasks. `status` says what is wrong with its topics; None when it can be
    assigned. `subtopologies` are sorted by id, and empty when the numbers could not be decided. `missing` are the
    internal topics to create."""

    __slots__ = ("epoch", "missing", "status", "subtopologies")

    def __init__(
        self,
        epoch: int,
        subtopologies: dict[str, ConfiguredSubtopology],
        missing: list[InternalTopic],
        status: Status | None,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies
        self.missing = missing
        self.status = status

    @property
    def is_ready(self) -> bool:
        """Whether tasks can be assigned."""
        return self.status is None


class _Fault(Exception):
    """What is wrong with the topics: code and text of a status."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.status: Status = (code, text)


def configure(topology: Topology, metadata: ClusterView) -> ConfiguredTopology:
    """The topology with what follows from the topics that exist. Raises `KafkaError` (STREAMS_INVALID_TOPOLOGY) for a
    topology whose numbers cannot be decided at all, and UNKNOWN_SERVER_ERROR, as Kafka does, where it contradicts
    itself."""
    configuring = _Configuring(topology, metadata)
    try:
        subtopologies, missing = configuring.run()
    except _Fault as fault:
        return ConfiguredTopology(topology.epoch, {}, [], fault.status)
    status = None
    if missing:
        named = _summary([each.name for each in missing])
        status = MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {named}"
    return ConfiguredTopology(topology.epoch, subtopologies, missing, status)


def _summary(names: Collection[str]) -> str:
    text = ", ".join(list(names)[:TOPICS_NAMED])
    more = len(names) - TOPICS_NAMED
    return f"{text} and {more} additional topics" if more > 0 else text


def _java_map(counts: dict[str, int]) -> str:
    """The text of a sorted Java map."""
    return "{" + ", ".join(f"{name}={counts[name]}" for name in sorted(counts)) + "}"


class _Configuring:
    """`configure` under way. `decided` are the partition counts of internal topics."""

    __slots__ = ("_decided", "_metadata", "_topology")

    def __init__(self, topology: Topology, metadata: ClusterView) -> None:
        self._topology = topology
        self._metadata = metadata
        self._decided: dict[str, int] = {}

    def run(self) -> tuple[dict[str, ConfiguredSubtopology], list[InternalTopic]]:
        """The subtopologies by id, and the internal topics that do not exist. Raises `_Fault` and `KafkaError`."""
        subtopologies = self._topology.subtopologies
        groups = [group for each in subtopologies.values() for group in _copartition_groups(each)]
        self._check_sources()
        self._decided = self._repartition_counts()
        self._enforce(groups)
        self._decided.update(self._changelog_counts())
        configured = {each: self._configured(subtopologies[each]) for each in sorted(subtopologies)}
        return configured, self._missing(configured)

    def _existing(self, name: str) -> int | None:
        topic = self._metadata.topics.get(name)
        return None if topic is None else len(topic.partitions)

    def _count(self, name: str) -> int:
        """The number of partitions of a topic that exists or was decided on."""
        found = self._existing(name)
        found = self._decided.get(name) if found is None else found
        if found is None:
            raise KafkaError(UNKNOWN_SERVER_ERROR)
        return found

    def _check_sources(self) -> None:
        missing = {
            name
            for subtopology in self._topology.subtopologies.values()
            for name in subtopology.source_topics
            if name not in self._metadata.topics
        }
        if missing:
            raise _Fault(MISSING_SOURCE_TOPICS, f"Source topics {_summary(sorted(missing))} are missing.")

    # Repartition topics.

    def _repartition_counts(self) -> dict[str, int]:
        """The partition counts of repartition topics: their own, or as many as the subtopology has that writes them."""
        subtopologies = self._topology.subtopologies.values()
        counts = {
            topic.name: topic.partitions
            for each in subtopologies
            for topic in each.repartition_source_topics
            if topic.partitions
        }
        is_complete = False
        while not is_complete:
            is_complete, progress = True, False
            for each in subtopologies:
                for sink in each.repartition_sink_topics:
                    if sink not in counts:
                        count = self._largest_source(each, counts)
                        if count is None:
                            is_complete = False
                        else:
                            counts[sink], progress = count, True
            if not is_complete and not progress:
                raise KafkaError(
                    STREAMS_INVALID_TOPOLOGY,
                    "Failed to compute number of partitions for all repartition topics. "
                    "There may be loops in the topology that cannot be resolved.",
                )
        if any(topic.name not in counts for each in subtopologies for topic in each.repartition_source_topics):
            raise KafkaError(
                STREAMS_INVALID_TOPOLOGY,
                "Failed to compute number of partitions for all repartition topics, because "
                "a repartition source topic is never used as a sink topic.",
            )
        return counts

    def _largest_source(self, subtopology: Subtopology, counts: dict[str, int]) -> int | None:
        """The most partitions of a subtopology's sources, as far as they are known yet."""
        found = [counts.get(topic.name) for topic in subtopology.repartition_source_topics]
        found += [self._existing(name) for name in subtopology.source_topics]
        return max((count for count in found if count is not None), default=None)

    # Topics that must have the same number of partitions.

    def _enforce(self, groups: list[list[str]]) -> None:
        infos = [topic for each in self._topology.subtopologies.values() for topic in each.repartition_source_topics]
        fixed = [topic.name for topic in infos if topic.partitions]
        flexible = [topic.name for topic in infos if not topic.partitions]
        for group in groups:
            if group:
                self._decided.update(self._coerced(group, fixed, flexible))

    def _coerced(self, group: list[str], fixed: list[str], flexible: list[str]) -> dict[str, int]:
        """The repartition topics of a group with the partition count of the group."""
        internal = {name: self._count(name) for name in group if name in fixed or name in flexible}
        external = {name: self._count(name) for name in group if name not in internal}
        if external:
            wanted = self._same(external.values(), external)
        elif fixed:
            wanted = self._same((self._count(name) for name in fixed), internal)
        else:
            wanted = max(internal.values())
        for name in text_order(internal):
            if name in fixed and internal[name] != wanted:
                raise _Fault(
                    INCORRECTLY_PARTITIONED_TOPICS,
                    f"Number of partitions [{internal[name]}] of repartition topic [{name}] "
                    f"doesn't match number of partitions [{wanted}] of the source topic.",
                )
        return dict.fromkeys(internal, wanted)

    @staticmethod
    def _same(counts: Iterable[int], named: dict[str, int]) -> int:
        distinct = set(counts)
        if len(distinct) > 1:
            raise _Fault(
                INCORRECTLY_PARTITIONED_TOPICS,
                f"Following topics do not have the same number of partitions: [{_java_map(named)}]",
            )
        return distinct.pop()

    # Changelog topics and tasks.

    def _source_counts(self, subtopology: Subtopology) -> list[int]:
        names = [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]
        return [self._count(name) for name in names]

    def _changelog_counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for subtopology_id, subtopology in self._topology.subtopologies.items():
            sources = self._source_counts(subtopology)
            if not sources:
                raise KafkaError(STREAMS_INVALID_TOPOLOGY, f"No source topics found for subtopology {subtopology_id}")
            counts.update(dict.fromkeys((topic.name for topic in subtopology.state_changelog_topics), max(sources)))
        return counts

    def _configured(self, subtopology: Subtopology) -> ConfiguredSubtopology:
        task_count = max(self._source_counts(subtopology))
        if task_count <= 0:
            raise KafkaError(UNKNOWN_SERVER_ERROR)
        return ConfiguredSubtopology(
            subtopology,
            task_count,
            self._internal(subtopology.repartition_source_topics),
            self._internal(subtopology.state_changelog_topics),
        )

    def _internal(self, infos: list[TopicInfo]) -> dict[str, InternalTopic]:
        topics = {}
        for info in infos:
            count = info.partitions or self._decided[info.name]
            configs = {each.key: each.value for each in info.topic_configs}
            if info.name in topics or count < 1 or len(configs) < len(info.topic_configs):
                raise KafkaError(UNKNOWN_SERVER_ERROR)
            topics[info.name] = InternalTopic(
                info.name, count, info.replication_factor, {each: configs[each] for each in text_order(configs)}
            )
        return {each: topics[each] for each in text_order(topics)}

    def _missing(self, configured: dict[str, ConfiguredSubtopology]) -> list[InternalTopic]:
        """The internal topics to create, in the order in which Kafka names them."""
        wanted: dict[str, InternalTopic] = {}
        for subtopology in configured.values():
            wanted.update(subtopology.repartition_sources)
            wanted.update(subtopology.changelogs)
        for name in text_order(self._topology.required_topics):
            found = self._existing(name)
            if name in wanted and found is not None and found != wanted[name].partition_count:
                raise _Fault(
                    INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {name} has different number of partitions: "
                    f"expected {wanted[name].partition_count}, found {found}",
                )
        return [wanted[name] for name in text_order(wanted) if self._existing(name) is None]


def _copartition_groups(subtopology: Subtopology) -> list[list[str]]:
    """The topics of each co-partition group. Raises `KafkaError` (UNKNOWN_SERVER_ERROR, as Kafka answers) for the
    number of a topic that is not there."""
    groups = []
    for group in subtopology.copartition_groups:
        indexes = (
            (group.source_topics, subtopology.source_topics),
            (group.repartition_source_topics, [topic.name for topic in subtopology.repartition_source_topics]),
        )
        names: dict[str, None] = {}
        for numbers, topics in indexes:
            if any(not 0 <= number < len(topics) for number in numbers):
                raise KafkaError(UNKNOWN_SERVER_ERROR)
            names.update(dict.fromkeys(topics[number] for number in numbers))
        groups.append(list(names))
    return groups
