"""A replica of the metadata log: its state, its transitions, and what it does by itself (KIP-595, KIP-996).

A pure state machine. `step(event, now)` returns effects. A promise to others, such as a vote, always follows the
`Persist` of `quorum-state` that it depends on. The rules are those of Kafka's raft module (`KafkaRaftClient`,
`QuorumState` of 4.3), but for six:

* A leader counts its own records only when they are on disk, as it counts those of the others.
* A replica that asks voters for the leader, and learns nothing new, backs off before it asks again.
* An answer that contradicts what is committed here, or who leads the epoch, is ignored; Kafka stops.
* A voter that is being removed asks for votes until it knows that its removal is committed, without one of its own. In
  Kafka two voters, of which the leader has appended its own removal and is gone, never elect anybody: the other needs
  the vote of one with a longer log.
* A leader that is no voter any more resigns as soon as that is committed. In Kafka it stays if the request to remove it
  has timed out before.
* A voter that starts again, and knows who leads the epoch, follows. In Kafka it is a candidate again if it has voted
  for itself in that epoch. As the only voter that is left by then it leads the epoch at once, as the second one."""

from __future__ import annotations

from collections import namedtuple

from pykafkad import errors
from pykafkad.effects import Persist
from pykafkad.metadata import quorum_states as states, record_codec
from pykafkad.metadata.quorum import STATE_FILE, format_state, format_static_state, parse_state
from pykafkad.metadata.voters import Voter, majority, to_record
from pykafkad.raft import answers, description, requests, voter_changes
from pykafkad.raft.connections import Connections
from pykafkad.raft.events import (
    Answered,
    AppendControl,
    Appended,
    Committed,
    Received,
    Resign,
    Snapshot,
    Start,
    Sync,
    Synced,
    Tick,
    UpgradeVersion,
)
from pykafkad.raft.leader import UNKNOWN, Leader
from pykafkad.raft.log_view import LogView
from pykafkad.raft.polls import NEVER, POLLS
from pykafkad.raft.roles import MAX_EPOCH, NOBODY, Candidate, Follower, Nominee, Prospective, Resigned, Unattached
from pykafkad.raft.voter_sets import FORMATTED, VoterSets
from pykafkad.uuids import ZERO
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random
    from typing import Any

    from pykafkad.metadata.brokers import Endpoint

# A step changes the state a few times at most: a lone voter becomes prospective, candidate and leader.
MAX_CHANGES_PER_STEP = 8

Timeouts = namedtuple(
    "Timeouts", ("election", "fetch", "request", "retry_backoff", "election_backoff", "fetch_wait"),
    defaults=(1.0, 2.0, 2.0, 0.02, 1.0, 0.5),
)  # fmt: skip
Timeouts.__doc__ = "Seconds, with Kafka's defaults of `controller.quorum.*`; a fetch waits `fetch_wait` for records."


