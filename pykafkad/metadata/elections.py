"""ElectLeaders (KIP-183, KIP-460): the first replica leads again, or, when nobody in sync is left, one that is not."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import record_codec
from pykafkad.metadata.creation import TOO_LARGE
from pykafkad.metadata.image import Image
from pykafkad.metadata.partition_changes import PREFERRED, UNCLEAN, PartitionChange
from pykafkad.metadata.topics import NO_LEADER
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.config import Settings

# The request's number to the kind of election.
TYPES = {0: PREFERRED, 1: UNCLEAN}


def elect(image: Image, settings: Settings, event: object) -> Generator:
    """Returns (records, ElectLeadersResponse) for `events.ElectLeaders`, and yields between partitions. Of all
    partitions those that need nothing are left out."""
    topics = event.topics
    records: list[object] = []
    response = messages.ElectLeadersResponse()
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
                    # Asked for twice in one request it is elected once: both rows see the partition as it was.
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


def _elect_one(image: Image, settings: Settings, election: int, name: str, index: int) -> object:
    """The record of one election. Raises `KafkaError` for what cannot or need not be."""
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


def refused(topics: list[object] | None, code: int, text: str | None, version: int) -> object:
    """The answer to a request that is wrong as a whole: every partition that it names has the error, from version 1 on
    the answer itself too."""
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
