"""What a replica does with the requests of others, and how it answers them."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.effects import Reply
from pykafkad.metadata import quorum_states as states
from pykafkad.raft import forms, voter_changes
from pykafkad.raft.events import Received, ReplyWithRecords, ReplyWithSnapshot
from pykafkad.raft.leader import MAX_PARKED_FETCHES, UNKNOWN, Leader, ParkedFetch
from pykafkad.raft.log_view import DIVERGING, SNAPSHOT, VALID
from pykafkad.raft.roles import MAX_EPOCH
from pykafkad.uuids import ZERO
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.raft.replica import RaftReplica


def _partition(replica: RaftReplica, event: Received, response: Callable[..., Any]) -> Any:
    """The request's partition; None if the request was refused as a whole."""
    request: Any = event.request
    partition = forms.only_partition(request)
    if request.cluster_id is not None and request.cluster_id != replica.cluster_id:
        replica.effects.append(Reply(event.token, response(error_code=errors.INCONSISTENT_CLUSTER_ID)))
        return None
    if partition is None:
        replica.effects.append(Reply(event.token, response(error_code=errors.INVALID_REQUEST)))
    return partition


def _is_for_other(replica: RaftReplica, voter_id: int, directory_id: bytes) -> bool:
    """Whether the request names another voter, or this one with another directory."""
    return voter_id >= 0 and (voter_id != replica.node_id or directory_id not in (ZERO, replica.key[1]))


def vote(replica: RaftReplica, event: Received, now: float) -> None:
    """Somebody asks for a vote, or whether it would get one."""
    partition = _partition(replica, event, messages.VoteResponse)
    if partition is None:
        return
    error_code, granted = _vote(replica, event.request, partition, now)
    response = forms.vote_response(error_code, replica.leader_id, replica.epoch, granted=granted)
    replica.effects.append(Reply(event.token, response))


def _vote(replica: RaftReplica, request: Any, partition: Any, now: float) -> tuple[int, bool]:
    epoch, last_epoch = partition.replica_epoch, partition.last_offset_epoch
    is_illegal = last_epoch > epoch if partition.pre_vote else last_epoch >= epoch
    is_illegal = is_illegal or epoch > MAX_EPOCH
    if is_illegal or last_epoch < 0 or partition.last_offset < 0 or partition.replica_id < 0:
        replica.doubted(f"it asks for a vote in epoch {epoch}, with a log up to epoch {last_epoch}")
        return errors.INVALID_REQUEST, False
    if epoch < replica.epoch:
        return errors.FENCED_LEADER_EPOCH, False
    if epoch > replica.epoch:
        replica.join_epoch(epoch, now)
    if _is_for_other(replica, request.voter_id, partition.voter_directory_id):
        return errors.INVALID_VOTER_KEY, False
    candidate = partition.replica_id, partition.replica_directory_id
    own_end = replica.log.last_epoch, replica.log.end_offset
    is_up_to_date = (last_epoch, partition.last_offset) >= own_end
    granted = _may_have_vote(replica, candidate, is_up_to_date, partition.pre_vote, now)
    if granted and not partition.pre_vote and replica.voted_id < 0:
        replica.vote_for(candidate, now)
    return errors.NONE, granted


def _may_have_vote(
    replica: RaftReplica, candidate: tuple[int, bytes], is_up_to_date: bool, pre_vote: bool, now: float
) -> bool:
    """One vote in an epoch, for a candidate whose log is not behind, and only without a leader. A pre-vote promises
    nothing: only those refuse it who hear of a leader or have more than the candidate.

    A new voter that does not know of it yet follows a leader that has gone without ever asking for votes itself. In
    Kafka it refuses pre-votes for ever, and a quorum that needs its vote has no leader any more. Here it refuses them
    for its fetch timeout."""
    state = replica.state
    if state == states.LEADER or candidate[0] == replica.node_id:
        return False
    if pre_vote:
        return is_up_to_date and not (
            state == states.FOLLOWER and replica.role.has_fetched and now < replica.role.deadline
        )
    if state not in (states.UNATTACHED, states.PROSPECTIVE):
        return False
    if replica.voted_id >= 0:
        return candidate[0] == replica.voted_id and replica.voted_directory_id in (ZERO, candidate[1])
    return replica.leader_id < 0 and is_up_to_date


