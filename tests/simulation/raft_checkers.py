"""What must hold at any moment in a quorum, whatever fails: looked at after every event that could break it."""

from __future__ import annotations

from bisect import bisect_left

from pykafkad.metadata import quorum_states as states
from pykafkad.metadata.quorum import parse_state
from pykafkad.raft import forms
from pykafkad.wire import messages
from tests.simulation.raft_disk import keys_of


class Broken(AssertionError):
    """A promise of the quorum does not hold."""


# Messages without a partition.
FLAT = {
    messages.ApiVersionsRequest,
    messages.ApiVersionsResponse,
    messages.AddRaftVoterRequest,
    messages.AddRaftVoterResponse,
    messages.RemoveRaftVoterRequest,
    messages.RemoveRaftVoterResponse,
    messages.UpdateRaftVoterRequest,
    messages.UpdateRaftVoterResponse,
}


def epoch_said_by(message):
    """The epoch that a request or an answer says its sender to be in."""
    kind = type(message)
    if kind is messages.UpdateRaftVoterRequest:
        return message.current_leader_epoch
    if kind is messages.UpdateRaftVoterResponse:
        return message.current_leader.leader_epoch
    if kind in FLAT:
        return 0
    row = forms.only_partition(message)
    if row is None:
        return 0
    if kind is messages.FetchResponse:
        return row.current_leader.leader_epoch
    if kind is messages.FetchSnapshotResponse:
        return row.current_leader.leader_epoch
    if kind is messages.VoteRequest:
        return row.replica_epoch
    return row.current_leader_epoch if hasattr(row, "current_leader_epoch") else row.leader_epoch


