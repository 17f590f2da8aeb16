"""A quorum of up to five voters and some observers in one process, from one seed: virtual time, a network that delays,
loses and doubles messages, disks that forget or are lost, clocks that drift, nodes that are killed and paused, and
administrators who add and remove voters.

Faults of a kind that is drawn for each seed happen for some seconds. Then everything heals, and the quorum must go on:
new records reach every node."""

from __future__ import annotations

import heapq
from random import Random

from pykafkad.metadata import quorum_states as states
from pykafkad.metadata.voters import to_record
from pykafkad.raft import events, forms
from pykafkad.wire import messages
from tests.simulation.raft_checkers import Broken, Checkers
from tests.simulation.raft_disk import RaftDisk
from tests.simulation.raft_node import CLUSTER, RaftNode, Token

FAULT_SECONDS = 6.0
HEALED_SECONDS = 30.0
MAX_STEPS = 60_000

FAULTS = (
    "kill",
    "power",
    "pause",
    "cut",
    "one-way",
    "isolate",
    "clock",
    "resign",
    "blackout",
    "depose",
    "wipe",
    "move",
    "add",
    "remove",
)

# The voters are those of the settings; or these become those of the log; or those of the log are there from the
# beginning.
STATIC, UPGRADED, FORMATTED = "static", "upgraded", "formatted"

# What makes a run harder besides. Each can be left out, as each of the faults.
CONDITIONS = ("loss", "doubling", "tail", "slow_disk", "snapshot_every", "encodes")

VERSIONS = {
    "Vote": 2,
    "BeginQuorumEpoch": 1,
    "EndQuorumEpoch": 1,
    "Fetch": 18,
    "FetchSnapshot": 1,
    "ApiVersions": 4,
    "AddRaftVoter": 1,
    "RemoveRaftVoter": 0,
    "UpdateRaftVoter": 0,
}

CHANGES = (messages.AddRaftVoterRequest, messages.RemoveRaftVoterRequest)


