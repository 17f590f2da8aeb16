"""Brokers in processes of their own: registration, heartbeats, fencing, controlled shutdown."""

from __future__ import annotations

import copy

import pytest

from pykafkad import errors
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.metadata.features import SUPPORTED
from pykafkad.server.metadata_source import ActiveController
from pykafkad.server.peer import Limits, Peer
from pykafkad.server.peer_types import Failure
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.simulation.broker_processes import CONTROLLER, BrokerProcesses


@pytest.fixture
def world():
    made = BrokerProcesses()
    made.until_serving()
    made.until_read()
    yield made
    made.close()


def registered(world, node_id):
    return world.controller.image.brokers[node_id]


def leader(world, name, index=0):
    return world.controller.image.topics[name].partitions[index].leader


def test_brokers_register_and_serve(world):
    for node_id in (2, 3):
        broker = registered(world, node_id)
        assert broker.active and broker.epoch == world.processes[node_id].lifecycle.epoch
        assert broker.features == SUPPORTED and broker.log_dirs == world.broker(node_id).directories.ids()
    metadata = world.connect(2).ask(messages.MetadataRequest(topics=None), 12)
    assert [(each.node_id, each.host) for each in metadata.brokers] == [(2, "broker2"), (3, "broker3")]


def test_a_broker_leads_what_it_is_told_to(world):
    world.create_topic(2, "t", [[2], [3]])
    for index, node_id in enumerate((2, 3)):
        peer = world.connect(node_id)
        (row,) = peer.ask(produce("t", {index: batch(b"v")}), 9).responses[0].partition_responses
        assert (row.error_code, row.base_offset) == (0, 0)
        assert bytes(peer.ask(fetch("t", {index: 0}), 12).responses[0].partitions[0].records)
        (refused,) = peer.ask(produce("t", {1 - index: batch(b"v")}), 9).responses[0].partition_responses
        assert refused.error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_clients_wait_until_a_broker_has_the_metadata():
    """One that was answered before would take topics for gone, and its group's protocol for switched off."""
    world = BrokerProcesses(brokers=(3,))
    world.until_serving()
    process = world.start(2)
    process.source.is_stuck = True
    world.advance(1.0)
    (listener,) = process.broker.listeners
    runtime = world.processes[3].runtime
    client = Peer(runtime, listener.host, listener.port, client_id="c", limits=Limits(request_timeout_ms=60_000))
    answers = []
    client.send(messages.MetadataRequest(topics=None), answers.append)
    world.advance(10.0)
    assert answers == []
    process.source.is_stuck = False
    world.until_serving()
    world.until(lambda: answers)
    assert 3 in {each.node_id for each in answers[0].brokers}
    client.close()
    world.close()


def test_a_broker_is_unfenced_only_when_it_has_read_its_registration():
    world = BrokerProcesses(brokers=())
    process = world.start(2)
    process.source.is_stuck = True
    world.advance(10.0)
    assert registered(world, 2).fenced and world.state(2) == "starting"
    process.source.is_stuck = False
    world.until_serving()
    assert registered(world, 2).active
    world.close()


def test_a_broker_that_is_not_heard_of_is_fenced_and_comes_back(world):
    world.create_topic(3, "t", [[2]])
    world.network.cut("broker2", CONTROLLER)
    world.advance(10.5)
    assert registered(world, 2).fenced and leader(world, "t") == -1
    assert registered(world, 3).active
    world.network.mend("broker2", CONTROLLER)
    world.until(lambda: registered(world, 2).active)
    assert leader(world, "t") == 2 and world.state(2) == "running"
    assert registered(world, 2).epoch == world.processes[2].lifecycle.epoch, "the same life"


def test_heartbeats_come_in_their_interval():
    world = BrokerProcesses(brokers=(), broker_heartbeat_interval_ms=500)
    world.start(2)
    world.until_serving()
    served = world.controller.metrics.requests
    world.advance(10.0)
    # The calls of the metadata source are none: what it reads is not asked for here.
    assert 18 <= world.controller.metrics.requests - served <= 21
    world.close()


