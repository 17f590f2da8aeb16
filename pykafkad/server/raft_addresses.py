"""Where the members of a quorum are: what requests and answers say of it, and the voters of the log (KIP-853).

Requests of a leader name its endpoints, and answers name the leader's address. A member that knows only the addresses
of its settings finds a leader by that which is in no set of voters that it knows."""

from __future__ import annotations

from pykafkad.raft import forms
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.raft.replica import RaftReplica
    from pykafkad.server.raft_peers import RaftPeers

_FROM_LEADER = (messages.BeginQuorumEpochRequest, messages.EndQuorumEpochRequest)
_ABOUT_LEADER = (
    messages.VoteResponse,
    messages.BeginQuorumEpochResponse,
    messages.EndQuorumEpochResponse,
    messages.FetchResponse,
    messages.FetchSnapshotResponse,
)


def locate_voters(peers: RaftPeers, machine: RaftReplica, listener: str) -> None:
    """The voters have changed: those with endpoints are found there."""
    for voter in machine.voters:
        for each in voter.endpoints:
            if each.name.upper() == listener.upper() and voter.id != machine.node_id:
                peers.locate(voter.id, each.host, each.port)


def leader_address(peers: RaftPeers, machine: RaftReplica, listener: str) -> tuple[str, int] | None:
    """The (host, port) of the leader, if this member knows it."""
    if machine.leader_id != machine.node_id:
        return peers.located(machine.leader_id)
    own = [each for each in machine.endpoints if each.name.upper() == listener.upper()] or machine.endpoints
    return (own[0].host, own[0].port) if own else None


def add_own(machine: RaftReplica, request: Any) -> None:
    """Say in a leader's request where this node is."""
    if isinstance(request, _FROM_LEADER):
        form: Any = type(request).LeaderEndpoint
        request.leader_endpoints = [form(name=each.name, host=each.host, port=each.port) for each in machine.endpoints]


def add_leader(peers: RaftPeers, machine: RaftReplica, answer: Any, listener: str) -> None:
    """Say in an answer where the leader is that it names."""
    found = leader_address(peers, machine, listener)
    if found is None or machine.leader_id < 0:
        return
    host, port = found
    if isinstance(answer, _ABOUT_LEADER):
        form: Any = type(answer).NodeEndpoint
        answer.node_endpoints = [form(node_id=machine.leader_id, host=host, port=port)]
    elif type(answer) is messages.UpdateRaftVoterResponse:
        answer.current_leader.host, answer.current_leader.port = host, port


def learn_from_request(peers: RaftPeers, machine: RaftReplica, request: Any, listener: str) -> None:
    """Take from a leader's request where it is."""
    if not isinstance(request, _FROM_LEADER) or request.cluster_id not in (None, machine.cluster_id):
        return
    partition = forms.only_partition(request)
    for each in request.leader_endpoints:
        if partition is not None and each.name.upper() == listener.upper():
            _learn(peers, machine, partition.leader_id, each)


def learn_from_answer(peers: RaftPeers, machine: RaftReplica, answer: Any) -> None:
    """Take from an answer where the leader is."""
    if isinstance(answer, _ABOUT_LEADER):
        for each in answer.node_endpoints:
            _learn(peers, machine, each.node_id, each)


def _learn(peers: RaftPeers, machine: RaftReplica, node_id: int, place: Any) -> None:
    # The voters in the log, and those of the settings, have the last word.
    is_known = any(voter.id == node_id and voter.endpoints for voter in machine.voters)
    if node_id >= 0 and node_id != machine.node_id and not is_known and place.host and place.port > 0:
        peers.locate(node_id, place.host, place.port)
