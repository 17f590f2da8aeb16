"""Setting and deleting the start offsets of a share group that has no members, and deleting the group (KIP-932). All
ask the share coordinator; the request is answered when that has answered."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator import share_group_records
from pykafkad.coordinator.share_group import ShareGroup
from pykafkad.coordinator.share_group_events import GroupStateDeleted, StateDeleted, StateInitialized
from pykafkad.coordinator.share_heartbeat import initializing_record, merged, share_group, without
from pykafkad.effects import DELETE_STATE, INITIALIZE_STATE, AskShareState
from pykafkad.errors import KafkaError
from pykafkad.wire import messages

NOTHING_TO_DELETE = "There is no offset information to delete."

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.coordinator.events import DeleteGroup
    from pykafkad.coordinator.shard import GroupShard
    from pykafkad.coordinator.share_group import Topics
    from pykafkad.coordinator.share_group_events import AlterOffsets, DeleteOffsets
    from pykafkad.coordinator.step import Step

_AlteredTopic = messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
_AlteredPartition = messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition
_DeletedTopic = messages.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


def alter(shard: GroupShard, step: Step, event: AlterOffsets) -> None:
    """Set start offsets. A group that does not exist is made."""
    request = event.request
    known = shard.groups.get(request.group_id)
    try:
        if known is not None and not isinstance(known, ShareGroup):
            raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a share group.")
        group = known or ShareGroup(request.group_id)
        if group.members:
            raise KafkaError(errors.NON_EMPTY_GROUP, errors.message(errors.NON_EMPTY_GROUP))
    except KafkaError as error:
        answer = messages.AlterShareGroupOffsetsResponse(error_code=error.code, error_message=error.text)
        step.reply(event.token, answer)
        return
    assert shard.metadata is not None
    response = messages.AlterShareGroupOffsetsResponse()
    offsets: dict[bytes, dict[int, int]] = {}
    news: Topics = {}
    for topic in request.topics:
        found = shard.metadata.topics.get(topic.topic_name)
        count = 0 if found is None else len(found.partitions)
        row = _AlteredTopic(topic_name=topic.topic_name, topic_id=bytes(16) if found is None else found.id)
        response.responses.append(row)
        for asked in topic.partitions:
            is_known = 0 <= asked.partition_index < count
            code = errors.NONE if is_known else errors.UNKNOWN_TOPIC_OR_PARTITION
            text = None if is_known else errors.message(code)
            row.partitions.append(
                _AlteredPartition(partition_index=asked.partition_index, error_code=code, error_message=text)
            )
            if found is not None and is_known:
                offsets.setdefault(found.id, {})[asked.partition_index] = asked.start_offset
        if found is not None and found.id in offsets:
            news[found.id] = topic.topic_name, frozenset(offsets[found.id])
    if not offsets:
        step.reply(event.token, response)
        return
    shard.groups[group.group_id] = group
    step.append([initializing_record(group, news)])
    wanted = {topic_id: frozenset(partitions) for topic_id, partitions in offsets.items()}
    step.effects.append(
        AskShareState(
            INITIALIZE_STATE,
            group.group_id,
            offsets,
            group.epoch,
            lambda failures: StateInitialized(group.group_id, wanted, failures, event.token, response),
        )
    )


def initialized(shard: GroupShard, step: Step, event: StateInitialized) -> None:
    """The share coordinator has begun the delivery state of partitions, or could not."""
    group = shard.groups.get(event.group_id)
    if isinstance(group, ShareGroup) and shard.metadata is not None:
        done: Topics = {}
        for topic_id, partitions in event.partitions.items():
            topic = shard.metadata.topic_by_id(topic_id)
            good = frozenset(each for each in partitions if (topic_id, each) not in event.failures)
            if topic is not None and good:
                done[topic_id] = topic.name, good
        record = share_group_records.partition_states(
            group.group_id,
            without(group.initializing, event.partitions),
            merged(group.initialized, done),
            group.deleting,
        )
        step.append([record])
    if event.token is not None:
        response: messages.AlterShareGroupOffsetsResponse = event.response  # type: ignore[assignment]
        for row in response.responses:
            for partition in row.partitions:
                failure = event.failures.get((row.topic_id, partition.partition_index))
                if failure is not None:
                    partition.error_code, partition.error_message = failure
        step.reply(event.token, response)


def delete(shard: GroupShard, step: Step, event: DeleteOffsets) -> None:
    """Delete the delivery state of topics."""
    request = event.request
    try:
        group = share_group(shard, request.group_id)
        if group.members:
            raise KafkaError(errors.NON_EMPTY_GROUP, errors.message(errors.NON_EMPTY_GROUP))
    except KafkaError as error:
        answer = messages.DeleteShareGroupOffsetsResponse(error_code=error.code, error_message=error.text)
        step.reply(event.token, answer)
        return
    assert shard.metadata is not None
    response = messages.DeleteShareGroupOffsetsResponse()
    kept, deleting = dict(group.initialized), dict(group.deleting)
    gone: dict[bytes, frozenset[int]] = {}
    for asked in request.topics:
        topic = shard.metadata.topics.get(asked.topic_name)
        if topic is not None and topic.id in kept:
            gone[topic.id] = kept.pop(topic.id)[1]
            deleting[topic.id] = topic.name
        elif topic is not None and topic.id in deleting:
            gone[topic.id] = frozenset(range(len(topic.partitions)))
        else:
            code = errors.UNKNOWN_TOPIC_OR_PARTITION
            text = errors.message(code) if topic is None else NOTHING_TO_DELETE
            response.responses.append(
                _DeletedTopic(topic_name=asked.topic_name, topic_id=bytes(16), error_code=code, error_message=text)
            )
    if not gone:
        step.reply(event.token, response)
        return
    step.append([share_group_records.partition_states(group.group_id, group.initializing, kept, deleting)])
    step.effects.append(
        AskShareState(
            DELETE_STATE,
            group.group_id,
            {topic_id: dict.fromkeys(partitions, -1) for topic_id, partitions in gone.items()},
            group.epoch,
            lambda failures: StateDeleted(group.group_id, gone, failures, event.token, response),
        )
    )


def deleted(shard: GroupShard, step: Step, event: StateDeleted) -> None:
    """The share coordinator has deleted the delivery state of topics, or could not."""
    group = shard.groups.get(event.group_id)
    failed = {topic_id: failure for (topic_id, _), failure in event.failures.items()}
    response: messages.DeleteShareGroupOffsetsResponse = event.response  # type: ignore[assignment]
    if isinstance(group, ShareGroup) and shard.metadata is not None:
        left = {each: name for each, name in group.deleting.items() if each not in event.partitions or each in failed}
        step.append([share_group_records.partition_states(group.group_id, group.initializing, group.initialized, left)])
        for topic_id in event.partitions:
            name = group.deleting.get(topic_id, "")
            code, text = failed.get(topic_id, (errors.NONE, None))
            response.responses.append(
                _DeletedTopic(topic_name=name, topic_id=topic_id, error_code=code, error_message=text)
            )
    step.reply(event.token, response)


def delete_group(shard: GroupShard, step: Step, event: DeleteGroup) -> None:
    """Delete a group without members. The delivery state of its partitions goes first: if that fails, the group stays,
    and knows which state is left, so that the request can be repeated."""
    group = share_group(shard, event.group_id)
    topics = {} if group.members else _topics_with_state(shard, group)
    if not topics:
        shard.delete_group(step, event.group_id, event.token)
        return
    deleting = {topic_id: name for topic_id, (name, _) in topics.items()}
    step.append([share_group_records.partition_states(group.group_id, {}, {}, deleting)])
    step.effects.append(
        AskShareState(
            DELETE_STATE,
            group.group_id,
            {topic_id: dict.fromkeys(partitions, -1) for topic_id, (_, partitions) in topics.items()},
            group.epoch,
            lambda failures: GroupStateDeleted(group.group_id, {}, failures, event.token),
        )
    )


def _topics_with_state(shard: GroupShard, group: ShareGroup) -> Topics:
    """The partitions of which the share coordinator may have delivery state. Which those of a deletion that has failed
    are is not known any more."""
    assert shard.metadata is not None
    topics = merged(group.initialized, group.initializing)
    for topic_id in group.deleting:
        topic = shard.metadata.topic_by_id(topic_id)
        if topic is not None:
            topics = merged(topics, {topic_id: (topic.name, frozenset(range(len(topic.partitions))))})
    return topics


def group_state_deleted(shard: GroupShard, step: Step, event: GroupStateDeleted) -> None:
    """The share coordinator has deleted the delivery state of a group, or could not."""
    for code, _ in event.failures.values():
        step.reply(
            event.token, messages.DeleteGroupsResponse.DeletableGroupResult(group_id=event.group_id, error_code=code)
        )
        return
    shard.delete_group(step, event.group_id, event.token)
