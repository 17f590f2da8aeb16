"""AlterPartition in the controller (KIP-497, KIP-841, KIP-903): the leader of partitions proposes other ISRs.

A proposal is compared with the leader epoch and the partition epoch that the leader knew, and takes none into the ISR
who is fenced, about to stop, or in another life than the leader knows. A proposal may complete a reassignment; if that
moves the leadership, the answer is NEW_LEADER_ELECTED although the change is made, as in Kafka."""

from __future__ import annotations

from pykafkad import config, errors
from pykafkad.metadata.image import TYPE_TOPIC, Image
from pykafkad.metadata.partition_changes import ONLINE, RECOVERED, RECOVERING, UNCLEAN, PartitionChange
from pykafkad.metadata.topics import NO_LEADER_CHANGE
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.config import Settings
    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.events import AlterPartition
    from pykafkad.metadata.topics import PartitionState, Topic

    Asked = messages.AlterPartitionRequest.PartitionData
    Row = messages.AlterPartitionResponse.PartitionData

_ISR_WITH_EPOCHS_SINCE = 3
_UNKNOWN = -1


def alter(
    image: Image, settings: Settings, event: AlterPartition
) -> tuple[list[StoredRecord], messages.AlterPartitionResponse]:
    """The records and the response."""
    request = event.request
    response = messages.AlterPartitionResponse(topics=[])
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        response.error_code = errors.STALE_BROKER_EPOCH
        return [], response
    records: list[StoredRecord] = []
    for asked in request.topics:
        rows: list[Row] = []
        topic = image.topic_by_id(asked.topic_id)
        for data in asked.partitions:
            row, record = _alter_one(image, settings, event, topic, data)
            rows.append(row)
            if record is not None:
                records.append(record)
        response.topics.append(messages.AlterPartitionResponse.TopicData(topic_id=asked.topic_id, partitions=rows))
    return records, response


def _alter_one(
    image: Image, settings: Settings, event: AlterPartition, topic: Topic | None, asked: Asked
) -> tuple[Row, StoredRecord | None]:
    row = messages.AlterPartitionResponse.PartitionData(partition_index=asked.partition_index)
    if topic is None:
        row.error_code = errors.UNKNOWN_TOPIC_ID
        return row, None
    known = 0 <= asked.partition_index < len(topic.partitions)
    state = topic.partitions[asked.partition_index] if known else None
    isr = _isr(event, asked)
    row.error_code = _problem(image, event.request.broker_id, state, asked, isr)
    if row.error_code or state is None:
        return row, None
    topic_settings = config.topic_settings(settings, image.configs(TYPE_TOPIC, topic.name))
    change = PartitionChange(image, settings, topic, state, topic_settings)
    change.isr = list(isr)
    change.election = UNCLEAN if topic_settings.unclean_leader_election_enable else ONLINE
    change.recovered = asked.leader_recovery_state == RECOVERED
    record = change.record()
    row.leader_id, row.leader_epoch, row.isr = state.leader, state.leader_epoch, list(state.isr)
    row.leader_recovery_state, row.partition_epoch = state.leader_recovery_state, state.partition_epoch
    if record is not None:
        made: Any = record.value
        if made.leader != NO_LEADER_CHANGE:
            row.leader_id, row.leader_epoch = made.leader, state.leader_epoch + 1
        if made.isr is not None:
            row.isr = list(made.isr)
        if made.leader_recovery_state != -1:
            row.leader_recovery_state = made.leader_recovery_state
        row.partition_epoch += 1
        if row.leader_id != event.request.broker_id:
            row = messages.AlterPartitionResponse.PartitionData(
                partition_index=asked.partition_index, error_code=errors.NEW_LEADER_ELECTED
            )
    return row, record


def _isr(event: AlterPartition, asked: Asked) -> dict[int, int]:
    """The proposed ISR: broker id to the epoch that the leader knows, -1 for no check."""
    if event.version >= _ISR_WITH_EPOCHS_SINCE:
        return {each.broker_id: each.broker_epoch for each in asked.new_isr_with_epochs}
    return dict.fromkeys(asked.new_isr, _UNKNOWN)


def _problem(image: Image, broker_id: int, state: PartitionState | None, asked: Asked, isr: dict[int, int]) -> int:
    """The error of a proposal, in the order in which Kafka looks; NONE for one that is taken."""
    if state is None:
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    if asked.leader_epoch > state.leader_epoch or asked.partition_epoch > state.partition_epoch:
        # The leader knows more than this controller, which may be one no longer.
        return errors.NOT_CONTROLLER
    if asked.leader_epoch < state.leader_epoch:
        return errors.FENCED_LEADER_EPOCH
    if broker_id != state.leader:
        return errors.INVALID_REQUEST
    if asked.partition_epoch < state.partition_epoch:
        return errors.INVALID_UPDATE_VERSION
    is_recovering = asked.leader_recovery_state == RECOVERING
    if (
        not isr.keys() <= set(state.replicas)
        or len(isr) != len(asked.new_isr_with_epochs or asked.new_isr)
        or state.leader not in isr
        or (is_recovering and (len(isr) > 1 or state.leader_recovery_state == RECOVERED))
    ):
        return errors.INVALID_REQUEST
    for member, epoch in isr.items():
        broker = image.brokers.get(member)
        if broker is None or not broker.active or epoch not in (_UNKNOWN, broker.epoch):
            return errors.INELIGIBLE_REPLICA
    return errors.NONE
