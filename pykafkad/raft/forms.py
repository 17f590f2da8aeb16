"""Requests and answers about the one partition of the metadata log, as messages."""

from __future__ import annotations

from pykafkad.metadata.record_codec import LOG, TOPIC_ID
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from pykafkad.metadata.voters import Voter

    Answer = TypeVar(
        "Answer", messages.VoteResponse, messages.BeginQuorumEpochResponse, messages.EndQuorumEpochResponse
    )

TOPIC, PARTITION = LOG

# The names of the fields with the topic's name and the partition's number.
_FIELDS = {
    messages.VoteRequest: ("topic_name", "partition_index"),
    messages.VoteResponse: ("topic_name", "partition_index"),
    messages.BeginQuorumEpochRequest: ("topic_name", "partition_index"),
    messages.BeginQuorumEpochResponse: ("topic_name", "partition_index"),
    messages.EndQuorumEpochRequest: ("topic_name", "partition_index"),
    messages.EndQuorumEpochResponse: ("topic_name", "partition_index"),
    messages.FetchRequest: ("topic", "partition"),
    messages.FetchResponse: ("topic", "partition_index"),
    messages.FetchSnapshotRequest: ("name", "partition"),
    messages.FetchSnapshotResponse: ("name", "index"),
}


def only_partition(message: Any) -> Any:
    """The partition that a request or an answer is about; None if it is not the one of the metadata log."""
    topics = message.responses if type(message) is messages.FetchResponse else message.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic, partition = topics[0], topics[0].partitions[0]
    topic_field, partition_field = _FIELDS[type(message)]
    is_topic = getattr(topic, topic_field) == TOPIC or getattr(topic, "topic_id", None) == TOPIC_ID
    return partition if is_topic and getattr(partition, partition_field) == PARTITION else None


def vote_request(
    cluster_id: str,
    voter: tuple[int, bytes],
    replica: tuple[int, bytes],
    epoch: int,
    log_end: tuple[int, int],
    *,
    pre_vote: bool,
) -> messages.VoteRequest:
    """Asks `voter` for its vote for `replica`, whose log ends with the (epoch, end offset) `log_end`."""
    form = messages.VoteRequest
    partition = form.PartitionData(
        partition_index=PARTITION,
        replica_epoch=epoch,
        replica_id=replica[0],
        replica_directory_id=replica[1],
        voter_directory_id=voter[1],
        last_offset_epoch=log_end[0],
        last_offset=log_end[1],
        pre_vote=pre_vote,
    )
    topic = form.TopicData(topic_name=TOPIC, partitions=[partition])
    return form(cluster_id=cluster_id, voter_id=voter[0], topics=[topic])


def _with_leader(form: type[Answer], error_code: int, leader_id: int, epoch: int, **more: object) -> Answer:
    """An answer of class `form` whose one partition says who leads in which epoch, and `more`."""
    of: Any = form
    partition = of.PartitionData(
        partition_index=PARTITION, error_code=error_code, leader_id=leader_id, leader_epoch=epoch, **more
    )
    answer: Answer = of(topics=[of.TopicData(topic_name=TOPIC, partitions=[partition])])
    return answer


def vote_response(error_code: int, leader_id: int, epoch: int, *, granted: bool) -> messages.VoteResponse:
    """The answer to a vote request."""
    return _with_leader(messages.VoteResponse, error_code, leader_id, epoch, vote_granted=granted)


def begin_request(
    cluster_id: str, voter: tuple[int, bytes], leader_id: int, epoch: int
) -> messages.BeginQuorumEpochRequest:
    """Tells `voter` who leads."""
    form = messages.BeginQuorumEpochRequest
    partition = form.PartitionData(
        partition_index=PARTITION, voter_directory_id=voter[1], leader_id=leader_id, leader_epoch=epoch
    )
    topic = form.TopicData(topic_name=TOPIC, partitions=[partition])
    return form(cluster_id=cluster_id, voter_id=voter[0], topics=[topic])


def begin_response(error_code: int, leader_id: int, epoch: int) -> messages.BeginQuorumEpochResponse:
    """The answer to the leader's announcement."""
    return _with_leader(messages.BeginQuorumEpochResponse, error_code, leader_id, epoch)


def end_request(
    cluster_id: str, leader_id: int, epoch: int, successors: list[tuple[int, bytes]]
) -> messages.EndQuorumEpochRequest:
    """Tells a voter that the leader has resigned, and who should ask for votes."""
    form = messages.EndQuorumEpochRequest
    partition = form.PartitionData(
        partition_index=PARTITION,
        leader_id=leader_id,
        leader_epoch=epoch,
        preferred_successors=[voter_id for voter_id, _ in successors],
        preferred_candidates=[
            form.ReplicaInfo(candidate_id=voter_id, candidate_directory_id=directory_id)
            for voter_id, directory_id in successors
        ],
    )
    return form(cluster_id=cluster_id, topics=[form.TopicData(topic_name=TOPIC, partitions=[partition])])


