"""A controller in a quorum of several voters: what becomes of what it was deciding, of its disk, and of its voters."""

import pytest

from pykafkad import config, errors
from pykafkad.errors import ConfigError
from pykafkad.handlers.controller_context import ControllerRequest
from pykafkad.metadata import quorum, snapshots
from pykafkad.metadata.brokers import Endpoint
from pykafkad.metadata.voters import Voter
from pykafkad.raft import forms
from pykafkad.server import raft_member, raft_peers, raft_shell
from pykafkad.server.peer_greeting import Greeting
from pykafkad.server.peer_types import REFUSED
from pykafkad.wire import messages
from tests import certificates
from tests.simulation.controllers import CLUSTER_ID, DIRECTORY, PORT, Controllers, Token, directory_id, host_of
from tests.simulation.disk import MemoryDisk

SMALL_SNAPSHOTS = {
    "metadata_log_max_record_bytes_between_snapshots": 300,
    "metadata_max_retention_bytes": 1000,
    "internal_metadata_log_segment_bytes": 500,
}


def commit(world, value, node_id=None):
    token = world.change(node_id or world.elect(), value)
    world.until(lambda: token.outcome is not None)
    assert token.outcome == 0
    return token


def isolate(world, node_id):
    for other in (1, 2, 3, 4, 9):
        if other != node_id:
            world.network.cut(host_of(node_id), host_of(other))
            world.network.cut(host_of(other), host_of(node_id))


def mend(world):
    for one in (1, 2, 3, 4, 9):
        for other in (1, 2, 3, 4, 9):
            if one != other:
                world.network.mend(host_of(one), host_of(other))


@pytest.mark.long
def test_voters_that_know_no_pre_votes_elect_a_leader(monkeypatch):
    """Kafka 3.9 has versions 0 and 1 of Vote, in which a pre-vote cannot be said."""
    version = Greeting.version
    of_kafka_3_9 = lambda greeting, row: 1 if row.name == "Vote" else version(greeting, row)  # noqa: E731
    monkeypatch.setattr(Greeting, "version", of_kafka_3_9)
    world = Controllers(3, (1, 2, 3), dynamic=True)
    first = world.elect()
    world.kill(first)
    assert world.elect() != first
    commit(world, 1)


@pytest.mark.parametrize(
    ("voters", "fetch_timeout_ms", "is_told"), [((1, 2, 3), 500, True), ((1, 2, 3), 501, False), ((1,), 500, False)]
)
def test_a_fetch_timeout_that_elects_without_end_is_told_of(voters, fetch_timeout_ms, is_told, capfd):
    """Kafka starts with it, too, and waits as long for records. An only voter has nobody to wait for."""
    Controllers(2, voters, controller_quorum_fetch_timeout_ms=fetch_timeout_ms).elect()
    found = [each for each in capfd.readouterr().err.splitlines() if "fetch-timeout-too-short" in each]
    assert len(found) == is_told * len(voters)
    assert all("controller.quorum.fetch.timeout.ms=500" in each for each in found)


def test_a_leader_without_the_others_refuses_what_it_was_deciding():
    """Also what waited behind that. The next leader does not have it, and it is cut from the log."""
    world = Controllers(1, (1, 2, 3))
    leader = world.elect()
    commit(world, 1)
    world.until(world.in_step)
    isolate(world, leader)
    tokens = [world.change(leader, value) for value in (2, 3)]
    world.until(lambda: all(token.outcome is not None for token in tokens))
    assert {token.outcome for token in tokens} == {"it was refused: NOT_CONTROLLER"}
    assert world.change(leader, 4).outcome == errors.NOT_CONTROLLER
    world.until(lambda: world.leader() not in (None, leader))
    assert world.value_of(world.processes[leader].controller.image) == "1"
    mend(world)
    world.until(world.in_step)
    assert [world.value_of(each.controller.image) for each in world.processes.values()] == ["1"] * 3
    commit(world, 5)


def test_records_are_sent_and_applied_in_small_pieces(monkeypatch):
    monkeypatch.setattr(raft_shell, "MAX_ANSWER_BYTES", 100)
    monkeypatch.setattr(raft_member, "_APPLIED_AT_ONCE_BYTES", 100)
    world = Controllers(2, (1, 2, 3), **SMALL_SNAPSHOTS)
    world.elect()
    for value in range(1, 31):
        commit(world, value)
    world.until(world.in_step)
    observer = world.observe(9)
    world.until(world.in_step)
    assert observer.member.raft_log.log.log_start_offset > 0, "it has fetched a snapshot"
    assert world.value_of(observer.image) == "30"


