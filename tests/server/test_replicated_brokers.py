"""Brokers of one process with partitions of several replicas: leaders, coordinators and transactions that outlive their
broker, and replicas that move."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.server.leader_fetcher import LeaderFetcher
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.server.test_other_brokers import TRANSACTION, Producer, committed
from tests.simulation.brokers_world import BrokersWorld
from tests.simulation.network import Link

GROUP = 0
SETTINGS = {
    "default_replication_factor": 3,
    "offsets_topic_replication_factor": 3,
    "transaction_state_log_replication_factor": 3,
    "transaction_state_log_min_isr": 2,
    "min_insync_replicas": 2,
    "offsets_topic_num_partitions": 1,
    "transaction_state_log_num_partitions": 1,
}


@pytest.fixture(params=[1, 2])
def world(request):
    """The network takes its time, in another order for each seed."""
    made = BrokersWorld(seed=request.param, **SETTINGS)
    made.network.set_usual_link(Link(delay=0.001, jitter=0.002))
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


def state(world, topic="t", partition=0):
    return world.image.partition(topic, partition)


def until_in_sync(world, topic="t", partition=0):
    world.until(lambda: sorted(state(world, topic, partition).isr) == sorted(state(world, topic, partition).replicas))


def append(world, value, partition=0):
    """The base offset of a record that all replicas in sync have; asks until there is a leader."""
    offsets = []

    def is_taken():
        leader = world.leader("t", partition)
        if leader < 0:
            return False
        row = world.ask(leader, produce("t", {partition: batch(value)}), 12).responses[0].partition_responses[0]
        offsets[:] = [row.base_offset]
        return row.error_code == 0

    world.until(is_taken)
    return offsets[0]


def test_a_follower_asks_for_more_in_the_turn_of_its_answer(world, monkeypatch):
    """An acknowledgement by all waits for that request."""
    answered, asked = LeaderFetcher._answered, LeaderFetcher._request
    turns = {"answered": set(), "asked": set()}

    def count(name, call):
        def counted(self, *rest):
            turns[name].add((self, world.runtime.turns))
            return call(self, *rest)

        monkeypatch.setattr(LeaderFetcher, call.__name__, counted)

    world.create_topic("t", 1, 3)
    until_in_sync(world)
    count("answered", answered)
    count("asked", asked)
    append(world, b"x")
    world.advance(1.0)
    assert len(turns["answered"]) >= 2 and turns["answered"] <= turns["asked"]


def kill(world, node_id):
    """The broker is gone; until the controller knows."""
    world.process.kill_broker(node_id)
    world.until(lambda: world.image.brokers[node_id].fenced)


def test_records_outlive_their_leader_again_and_again(world):
    world.create_topic("t", 1, 3)
    offsets = []
    for round in range(4):
        offsets += [append(world, b"%d %d" % (round, each)) for each in range(3)]
        leader = world.leader("t")
        (kill if round % 2 else BrokersWorld.stop_broker)(world, leader)
        world.until(lambda before=leader: world.leader("t") not in (-1, before))
        offsets.append(append(world, b"%d after" % round))
        world.start_broker(leader)
        until_in_sync(world)
    assert offsets == list(range(16))
    world.advance(1.0)
    answers = [world.ask(world.leader("t"), fetch("t", {0: 0}), 12).responses[0].partitions[0]]
    answers += [world.ask(node_id, fetch("t", {0: 0}), 12).responses[0].partitions[0] for node_id in (1, 2, 3)]
    assert {(row.error_code, row.high_watermark) for row in answers} == {(0, 16)}
    assert len({bytes(row.records) for row in answers}) == 1


def coordinator(world, group="g"):
    request = messages.FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group])
    rows = []

    def is_found():
        broker = world.process.brokers[0].node_id
        rows[:] = world.ask(broker, request, 6).coordinators
        return not rows[0].error_code

    world.until(is_found)
    return rows[0].node_id


def test_a_group_keeps_its_offsets_when_its_coordinator_moves(world):
    world.create_topic("t", 1, 3)
    commit, asked = messages.OffsetCommitRequest, messages.OffsetFetchRequest

    def ask(request, version):
        answers = []

        def is_answered():
            answers[:] = [world.ask(coordinator(world), request, version)]
            return code_of(answers[0]) not in (errors.NOT_COORDINATOR, errors.COORDINATOR_LOAD_IN_PROGRESS)

        world.until(is_answered)
        return answers[0]

    def code_of(answer):
        if type(answer) is messages.OffsetCommitResponse:
            return answer.topics[0].partitions[0].error_code
        return answer.groups[0].error_code

    for offset in (5, 6, 7):
        row = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = [commit.OffsetCommitRequestTopic(name="t", partitions=[row])]
        assert code_of(ask(commit(group_id="g", topics=topics), 8)) == 0
        before = coordinator(world)
        kill(world, before)
        world.until(lambda before=before: world.leader("__consumer_offsets") not in (-1, before))
        topics = [asked.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        answer = ask(asked(groups=[asked.OffsetFetchRequestGroup(group_id="g", topics=topics)]), 8)
        assert answer.groups[0].topics[0].partitions[0].committed_offset == offset
        world.start_broker(before)
        until_in_sync(world, "__consumer_offsets")


def one_transaction(world, commit):
    """It begins at one coordinator, which is killed, and ends at another."""
    producer = Producer(world)
    for partition in (0, 1):
        world.until(lambda partition=partition: producer.send(partition, b"v").error_code == 0)
    before = producer.coordinator
    kill(world, before)
    world.until(lambda: world.leader("__transaction_state") not in (-1, before))
    world.until(lambda: all(world.leader("t", partition) not in (-1, before) for partition in (0, 1)))
    request = messages.FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["id"])
    rows = []

    def is_found():
        rows[:] = world.ask(world.process.brokers[0].node_id, request, 6).coordinators
        return not rows[0].error_code

    world.until(is_found)
    producer.coordinator = rows[0].node_id
    producer.end(commit=commit)
    world.start_broker(before)
    until_in_sync(world, "__transaction_state")
    for partition in (0, 1):
        until_in_sync(world, "t", partition)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_at_another_coordinator_and_other_leaders(world, commit):
    world.create_topic("t", 2, 3)
    for _ in range(2):
        one_transaction(world, commit)
    for partition in (0, 1):

        def is_decided(partition=partition):
            stable, end, aborted = committed(world, partition)
            return stable == end and aborted == (0 if commit else 2)

        world.until(is_decided)


def reassign(world, replicas, partition=0):
    request = messages.AlterPartitionReassignmentsRequest
    asked = request.ReassignablePartition(partition_index=partition, replicas=replicas)
    topics = [request.ReassignableTopic(name="t", partitions=[asked])]
    answer = world.ask(world.process.brokers[0].node_id, request(topics=topics), 0)
    assert answer.responses[0].partitions[0].error_code == 0, answer


def test_a_partition_moves_to_other_brokers_with_all_that_it_has(world):
    world.create_topic("t", 1, 1)
    first = world.leader("t")
    second, third = (each for each in (1, 2, 3) if each != first)
    assert state(world).replicas == (first,)
    request = messages.IncrementalAlterConfigsRequest
    change = request.AlterableConfig(name="min.insync.replicas", config_operation=0, value="1")
    resource = request.AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
    world.ask(1, request(resources=[resource], validate_only=False), 1)
    values = [append(world, b"%d" % each) for each in range(5)]
    reassign(world, [second, third])
    world.until(lambda: state(world).replicas == (second, third) and not state(world).adding_replicas)
    assert world.leader("t") in (second, third)
    assert world.broker(first).partitions.get("t", 0) is None, "its log is removed"
    assert append(world, b"5") == len(values)
    reassign(world, [first])
    world.until(lambda: state(world).replicas == (first,) and not state(world).adding_replicas)
    row = world.ask(first, fetch("t", {0: 0}), 12).responses[0].partitions[0]
    assert (row.error_code, row.high_watermark) == (0, 6)
    assert append(world, b"6") == 6


def test_the_preferred_leader_is_elected_again(world):
    world.create_topic("t", 1, 3)
    append(world, b"0")
    preferred = state(world).replicas[0]
    kill(world, preferred)
    world.until(lambda: world.leader("t") not in (-1, preferred))
    append(world, b"1")
    world.start_broker(preferred)
    until_in_sync(world)
    assert world.leader("t") != preferred
    request = messages.ElectLeadersRequest
    asked = request.TopicPartitions(topic="t", partitions=[0])
    answer = world.ask(preferred, request(election_type=0, topic_partitions=[asked], timeout_ms=1000), 2)
    assert answer.replica_election_results[0].partition_result[0].error_code == 0
    assert world.leader("t") == preferred
    assert append(world, b"2") == 2


@pytest.mark.parametrize("group_commit", ["false", "true"])
@pytest.mark.parametrize("size", [10, 700_000], ids=["small batch", "large batch"])
def test_an_answer_waits_for_followers_as_long_as_its_request_allows(group_commit, size):
    """Also one that waited for a sync, or for a write beside the loop, before only a follower was missing."""
    never = {"replica_lag_time_max_ms": 10_000_000, "broker_session_timeout_ms": 10_000_000}
    world = BrokersWorld(**SETTINGS, **never, pykafkad_group_commit=group_commit)
    world.create_topic("t", 1, 3)
    until_in_sync(world)
    assert append(world, b"0") == 0
    leader = world.leader("t")
    world.process.kill_broker(leader % 3 + 1)
    peer = world.connect(leader)
    peer.send(produce("t", {0: batch(b"x" * size)}), 12)
    world.advance(0.9)
    assert not peer.answers
    world.until(lambda: peer.answers, 3)
    (row,) = peer.answers[0].responses[0].partition_responses
    assert (row.error_code, row.base_offset) == (errors.REQUEST_TIMED_OUT, -1)
    # The connection is served again.
    peer.send(messages.ApiVersionsRequest(), 2)
    world.until(lambda: len(peer.answers) == 2, 1)
    assert world.broker(leader).partitions.get("t", 0).end_offset == 2
    assert world.runtime.metrics.unexpected_errors == 0
    world.stop()


@pytest.mark.parametrize("is_deleted", [False, True], ids=["moved", "deleted"])
def test_a_partition_that_goes_answers_who_waits_for_its_followers(is_deleted):
    """When it moves to other brokers, or is deleted: at once, as Kafka does it, and not at the end of the request's
    time. A client that waits so long holds up all that it sends to this broker."""
    never = {"replica_lag_time_max_ms": 10_000_000, "broker_session_timeout_ms": 10_000_000}
    world = BrokersWorld(**SETTINGS, **never)
    world.create_topic("t", 1, 3)
    until_in_sync(world)
    assert append(world, b"0") == 0
    leader = world.leader("t")
    dead = leader % 3 + 1
    (other,) = {1, 2, 3} - {leader, dead}
    world.process.kill_broker(dead)
    peer = world.connect(leader)
    peer.send(produce("t", {0: batch(b"1")}), 12)
    world.advance(0.5)
    assert not peer.answers
    if is_deleted:
        world.ask(other, messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    else:
        reassign(world, [other, dead])
    world.until(lambda: peer.answers, 0.4)
    code = peer.answers[0].responses[0].partition_responses[0].error_code
    assert code == (errors.UNKNOWN_TOPIC_OR_PARTITION if is_deleted else errors.NOT_LEADER_OR_FOLLOWER)
    assert world.runtime.metrics.unexpected_errors == 0
    world.stop()


def test_leaders_are_looked_up_beside_the_thread_of_the_syncs():
    """A name server may take seconds: no acknowledgement waits for it."""
    world = BrokersWorld(advertised="broker.test", **SETTINGS)
    beside = []

    def addresses(host, port):
        beside.append(world.runtime.cpu_offload.working)
        return ["127.0.0.1"]

    world.host.addresses = addresses
    world.create_topic("t", replication_factor=3)
    append(world, b"v")
    assert beside and all(beside)
    world.stop()


def test_a_fetcher_that_is_closed_while_a_name_is_looked_up_connects_to_nobody():
    world = BrokersWorld(advertised="broker.test", **SETTINGS)
    world.host.addresses = lambda host, port: ["127.0.0.1"]
    world.create_topic("t", replication_factor=3)
    leader = world.leader("t", 0)
    broker = world.broker(leader % 3 + 1)
    log = broker.partitions.get("t", 0)
    fetcher = LeaderFetcher(broker, leader)
    fetcher.add(log, log.replica.leader_epoch)
    fetcher.fired("fetch")
    fetcher.close()
    world.advance(0.2)
    assert fetcher._peer is None
    world.stop()
