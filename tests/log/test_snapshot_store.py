"""Snapshots of a log directory: their content, that they never change, and restores that are interrupted anywhere."""

import errno
import random
import shutil
from pathlib import Path

import pytest

from pykafkad.clock import ManualClock
from pykafkad.disk import Disk
from pykafkad.errors import StartFailure, StorageFailure
from pykafkad.log import snapshot_store, snapshot_writer
from pykafkad.memory_disk import MemoryDisk
from tests.handlers.requests import batch, produce
from tests.log.numbered import contents, fill, numbers
from tests.simulation.world import World


def save(world, name):
    for directory in world.broker.directories.every():
        snapshot_writer.save(directory, name)
        snapshot_store.prepare_mark(world.runtime.disk, directory.path, name, 5)
        snapshot_store.mark_clean(world.runtime.disk, directory.path, name)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path / "data")
    world.create_topic("t", 2)
    fill(world, 0, 10)
    return world


def test_a_snapshot_is_a_whole_directory_and_never_changes(world, tmp_path):
    save(world, "one")
    before = contents(tmp_path / "data.snapshots" / "one")
    fill(world, 10, 10)
    world.create_topic("later", 1)
    world.stop()
    assert contents(tmp_path / "data.snapshots" / "one") == before
    snapshot_store.materialize(Disk(), str(tmp_path / "data.snapshots" / "one"), str(tmp_path / "fork"))
    fork = World(tmp_path / "fork")
    assert fork.broker.directory.clean and "later" not in fork.broker.image.topics
    assert numbers(fork) == list(range(10))
    fill(fork, 100, 4)
    fork.stop()
    assert contents(tmp_path / "data.snapshots" / "one") == before, "a fork appends to files of its own"
    again = World(tmp_path / "data")
    assert numbers(again) == list(range(20))


def test_partitions_that_are_unopened_since_the_start_are_in_the_snapshot(world, tmp_path):
    world.stop()
    world = World(tmp_path / "data")
    save(world, "one")
    before = contents(tmp_path / "data.snapshots" / "one")
    fill(world, 10, 2)
    assert contents(tmp_path / "data.snapshots" / "one") == before
    snapshot_store.materialize(Disk(), str(tmp_path / "data.snapshots" / "one"), str(tmp_path / "fork"))
    assert numbers(World(tmp_path / "fork")) == list(range(10))


def test_an_unfinished_snapshot_does_not_count_and_the_next_try_replaces_it(world, tmp_path):
    (tmp_path / "data.snapshots" / "one.partial" / "t-0").mkdir(parents=True)
    (tmp_path / "data.snapshots" / "one.partial" / "t-0" / "rest").write_bytes(b"x")
    assert snapshot_store.names(Disk(), str(tmp_path / "data")) == []
    save(world, "one")
    assert snapshot_store.names(Disk(), str(tmp_path / "data")) == ["one"]
    assert not (tmp_path / "data.snapshots" / "one" / "t-0" / "rest").exists()


def test_a_snapshot_with_an_offline_partition_fails(world):
    world.broker.partitions.get("t", 0).fail(StorageFailure("write", "t-0", "gone"))
    with pytest.raises(StorageFailure, match="out of service"):
        save(world, "one")


def remove_leftovers(paths):
    for path in snapshot_store.leftovers(Disk(), paths):
        snapshot_store.remove(Disk(), path)


class Cut(Exception):
    """Ends the process of a test."""


class CutDisk(Disk):
    """A disk that ends the process before its n-th change."""

    __slots__ = ("left",)

    def __init__(self, left):
        self.left = left


def _cut(name):
    def call(self, *arguments, **keywords):
        self.left -= 1
        if self.left < 0:
            raise Cut
        return getattr(Disk, name)(self, *arguments, **keywords)

    return call


for _name in ("write", "replace", "rename", "unlink", "link", "make_directories", "remove_directory"):
    setattr(CutDisk, _name, _cut(_name))