def test_a_controlled_shutdown_moves_what_the_broker_leads(world):
    world.create_topic(3, "t", [[2, 3]])
    assert leader(world, "t") == 2
    process = world.stop(2)
    assert leader(world, "t") == 3
    assert registered(world, 2).fenced and registered(world, 2).in_controlled_shutdown
    # The next life has lost nothing, and need not wait for the end of a session.
    before = registered(world, 2).epoch
    assert process.directories.epoch_at_close == before
    world.start(2)
    world.until_serving()
    assert registered(world, 2).epoch > before and registered(world, 2).active


def test_a_broker_that_leads_nothing_may_go_at_once(world):
    world.stop(2)
    assert registered(world, 2).fenced and not registered(world, 2).in_controlled_shutdown


def test_a_stop_without_a_controller_gives_up(world):
    process = world.processes[2]
    process.source.move(None)
    process.runtime.close()
    assert process.lifecycle.state == "gone"
    world.forget(2)
    del world.processes[2]


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (messages.BrokerHeartbeatResponse(error_code=errors.NOT_CONTROLLER), "NOT_CONTROLLER"),
        (Failure("nobody answers"), "REQUEST_TIMED_OUT"),
    ],
)
def test_a_stop_that_is_given_up_says_why(world, outcome, error):
    process, told = world.processes[2], []

    class Sink:
        def line(self, level, name, event, fields):
            told.append((event, fields.get("error")))

    process.broker.logs.sink = Sink()
    process.lifecycle.state = "leaving"
    process.lifecycle._heard_at -= 1000.0
    process.lifecycle._heard(outcome)
    assert ("controlled-shutdown-given-up", error) in told
    assert process.lifecycle.state == "gone"


def test_another_life_waits_for_the_end_of_the_session_of_the_first(world):
    world.kill(2)
    before = registered(world, 2).epoch
    world.start(2)
    world.advance(5.0)
    assert registered(world, 2).epoch == before and world.state(2) == "starting"
    world.until_serving()
    assert registered(world, 2).epoch > before


def test_a_stale_epoch_is_told_and_asked_again(world):
    """Somebody has unregistered the broker: it stays out until its next start, as with Kafka."""
    answer = world.connect(3).ask(messages.UnregisterBrokerRequest(broker_id=2), 0)
    assert answer.error_code == 0
    world.advance(10.0)
    assert 2 not in world.controller.image.brokers and world.state(2) == "running"


class Told:
    """Where lines go: (event, fields)."""

    def __init__(self):
        self.lines = []

    def line(self, level, name, event, fields):
        self.lines.append((event, fields))

    def of(self, event):
        return [fields for each, fields in self.lines if each == event]


def copied(world, node_id, host_id):
    """Start a process on a copy of a broker's directories, on another host, with the broker's node id."""
    world.disks[f"broker{host_id}"] = copy.deepcopy(world.disks[f"broker{node_id}"])
    world.disks[f"broker{host_id}"].locks.clear()
    return world.start(host_id, **{"node.id": node_id})


def test_a_broker_on_a_copy_of_a_directory_is_refused_and_named(world):
    world.controller.logs.sink = told = Told()
    before = registered(world, 2).epoch
    other = copied(world, 2, 4)
    world.advance(30.0)
    (refused, *_) = told.of("broker-registration-refused")
    assert (refused["broker"], refused["error"]) == (2, "DUPLICATE_BROKER_REGISTRATION")
    assert refused["address"] == "broker4"
    assert registered(world, 2).epoch == before and world.state(2) == "running"
    assert other.lifecycle.state == "starting" and other.runtime.stopping is None
    world.advance(31.0)
    assert other.runtime.stopping == "no active controller has registered this broker in time"


