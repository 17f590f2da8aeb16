"""A member of the metadata quorum (KRaft): the leader, the epoch, and the high watermark of the metadata log.

A pure state machine: `step(event, now, now_ms)` returns effects, and `next_deadline()` says when `step(Tick())` is due.
A promise, such as a vote, always follows the `Persist` of `quorum-state` that it depends on. Votes and fetched offsets
of other voters come in as events. A quorum of one voter needs no special case: its own vote is the majority, and its
own durable log is the committed one.

A node that was the leader never continues its old epoch after a restart. Records that were lost because they were not
synced could otherwise be replaced by others with the same offset and epoch. The node begins a new epoch by a pre-vote
and a vote."""

from __future__ import annotations

from types import NoneType

from pykafkad.effects import Append, Persist
from pykafkad.metadata import quorum_states as states, record_codec, voters as voter_set
from pykafkad.metadata.features import NEW_CLUSTER_KRAFT_VERSION
from pykafkad.uuids import ZERO, from_text, to_text
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random
    from typing import Any

STATE_FILE = "__cluster_metadata-0/quorum-state"


class Start:
    """The log has been loaded up to `end_offset`. Its last record was written in `epoch`."""

    __slots__ = ("end_offset", "epoch")

    def __init__(self, end_offset: int, epoch: int) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class Durable:
    """A voter's log is synced up to `end_offset`. For this node that follows a sync, for others their fetches."""

    __slots__ = ("end_offset", "voter_id")

    def __init__(self, voter_id: int, end_offset: int) -> None:
        self.voter_id = voter_id
        self.end_offset = end_offset


class VoteAnswer:
    """Another voter's answer to this node's vote request or pre-vote request in `epoch`."""

    __slots__ = ("epoch", "granted", "pre_vote", "voter_id")

    def __init__(self, voter_id: int, epoch: int, granted: bool, pre_vote: bool) -> None:
        self.voter_id = voter_id
        self.epoch = epoch
        self.granted = granted
        self.pre_vote = pre_vote


class Tick:
    """Time has passed. Timeouts that are due take effect."""

    __slots__ = ()


class Resign:
    """The node stops gracefully."""

    __slots__ = ()