def begin_quorum_epoch(replica: RaftReplica, event: Received, now: float) -> None:
    """A leader says that it leads."""
    request: Any = event.request
    partition = _partition(replica, event, messages.BeginQuorumEpochResponse)
    if partition is None:
        return
    error_code = _learn_of_leader(replica, partition, now)
    if not error_code and _is_for_other(replica, request.voter_id, partition.voter_directory_id):
        error_code = errors.INVALID_VOTER_KEY
    response = forms.begin_response(error_code, replica.leader_id, replica.epoch)
    replica.effects.append(Reply(event.token, response))


def end_quorum_epoch(replica: RaftReplica, event: Received, now: float) -> None:
    """A leader has resigned. Its followers ask for votes, one after the other, in the order that it proposes."""
    partition = _partition(replica, event, messages.EndQuorumEpochResponse)
    if partition is None:
        return
    error_code = _learn_of_leader(replica, partition, now)
    role = replica.role
    if not error_code and replica.state == states.FOLLOWER and role.leader_id == partition.leader_id:
        role.deadline = now + _election_backoff(replica, partition)
    response = forms.end_response(error_code, replica.leader_id, replica.epoch)
    replica.effects.append(Reply(event.token, response))


def _learn_of_leader(replica: RaftReplica, partition: Any, now: float) -> int:
    if partition.leader_epoch < replica.epoch:
        return errors.FENCED_LEADER_EPOCH
    if partition.leader_id < 0 or not replica.is_consistent(partition.leader_id, partition.leader_epoch):
        replica.doubted_leader(partition.leader_id, partition.leader_epoch)
        return errors.INVALID_REQUEST
    replica.learn(partition.leader_id, partition.leader_epoch, now)
    return errors.NONE


def _election_backoff(replica: RaftReplica, partition: Any) -> float:
    """The first successor asks for votes at once, each later one after twice the time."""
    successors = [
        each.candidate_directory_id in (ZERO, replica.key[1]) and each.candidate_id == replica.node_id
        for each in partition.preferred_candidates
    ] or [each == replica.node_id for each in partition.preferred_successors]
    limit: float = replica.timeouts.election_backoff
    if True not in successors:
        return limit
    position = successors.index(True)
    return min(limit, limit / 2 ** (len(successors) - position)) if position else 0.0


def fetch(replica: RaftReplica, event: Received, now: float) -> None:
    """A follower asks for records. Without any the request waits."""
    request: Any = event.request
    partition = _partition(replica, event, messages.FetchResponse)
    if partition is None:
        return
    if (
        request.max_wait_ms < 0
        or partition.fetch_offset < 0
        or not 0 <= partition.last_fetched_epoch <= partition.current_leader_epoch
    ):
        replica.doubted(f"it fetches from offset {partition.fetch_offset} of epoch {partition.last_fetched_epoch}")
        response = forms.fetch_response(errors.INVALID_REQUEST, replica.leader_id, replica.epoch)
        replica.effects.append(Reply(event.token, response))
        return
    answer, is_empty = _fetch(replica, event.token, request, partition, now)
    if is_empty and request.max_wait_ms and len(replica.role.parked) < MAX_PARKED_FETCHES:
        replica.role.parked.append(ParkedFetch(event.token, request, now + request.max_wait_ms / 1000))
    else:
        replica.effects.append(answer)


