"""What a replica does by itself in each of its states: timeouts, and requests to others.

Each function sets `replica.deadline`, and returns whether the state has changed."""

from __future__ import annotations

from pykafkad.effects import Send
from pykafkad.metadata import quorum_states as states
from pykafkad.metadata.voters import majority
from pykafkad.raft import forms, membership, requests, voter_changes
from pykafkad.raft.events import Answered
from pykafkad.raft.roles import NOBODY, Unattached
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.metadata.voters import Voter
    from pykafkad.raft.replica import RaftReplica

MAX_FETCH_BYTES = 1024 * 1024
NEVER = float("inf")


def unattached(replica: RaftReplica, now: float) -> bool:
    """Look for the leader. A voter asks for votes when its election timeout has passed."""
    deadline = replica.role.deadline if replica.may_lead else NEVER
    if now >= deadline:
        replica.become_prospective(now)
        return True
    replica.deadline = min(_fetch_from_any(replica, now), deadline)
    return False


def nominee(replica: RaftReplica, now: float) -> bool:
    """Ask those for a vote that have not answered; go on when the votes are there, or when they cannot be any more."""
    role = replica.role
    is_prospective = replica.state == states.PROSPECTIVE
    if len(role.granted) >= majority(replica.voters):
        if is_prospective:
            replica.become_candidate(now)
        else:
            replica.become_leader(role.granted, now)
        return True
    if is_prospective and (now >= role.deadline or replica.has_lost(role)):
        _after_lost_pre_vote(replica, now)
        return True
    if now >= role.deadline:
        replica.become_prospective(now)
        return True
    replica.deadline = role.deadline
    if not replica.has_lost(role) and replica.is_log_synced():
        for voter in replica.voters:
            if voter.id not in role.granted and voter.id not in role.rejected:
                _ask_for_vote(replica, voter, is_prospective, now)
    return False


def _ask_for_vote(replica: RaftReplica, voter: Voter, pre_vote: bool, now: float) -> None:
    _send_if_ready(
        replica,
        voter.id,
        lambda: forms.vote_request(
            replica.cluster_id,
            voter.key,
            replica.key,
            replica.epoch,
            (replica.log.last_epoch, replica.log.end_offset),
            pre_vote=pre_vote,
        ),
        now,
    )


def _after_lost_pre_vote(replica: RaftReplica, now: float) -> None:
    """Go back to the leader, if there is one: it may be alive."""
    if replica.leader_id not in (NOBODY, replica.node_id):
        replica.follow(replica.leader_id, replica.epoch, now)
    else:
        role = replica.role
        replica.become(Unattached(replica.election_deadline(now) if replica.has_lost(role) else role.deadline))


def follower(replica: RaftReplica, now: float) -> bool:
    """Fetch from the leader, or from another voter while the leader does not answer."""
    role = replica.role
    deadline = role.deadline if replica.may_lead else NEVER
    if now >= deadline:
        replica.become_prospective(now)
        return True
    replica.deadline = deadline
    request = membership.due_request(replica, now)
    if request is not None:
        _send_if_ready(replica, role.leader_id, lambda: membership.sent(replica, request, now), now)
        return False
    if role.change_at > now:
        replica.deadline = min(replica.deadline, role.change_at)
    if replica.is_log_synced():
        if replica.connections.has_failed(role.leader_id, now):
            replica.connections.give_up(role.leader_id, now)
            replica.deadline = min(replica.deadline, _fetch_from_any(replica, now))
        elif (free_at := replica.connections.free_at(now)) > now:
            replica.deadline = min(replica.deadline, free_at)
        elif role.snapshot is None:
            _send_if_ready(replica, role.leader_id, lambda: _fetch_request(replica), now)
        else:
            _send_if_ready(replica, role.leader_id, lambda: _snapshot_request(replica), now)
    return False


def leader(replica: RaftReplica, now: float) -> bool:
    """Tell those who leads that do not fetch, answer fetches that have waited, and resign without a majority, or when
    this node is no voter any more and that is committed."""
    role = replica.role
    # An answer counts what its follower has told, by which the high watermark may rise.
    requests.expire_parked(replica, now)
    voter_changes.expire(replica, now)
    if role.must_resign(now) or (not replica.is_voter and replica.voter_sets.offset < replica.high_watermark):
        replica.resign(now)
        return True
    to_tell = role.voters_to_tell(now)
    replica.deadline = role.next_deadline()
    for voter in replica.voters:
        if voter.id in to_tell:
            _tell(replica, voter, now)
    return False


def _tell(replica: RaftReplica, voter: Voter, now: float) -> None:
    request = forms.begin_request(replica.cluster_id, voter.key, replica.node_id, replica.epoch)
    _send_if_ready(replica, voter.id, lambda: request, now)


def resigned(replica: RaftReplica, now: float) -> bool:
    """Tell the others that the epoch is over, for one election timeout."""
    role = replica.role
    if now >= role.deadline:
        # Nobody is to follow it in the epoch that it has given up.
        replica.join_epoch(replica.epoch + 1, now)
        return True
    replica.deadline = role.deadline
    for voter_id in role.unacknowledged:
        _send_if_ready(
            replica,
            voter_id,
            lambda: forms.end_request(replica.cluster_id, replica.node_id, replica.epoch, role.successors),
            now,
        )
    return False


def _send_if_ready(replica: RaftReplica, peer: int, request: Callable[[], object], now: float) -> None:
    """Send a request, or wait until the one before it is answered or given up."""
    ready_at = replica.connections.ready_at(peer, now)
    if ready_at <= now:
        ready_at = _send(replica, peer, request(), now)
    replica.deadline = min(replica.deadline, ready_at)


def _send(replica: RaftReplica, peer: int, request: object, now: float) -> float:
    number = replica.connections.sent(peer, now)
    replica.effects.append(Send(peer, request, lambda outcome: Answered(peer, number, request, outcome)))
    return replica.connections.ready_at(peer, now)


def _fetch_from_any(replica: RaftReplica, now: float) -> float:
    """Ask one node or the other for records: whoever is not the leader says who is. When to ask again."""
    free_at = replica.connections.free_at(now)
    peers = replica.peers()
    if not peers or not replica.is_log_synced():
        return NEVER
    if free_at > now:
        return free_at
    first = replica.random.randrange(len(peers))
    peers = peers[first:] + peers[:first]
    for peer in peers:
        if replica.connections.ready_at(peer, now) <= now:
            return _send(replica, peer, _fetch_request(replica), now)
    return min(replica.connections.ready_at(peer, now) for peer in peers)


def _fetch_request(replica: RaftReplica) -> messages.FetchRequest:
    return forms.fetch_request(
        replica.cluster_id,
        replica.key,
        replica.epoch,
        (replica.log.last_epoch, replica.log.end_offset),
        replica.high_watermark,
        max_wait_ms=int(replica.timeouts.fetch_wait * 1000),
        max_bytes=MAX_FETCH_BYTES,
    )


def _snapshot_request(replica: RaftReplica) -> messages.FetchSnapshotRequest:
    wanted = replica.role.snapshot
    return forms.snapshot_request(
        replica.cluster_id,
        replica.key,
        replica.epoch,
        (wanted.end_offset, wanted.epoch),
        replica.role.position,
        MAX_FETCH_BYTES,
    )


POLLS: dict[str, Callable[[RaftReplica, float], bool]] = {
    states.UNATTACHED: unattached,
    states.PROSPECTIVE: nominee,
    states.CANDIDATE: nominee,
    states.FOLLOWER: follower,
    states.LEADER: leader,
    states.RESIGNED: resigned,
}