@pytest.mark.long
def test_an_interrupted_restore_is_finished_by_the_next_start(world, tmp_path):
    """Without the note all directories are unchanged. With the note all of them are restored."""
    save(world, "one")
    fill(world, 10, 6)
    world.stop()
    expected = contents(tmp_path / "data.snapshots" / "one")
    present = contents(tmp_path / "data")
    present.pop(".lock", None)
    paths = [str(tmp_path / "two" / name) for name in ("first", "second")]
    ended = False
    for left in range(300):
        shutil.rmtree(tmp_path / "two", ignore_errors=True)
        for path in paths:
            shutil.copytree(tmp_path / "data", path)
            shutil.copytree(tmp_path / "data.snapshots", path + ".snapshots")
        try:
            snapshot_store.begin_restore(CutDisk(left), paths, "one")
            ended = True
        except Cut:
            # The next start may be interrupted too.
            try:
                snapshot_store.finish_restore(CutDisk(random.Random(left).randrange(60)), paths)
            except Cut:
                pass
            snapshot_store.finish_restore(Disk(), paths)
        states = []
        for path in paths:
            found = contents(path)
            found.pop(".lock", None)
            assert found in (expected, present), (left, path)
            states.append(found == expected)
            assert contents(path + ".snapshots/one") == expected
        # A start finishes the restore, and then removes what is left over.
        remove_leftovers(paths)
        assert [sorted(each.name for each in Path(path + ".snapshots").iterdir()) for path in paths] == [["one"]] * 2, (
            left
        )
        # The note is one file, which exists after its write and its rename.
        assert states == [left > 2] * 2, left
        if ended:
            break
    assert ended
    assert numbers(World(paths[0])) == list(range(10))


def test_a_file_that_is_appended_to_is_never_shared(world, tmp_path):
    """The indexes that a clean stop writes for an empty segment are not shared, and neither are a fork's writes."""
    save(world, "one")
    world.stop()
    world = World(tmp_path / "data")
    save(world, "two")
    world.stop()
    for name in ("one", "two"):
        snapshot_store.materialize(Disk(), str(tmp_path / "data.snapshots" / name), str(tmp_path / name))
    for folder in (tmp_path / "data", tmp_path / "one", tmp_path / "two"):
        last = [max(partition.glob("*.log")) for partition in folder.glob("t-*")]
        assert len(last) == 2
        for path in last:
            for each in path.parent.glob(path.stem + ".*"):
                assert each.suffix == ".snapshot" or each.stat().st_nlink == 1, each


def test_an_unopened_partition_is_saved_without_opening_it(world, tmp_path):
    """A small last segment is copied, also out of the snapshot. With a large one the log is opened and rolled."""
    peer = world.connect()
    peer.send(produce("t", {1: batch(b"7" * 100_000)}), 8)
    for _ in range(2):
        peer.send(produce("t", {1: batch(b"8" * 100_000)}), 8)
    world.stop()
    world = World(tmp_path / "data")
    save(world, "one")
    assert [world.broker.partitions.get("t", index).is_loaded for index in range(2)] == [False, True]
    fill(world, 10, 10)
    snapshot_store.materialize(Disk(), str(tmp_path / "data.snapshots" / "one"), str(tmp_path / "fork"))
    fork = World(tmp_path / "fork")
    assert [fork.broker.partitions.get("t", index).end_offset for index in range(2)] == [5, 8]
    fill(fork, 100, 4)
    fork.stop()
    snapshot_store.materialize(Disk(), str(tmp_path / "data.snapshots" / "one"), str(tmp_path / "again"))
    again = World(tmp_path / "again")
    assert [again.broker.partitions.get("t", index).end_offset for index in range(2)] == [5, 8]


def test_an_unsynced_snapshot_is_like_a_directory_after_a_kill(world, tmp_path):
    for directory in world.broker.directories.every():
        snapshot_writer.save(directory, "one")
    snapshot_store.materialize(Disk(), str(tmp_path / "data.snapshots" / "one"), str(tmp_path / "fork"))
    fork = World(tmp_path / "fork")
    assert not fork.broker.directory.clean
    assert numbers(fork) == list(range(10))


def test_snapshots_work_in_memory_too():
    disk = MemoryDisk(64 << 20, ManualClock())
    world = World("data", disk=disk, clock=disk.clock)
    world.create_topic("t", 2)
    fill(world, 0, 10)
    save(world, "one")
    fill(world, 10, 10)
    world.stop()
    snapshot_store.begin_restore(disk, ["data"], "one")
    world = World("data", disk=disk, clock=disk.clock)
    assert numbers(world) == list(range(10))


@pytest.mark.parametrize("name", ["", "a b", "../up", "x" * 101, "ä", ".old", "one.partial", "-x"])
def test_invalid_names_are_refused(name):
    assert snapshot_store.name_problem(name)


