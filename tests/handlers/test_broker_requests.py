"""What brokers and controllers ask of a controller besides their lives: producer ids, directories, registrations."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.handlers import table
from pykafkad.metadata import features
from pykafkad.wire import messages
from tests.handlers.broker_requests import (
    CLUSTER_ACTION,
    controller_world,
    create_topic,
    heartbeat,
    join,
    partitions,
    registration,
)

DIRECTORY = bytes([102]) * 16


@pytest.fixture
def world():
    made = controller_world()
    yield made
    assert made.runtime.metrics.unexpected_errors == 0
    made.stop()


@pytest.fixture
def peer(world):
    return world.connect()


class Refusing:
    """An authorizer that refuses one thing."""

    def authorize(self, principal, client_address, operation, resource_type, resource_name):
        return (operation, resource_type, resource_name) != CLUSTER_ACTION


@pytest.mark.parametrize("row", table.CONTROLLER_ROWS, ids=lambda row: row.name)
def test_all_of_them_need_cluster_action(row):
    world = controller_world(authorizer=Refusing())
    peer = world.connect()
    for version in range(row.min_version, row.max_version + 1):
        answer = peer.ask(messages.request_class(row.key)(), version)
        assert answer.error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    world.stop()


def test_a_broker_gets_blocks_of_producer_ids(world, peer):
    request = messages.AllocateProducerIdsRequest
    assert peer.ask(request(broker_id=2, broker_epoch=5), 0).error_code == errors.STALE_BROKER_EPOCH
    join(world, peer, 2)
    epoch = world.controller.image.brokers[2].epoch
    assert peer.ask(request(broker_id=2, broker_epoch=epoch - 1), 0).error_code == errors.STALE_BROKER_EPOCH
    blocks = [peer.ask(request(broker_id=2, broker_epoch=epoch), 0) for _ in range(2)]
    assert [(row.error_code, row.producer_id_start, row.producer_id_len) for row in blocks] == [
        (0, 0, 1000),
        (0, 1000, 1000),
    ]
    assert world.controller.image.next_producer_id == 2000


def assignment(world, placed, *, number=2, epoch=None):
    """`placed` are (directory, topic id, partition)."""
    request = messages.AssignReplicasToDirsRequest
    return request(
        broker_id=number,
        broker_epoch=world.controller.image.brokers[number].epoch if epoch is None else epoch,
        directories=[
            request.DirectoryData(
                id=directory,
                topics=[
                    request.TopicData(topic_id=topic_id, partitions=[request.PartitionData(partition_index=index)])
                ],
            )
            for directory, topic_id, index in placed
        ],
    )


def test_replicas_are_assigned_to_directories(world, peer):
    assert peer.ask(registration(world, log_dirs=[b"a" * 16, b"b" * 16]), 4).error_code == 0
    assert not peer.ask(heartbeat(world), 2).is_fenced
    join(world, peer, 3, 4)
    topic_id = create_topic(world, peer, "t", [[2, 3], [3, 4], [2, 3]])
    wanted = [
        (b"a" * 16, topic_id, 0),
        (b"a" * 16, topic_id, 1),
        (b"a" * 16, topic_id, 9),
        (b"a" * 16, b"?" * 16, 0),
        (b"z" * 16, topic_id, 2),
    ]
    answer = peer.ask(assignment(world, wanted), 0)
    assert answer.error_code == 0
    assert [
        (row.id[:1], row.topics[0].topic_id, part.partition_index, part.error_code)
        for row in answer.directories
        for part in row.topics[0].partitions
    ] == [
        (b"a", topic_id, 0, 0),
        (b"a", topic_id, 1, errors.NOT_LEADER_OR_FOLLOWER),
        (b"a", topic_id, 9, errors.UNKNOWN_TOPIC_OR_PARTITION),
        (b"a", b"?" * 16, 0, errors.UNKNOWN_TOPIC_ID),
        (b"z", topic_id, 2, 0),
    ]
    states = world.controller.image.topics["t"].partitions
    assert [state.directories[0] for state in states] == [b"a" * 16, bytes([103]) * 16, b"z" * 16]
    assert partitions(world, "t") == [(2, (2, 3)), (3, (3, 4)), (3, (3,))], "its directory z is not there"
    stale = peer.ask(assignment(world, wanted, epoch=1), 0)
    assert (stale.error_code, stale.directories) == (errors.STALE_BROKER_EPOCH, [])


def controller_registration(number):
    request = messages.ControllerRegistrationRequest
    return request(
        controller_id=number,
        incarnation_id=b"c" * 16,
        listeners=[request.Listener(name="CONTROLLER", host="h", port=9093, security_protocol=0)],
        features=[request.Feature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
    )


def test_another_controller_registers(world, peer):
    answer = peer.ask(controller_registration(7), 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    known = world.controller.image.controllers[7]
    assert (known.incarnation_id, known.features) == (b"c" * 16, {"metadata.version": (7, 30)})
    assert repr(known.endpoints["CONTROLLER"]) == "Endpoint(CONTROLLER://h:9093)"
    world.controller.image.features[features.METADATA_VERSION] = 14
    refused = peer.ask(controller_registration(8), 0)
    assert refused.error_code == errors.UNSUPPORTED_VERSION and "too old" in refused.error_message
    assert 8 not in world.controller.image.controllers


def test_an_unregistered_broker_leaves_every_isr_and_may_come_back(world, peer):
    join(world, peer, 2, 3)
    create_topic(world, peer, "t", [[2, 3]])
    create_topic(world, peer, "u", [[2]])
    assert peer.ask(messages.UnregisterBrokerRequest(broker_id=2), 0).error_code == 0
    assert partitions(world, "t") == [(3, (3,))] and partitions(world, "u") == [(-1, ())]
    assert peer.ask(heartbeat(world, 2, broker_epoch=5), 2).error_code == errors.STALE_BROKER_EPOCH
    # The next life of it need not wait for the session of a broker that is not registered.
    assert peer.ask(registration(world, 2, life=2), 4).error_code == 0
    assert peer.ask(messages.UnregisterBrokerRequest(broker_id=9), 0).error_code == errors.BROKER_ID_NOT_REGISTERED


def test_the_id_of_a_broker_in_the_controllers_process_is_taken(world, peer):
    """It sends no heartbeats and lives as long as the controller."""
    from pykafkad.metadata import events
    from pykafkad.metadata.brokers import Endpoint

    local = events.RegisterBroker(5, b"l" * 16, [Endpoint("PLAINTEXT", "h", 1)], [b"l" * 16])
    world.controller.submit(local)
    join(world, peer, 2)
    assert peer.ask(registration(world, 5), 4).error_code == errors.DUPLICATE_BROKER_REGISTRATION
    world.advance(11.0)
    assert peer.ask(registration(world, 5), 4).error_code == errors.DUPLICATE_BROKER_REGISTRATION
    # Nor does it hold up the shutdown of another: it knows what the controller knows.
    world.controller.submit(events.UnfenceBroker(5, world.controller.image.brokers[5].epoch))
    assert peer.ask(heartbeat(world, 2), 2).error_code == 0
    create_topic(world, peer, "t", [[2, 5]])
    assert not peer.ask(heartbeat(world, 2, want_shut_down=True), 2).should_shut_down
    assert peer.ask(heartbeat(world, 2, want_shut_down=True), 2).should_shut_down
    world.controller.submit(events.StopBroker(5))
    assert peer.ask(registration(world, 5), 4).error_code == 0
