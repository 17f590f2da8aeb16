"""The metadata quorum in the shell: what a start does, what survives a stop or a crash, what refuses to start."""

from __future__ import annotations

import os
from random import Random

import pytest

from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.log.replay import batches
from pykafkad.metadata import record_codec, snapshots
from pykafkad.metadata.image import TYPE_TOPIC
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import NOTHING, World

Request = messages.CreateTopicsRequest


def test_topics_survive_a_restart(tmp_path):
    """Names, ids, partitions and settings come back from the log; each start is a new epoch of the quorum."""
    world = World(tmp_path)
    topic_id = world.create_topic("a", 3, retention_ms=5000)
    epoch = world.controller.metadata_log.quorum.epoch
    world.stop()
    world = world.restart()
    topic = world.broker.image.topics["a"]
    assert (topic.id, len(topic.partitions)) == (topic_id, 3)
    assert world.broker.image.configs(TYPE_TOPIC, "a") == {"retention.ms": "5000"}
    assert world.broker.partitions.get("a", 2).settings.retention_ms == 5000
    assert [state.leader_epoch for state in topic.partitions] == [2, 2, 2], "none while it was stopped"
    assert world.controller.metadata_log.quorum.epoch == epoch + 1
    world.stop()


def test_a_directory_of_other_voters_is_refused(tmp_path):
    """With another directory's meta.properties it has another id than the voter in the log: it cannot lead, and says
    so."""
    world = World(tmp_path)
    world.create_topic("a")
    world.stop()
    path = tmp_path / "meta.properties"
    path.write_text(path.read_text().partition("directory.id")[0] + "directory.id=AAAAAAAAAAAAAAAAAAAABA\n")
    with pytest.raises(ConfigError, match="names as voters .* which cannot lead alone"):
        world.restart(seed=2)


def test_a_directory_without_its_meta_properties_is_refused(tmp_path):
    world = World(tmp_path)
    world.create_topic("a")
    world.stop()
    os.unlink(tmp_path / "meta.properties")
    with pytest.raises(ConfigError, match="meta.properties is missing, and partitions are there"):
        world.restart(seed=2)
    assert not (tmp_path / "meta.properties").exists()


def test_a_reply_leaves_after_its_change_is_seen(tmp_path):
    """Whoever reads the answer of CreateTopics finds the topic: leader, log and all."""
    world = World(tmp_path)
    world.create_topic("a", 2)
    asked = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="a")])
    (row,) = world.connect().ask(asked, 12).topics
    assert [(part.error_code, part.leader_id) for part in row.partitions] == [(0, world.broker.node_id)] * 2
    assert world.broker.partitions.get("a", 1).end_offset == 0
    world.stop()


def test_a_started_broker_is_unfenced_and_everything_committed(tmp_path):
    world = World(tmp_path)
    broker = world.broker.image.brokers[world.broker.node_id]
    assert not broker.fenced
    assert broker.log_dirs == [world.broker.directory_id]
    assert world.broker.image.offset == world.controller.metadata_log.quorum.high_watermark - 1
    world.stop()


@pytest.mark.parametrize("seed", range(8))
def test_acknowledged_topics_survive_a_loss_of_power(seed):
    """A change is synced before its answer leaves, so the machine may die at any time after that."""
    random = Random(seed)
    disk = MemoryDisk()
    world = World("data", disk=disk, seed=seed)
    acknowledged = {}
    for life in range(3):
        for number in range(random.randrange(4)):
            name = f"t-{life}-{number}"
            acknowledged[name] = world.create_topic(name, random.randrange(1, 4))
        disk.lose_power(random)
        world = world.restart(seed=random.random())
        assert {name: topic.id for name, topic in world.broker.image.topics.items()} == acknowledged
        assert all(topic.partitions[0].leader == world.broker.node_id for topic in world.broker.image.topics.values())


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_a_metadata_log_that_fails_refuses_changes_and_the_rest_is_served(operation):
    """The client that asked for the change loses its connection, nobody else notices, and nothing half-made remains."""
    disk = MemoryDisk()
    world = World("/data", disk=disk)
    world.create_topic("kept")
    other = world.connect()
    assert other.ask(produce("kept", {0: batch(b"v")}), 9).responses[0].partition_responses[0].error_code == 0
    disk.fail(operation, sticky=True)
    asking = world.connect()
    assert (
        asking.ask(Request(topics=[Request.CreatableTopic(name="new", num_partitions=1, replication_factor=1)]), 7)
        is NOTHING
    )
    assert "write failed" in asking.closed
    assert "new" not in world.broker.image.topics
    row = other.ask(fetch("kept", {0: 0}), 11).responses[0].partitions[0]
    assert row.error_code == 0 and row.high_watermark == 1
    assert world.runtime.stopping is None
    disk.heal()
    disk.kill()
    again = world.restart(seed=2)
    assert "kept" in again.broker.image.topics
    # Written and not synced is neither: who asked was told nothing.
    if operation == "write":
        assert "new" not in again.broker.image.topics
        again.create_topic("new")
    row = again.connect().ask(fetch("kept", {0: 0}), 11).responses[0].partitions[0]
    assert row.high_watermark == 1


