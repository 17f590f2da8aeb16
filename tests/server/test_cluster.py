"""Several brokers of one process: what each of them answers, and what becomes of the others when one goes."""

from __future__ import annotations

import pytest

from pykafkad import config, errors
from pykafkad.errors import ConfigError
from pykafkad.server import cluster_settings
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.simulation.brokers_world import BrokersWorld
from tests.simulation.slow_clock import SlowClock


@pytest.fixture
def world():
    made = BrokersWorld()
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


def test_partitions_are_spread_over_the_brokers(world):
    """Each broker has the logs of its own partitions alone, and names all of them."""
    world.create_topic("t", 6)
    leaders = [state.leader for state in world.image.topics["t"].partitions]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]
    for node_id in (1, 2, 3):
        held = {log.partition for log in world.broker(node_id).partitions if log.topic == "t"}
        assert held == {index for index, leader in enumerate(leaders) if leader == node_id}
        answer = world.ask(node_id, messages.MetadataRequest(topics=None), 12)
        assert [(each.node_id, each.port) for each in answer.brokers] == [(1, 9092), (2, 9093), (3, 9094)]
        (topic,) = answer.topics
        assert [row.leader_id for row in sorted(topic.partitions, key=lambda row: row.partition_index)] == leaders
        cluster = world.ask(node_id, messages.DescribeClusterRequest(endpoint_type=1), 1)
        assert [each.broker_id for each in cluster.brokers] == [1, 2, 3] and cluster.controller_id in (1, 2, 3)


def test_a_partition_of_another_broker_is_refused_with_its_leader(world):
    world.create_topic("t", 3)
    leader = world.leader("t")
    wrong = leader % 3 + 1
    answer = world.ask(wrong, produce("t", {0: batch(b"v")}), 12)
    (row,) = answer.responses[0].partition_responses
    assert row.error_code == errors.NOT_LEADER_OR_FOLLOWER
    assert row.current_leader.leader_id == leader
    assert [(each.node_id, each.port) for each in answer.node_endpoints] == [(leader, 9091 + leader)]
    assert world.ask(leader, produce("t", {0: batch(b"v")}), 12).responses[0].partition_responses[0].error_code == 0
    fetched = world.ask(leader, fetch("t", {0: 0}), 12).responses[0].partitions[0]
    assert (fetched.error_code, fetched.high_watermark) == (0, 1)
    refused = world.ask(wrong, fetch("t", {0: 0}), 12).responses[0].partitions[0]
    assert refused.error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_every_broker_names_the_same_coordinators(world):
    groups = [f"group {number}" for number in range(20)]
    request = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=groups)
    world.ask(1, request, 4)
    world.until(lambda: "__consumer_offsets" in world.image.topics)
    found = [[row.node_id for row in world.ask(node_id, request, 4).coordinators] for node_id in (1, 2, 3)]
    assert found[0] == found[1] == found[2] and set(found[0]) == {1, 2, 3}
    for group, coordinator in zip(groups, found[0], strict=True):
        for node_id in (1, 2, 3):
            leave = messages.HeartbeatRequest(group_id=group, generation_id=0, member_id="m")
            code = world.ask(node_id, leave, 4).error_code
            assert code == (errors.UNKNOWN_MEMBER_ID if node_id == coordinator else errors.NOT_COORDINATOR)


def test_settings_of_one_broker_are_its_own(world):
    """Those of all brokers reach all of them, and the controller."""
    request = messages.IncrementalAlterConfigsRequest

    def alter(name, value):
        change = request.AlterableConfig(name="log.cleaner.threads", config_operation=0, value=value)
        resource = request.AlterConfigsResource(resource_type=4, resource_name=name, configs=[change])
        return world.ask(int(name or 1), request(resources=[resource]), 1).responses[0].error_code

    assert (alter("", "2"), alter("3", "1")) == (0, 0)
    assert [world.broker(node_id).settings.log_cleaner_threads for node_id in (1, 2, 3)] == [2, 2, 1]
    assert world.controller.settings.log_cleaner_threads == 2
    assert [world.broker(node_id).settings.node_id for node_id in (1, 2, 3)] == [1, 2, 3]


