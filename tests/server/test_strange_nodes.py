"""Nodes that do not belong to a quorum, or come back with another disk or clock: refused or survived, and named."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest

from pykafkad.log import checkpoints
from pykafkad.metadata.voters import Voter
from pykafkad.raft import forms
from pykafkad.server import raft_strangers
from pykafkad.server.logs import Logs
from pykafkad.server.peer import Peer
from pykafkad.server.peer_lines import PeerLines
from pykafkad.server.raft_strangers import Strangers
from pykafkad.wire import messages
from tests.simulation.combined import LIMITS, CombinedNodes
from tests.simulation.controllers import CLUSTER_ID, DIRECTORY, Controllers, controller_of, host_of

OTHER_ID = "b3RoZXItY2x1c3Rlci1pZA"
META = f"{DIRECTORY}/{checkpoints.META_PROPERTIES_FILE}"


class Lines:
    """Where lines about peers go."""

    def __init__(self):
        self.all = []

    def line(self, level, name, event, fields):
        self.all.append((event, fields))

    def of(self, event):
        return [fields for each, fields in self.all if each == event]


def listen(world, node_id):
    """What a node says of its peers from now on."""
    lines = Lines()
    world.processes[node_id].runtime._peer_lines = PeerLines(Logs("info", lines))
    return lines


def commit(world, value):
    token = world.change(world.elect(), value)
    world.until(lambda: token.outcome is not None)
    assert token.outcome == 0


def test_a_node_of_another_cluster_takes_no_part_and_both_sides_name_it():
    world = Controllers(1, (1, 2, 3))
    leader = world.elect()
    stranger = next(each for each in (1, 2, 3) if each != leader)
    world.kill(stranger)
    world.wipe(stranger)
    disk = world.disks[stranger]
    disk.replace(META, disk.read(META).replace(CLUSTER_ID.encode(), OTHER_ID.encode()))
    lines = listen(world, leader)
    world.start(stranger)
    own = listen(world, stranger)
    world.run(world.clock.now() + 30.0)
    commit(world, 7)
    assert world.elect() == leader, "nobody was disturbed"
    process = world.processes[stranger]
    assert process.controller.image.offset < 0 and not process.controller.metadata_log.is_active
    told = lines.of("peer-of-another-cluster")
    assert {each["peer"].partition(":")[0] for each in told} == {host_of(stranger)}
    assert sum(OTHER_ID in each["reason"] for each in told) == 1, "a host is named once a minute with one reason"
    peers = {each["peer"] for each in own.of("peer-of-another-cluster")}
    assert f"{host_of(leader)}:9093" in peers


class Connections:
    """What a runtime has of connections: a token is the id of one."""

    def __init__(self, lines):
        self.now = 0.0
        self.peer_lines = PeerLines(Logs("info", lines))
        self.replies = self.reactor = self
        self.closed = set()
        self.is_leader = True
        self.voters = [Voter(3, b"d" * 16, [])]
        self.epoch = 1
        self.cluster_id = CLUSTER_ID

    def connection_of(self, number):
        return self.connection(number)

    def connection(self, number):
        return None if number in self.closed else SimpleNamespace(id=number, peer=f"10.0.0.{number}:5000")


def fetch_of(node_id, offset=5, last_epoch=1):
    replica = node_id, b"d" * 16
    return forms.fetch_request(CLUSTER_ID, replica, 1, (last_epoch, offset), 5, max_wait_ms=500, max_bytes=1000)


def fetches(strangers, *connections, node_id=3):
    """One each second."""
    for each in connections:
        strangers._runtime.now += 1.0
        strangers.asked(each, fetch_of(node_id))


def test_two_nodes_on_copies_of_one_directory_are_named():
    """Their fetches come by two connections that live; those of a node that connects anew never come back."""
    runtime = Connections(lines := Lines())
    strangers = Strangers(runtime, runtime)
    fetches(strangers, 1, 1, 2, 2, 3, 3)
    fetches(strangers, 8, 9, node_id=4)
    runtime.closed.add(3)
    fetches(strangers, 4, *(5, 4) * 5)
    assert lines.all == []
    fetches(strangers, 5, 4, 5, 4, 5)
    told = lines.of("replica-fetches-twice")
    assert {each["peer"] for each in told} == {"10.0.0.4:5000", "10.0.0.5:5000"}
    assert all("has the same id 3 and directory" in each["reason"] for each in told)


class Twins(Controllers):
    """Node 4 has the settings of node 3."""

    def _properties(self, node_id, role):
        return super()._properties(3 if node_id == 4 else node_id, role)


def test_a_node_on_a_copy_of_a_directory_is_named_by_the_leader():
    world = Twins(0, (1, 2, 3))
    leader = world.elect()
    assert leader != 3
    world.kill(3)
    world.disks[4] = copy.deepcopy(world.disks[3])
    lines = listen(world, leader)
    for each in (3, 4):
        world.start(each)
    world.until(lambda: len(lines.of("replica-fetches-twice")) == 2, 60.0)
    peers = {each["peer"].partition(":")[0] for each in lines.of("replica-fetches-twice")}
    assert peers == {host_of(3), host_of(4)}


def in_an_instant(runtime, strangers):
    for each in (4, 5) * 50:
        strangers.asked(each, fetch_of(3))


def with_pauses(runtime, strangers):
    for each in (4, 5) * 50:
        runtime.now += raft_strangers.TURNS_SECONDS
        fetches(strangers, each)


def of_many_epochs(runtime, strangers):
    for _ in range(20):
        runtime.epoch += 1
        fetches(strangers, 4, *(5, 4) * 5)


def of_a_follower(runtime, strangers):
    runtime.is_leader = False
    fetches(strangers, *(4, 5) * 50)


@pytest.mark.parametrize("happens", [in_an_instant, with_pauses, of_many_epochs, of_a_follower])
def test_a_voter_that_looks_for_the_leader_is_no_copy(happens):
    """It asks by a connection to the voter and by one to a bootstrap server, in turns, until it has found it."""
    runtime = Connections(lines := Lines())
    happens(runtime, Strangers(runtime, runtime))
    assert lines.all == []


@pytest.mark.parametrize("seed", range(3))
def test_a_plain_start_of_three_nodes_names_nobody(seed):
    world = CombinedNodes(seed, (1, 2, 3), dynamic=True)
    lines = [listen(world, each) for each in (1, 2, 3)]
    world.until_serving()
    world.run(world.clock.now() + 10.0)
    assert [each.all for each in lines] == [[], [], []]


def test_what_is_known_of_replicas_has_a_limit():
    runtime = Connections(Lines())
    strangers = Strangers(runtime, runtime)
    for node_id in range(raft_strangers.MAX_REPLICAS + 5):
        fetches(strangers, 1, node_id=node_id)
    assert len(strangers._fetching) == raft_strangers.MAX_REPLICAS


@pytest.mark.long
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_combined_node_whose_disk_was_wiped_comes_back(dynamic):
    """With voters of the settings it votes again. With those of the log it is another replica, which observes; its
    broker serves either way, and has everything again."""
    world = CombinedNodes(3, (1, 2, 3), dynamic=dynamic)
    world.until_serving()
    world.create_topic("t")
    told = []
    world.produce("t", b"v", told.append)
    world.until(lambda: told == [0])
    world.until(world.in_step)
    leader = world.elect()
    node_id = next(each for each in (1, 2, 3) if each != leader)
    lines = listen(world, leader)
    world.kill(node_id)
    world.wipe(node_id)
    world.start(node_id)
    world.until_serving()
    (told,) = lines.of("voter-lost-records")
    assert told["peer"].partition(":")[0] == host_of(node_id) and told["reason"].startswith(f"voter {node_id} had all")
    world.until(lambda: world.in_sync("t"), 120.0)
    assert list(world.records_of(node_id, "t")) == [0]
    assert world.machine(node_id).is_voter is not dynamic
    assert {each.runtime.metrics.unexpected_errors for each in world.processes.values()} == {0}


@pytest.mark.long
@pytest.mark.parametrize("days", [1, -1])
def test_clocks_that_jump_a_day_change_nothing(days):
    """Sessions, elections and replicas count monotonic time; records keep their days."""
    world = CombinedNodes(4, (1, 2, 3))
    world.until_serving()
    world.create_topic("t")
    leader, epoch = world.elect(), world.machine(world.elect()).epoch
    world.clock._now_ms += days * 86_400_000
    told = []
    world.produce("t", b"v", told.append)
    world.until(lambda: told == [0])
    world.run(world.clock.now() + 20.0)
    assert (world.elect(), world.machine(leader).epoch) == (leader, epoch)
    assert sorted(world.serving()) == [1, 2, 3] and world.in_sync("t")
    assert not any(broker.fenced for broker in controller_of(world.processes[leader]).image.brokers.values())
    assert list(world.records_of(leader, "t")) == [0]


def test_a_voter_that_asks_for_less_than_it_had_is_named():
    """In one epoch; what is cut in another was never on its disk for this leader. Nobody else is."""
    runtime = Connections(lines := Lines())
    strangers = Strangers(runtime, runtime)
    for offset in (5, 9, 9):
        strangers.asked(1, fetch_of(3, offset))
        strangers.asked(2, fetch_of(4, offset))
    runtime.epoch = 2
    for node_id in (3, 4):
        # The second is what it goes on with when it has cut the records that this leader does not have.
        for offset, last_epoch in ((8, 1), (4, 1), (6, 2)):
            strangers.asked(1, fetch_of(node_id, offset, last_epoch))
    assert lines.all == []
    for node_id in (3, 4):
        strangers.asked(1, fetch_of(node_id, 0, 0))
    (told,) = lines.of("voter-lost-records")
    assert (told["peer"], told["reason"]) == ("10.0.0.1:5000", "voter 3 had all before 6, and asks for 0")


def test_a_leader_that_comes_back_with_records_that_nobody_else_has_is_not_named():
    """It has written them alone, and cuts them as a follower."""
    world = Controllers(1, (1, 2, 3))
    before = world.elect()
    commit(world, 7)
    world.until(world.in_step)
    others = [each for each in (1, 2, 3) if each != before]
    for each in others:
        world.kill(each)
    end_offset = world.machine(before).log.end_offset
    for each in range(5):
        world.change(before, 20 + each)
        world.run(world.clock.now() + 0.05)
    assert world.machine(before).log.end_offset > end_offset
    world.kill(before)
    for each in others:
        world.start(each)
    leader = world.elect()
    commit(world, 8)
    lines = listen(world, leader)
    world.start(before)
    world.until(world.in_step)
    assert lines.of("voter-lost-records") == []


@pytest.mark.parametrize("lie", ["damaged batches", "another leader", "an impossible epoch"])
def test_a_leader_that_lies_is_named_by_who_asks_it(lie, monkeypatch):
    """And nothing of that is believed: when it goes on as it should, all have the same."""
    world = Controllers(1, (1, 2, 3))
    leader = world.elect()
    commit(world, 7)
    world.until(world.in_step)
    follower = next(each for each in (1, 2, 3) if each != leader)
    lines = listen(world, follower)
    shell = controller_of(world.processes[leader]).metadata_log.member.shell
    honest = type(shell)._answer

    def answer(self, token, message):
        if self is shell and type(message) is messages.FetchResponse and message.responses:
            row = message.responses[0].partitions[0]
            if lie == "damaged batches":
                row.records = bytes(row.records or b"")[:-1] + b"!" if row.records else b""
            else:
                row.current_leader.leader_id = 77 if lie == "another leader" else leader
                row.current_leader.leader_epoch += 0 if lie == "another leader" else 2**31 - 1 - self.machine.epoch
        honest(self, token, message)

    with monkeypatch.context() as patch:
        patch.setattr(type(shell), "_answer", answer)
        world.change(leader, 8)
        world.until(lambda: lines.of("quorum-answer-ignored"), 20.0)
    told = lines.of("quorum-answer-ignored")
    assert {each["peer"] for each in told} == {f"{host_of(leader)}:9093"}
    words = {"damaged batches": "damaged", "another leader": "node 77", "an impossible epoch": str(2**31 - 1)}
    assert all(words[lie] in each["reason"] for each in told)
    commit(world, 9)
    world.until(world.in_step, 60.0)


def test_who_says_that_a_stranger_leads_is_named():
    """As in a BeginQuorumEpoch with a node that is no voter, or a vote in an epoch below that of the log."""
    world = Controllers(1, (1, 2, 3))
    leader = world.elect()
    node_id = next(each for each in (1, 2, 3) if each != leader)
    lines = listen(world, node_id)
    epoch = world.machine(leader).epoch
    peer = Peer(world.add("10.0.9.9"), host_of(node_id), 9093, client_id="liar", limits=LIMITS)
    answers = []
    directory = world.machine(node_id).key[1]
    for request in (
        forms.begin_request(CLUSTER_ID, (node_id, directory), 77, epoch + 1),
        forms.vote_request(CLUSTER_ID, (node_id, directory), (leader, bytes(16)), 2, (9, 100), pre_vote=False),
    ):
        peer.send(request, answers.append)
    world.times.clear()
    world.until(lambda: len(answers) == 2)
    told = lines.of("quorum-request-refused")
    assert {each["peer"].partition(":")[0] for each in told} == {"10.0.9.9"}
    assert [each["reason"].partition(" says ")[2] or each["reason"] for each in told] == [
        f"that node 77 leads epoch {epoch + 1}",
        "it asks for a vote in epoch 2, with a log up to epoch 9",
    ]
    assert world.elect() == leader