def test_a_recovery_truncates_no_file_of_a_snapshot(world, tmp_path):
    """A batch of a sealed, unsynced segment is damaged. The start truncates its own copy of the file."""
    save(world, "one")
    (sealed,) = (tmp_path / "data" / "t-0").glob("*0000.log")
    with open(sealed, "r+b") as file:
        file.seek(sealed.stat().st_size // 2)
        file.write(b"\xff\xff\xff")
    before = contents(tmp_path / "data.snapshots" / "one")
    (tmp_path / "data" / ".lock").unlink()
    again = World(tmp_path / "data")
    assert len(numbers(again)) < 10
    fill(again, 10, 2)
    again.stop()
    assert contents(tmp_path / "data.snapshots" / "one") == before
    assert [path.name for path in (tmp_path / "data" / "t-0").iterdir() if path.name.endswith(".cleaned")] == []


def test_an_interrupted_deletion_leaves_no_half_snapshot(world, tmp_path):
    """A listed snapshot is whole. The next start, or the next snapshot of that name, removes the rest."""
    save(world, "one")
    path = str(tmp_path / "data")
    whole = contents(tmp_path / "data.snapshots" / "one")
    for left in range(200):
        for each in (tmp_path / "data.snapshots").iterdir():
            shutil.rmtree(each)
        save(world, "one")
        try:
            snapshot_store.discard(CutDisk(left), path, "one")
            break
        except Cut:
            if snapshot_store.names(Disk(), path) == ["one"]:
                assert contents(tmp_path / "data.snapshots" / "one").keys() == whole.keys()
        remove_leftovers([path])
        assert [each.name for each in (tmp_path / "data.snapshots").iterdir()] == snapshot_store.names(Disk(), path)
    assert left > 2 and snapshot_store.names(Disk(), path) == []


def test_a_second_broker_does_not_restore_the_directory_of_a_serving_one(world, tmp_path):
    """Of two brokers started on one directory the first serves. The second has read the note of a restore that the
    first has finished meanwhile."""
    save(world, "one")
    before = contents(tmp_path / "data")
    with pytest.raises(StartFailure, match="another broker uses"):
        snapshot_store.begin_restore(Disk(), [str(tmp_path / "data")], "one")
    (tmp_path / "data.snapshots" / "restoring").write_text("one")
    with pytest.raises(StartFailure, match="another broker uses"):
        snapshot_store.finish_restore(Disk(), [str(tmp_path / "data")])
    assert contents(tmp_path / "data") == before


def test_a_restore_whose_snapshot_is_missing_names_it(world, tmp_path):
    """The data and the note stay."""
    save(world, "one")
    world.stop()
    before = contents(tmp_path / "data")
    shutil.rmtree(tmp_path / "data.snapshots" / "one")
    (tmp_path / "data.snapshots" / "restoring").write_text("one")
    with pytest.raises(StorageFailure, match="snapshots/one is missing"):
        snapshot_store.finish_restore(Disk(), [str(tmp_path / "data")])
    assert contents(tmp_path / "data") == before


def test_snapshots_of_the_working_directory_lie_beside_it(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "data")
    assert [snapshot_store.folder(path) for path in (".", "./", "..", "x/", "../data")] == [
        f"{tmp_path}/data.snapshots",
        f"{tmp_path}/data.snapshots",
        f"{tmp_path}.snapshots",
        "x.snapshots",
        "../data.snapshots",
    ]


def test_a_snapshot_across_file_systems_is_refused_with_the_folder(world, tmp_path, monkeypatch):
    """If the data directory is a mount point, its parent is on another file system."""

    def link(self, source, target):
        raise StorageFailure("link", source, OSError(errno.EXDEV, "Invalid cross-device link"))

    monkeypatch.setattr(Disk, "link", link)
    with pytest.raises(StorageFailure, match="data.snapshots/one.partial/.* lies on another file system"):
        save(world, "one")
    assert list((tmp_path / "data.snapshots").iterdir()) == []


def test_a_finished_restore_does_not_begin_again_after_a_power_loss(world, tmp_path, monkeypatch):
    """It would undo what is written since, so the removal of the note is synced before the broker serves."""
    save(world, "one")
    world.stop()
    path = str(tmp_path / "data")
    synced = []
    monkeypatch.setattr(
        Disk, "sync_directory", lambda disk, each: synced.append((each, snapshot_store.restoring(disk, path)))
    )
    snapshot_store.begin_restore(Disk(), [path], "one")
    assert synced[-1] == (path + ".snapshots", "")