def test_followers_of_the_image_hear_of_a_snapshot():
    world = Controllers(3, (1, 2, 3), **SMALL_SNAPSHOTS)
    world.elect()
    observer = world.observe(9)
    deltas, controllers = [], []

    class Follower:
        def metadata_changed(self, delta):
            deltas.append(delta)
            return False

    observer.on_committed(Follower())
    observer.on_new_controller(lambda: controllers.append(observer.active_controller()))
    world.until(world.in_step)
    isolate(world, 9)
    before = observer.image
    del deltas[:]
    for value in range(1, 31):
        commit(world, value)
    mend(world)
    world.until(world.in_step)
    assert observer.image is before and world.value_of(before) == "30"
    assert next(list(each.configs) for each in deltas if each.configs) == [(4, "")]
    leader = world.leader()
    assert controllers[-1] == (leader, world.machine(leader).epoch, host_of(leader), PORT)


def test_a_disk_that_fails_ends_the_process_and_another_leads():
    world = Controllers(4, (1, 2, 3))
    leader = world.elect()
    commit(world, 1)
    world.disks[leader].fail("write", sticky=True)
    token = world.change(leader, 2)
    world.until(lambda: token.outcome is not None)
    process = world.processes[leader]
    assert token.outcome == "it was refused: NOT_CONTROLLER"
    assert process.runtime.stopping.startswith("the metadata log failed: write ") and process.runtime.has_failed
    world.kill(leader)
    world.disks[leader].heal()
    assert world.elect() != leader
    commit(world, 3)
    world.start(leader)
    world.until(world.in_step)


def test_a_sync_that_fails_counts_for_nothing():
    world = Controllers(5, (1, 2, 3))
    leader = world.elect()
    commit(world, 1)
    others = [each for each in world.node_ids if each != leader]
    for each in others:
        world.kill(each)
    world.disks[leader].fail("sync", sticky=True)
    token = world.change(leader, 2)
    world.until(lambda: token.outcome is not None)
    assert token.outcome == "it was refused: NOT_CONTROLLER"
    assert world.processes[leader].runtime.stopping.startswith("the metadata log failed: sync ")


def test_a_kill_between_a_fetched_snapshot_and_the_cut_of_the_log():
    """The snapshot is there, and the log ends before it: the next start begins the log at it."""
    world = Controllers(6, (1, 2, 3), **SMALL_SNAPSHOTS)
    leader = world.elect()
    commit(world, 1)
    world.until(world.in_step)
    behind = next(each for each in world.node_ids if each != leader)
    world.kill(behind)
    for value in range(1, 31):
        commit(world, value)
    newest = world.processes[world.elect()].controller.metadata_log.snapshots.kept[-1]
    name = f"{DIRECTORY}/__cluster_metadata-0/{snapshots.file_name(*newest)}"
    world.disks[behind].write(name, world.disks[world.leader()].read(name), sync=True)
    world.start(behind)
    member = world.processes[behind].controller.metadata_log.member
    assert member.raft_log.log.log_start_offset == member.applied == newest[0]
    world.until(world.in_step)


def ask(world, node_id, request):
    """Ask a node's replica."""
    token = Answer()
    world.processes[node_id].controller.ask_quorum(token, request)
    world.until(lambda: token.message is not None)
    return token.message


class Answer:
    message = None

    def deliver(self, message):
        self.message = message


def voters_of(world, node_id):
    return sorted(each.id for each in world.machine(node_id).voters)


def test_a_controller_joins_by_itself_and_is_removed():
    """It knows only where the others are, not who they are."""
    world = Controllers(7, (1, 2, 3), dynamic=True, controller_quorum_auto_join_enable="true")
    world.elect()
    commit(world, 1)
    world.wipes[4] = 0
    world.format(4)
    world.start(4)
    world.until(lambda: all(voters_of(world, each) == [1, 2, 3, 4] for each in world.processes))
    world.until(world.in_step)
    world.kill(4)
    removed = ask(world, world.elect(), forms.remove_voter_request(CLUSTER_ID, (4, directory_id(4))))
    assert removed.error_code == 0 and voters_of(world, world.elect()) == [1, 2, 3]


