"""Changes of the voters at kraft.version 1 (KIP-853): what the leader does with AddRaftVoter, RemoveRaftVoter and
UpdateRaftVoter, and the upgrade from kraft.version 0.

The checks, their order and their answers are those of Kafka's `AddVoterHandler`, `RemoveVoterHandler` and
`UpdateVoterHandler` (4.3). One change is under way at a time, and the set before it is committed: so any two sets that
count anywhere at a time differ by one voter, and have a majority in common. No change begins before the leader has
committed a record of its epoch, which ends those that leaders before it have begun."""

from __future__ import annotations

from pykafkad import __version__, errors
from pykafkad.effects import Reply, Send
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.features import KRAFT_VERSION, SUPPORTED
from pykafkad.metadata.voters import Voter, to_record
from pykafkad.raft.events import Answered, Locate, Received, Upgraded, UpgradeVersion
from pykafkad.raft.voter_sets import NOWHERE
from pykafkad.uuids import ZERO, to_text
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.raft.leader import Leader
    from pykafkad.raft.replica import RaftReplica

_RESPONSES: dict[type, type[Any]] = {
    messages.AddRaftVoterRequest: messages.AddRaftVoterResponse,
    messages.RemoveRaftVoterRequest: messages.RemoveRaftVoterResponse,
}


class PendingChange:
    """A voter that is being added or removed, by the request with `token`. Its record is at `offset`, -1 while the new
    voter has not said yet which levels it supports. `is_answered` says that nobody waits for the commit."""

    __slots__ = ("expires_at", "is_answered", "key", "listeners", "offset", "request", "token")

    def __init__(self, event: Received, expires_at: float) -> None:
        request: Any = event.request
        self.token = event.token
        self.request = request
        self.key = request.voter_id, request.voter_directory_id
        self.listeners = _endpoints(request) if type(request) is messages.AddRaftVoterRequest else []
        self.expires_at = expires_at
        self.offset = -1
        self.is_answered = False


def _endpoints(request: Any) -> list[Endpoint]:
    return [Endpoint(each.name, each.host, each.port) for each in request.listeners]


def _name(key: tuple[int, bytes]) -> str:
    return f"voter {key[0]} with directory {to_text(key[1])}"


def _answer(replica: RaftReplica, token: object, request: object, error_code: int, text: str | None = None) -> None:
    if error_code and text is None:
        text = errors.message(error_code)
    replica.effects.append(Reply(token, _RESPONSES[type(request)](error_code=error_code, error_message=text)))


def _refusal(replica: RaftReplica, request: Any, what: str) -> tuple[int, str | None] | None:
    """What refuses any request to add or to remove a voter."""
    if request.cluster_id is not None and request.cluster_id != replica.cluster_id:
        text = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{replica.cluster_id}"'
        return errors.INCONSISTENT_CLUSTER_ID, text
    if not replica.is_leader:
        return errors.NOT_LEADER_OR_FOLLOWER, None
    if request.voter_id < 0 or request.voter_directory_id == ZERO:
        return errors.INVALID_REQUEST, f"{what.capitalize()} voter request didn't include a valid voter"
    if what == "add" and not replica.has_own_listener(_endpoints(request)):
        return errors.INVALID_REQUEST, "Add voter request didn't include the endpoint for the default listener"
    return None


def _is_busy(replica: RaftReplica) -> str | None:
    """Why the voters cannot be changed now."""
    leader: Leader = replica.role
    if leader.change is not None:
        return "Request timed out waiting for leader to handle previous voter change request"
    if not leader.has_committed:
        return "Request timed out waiting for leader to establish HWM and fence previous voter changes"
    return None


def _is_uncommitted(replica: RaftReplica) -> str | None:
    """Why the newest set of voters cannot be followed by another one."""
    offset = replica.voter_sets.offset
    if offset != NOWHERE and offset < replica.high_watermark:
        return None
    text = "Request timed out waiting for voters to commit the latest voter change"
    return f"{text} at {offset} with HWM {replica.high_watermark}"


def _may_change(replica: RaftReplica, request: Any, what: str) -> tuple[int, str | None] | None:
    """Why the request is refused; None if it is not."""
    refusal = _refusal(replica, request, what)
    if refusal is not None:
        return refusal
    reason = _is_busy(replica)
    if reason is not None:
        return errors.REQUEST_TIMED_OUT, reason
    if not replica.voter_sets.level:
        doing = "adding" if what == "add" else "removing"
        return (
            errors.UNSUPPORTED_VERSION,
            f"Cluster doesn't support {doing} voter because the {KRAFT_VERSION} feature is 0",
        )
    reason = _is_uncommitted(replica)
    return None if reason is None else (errors.REQUEST_TIMED_OUT, reason)


