"""AlterPartitionReassignments and ListPartitionReassignments: partitions move to other brokers (KIP-455).

A reassignment begins with a partition that has both its old and its new replicas. It ends, in `partition_changes.py`,
when the new replicas are in sync. Each partition of a request has its own error."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import record_codec
from pykafkad.metadata.creation import TOO_LARGE, check_replicas
from pykafkad.metadata.image import Image
from pykafkad.metadata.partition_changes import UNCLEAN, PartitionChange, unclean_elections_allowed
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.topics import PartitionState, Topic

    AskedPartition = messages.AlterPartitionReassignmentsRequest.ReassignablePartition
    AskedTopic = messages.ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics


def alter(
    image: Image, settings: Settings, request: messages.AlterPartitionReassignmentsRequest
) -> Generator[None, None, tuple[list[StoredRecord], messages.AlterPartitionReassignmentsResponse]]:
    """Returns the records and the response of a request, and yields between partitions."""
    response = messages.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
    )
    records = []
    rows = []
    for topic in request.topics:
        answered = messages.AlterPartitionReassignmentsResponse.ReassignableTopicResponse(
            name=topic.name, partitions=[]
        )
        for asked in topic.partitions:
            yield
            row = messages.AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
                partition_index=asked.partition_index, error_message=None
            )
            try:
                record = _alter_one(image, settings, topic.name, asked, request.allow_replication_factor_change)
            except KafkaError as error:
                row.error_code, row.error_message = error.code, error.text
            else:
                if record is not None:
                    records.append(record)
            answered.partitions.append(row)
            rows.append(row)
        response.responses.append(answered)
    if not record_codec.fits_one_batch(records):
        records = []
        for row in rows:
            row.error_code, row.error_message = errors.POLICY_VIOLATION, TOO_LARGE
    return records, response


def _alter_one(
    image: Image, settings: Settings, name: str, asked: AskedPartition, factor_may_change: bool
) -> StoredRecord | None:
    """The record of one partition's change. None when nothing changes. Raises `KafkaError`."""
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    state = image.partition(name, asked.partition_index)
    if state is None:
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{asked.partition_index}.")
    if asked.replicas is None:
        return _cancel(image, settings, topic, state)
    check_replicas(image, asked.replicas)
    if not factor_may_change:
        _check_factor(state, asked.replicas)
    change = PartitionChange(image, settings, topic, state)
    removing = sorted(set(state.replicas) - set(asked.replicas))
    adding = sorted(set(asked.replicas) - set(state.replicas))
    change.replicas = [*asked.replicas, *removing]
    # As in Kafka, the replicas that an earlier reassignment adds or removes stay, unless this one adds or removes some.
    change.removing = removing or change.removing
    change.adding = adding or change.adding
    return change.record()


def _check_factor(state: PartitionState, replicas: list[int]) -> None:
    """Raises `KafkaError` when the number of replicas changes without `allow_replication_factor_change` (KIP-860)."""
    present = len((set(state.replicas) | set(state.adding_replicas)) - set(state.removing_replicas))
    if present != len(replicas):
        text = f"The replication factor is changed from {present} to {len(replicas)}"
        raise KafkaError(errors.INVALID_REPLICATION_FACTOR, text)


def _cancel(image: Image, settings: Settings, topic: Topic, state: PartitionState) -> StoredRecord | None:
    """The record that cancels a reassignment: the partition gets its old replicas back. Raises `KafkaError`."""
    if not state.removing_replicas and not state.adding_replicas:
        raise KafkaError(errors.NO_REASSIGNMENT_IN_PROGRESS)
    unclean_allowed = unclean_elections_allowed(image, settings, topic)
    change = PartitionChange(image, settings, topic, state)
    change.replicas = [broker for broker in state.replicas if broker not in state.adding_replicas]
    change.isr = [broker for broker in state.isr if broker not in state.adding_replicas]
    if not change.isr:
        if not change.replicas:
            text = "Invalid replica assignment: addingReplicas contains all replicas."
            raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, text)
        if not unclean_allowed:
            text = (
                f"Unable to revert partition assignment for {topic.name}:{state.index} because it would require an "
                "unclean leader election."
            )
            raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT, text)
        change.isr = change.replicas[:1]
    change.removing, change.adding = [], []
    if unclean_allowed:
        change.election = UNCLEAN
    return change.record()


def ongoing(image: Image, topics: list[AskedTopic] | None) -> messages.ListPartitionReassignmentsResponse:
    """The response with the reassignments under way, in all topics or in the given partitions."""
    asked: list[tuple[Topic, Iterable[int]]]
    if topics is None:
        asked = [(topic, range(len(topic.partitions))) for topic in image.topics.values()]
    else:
        asked = [(image.topics[each.name], each.partition_indexes) for each in topics if each.name in image.topics]
    response = messages.ListPartitionReassignmentsResponse(error_message=None)
    for topic, indexes in asked:
        rows = [
            messages.ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
                partition_index=state.index,
                replicas=list(state.replicas),
                adding_replicas=list(state.adding_replicas),
                removing_replicas=list(state.removing_replicas),
            )
            for state in (image.partition(topic.name, index) for index in indexes)
            if state is not None and (state.adding_replicas or state.removing_replicas)
        ]
        if rows:
            row = messages.ListPartitionReassignmentsResponse.OngoingTopicReassignment(name=topic.name, partitions=rows)
            response.topics.append(row)
    return response
