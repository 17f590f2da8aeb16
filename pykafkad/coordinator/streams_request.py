"""What a StreamsGroupHeartbeat must have in it whatever its group is like (KIP-1071)."""

from __future__ import annotations

from pykafkad.errors import INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY, KafkaError

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
NO_TIMEOUT = -1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.wire import messages

    Request = messages.StreamsGroupHeartbeatRequest


def check(request: Request) -> None:
    """Raises `KafkaError` (INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY) for the first fault in Kafka's order. The handler
    calls it when it has checked what the client may do, and before it looks for the coordinator."""
    _check_unsupported(request)
    for text, name in (
        (request.member_id, "MemberId"),
        (request.group_id, "GroupId"),
        (request.instance_id, "InstanceId"),
        (request.rack_id, "RackId"),
    ):
        if text is not None and not text.strip():
            raise KafkaError(INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        _check_join(request)
    elif request.member_epoch == STATIC_LEAVE_EPOCH:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        text = f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2."
        raise KafkaError(INVALID_REQUEST, text)
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(each is not None for each in tasks):
        _require(None not in tasks, "If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOIN_EPOCH:
        _require(request.topology is None, "Topology can only be provided when (re-)joining.")


def _require(is_met: bool, text: str) -> None:
    if not is_met:
        raise KafkaError(INVALID_REQUEST, text)


def _check_unsupported(request: Request) -> None:
    """Refuse what Kafka does not serve yet."""
    _require(request.instance_id is None, "Static membership is not yet supported.")
    _require(request.task_offsets is None, "TaskOffsets are not supported yet.")
    _require(request.task_end_offsets is None, "TaskEndOffsets are not supported yet.")
    _require(not request.warmup_tasks, "WarmupTasks are not supported yet.")
    if request.topology is not None:
        text = "Regular expressions for source topics are not supported yet."
        _require(not any(each.source_topic_regex for each in request.topology.subtopologies), text)


def _check_join(request: Request) -> None:
    _require(request.rebalance_timeout_ms != NO_TIMEOUT, "RebalanceTimeoutMs must be provided in first request.")
    _require(request.active_tasks == [], "ActiveTasks must be empty when (re-)joining.")
    _require(request.standby_tasks == [], "StandbyTasks must be empty when (re-)joining.")
    _require(request.warmup_tasks == [], "WarmupTasks must be empty when (re-)joining.")
    _require(request.topology is not None, "Topology must be non-null when (re-)joining.")
    assert request.topology is not None
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                text = (
                    f"Changelog topic {topic.name} must have an undefined partition count, "
                    f"but it is set to {topic.partitions}."
                )
                raise KafkaError(STREAMS_INVALID_TOPOLOGY, text)
