"""DescribeQuorum, versions 0 to 2 (KIP-595, KIP-836, KIP-853).

Describes partition 0 of `__cluster_metadata`: its leader, the leader epoch, the high watermark, and the end offset of
each voter. If a request names anything else, every row is UNKNOWN_TOPIC_OR_PARTITION. Version 1 adds the time of each
voter's last fetch, which for the leader is now. Version 2 adds directory ids, error messages and the voters' listeners.
In a quorum of several members only the leader describes it, with the observers; others say NOT_LEADER_OR_FOLLOWER.

The only voter of a process that is a broker, too, has no listeners if the process itself registered it.

Gaps: none.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.metadata.record_codec import LOG
from pykafkad.uuids import ZERO
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.controller_context import ControllerContext
    from pykafkad.metadata.quorum import Quorum

(_DESCRIBE_CLUSTER,) = RULES["DescribeQuorum"]
_Response = messages.DescribeQuorumResponse


def handle(ctx: ControllerContext, request: messages.DescribeQuorumRequest) -> object:
    """The quorum as this node, its leader, knows it."""
    if not may(ctx, _DESCRIBE_CLUSTER):
        code = _DESCRIBE_CLUSTER.error
        return _Response(error_code=code, error_message=errors.message(code))
    asked = [(topic.topic_name, part.partition_index) for topic in request.topics for part in topic.partitions]
    if asked != [LOG] or len(request.topics) != 1:
        return _refused(request)
    described = ctx.controller.describe_quorum(ctx.version)
    if described is not None:
        return described
    quorum = ctx.controller.quorum
    return _Response(
        topics=[_Response.TopicData(topic_name=LOG[0], partitions=[_partition(quorum, ctx)])],
        nodes=_nodes(quorum) if ctx.version >= 2 else [],
    )


def _nodes(quorum: Quorum) -> list[messages.DescribeQuorumResponse.Node]:
    return [
        _Response.Node(
            node_id=voter.id,
            listeners=[_Response.Listener(name=each.name, host=each.host, port=each.port) for each in voter.endpoints],
        )
        for voter in quorum.voters
    ]


def _partition(quorum: Quorum, ctx: ControllerContext) -> messages.DescribeQuorumResponse.PartitionData:
    with_directories = ctx.version >= 2
    return _Response.PartitionData(
        partition_index=LOG[1],
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=[
            _Response.ReplicaState(
                replica_id=voter.id,
                replica_directory_id=voter.directory_id if with_directories else ZERO,
                log_end_offset=quorum.end_offset(voter.id),
                last_fetch_timestamp=ctx.now_ms,
                last_caught_up_timestamp=ctx.now_ms,
            )
            for voter in quorum.voters
        ],
    )


def _refused(request: messages.DescribeQuorumRequest) -> object:
    code = errors.UNKNOWN_TOPIC_OR_PARTITION
    rows = [
        _Response.TopicData(
            topic_name=topic.topic_name,
            partitions=[
                _Response.PartitionData(
                    partition_index=part.partition_index, error_code=code, error_message=errors.message(code)
                )
                for part in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return _Response(topics=rows)