def add(replica: RaftReplica, event: Received, now: float) -> None:
    """A replica is to become a voter. First it is asked which levels of kraft.version it supports."""
    request: Any = event.request
    refusal = _may_change(replica, request, "add")
    key = request.voter_id, request.voter_directory_id
    if refusal is None and any(voter.id == key[0] for voter in replica.voters):
        text = f"The {_name(key)} has the id of one that is already part of the set of voters."
        refusal = errors.DUPLICATE_VOTER, text
    if refusal is None and replica.connections.ready_at(key[0], now) > now:
        refusal = errors.REQUEST_TIMED_OUT, f"New {_name(key)} is not ready to receive requests"
    if refusal is not None:
        _answer(replica, event.token, request, *refusal)
        return
    change = replica.role.change = PendingChange(event, now + replica.timeouts.request)
    number = replica.connections.sent(key[0], now)
    # A real Kafka refuses a request without these.
    asked = messages.ApiVersionsRequest(client_software_name="pykafkad", client_software_version=__version__)
    replica.effects.append(Locate(key[0], change.listeners))
    replica.effects.append(Send(key[0], asked, lambda outcome: Answered(key[0], number, asked, outcome)))


def api_versions(replica: RaftReplica, event: Answered, now: float) -> bool:
    """The replica that is to become a voter has said which levels it supports. It must have caught up by now."""
    leader = replica.role
    change = leader.change if replica.is_leader else None
    if change is None or change.offset >= 0 or change.key[0] != event.peer:
        return True
    outcome: Any = event.outcome
    error_code = outcome.error_code if type(outcome) is messages.ApiVersionsResponse else errors.BROKER_NOT_AVAILABLE
    if error_code:
        text = f"Aborted add voter operation since API_VERSIONS returned an error: {errors.message(error_code)}"
        _end(replica, errors.REQUEST_TIMED_OUT, text)
        return False
    levels = next(
        ((each.min_version, each.max_version) for each in outcome.supported_features if each.name == KRAFT_VERSION),
        (0, 0),
    )
    known = leader.observers.get(change.key)
    if not levels[0] <= replica.voter_sets.level <= levels[1]:
        text = (
            f"Aborted add voter operation for {_name(change.key)} since the {KRAFT_VERSION} range (min: {levels[0]}, "
            f"max: {levels[1]}) doesn't support the finalized version {replica.voter_sets.level}"
        )
        _end(replica, errors.INVALID_REQUEST, text)
    elif known is None or not known.is_caught_up(now):
        text = f"Aborted add voter operation for {_name(change.key)} since it is lagging behind"
        _end(replica, errors.REQUEST_TIMED_OUT, text)
    else:
        voters = [*replica.voters, Voter(change.key[0], change.key[1], change.listeners, levels)]
        change.offset = replica.log.end_offset
        replica.append_control([to_record(voters)], now)
        if not change.request.ack_when_committed and not change.is_answered:
            change.is_answered = True
            _answer(replica, change.token, change.request, errors.NONE)
    return True


def remove(replica: RaftReplica, event: Received, now: float) -> None:
    """A voter is to be none any more, which the last one cannot be."""
    request: Any = event.request
    refusal = _may_change(replica, request, "remove")
    key = request.voter_id, request.voter_directory_id
    others = [voter for voter in replica.voters if voter.key != key]
    if refusal is None and not 0 < len(others) < len(replica.voters):
        present = ", ".join(_name(voter.key) for voter in replica.voters)
        refusal = errors.VOTER_NOT_FOUND, f"Cannot remove {_name(key)} from the set of voters: {present}"
    if refusal is not None:
        _answer(replica, event.token, request, *refusal)
        return
    change = replica.role.change = PendingChange(event, now + replica.timeouts.request)
    change.offset = replica.log.end_offset
    replica.append_control([to_record(others)], now)


def committed(replica: RaftReplica) -> None:
    """The high watermark has risen: the change that is under way may be done."""
    change = replica.role.change
    if change is not None and 0 <= change.offset < replica.high_watermark:
        _end(replica, errors.NONE)