def test_a_broker_that_another_process_has_replaced_names_it_and_stops(world):
    """The other one is on a copy of its directories. It is registered while the first is not heard of."""
    world.processes[2].broker.logs.sink = told = Told()
    world.network.cut("broker2", CONTROLLER)
    other = copied(world, 2, 4)
    world.until(lambda: other.lifecycle.state == "running")
    world.advance(5.0)
    assert world.processes[2].runtime.stopping is None
    world.network.mend("broker2", CONTROLLER)
    world.until(lambda: world.processes[2].runtime.stopping is not None)
    assert world.processes[2].runtime.stopping == "another process, at broker4:9092, is registered as broker 2"
    assert world.processes[2].runtime.has_failed
    (line,) = told.of("broker-replaced")
    assert (line["broker"], line["peer"], line["peer_epoch"]) == (2, "broker4:9092", other.lifecycle.epoch)
    assert world.state(2) == "gone" and registered(world, 2).epoch == other.lifecycle.epoch
    world.processes[2].runtime.close()
    world.forget(2)
    del world.processes[2]


def test_a_broker_follows_the_active_controller(world):
    """It asks whoever the source names, and waits while there is none."""
    process = world.processes[2]
    process.source.move(None)
    world.advance(5.0)
    asked = world.connect(2)
    asked.send(messages.UnregisterBrokerRequest(broker_id=9), 0)
    world.advance(1.0)
    asked.take_what_came()
    assert asked.answers == []
    process.source.move(ActiveController(1, 2, CONTROLLER, 9093))
    world.advance(1.0)
    asked.take_what_came()
    assert [each.error_code for each in asked.answers] == [errors.BROKER_ID_NOT_REGISTERED]
    assert registered(world, 2).active


def test_a_start_that_finds_no_controller_ends(monkeypatch):
    world = BrokerProcesses(brokers=())
    process = world.start(2, initial_broker_registration_timeout_ms=3000)
    process.source.move(None)
    world.advance(2.5)
    assert process.runtime.stopping is None
    world.advance(1.0)
    assert process.runtime.stopping == "no active controller has registered this broker in time"
    assert process.runtime.has_failed
    # Its settings may be right: the exit code is 1, not 2.
    monkeypatch.setattr(type(process), "begin", lambda self, **_: None)
    with pytest.raises(StartFailure, match="no active controller"):
        process.start()
    world.close()


def test_failed_and_cordoned_directories_are_told():
    world = BrokerProcesses(brokers=())
    lifecycle = world.start(2, ["/data", "/more"]).lifecycle
    world.until_serving()
    first, second = registered(world, 2).log_dirs
    lifecycle.directories_changed(None, [first])
    world.until(lambda: registered(world, 2).cordoned_log_dirs == [first], seconds=1)
    lifecycle.directories_changed([second], None)
    world.until(lambda: registered(world, 2).log_dirs == [second], seconds=1)
    world.close()


def test_what_the_image_does_not_have_yet_is_no_stray(world):
    """After a kill the broker knows an older image than that of its partitions."""
    world.create_topic(3, "t", [[2, 3]])
    world.kill(2)
    process = world.start(2)
    process.source.is_stuck = True
    world.advance(15.0)
    assert len(process.broker.partitions) == 0
    assert "t-0" in {path.split("/")[2] for path in process.runtime.disk.files if path.count("/") > 2}
    process.source.is_stuck = False
    world.until_serving()
    assert process.broker.partitions.get("t", 0) is not None
    assert not [path for path in process.runtime.disk.files if "stray" in path]


def test_a_new_directory_needs_to_know_its_cluster():
    world = BrokerProcesses(brokers=())
    with pytest.raises(ConfigError, match=r"pykafkad\.cluster\.id"):
        world.start(2, pykafkad_cluster_id="")
    with pytest.raises(ConfigError, match="where the controllers are"):
        world.start(3, controller_quorum_bootstrap_servers="")
    with pytest.raises(ConfigError, match="GSSAPI: nodes log in at each other by"):
        world.start(5, listener_security_protocol_map="PLAINTEXT:PLAINTEXT, CONTROLLER:SASL_PLAINTEXT")
    world.forget(2)
    world.processes.clear()
    world.start(4)
    world.until_serving()
    world.stop(4)
    with pytest.raises(ConfigError, match="belongs to the cluster"):
        world.start(4, pykafkad_cluster_id="AAsoE0KTRP2R9A4sSTVg0g")
    world.forget(4)
    world.processes.clear()
    world.close()
