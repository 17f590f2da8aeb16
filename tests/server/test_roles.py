"""A process has a controller, or a controller and a broker, as `process.roles` says; and what each of them answers."""

from __future__ import annotations

import random

import pytest

from pykafkad import config, errors
from pykafkad.clock import ManualClock
from pykafkad.handlers import table
from pykafkad.handlers.controller_context import ControllerRequest
from pykafkad.server.broker import FAST_PATHS, Broker
from pykafkad.server.controller_node import ControllerNode
from pykafkad.server.directories import Directories
from pykafkad.server.housekeeping import Housekeeping
from pykafkad.server.listeners import Listener, default_protocols, parse
from pykafkad.server.logs import Logs, Sink, configure, process_logs
from pykafkad.server.reactor import Reactor
from pykafkad.server.runtime import Runtime
from pykafkad.server.session import STAGES
from pykafkad.server.wiring import Process
from pykafkad.wire import messages
from tests.simulation.disk import MemoryDisk
from tests.simulation.network import Host, Network
from tests.simulation.world import World

# `listeners` of Kafka 4.3.1's message files that name both kinds, but for the two that its controllers
# refuse.
ON_BOTH = {1, 17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 60, 64, 80, 81}


@pytest.fixture
def controller():
    """A process with a controller alone, which begins anew after a stop."""
    world = World("/data", disk=MemoryDisk(), process_roles="controller")
    yield world
    assert world.runtime.metrics.unexpected_errors == 0
    world.stop()


def test_which_listeners_answer_an_api():
    assert {row.key for row in table.ROWS if "controller" in row.listeners} == ON_BOTH
    assert all("broker" in row.listeners for row in table.ROWS)
    assert all(row.listeners == ("controller",) for row in table.CONTROLLER_ROWS)
    assert table.answered_on("broker") == list(table.ROWS)
    assert all(row.listeners == ("controller",) for row in table.UNANSWERED if row.state == table.CONTROLLER)
    assert all("controller" in row.listeners for row in table.ROWS if row.is_forwarded)


def test_a_controller_alone_says_what_it_answers(controller):
    assert controller.broker is None
    answer = controller.connect().ask(messages.ApiVersionsRequest(), 0)
    keys = [row.api_key for row in answer.api_keys]
    assert keys == sorted(keys)
    assert set(keys) == ON_BOTH | {row.key for row in table.CONTROLLER_ROWS}


def test_a_controller_alone_is_the_active_controller(controller):
    assert controller.process.controller.active_controller() == (1, 1, "localhost", 9092)


def test_a_controller_alone_closes_on_what_brokers_answer(controller):
    peer = controller.connect()
    peer.send(messages.MetadataRequest(topics=None), 9)
    assert peer.closed == "API key 3 version 9 is not answered here"


def test_a_controller_alone_describes_itself(controller):
    partition = messages.DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = messages.DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    answer = controller.connect().ask(messages.DescribeQuorumRequest(topics=[topic]), 2)
    assert (answer.error_code, answer.topics[0].partitions[0].leader_id) == (0, 1)
    cluster = controller.connect().ask(messages.DescribeClusterRequest(endpoint_type=2), 1)
    assert (cluster.error_code, cluster.endpoint_type, cluster.controller_id) == (0, 2, 1)
    assert [(row.broker_id, row.host, row.port) for row in cluster.brokers] == [(1, "localhost", 9092)]
    wrong = controller.connect().ask(messages.DescribeClusterRequest(endpoint_type=1), 1)
    assert wrong.error_code == errors.MISMATCHED_ENDPOINT_TYPE


def test_a_controller_alone_keeps_what_it_decides(controller):
    """Settings and ACLs need no broker; a topic does. The next start has them."""
    request = messages.IncrementalAlterConfigsRequest
    change = request.AlterableConfig(name="log.retention.ms", config_operation=0, value="7")
    resource = request.AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
    assert controller.connect().ask(request(resources=[resource]), 1).responses[0].error_code == 0
    topic = messages.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    (row,) = controller.connect().ask(messages.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7).topics
    assert row.error_code == errors.INVALID_REPLICATION_FACTOR
    controller.stop()
    again = controller.restart(process_roles="controller")
    assert again.controller.image.configs(4, "")["log.retention.ms"] == "7" and not again.controller.image.brokers
    controller.runtime = again.runtime