def test_a_disk_that_cannot_be_written_at_the_start_is_said():
    disk = MemoryDisk()
    World("/data", disk=disk).stop()
    disk.fail("write", sticky=True)
    with pytest.raises(StorageFailure):
        World("/data", disk=disk)


@pytest.mark.parametrize("at", range(1, 12))
def test_a_first_start_that_is_cut_short_is_made_good(at):
    """Whatever write of the very first start fails, the next start begins the cluster anew and serves."""
    disk = MemoryDisk()
    disk.fail("sync", at=at, sticky=True)
    try:
        World("data", disk=disk)
    except StorageFailure:
        pass
    disk.heal()
    disk.lose_power(Random(at))
    world = World("data", disk=disk)
    assert world.broker.image.features["metadata.version"] == 30
    assert not world.broker.image.brokers[world.broker.node_id].fenced
    world.create_topic("a")


def test_a_clean_stop_says_so_in_the_log():
    """The last record of the log fences the broker; a log that fails meanwhile is no reason not to stop."""
    disk = MemoryDisk()
    world = World("/data", disk=disk)
    world.stop()
    broker = world.broker.image.brokers[world.broker.node_id]
    assert broker.fenced and not broker.in_controlled_shutdown, "it led nothing"
    world = world.restart(seed=2)
    assert world.broker.image.brokers[world.broker.node_id].active
    disk.fail("write")
    world.stop()
    disk.heal()
    assert world.restart(seed=3).broker.image.brokers[world.broker.node_id].active


def records_of(world, name):
    """The records of one kind in the metadata log, in order."""
    log = world.controller.metadata_log._log
    decoded = (
        record_codec.decode(record.key if header.is_control else None, record.value).value
        for header, records in batches(log, 0)
        for record in records
    )
    return [value for value in decoded if type(value).__name__ == name]


def test_the_voters_stand_in_the_log_once():
    """A log that is there already has its voters in it, or none, when they stand in the settings of a static quorum."""
    disk = MemoryDisk()
    world = World("/data", disk=disk)
    assert len(records_of(world, "VotersRecord")) == len(records_of(world, "KRaftVersionRecord")) == 1
    world.stop()
    world = world.restart(seed=2)
    assert len(records_of(world, "VotersRecord")) == 1
    assert len(records_of(world, "LeaderChangeMessage")) == 2
    world.stop()


def test_brokers_that_are_not_here_are_fenced_at_the_start():
    """Nobody else can tell this controller that it lives: what such a broker led goes to those who are in sync."""
    world = World("/data", disk=MemoryDisk())
    own = world.broker.node_id
    world.create_topic("a")
    record = messages.RegisterBrokerRecord
    other = record(broker_id=own + 1, incarnation_id=b"o" * 16, broker_epoch=7, fenced=False, log_dirs=[b"o" * 16])
    topic = messages.TopicRecord(name="theirs", topic_id=b"t" * 16)
    fields = {"replicas": [own + 1, own], "isr": [own + 1, own], "directories": [b"o" * 16, world.broker.directory_id]}
    partition = messages.PartitionRecord(
        partition_id=0, topic_id=b"t" * 16, leader=own + 1, leader_epoch=3, partition_epoch=3, **fields
    )
    records = [record_codec.record(each) for each in (other, topic, partition)]
    world.controller.metadata_log.append(records, lambda failure, opens: None)
    world.disk.kill()
    world = world.restart(seed=2)
    assert [broker.id for broker in world.broker.image.alive_brokers()] == [own]
    state = world.broker.image.partition("theirs", 0)
    # One epoch for what the other led, two for this broker's own unclean stop.
    assert (state.leader, state.leader_epoch, state.isr) == (own, 6, (own,))
    world.stop()


def test_a_new_cluster_begins_with_what_its_formatting_wrote(tmp_path):
    """The process that formats a directory does not read the file again; who comes later does, and finds the same."""
    world = World(tmp_path)
    log = world.controller.metadata_log
    written = snapshots.read(world.runtime.disk.read(log._bootstrap_path()))
    in_file = [record for record in written if not record_codec.is_control(record)]
    assert [(each.key, each.value) for each in log._begins_with] == [(each.key, each.value) for each in in_file]
    levels = {each.value.name: each.value.feature_level for each in in_file}
    assert levels.items() <= world.broker.image.features.items()
