"""A simulated node: the machine, and the shell that performs what it asks for in the order in which it asks."""

from __future__ import annotations

from collections import deque
from random import Random

from pykafkad import effects
from pykafkad.metadata import quorum_states as states, record_codec
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.voters import Voter
from pykafkad.raft import events
from pykafkad.raft.replica import RaftReplica, Timeouts
from pykafkad.uuids import ZERO
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch
from tests.simulation.raft_disk import RaftDisk, snapshot_parts

CLUSTER = "simulated-cluster-id-0"
TIMEOUTS = Timeouts(
    election=0.5, fetch=1.0, request=0.6, retry_backoff=0.1, election_backoff=0.4, fetch_wait=0.4
)  # fmt: skip
SNAPSHOT_PART_BYTES = 120
LISTENER = "CONTROLLER"


class Token:
    """Where an answer goes."""

    __slots__ = ("node", "number", "request")

    def __init__(self, node, number, request):
        self.node = node
        self.number = number
        self.request = request


class OwnAppend:
    """The leader's shell appends a batch; in the order of the other effects."""

    def __init__(self, data):
        self.data = data


class RaftNode:
    """`applied` is how far its state machine is. What belongs to an earlier `life` is dropped."""

    def __init__(self, world, node_id, voter_ids, *, formatted=(), bootstrap=(), joins=False):
        self.world = world
        self.id = node_id
        self.wipes = 0
        self.port = 1
        self.joins = joins
        self.bootstrap = bootstrap
        self.voters = [Voter(each, ZERO, []) for each in voter_ids]
        self.disk = RaftDisk(formatted)
        self.rate, self.offset = 1.0, node_id * 1000.0
        self.life = 0
        self.machine = None
        self.paused = None
        self.starts = self.cuts = self.loads = 0
        self._reset()

    def _reset(self):
        self.queue = deque()
        self.is_blocked = False
        self.tick_at = None
        self.seen_epoch = 0
        self.seen_high_watermark = -1
        self.applied = 0
        self.incoming = b""
        self.has_new_voters = True

    @property
    def directory_id(self):
        """Another one after each loss of the disk."""
        return bytes([self.id]) * 15 + bytes([self.wipes])

    @property
    def key(self):
        return self.id, self.directory_id

    def voter(self):
        """This node as a voter."""
        return Voter(*self.key, [Endpoint(LISTENER, f"node-{self.id}", self.port)])

    def wipe(self):
        """The disk is lost, and another one takes its place."""
        self.wipes += 1
        self.disk = RaftDisk()

    @property
    def is_up(self):
        return self.machine is not None

    def now(self):
        """What the node's clock says."""
        return self.offset + self.rate * self.world.time

    def set_clock_rate(self, rate):
        """The clock goes faster or slower from now on; it never jumps."""
        self.offset += (self.rate - rate) * self.world.time
        self.rate = rate
        self.tick_at = None

    def start(self):
        """Begin with what is on the disk."""
        self.life += 1
        self.starts += 1
        self._reset()
        self.machine = RaftReplica(
            self.id,
            self.directory_id,
            self.voters,
            Random(self.world.random.getrandbits(32)),
            cluster_id=CLUSTER,
            timeouts=TIMEOUTS,
            state_file=self.disk.state_file,
            bootstrap=self.bootstrap,
            endpoints=self.voter().endpoints,
            joins=self.joins,
        )
        if self.disk.snapshot is not None:
            self.applied = self.seen_high_watermark = self.disk.snapshot.end_offset
        self.step(self.disk.start_event())

    def end(self, *, loses_power):
        """The process is gone; with the power goes what is not synced."""
        if self.is_blocked and self.world.random.random() < 0.5:
            self._finish_blocking()
        self.machine = self.paused = None
        self.life += 1
        if loses_power:
            self.disk.lose_power(self.world.random)

    def step(self, event):
        """Hand an event to the machine, or keep it until the pause ends."""
        if self.paused is not None:
            self.paused.append(event)
            return
        self.world.steps += 1
        before = self.seen_high_watermark
        self.queue += self.machine.step(event, self.now())
        self.world.checkers.stepped(self)
        self.perform()
        if self.seen_high_watermark > before and not self.queue:
            self.world.checkers.committed_by(self)
        if self.has_new_voters and not self.queue:
            self.has_new_voters = False
            self.world.checkers.voters_known(self)
        self.arm()

    def arm(self):
        """See to it that the machine is told when its next timeout is due."""
        deadline = self.machine.next_deadline()
        if deadline is None:
            return
        at = max(self.world.time, (deadline - self.offset) / self.rate + 1e-9)
        if self.tick_at is None or at < self.tick_at:
            self.tick_at = at
            self.world.at(at, self._tick, self.life, at)

    def _tick(self, life, at):
        if life != self.life or at != self.tick_at:
            return
        self.tick_at = None
        deadline = self.machine.next_deadline()
        if deadline is not None and deadline <= self.now():
            self.step(events.Tick())
        else:
            self.arm()

    def resume(self):
        """The pause is over: everything that came meanwhile comes now."""
        waiting, self.paused = self.paused, None
        for event in waiting or ():
            if self.paused is None and self.machine is not None:
                self.step(event)

    # Effects.

    def perform(self):
        """Do what the machine has asked for, up to a write that takes its time."""
        while self.queue and not self.is_blocked:
            effect = self.queue[0]
            if type(effect) in BLOCKING and not (type(effect) is events.StoreSnapshot and not effect.is_last):
                delay = self.world.disk_delay()
                if delay:
                    self.is_blocked = True
                    self.world.at(self.world.time + delay, self._unblock, self.life)
                    return
            self.queue.popleft()
            PERFORM[type(effect)](self, effect)

    def _unblock(self, life):
        if life == self.life:
            self._finish_blocking()
            self.perform()

    def _finish_blocking(self):
        self.is_blocked = False
        effect = self.queue.popleft()
        PERFORM[type(effect)](self, effect)

    def _persist(self, effect):
        self.world.checkers.persisted(self, effect.value)
        self.disk.state_file = effect.value

    def _append_control(self, effect):
        values = [each.value for each in effect.records]
        if type(values[0]) is messages.LeaderChangeMessage:
            self.world.checkers.elected(self, effect.epoch, values[0])
        else:
            self.world.checkers.changes_voters(self, values, effect.epoch)
        self._append(self.batch([record_codec.encode(each) for each in effect.records], effect.epoch, is_control=True))

    def batch(self, records, epoch, *, is_control=False, base_offset=None):
        """A batch at the end of the log."""
        base_offset = self.disk.log.end_offset if base_offset is None else base_offset
        return bytes(build_batch(records, base_offset=base_offset, leader_epoch=epoch, is_control=is_control))

    def _append(self, data):
        for batch in self.disk.append(data):
            self.world.checkers.appended(self, batch)
            if batch.control:
                self.has_new_voters = True

    def propose(self, values):
        """Append records, if this node leads as far as it knows."""
        if self.machine is None or self.paused is not None or self.machine.state != states.LEADER:
            return False
        base_offset, epoch = self.machine.log.end_offset, self.machine.epoch
        records = [(None, b"%d" % value) for value in values]
        self.queue.append(OwnAppend(self.batch(records, epoch, base_offset=base_offset)))
        self.step(events.Appended(base_offset + len(values)))
        return True

    def _truncate(self, effect):
        self.world.checkers.truncated(self, effect.end_offset)
        self.disk.truncate(effect.end_offset)
        self.cuts += 1
        self.has_new_voters = True

    def _sync(self, effect):
        self.world.at(
            self.world.time + self.world.sync_delay(), self._synced, self.life, effect.number, len(self.disk.pending)
        )

    def _synced(self, life, number, count):
        if life == self.life:
            self.disk.synced(count)
            self.step(events.Synced(number))

    def _committed(self, effect):
        self.world.checkers.applied(self, effect.end_offset)

    def _store_snapshot(self, effect):
        self.incoming = self.incoming[: effect.position] + effect.content
        if effect.is_last:
            end_offset, epoch, chain = map(int, snapshot_parts(self.incoming)[1].split()[:3])
            self.world.checkers.loaded(self, effect, end_offset, epoch, chain)
            self.disk.store_snapshot(end_offset, epoch, self.incoming, chain)
            self.applied = end_offset
            self.loads += 1
            self.has_new_voters = True
            self.incoming = b""

    def make_snapshot(self, *, begins_log):
        """Write a snapshot of what is applied, and perhaps drop the log before it."""
        disk = self.disk
        older = disk.snapshot.end_offset if disk.snapshot else 0
        if not self.is_up or self.paused is not None or self.queue or not older < self.applied <= disk.synced_end():
            return
        padding = b" " + b"." * self.world.random.choice((0, 10, 100))
        text = b"%d %d %d" % (self.applied, disk.log.epoch_at(self.applied), disk.log.chain_at(self.applied))
        head = [messages.SnapshotHeaderRecord(version=0), *self.machine.voter_sets.before(self.applied)]
        records = [record_codec.encode(record_codec.control_record(each)) for each in head]
        content = self.batch(records, 0, is_control=True, base_offset=0)
        content += self.batch([(None, text + padding)], 0, base_offset=len(head))
        self.world.checkers.snapshot_made(self, head)
        self.step(disk.make_snapshot(self.applied, content, begins_log))

    # Messages.

    def _send(self, effect):
        self.world.checkers.said(self, effect.request)
        # The number of the request is in the event that a failure becomes.
        number = effect.then(None).number
        self.world.send(self, effect.peer, effect.request, number)

    def _reply(self, effect):
        self._answer(effect.token, effect.message)

    def _reply_with_records(self, effect):
        row = effect.message.responses[0].partitions[0]
        row.records = self.disk.read(effect.offset, self.world.fetch_bytes)
        self._answer(effect.token, effect.message)

    def _reply_with_snapshot(self, effect):
        row = effect.message.topics[0].partitions[0]
        row.unaligned_records = self.disk.content[effect.position : effect.position + SNAPSHOT_PART_BYTES]
        self._answer(effect.token, effect.message)

    def _answer(self, token, message):
        self.world.checkers.said(self, message)
        self.world.checkers.answered(self, token[0].request, message)
        self.world.answer(self, token, message)

    def _own_append(self, effect):
        self._append(effect.data)


BLOCKING = (effects.Persist, events.Truncate, events.StoreSnapshot)

PERFORM = {
    effects.Persist: RaftNode._persist,
    effects.Send: RaftNode._send,
    effects.Reply: RaftNode._reply,
    events.AppendControl: RaftNode._append_control,
    events.AppendFetched: lambda node, effect: node._append(effect.records),
    events.Truncate: RaftNode._truncate,
    events.Sync: RaftNode._sync,
    events.Committed: RaftNode._committed,
    events.ReplyWithRecords: RaftNode._reply_with_records,
    events.ReplyWithSnapshot: RaftNode._reply_with_snapshot,
    events.StoreSnapshot: RaftNode._store_snapshot,
    events.Locate: lambda node, effect: None,
    events.Upgraded: lambda node, effect: None,
    OwnAppend: RaftNode._own_append,
}