@pytest.mark.parametrize("row", table.answered_on("controller"), ids=lambda row: row.name)
def test_every_api_of_a_controller_answers_there(controller, row):
    """In its newest version, with a request that asks for nothing."""
    peer = controller.connect()
    fields = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    peer.send(messages.request_class(row.key)(**fields if row.name == "DescribeAcls" else {}), row.max_version)
    controller.advance(1.0)
    assert len(peer.answers) == 1, peer.closed


def test_a_request_to_the_controller_is_a_value(controller):
    """Nothing of a connection is in it: whoever has it can have it decided."""
    answers = []

    class Token:
        def deliver(self, message):
            answers.append(message)

    message = messages.UnregisterBrokerRequest(broker_id=7)
    controller.controller.submit(ControllerRequest(64, 0, message, "User:a", "127.0.0.1", "CONTROLLER", Token()))
    assert answers[0].error_code == errors.BROKER_ID_NOT_REGISTERED


def nodes_of(runtime, settings, path, listening):
    directories = Directories(runtime, settings, [path])
    housekeeping = Housekeeping(runtime, settings, directories)
    runtime.nodes += [directories, housekeeping]
    return directories, housekeeping


def test_a_controller_and_a_broker_with_ids_of_their_own_share_a_runtime():
    """The broker is handed the controller; its registration and all that clients ask of it goes there as values."""
    clock = ManualClock()
    runtime = Runtime(
        clock=clock,
        disk=MemoryDisk(),
        random=random.Random(1),
        reactor=lambda runtime: Reactor(runtime, Host(Network(clock))),
    )
    settings = [config.Settings.from_properties({"node.id": (str(each), "test")}) for each in (3000, 1)]
    controller_parts = nodes_of(runtime, settings[0], "/controller", [])
    controller = ControllerNode(runtime, settings[0], *controller_parts, [])
    broker_parts = nodes_of(runtime, settings[1], "/broker", [])
    broker = Broker(runtime, settings[1], [Listener("PLAINTEXT", "localhost", 9092)], *broker_parts, controller)
    runtime.nodes += [controller, broker]
    for directories, path in ((controller_parts[0], "/controller"), (broker_parts[0], "/broker")):
        directories.open(path)
    controller.start()
    broker.bind()
    controller.activate(b"i" * 16)
    broker.start(b"b" * 16)
    controller.begin_serving()
    assert list(controller.image.brokers) == [1] and controller.image.brokers[1].active
    topic = messages.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    answers = []

    class Token:
        def deliver(self, message):
            answers.append(message)

    message = messages.CreateTopicsRequest(topics=[topic], timeout_ms=1000)
    request = ControllerRequest(19, 7, message, "User:a", "127.0.0.1", "PLAINTEXT", Token())
    result = controller.submit(request)
    while not answers:
        next(result, None)
        runtime.begin_turn()
        runtime.end_turn()
    assert answers[0].topics[0].error_code == 0 and len(broker.partitions) == 2
    runtime.close()
    assert runtime.metrics.unexpected_errors == 0


def test_listeners_of_a_controller():
    entries = ["PLAINTEXT://localhost:9092", "CONTROLLER://localhost:9093"]
    security = ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT"]
    (found,) = parse(entries, [], security, ["CONTROLLER"], of_controller=True)
    assert (found.name, found.port) == ("CONTROLLER", 9093)
    with pytest.raises(errors.ConfigError, match=r"a controller of several nodes needs a listener"):
        parse(entries, [], security, [], of_controller=True)


@pytest.mark.parametrize(
    ("listeners", "names", "added"),
    [
        (["CONTROLLER://:9093"], ["CONTROLLER"], ["CONTROLLER:PLAINTEXT"]),
        (["PLAINTEXT://:9092"], ["quorum", "PLAINTEXT"], ["quorum:PLAINTEXT"]),
        (["SSL://:9092"], ["CONTROLLER"], []),
        (["PLAINTEXT://:9092"], ["SASL_SSL"], []),
    ],
)
def test_controller_listeners_are_plain_text_unless_a_protocol_is_named(listeners, names, added):
    assert default_protocols(listeners, names) == added


