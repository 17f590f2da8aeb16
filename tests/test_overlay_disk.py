"""An overlay disk reads like a disk that was written to, and leaves the disk below unchanged."""

import os
import random
import shutil
from pathlib import Path

import pytest

from pykafkad.disk import Disk
from pykafkad.errors import StartFailure, StorageFailure
from pykafkad.overlay_disk import OverlayDisk
from tests import seeds
from tests.handlers.requests import batch, produce
from tests.simulation.world import World


def contents(root):
    """Every file below a directory, with its bytes."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(Path(root).rglob("*")) if path.is_file()}


def seen(disk, root):
    """The same files as a disk shows them."""
    found = {}
    for name in disk.listdir(root):
        path = f"{root}/{name}"
        if disk.is_directory(path):
            found.update({f"{name}/{inner}": disk.read(f"{path}/{inner}") for inner in disk.listdir(path)})
        else:
            found[name] = disk.read(path)
    return found


def do_something(chance, disk, root):
    """Makes one random call and returns its result. The same chance makes the same call."""
    directory = f"{root}/{chance.choice(('a-0', 'b-0', 'c-0'))}"
    path = f"{directory}/{chance.choice(('1.log', '2.log', 'small'))}"
    call = chance.randrange(12)
    number, data = chance.randrange(3000), chance.randbytes(chance.randrange(1, 500))
    try:
        if call == 0:
            return disk.write(path, data)
        if call == 1:
            return disk.replace(path, data)
        if call == 2:
            return disk.open(path, create=True).pwrite(data, number)
        if call == 3:
            file = disk.open(path)
            return file.truncate(number), file.size()
        if call == 4:
            return disk.open(path).pread(number, len(data))
        if call == 5:
            return disk.unlink(path)
        if call == 6:
            return disk.rename(path, f"{directory}/{chance.choice(('2.log', 'small'))}")
        if call == 7 and chance.random() < 0.3:
            return disk.remove_directory(directory)
        if call == 8:
            return disk.make_directories(directory)
        if call == 9 and chance.random() < 0.3 and not disk.exists(f"{root}/moved-{number}"):
            return disk.rename(directory, f"{root}/moved-{number}")
        if call == 10:
            return disk.size(path), disk.exists(path), disk.is_directory(directory), disk.read_end(path, 10)
        if call == 11:
            return disk.open(path).pwritev([data, b"more"], number)
    except StorageFailure as failure:
        return failure.operation
    return None


@pytest.mark.parametrize("seed", range(60))
def test_an_overlay_reads_as_if_it_had_been_written(tmp_path, seed):
    """The same calls on a real directory and on an overlay over its copy give the same files and results."""
    real, under = tmp_path / "real", tmp_path / "under"
    for name in ("a-0", "b-0"):
        (real / name).mkdir(parents=True)
        for index in range(1, 3):
            (real / name / f"{index}.log").write_bytes(random.Random(seed + index).randbytes(2000))
    shutil.copytree(real, under)
    before = contents(under)
    overlay = OverlayDisk()
    for step in range(40):
        answers = [
            do_something(random.Random(f"{seed} {step}"), disk, str(root))
            for disk, root in ((Disk(), real), (overlay, under))
        ]
        assert answers[0] == answers[1], f"step {step}"
    assert seen(overlay, str(under)) == contents(real)
    assert contents(under) == before
    changed = {change.path for change in overlay.changes(str(under))}
    for path in before.keys() ^ contents(real).keys() | {
        name for name in before.keys() & contents(real).keys() if before[name] != contents(real)[name]
    }:
        whole = f"{under}/{path}"
        assert whole in changed or os.path.dirname(whole) in changed, path


def damage(chance, root):
    """Damages one file, as a crash or a person may."""
    files = [
        path
        for path in sorted(Path(root).rglob("*"))
        if path.is_file() and path.suffix in (".log", ".index", ".timeindex", ".snapshot")
    ]
    path = chance.choice(files)
    data = bytearray(path.read_bytes())
    kind = chance.randrange(4)
    if kind == 0:
        path.unlink()
    elif kind == 1:
        path.write_bytes(data[: chance.randrange(len(data) + 1)])
    elif kind == 2 and data:
        data[chance.randrange(len(data))] ^= 0x10
        path.write_bytes(data)
    else:
        path.write_bytes(data + bytes(chance.randrange(100)))


@pytest.mark.parametrize("seed", seeds.sampled(range(12), 4))
def test_a_start_on_an_overlay_equals_a_real_start(tmp_path, seed, monkeypatch):
    """On a killed and damaged directory, the overlay ends with exactly the bytes that a real start leaves."""
    chance = random.Random(seed)
    (tmp_path / "one").mkdir()
    world = World(tmp_path / "one" / "data")
    world.create_topic("t", 2, segment_bytes=1_100_000)
    peer = world.connect()
    for _ in range(40):
        peer.send(produce("t", {chance.randrange(2): batch(chance.randbytes(60_000))}), 8)
    if seed % 2:
        world.stop()
    (tmp_path / "one" / "data" / ".lock").unlink()
    shutil.copytree(tmp_path / "one" / "data", tmp_path / "two" / "data")
    del world, peer
    for root in ("one", "two"):
        damage(random.Random(seed), tmp_path / root / "data" / f"t-{seed % 2}")
    before = contents(tmp_path / "one" / "data")
    overlay = OverlayDisk()
    started = []
    for root, disk in (("one", overlay), ("two", Disk())):
        monkeypatch.chdir(tmp_path / root)
        world = World("data", disk=disk, seed=seed)
        for log in world.broker.partitions:
            if not log.is_loaded and log.offline is None:
                try:
                    log.load()
                except StorageFailure:
                    pass
        started.append(world)
    monkeypatch.chdir(tmp_path / "one")
    assert seen(overlay, "data") == {
        path: data for path, data in contents(tmp_path / "two" / "data").items() if path != ".lock"
    }
    assert contents(tmp_path / "one" / "data") == before


def test_a_directory_in_use_is_refused(tmp_path):
    lock = Disk().lock(str(tmp_path / ".lock"))
    with pytest.raises(StartFailure, match="a broker uses the directory"):
        OverlayDisk().lock(str(tmp_path / ".lock"))
    lock.close()
    OverlayDisk().lock(str(tmp_path / ".lock"))
