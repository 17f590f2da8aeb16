"""The log directories of brokers, and the directories of replicas (KIP-858, KIP-1066)."""

from __future__ import annotations

from pykafkad.metadata import record_codec
from pykafkad.metadata.image import Image
from pykafkad.metadata.partition_changes import PartitionChange, may_lead
from pykafkad.metadata.placement import names_directory
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.events import AssignReplicasToDirs, ChangeLogDirs
    from pykafkad.metadata.topics import PartitionState, Topic


def assign(image: Image, settings: Settings, event: AssignReplicasToDirs) -> list[StoredRecord]:
    """The records that set the directories of replicas. Replicas that no longer exist are ignored."""
    records = []
    for (topic_id, index), directory_id in event.replicas.items():
        topic = image.topic_by_id(topic_id)
        state = None if topic is None else image.partition(topic.name, index)
        if topic is None or state is None or event.broker_id not in state.replicas:
            continue
        change = PartitionChange(image, settings, topic, state)
        change.directories[event.broker_id] = directory_id
        record = change.record()
        if record is not None:
            records.append(record)
    return records


def change(image: Image, settings: Settings, event: ChangeLogDirs) -> list[StoredRecord]:
    """The records of a broker whose directories failed or were cordoned. The broker no longer leads partitions whose
    replica is in a failed directory, and leaves their ISR."""
    broker = image.brokers.get(event.broker_id)
    if broker is None:
        return []
    registration = messages.BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    records = []
    if event.cordoned is not None and event.cordoned != broker.cordoned_log_dirs:
        registration.cordoned_log_dirs = event.cordoned
        records.append(record_codec.record(registration))
    if event.online is not None:
        if event.online != broker.log_dirs:
            registration.log_dirs = event.online
            records = [record_codec.record(registration)]
        for topic in image.topics.values():
            for state in topic.partitions:
                directory_id = dict(zip(state.replicas, state.directories, strict=False)).get(broker.id)
                if directory_id is not None and names_directory(directory_id) and directory_id not in event.online:
                    record = _without(image, settings, topic, state, broker.id)
                    if record is not None:
                        records.append(record)
    return records


def _without(
    image: Image, settings: Settings, topic: Topic, state: PartitionState, broker_id: int
) -> StoredRecord | None:
    """The record that takes a broker out of a partition's ISR and leadership. None when nothing changes."""
    change = PartitionChange(image, settings, topic, state)
    change.isr = [replica for replica in state.isr if replica != broker_id]
    change.acceptable = lambda replica: replica != broker_id and may_lead(image, state, replica)
    return change.record()
