"""Brokers of one process where everybody has to log in: they reach each other by connections that nobody else has."""

import pytest

from pykafkad import errors
from pykafkad.server.listeners import Listener
from pykafkad.server.local_links import LocalSession
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.server.sasl_world import log_in
from tests.simulation.brokers_world import HOST, BrokersWorld

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";'
SETTINGS = {
    "listener_security_protocol_map": "PLAINTEXT:SASL_PLAINTEXT",
    "sasl_enabled_mechanisms": "PLAIN",
    "listener_name_plaintext_plain_sasl_jaas_config": JAAS,
}
AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:alice",
}


class LoggingIn(BrokersWorld):
    """Its clients log in as alice."""

    @staticmethod
    def _listener(port, advertised):
        return Listener("PLAINTEXT", HOST, port, None, "SASL_PLAINTEXT")

    def connect(self, node_id):
        peer = super().connect(node_id)
        assert log_in(peer).error_code == 0
        peer.answers.clear()
        return peer


@pytest.fixture(params=[{}, AUTHORIZER], ids=["no authorizer", "authorizer"])
def world(request):
    made = LoggingIn(**SETTINGS, **request.param)
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


def write(world, value, acks=-1):
    leader = world.leader("t")
    (row,) = world.ask(leader, produce("t", {0: batch(value)}, acks=acks), 9).responses[0].partition_responses
    assert row.error_code == errors.NONE
    return row.base_offset


def committed(world):
    """What each broker that is up knows to be committed."""
    return {each.partitions.get("t", 0).high_watermark for each in world.process.brokers}


def test_they_replicate_and_take_over(world):
    """Whether or not an authorizer would let a stranger do that."""
    world.create_topic("t", 1, replication_factor=3, min_insync_replicas=3)
    assert write(world, b"1") == 0
    world.until(lambda: committed(world) == {1})
    first = world.leader("t")
    world.stop_broker(first)
    world.until(lambda: world.leader("t") != first)
    world.start_broker(first)
    world.until(lambda: len(world.image.partition("t", 0).isr) == 3)
    second = world.leader("t")
    world.process.kill_broker(second)
    world.until(lambda: world.leader("t") != second)
    world.start_broker(second)
    world.until(lambda: len(world.image.partition("t", 0).isr) == 3)
    assert write(world, b"2") == 1
    world.until(lambda: committed(world) == {2})


def test_a_transaction_reaches_the_partitions_of_all(world):
    """Its markers go from the coordinator to the leaders."""
    world.create_topic("t", 3, replication_factor=1)
    leaders = {world.leader("t", index) for index in range(3)}
    assert len(leaders) == 3
    coordinator = []

    def is_there():
        found = world.ask(1, messages.FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]), 4).coordinators[0]
        coordinator[:] = [found.node_id]
        return found.error_code == errors.NONE

    world.until(is_there)
    ids = []

    def has_id():
        ids[:] = [world.ask(coordinator[0], messages.InitProducerIdRequest(
            transactional_id="x", transaction_timeout_ms=10_000), 4)]  # fmt: skip
        return ids[0].error_code == errors.NONE

    world.until(has_id)
    who = {"producer_id": ids[0].producer_id, "producer_epoch": ids[0].producer_epoch}
    topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0, 1, 2])
    added = messages.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=who["producer_id"],
        v3_and_below_producer_epoch=who["producer_epoch"],
        v3_and_below_topics=[topic],
    )
    rows = world.ask(coordinator[0], added, 3).results_by_topic_v3_and_below[0].results_by_partition
    assert {row.partition_error_code for row in rows} == {errors.NONE}
    ended = messages.EndTxnRequest(transactional_id="x", committed=True, **who)
    assert world.ask(coordinator[0], ended, 3).error_code == errors.NONE
    ends = lambda: {world.broker(world.leader("t", index)).partitions.get("t", index).end_offset for index in range(3)}  # noqa: E731
    world.until(lambda: ends() == {1})


def test_nothing_listens_for_them(world):
    """Who comes from outside comes to the listeners that ask for a login, and gets nothing without one."""
    world.create_topic("t", 1, replication_factor=3)
    write(world, b"1")
    assert set(world.network.listeners) == {(HOST, 9092), (HOST, 9093), (HOST, 9094)}
    local = [
        connection
        for broker in world.process.brokers
        for connection in broker.socket_server.connections()
        if type(connection.session) is LocalSession
    ]
    assert local and all(connection.listener.port == 0 for connection in local)
    stranger = BrokersWorld.connect(world, world.leader("t"))
    fetch = messages.FetchRequest(replica_state=messages.FetchRequest.ReplicaState(replica_id=2, replica_epoch=-1))
    stranger.send(fetch, 17)
    assert stranger.closed and not stranger.answers


def test_links_leave_the_connections_to_clients():
    """They do not count in max.connections, nor are they ended when too many others are there."""
    world = LoggingIn(**SETTINGS, max_connections=2)
    world.create_topic("t", 3, replication_factor=3, min_insync_replicas=3)
    write(world, b"1")
    world.until(lambda: committed(world) == {1})
    for broker in world.process.brokers:
        server = broker.socket_server
        links = [each for each in server.connections() if type(each.session) is LocalSession]
        clients = [each for each in server.connections() if each not in links]
        assert links and server.limits.count == len(clients)
        server.limits.max_connections = -1
        assert not set(links) & set(server.limits.excess(server.connections()))
        for link in links:
            world.runtime.reactor.drop_connection(link, "test")
        assert server.limits.count == len(clients)
    world.stop()


def test_one_who_logs_in_is_no_broker_for_that():
    """With an authorizer, fetching as a follower is ClusterAction."""
    others = {**AUTHORIZER, "super_users": "User:root"}
    world = LoggingIn(**SETTINGS, **others)
    row = messages.FetchRequest
    fetch = row(
        replica_state=row.ReplicaState(replica_id=2, replica_epoch=-1),
        topics=[row.FetchTopic(topic_id=bytes(15) + b"x", partitions=[row.FetchPartition(partition=0)])],
    )
    answer = world.ask(1, fetch, 17)
    (topic,) = answer.responses
    assert [part.error_code for part in topic.partitions] == [errors.TOPIC_AUTHORIZATION_FAILED]
    world.stop()


def test_a_plain_listener_is_used_where_there_is_one():
    """As brokers of several processes do."""
    world = BrokersWorld()
    assert world.process.local_links is None
    world.stop()
    world = BrokersWorld(**{**AUTHORIZER, "super_users": "User:ANONYMOUS"})
    assert world.process.local_links is None
    world.stop()
