"""The log directories of brokers, and the directories of replicas (KIP-858, KIP-1066)."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.metadata import record_codec
from pykafkad.metadata.image import Image
from pykafkad.metadata.partition_changes import PartitionChange, may_lead
from pykafkad.metadata.placement import LOST_DIRECTORY, has_online_directory, names_directory
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.brokers import Broker
    from pykafkad.metadata.events import AssignReplicasToDirs, ChangeLogDirs
    from pykafkad.metadata.topics import PartitionState, Topic


def assign(image: Image, settings: Settings, event: AssignReplicasToDirs) -> list[StoredRecord]:
    """The records that set the directories of replicas. Replicas that no longer exist are ignored. One that is lost
    leads no more and leaves the ISR."""
    records = []
    for (topic_id, index), directory_id in event.replicas.items():
        topic = image.topic_by_id(topic_id)
        state = None if topic is None else image.partition(topic.name, index)
        if topic is None or state is None or event.broker_id not in state.replicas:
            continue
        if _is_last(state, event.broker_id, directory_id):
            continue
        change = PartitionChange(image, settings, topic, state)
        change.directories[event.broker_id] = directory_id
        if directory_id == LOST_DIRECTORY:
            _leave(change, image, state, event.broker_id)
        record = change.record()
        if record is not None:
            records.append(record)
    return records


def assign_requested(
    image: Image, settings: Settings, request: messages.AssignReplicasToDirsRequest
) -> tuple[list[StoredRecord], messages.AssignReplicasToDirsResponse]:
    """The records of a request of a broker in another process, and its answer. A replica in a directory that the broker
    has not registered, or that has failed, leads no more and leaves the ISR."""
    response = messages.AssignReplicasToDirsResponse
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return [], response(error_code=errors.STALE_BROKER_EPOCH)
    records: list[StoredRecord] = []
    offline: dict[tuple[str, int], tuple[Topic, PartitionState]] = {}

    def place(topic: Topic | None, index: int, directory_id: bytes) -> int:
        if topic is None:
            return errors.UNKNOWN_TOPIC_ID
        state = image.partition(topic.name, index)
        if state is None:
            return errors.UNKNOWN_TOPIC_OR_PARTITION
        if broker.id not in state.replicas:
            return errors.NOT_LEADER_OR_FOLLOWER
        if _is_last(state, broker.id, directory_id):
            return errors.NONE
        change = PartitionChange(image, settings, topic, state)
        change.directories[broker.id] = directory_id
        record = change.record()
        if record is not None:
            records.append(record)
        if not has_online_directory(broker, directory_id):
            offline[topic.name, index] = (topic, state)
        return errors.NONE

    answer = response(
        directories=[
            response.DirectoryData(
                id=directory.id,
                topics=[
                    response.TopicData(
                        topic_id=asked.topic_id,
                        partitions=[
                            response.PartitionData(
                                partition_index=row.partition_index,
                                error_code=place(image.topic_by_id(asked.topic_id), row.partition_index, directory.id),
                            )
                            for row in asked.partitions
                        ],
                    )
                    for asked in directory.topics
                ],
            )
            for directory in request.directories
        ]
    )
    for topic, state in offline.values():
        if broker.id in state.isr or broker.id == state.leader:
            left = _without(image, settings, topic, state, broker.id)
            if left is not None:
                records.append(left)
    return records, answer


def change(image: Image, settings: Settings, event: ChangeLogDirs) -> list[StoredRecord]:
    """The records of a broker whose directories failed or were cordoned. The broker no longer leads partitions whose
    replica is in a failed directory, and leaves their ISR."""
    broker = image.brokers.get(event.broker_id)
    if broker is None:
        return []
    return of_heartbeat(image, settings, broker, event.online, event.cordoned)


def of_heartbeat(
    image: Image, settings: Settings, broker: Broker, online: list[bytes] | None, cordoned: list[bytes] | None
) -> list[StoredRecord]:
    """The records for the directories that a broker has `online` and `cordoned`; None for no change."""
    registration = messages.BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    records = []
    if cordoned is not None and cordoned != broker.cordoned_log_dirs:
        registration.cordoned_log_dirs = cordoned
        records.append(record_codec.record(registration))
    if online is not None:
        if online != broker.log_dirs:
            registration.log_dirs = online
            records = [record_codec.record(registration)]
        for topic in image.topics.values():
            for state in topic.partitions:
                directory_id = dict(zip(state.replicas, state.directories, strict=False)).get(broker.id)
                if directory_id is not None and names_directory(directory_id) and directory_id not in online:
                    record = _without(image, settings, topic, state, broker.id)
                    if record is not None:
                        records.append(record)
    return records


def _without(
    image: Image, settings: Settings, topic: Topic, state: PartitionState, broker_id: int
) -> StoredRecord | None:
    """The record that takes a broker out of a partition's ISR and leadership. None when nothing changes."""
    change = PartitionChange(image, settings, topic, state)
    _leave(change, image, state, broker_id)
    return change.record()


def _leave(change: PartitionChange, image: Image, state: PartitionState, broker_id: int) -> None:
    change.isr = [replica for replica in state.isr if replica != broker_id]
    change.acceptable = lambda replica: replica != broker_id and may_lead(image, state, replica)


def _is_last(state: PartitionState, broker_id: int, directory_id: bytes) -> bool:
    """Whether a replica is lost that is alone in the ISR. It stays what it is: nobody else may lead, and its log may
    come back."""
    return directory_id == LOST_DIRECTORY and list(state.isr) == [broker_id]