class Quorum:
    """The state of this node in the quorum.

    `state` is one of `quorum_states`. `leader_id` and `voted_id` are -1 for nobody. Records below `high_watermark` are
    committed; it is -1 while unknown. `voters` are those of the newest VotersRecord, or the first voters of a new log.
    """

    __slots__ = (
        "_deadline",
        "_durable",
        "_election_timeout",
        "_epoch_start_offset",
        "_granted",
        "_random",
        "directory_id",
        "epoch",
        "high_watermark",
        "leader_id",
        "node_id",
        "state",
        "voted_directory_id",
        "voted_id",
        "voters",
        "voters_in_log",
    )

    def __init__(
        self,
        node_id: int,
        directory_id: bytes,
        voters: list[voter_set.Voter],
        random: Random,
        *,
        voters_in_log: bool,
        election_timeout: float = 1.0,
        state_file: bytes | None = None,
    ) -> None:
        """`state_file` is the content of `quorum-state`, None on the first start. `voters_in_log` says whether `voters`
        are from the log (`Image.voters`) or are the first voters of a new log."""
        self.node_id = node_id
        self.directory_id = directory_id
        self.voters = voters
        self.voters_in_log = voters_in_log
        self.state = states.UNATTACHED
        self.epoch, self.leader_id, self.voted_id, self.voted_directory_id = parse_state(state_file)
        self.high_watermark = -1
        self._random = random
        self._election_timeout = election_timeout
        self._deadline: float | None = None
        self._granted: set[int] = set()
        self._durable: dict[int, int] = {}
        self._epoch_start_offset = -1

    def next_deadline(self) -> float | None:
        """When `Tick` is due, in monotonic seconds. None while there is no timeout."""
        return self._deadline

    def end_offset(self, voter_id: int) -> int:
        """The offset up to which a voter's log is known to be synced; -1 when it is not known."""
        return self._durable.get(voter_id, -1)

    def step(self, event: object, now: float, now_ms: int) -> list[object]:
        """The effects of an event: `Persist` of the state file, and `Append` of control records."""
        return _STEPS[type(event)](self, event, now)

    def _on_start(self, event: Start, now: float) -> list[object]:
        self._durable[self.node_id] = event.end_offset
        if self.epoch < event.epoch:
            self.epoch, self.leader_id, self.voted_id, self.voted_directory_id = event.epoch, -1, -1, ZERO
        elif self.leader_id == self.node_id:
            # This node was the leader of the epoch. In this state it cannot vote for another leader of that epoch.
            self.state = states.RESIGNED
        if voter_set.majority(self.voters) == 1 and self._is_voter():
            return self._become_prospective(now)
        self._wait(now)
        return []

    def _on_tick(self, event: Tick, now: float) -> list[object]:
        if self._deadline is None or now < self._deadline:
            return []
        if self.state == states.RESIGNED:
            self._move(states.UNATTACHED)
            self._wait(now)
            return []
        if self.state == states.PROSPECTIVE:
            self._move(states.UNATTACHED)
        return self._become_prospective(now)

    def _on_vote(self, event: VoteAnswer, now: float) -> list[object]:
        if event.epoch > self.epoch:
            return self._join_epoch(event.epoch, now)
        asked = states.PROSPECTIVE if event.pre_vote else states.CANDIDATE
        if event.epoch < self.epoch or self.state != asked or not event.granted:
            return []
        return self._count_vote(event.voter_id, now)

    def _on_durable(self, event: Durable, now: float) -> list[object]:
        self._durable[event.voter_id] = event.end_offset
        self._advance_high_watermark()
        return []

    def _on_resign(self, event: Resign, now: float) -> list[object]:
        if self.state == states.LEADER:
            self._move(states.RESIGNED)
            self._deadline = None
        return []

    def _join_epoch(self, epoch: int, now: float) -> list[object]:
        """Move to the higher epoch of another node. Votes and the leader of the old epoch no longer count."""
        self._move(states.UNATTACHED)
        self.epoch, self.leader_id, self.voted_id, self.voted_directory_id = epoch, -1, -1, ZERO
        self._wait(now)
        return [self._persist()]

    def _become_prospective(self, now: float) -> list[object]:
        """Begin a pre-vote: ask whether a vote would be won (KIP-996). It changes no durable state."""
        self._move(states.PROSPECTIVE)
        self._granted = set()
        self._wait(now)
        return self._count_vote(self.node_id, now)

    def _become_candidate(self, now: float) -> list[object]:
        self._move(states.CANDIDATE)
        self.epoch += 1
        self.leader_id, self.voted_id, self.voted_directory_id = -1, self.node_id, self.directory_id
        self._granted = set()
        self._wait(now)
        return [self._persist(), *self._count_vote(self.node_id, now)]

    def _become_leader(self) -> list[object]:
        """Lead the quorum. The epoch begins with control records. Records of older epochs are committed only together
        with them."""
        self._move(states.LEADER)
        self.leader_id, self.voted_id, self.voted_directory_id = self.node_id, -1, ZERO
        self._deadline = None
        self._epoch_start_offset = self._durable[self.node_id]
        self._durable = {self.node_id: self._epoch_start_offset}
        records = [record_codec.control_record(self._leader_change())]
        if not self.voters_in_log:
            records.append(
                record_codec.control_record(
                    messages.KRaftVersionRecord(version=0, k_raft_version=NEW_CLUSTER_KRAFT_VERSION)
                )
            )
            records.append(record_codec.control_record(voter_set.to_record(self.voters)))
            self.voters_in_log = True
        return [self._persist(), Append(record_codec.LOG, records)]

    def _leader_change(self) -> messages.LeaderChangeMessage:
        record = messages.LeaderChangeMessage
        return record(
            version=0,
            leader_id=self.node_id,
            voters=[record.Voter(voter_id=voter.id) for voter in self.voters],
            granting_voters=[record.Voter(voter_id=voter_id) for voter_id in sorted(self._granted)],
        )

    def _count_vote(self, voter_id: int, now: float) -> list[object]:
        self._granted.add(voter_id)
        if len(self._granted & {voter.id for voter in self.voters}) < voter_set.majority(self.voters):
            return []
        return self._become_candidate(now) if self.state == states.PROSPECTIVE else self._become_leader()

    def _advance_high_watermark(self) -> None:
        """Move the high watermark to the offset that a majority of voters has synced, once that is above the start of
        the leader's epoch."""
        if self.state != states.LEADER:
            return
        offsets = sorted((self._durable.get(voter.id, -1) for voter in self.voters), reverse=True)
        offset = offsets[voter_set.majority(self.voters) - 1]
        if offset > self._epoch_start_offset and offset > self.high_watermark:
            self.high_watermark = offset

    def _is_voter(self) -> bool:
        return any(voter.id == self.node_id and voter.directory_id == self.directory_id for voter in self.voters)

    def _wait(self, now: float) -> None:
        """Set the election timeout. It is random, between one and two times the setting, so that two nodes seldom ask
        for votes at the same time. An observer has none: it never asks for votes."""
        self._deadline = now + self._election_timeout * (1 + self._random.random()) if self._is_voter() else None

    def _move(self, state: str) -> None:
        states.check(self.state, state)
        self.state = state

    def _persist(self) -> Persist:
        return Persist(STATE_FILE, format_state(self.epoch, self.leader_id, self.voted_id, self.voted_directory_id))