def end_response(error_code: int, leader_id: int, epoch: int) -> messages.EndQuorumEpochResponse:
    """The answer to a resignation."""
    return _with_leader(messages.EndQuorumEpochResponse, error_code, leader_id, epoch)


def _listeners(form: Any, voter: Voter) -> list[Any]:
    return [form.Listener(name=each.name, host=each.host, port=each.port) for each in voter.endpoints]


def add_voter_request(
    cluster_id: str, voter: Voter, timeout_ms: int, *, ack_when_committed: bool
) -> messages.AddRaftVoterRequest:
    """Asks the leader to make a replica a voter."""
    form = messages.AddRaftVoterRequest
    return form(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        listeners=_listeners(form, voter),
        ack_when_committed=ack_when_committed,
    )


def remove_voter_request(cluster_id: str, voter: tuple[int, bytes]) -> messages.RemoveRaftVoterRequest:
    """Asks the leader to remove a voter, an (id, directory id)."""
    form = messages.RemoveRaftVoterRequest
    return form(cluster_id=cluster_id, voter_id=voter[0], voter_directory_id=voter[1])


def update_voter_request(cluster_id: str, voter: Voter, epoch: int) -> messages.UpdateRaftVoterRequest:
    """Tells the leader of `epoch` what a voter is like now."""
    form = messages.UpdateRaftVoterRequest
    low, high = voter.levels
    return form(
        cluster_id=cluster_id,
        current_leader_epoch=epoch,
        voter_id=voter.id,
        voter_directory_id=voter.directory_id,
        listeners=_listeners(form, voter),
        k_raft_version_feature=form.KRaftVersionFeature(min_supported_version=low, max_supported_version=high),
    )


def fetch_request(
    cluster_id: str,
    replica: tuple[int, bytes],
    epoch: int,
    log_end: tuple[int, int],
    high_watermark: int,
    *,
    max_wait_ms: int,
    max_bytes: int,
) -> messages.FetchRequest:
    """Asks for the records after `log_end`, the (epoch, end offset) of the replica's log."""
    form = messages.FetchRequest
    partition = form.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=epoch,
        fetch_offset=log_end[1],
        last_fetched_epoch=log_end[0],
        partition_max_bytes=0,
        replica_directory_id=replica[1],
        high_watermark=high_watermark,
    )
    return form(
        cluster_id=cluster_id,
        replica_state=form.ReplicaState(replica_id=replica[0]),
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=[form.FetchTopic(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])],
    )


def fetch_response(error_code: int, leader_id: int, epoch: int, high_watermark: int = -1) -> messages.FetchResponse:
    """The answer to a fetch, without records."""
    form = messages.FetchResponse
    partition = form.PartitionData(
        partition_index=PARTITION,
        error_code=error_code,
        high_watermark=high_watermark,
        current_leader=form.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch),
        records=b"",
    )
    return form(responses=[form.FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])])


def snapshot_request(
    cluster_id: str, replica: tuple[int, bytes], epoch: int, snapshot: tuple[int, int], position: int, max_bytes: int
) -> messages.FetchSnapshotRequest:
    """Asks for the bytes from `position` of the snapshot at (end offset, epoch)."""
    form = messages.FetchSnapshotRequest
    partition = form.PartitionSnapshot(
        partition=PARTITION,
        current_leader_epoch=epoch,
        snapshot_id=form.SnapshotId(end_offset=snapshot[0], epoch=snapshot[1]),
        position=position,
        replica_directory_id=replica[1],
    )
    topic = form.TopicSnapshot(name=TOPIC, partitions=[partition])
    return form(cluster_id=cluster_id, replica_id=replica[0], max_bytes=max_bytes, topics=[topic])


def snapshot_response(
    error_code: int, leader_id: int, epoch: int, snapshot: tuple[int, int] = (0, 0), size: int = 0, position: int = 0
) -> messages.FetchSnapshotResponse:
    """The answer to a request for a snapshot, without its bytes."""
    form = messages.FetchSnapshotResponse
    partition = form.PartitionSnapshot(
        index=PARTITION,
        error_code=error_code,
        snapshot_id=form.SnapshotId(end_offset=snapshot[0], epoch=snapshot[1]),
        current_leader=form.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch),
        size=size,
        position=position,
        unaligned_records=b"",
    )
    return form(topics=[form.TopicSnapshot(name=TOPIC, partitions=[partition])])