class Checkers:
    """`committed` are the end offsets of committed batches, each with the chain of the log up to there. `nodes` are
    those of the world; `voters` the ids of kraft.version 0. `lost` are disks that are no more, by the id and the
    directory of their nodes. `changes` counts sets of voters that differ from those before them."""

    def __init__(self, nodes, voters):
        self.nodes = nodes
        self.voters = voters
        self.lost = {}
        self.changes = 0
        self.ever_voters = set()
        self.leaders = {}
        self.entries = {}
        self.committed = {0: 0}
        self.committed_end = 0
        # In which epoch, or before it, the log was committed up to where.
        self.commits = [(0, 0)]
        self.votes = {}

    def stepped(self, node):
        """A machine has taken a step."""
        machine = node.machine
        if machine.epoch < node.seen_epoch:
            raise Broken(f"the epoch of node {node.id} falls from {node.seen_epoch} to {machine.epoch}")
        node.seen_epoch = machine.epoch
        if machine.state == states.LEADER:
            other = self.leaders.setdefault(machine.epoch, node.id)
            if other != node.id:
                raise Broken(f"nodes {other} and {node.id} lead epoch {machine.epoch}")
        if machine.high_watermark < node.seen_high_watermark:
            raise Broken(f"the high watermark of node {node.id} falls to {machine.high_watermark}")
        if machine.state == states.LEADER and machine.high_watermark > node.seen_high_watermark:
            epoch, start_offset = machine.log.epochs[-1]
            if epoch != machine.epoch or start_offset >= machine.high_watermark:
                raise Broken(f"node {node.id} commits records of epoch {epoch} as the leader of {machine.epoch}")
        node.seen_high_watermark = machine.high_watermark
        if machine.high_watermark > machine.log.end_offset:
            raise Broken(f"the high watermark of node {node.id} is behind the end of its log")

    def persisted(self, node, after):
        """A node has replaced `quorum-state`."""
        old, new = node.disk.state, parse_state(after)
        if new[0] < old[0]:
            raise Broken(f"the epoch on the disk of node {node.id} falls from {old[0]} to {new[0]}")
        if new[0] == old[0]:
            if old[1] >= 0 and new[1] != old[1]:
                raise Broken(f"the leader of epoch {old[0]} on the disk of node {node.id} changes")
            if old[2] >= 0 and new[2] >= 0 and new[2:] != old[2:]:
                raise Broken(f"the vote in epoch {old[0]} on the disk of node {node.id} changes")
        node.disk.state = new

    def said(self, node, message):
        """A message leaves a node. What it promises is on the node's disk."""
        epoch = epoch_said_by(message)
        if epoch > node.disk.state[0]:
            raise Broken(f"node {node.id} says that it is in epoch {epoch}, and has {node.disk.state[0]} on its disk")
        if type(message) is messages.VoteRequest and not message.topics[0].partitions[0].pre_vote:
            self._voted(node, epoch, node.id)

    def answered(self, node, request, response):
        """A node answers a request, which may be one for its vote."""
        if type(response) in (messages.AddRaftVoterResponse, messages.RemoveRaftVoterResponse):
            self._acknowledged(node, request, response)
        if type(response) is not messages.VoteResponse:
            return
        asked = request.topics[0].partitions[0]
        rows = response.topics
        if rows and rows[0].partitions[0].vote_granted and not asked.pre_vote:
            self._voted(node, asked.replica_epoch, asked.replica_id)

    def _voted(self, node, epoch, candidate):
        other = self.votes.setdefault((node.id, epoch), candidate)
        if other != candidate:
            raise Broken(f"node {node.id} votes for {other} and for {candidate} in epoch {epoch}")
        on_disk = node.disk.state
        if on_disk[0] == epoch and on_disk[2] != candidate:
            raise Broken(f"node {node.id} votes for {candidate} in epoch {epoch}, and has {on_disk} on its disk")

    def appended(self, node, batch):
        """Log matching: a batch with the same end and epoch stands at the end of the same log everywhere."""
        chain = self.entries.setdefault((batch.end_offset, batch.epoch), batch.chain)
        if chain != batch.chain:
            raise Broken(f"another log before offset {batch.end_offset} of epoch {batch.epoch} at node {node.id}")
        if keys_of(batch.control) is not None:
            self._voters_appended(node, batch)

    def _voters_appended(self, node, batch):
        """Two sets of voters that follow each other differ by one voter, so that any two majorities have one in
        common."""
        before, after = node.disk.log.voters_before(batch.base_offset)[0], keys_of(batch.control)
        self.ever_voters |= after
        if before is None:
            # The voters of the settings. Their directories become known.
            if self.voters and {each[0] for each in after} != self.voters:
                raise Broken(f"node {node.id} goes from voters {sorted(self.voters)} to {after}")
        elif len(before ^ after) > 1 or not after:
            raise Broken(f"node {node.id} goes from voters {before} to {after}")

    def changes_voters(self, node, values, epoch):
        """A leader appends other voters: those before them are committed, and something of its epoch is."""
        log = node.disk.log
        before, offset = log.voters_before(log.end_offset)
        after = keys_of(values)
        if before is None or before == after:
            return
        self.changes += 1
        start = next((each.base_offset for each in log.batches if each.epoch == epoch), log.end_offset)
        if offset >= self.committed_end or (start >= self.committed_end and start > log.start_offset):
            raise Broken(
                f"node {node.id} appends voters {after} in epoch {epoch}, which begins at {start}, after those at "
                f"{offset}, with {self.committed_end} committed"
            )

    def _acknowledged(self, node, request, response):
        """A voter has been added or removed: that is committed."""
        kind = type(request)
        if response.error_code or (kind is messages.AddRaftVoterRequest and not request.ack_when_committed):
            return
        key = request.voter_id, request.voter_directory_id
        if key not in self.ever_voters:
            raise Broken(f"node {node.id} acknowledges a change of {key}, which was never a voter")
        keys, _ = node.disk.log.voters_before(min(self.committed_end, node.disk.log.end_offset))
        if (key in keys) != (kind is messages.AddRaftVoterRequest):
            raise Broken(f"node {node.id} acknowledges a change of voter {key}, and {keys} are committed")

    def snapshot_made(self, node, head):
        """The voters in a snapshot are those of the log before its end."""
        keys = node.disk.log.voters_before(node.applied)[0]
        if keys_of(head) != keys:
            raise Broken(f"node {node.id} makes a snapshot at {node.applied} with voters {keys_of(head)}, not {keys}")

    def committed_by(self, node):
        """A leader has raised the high watermark: a majority of the newest voters in its log has that on disk."""
        end_offset = node.machine.high_watermark
        log = node.disk.log
        if node.machine.state != states.LEADER or log.end_offset < end_offset:
            return
        in_log, offset = log.voters_before(log.end_offset)
        if in_log and node.key not in in_log and offset < end_offset:
            raise Broken(f"node {node.id} leads on, and its removal at {offset} is committed")
        keys = in_log or {(each, None) for each in self.voters}
        chain = log.chain_at(end_offset)
        disks = {**self.lost, **{each.key: each.disk.durable for each in self.nodes}}
        disks |= {(each.id, None): each.disk.durable for each in self.nodes}
        holders = [key for key in keys if key in disks and _has(disks[key], end_offset, chain)]
        if len(holders) * 2 <= len(keys):
            raise Broken(f"node {node.id} commits {end_offset}, which is on the disks of {holders} only of {set(keys)}")

    def truncated(self, node, end_offset):
        """A log was cut: nothing that the node had applied goes."""
        if end_offset < node.applied:
            raise Broken(f"node {node.id} cuts at {end_offset} what it applied up to {node.applied}")

    def voters_known(self, node):
        """The voters that count for a machine are the newest in its log."""
        log = node.disk.log
        in_log = log.voters_before(log.end_offset)[0]
        in_machine = {voter.key for voter in node.machine.voters}
        if in_log is not None and in_machine != in_log:
            raise Broken(f"node {node.id} takes {in_machine} for the voters, and its log has {set(in_log)}")

    def agree(self, offset):
        """At the end all have the same voters."""
        logs = [each.disk.log for each in self.nodes]
        found = {log.voters_before(offset)[0] for log in logs if log.start_offset <= offset}
        if len(found) > 1:
            raise Broken(f"before {offset} the voters are {found}")

    def elected(self, node, epoch, change):
        """Leader completeness: a leader has all that was committed in earlier epochs. One that learns late of its
        election does not have what others have committed meanwhile. A majority of voters has elected it."""
        voters, granting = ({each.voter_id for each in rows} for rows in (change.voters, change.granting_voters))
        if not granting <= voters or len(granting) * 2 <= len(voters):
            raise Broken(f"node {node.id} is elected in epoch {epoch} by {granting} of {voters}")
        if node.id not in self.voters and node.key not in self.ever_voters:
            raise Broken(f"node {node.id} leads epoch {epoch}, and was never a voter")
        log = node.disk.log
        index = bisect_left(self.commits, epoch, key=lambda each: each[0])
        end = self.commits[index - 1][1] if index else 0
        if log.start_offset <= end and log.chain_at(end) != self.committed[end]:
            raise Broken(f"node {node.id} leads epoch {epoch} without what is committed up to {end}")

    def applied(self, node, end_offset):
        """A node applies what is committed: the same everywhere."""
        log = node.disk.log
        for batch in log.batches[log.index_of(node.applied) :]:
            if batch.end_offset > end_offset:
                break
            if batch.end_offset > self.committed_end:
                self.committed[batch.end_offset] = batch.chain
                self.committed_end = batch.end_offset
                self.commits.append((max(node.machine.epoch, self.commits[-1][0]), batch.end_offset))
            elif self.committed.get(batch.end_offset) != batch.chain:
                raise Broken(f"node {node.id} applies something else before {batch.end_offset} than others did")
            node.applied = batch.end_offset
        if node.applied != end_offset:
            raise Broken(f"node {node.id} is to apply up to {end_offset} and has a log up to {log.end_offset}")

    def loaded(self, node, effect, end_offset, epoch, chain):
        """A node has fetched a whole snapshot."""
        if (effect.end_offset, effect.epoch) != (end_offset, epoch) or self.committed.get(end_offset) != chain:
            raise Broken(f"node {node.id} loads a snapshot at {end_offset} that is none of what is committed")
        if end_offset < node.applied:
            raise Broken(f"node {node.id} loads a snapshot at {end_offset} and has applied up to {node.applied}")


def _has(log, offset, chain):
    return log.start_offset > offset or log.chain_at(offset) == chain
