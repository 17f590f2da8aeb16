"""CreateTopics and CreatePartitions in the controller: their checks, in Kafka's order, and their records.

Each topic has its own error, and does not affect the other topics of the request. The records of a topic are in Kafka's
order: topic, configs, partitions."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import configs, placement, record_codec
from pykafkad.metadata.image import TYPE_TOPIC, Image
from pykafkad.metadata.topics import CLUSTER_METADATA_TOPIC, Topic, name_problem
from pykafkad.uuids import random_uuid
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from random import Random

    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.events import MutationQuota

    CreatableTopic = messages.CreateTopicsRequest.CreatableTopic
    GrowingTopic = messages.CreatePartitionsRequest.CreatePartitionsTopic
    CreatedRow = messages.CreateTopicsResponse.CreatableTopicResult
    GrownRow = messages.CreatePartitionsResponse.CreatePartitionsTopicResult
    ConfigRow = messages.CreateTopicsResponse.CreatableTopicConfigs

MAX_PARTITIONS_PER_REQUEST = 10_000
TOO_LARGE = "Unable to perform excessively large batch operation."


class Creation:
    """The records of one CreateTopics or CreatePartitions, checked against one image. The records of a topic are added
    after all its checks have passed."""

    __slots__ = ("_described", "_left", "_mutations", "image", "random", "records", "settings")

    def __init__(
        self, image: Image, settings: Settings, random: Random, mutations: MutationQuota | None = None
    ) -> None:
        """`mutations` counts the new partitions."""
        self._mutations = mutations
        self.image = image
        self.settings = settings
        self.random = random
        self.records: list[StoredRecord] = []
        self._described: dict[tuple[tuple[str, str], ...], list[ConfigRow]] = {}
        self._left: int | None = None
        """How many more partitions there may be by `pykafkad.max.partitions`; not looked at yet."""

    # ---- topics

    def topics(
        self, topics: list[CreatableTopic], describable: frozenset[str] | None
    ) -> Generator[None, None, list[CreatedRow]]:
        """Returns the response's rows for topics with different names, and yields between topics. Raises `KafkaError`
        when the request as a whole is too large. `describable` are the topics whose settings the rows show, None for
        all."""
        self._check_total(topics)
        row = messages.CreateTopicsResponse.CreatableTopicResult
        results = []
        for topic in topics:
            try:
                result = yield from self._topic(topic, describable is None or topic.name in describable)
            except KafkaError as error:
                result = row(name=topic.name, error_code=error.code, error_message=error.text)
            results.append(result)
        self._check_records()
        return results

    def _check_total(self, topics: list[CreatableTopic]) -> None:
        """Raises `KafkaError` for too many partitions. This check comes first, so that a request for millions of
        partitions does not fill the memory."""
        total = 0
        for topic in topics:
            if topic.assignments:
                total += len(topic.assignments)
            elif topic.num_partitions == -1:
                total += self.settings.num_partitions
            elif topic.num_partitions > 0:
                total += topic.num_partitions
        if total > MAX_PARTITIONS_PER_REQUEST:
            raise KafkaError(errors.POLICY_VIOLATION, "Excessively large number of partitions per request.")

    def _check_records(self) -> None:
        if not record_codec.fits_one_batch(self.records):
            raise KafkaError(errors.POLICY_VIOLATION, TOO_LARGE)

    def _topic(self, topic: CreatableTopic, describable: bool) -> Generator[None, None, CreatedRow]:
        yield
        name = topic.name
        self._check_name(name)
        overrides = _overrides(topic)
        configs.check_topic(name, overrides, self.settings)
        assignments = self._assignments(topic)
        self._check_limit(name, 0, len(assignments))
        if self._mutations is not None:
            self._mutations.record(len(assignments))
        topic_id = random_uuid(self.random)
        result = messages.CreateTopicsResponse.CreatableTopicResult(name=name, topic_id=topic_id, error_message=None)
        if describable:
            # The topics of one request often have the same settings, and describing them costs more than all the rest.
            cache_key = tuple(sorted(overrides.items()))
            if cache_key not in self._described:
                self._described[cache_key] = configs.created_topic_configs(overrides, self.settings)
            result.configs = self._described[cache_key]
            result.num_partitions = len(assignments)
            result.replication_factor = len(assignments[0])
        else:
            result.topic_config_error_code = errors.TOPIC_AUTHORIZATION_FAILED
        append = self.records.append
        append(record_codec.record(messages.TopicRecord(name=name, topic_id=topic_id)))
        for key, value in overrides.items():
            append(configs.record(TYPE_TOPIC, name, key, value))
        if configs.MIN_INSYNC_REPLICAS in overrides:
            append(record_codec.record(messages.ClearElrRecord(topic_name=name)))
        for index, replicas in enumerate(assignments):
            append(self._partition(topic_id, index, replicas))
            yield
        return result

    def _check_limit(self, name: str, before: int, additional: int) -> None:
        """Raises `KafkaError`, as Kafka does where a policy for new topics objects. Kafka's own topics do not count, up
        to the number of partitions that the settings give them."""
        limit = self.settings.pykafkad_max_partitions
        if not limit:
            return
        row = INTERNAL.get(name)
        if row is not None and before + additional <= getattr(self.settings, row[0]):
            return
        if self._left is None:
            self._left = limit - sum(
                len(topic.partitions) for topic in self.image.topics.values() if not topic.is_internal
            )
        if additional > self._left:
            text = f"{additional} more partition(s) would be above pykafkad.max.partitions={limit}."
            raise KafkaError(errors.POLICY_VIOLATION, text)
        self._left -= additional

    def _check_name(self, name: str) -> None:
        if name in self.image.topics:
            raise KafkaError(errors.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        colliding = self.image.colliding_topic(name)
        if colliding is not None:
            raise KafkaError(
                errors.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {colliding}"
            )
        problem = name_problem(name)
        if problem is not None:
            raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, problem)
        if name == CLUSTER_METADATA_TOPIC:
            # The metadata log has the folder of this name. Every creation, also an automatic one, makes this check.
            raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, f"Creation of internal topic {name} is prohibited.")

    def _assignments(self, topic: CreatableTopic) -> list[list[int]]:
        """The replica lists of the topic's partitions, in order."""
        if topic.assignments:
            return self._manual_assignments(topic)
        replication_factor, count = topic.replication_factor, topic.num_partitions
        if replication_factor < -1 or replication_factor == 0:
            text = "Replication factor must be larger than 0, or -1 to use the default value."
            raise KafkaError(errors.INVALID_REPLICATION_FACTOR, text)
        if count < -1 or count == 0:
            raise KafkaError(
                errors.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        if count == -1:
            count = self.settings.num_partitions
        if replication_factor == -1:
            replication_factor = self.settings.default_replication_factor
        try:
            return self._place(count, replication_factor)
        except KafkaError as error:
            text = f"Unable to replicate the partition {replication_factor} time(s): {error.text}"
            raise KafkaError(error.code, text) from None

    def _manual_assignments(self, topic: CreatableTopic) -> list[list[int]]:
        if topic.replication_factor != -1:
            text = "A manual partition assignment was specified, but replication factor was not set to -1."
            raise KafkaError(errors.INVALID_REQUEST, text)
        if topic.num_partitions != -1:
            text = "A manual partition assignment was specified, but numPartitions was not set to -1."
            raise KafkaError(errors.INVALID_REQUEST, text)
        by_index: dict[int, list[int]] = {}
        replication_factor = None
        for assignment in topic.assignments:
            index, replicas = assignment.partition_index, assignment.broker_ids
            if index in by_index:
                text = f"Found multiple manual partition assignments for partition {index}"
                raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, text)
            self._check_manual(index, replicas, replication_factor)
            replication_factor = len(replicas)
            by_index[index] = replicas
        if set(by_index) != set(range(len(by_index))):
            text = "partitions should be a consecutive 0-based integer sequence"
            raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, text)
        return [by_index[index] for index in range(len(by_index))]

    def _check_manual(self, index: int, replicas: list[int], replication_factor: int | None) -> None:
        """Raises `KafkaError` for an invalid replica list of a new partition in a request. At least one broker must be
        active, and all partitions must have the same number of replicas."""
        check_replicas(self.image, replicas)
        problem = None
        if replication_factor is not None and len(replicas) != replication_factor:
            problem = (
                f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is "
                f"not consistent with previous partitions, which have {replication_factor} replica(s)."
            )
        elif not any(self.image.brokers[broker].active for broker in replicas):
            problem = (
                f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                "controlled shutdown."
            )
        if problem is not None:
            raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, problem)

    def _place(self, count: int, replication_factor: int) -> list[list[int]]:
        return placement.place(placement.usable(self.image.brokers), count, replication_factor, self.random)

    def _partition(self, topic_id: bytes, index: int, replicas: list[int]) -> StoredRecord:
        """The record of a new partition. The ISR has all active replicas, and the first of them is the leader."""
        brokers = self.image.brokers
        isr = [broker for broker in replicas if brokers[broker].active]
        return record_codec.record(
            messages.PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=isr,
                leader=isr[0],
                leader_epoch=0,
                partition_epoch=0,
                directories=[placement.directory(brokers[broker]) for broker in replicas],
            )
        )

    # ---- partitions

    def partitions(self, topics: list[GrowingTopic]) -> Generator[None, None, list[GrownRow]]:
        """Returns the response's rows for topics with different names, and yields between topics. Raises `KafkaError`
        when the request as a whole is too large."""
        row = messages.CreatePartitionsResponse.CreatePartitionsTopicResult
        results = []
        for topic in topics:
            code, text = errors.NONE, None
            try:
                yield from self._grow(topic)
            except KafkaError as error:
                code, text = error.code, error.text
            results.append(row(name=topic.name, error_code=code, error_message=text))
        self._check_records()
        return results

    def _grow(self, topic: GrowingTopic) -> Generator[None, None, None]:
        yield
        known = self.image.topics.get(topic.name)
        if known is None:
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
        start = len(known.partitions)
        if topic.count == start:
            raise KafkaError(errors.INVALID_PARTITIONS, f"Topic already has {start} partition(s).")
        if topic.count < start:
            text = f"The topic {topic.name} currently has {start} partition(s); {topic.count} would not be an increase."
            raise KafkaError(errors.INVALID_PARTITIONS, text)
        additional = topic.count - start
        new_replicas = self._new_replicas(topic, known, additional)
        self._check_limit(topic.name, start, additional)
        if self._mutations is not None:
            self._mutations.record(additional)
        for offset, replicas in enumerate(new_replicas):
            self.records.append(self._partition(known.id, start + offset, replicas))
            yield

    def _new_replicas(self, topic: GrowingTopic, known: Topic, additional: int) -> list[list[int]]:
        start = len(known.partitions)
        replication_factor = len(known.partitions[0].replicas)
        if topic.assignments is None:
            if additional > record_codec.MAX_RECORDS_PER_CHANGE:
                raise KafkaError(errors.POLICY_VIOLATION, TOO_LARGE)
            return self._place(additional, replication_factor)
        if len(topic.assignments) != additional:
            text = (
                f"Attempted to add {additional} additional partition(s), but only {len(topic.assignments)} "
                "assignment(s) were specified."
            )
            raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, text)
        for offset, assignment in enumerate(topic.assignments):
            self._check_manual(start + offset, assignment.broker_ids, replication_factor)
        return [assignment.broker_ids for assignment in topic.assignments]