def test_a_broker_stops_and_comes_back_while_the_others_serve(world):
    world.create_topic("t", 3)
    leaders = [state.leader for state in world.image.topics["t"].partitions]
    partition = leaders.index(2)
    assert world.ask(2, produce("t", {partition: batch(b"v")}), 12).responses[0].partition_responses[0].error_code == 0
    peer = world.connect(2)
    world.stop_broker(2)
    assert peer.closed and world.process.members[2].state == "down"
    assert world.leader("t", partition) == -1 and world.image.brokers[2].fenced
    answer = world.ask(1, messages.MetadataRequest(topics=None), 12)
    assert [each.node_id for each in answer.brokers] == [1, 3]
    with pytest.raises(ValueError, match="broker 2 is down"):
        world.process.stop_broker(2)
    other = leaders.index(3)
    assert world.ask(3, produce("t", {other: batch(b"v")}), 12).responses[0].partition_responses[0].error_code == 0
    world.start_broker(2)
    assert [state.leader for state in world.image.topics["t"].partitions] == leaders
    fetched = world.ask(2, fetch("t", {partition: 0}), 12).responses[0].partitions[0]
    assert (fetched.error_code, fetched.high_watermark) == (0, 1)


def test_the_broker_that_stands_for_all_may_go(world):
    for node_id in (1, 2):
        world.stop_broker(node_id)
    assert world.process.broker is world.broker(3)
    assert [each.node_id for each in world.process.brokers] == [3]
    world.create_topic("t", 2)
    assert [state.leader for state in world.image.topics["t"].partitions] == [3, 3]


def test_a_killed_broker_is_fenced_when_its_session_is_over(world):
    world.create_topic("t", 3)
    partition = [state.leader for state in world.image.topics["t"].partitions].index(1)
    world.ask(1, produce("t", {partition: batch(b"v")}), 12)
    peer = world.connect(1)
    world.process.kill_broker(1)
    world.turn()
    assert peer.closed and not world.image.brokers[1].fenced
    assert not any(address[1] == 9092 for address in world.network.listeners)
    world.advance(8.5, step=0.5)
    assert not world.image.brokers[1].fenced
    world.advance(1, step=0.5)
    assert world.image.brokers[1].fenced and world.leader("t", partition) == -1
    world.start_broker(1)
    assert world.leader("t", partition) == 1
    fetched = world.ask(1, fetch("t", {partition: 0}), 12).responses[0].partitions[0]
    assert (fetched.error_code, fetched.high_watermark) == (0, 1)


def test_a_killed_broker_may_be_back_before_anybody_knew(world):
    world.create_topic("t", 3)
    world.process.kill_broker(3)
    world.start_broker(3)
    epoch = world.image.brokers[3].epoch
    world.advance(20, step=0.5)
    assert not world.image.brokers[3].fenced and world.image.brokers[3].epoch == epoch
    assert 3 in [state.leader for state in world.image.topics["t"].partitions]


def test_everything_is_there_after_a_restart_of_the_process(world):
    world.create_topic("t", 6)
    leaders = [state.leader for state in world.image.topics["t"].partitions]
    for index, leader in enumerate(leaders):
        world.ask(leader, produce("t", {index: batch(b"v")}), 12)
    world.stop()
    again = BrokersWorld(3, disk=world.disk, clock=world.clock)
    assert [state.leader for state in again.image.topics["t"].partitions] == leaders
    for index, leader in enumerate(leaders):
        assert again.ask(leader, fetch("t", {index: 0}), 12).responses[0].partitions[0].high_watermark == 1
    again.stop()
    world.process = BrokersWorld(3, disk=world.disk, clock=world.clock).process
    world.runtime = world.process.runtime


def test_a_process_that_was_killed_starts_on_a_slow_machine_too():
    """The brokers of before are fenced first, of whose partitions each takes more than a turn's share of time. Brokers
    that registered meanwhile stayed fenced for good."""
    clock = SlowClock()
    world = BrokersWorld(3, clock=clock)
    world.create_topic("t", 6, 3)
    world.disk.kill()
    clock.seconds = 0.001
    again = world.restart()
    clock.seconds = 0.0
    assert [each.fenced for each in again.image.brokers.values()] == [False] * 3
    assert all(state.leader > 0 for state in again.image.topics["t"].partitions)
    # One that is stopped on such a machine is stopped cleanly.
    clock.seconds = 0.001
    again.stop()
    clock.seconds = 0.0
    last = again.restart()
    assert [each.fenced for each in last.image.brokers.values()] == [False] * 3
    last.stop()


def test_replicas_lie_in_different_racks():
    world = BrokersWorld(4, racks=("a", "b"))
    assert [world.image.brokers[node_id].rack for node_id in (1, 2, 3, 4)] == ["a", "b", "a", "b"]
    world.create_topic("t", 8, replication_factor=2)
    for state in world.image.topics["t"].partitions:
        assert {world.image.brokers[each].rack for each in state.replicas} == {"a", "b"}
    world.stop()


def of_brokers(count, *, racks=(), **properties):
    given = {name.replace("_", "."): (str(value), "test") for name, value in properties.items()}
    return cluster_settings.of_brokers(config.Settings.from_properties(given), count, racks, given)


