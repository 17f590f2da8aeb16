"""What a follower does for its place among the voters (KIP-853, KIP-1186): a voter tells the leader of itself, and a
replica that joins by itself asks to become a voter, after it has removed what it was in a directory that is lost.

The times are those of Kafka's `FollowerState`: one request in each fetch timeout."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.metadata import quorum_states as states
from pykafkad.raft import forms
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.raft.events import Answered
    from pykafkad.raft.replica import RaftReplica


def due_request(replica: RaftReplica, now: float) -> object | None:
    """The request that a follower has for its leader now, besides fetches."""
    role = replica.role
    if now < role.change_at:
        return None
    if replica.is_voter:
        request = _update(replica)
        if request is None:
            role.change_at = now + replica.timeouts.fetch
        return request
    if not replica.joins or not replica.voter_sets.level:
        return None
    old = next((voter for voter in replica.voters if voter.id == replica.node_id), None)
    if old is not None:
        return forms.remove_voter_request(replica.cluster_id, old.key)
    timeout_ms = int(replica.timeouts.request * 1000)
    return forms.add_voter_request(replica.cluster_id, replica.own_voter(), timeout_ms, ack_when_committed=False)


def _update(replica: RaftReplica) -> object | None:
    """What the leader does not know of this voter: with kraft.version 1 what differs from its entry in the log, with 0
    everything, once for each leader."""
    own = replica.own_voter()
    if not replica.endpoints or (own in replica.voters if replica.voter_sets.level else replica.role.has_told):
        return None
    return forms.update_voter_request(replica.cluster_id, own, replica.epoch)


def sent(replica: RaftReplica, request: object, now: float) -> object:
    """The request, which is sent now."""
    replica.role.change_at = now + replica.timeouts.fetch
    return request


def updated(replica: RaftReplica, event: Answered, now: float) -> bool:
    """The leader has answered what this voter told of itself."""
    outcome: Any = event.outcome
    if type(outcome) is not messages.UpdateRaftVoterResponse:
        return False
    leader = outcome.current_leader
    handled = replica.heard(
        outcome.error_code, leader.leader_id, leader.leader_epoch, now, (errors.UNSUPPORTED_VERSION,)
    )
    if handled is not None or replica.state != states.FOLLOWER:
        return handled is not False
    replica.role.has_told = True
    replica.role.heard_of_leader(now + replica.timeouts.fetch)
    return True


def changed(replica: RaftReplica, event: Answered, now: float) -> bool:
    """The leader has answered whether this replica becomes a voter. If it does, the log says so."""
    outcome: Any = event.outcome
    known = (errors.NONE, errors.REQUEST_TIMED_OUT, errors.DUPLICATE_VOTER, errors.VOTER_NOT_FOUND)
    is_handled = getattr(outcome, "error_code", errors.BROKER_NOT_AVAILABLE) in known
    if is_handled and replica.state == states.FOLLOWER:
        replica.role.change_at = now + replica.timeouts.fetch
    return is_handled
