"""Snapshots of the metadata in the shell: when they are made, that the loop turns meanwhile, what stays, what a crash
leaves."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.clock import ManualClock
from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.log.replay import batches
from pykafkad.metadata import features, record_codec, snapshot_policy, snapshots
from pykafkad.server import metadata_snapshots
from pykafkad.server.metadata_snapshots import MetadataSnapshots
from pykafkad.wire import messages
from tests import seeds
from tests.metadata.cluster import facts
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World

LOG = "/data/__cluster_metadata-0"
SMALL = {"metadata.log.max.record.bytes.between.snapshots": 2000}


def settings(**overrides):
    """World's settings by their real names."""
    return {name.replace(".", "_"): value for name, value in {**SMALL, **overrides}.items()}


def kept(disk):
    return [snapshots.file_name(*each) for each in snapshots.listed(disk.listdir(LOG))]


class Jobs:
    """The offloaded work, done when the test says so and not by a thread."""

    def __init__(self):
        self.waiting = []

    def submit(self, job, then):
        self.waiting.append((job, then))

    def finished(self):
        pass

    def close(self):
        while self.waiting:
            job, then = self.waiting.pop(0)
            try:
                result = job()
            except StorageFailure as failure:
                result = failure
            then(result)


def start(disk, **kwargs):
    world = World("/data", disk=disk, **kwargs)
    world.runtime.offload = Jobs()
    return world


def again(world, **kwargs):
    world = world.restart(**kwargs)
    world.runtime.offload = Jobs()
    return world


def settle(world):
    """Turns until nothing of a snapshot is under way."""
    for _ in range(10):
        world.turn()
        world.runtime.offload.close()
    assert world.controller.metadata_log.snapshots._writing is None


@pytest.fixture
def disk():
    return MemoryDisk()


def test_a_new_directory_has_what_formatting_leaves(disk):
    World("/data", disk=disk).stop()
    assert kept(disk) == [snapshots.file_name(0, 0)]
    # The header, the levels of features and the footer.
    assert len(list(snapshots.read(disk.read("/data/bootstrap.checkpoint")))) == 2 + len(features.BOOTSTRAP)


def test_a_snapshot_is_made_of_so_many_bytes_and_a_start_reads_it(disk):
    world = start(disk, **settings())
    for number in range(30):
        world.create_topic(f"t{number}", 2)
    settle(world)
    names = kept(disk)
    assert 2 <= len(names) <= 10
    expected = facts(world.broker.image)
    assert not [name for name in disk.listdir(LOG) if name.endswith(".part")]
    disk.kill()
    # What the log held below the newest snapshot is not looked at any more.
    reading = []
    read = snapshots.read
    snapshots.read = lambda content: reading.append(len(content)) or read(content)
    try:
        later = again(world, seed=2, **settings())
    finally:
        snapshots.read = read
    assert len(reading) == 1
    image = later.broker.image
    assert set(image.topics) == {f"t{number}" for number in range(30)}
    assert facts(image)["_configs"] == expected["_configs"]
    assert {name: topic.id for name, topic in image.topics.items()} == {
        name: topic.id for name, topic in world.broker.image.topics.items()
    }
    later.stop()


def test_a_snapshot_is_made_after_so_long_if_anything_was_written(disk):
    world = start(
        disk,
        **settings(
            **{
                "metadata.log.max.record.bytes.between.snapshots": 10**9,
                "metadata.log.max.snapshot.interval.ms": 10_000,
            }
        ),
    )
    world.advance(11, 11)
    settle(world)
    assert len(kept(disk)) == 2
    world.advance(30, 30)
    settle(world)
    assert len(kept(disk)) == 2, "nothing was written since"
    world.create_topic("a")
    world.advance(11, 11)
    settle(world)
    assert len(kept(disk)) == 3
    world.stop()


class WorkClock(ManualClock):
    """Every look at it costs a millisecond, as writing a piece does."""

    def now(self):
        self.advance(0.001)
        return super().now()


def test_the_loop_turns_while_a_snapshot_is_written(disk, monkeypatch):
    """A turn writes for `BUDGET_SECONDS`, and requests are served between two of them."""
    world = start(disk, clock=WorkClock(), **settings(**{"metadata.log.max.record.bytes.between.snapshots": 10**9}))
    monkeypatch.setattr(snapshots, "RECORDS_PER_STEP", 10)
    world.create_topic("a", 600)
    own = world.controller.metadata_log.snapshots
    world.controller.metadata_log.snapshots._start()
    end_offset = world.broker.image.offset + 1
    turns = 0
    while not world.runtime.offload.waiting:
        world.turn()
        turns += 1
        if turns == 3:
            world.create_topic("b")
            assert own._writing is not None
    assert turns >= 10
    settle(world)
    assert kept(disk)[-1].startswith(f"{end_offset:020}")
    names = [getattr(record.value, "name", None) for record in snapshots.read(disk.read(f"{LOG}/{kept(disk)[-1]}"))]
    assert "a" in names and "b" not in names
    world.stop()