class RaftWorld:
    """One run. `checkers` raise `Broken` when a promise does not hold. `without` names what is left out of it."""

    def __init__(self, seed, without=()):
        self.random = random = Random(seed)
        self.time = 0.0
        self.steps = 0
        self._events = []
        self._order = 0
        voter_ids = list(range(1, 1 + random.choice((1, 2, 3, 3, 3, 3, 4, 5, 5))))
        observer_ids = list(range(11, 11 + random.choice((0, 0, 1, 2))))
        self.kind = random.choice((STATIC, UPGRADED, FORMATTED, FORMATTED))
        self.nodes = []
        self.checkers = Checkers(self.nodes, set() if self.kind == FORMATTED else set(voter_ids))
        self._populate(voter_ids, observer_ids)
        self.by_id = {node.id: node for node in self.nodes}
        self.cut = set()
        # A quarter of the seeds loses and doubles no message.
        is_calm = random.random() < 0.25
        self.loss = 0.0 if is_calm else random.choice((0.0, 0.01, 0.05, 0.2))
        self.doubling = 0.0 if is_calm else random.choice((0.0, 0.02, 0.1))
        self.delay = random.choice((0.001, 0.005, 0.03))
        self.tail = random.choice((0.0, 0.01, 0.1))
        self.slow_disk = random.choice((0.0, 0.002, 0.03))
        self.slow_sync = random.choice((0.001, 0.01, 0.1))
        self.fetch_bytes = random.choice((100, 100, 1_000, 100_000))
        self.encodes = random.choice((0.0, 0.0, 0.1))
        self.faults = [each for each in FAULTS if random.random() < 0.4]
        self.fault_every = random.choice((0.2, 0.5, 1.0))
        self.propose_every = random.choice((0.03, 0.1, 0.3))
        self.snapshot_every = random.choice((0.1, 0.5, 0.0))
        self.is_healed = False
        self.wiped_voters = 0
        self.goal = None
        self._value = 0
        if random.random() < 0.5:
            for node in self.nodes:
                node.rate = random.uniform(0.7, 1.4)
        self._leave_out(without)

    def _populate(self, voter_ids, observer_ids):
        """Make the nodes. Those of a quorum whose voters are in the log may join it by themselves."""
        everybody = voter_ids + observer_ids
        is_formatted = self.kind == FORMATTED
        for each in everybody:
            node = RaftNode(
                self,
                each,
                [] if is_formatted else voter_ids,
                bootstrap=[] if self.kind == STATIC else everybody,
                joins=self.kind != STATIC and self.random.random() < 0.4,
            )
            self.nodes.append(node)
        if is_formatted:
            voters = to_record([node.voter() for node in self.nodes if node.id in voter_ids])
            formatted = (messages.KRaftVersionRecord(version=0, k_raft_version=1), voters)
            for node in self.nodes:
                if node.id in voter_ids:
                    node.disk = RaftDisk(formatted)
                    self.checkers.ever_voters.add(node.key)

    def _leave_out(self, names):
        """Run without some of `FAULTS` and `CONDITIONS`, to see what a failure needs."""
        self.faults = [each for each in self.faults if each not in names]
        for name in CONDITIONS:
            if name in names:
                setattr(self, name, 0.0)
        if "drift" in names:
            for node in self.nodes:
                node.rate = 1.0

    # Time.

    def at(self, time, do, *arguments):
        """Do something at a time."""
        self._order += 1
        heapq.heappush(self._events, (time, self._order, do, arguments))

    def run(self):
        """The whole run. Raises Broken."""
        for node in self.nodes:
            self.at(self.random.random() * 0.1, self._start, node)
        self.at(0.3, self._propose)
        if self.snapshot_every:
            self.at(0.3, self._snapshot)
        if self.kind != STATIC:
            self.at(0.5, self._administer)
        if self.kind == UPGRADED:
            self.at(FAULT_SECONDS * self.random.random(), self._upgrade)
        if self.faults:
            self.at(self.random.random(), self._fault)
        self.at(FAULT_SECONDS, self._heal)
        pending = self._events
        while pending:
            self.time, _, do, arguments = heapq.heappop(pending)
            do(*arguments)
            if self.is_healed:
                if self.goal is not None and all(node.applied >= self.goal for node in self.nodes):
                    self.checkers.agree(self.goal)
                    return
                if self.time > FAULT_SECONDS + HEALED_SECONDS:
                    raise Broken(
                        f"nothing new is applied everywhere {HEALED_SECONDS} s after healing: {self.picture()}"
                    )
            if self.steps > MAX_STEPS:
                raise Broken(f"more than {MAX_STEPS} steps: {self.picture()}")

    def picture(self):
        """The nodes, for a message."""
        return ", ".join(
            f"{node.id}: {node.machine.state} of {node.machine.epoch} applied {node.applied}"
            if node.is_up
            else f"{node.id}: down"
            for node in self.nodes
        )

    # The network.

    def send(self, node, peer, request, number):
        """A request goes to a peer."""
        other = self.by_id.get(peer)
        if other is None:
            # Somebody has told a lie.
            return
        token = Token(node, number, request)
        request = self._over_the_wire(request)
        for delay in self._delays(node, other):
            self.at(self.time + delay, self._arrives, other, token, node.life, request)

    def _arrives(self, other, token, life, request):
        if type(request) in CHANGES and not self._is_wise(other, request):
            return
        if other.is_up and type(request) is messages.ApiVersionsRequest:
            feature = messages.ApiVersionsResponse.SupportedFeatureKey(
                name="kraft.version", min_version=0, max_version=1
            )
            self.answer(other, (token, life), messages.ApiVersionsResponse(supported_features=[feature]))
        elif other.is_up:
            other.step(events.Received((token, life), request))
        elif self.random.random() < 0.5:
            # The connection is refused.
            self._answered(other, token, life, None)

    def answer(self, node, tagged, response):
        """The answer goes back."""
        token, life = tagged
        if token.node is None:
            # An administrator has asked.
            return
        for delay in self._delays(node, token.node):
            self.at(self.time + delay, self._answered, node, token, life, self._over_the_wire(response))

    def _answered(self, node, token, life, response):
        asker = token.node
        if asker is not None and asker.life == life:
            asker.step(events.Answered(node.id, token.number, token.request, response))

    def _delays(self, one, other):
        """When a message arrives: once, twice or never."""
        random = self.random
        if (one.id, other.id) in self.cut or (self.loss and random.random() < self.loss):
            return ()
        delay = self.delay * (0.5 + random.random())
        if self.tail and random.random() < 0.1:
            delay += random.expovariate(1 / self.tail)
        if self.doubling and random.random() < self.doubling:
            return delay, delay + random.expovariate(5)
        return (delay,)

    def _over_the_wire(self, message):
        """Some messages are encoded and decoded."""
        if not self.encodes or self.random.random() > self.encodes:
            return message
        kind = type(message)
        name = kind.__name__.removesuffix("Request").removesuffix("Response")
        chunks = [bytearray()]
        messages.encoder(kind, VERSIONS[name])(message, chunks)
        return messages.decoder(kind, VERSIONS[name])(memoryview(b"".join(chunks)), 0)[0]

    # Disks.

    def disk_delay(self):
        """How long a small file takes; 0 for at once."""
        return self.random.expovariate(1 / self.slow_disk) if self.slow_disk else 0.0

    def sync_delay(self):
        return self.random.expovariate(1 / self.slow_sync)

    # What happens by itself.

    def _start(self, node):
        if not node.is_up:
            node.start()

    def _propose(self):
        """Whoever thinks that it leads gets records."""
        for node in self.nodes:
            if self.random.random() < 0.8:
                count = self.random.choice((1, 1, 2, 3))
                self._value += count
                node.propose(range(self._value - count, self._value))
        self.at(self.time + self.random.expovariate(1 / self.propose_every), self._propose)

    def _fault(self):
        if self.is_healed:
            return
        kind = self.random.choice(self.faults)
        _FAULTS[kind](self, self.random.choice(self.nodes), self.random.expovariate(1 / 0.7))
        self.at(self.time + self.random.expovariate(1 / self.fault_every), self._fault)

    def _end(self, node, seconds, *, loses_power):
        if node.is_up:
            node.end(loses_power=loses_power)
            self.at(self.time + seconds, self._start, node)

    def _wipe(self, _, seconds):
        """A node begins with an empty disk. A voter of the settings must not: it is still a voter then, and others
        count on what it had. Of the other voters most remain."""
        nodes = [node for node in self.nodes if node.is_up and self._may_lose(node)]
        if nodes:
            node = self.random.choice(nodes)
            self.wiped_voters += node.machine.is_voter
            self._end(node, seconds, loses_power=True)
            self.checkers.lost[node.key] = node.disk.durable
            node.wipe()

    def _may_lose(self, victim):
        """Whether the quorum goes on without this disk: a majority of every set of voters that may count has its
        disks."""
        if victim.id in self.checkers.voters or victim.wipes > 200:
            return False
        for node in self.nodes:
            machine = node.machine
            change = getattr(machine.role, "change", None) if machine else None
            if change is not None and change.key == victim.key:
                return False
            log = node.disk.log
            newest, offset = log.voters_before(log.end_offset)
            older, _ = log.voters_before(offset)
            in_machine = {voter.key for voter in machine.voters} if machine else None
            if not all(self._is_alive(keys, victim.key) for keys in (newest, older, in_machine) if keys):
                return False
        return True

    def _is_alive(self, keys, without=None):
        """Whether most of these voters have their disks."""
        return len([each for each in keys if each not in self.checkers.lost and each != without]) * 2 > len(keys)

    # Administrators.

    def _is_wise(self, leader, request):
        """Whether the request leaves a quorum that can go on: one does not wait for the disks that are lost."""
        key = request.voter_id, request.voter_directory_id
        if not leader.is_up or not leader.machine.is_leader:
            return True
        keys = _keys(leader)
        if type(request) is messages.RemoveRaftVoterRequest:
            return key not in keys or self._is_alive(keys - {key})
        return key not in self.checkers.lost and self._is_alive(keys | {key})

    def _leader(self):
        """Who thinks that it leads."""
        return next((node for node in self.nodes if node.is_up and node.machine.is_leader), None)

    def _ask(self, leader, request):
        self.at(self.time + self.delay, self._arrives, leader, Token(None, 0, request), 0, self._over_the_wire(request))

    def _administer(self):
        """Voters are added and removed more often than disks are lost."""
        kinds = [each for each in ("add", "remove") if each in self.faults]
        if kinds and not self.is_healed:
            _FAULTS[self.random.choice(kinds)](self, None, 0.0)
            self.at(self.time + self.random.expovariate(1 / 0.4), self._administer)

    def _add(self, *_):
        leader = self._leader()
        others = [] if leader is None else [each for each in self.nodes if each.key not in _keys(leader)]
        if others:
            node = self.random.choice(others)
            ack_when_committed = self.random.random() < 0.5
            self._ask(
                leader, forms.add_voter_request(CLUSTER, node.voter(), 1000, ack_when_committed=ack_when_committed)
            )

    def _remove(self, *_):
        leader = self._leader()
        if leader is not None:
            # Each second time itself.
            voters = leader.machine.voters
            own = [voter for voter in voters if voter.id == leader.id]
            voter = self.random.choice(own if own and self.random.random() < 0.5 else voters)
            # Now and then in a directory that is none of a voter.
            key = (voter.id, b"x" * 16) if self.random.random() < 0.1 else voter.key
            self._ask(leader, forms.remove_voter_request(CLUSTER, key))

    def _move(self, node, seconds):
        """A node comes back with another address."""
        node.port += 1
        self._end(node, seconds, loses_power=False)

    def _upgrade(self):
        leader = self._leader()
        if leader is not None and leader.paused is None:
            leader.step(events.UpgradeVersion("upgrade", 1))
        if not self.is_healed:
            self.at(self.time + 0.5, self._upgrade)

    def _blackout(self, _, seconds):
        for node in self.nodes:
            self._end(node, seconds * self.random.random(), loses_power=True)

    def _depose(self, _, seconds):
        for node in self.nodes:
            if node.is_up and node.machine.state == states.LEADER:
                self._end(node, seconds, loses_power=True)

    def _pause(self, node, seconds):
        if node.is_up and node.paused is None:
            node.paused = []
            self.at(self.time + seconds, self._resume, node, node.life)

    def _resume(self, node, life):
        if node.life == life and node.paused is not None:
            node.resume()

    def _cut_links(self, links, seconds):
        links = [each for each in links if each not in self.cut]
        self.cut.update(links)
        self.at(self.time + seconds, self.cut.difference_update, links)

    def _cut_groups(self, _, seconds):
        ids = [node.id for node in self.nodes]
        side = set(self.random.sample(ids, self.random.randrange(len(ids))))
        links = [(one, other) for one in ids for other in ids if (one in side) != (other in side)]
        self._cut_links(links, seconds)

    def _cut_one_way(self, node, seconds):
        other = self.random.choice(self.nodes)
        self._cut_links([(node.id, other.id)], seconds)

    def _isolate(self, node, seconds):
        """The leader, if there is one, can be reached or can reach, and not both."""
        node = next((each for each in self.nodes if each.is_up and each.machine.state == states.LEADER), node)
        links = [(node.id, other.id) for other in self.nodes]
        kind = self.random.randrange(3)
        if kind:
            links = [(other, one) for one, other in links] + (links if kind == 2 else [])
        self._cut_links(links, seconds)

    def _drift(self, node, _):
        node.set_clock_rate(self.random.choice((0.5, 0.8, 1.0, 1.3, 2.0)))
        if node.is_up and node.paused is None:
            node.arm()

    def _resign(self, node, _):
        for each in self.nodes:
            if each.is_up and each.machine.state == states.LEADER:
                each.step(events.Resign())

    def _snapshot(self):
        """One node makes a snapshot, and perhaps drops the log before it. After healing there is none, so that nobody
        catches up by snapshots alone."""
        if self.is_healed:
            return
        self.random.choice(self.nodes).make_snapshot(begins_log=self.random.random() < 0.7)
        self.at(self.time + self.random.expovariate(1 / self.snapshot_every), self._snapshot)

    def _heal(self):
        """No fault any more; everybody is there."""
        self.is_healed = True
        self.loss = self.doubling = 0.0
        self.fetch_bytes = 1_000_000
        self.cut.clear()
        for node in self.nodes:
            node.set_clock_rate(1.0)
            if not node.is_up:
                node.start()
            elif node.paused is not None:
                node.resume()
            node.arm()
        self.goal = max(node.disk.log.end_offset for node in self.nodes) + 3


def _keys(node):
    """The voters that count for a node."""
    return {voter.key for voter in node.machine.voters}


_FAULTS = {
    "kill": lambda world, node, seconds: world._end(node, seconds, loses_power=False),
    "power": lambda world, node, seconds: world._end(node, seconds, loses_power=True),
    "pause": RaftWorld._pause,
    "cut": RaftWorld._cut_groups,
    "one-way": RaftWorld._cut_one_way,
    "isolate": RaftWorld._isolate,
    "clock": RaftWorld._drift,
    "resign": RaftWorld._resign,
    "blackout": RaftWorld._blackout,
    "depose": RaftWorld._depose,
    "wipe": RaftWorld._wipe,
    "move": RaftWorld._move,
    "add": RaftWorld._add,
    "remove": RaftWorld._remove,
}
