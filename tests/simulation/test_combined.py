"""Nodes that are a broker and a controller each, in one quorum: what others see of one that goes."""

import pytest

from pykafkad import errors
from pykafkad.wire import messages
from tests.seeds import examples, sampled
from tests.simulation.combined import CombinedNodes
from tests.simulation.combined_rounds import Rounds
from tests.simulation.controllers import host_of

SEEDS = 24
PARTS = 4


def other_than(world, node_id):
    """Another node that serves."""
    return next(each for each in world.serving() if each != node_id)


def described(world, node_id):
    """(leader, voters, observers) as a broker tells them to an administrator."""
    form = messages.DescribeQuorumRequest
    topic = form.TopicData(topic_name="__cluster_metadata", partitions=[form.PartitionData(partition_index=0)])
    answer = world.answer(node_id, form(topics=[topic]))
    row = answer.topics[0].partitions[0]
    return (
        row.leader_id,
        sorted(each.replica_id for each in row.current_voters),
        [each.replica_id for each in row.observers],
    )


@pytest.mark.parametrize("dynamic", [False, True])
def test_three_nodes_serve_and_every_broker_reaches_the_active_controller(dynamic):
    world = CombinedNodes(1, (1, 2, 3), dynamic=dynamic)
    world.until_serving()
    leader = world.elect()
    for node_id in (1, 2, 3):
        assert described(world, node_id) == (leader, [1, 2, 3], [])
    world.create_topic("t", partitions=3)
    image = world.image()
    assert sorted(image.brokers) == sorted(image.controllers) == [1, 2, 3]
    told = []
    for index in range(3):
        world.produce("t", b"v", told.append, index)
    world.until(lambda: told == [0, 0, 0])
    world.until(world.in_step)
    assert {each.runtime.metrics.unexpected_errors for each in world.processes.values()} == {0}


@pytest.mark.parametrize("loses_power", [False, True])
def test_the_active_node_is_killed_and_the_others_go_on(loses_power):
    world = CombinedNodes(2, (1, 2, 3))
    world.until_serving()
    world.create_topic("t", partitions=3)
    leader = world.elect()
    world.kill(leader, loses_power=loses_power)
    world.until(lambda: all(each.leader not in (leader, -1) for each in world.image().topics["t"].partitions))
    told = []
    for index in range(3):
        world.produce("t", b"v", told.append, index)
    world.until(lambda: told == [0, 0, 0])
    assert world.elect() != leader
    world.start(leader)
    world.until_serving()
    world.until(lambda: world.in_sync("t"))
    world.until(world.in_step)
    assert all(len({tuple(world.records_of(each, "t", index)) for each in (1, 2, 3)}) == 1 for index in range(3))


def test_a_controlled_stop_of_the_active_node_moves_what_it_leads_before_it_goes():
    world = CombinedNodes(3, (1, 2, 3))
    world.until_serving()
    world.create_topic("t", partitions=6)
    leader = world.elect()
    assert any(each.leader == leader for each in world.image().topics["t"].partitions)
    assert world.stop(leader)
    world.elect()
    assert all(each.leader not in (leader, -1) for each in world.image().topics["t"].partitions)


def test_the_controller_is_reached_until_its_broker_has_left():
    """Other nodes may need it for the controlled shutdown that waits for them."""
    world = CombinedNodes(4, (1, 2, 3))
    world.until_serving()
    process = world.processes[world.elect()]
    for node in process.runtime.nodes:
        node.stop_listening()
    host = host_of(process.source.node_id)
    assert (host, 9092) not in world.network.listeners and (host, 9093) in world.network.listeners
    process.source.resign()
    assert (host, 9093) not in world.network.listeners


def test_a_node_without_a_majority_serves_what_is_committed_and_waits_for_the_others():
    world = CombinedNodes(5, (1, 2, 3))
    world.until_serving()
    world.create_topic("t")
    survivor, *others = (1, 2, 3)
    for each in others:
        world.kill(each)
    world.run(world.clock.now() + 5.0)
    answer = world.answer(survivor, messages.MetadataRequest(topics=None))
    assert [topic.name for topic in answer.topics] == ["t"]
    request = messages.CreateTopicsRequest
    topic = request.CreatableTopic(name="u", num_partitions=1, replication_factor=1)
    found = []
    world.ask(survivor, request(topics=[topic], timeout_ms=1000), found.append)
    for each in others:
        world.start(each)
    world.until(lambda: bool(found), 90.0)
    world.until(lambda: sorted(world.serving()) == [1, 2, 3])


def test_a_stop_without_a_majority_does_not_wait_for_one_for_ever():
    """The others of the cluster were stopped before: nobody is left who could move what this broker leads."""
    world = CombinedNodes(7, (1, 2, 3))
    world.until_serving()
    for each in (1, 2):
        world.kill(each)
    began = world.clock.now()
    assert world.stop(3)
    assert world.clock.now() - began < 2 * 3.0 + 1.0, "twice broker.session.timeout.ms"


@pytest.mark.long
@pytest.mark.parametrize("part", sampled(range(PARTS), PARTS))
def test_seeds(part):
    """Nothing acknowledged is lost while one node at a time is away, and all logs and images are the same at the
    end."""
    for seed in range(part, max(PARTS, examples(SEEDS)), PARTS):
        Rounds(seed).play()


def test_an_unknown_request_at_a_combined_node_is_refused_by_it():
    world = CombinedNodes(6, (1, 2, 3))
    world.until_serving()
    request = messages.DeleteTopicsRequest
    answer = world.answer(1, request(topics=[request.DeleteTopicState(name="none")], timeout_ms=1000))
    assert answer.responses[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