def test_a_voter_is_added_by_a_request():
    """The leader finds it where the request says, and it finds the leader by its answers."""
    world = Controllers(8, (1, 2, 3), dynamic=True)
    world.elect()
    world.wipes[4] = 0
    world.format(4)
    world.start(4)
    leader = world.elect()
    machine = world.machine(leader)
    key = 4, directory_id(4)
    world.until(lambda: key in machine.role.observers and machine.role.observers[key].end_offset > 0)
    voter = Voter(*key, [Endpoint("CONTROLLER", host_of(4), PORT)])
    added = ask(world, leader, forms.add_voter_request(CLUSTER_ID, voter, 5000, ack_when_committed=True))
    assert (added.error_code, added.error_message) == (0, None)
    world.until(lambda: all(voters_of(world, each) == [1, 2, 3, 4] for each in world.processes))


def test_the_leader_describes_the_quorum_and_the_others_say_who_leads():
    world = Controllers(9, (1, 2, 3))
    leader = world.elect()
    world.until(world.in_step)
    follower = next(each for each in world.node_ids if each != leader)
    described = world.processes[leader].controller.describe_quorum(2).topics[0].partitions[0]
    assert (described.leader_id, [row.replica_id for row in described.current_voters]) == (leader, [1, 2, 3])
    other = world.processes[follower].controller.describe_quorum(2).topics[0].partitions[0]
    assert other.error_code == errors.NOT_LEADER_OR_FOLLOWER
    fetched = ask(
        world,
        follower,
        forms.fetch_request(
            CLUSTER_ID, (9, b"9" * 16), world.machine(follower).epoch, (0, 0), -1, max_wait_ms=0, max_bytes=1000
        ),
    )
    assert fetched.responses[0].partitions[0].error_code == errors.NOT_LEADER_OR_FOLLOWER
    assert [(each.node_id, each.host, each.port) for each in fetched.node_endpoints] == [
        (leader, host_of(leader), PORT)
    ]


def test_everybody_answers_what_changes_nothing():
    world = Controllers(10, (1, 2, 3))
    leader = world.elect()
    world.until(world.in_step)
    follower = next(each for each in world.node_ids if each != leader)
    controller = world.processes[follower].controller
    request = ControllerRequest(18, 4, messages.ApiVersionsRequest(
        client_software_name="a", client_software_version="1"
    ), "User:a", "10.0.0.9", "CONTROLLER", Token(0))  # fmt: skip
    answer = controller.submit(request)
    assert {52, 53, 54, 59, 82, 1} <= {row.api_key for row in answer.api_keys}
    levels = {row.name: (row.min_version, row.max_version) for row in answer.supported_features}
    assert levels["kraft.version"] == (0, 1)


def test_voters_reach_each_other_over_tls_and_log_in():
    """They elect, replicate and go on without one. Their certificates are not for addresses."""
    settings = {**certificates.settings(), "ssl.endpoint.identification.algorithm": ""}
    world = Controllers(
        15,
        (1, 2, 3),
        listener_security_protocol_map="CONTROLLER:SASL_SSL",
        sasl_mechanism_controller_protocol="PLAIN",
        sasl_enabled_mechanisms="PLAIN",
        listener_name_controller_plain_sasl_jaas_config=(
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="node" password="secret" user_node="secret";'
        ),
        **settings,
    )
    commit(world, 1)
    world.until(world.in_step)
    world.kill(world.leader())
    commit(world, 2)
    for node_id in list(world.processes):
        world.stop(node_id)


def test_a_voter_with_another_password_has_no_part():
    """It knows nobody whom the others elect, and the others do without it."""
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="node" password="{}" user_node="secret";'
    )
    world = Controllers(
        16,
        (1, 2, 3),
        listener_security_protocol_map="CONTROLLER:SASL_PLAINTEXT",
        sasl_mechanism_controller_protocol="PLAIN",
        sasl_enabled_mechanisms="PLAIN",
        listener_name_controller_plain_sasl_jaas_config=jaas.format("secret"),
    )
    commit(world, 1)
    outsider = next(each for each in (1, 2, 3) if each != world.leader())
    world.kill(outsider)
    world.settings["listener.name.controller.plain.sasl.jaas.config"] = jaas.format("wrong")
    world.start(outsider)
    before = world.processes[outsider].controller.image.offset
    commit(world, 2)
    world.run(world.clock.now() + 10)
    assert world.processes[outsider].controller.image.offset == before
    assert world.leader() not in (None, outsider)
    for node_id in list(world.processes):
        world.stop(node_id)