def _fetch(
    replica: RaftReplica, token: object, request: messages.FetchRequest, partition: Any, now: float
) -> tuple[object, bool]:
    """The answer as an effect, and whether it says nothing that the follower does not know."""
    error_code = replica.leader_error(partition.current_leader_epoch)
    if error_code:
        return Reply(token, forms.fetch_response(error_code, replica.leader_id, replica.epoch)), False
    leader = replica.role
    kind, *where = replica.log.validate(partition.fetch_offset, partition.last_fetched_epoch)
    if kind == VALID:
        replica_id = request.replica_state.replica_id
        if replica_id >= 0 and replica_id != replica.node_id:
            key = replica_id, partition.replica_directory_id
            leader.fetched(key, partition.fetch_offset, replica.log.end_offset, now)
            replica.update_high_watermark(now)
    high_watermark = replica.high_watermark if leader.has_committed else UNKNOWN
    response = forms.fetch_response(errors.NONE, replica.leader_id, replica.epoch, high_watermark)
    row = response.responses[0].partitions[0]
    row.log_start_offset = replica.log.start_offset
    if kind == DIVERGING:
        row.diverging_epoch = messages.FetchResponse.EpochEndOffset(epoch=where[0], end_offset=where[1])
    elif kind == SNAPSHOT:
        row.snapshot_id = messages.FetchResponse.SnapshotId(end_offset=where[0], epoch=where[1])
    elif partition.fetch_offset < replica.log.end_offset:
        return ReplyWithRecords(token, response, partition.fetch_offset, request.max_bytes), False
    return Reply(token, response), kind == VALID and high_watermark <= partition.high_watermark


def complete_parked(replica: RaftReplica, now: float) -> None:
    """There is something to tell: answer every fetch that waits."""
    parked = replica.role.parked
    waiting, parked[:] = parked[:], ()
    _answer(replica, waiting, now)


def expire_parked(replica: RaftReplica, now: float) -> None:
    """Answer the fetches that have waited long enough."""
    parked = replica.role.parked
    due = [each for each in parked if each.deadline <= now]
    if due:
        parked[:] = [each for each in parked if each.deadline > now]
        _answer(replica, due, now)


def _answer(replica: RaftReplica, waiting: list[ParkedFetch], now: float) -> None:
    for each in waiting:
        partition = forms.only_partition(each.request)
        replica.effects.append(_fetch(replica, each.token, each.request, partition, now)[0])


def refuse_parked(replica: RaftReplica, leader: Leader) -> None:
    """This node does not lead any more: those who wait ask the next leader."""
    for each in leader.parked:
        response = forms.fetch_response(errors.NOT_LEADER_OR_FOLLOWER, replica.leader_id, replica.epoch)
        replica.effects.append(Reply(each.token, response))


def fetch_snapshot(replica: RaftReplica, event: Received, now: float) -> None:
    """A replica asks for a part of a snapshot."""
    request: Any = event.request
    partition = _partition(replica, event, messages.FetchSnapshotResponse)
    if partition is None:
        return
    snapshot, position = replica.log.snapshot, partition.position
    wanted = partition.snapshot_id.end_offset, partition.snapshot_id.epoch
    error_code = replica.leader_error(partition.current_leader_epoch)
    if not error_code and (snapshot is None or wanted != (snapshot.end_offset, snapshot.epoch)):
        error_code = errors.SNAPSHOT_NOT_FOUND
    if not error_code and snapshot is not None and not 0 <= position < snapshot.size_bytes:
        error_code = errors.POSITION_OUT_OF_RANGE
    if error_code or snapshot is None:
        response = forms.snapshot_response(error_code, replica.leader_id, replica.epoch)
        replica.effects.append(Reply(event.token, response))
        return
    replica.role.heard_of((request.replica_id, partition.replica_directory_id), now)
    response = forms.snapshot_response(
        errors.NONE, replica.leader_id, replica.epoch, wanted, snapshot.size_bytes, position
    )
    replica.effects.append(ReplyWithSnapshot(event.token, response, *wanted, position, request.max_bytes))


HANDLERS: dict[type, Callable[[RaftReplica, Received, float], None]] = {
    messages.VoteRequest: vote,
    messages.BeginQuorumEpochRequest: begin_quorum_epoch,
    messages.EndQuorumEpochRequest: end_quorum_epoch,
    messages.FetchRequest: fetch,
    messages.FetchSnapshotRequest: fetch_snapshot,
    messages.AddRaftVoterRequest: voter_changes.add,
    messages.RemoveRaftVoterRequest: voter_changes.remove,
    messages.UpdateRaftVoterRequest: voter_changes.update,
}