class RaftReplica:
    """One replica. `epoch`, `leader_id`, `voted_id` and `voted_directory_id` are what `quorum-state` has, NOBODY for
    none. Records before `high_watermark` are committed; it is -1 while unknown. `voters` are those that count now, of
    all in `voter_sets`; `may_lead` says whether this node asks for votes."""

    __slots__ = (
        "_persisted",
        "_sync_number",
        "_sync_offset",
        "_syncing",
        "bootstrap",
        "cluster_id",
        "connections",
        "deadline",
        "doubts",
        "effects",
        "endpoints",
        "epoch",
        "high_watermark",
        "is_voter",
        "joins",
        "key",
        "leader_id",
        "log",
        "may_lead",
        "node_id",
        "random",
        "role",
        "timeouts",
        "voted_directory_id",
        "voted_id",
        "voter_sets",
        "voters",
    )

    def __init__(
        self,
        node_id: int,
        directory_id: bytes,
        voters: list[Voter],
        random: Random,
        *,
        cluster_id: str,
        timeouts: Timeouts | None = None,
        state_file: bytes | None = None,
        bootstrap: Sequence[int] = (),
        endpoints: Sequence[Endpoint] = (),
        joins: bool = False,
    ) -> None:
        """`voters` are those of the settings, which count while the log has none; one without a directory id is known
        by its node id alone. `state_file` is the content of `quorum-state`, None on the first start. `bootstrap` are
        the nodes that are asked for the leader besides the voters. `endpoints` are where the others reach this node,
        the one of the quorum first. With `joins` it becomes a voter by itself."""
        self.node_id = node_id
        self.key = (node_id, directory_id)
        self.voter_sets = VoterSets(voters)
        self.voters = voters
        self.bootstrap = bootstrap
        self.endpoints = list(endpoints)
        self.joins = joins
        self.cluster_id = cluster_id
        self.timeouts = timeouts or Timeouts()
        self.is_voter = self.may_lead = self.is_voter_key(node_id, directory_id)
        self.log = LogView()
        self.role: Any = Unattached(NEVER)
        self.effects: list[object] = []
        self.doubts: list[str] = []
        """What cannot be in the request or the answer of the last step, for the log."""
        self.connections = Connections(self.timeouts.request, self.timeouts.retry_backoff)
        self._persisted = parse_state(state_file)
        self.epoch, self.leader_id, self.voted_id, self.voted_directory_id = self._persisted
        self.high_watermark = UNKNOWN
        self.random = random
        self.deadline = NEVER
        self._syncing = False
        self._sync_number = self._sync_offset = 0

    @property
    def is_leader(self) -> bool:
        """Whether it leads, as far as it knows."""
        return type(self.role) is Leader

    @property
    def state(self) -> str:
        """One of `quorum_states`."""
        return self.role.state  # type: ignore[no-any-return]

    def describe(self, *, version: int, now: float, now_ms: int) -> messages.DescribeQuorumResponse:
        """The answer to DescribeQuorum, at the monotonic time `now` and the time of day `now_ms`."""
        return description.describe(self, version=version, now=now, now_ms=now_ms)

    def next_deadline(self) -> float | None:
        """When `Tick` is due, in monotonic seconds. None while there is no timeout."""
        return None if self.deadline == NEVER else self.deadline

    def step(self, event: object, now: float) -> list[object]:
        """The effects of an event."""
        effects = self.effects = []
        self.doubts = []
        _STEPS[type(event)](self, event, now)
        for _ in range(MAX_CHANGES_PER_STEP):
            if not POLLS[self.role.state](self, now):
                break
        else:
            raise AssertionError(f"the state of replica {self.node_id} changes without end")
        if self.log.synced_offset < self.log.end_offset and not self._syncing:
            self._syncing = True
            self._sync_number += 1
            self._sync_offset = self.log.end_offset
            effects.append(Sync(self._sync_number))
        return effects

    # What the shell tells.

    def _on_start(self, event: Start, now: float) -> None:
        self.log = LogView(event.start_offset, event.end_offset, event.epochs, event.snapshot)
        for offset, message in event.control_records:
            self.voter_sets.added(offset, message)
        self.voters_changed(now)
        if event.snapshot is not None:
            self.high_watermark = event.snapshot.end_offset
        if self.epoch < self.log.last_epoch:
            self.epoch, self.leader_id = self.log.last_epoch, NOBODY
            self.voted_id, self.voted_directory_id = NOBODY, ZERO
            self.role = Unattached(self.election_deadline(now))
        elif self.leader_id == self.node_id:
            # Records that were lost with the power could have others with the same offset and epoch in their place:
            # a leader never continues its epoch after a restart.
            self.role = Resigned(self.election_deadline(now), self.other_voter_ids(), [])
        elif self.leader_id != NOBODY:
            # Also where this node has voted for itself: the voters may be fewer than those that elected the leader, and
            # its vote alone their majority.
            self.role = Follower(self.leader_id, now + self.timeouts.fetch)
        elif self.voted_id == self.node_id and self.may_lead:
            self.role = Candidate(self.election_deadline(now), self._own_vote())
        else:
            self.role = Unattached(self.election_deadline(now))
        self._persist()
        if self.is_voter and len(self.voters) == 1 and self.state != states.CANDIDATE:
            self.become_prospective(now)

    def _on_tick(self, event: Tick, now: float) -> None:
        pass

    def _on_received(self, event: Received, now: float) -> None:
        requests.HANDLERS[type(event.request)](self, event, now)

    def _on_answered(self, event: Answered, now: float) -> None:
        if self.connections.answered(event.peer, event.number):
            if not answers.HANDLERS[type(event.request)](self, event, now):
                self.connections.back_off(event.peer, now)

    def _on_appended(self, event: Appended, now: float) -> None:
        assert self.state == states.LEADER, "only a leader appends records of its own"
        self.log.appended(event.end_offset, self.epoch)
        requests.complete_parked(self, now)

    def _on_synced(self, event: Synced, now: float) -> None:
        self._syncing = False
        self.log.synced_offset = max(self.log.synced_offset, self._sync_offset)
        if self.state == states.LEADER:
            self.update_high_watermark(now)

    def _on_resign(self, event: Resign, now: float) -> None:
        if self.state == states.LEADER:
            self.resign(now)

    def _on_upgrade(self, event: UpgradeVersion, now: float) -> None:
        voter_changes.upgrade(self, event, now)

    def _on_snapshot(self, event: Snapshot, now: float) -> None:
        assert event.end_offset <= self.high_watermark, "a snapshot has committed records only"
        self.log.snapshot = event
        if event.begins_log:
            self.log.pruned(event)
            self.voter_sets.pruned(event.end_offset)

    # Transitions.

    def become(self, role: object) -> None:
        """Change the state. Answers to requests of the earlier one count no more."""
        before, self.role = self.role, role
        states.check(before.state, self.role.state)
        self.connections.reset()
        self._persist()
        if type(before) is Leader:
            requests.refuse_parked(self, before)
            voter_changes.abandon(self, before)

    def join_epoch(self, epoch: int, now: float) -> None:
        """Move to the higher epoch of another node, or of nobody yet. Votes and the leader of the old epoch no longer
        count. An election timeout that runs goes on."""
        role = self.role
        is_running = role.deadline is not None and type(role) is not Follower
        deadline = role.deadline if is_running and not self.has_lost(role) else self.election_deadline(now)
        self.epoch, self.leader_id, self.voted_id, self.voted_directory_id = epoch, NOBODY, NOBODY, ZERO
        self.become(Unattached(deadline))

    def follow(self, leader_id: int, epoch: int, now: float) -> None:
        """Follow the leader of an epoch."""
        if epoch > self.epoch:
            self.voted_id, self.voted_directory_id = NOBODY, ZERO
        self.epoch, self.leader_id = epoch, leader_id
        self.become(Follower(leader_id, now + self.timeouts.fetch))

    def vote_for(self, candidate: tuple[int, bytes], now: float) -> None:
        """Give the epoch's vote to a candidate. It gets the time of an election timeout to win."""
        self.voted_id, self.voted_directory_id = candidate
        self.role = type(self.role)(self.election_deadline(now), *((self._own_vote(),) if self._is_nominee() else ()))
        self._persist()

    def become_prospective(self, now: float) -> None:
        """Begin a pre-vote. It changes nothing durable."""
        self.become(Prospective(self.election_deadline(now), self._own_vote()))

    def become_candidate(self, now: float) -> None:
        self.epoch += 1
        self.leader_id = NOBODY
        self.voted_id, self.voted_directory_id = self.key
        self.become(Candidate(self.election_deadline(now), self._own_vote()))

    def become_leader(self, granted: set[int], now: float) -> None:
        """Lead. The epoch begins with a control record: records of older epochs are committed only together with
        it."""
        self.leader_id, self.voted_id, self.voted_directory_id = self.node_id, NOBODY, ZERO
        self.become(Leader(self.key, self.voters, self.log.end_offset, self.timeouts.fetch, now))
        self.role.known_voters = self._with_own(self.voters)
        record = messages.LeaderChangeMessage
        change = record(
            version=0,
            leader_id=self.node_id,
            voters=[record.Voter(voter_id=voter.id) for voter in self.voters],
            granting_voters=[record.Voter(voter_id=voter_id) for voter_id in sorted(granted)],
        )
        self.append_control([change, *self._voters_of_new_epoch()], now)

    def _voters_of_new_epoch(self) -> list[object]:
        """The records with which a leader writes the voters: those of the formatting, which no log has yet, or those
        with endpoints of its own that are new."""
        sets = self.voter_sets
        is_known = not self.is_voter or self.own_voter() in self.voters
        if not sets.level or (sets.offset > FORMATTED and is_known):
            return []
        voters = to_record(self._with_own(self.voters))
        return [messages.KRaftVersionRecord(version=0, k_raft_version=sets.level), voters]

    def _with_own(self, voters: list[Voter]) -> list[Voter]:
        return [self.own_voter() if voter.id == self.node_id else voter for voter in voters]

    def append_control(self, values: list[object], now: float) -> int:
        """Write control records of this epoch as one batch; the offset of the last. Voters among them count from now
        on."""
        self.effects.append(AppendControl([record_codec.control_record(value) for value in values], self.epoch))
        for offset, value in enumerate(values, self.log.end_offset):
            self.voter_sets.added(offset, value)
        self.log.appended(self.log.end_offset + len(values), self.epoch)
        # Fetches that have waited count for the new voters.
        self.voters_changed(now)
        requests.complete_parked(self, now)
        return self.log.end_offset - 1

    def voters_changed(self, now: float) -> None:
        """The log was changed: from now on the voters are those of the newest set that is left in it."""
        voters = self.voter_sets.voters
        if voters is self.voters:
            return
        self.voters = voters
        self.is_voter = self.is_voter_key(*self.key)
        self._update_may_lead()
        if self.state == states.LEADER:
            self.role.set_voters(voters, now)
            self.update_high_watermark(now)

    def resign(self, now: float) -> None:
        self.become(Resigned(self.election_deadline(now), self.other_voter_ids(), self.role.successors()))

    def learn(self, leader_id: int, epoch: int, now: float) -> bool:
        """Another replica says who leads `epoch`, which is not below this node's; whether that is news."""
        if not self.is_consistent(leader_id, epoch):
            return self.doubted_leader(leader_id, epoch)
        if epoch > self.epoch:
            if leader_id == NOBODY:
                self.join_epoch(epoch, now)
            else:
                self.follow(leader_id, epoch, now)
            return True
        if leader_id != NOBODY and self.leader_id == NOBODY:
            self.follow(leader_id, epoch, now)
            return True
        return False

    def heard(
        self, error_code: int, leader_id: int, epoch: int, now: float, harmless: Sequence[int] = ()
    ) -> bool | None:
        """What every answer says: who leads which epoch. None if the rest of the answer is of use, too; otherwise
        whether the next request may follow at once. Errors among `harmless` are of use."""
        if epoch < self.epoch or error_code == errors.UNKNOWN_LEADER_EPOCH:
            return False
        if epoch > self.epoch or error_code in (errors.FENCED_LEADER_EPOCH, errors.NOT_LEADER_OR_FOLLOWER):
            return self.learn(leader_id, epoch, now)
        if not self.is_consistent(leader_id, epoch):
            return self.doubted_leader(leader_id, epoch)
        self.learn(leader_id, epoch, now)
        return False if error_code and error_code not in harmless else None

    def is_consistent(self, leader_id: int, epoch: int) -> bool:
        """Whether that leader of that epoch goes with what this node knows. Only a voter leads; but a node whose
        voters come from the log may not have the newest of them yet."""
        is_static = not self.voter_sets.level and not self.bootstrap
        if epoch > MAX_EPOCH or (is_static and leader_id != NOBODY and leader_id not in self._voter_ids()):
            return False
        if leader_id == self.node_id:
            return epoch == self.epoch and self.leader_id == self.node_id
        return epoch != self.epoch or NOBODY in (leader_id, self.leader_id) or leader_id == self.leader_id

    def update_high_watermark(self, now: float) -> None:
        """The leader's high watermark follows what a majority has on disk. Whoever waits is told."""
        leader = self.role
        offset = leader.committed_offset(self.log.synced_offset)
        if offset > self.high_watermark or (offset != UNKNOWN and not leader.has_committed):
            leader.has_committed = True
            self.raise_high_watermark(offset)
            voter_changes.committed(self)
            requests.complete_parked(self, now)

    def raise_high_watermark(self, offset: int) -> None:
        """The records before `offset` are committed. The high watermark never falls."""
        if offset > self.high_watermark:
            self.high_watermark = offset
            self._update_may_lead()
            self.effects.append(Committed(offset))

    def doubted(self, reason: str) -> bool:
        """Another node says what cannot be; the answer to whether that is of use."""
        self.doubts.append(reason)
        return False

    def doubted_leader(self, leader_id: int, epoch: int) -> bool:
        """The same, of who leads. A node that has lost its disk does not know that it led."""
        who = "this node" if leader_id == self.node_id else f"node {leader_id}"
        return self.doubted(f"it says that {who} leads epoch {epoch}")

    # Small questions.

    def leader_error(self, epoch: int) -> int:
        """Why this node does not answer as the leader of the epoch."""
        if epoch < self.epoch:
            return errors.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return errors.UNKNOWN_LEADER_EPOCH
        return errors.NONE if self.is_leader else errors.NOT_LEADER_OR_FOLLOWER

    def has_own_listener(self, endpoints: list[Endpoint]) -> bool:
        """Whether a listener of the name of this node's first one is among these: it is the one of the quorum."""
        return not self.endpoints or self.endpoints[0].name in {each.name for each in endpoints}

    def is_log_synced(self) -> bool:
        """Leaders take a fetch, and voters take a request for a vote, as a statement that everything before its offset
        is on disk here. A vote for records that are lost would elect a leader without what is committed."""
        return self.log.synced_offset == self.log.end_offset

    def is_voter_key(self, node_id: int, directory_id: bytes) -> bool:
        """Whether that node with that metadata directory is a voter. One whose directory is not in the set is known by
        its node id alone."""
        return any(voter.id == node_id and voter.directory_id in (ZERO, directory_id) for voter in self.voters)

    def _update_may_lead(self) -> None:
        """Whether this node asks for votes: as a voter, or as one that is removed by what may not be committed."""
        self.may_lead = self.is_voter or any(
            voter.key == self.key for voter in self.voter_sets.may_count(self.high_watermark)
        )

    def _own_vote(self) -> set[int]:
        return {self.node_id} if self.is_voter else set()

    def own_voter(self) -> Voter:
        """This node as a voter, as it is now."""
        return Voter(*self.key, self.endpoints)

    def _voter_ids(self) -> list[int]:
        return [voter.id for voter in self.voters]

    def other_voter_ids(self) -> list[int]:
        return [each for each in self._voter_ids() if each != self.node_id]

    def peers(self) -> list[int]:
        """Whom this node asks who leads."""
        return sorted({*self.other_voter_ids(), *self.bootstrap} - {self.node_id})

    def _is_nominee(self) -> bool:
        return isinstance(self.role, Nominee)

    def has_lost(self, role: object) -> bool:
        """Whether so many voters have refused that the rest is no majority."""
        return isinstance(role, Nominee) and len(self.voters) - len(role.rejected) < majority(self.voters)

    def election_deadline(self, now: float) -> float:
        """Random, between one and two election timeouts from now, so that two nodes seldom ask for votes at the same
        time."""
        timeout: float = self.timeouts.election
        return now + timeout * (1 + self.random.random())

    def _persist(self) -> None:
        """Write `quorum-state` if it has changed. Of two changes with nothing between them the last is written."""
        state = self.epoch, self.leader_id, self.voted_id, self.voted_directory_id
        if state != self._persisted:
            self._persisted = state
            if self.effects and type(self.effects[-1]) is Persist:
                self.effects.pop()
            self.effects.append(Persist(STATE_FILE, self._format(*state)))

    def _format(self, epoch: int, leader_id: int, voted_id: int, voted_directory_id: bytes) -> bytes:
        """`quorum-state` in the form that belongs to the level of kraft.version: with 0 it has no directory ids."""
        if self.voter_sets.level:
            return format_state(epoch, leader_id, voted_id, voted_directory_id)
        return format_static_state(epoch, leader_id, voted_id, self._voter_ids())


_STEPS: dict[type, Callable[[RaftReplica, Any, float], None]] = {
    Start: RaftReplica._on_start,
    Tick: RaftReplica._on_tick,
    Received: RaftReplica._on_received,
    Answered: RaftReplica._on_answered,
    Appended: RaftReplica._on_appended,
    Synced: RaftReplica._on_synced,
    Resign: RaftReplica._on_resign,
    Snapshot: RaftReplica._on_snapshot,
    UpgradeVersion: RaftReplica._on_upgrade,
}
