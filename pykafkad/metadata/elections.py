"""ElectLeaders in the controller (KIP-183, KIP-460), and the elections that it begins by itself.

A preferred election makes the first replica the leader. An unclean election makes a replica that is not in sync the
leader when no replica in sync is available."""

from __future__ import annotations

from pykafkad import config, errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import record_codec
from pykafkad.metadata.creation import TOO_LARGE
from pykafkad.metadata.events import MAX_ELECTIONS_PER_CHANGE
from pykafkad.metadata.image import TYPE_TOPIC, Image
from pykafkad.metadata.partition_changes import PREFERRED, UNCLEAN, PartitionChange
from pykafkad.metadata.topics import NO_LEADER
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.events import ElectLeaders

    AskedTopic = messages.ElectLeadersRequest.TopicPartitions

# Number in the request to the kind of election.
TYPES = {0: PREFERRED, 1: UNCLEAN}


def elect(
    image: Image, settings: Settings, event: ElectLeaders
) -> Generator[None, None, tuple[list[StoredRecord], messages.ElectLeadersResponse]]:
    """Returns the records and the response, and yields between partitions. A request for all partitions gets no rows
    for those that need no election."""
    topics = event.topics
    records: list[StoredRecord] = []
    response = messages.ElectLeadersResponse()
    asked: list[tuple[str, Iterable[int]]]
    if topics is None:
        asked = [(topic.name, range(len(topic.partitions))) for topic in image.topics.values()]
    else:
        asked = [(topic.topic, topic.partitions) for topic in topics]
    chosen: set[tuple[str, int]] = set()
    for name, indexes in asked:
        answered = messages.ElectLeadersResponse.ReplicaElectionResult(topic=name, partition_result=[])
        for index in indexes:
            yield
            code, text = errors.NONE, None
            try:
                record = _elect_one(image, settings, event.election, name, index)
            except KafkaError as error:
                code, text = error.code, error.text
            else:
                if (name, index) not in chosen:
                    # A partition that is named twice is elected once. Both rows see its state before the election.
                    chosen.add((name, index))
                    records.append(record)
            if topics is not None or code != errors.ELECTION_NOT_NEEDED:
                row = messages.ElectLeadersResponse.PartitionResult(
                    partition_id=index, error_code=code, error_message=text
                )
                answered.partition_result.append(row)
        response.replica_election_results.append(answered)
    if not record_codec.fits_one_batch(records):
        return [], refused(topics, errors.POLICY_VIOLATION, TOO_LARGE, event.version)
    return records, response


def _elect_one(image: Image, settings: Settings, election: str, name: str, index: int) -> StoredRecord:
    """The record of one election. Raises `KafkaError` for an election that is not possible or not needed."""
    topic = image.topics.get(name)
    if topic is None:
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    state = image.partition(name, index)
    if state is None:
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    if state.leader == state.replicas[0] if election == PREFERRED else state.leader != NO_LEADER:
        raise KafkaError(errors.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
    change = PartitionChange(image, settings, topic, state)
    change.election = election
    record = change.record()
    if record is None:
        if election == PREFERRED:
            raise KafkaError(errors.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
        raise KafkaError(errors.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available.")
    return record


def elect_by_itself(image: Image, settings: Settings, election: str) -> Generator[None, None, list[StoredRecord]]:
    """Returns the records of at most MAX_ELECTIONS_PER_CHANGE elections, and yields between topics.

    PREFERRED is for partitions that another than their first replica leads, UNCLEAN for those without a leader whose
    topic has unclean.leader.election.enable. Where the election is not possible yet, nothing changes."""
    records: list[StoredRecord] = []
    for topic in list(image.topics.values()):
        yield
        topic_settings = None
        for state in topic.partitions:
            if state.leader == state.replicas[0] if election == PREFERRED else state.leader != NO_LEADER:
                continue
            if topic_settings is None:
                topic_settings = config.topic_settings(settings, image.configs(TYPE_TOPIC, topic.name))
            if election == UNCLEAN and not topic_settings.unclean_leader_election_enable:
                break
            change = PartitionChange(image, settings, topic, state, topic_settings)
            change.election = election
            record = change.record()
            if record is not None:
                records.append(record)
                if len(records) == MAX_ELECTIONS_PER_CHANGE:
                    return records
    return records


def refused(
    topics: list[AskedTopic] | None, code: int, text: str | None, version: int
) -> messages.ElectLeadersResponse:
    """The response to a request that is refused as a whole. Every partition in it has the error. From version 1 the
    response itself has it too."""
    rows = [
        messages.ElectLeadersResponse.ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                messages.ElectLeadersResponse.PartitionResult(partition_id=index, error_code=code, error_message=text)
                for index in topic.partitions
            ],
        )
        for topic in topics or ()
    ]
    return messages.ElectLeadersResponse(
        error_code=code if version >= 1 else errors.NONE, replica_election_results=rows
    )
