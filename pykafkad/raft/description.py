"""DescribeQuorum from the replica that leads (KIP-595, KIP-836, KIP-853).

Gaps: the listeners of observers are not known, in Kafka neither."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.metadata.record_codec import LOG
from pykafkad.raft.leader import NEVER, Progress
from pykafkad.raft.voter_sets import NOWHERE
from pykafkad.uuids import ZERO
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.raft.leader import Leader
    from pykafkad.raft.replica import RaftReplica

_Response = messages.DescribeQuorumResponse
_UNKNOWN = -1


def describe(replica: RaftReplica, *, version: int, now: float, now_ms: int) -> messages.DescribeQuorumResponse:
    """The quorum as its leader knows it, in a version of the answer: who leads, what is committed, and how far each
    voter and observer has fetched and when. `now` is monotonic, `now_ms` the time of day, in which the answer is.

    A replica that does not lead answers NOT_LEADER_OR_FOLLOWER."""
    form = _Response.PartitionData
    if not replica.is_leader:
        code = errors.NOT_LEADER_OR_FOLLOWER
        text = errors.message(code) if version >= 2 else ""
        row = form(partition_index=LOG[1], error_code=code, error_message=text)
        return _Response(topics=[_Response.TopicData(topic_name=LOG[0], partitions=[row])])
    leader: Leader = replica.role
    leader.forget_observers(now)
    clock = now, now_ms
    row = form(
        partition_index=LOG[1],
        leader_id=replica.node_id,
        leader_epoch=replica.epoch,
        high_watermark=replica.high_watermark if leader.has_committed else _UNKNOWN,
        current_voters=[
            _own(replica, version, now_ms)
            if voter.id == replica.node_id
            else _state(voter.id, leader.progress[voter.id], version, clock)
            for voter in leader.voters
        ],
        observers=[_state(key[0], known, version, clock) for key, known in leader.observers.items()],
    )
    if not leader.is_voter:
        row.observers.append(_own(replica, version, now_ms))
    nodes = [
        _Response.Node(
            node_id=voter.id,
            listeners=[_Response.Listener(name=each.name, host=each.host, port=each.port) for each in voter.endpoints],
        )
        for voter in leader.voters
    ]
    return _Response(
        topics=[_Response.TopicData(topic_name=LOG[0], partitions=[row])], nodes=nodes if version >= 2 else []
    )


def _own(replica: RaftReplica, version: int, now_ms: int) -> messages.DescribeQuorumResponse.ReplicaState:
    """The leader, who has always caught up."""
    is_keyed = version >= 2 and replica.voter_sets.offset != NOWHERE
    return _Response.ReplicaState(
        replica_id=replica.node_id,
        replica_directory_id=replica.key[1] if is_keyed else ZERO,
        log_end_offset=replica.log.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )


def _state(
    node_id: int, known: Progress, version: int, clock: tuple[float, int]
) -> messages.DescribeQuorumResponse.ReplicaState:
    return _Response.ReplicaState(
        replica_id=node_id,
        replica_directory_id=known.directory_id if version >= 2 else ZERO,
        log_end_offset=known.end_offset,
        last_fetch_timestamp=_timestamp_ms(known.fetched_at, clock),
        last_caught_up_timestamp=_timestamp_ms(known.caught_up_at, clock),
    )


def _timestamp_ms(at: float, clock: tuple[float, int]) -> int:
    """The time of day of a moment on the monotonic clock; -1 for never."""
    now, now_ms = clock
    return _UNKNOWN if at == NEVER else now_ms - round((now - at) * 1000)