def test_each_broker_has_settings_of_its_own():
    settings = of_brokers(
        3,
        listeners="PLAINTEXT://:9092,OTHER://h:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        advertised_listeners="PLAINTEXT://me:19092",
        log_dirs="/a,/b",
        node_id=5,
        racks=("x", "y"),
    )
    assert [each.node_id for each in settings] == [5, 6, 7] and [each.broker_id for each in settings] == [5, 6, 7]
    assert [each.listeners[0] for each in settings] == [f"PLAINTEXT://:{9092 + index}" for index in range(3)]
    assert {each.listeners[1] for each in settings} == {"OTHER://h:0"}
    assert settings[2].advertised_listeners == ("PLAINTEXT://me:19094",)
    assert settings[1].log_directories == ("/a/broker6", "/b/broker6")
    assert [each.broker_rack for each in settings] == ["x", "y", "x"]


@pytest.mark.parametrize(
    ("count", "given", "replicas", "least"),
    [(1, {}, 1, 1), (2, {}, 2, 2), (3, {}, 3, 2), (5, {}, 3, 2), (3, {"offsets_topic_replication_factor": 1}, 1, 2)],
)
def test_internal_topics_have_as_many_replicas_as_the_brokers_allow(count, given, replicas, least):
    """Kafka's defaults, unless somebody has chosen another number."""
    texts = {name.replace("_", "."): (str(value), "test") for name, value in given.items()}
    base = config.Settings.from_properties(texts)
    brokers = cluster_settings.of_brokers(base, count, (), texts)
    for each in [*brokers, cluster_settings.of_controller(base, brokers)]:
        assert (each.offsets_topic_replication_factor, each.transaction_state_log_min_isr) == (replicas, least)


def test_a_group_and_its_offsets_survive_the_end_of_their_coordinator(world):
    """The leader of their partition is another broker then, which has everything."""
    world.create_topic("t", 1, replication_factor=3)
    request = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    find = lambda node_id: world.ask(node_id, request, 4).coordinators[0]  # noqa: E731
    world.until(lambda: not find(1).error_code)
    assert all(len(state.replicas) == 3 for state in world.image.topics["__consumer_offsets"].partitions)
    coordinator = find(1).node_id
    row = messages.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topic = messages.OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[row])
    commit = messages.OffsetCommitRequest(group_id="g", topics=[topic])
    world.until(lambda: not world.ask(coordinator, commit, 8).topics[0].partitions[0].error_code)
    world.process.kill_broker(coordinator)
    other = coordinator % 3 + 1
    world.until(lambda: find(other).error_code == 0 and find(other).node_id != coordinator)
    asked = messages.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    answers = []

    def is_answered():
        answers[:] = world.ask(find(other).node_id, messages.OffsetFetchRequest(groups=[asked]), 8).groups
        return not answers[0].error_code

    world.until(is_answered)
    assert answers[0].topics[0].partitions[0].committed_offset == 7


def test_an_acknowledged_record_survives_the_end_of_its_leader(world):
    """Whether the leader stops or dies, another replica in sync leads, and the one that comes back follows."""
    world.create_topic("t", 1, replication_factor=3, min_insync_replicas=2)

    def send(value):
        answer = world.ask(world.leader("t"), produce("t", {0: batch(value)}), 12)
        return answer.responses[0].partition_responses[0].error_code

    assert send(b"a") == 0
    first = world.leader("t")
    world.stop_broker(first)
    second = world.leader("t")
    assert second not in (first, -1) and send(b"b") == 0
    world.start_broker(first)
    world.until(lambda: len(world.image.partition("t", 0).isr) == 3)
    world.process.kill_broker(second)
    world.until(lambda: world.leader("t") not in (second, -1))
    assert send(b"c") == 0
    world.start_broker(second)
    world.until(lambda: len(world.image.partition("t", 0).isr) == 3)
    world.until(lambda: {world.broker(each).partitions.get("t", 0).high_watermark for each in (1, 2, 3)} == {3})


@pytest.mark.parametrize(
    ("count", "properties", "problem"),
    [
        (0, {}, "must be from 1 to 100"),
        (101, {}, "must be from 1 to 100"),
        (2, {"process_roles": "controller"}, "has no broker"),
        (3, {"node_id": 2999}, "3000 is that of the controller"),
        (2, {"listeners": "PLAINTEXT://:9092,SSL://:9093"}, "ports of a broker's listeners must lie 2 apart"),
        (2, {"listeners": "PLAINTEXT://:65535"}, "is no port"),
    ],
)
def test_what_several_brokers_cannot_be(count, properties, problem):
    with pytest.raises(ConfigError, match=problem):
        of_brokers(count, **properties)