_STEPS: dict[type, Callable[[Quorum, Any, float], list[object]]] = {
    Start: Quorum._on_start,
    Tick: Quorum._on_tick,
    VoteAnswer: Quorum._on_vote,
    Durable: Quorum._on_durable,
    Resign: Quorum._on_resign,
}


def format_state(epoch: int, leader_id: int, voted_id: int, voted_directory_id: bytes) -> bytes:
    """The content of `quorum-state` in data version 1 (kraft.version 1), as Kafka writes it."""
    return (
        f'{{"leaderId":{leader_id},"leaderEpoch":{epoch},"votedId":{voted_id},'
        f'"votedDirectoryId":"{to_text(voted_directory_id)}","data_version":1}}'
    ).encode()


def format_static_state(epoch: int, leader_id: int, voted_id: int, voter_ids: list[int]) -> bytes:
    """The content of `quorum-state` in data version 0 (kraft.version 0), as Kafka writes it."""
    voters = ",".join(f'{{"voterId":{each}}}' for each in voter_ids)
    return (
        f'{{"clusterId":"","leaderId":{leader_id},"leaderEpoch":{epoch},"votedId":{voted_id},"appliedOffset":0,'
        f'"currentVoters":[{voters}],"data_version":0}}'
    ).encode()


def parse_state(content: bytes | None) -> tuple[int, int, int, bytes]:
    """`(epoch, leader id, voted id, voted directory id)` of `quorum-state` in either data version. Raises ValueError
    for any other content."""
    if content is None:
        return 0, -1, -1, ZERO
    state = _state_as_written(content)
    if state is not None:
        return state
    # Importing it takes as long as a tenth of a start, so only what somebody else wrote is read with it.
    import json

    fields = json.loads(content)
    if type(fields) is not dict:
        raise ValueError("quorum-state is not a JSON object")
    numbers = [fields.get(name, default) for name, default in (("leaderEpoch", 0), ("leaderId", -1), ("votedId", -1))]
    directory = fields.get("votedDirectoryId")
    if any(type(each) is not int for each in numbers) or type(directory) not in (str, NoneType):
        raise ValueError("quorum-state has a field of another type")
    epoch, leader_id, voted_id = numbers
    return epoch, leader_id, voted_id, ZERO if directory is None else from_text(directory)


def _state_as_written(content: bytes) -> tuple[int, int, int, bytes] | None:
    """The fields of content that is byte for byte what `format_state` writes; None for any other."""
    values = [field.partition(":")[2] for field in content.decode().strip("{}").split(",")]
    try:
        leader_id, epoch, voted_id = map(int, values[:3])
        state = epoch, leader_id, voted_id, from_text(values[3].strip('"'))
    except (ValueError, IndexError):
        return None
    return state if format_state(*state) == content else None