def test_a_connection_writes_to_the_log_of_its_node():
    shared, own = Lines(), Lines()
    level, sink = process_logs().level, process_logs().sink
    configure("debug", shared)
    try:
        clock = ManualClock()
        network = Network(clock)
        process = Process(
            config.Settings.from_properties({}),
            [Listener("PLAINTEXT", "localhost", 9092)],
            ["/data"],
            clock=clock,
            disk=MemoryDisk(),
            reactor=lambda runtime: Reactor(runtime, Host(network)),
            logs=Logs("debug", own),
        )
        process.start()
        client, accepted = network.pair()
        process.broker.socket_server.adopt(accepted, process.broker.listeners[0])
        client.send(b"GET / HTTP/1.1\r\n\r\n")
        for _ in range(2):
            process.runtime.reactor.turn(0)
        assert "connection-closed" in own.events
        assert "connection-closed" not in shared.events
        process.runtime.close()
    finally:
        configure(level, sink)


class Lines:
    """The events of a log."""

    def __init__(self):
        self.events = []

    def line(self, level, name, event, fields):
        self.events.append(event)


def test_the_level_of_one_node_is_not_that_of_another():
    """IncrementalAlterConfigs on a broker's loggers changes the lines of that broker."""
    worlds = [World(f"/data{number}", disk=MemoryDisk()) for number in range(2)]
    request = messages.IncrementalAlterConfigsRequest
    change = request.AlterableConfig(name="root", config_operation=0, value="ERROR")
    resource = request.AlterConfigsResource(resource_type=8, resource_name="1", configs=[change])
    assert worlds[0].connect().ask(request(resources=[resource]), 1).responses[0].error_code == 0
    lines = []
    for number, world in enumerate(worlds):
        world.broker.logs.sink = Sink(lambda data, number=number: lines.append((number, data)) or len(data))
        world.broker.logs.warning("server", "happened")
    assert [number for number, _ in lines] == [1]
    assert [world.broker.logs.level for world in worlds] == ["error", "info"]
    for world in worlds:
        world.stop()


class Follower:
    """Holds the controller's image; its new partitions wait for their logs until `open`."""

    def __init__(self):
        self.deltas = []
        self.answers = []

    def metadata_changed(self, delta):
        self.deltas.append(delta)
        return bool(delta.topics_created)

    def after_opening(self, answer):
        self.answers.append(answer)

    def open(self):
        while self.answers:
            self.answers.pop(0)()


def test_every_follower_is_told_of_a_change_and_the_answer_waits_for_all():
    """A created topic is answered when each follower, and the broker, has opened its new partitions."""
    world = World("/data", disk=MemoryDisk())
    followers = [Follower(), Follower()]
    for each in followers:
        world.controller.on_committed(each)
    peer = world.connect()
    topic = messages.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    peer.send(messages.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
    for each in followers[::-1]:
        assert [topic.name for delta in each.deltas for topic in delta.topics_created] == ["t"]
        assert not peer.answers
        each.open()
        world.turn()
    assert peer.answers[0].topics[0].error_code == 0
    world.stop()


def test_the_table_says_which_apis_have_a_fast_path():
    assert {row.name for row in table.ROWS if row.has_fast_path} == set(FAST_PATHS)
    for row in table.ROWS:
        if row.has_fast_path:
            versions = FAST_PATHS[row.name].versions
            assert row.min_version <= min(versions) and max(versions) <= row.max_version


def test_the_stages_of_a_login_answer_the_apis_that_the_table_says():
    stages = [stage for stage in STAGES if stage.api_keys]
    names = {stage.name: {table.by_key(key).name for key in stage.api_keys} for stage in stages}
    assert names == {
        "versions": {"ApiVersions", "SaslHandshake"},
        "handshake": {"SaslHandshake"},
        "authenticate": {"SaslAuthenticate"},
        "expired": {"SaslHandshake"},
    }
