"""The metadata log in the shell: what a failed write means, and what survives."""

import random

import pytest

from pykafkad import errors
from pykafkad.errors import StorageFailure
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import NOTHING, World


def create(name):
    request = messages.CreateTopicsRequest
    return request(topics=[request.CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=1000)


def test_a_full_disk_refuses_changes_and_serves_what_there_is():
    """The client that asked for the change loses its connection, nobody else notices, and nothing half-made remains."""
    disk = MemoryDisk()
    world = World("/data", disk=disk)
    world.create_topic("kept")
    other = world.connect()
    assert other.ask(produce("kept", {0: batch(b"v")}), 9).responses[0].partition_responses[0].error_code == 0
    disk.fail("write", sticky=True)
    asking = world.connect()
    assert asking.ask(create("new"), 7) is NOTHING
    assert "write failed" in asking.closed
    assert "new" not in world.node.image.topics
    row = other.ask(fetch("kept", {0: 0}), 11).responses[0].partitions[0]
    assert row.error_code == 0 and row.high_watermark == 1
    assert world.node.stopping is None
    disk.heal()
    disk.kill()
    again = world.restart()
    assert "new" not in again.node.image.topics and "kept" in again.node.image.topics
    again.create_topic("new")
    row = again.connect().ask(fetch("kept", {0: 0}), 11).responses[0].partitions[0]
    assert row.high_watermark == 1
    assert again.connect().ask(create("new"), 7).topics[0].error_code == errors.TOPIC_ALREADY_EXISTS


def test_a_disk_that_cannot_be_written_at_the_start_is_said():
    disk = MemoryDisk()
    World("/data", disk=disk).stop()
    disk.fail("write", sticky=True)
    with pytest.raises(StorageFailure):
        World("/data", disk=disk)


@pytest.mark.parametrize("clean", [True, False])
def test_topics_ids_and_settings_survive_a_restart(clean):
    world = World("/data", disk=MemoryDisk())
    topic_id = world.create_topic("t", 3, retention_ms=12345)
    if clean:
        world.stop()
    else:
        world.disk.lose_power(random.Random(1))
    again = world.restart()
    topic = again.node.image.topics["t"]
    assert (topic.id, len(topic.partitions)) == (topic_id, 3)
    assert again.node.partitions.get("t", 2).settings.retention_ms == 12345
    assert again.node.cluster_id == world.node.cluster_id