def check_replicas(image: Image, replicas: list[int]) -> None:
    """Raises `KafkaError` unless a replica list in a request names registered brokers, each of them once."""
    problem = None
    if not replicas:
        problem = "The manual partition assignment includes an empty replica list."
    previous = None
    for broker in sorted(replicas):
        if broker not in image.brokers:
            problem = f"The manual partition assignment includes broker {broker}, but no such broker is registered."
        elif broker == previous:
            problem = f"The manual partition assignment includes the broker {broker} more than once."
        if problem:
            break
        previous = broker
    if problem is not None:
        raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, problem)


def _overrides(topic: CreatableTopic) -> dict[str, str]:
    """The settings of a topic in a request. Raises `KafkaError` that names all settings with null values."""
    without_value = [config.name for config in topic.configs if config.value is None]
    if without_value:
        raise KafkaError(
            errors.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(without_value)}"
        )
    return {config.name: config.value for config in topic.configs if config.value is not None}


# Internal topic: (setting with the number of partitions, setting with the replication factor, settings of the topic). A
# setting of the topic is a name, and "=" with a value or the broker setting with the value.
INTERNAL: dict[str, tuple[str, str, tuple[tuple[str, str], ...]]] = {
    "__consumer_offsets": (
        "offsets_topic_num_partitions",
        "offsets_topic_replication_factor",
        (
            ("cleanup.policy", "=compact"),
            ("compression.type", "=producer"),
            ("segment.bytes", "offsets_topic_segment_bytes"),
        ),
    ),
    "__transaction_state": (
        "transaction_state_log_num_partitions",
        "transaction_state_log_replication_factor",
        (
            ("cleanup.policy", "=compact"),
            ("compression.type", "=uncompressed"),
            ("min.insync.replicas", "transaction_state_log_min_isr"),
            ("segment.bytes", "transaction_state_log_segment_bytes"),
            ("unclean.leader.election.enable", "=false"),
        ),
    ),
    "__share_group_state": (
        "share_coordinator_state_topic_num_partitions",
        "share_coordinator_state_topic_replication_factor",
        (
            ("cleanup.policy", "=delete"),
            ("compression.type", "=producer"),
            ("min.insync.replicas", "share_coordinator_state_topic_min_isr"),
            ("retention.ms", "=-1"),
            ("segment.bytes", "share_coordinator_state_topic_segment_bytes"),
        ),
    ),
}


def automatic_topic(name: str, settings: Settings, brokers: int) -> CreatableTopic:
    """The request row for a topic that is created automatically when a client asks for it.

    An internal topic gets at most as many replicas as there are brokers. Kafka would refuse to create it instead, and
    then no group could form on a small cluster with the settings of a large one."""
    row = INTERNAL.get(name)
    if row is None:
        return messages.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    partitions, replication_factor, topic_configs = row
    setting = messages.CreateTopicsRequest.CreatableTopicConfig
    return messages.CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=getattr(settings, partitions),
        replication_factor=min(getattr(settings, replication_factor), max(brokers, 1)),
        configs=[
            setting(name=key, value=value[1:] if value[0] == "=" else str(getattr(settings, value)))
            for key, value in topic_configs
        ],
    )
