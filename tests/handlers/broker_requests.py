"""A controller alone, and what brokers send it."""

from __future__ import annotations

from pykafkad.metadata import features
from pykafkad.wire import messages
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World

CLUSTER_ACTION = ("ClusterAction", "Cluster", "kafka-cluster")


def controller_world(**settings):
    """A process with a controller alone."""
    return World("/data", disk=MemoryDisk(), process_roles="controller", **settings)


def incarnation(number, life=1):
    return bytes([life]) * 8 + bytes([number]) * 8


def registration(world, number=2, *, life=1, **changes):
    """The registration of a broker with every feature of this release."""
    request = messages.BrokerRegistrationRequest
    fields = {
        "broker_id": number,
        "cluster_id": world.controller.services.cluster_id,
        "incarnation_id": incarnation(number, life),
        "listeners": [request.Listener(name="PLAINTEXT", host=f"broker{number}", port=9092, security_protocol=0)],
        "features": [
            request.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in features.SUPPORTED.items()
        ],
        "log_dirs": [bytes([100 + number]) * 16],
    }
    return request(**{**fields, **changes})


def heartbeat(world, number=2, **changes):
    """A heartbeat of a broker that has read everything."""
    image = world.controller.image
    fields = {
        "broker_id": number,
        "broker_epoch": image.brokers[number].epoch if number in image.brokers else -1,
        "current_metadata_offset": image.offset,
    }
    return messages.BrokerHeartbeatRequest(**{**fields, **changes})


def join(world, peer, *numbers):
    """Brokers that register and are unfenced."""
    for number in numbers:
        assert peer.ask(registration(world, number), 4).error_code == 0
        answer = peer.ask(heartbeat(world, number), 2)
        assert (answer.error_code, answer.is_caught_up, answer.is_fenced) == (0, True, False)


def create_topic(world, peer, name, assignments):
    """A topic whose partitions have these replicas."""
    request = messages.CreateTopicsRequest
    rows = [
        request.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
        for index, brokers in enumerate(assignments)
    ]
    topic = request.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=rows)
    before = len(peer.answers)
    peer.send(request(topics=[topic], timeout_ms=1000), 7)
    while len(peer.answers) == before:
        world.turn()
    (row,) = peer.answers[before].topics
    assert row.error_code == 0, row
    return row.topic_id


def partitions(world, name):
    """Leader and ISR of each partition."""
    return [(state.leader, state.isr) for state in world.controller.image.topics[name].partitions]
