"""What a replica does with the answers to its own requests.

Each function returns whether the next request may follow at once; otherwise the connection backs off."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError, ProtocolError
from pykafkad.metadata import quorum_states as states
from pykafkad.raft import control_records, forms, membership, voter_changes
from pykafkad.raft.events import Answered, AppendFetched, Snapshot, StoreSnapshot, Truncate
from pykafkad.wire import batch, messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.raft.replica import RaftReplica
    from pykafkad.raft.roles import Follower

# Kafka's positions in a snapshot are of 32 bits.
MAX_SNAPSHOT_BYTES = 2**31 - 1


def _partition(event: Answered, expected: type) -> Any:
    """The partition of the answer; None for a failure of any kind."""
    outcome: Any = event.outcome
    is_answer = type(outcome) is expected
    return forms.only_partition(outcome) if is_answer and not outcome.error_code else None


def vote(replica: RaftReplica, event: Answered, now: float) -> bool:
    """A voter says whether it votes for this node. One that knows no pre-votes (KIP-996; Kafka before 4.0) cannot be
    asked for them: then the epoch begins without, as in Kafka."""
    if replica.state == states.PROSPECTIVE and _knows_no_pre_votes(event):
        replica.become_candidate(now)
        return True
    row = _partition(event, messages.VoteResponse)
    if row is None:
        return False
    handled = replica.heard(row.error_code, row.leader_id, row.leader_epoch, now)
    if handled is not None:
        return handled
    request: Any = event.request
    asked = states.PROSPECTIVE if forms.only_partition(request).pre_vote else states.CANDIDATE
    if replica.state == asked:
        replica.role.recorded(event.peer, row.vote_granted)
    return True


def _knows_no_pre_votes(event: Answered) -> bool:
    outcome: Any = event.outcome
    return type(outcome) is messages.VoteResponse and outcome.error_code == errors.UNSUPPORTED_VERSION


def begin_quorum_epoch(replica: RaftReplica, event: Answered, now: float) -> bool:
    """A voter knows who leads."""
    row = _partition(event, messages.BeginQuorumEpochResponse)
    if row is None:
        return False
    return replica.heard(row.error_code, row.leader_id, row.leader_epoch, now) is not False


def end_quorum_epoch(replica: RaftReplica, event: Answered, now: float) -> bool:
    """A voter knows that this node has resigned."""
    row = _partition(event, messages.EndQuorumEpochResponse)
    if row is None:
        return False
    handled = replica.heard(row.error_code, row.leader_id, row.leader_epoch, now)
    if handled is None and replica.state == states.RESIGNED and event.peer in replica.role.unacknowledged:
        replica.role.unacknowledged.remove(event.peer)
    return handled is not False


def fetch(replica: RaftReplica, event: Answered, now: float) -> bool:
    """Records; or a cut of this log; or the snapshot that takes its place."""
    row = _partition(event, messages.FetchResponse)
    if row is None:
        return False
    leader = row.current_leader
    handled = replica.heard(row.error_code, leader.leader_id, leader.leader_epoch, now)
    role = replica.role
    if handled is not None:
        return handled
    if replica.state != states.FOLLOWER or role.leader_id != event.peer:
        # Nothing new of the leader, which may be who has answered, asked by another of its names.
        return False
    if row.diverging_epoch.epoch >= 0:
        is_sound = _truncate(replica, row.diverging_epoch, now)
    elif row.snapshot_id.epoch >= 0 and row.snapshot_id.end_offset >= 0:
        is_sound = row.snapshot_id.end_offset >= replica.high_watermark
        if not is_sound:
            replica.doubted("its snapshot ends before what is committed")
        else:
            role.begin_snapshot(Snapshot(row.snapshot_id.end_offset, row.snapshot_id.epoch, 0))
    else:
        is_sound = _append(replica, row.records or b"", now)
        replica.raise_high_watermark(min(row.high_watermark, replica.log.end_offset))
    if is_sound:
        role.heard_of_leader(now + replica.timeouts.fetch)
    return is_sound


def _truncate(replica: RaftReplica, diverging: Any, now: float) -> bool:
    """Cut what the leader does not have, and with it voters that count no more. What is committed is never cut,
    whatever a leader says."""
    offset = replica.log.truncation_offset(diverging.epoch, diverging.end_offset)
    if offset < max(replica.high_watermark, replica.log.start_offset):
        return replica.doubted(f"its log differs before {offset}, and more than that is committed")
    replica.log.truncated(offset)
    replica.voter_sets.truncated(offset)
    replica.voters_changed(now)
    replica.effects.append(Truncate(offset))
    return True


def _append(replica: RaftReplica, records: bytes | memoryview, now: float) -> bool:
    """Append the whole batches that continue the log. Whether all of them do. Voters among them count at once."""
    view = memoryview(records)
    position, is_sound = 0, True
    while is_sound and len(view) - position >= batch.HEADER_SIZE_BYTES:
        end = position + batch.parse_header(view, position).size_bytes
        if end > len(view):
            break
        try:
            header = batch.validate(view[position:end])
            control = list(control_records.in_batch(view[position:end])) if header.is_control else []
        except (KafkaError, ProtocolError):
            is_sound = False
            break
        is_sound = (
            header.base_offset == replica.log.end_offset < header.end_offset
            and replica.log.last_epoch <= header.leader_epoch <= replica.epoch
        )
        if is_sound:
            replica.log.appended(header.end_offset, header.leader_epoch)
            for offset, message in control:
                replica.voter_sets.added(offset, message)
            position = end
    if position:
        replica.effects.append(AppendFetched(bytes(view[:position]), replica.log.end_offset))
        replica.voters_changed(now)
    return is_sound or replica.doubted("it sends batches that are damaged or do not continue the log")


def _read_head(role: Follower, content: bytes | memoryview) -> bool:
    """Whether the beginning of a snapshot is made of batches; it has the voters."""
    try:
        role.head.add(content)
    except (KafkaError, ProtocolError):
        return False
    return True


def fetch_snapshot(replica: RaftReplica, event: Answered, now: float) -> bool:
    """A part of the snapshot that takes the place of the log."""
    row = _partition(event, messages.FetchSnapshotResponse)
    if row is None:
        return False
    leader = row.current_leader
    role = replica.role
    if row.error_code in (errors.SNAPSHOT_NOT_FOUND, errors.POSITION_OUT_OF_RANGE):
        if replica.state == states.FOLLOWER and leader.leader_epoch == replica.epoch:
            role.snapshot = None
            role.heard_of_leader(now + replica.timeouts.fetch)
            return True
    handled = replica.heard(row.error_code, leader.leader_id, leader.leader_epoch, now)
    if handled is not None or replica.state != states.FOLLOWER:
        return handled is not False
    wanted = role.snapshot
    content = row.unaligned_records
    end = role.position + len(content)
    if (
        wanted is None
        or (row.snapshot_id.end_offset, row.snapshot_id.epoch) != (wanted.end_offset, wanted.epoch)
        or row.position != role.position
        or not role.position < end <= row.size <= MAX_SNAPSHOT_BYTES
        or not _read_head(role, content)
    ):
        role.snapshot = None
        return replica.doubted("it sends a part of a snapshot that does not fit, or too large a snapshot")
    is_last = end == row.size
    replica.effects.append(
        StoreSnapshot(wanted.end_offset, wanted.epoch, role.position, bytes(content), is_last=is_last)
    )
    role.position = end
    if is_last:
        role.snapshot = None
        replica.log.replaced(Snapshot(wanted.end_offset, wanted.epoch, row.size))
        replica.voter_sets.replaced(role.head.messages, wanted.end_offset)
        replica.voters_changed(now)
        replica.raise_high_watermark(wanted.end_offset)
    role.heard_of_leader(now + replica.timeouts.fetch)
    return True


HANDLERS: dict[type, Callable[[RaftReplica, Answered, float], bool]] = {
    messages.VoteRequest: vote,
    messages.BeginQuorumEpochRequest: begin_quorum_epoch,
    messages.EndQuorumEpochRequest: end_quorum_epoch,
    messages.FetchRequest: fetch,
    messages.FetchSnapshotRequest: fetch_snapshot,
    messages.ApiVersionsRequest: voter_changes.api_versions,
    messages.AddRaftVoterRequest: membership.changed,
    messages.RemoveRaftVoterRequest: membership.changed,
    messages.UpdateRaftVoterRequest: membership.updated,
}
