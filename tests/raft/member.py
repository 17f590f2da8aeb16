"""A replica that a test drives by hand: its clock, what it sends, and what it answers."""

from __future__ import annotations

from random import Random

from pykafkad import effects
from pykafkad.metadata import record_codec
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.voters import Voter, to_record
from pykafkad.raft import events, forms
from pykafkad.raft.replica import RaftReplica, Timeouts
from pykafkad.uuids import ZERO
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch

CLUSTER = "a-cluster"
TIMEOUTS = Timeouts(election=1.0, fetch=2.0, request=2.0, retry_backoff=0.02, election_backoff=1.0, fetch_wait=0.5)


def directory(node_id):
    return b"%016d" % node_id if node_id > 255 else bytes([node_id]) * 16


def batch(base_offset, epoch, count=1, value=b"value"):
    """Records as a leader writes them."""
    return bytes(build_batch([(None, value)] * count, base_offset=base_offset, leader_epoch=epoch))


def endpoints(node_id):
    return [Endpoint("CONTROLLER", f"host-{node_id}", 9000 + node_id)]


def voter_records(voter_ids, level=1):
    """The control records of voters in their first directories."""
    voters = [Voter(each, directory(each), endpoints(each)) for each in voter_ids]
    return [messages.KRaftVersionRecord(version=0, k_raft_version=level), to_record(voters)]


def control_batch(base_offset, epoch, values):
    """Control records as a leader writes them."""
    records = [record_codec.encode(record_codec.control_record(each)) for each in values]
    return bytes(build_batch(records, base_offset=base_offset, leader_epoch=epoch, is_control=True))


class Member:
    """Node 1, of the voters with these ids. With `formatted`, they are in the snapshot that its directory was formatted
    with, and kraft.version is 1."""

    def __init__(
        self,
        voters=(1, 2, 3),
        *,
        node_id=1,
        state_file=None,
        log=(0, 0, ()),
        snapshot=None,
        started=True,
        formatted=False,
        control_records=(),
        directory_id=None,
        **options,
    ):
        self.now = 0.0
        self.machine = RaftReplica(
            node_id,
            directory_id or directory(node_id),
            [] if formatted else [Voter(each, ZERO, []) for each in voters],
            Random(1),
            cluster_id=CLUSTER,
            timeouts=TIMEOUTS,
            state_file=state_file,
            **options,
        )
        if formatted:
            control_records = [*((-1, each) for each in voter_records(voters)), *control_records]
        self.sent = []
        self.replies = []
        self.effects = []
        self.syncs = []
        if started:
            self.step(events.Start(*log, snapshot, control_records))

    def __getattr__(self, name):
        return getattr(self.machine, name)

    def step(self, event):
        """Hand over an event; the effects that it had."""
        made = self.machine.step(event, self.now)
        for each in made:
            if type(each) is effects.Send:
                self.sent.append(each)
            elif type(each) is events.Sync:
                self.syncs.append(each.number)
            elif hasattr(each, "token"):
                self.replies.append(each)
        self.effects += made
        return made

    def of(self, kind):
        """The effects of a kind so far."""
        return [each for each in self.effects if type(each) is kind]

    def sync(self):
        """What is written is on disk."""
        while self.syncs:
            self.step(events.Synced(self.syncs.pop(0)))

    def wait(self):
        """Let time pass until the next timeout."""
        self.now = self.machine.next_deadline()
        return self.step(events.Tick())

    def wait_for(self, state):
        """Let time pass until the machine is in a state."""
        for _ in range(50):
            if self.machine.state == state:
                return
            self.wait()
        raise AssertionError(f"still {self.machine.state}")

    def ask(self, request):
        """What the machine answers a request; None while it waits."""
        before = len(self.replies)
        self.step(events.Received("token", request))
        return self.replies[before] if len(self.replies) > before else None

    def answer(self, peer, response):
        """A peer answers the last request that was sent to it."""
        sent = next(each for each in reversed(self.sent) if each.peer == peer)
        return self.step(sent.then(response))

    def become_leader(self):
        """Win an election."""
        if self.machine.state == "leader":
            self.sync()
            return self
        self.wait_for("prospective")
        for _ in range(2):
            for peer in [voter.id for voter in self.machine.voters if voter.id != self.machine.node_id]:
                self.answer(peer, forms.vote_response(0, -1, self.machine.epoch, granted=True))
        self.sync()
        assert self.machine.state == "leader"
        return self

    def follow(self, leader_id=2, epoch=1):
        """Hear of a leader."""
        self.ask(forms.begin_request(CLUSTER, (self.machine.node_id, ZERO), leader_id, epoch))
        assert self.machine.state == "follower"
        return self

    def fetched(self, records=b"", high_watermark=-1, *, leader_id=2, epoch=None):
        """The leader answers a fetch."""
        response = forms.fetch_response(0, leader_id, epoch or self.machine.epoch, high_watermark)
        response.responses[0].partitions[0].records = records
        self.answer(leader_id, response)
        self.sync()


def vote_request(epoch, last_epoch=0, last_offset=0, *, candidate=2, voter=1, voter_directory=ZERO, pre_vote=False):
    return forms.vote_request(
        CLUSTER, (voter, voter_directory), (candidate, directory(candidate)), epoch, (last_epoch, last_offset),
        pre_vote=pre_vote,
    )  # fmt: skip


def fetch_request(epoch, last_epoch, offset, high_watermark=-1, *, replica=2, max_wait_ms=500):
    return forms.fetch_request(
        CLUSTER, (replica, directory(replica)), epoch, (last_epoch, offset), high_watermark,
        max_wait_ms=max_wait_ms, max_bytes=1000,
    )  # fmt: skip