# --- settings, addresses ----------------------------------------------------------------------------------------------


def test_a_directory_of_a_quorum_must_be_formatted():
    world = Controllers(11, (1, 2, 3))
    world.kill(1)
    world.disks[1] = MemoryDisk()
    with pytest.raises(ConfigError, match="is not formatted"):
        world.start(1)


def test_a_controller_is_one_of_the_static_voters():
    world = Controllers(12, (1, 2, 3))
    world.format(4)
    with pytest.raises(ConfigError, match=r"node.id 4 is a controller, and none of \[1, 2, 3\]"):
        world.start(4)


def test_a_damaged_quorum_state_is_no_start():
    world = Controllers(13, (1, 2, 3))
    world.kill(1)
    world.disks[1].write(f"{DIRECTORY}/{quorum.STATE_FILE}", b"{", sync=True)
    with pytest.raises(ConfigError, match="quorum-state is damaged"):
        world.start(1)


class Names:
    """A network where names have addresses, and the offload of a runtime."""

    def __init__(self, addresses):
        self.found = addresses
        self.jobs = []
        self.calls = []
        self.made = []
        self.settings = config.Settings({})
        self.reactor = self.network = self.cpu_offload = self

    def addresses(self, host, port):
        return self.found

    def submit(self, job, then):
        self.jobs.append((job, then))

    def call_later(self, seconds, call):
        self.calls.append(call)

    def work(self):
        while self.jobs:
            job, then = self.jobs.pop(0)
            then(job())


class FakePeer:
    def __init__(self, host, port):
        self.address = host, port
        self.sent = []
        self.closed = False

    def send(self, request, then):
        self.sent.append((request, then))

    def close(self):
        self.closed = True


@pytest.fixture
def peers(monkeypatch):
    names = Names(["::1", "127.0.0.1"])

    def connect(runtime, host, port, *, client_id, limits, security, host_name):
        names.made.append(FakePeer(host, port))
        return names.made[-1]

    monkeypatch.setattr(raft_peers, "Peer", connect)
    return raft_peers.RaftPeers(names, names.settings), names


def test_a_name_is_looked_up_and_its_addresses_tried_in_turn(peers):
    members, names = peers
    members.locate(2, "localhost", 9)
    outcomes = []
    for expected in ("::1", "127.0.0.1", "::1"):
        members.send(2, "request", outcomes.append)
        names.work()
        peer = names.made[-1]
        assert peer.address == (expected, 9)
        peer.sent[0][1](REFUSED)
        assert peer.closed
    assert outcomes == [REFUSED] * 3


def test_a_bound_number_of_requests_waits_for_a_name(peers):
    members, names = peers
    members.locate(2, "localhost", 9)
    outcomes = []
    for _ in range(raft_peers._MAX_WAITING + 1):
        members.send(2, "request", outcomes.append)
    assert len(names.calls) == 1 and not outcomes
    names.calls[0]()
    assert outcomes == [REFUSED]
    names.found = []
    names.work()
    assert outcomes == [REFUSED] * (raft_peers._MAX_WAITING + 1)


def test_a_member_that_has_moved_and_one_that_nobody_knows(peers):
    members, names = peers
    members.locate(2, "10.0.0.2", 9)
    members.send(2, "request", print)
    members.locate(2, "10.0.0.2", 9)
    assert not names.made[0].closed
    members.locate(2, "10.0.0.3", 9)
    assert names.made[0].closed and members.located(2) == ("10.0.0.3", 9)
    outcomes = []
    members.send(7, "request", outcomes.append)
    assert members.located(7) is None and not outcomes
    names.calls[0]()
    assert outcomes == [REFUSED]


@pytest.mark.parametrize("seed", range(5))
def test_the_registrations_of_controllers_hold_up_no_fetch(seed):
    """What the leader commits before it answers them waits for fetches of those who register."""
    world = Controllers(seed, (1, 2, 3))
    leader = world.elect()
    epoch = world.machine(leader).epoch
    began = world.clock.now()
    world.until(lambda: set(world.processes[leader].controller.image.controllers) == {1, 2, 3})
    assert world.clock.now() - began < 0.5
    assert (world.leader(), world.machine(leader).epoch) == (leader, epoch)