def test_old_snapshots_and_the_log_before_them_go_by_size(disk):
    world = start(
        disk, **settings(**{"metadata.max.retention.bytes": 1, "metadata.log.segment.bytes": 8 * 1024 * 1024})
    )
    log = world.controller.metadata_log._log
    for number in range(40):
        world.create_topic(f"t{number}")
        if number % 10 == 9:
            settle(world)
            log.roll(world.runtime.now_ms)
    settle(world)
    assert len(kept(disk)) == 1
    (first, _) = snapshots.parse_name(kept(disk)[0])
    assert log.log_start_offset == first > 0
    assert log.segments[0].base_offset > 0, "whole segments below it went too"
    world.advance(120, 4)
    world.runtime.offload.close()
    world.turn()
    assert not [name for name in disk.listdir(LOG) if name.endswith(".deleted")]
    disk.kill()
    later = again(world, seed=3, **settings())
    assert len(later.broker.image.topics) == 40
    later.stop()


def test_old_snapshots_go_by_age_but_never_the_last(disk):
    world = start(disk, **settings(**{"metadata.max.retention.ms": 3_600_000}))
    for number in range(30):
        world.create_topic(f"t{number}")
    settle(world)
    assert len(kept(disk)) > 1
    world.advance(7200, 100)
    settle(world)
    assert len(kept(disk)) == 1
    world.stop()


@pytest.mark.parametrize("operation", ["write", "sync", "rename"])
def test_a_snapshot_that_cannot_be_written_hurts_nobody(disk, operation):
    world = start(disk, **settings(**{"metadata.log.max.record.bytes.between.snapshots": 10**9}))
    world.create_topic("a")
    world.controller.metadata_log.snapshots._start()
    disk.fail(operation)
    settle(world)
    assert kept(disk) == [snapshots.file_name(0, 0)]
    assert not [name for name in disk.listdir(LOG) if name.endswith(".part")]
    world.create_topic("b")
    world.controller.metadata_log.snapshots._start()
    settle(world)
    assert len(kept(disk)) == 2
    world.stop()


