"""The disk of a simulated replica: its log, its snapshots and `quorum-state`. A loss of power takes what was not
synced."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections import namedtuple

from pykafkad.metadata import record_codec
from pykafkad.metadata.quorum import parse_state
from pykafkad.raft.events import Snapshot, Start
from pykafkad.wire import messages
from pykafkad.wire.batch import parse_header
from pykafkad.wire.records import iterate_records

# `chain` is a checksum of this batch and all before it. `control` are the messages of a control batch.
Batch = namedtuple("Batch", ("base_offset", "end_offset", "epoch", "data", "chain", "control"))

TRUNCATE = "truncate"


def control_of(data, header):
    """The messages of a control batch; nothing for another batch."""
    if not header.is_control:
        return ()
    return tuple(record_codec.decode(each.key, each.value).value for each in iterate_records(data, header))


def keys_of(messages_of_batch):
    """The voters that control records name, as ids with directory ids; None if they name none."""
    found = None
    for each in messages_of_batch:
        if type(each) is messages.VotersRecord:
            found = frozenset((voter.voter_id, voter.voter_directory_id) for voter in each.voters)
    return found


def snapshot_parts(content):
    """The control records of a snapshot, and what it says besides, as text."""
    header = parse_header(content, 0)
    head, rest = content[: header.size_bytes], content[header.size_bytes :]
    (record,) = iterate_records(rest)
    return control_of(head, header), bytes(record.value)


def split(data, chain):
    """The batches of some bytes that follow a log with that chain."""
    found, position = [], 0
    while position < len(data):
        header = parse_header(data, position)
        end = position + header.size_bytes
        chain = zlib.crc32(data[position:end], chain)
        whole = data[position:end]
        control = control_of(whole, header)
        found.append(Batch(header.base_offset, header.end_offset, header.leader_epoch, whole, chain, control))
        position = end
    return found


class RaftLog:
    """A log in memory: `batches` after a start, which has the chain and the voters of what was before."""

    def __init__(self, start_offset=0, start_epoch=0, start_chain=0, batches=(), start_voters=None):
        self.start_voters = start_voters
        self.start_offset = start_offset
        self.start_epoch = start_epoch
        self.start_chain = start_chain
        self.batches = list(batches)

    @property
    def end_offset(self):
        return self.batches[-1].end_offset if self.batches else self.start_offset

    @property
    def chain(self):
        return self.batches[-1].chain if self.batches else self.start_chain

    def index_of(self, offset):
        """The number of batches that begin before `offset`."""
        return bisect_right(self.batches, offset - 1, key=lambda each: each.base_offset)

    def chain_at(self, offset):
        """The chain of everything before `offset`; None if no batch ends there."""
        if offset == self.start_offset:
            return self.start_chain
        index = self.index_of(offset)
        if index and self.batches[index - 1].end_offset == offset:
            return self.batches[index - 1].chain
        return None

    def voters_before(self, offset):
        """The newest voters before `offset`, None without any, and the offset of their batch."""
        for batch in reversed(self.batches[: self.index_of(offset)]):
            keys = keys_of(batch.control)
            if keys is not None:
                return keys, batch.base_offset
        return self.start_voters, self.start_offset - 1

    def epoch_at(self, offset):
        """The epoch of the batch that ends at `offset`."""
        index = self.index_of(offset)
        return self.batches[index - 1].epoch if index else self.start_epoch

    def truncate(self, end_offset):
        del self.batches[self.index_of(end_offset) :]

    def begin_at(self, offset):
        """Drop what is before `offset`."""
        self.start_epoch, self.start_chain = self.epoch_at(offset), self.chain_at(offset)
        self.start_voters = self.voters_before(offset)[0]
        del self.batches[: self.index_of(offset)]
        self.start_offset = offset

    def copy(self):
        return RaftLog(self.start_offset, self.start_epoch, self.start_chain, self.batches, self.start_voters)


class RaftDisk:
    """`log` is what the process sees, `durable` what a loss of power leaves; `pending` are the writes between them.
    `state` is what is in `state_file`. `formatted` are the control records that it was formatted with."""

    def __init__(self, formatted=()):
        self.formatted = formatted
        self.log = RaftLog(start_voters=keys_of(formatted))
        self.durable = self.log.copy()
        self.pending = []
        self.state_file = None
        self.state = parse_state(None)
        self.snapshot = None
        self.content = self.start_content = b""

    def append(self, data):
        for batch in split(data, self.log.chain):
            assert batch.base_offset == self.log.end_offset, "the shell writes batches without gaps"
            self.log.batches.append(batch)
            self.pending.append(batch)
            yield batch

    def truncate(self, end_offset):
        self.log.truncate(end_offset)
        self.pending.append((TRUNCATE, end_offset))

    def synced(self, count):
        """The oldest `count` pending writes are on disk."""
        for write in self.pending[:count]:
            if type(write) is Batch:
                self.durable.batches.append(write)
            else:
                self.durable.truncate(write[1])
        del self.pending[:count]

    def lose_power(self, random):
        """The last writes may be lost."""
        self.synced(random.randrange(len(self.pending) + 1))
        self.log = self.durable.copy()
        self.pending.clear()

    def synced_end(self):
        """The end of what is on disk and stays in the log; 0 while the log is being cut."""
        return self.durable.end_offset if all(type(each) is Batch for each in self.pending) else 0

    def make_snapshot(self, offset, content, begins_log):
        """A snapshot of what is before `offset`, which is on disk by then."""
        snapshot = Snapshot(offset, self.log.epoch_at(offset), len(content), begins_log=begins_log)
        self.snapshot, self.content = snapshot, content
        if begins_log:
            self.start_content = content
            self.log.begin_at(offset)
            self.durable.begin_at(offset)
        return snapshot

    def store_snapshot(self, end_offset, epoch, content, chain):
        """A fetched snapshot takes the place of the log."""
        self.snapshot, self.content = Snapshot(end_offset, epoch, len(content)), content
        self.start_content = content
        self.log = RaftLog(end_offset, epoch, chain, start_voters=keys_of(snapshot_parts(content)[0]))
        self.durable = self.log.copy()
        self.pending.clear()

    def start_event(self):
        """What the machine is told of the log when it starts. All of it is synced then."""
        self.synced(len(self.pending))
        epochs = []
        for batch in self.log.batches:
            if not epochs or epochs[-1][0] != batch.epoch:
                epochs.append((batch.epoch, batch.base_offset))
        control = [(-1, each) for each in self.formatted]
        if self.snapshot is not None and self.log.start_offset:
            control = [(self.log.start_offset - 1, each) for each in snapshot_parts(self.start_content)[0]]
        for batch in self.log.batches:
            control += enumerate(batch.control, batch.base_offset)
        return Start(self.log.start_offset, self.log.end_offset, epochs, self.snapshot, control)

    def read(self, offset, max_bytes):
        """Whole batches from `offset`, at least one."""
        found = bytearray()
        for batch in self.log.batches[self.log.index_of(offset) :]:
            if found and len(found) + len(batch.data) > max_bytes:
                break
            found += batch.data
        return bytes(found)