def expire(replica: RaftReplica, now: float) -> None:
    """Give up a change that takes too long. What of it is in the log stays there."""
    change = replica.role.change
    if change is not None and now >= change.expires_at:
        _end(replica, errors.REQUEST_TIMED_OUT)


def abandon(replica: RaftReplica, leader: Leader) -> None:
    """This node leads no more, and does not know what becomes of the change."""
    change, leader.change = leader.change, None
    if change is not None and not change.is_answered:
        _answer(replica, change.token, change.request, errors.NOT_LEADER_OR_FOLLOWER)


def _end(replica: RaftReplica, error_code: int, text: str | None = None) -> None:
    change, replica.role.change = replica.role.change, None
    if not change.is_answered:
        _answer(replica, change.token, change.request, error_code, text)


# What voters tell of themselves.


def update(replica: RaftReplica, event: Received, now: float) -> None:
    """A voter tells its endpoints and the levels that it supports, with kraft.version 0 its directory, too."""
    request: Any = event.request
    error_code = _updated(replica, request, now)
    form = messages.UpdateRaftVoterResponse
    leader = form.CurrentLeader(leader_id=replica.leader_id, leader_epoch=replica.epoch, host="", port=0)
    replica.effects.append(Reply(event.token, form(error_code=error_code, current_leader=leader)))


def _updated(replica: RaftReplica, request: Any, now: float) -> int:
    if request.cluster_id is not None and request.cluster_id != replica.cluster_id:
        return errors.INCONSISTENT_CLUSTER_ID
    error_code = replica.leader_error(request.current_leader_epoch)
    if error_code:
        return error_code
    feature = request.k_raft_version_feature
    low, high = feature.min_supported_version, feature.max_supported_version
    endpoints = _endpoints(request)
    if request.voter_id < 0 or request.voter_directory_id == ZERO or not 0 <= low <= high:
        return errors.INVALID_REQUEST
    if not replica.has_own_listener(endpoints):
        return errors.INVALID_REQUEST
    if _is_busy(replica):
        return errors.REQUEST_TIMED_OUT
    leader, level = replica.role, replica.voter_sets.level
    if level and _is_uncommitted(replica):
        return errors.REQUEST_TIMED_OUT
    if not low <= level <= high:
        return errors.INVALID_REQUEST
    updated = Voter(request.voter_id, request.voter_directory_id, endpoints, (low, high))
    known = replica.voters if level else leader.known_voters
    if not any(
        voter.id == updated.id and (not level or voter.directory_id in (ZERO, updated.directory_id)) for voter in known
    ):
        return errors.VOTER_NOT_FOUND
    voters = [updated if voter.id == updated.id else voter for voter in known]
    if level:
        replica.append_control([to_record(voters)], now)
    else:
        # Kraft.version 0 has no place for it in the log. It is there for the upgrade.
        leader.known_voters = voters
    leader.heard_of(updated.key, now)
    return errors.NONE


def upgrade(replica: RaftReplica, event: UpgradeVersion, now: float) -> None:
    """The voters move from the settings into the log. Each must have said that it supports that, and its directory."""
    error_code, text = upgrade_refusal(replica, event.level)
    if not error_code and not event.validate_only and event.level != replica.voter_sets.level:
        version = messages.KRaftVersionRecord(version=0, k_raft_version=event.level)
        replica.append_control([version, to_record(replica.role.known_voters)], now)
    replica.effects.append(Upgraded(event.token, error_code, text))


def upgrade_refusal(replica: RaftReplica, level: int) -> tuple[int, str | None]:
    """Why the voters cannot move into the log now: an error code, and a sentence."""
    if not replica.is_leader:
        return errors.NOT_LEADER_OR_FOLLOWER, None
    present = replica.voter_sets.level
    if level == present:
        return errors.NONE, None
    change = f"Invalid upgrade of {KRAFT_VERSION} from version {present} to {level}"
    if level < present:
        return errors.INVALID_UPDATE_VERSION, f"{change} because the new version is a downgrade"
    if present or not SUPPORTED[KRAFT_VERSION][0] <= level <= SUPPORTED[KRAFT_VERSION][1]:
        return errors.INVALID_UPDATE_VERSION, change
    # A voter without a directory id has not told this leader of itself yet.
    if any(
        voter.directory_id == ZERO or not voter.levels[0] <= level <= voter.levels[1]
        for voter in replica.role.known_voters
    ):
        text = f"Invalid upgrade of {KRAFT_VERSION} to {level} because not all of the voters support it"
        return errors.INVALID_UPDATE_VERSION, text
    return errors.NONE, None