def test_a_bug_while_one_is_written_is_told_and_the_next_one_is_made(disk, monkeypatch):
    """Left as it is it would count as under way for good, and no other be begun; so would the checks of one that
    fails."""
    world = start(
        disk,
        **settings(
            **{
                "metadata.log.max.record.bytes.between.snapshots": 10**9,
                "metadata.log.max.snapshot.interval.ms": 60_000,
            }
        ),
    )
    with monkeypatch.context() as broken:
        broken.setattr(snapshots.Writing, "pieces", lambda self: (1 // 0 for _ in "x"))
        world.create_topic("a")
        world.controller.metadata_log.snapshots._start()
        settle(world)
        broken.setattr(metadata_snapshots.MetadataSnapshots, "_thin_out", lambda self: 1 // 0)
        world.advance(120, 4)
    assert world.runtime.metrics.unexpected_errors > 1
    world.runtime.metrics.unexpected_errors = 0
    world.create_topic("b")
    world.advance(120, 4)
    settle(world)
    assert len(kept(disk)) == 2
    world.stop()


@pytest.mark.parametrize("seed", seeds.sampled(range(20), 5))
def test_a_loss_of_power_at_any_moment_leaves_whole_snapshots(seed):
    """Also where the log before a snapshot has gone: its name is on the disk before that."""
    # A start writes to all topics in one batch: 72 of them make 4400 bytes.
    small = settings(**{"metadata.max.retention.bytes": 6000, "internal.metadata.log.segment.bytes": 5000})
    random = Random(seed)
    disk = MemoryDisk()
    world = start(disk, seed=seed, **small)
    names = set()
    for life in range(3):
        for number in range(random.randrange(25)):
            name = f"t-{life}-{number}"
            world.create_topic(name)
            names.add(name)
            if random.random() < 0.3:
                settle(world)
        disk.lose_power(random)
        world = again(world, seed=random.random(), **small)
        assert set(world.broker.image.topics) == names
    world.stop()


def test_a_stop_drops_what_is_half_written(disk, monkeypatch):
    monkeypatch.setattr(snapshots, "RECORDS_PER_STEP", 10)
    world = start(disk, clock=WorkClock())
    world.create_topic("a", 300)
    world.controller.metadata_log.snapshots._start()
    for _ in range(3):
        world.turn()
    assert [name for name in disk.listdir(LOG) if name.endswith(".part")]
    world.stop()
    assert not [name for name in disk.listdir(LOG) if name.endswith(".part")]
    assert kept(disk) == [snapshots.file_name(0, 0)]


def test_leftovers_of_a_crash_are_removed(disk):
    World("/data", disk=disk).stop()
    for name in (f"{9:020}-{1:010}-x.checkpoint.part", f"{9:020}-{1:010}.checkpoint.deleted"):
        disk.write(f"{LOG}/{name}", b"half")
    World("/data", disk=disk).stop()
    assert not [name for name in disk.listdir(LOG) if name.endswith((".part", ".deleted"))]


@pytest.mark.parametrize("damage", ["broken", "ahead of the log"])
def test_a_start_says_which_snapshot_it_cannot_use(disk, damage):
    world = start(disk)
    world.create_topic("a")
    offset = world.broker.image.offset + 1
    world.stop()
    content = disk.read(f"{LOG}/{snapshots.file_name(0, 0)}")
    if damage == "broken":
        content, name = content[:-1], snapshots.file_name(offset, 1)
    else:
        name = snapshots.file_name(offset + 1000, 1)
    disk.write(f"{LOG}/{name}", content)
    with pytest.raises(StorageFailure, match=name):
        World("/data", disk=disk)


def test_a_log_that_starts_later_needs_its_snapshot(disk):
    world = start(disk, **settings(**{"metadata.max.retention.bytes": 1}))
    for number in range(20):
        world.create_topic(f"t{number}")
    settle(world)
    world.stop()
    disk.unlink(f"{LOG}/{kept(disk)[0]}")
    with pytest.raises(StorageFailure, match="no snapshot holds what was before"):
        World("/data", disk=disk)


def emptied(disk):
    """The directory as formatting left it: no log."""
    World("/data", disk=disk).stop()
    for name in disk.listdir(LOG):
        if name.endswith((".log", "quorum-state")):
            disk.unlink(f"{LOG}/{name}")


def test_a_directory_formatted_by_kafka_begins_with_its_bootstrap_records(disk):
    """kafka-storage format may have chosen features; what this release cannot run is refused."""
    emptied(disk)
    record = messages.FeatureLevelRecord
    for level, refused in ((6, "metadata.version=6"), (31, "metadata.version=31"), (0, "metadata.version=0")):
        levels = iter([record(name="metadata.version", feature_level=level)] if level else [])
        disk.write("/data/bootstrap.checkpoint", b"".join(snapshots._pieces(0, 0, [snapshots._header(0)], levels)))
        with pytest.raises(ConfigError, match=refused):
            World("/data", disk=disk)
        disk.kill()
    levels = iter([record(name="metadata.version", feature_level=30), record(name="group.version", feature_level=1)])
    disk.write("/data/bootstrap.checkpoint", b"".join(snapshots._pieces(0, 0, [snapshots._header(0)], levels)))
    world = start(disk)
    assert world.broker.image.features == {"kraft.version": 1, "metadata.version": 30, "group.version": 1}
    assert world.broker.image.configs(4, "") == {}, "no eligible leader replicas, no minimum in the log"
    world.stop()


def test_formatting_that_lost_power_is_made_good(disk):
    """Both files are unsynced: half of one is as good as none, for the log begins with the same."""
    emptied(disk)
    for path in ("/data/bootstrap.checkpoint", f"{LOG}/{snapshots.file_name(0, 0)}"):
        disk.write(path, disk.read(path)[:50])
    world = start(disk)
    assert world.broker.image.features["metadata.version"] == 30
    assert [voter.id for voter in world.broker.image.voters] == [world.broker.node_id]
    world.stop()


def test_what_is_unknown_is_never_thrown_away_by_a_snapshot(disk):
    """A record of another release is kept in the log: as long as it is there, no snapshot takes the log's place."""
    world = start(disk)
    world.broker.image.unknown_records = 1
    world.controller.metadata_log.snapshots._start()
    assert world.controller.metadata_log.snapshots._writing is None
    world.broker.image.unknown_records = 0
    world.controller.metadata_log.snapshots._start()
    assert world.controller.metadata_log.snapshots._writing is not None
    world.stop()
    assert not [name for name in disk.listdir(LOG) if name.endswith(metadata_snapshots._PART_SUFFIX)]


@pytest.mark.long
def test_a_stop_leaves_a_snapshot_when_the_next_start_would_read_more_than_that(disk):
    """Restarts elect every partition anew: their records would make each start longer than the one before."""
    world = start(disk)
    world.create_topic("many", 300)
    sizes = []
    for seed in range(2, 12):
        world.stop()
        sizes.append(world.controller.metadata_log.snapshots._bytes)
        assert not [name for name in disk.listdir(LOG) if name.endswith(".part")]
        world = start(disk, seed=seed)
    made = [size for size in sizes if size == 0]
    assert 1 <= len(made) <= 5 and len(kept(disk)) == 1 + len(made)
    states = world.broker.image.topics["many"].partitions
    assert {(state.leader, state.leader_epoch) for state in states} == {(world.broker.node_id, 20)}
    world.stop()


def test_a_snapshot_that_fails_at_the_stop_is_no_reason_not_to_stop(disk, monkeypatch):
    monkeypatch.setattr(snapshot_policy, "LEAST_BYTES_AT_STOP", 0)
    world = start(disk)
    world.create_topic("a")
    rename = MemoryDisk.rename

    def refused(self, source, target):
        if source.endswith(".part"):
            raise StorageFailure("rename", source, "no")
        rename(self, source, target)

    monkeypatch.setattr(MemoryDisk, "rename", refused)
    world.stop()
    assert len(kept(disk)) == 1 and not [name for name in disk.listdir(LOG) if name.endswith(".part")]
    assert start(disk, seed=2).broker.image.partition("a", 0).leader_epoch == 2


def test_a_bug_in_the_snapshot_at_the_stop_leaves_the_stop_clean(disk, monkeypatch):
    """Nor is a stop unclean because an unfinished snapshot can't be removed: the next start does that."""
    world = start(disk, **settings())
    world.create_topic("a", 20)
    world.turn()
    assert world.controller.metadata_log.snapshots._writing is not None
    unlink = MemoryDisk.unlink

    def refused(self, path):
        if path.endswith(".part"):
            raise StorageFailure("unlink", path, "no")
        unlink(self, path)

    with monkeypatch.context() as broken:
        broken.setattr(snapshot_policy, "LEAST_BYTES_AT_STOP", 0)
        broken.setattr(MetadataSnapshots, "_publish", lambda _: 1 // 0)
        broken.setattr(MemoryDisk, "unlink", refused)
        world.controller.metadata_log.snapshots.wrote(10_000, 0)
        world.stop()
    assert world.runtime.metrics.unexpected_errors == 1
    world = start(disk, seed=2)
    assert world.broker.directory.clean
    assert not [name for name in disk.listdir(LOG) if name.endswith(".part")]
    world.stop()


@pytest.mark.parametrize("level", [7, 12, 16, 22, 29])
def test_a_cluster_of_an_older_level_is_served_and_upgraded(disk, level):
    """Its log is written in the versions of its level, snapshots included, until UpdateFeatures raises it; then there
    is no way back."""
    emptied(disk)
    record = messages.FeatureLevelRecord(name="metadata.version", feature_level=level)
    disk.write(
        "/data/bootstrap.checkpoint", b"".join(snapshots._pieces(0, 0, [snapshots._header(0)], iter([record]), level))
    )
    world = start(disk)
    world.create_topic("a", 2)
    assert world.broker.image.features["metadata.version"] == level
    allowed = {name: record_codec._version(name, level) for name in record_codec.OLDER_VERSIONS}
    assert written_versions(world) <= {(name, allowed.get(name, 0)) for name, _ in record_codec.RECORDS.values()} - {
        (name, 0) for name, since in record_codec.LATER_RECORDS.items() if since > level
    }
    world.stop()
    world = start(disk, seed=2)
    assert len(world.broker.image.topics["a"].partitions) == 2
    request = messages.UpdateFeaturesRequest
    for wanted, kind, code in ((30, 1, 0), (level, 2, 95)):
        row = request.FeatureUpdateKey(feature="metadata.version", max_version_level=wanted, upgrade_type=kind)
        assert world.connect().ask(request(feature_updates=[row], timeout_ms=1000), 1).error_code == code
    assert world.broker.image.features["metadata.version"] == 30
    world.create_topic("b")
    assert ("PartitionRecord", 2) in written_versions(world)
    world.stop()


def written_versions(world):
    """(name, version) of the data records in the metadata log."""
    found = set()
    for header, records in batches(world.controller.metadata_log._log, 0):
        for each in records if not header.is_control else ():
            found.add((record_codec.RECORDS[each.value[1]][0], each.value[2]))
    return found
