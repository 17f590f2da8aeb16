"""Snapshots of processes: whatever goes wrong in the middle, all directories are as before or all are as saved."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from pykafkad import errors
from pykafkad.disk import Disk
from pykafkad.errors import StorageFailure
from pykafkad.log import snapshot_store
from pykafkad.server.child_snapshots import ChildSnapshots

META = b"version=1\ncluster.id=c\ndirectory.id=%s\n"


class FullDisk(Disk):
    """A disk on which so many writes, links and renames succeed."""

    left = 10**9

    def _take(self, path):
        self.left -= 1
        if self.left < 0:
            raise StorageFailure("write", path, OSError(28, "No space left on device"))

    def write(self, path, data, *, sync=False):
        self._take(path)
        super().write(path, data, sync=sync)

    def link(self, source, target):
        self._take(target)
        super().link(source, target)

    def rename(self, source, target):
        self._take(target)
        super().rename(source, target)


class Asker:
    node_id, role, status = 1, "broker", None

    def __init__(self, action, name="first", nodes=(1,)):
        self.request = json.dumps({"snapshot": action, "name": name, "nodes": list(nodes)})
        self.answers = []

    def tell(self, code, text, *, is_last=False):
        self.answers.append((code, text, is_last))


class Fixture:
    def __init__(self, tmp_path):
        self.disk, self.killed, self.starts = FullDisk(), [], 0
        self.paths = [str(tmp_path / name) for name in ("controller3000", "broker1", "broker2")]
        for path in self.paths:
            self.disk.make_directories(f"{path}/t-0")
            self.disk.write(f"{path}/meta.properties", META % path.encode())
        self.set("old")

    def set(self, text):
        for path in self.paths:
            self.disk.write(f"{path}/t-0/00000000000000000000.log", text.encode())

    def found(self):
        return {self.disk.read(f"{path}/t-0/00000000000000000000.log").decode() for path in self.paths}

    def names(self):
        return [snapshot_store.names(self.disk, path) for path in self.paths]

    def act(self, action, **more):
        asker = Asker(action, **more)
        nodes = SimpleNamespace(children=[asker], stop_all=lambda: self.killed)
        logs = SimpleNamespace(info=lambda *_, **__: None, warning=lambda *_, **__: None)
        made = ChildSnapshots(nodes, self.paths, self.disk, logs, self._started)
        try:
            made.perform(asker)
        finally:
            self.answers = asker.answers
        return asker.answers[0]

    def _started(self):
        self.starts += 1


@pytest.fixture
def place(tmp_path):
    return Fixture(tmp_path)


def test_everything_is_saved_and_goes_back(place):
    assert place.act("create") == (errors.NONE, None, True)
    assert place.names() == [["first"]] * 3
    place.set("new")
    assert place.act("restore") == (errors.NONE, None, True)
    assert place.found() == {"old"} and place.starts == 2


def test_a_full_disk_saves_nothing(place):
    """At whichever step: nothing is listed, and the nodes serve as before."""
    for step in range(100):
        place.disk.left = step
        code, text, _ = place.act("create")
        place.disk.left = 10**9
        if code == errors.NONE:
            break
        assert code == errors.KAFKA_STORAGE_ERROR and "No space left" in text
        # What is listed is what the first of them has.
        assert place.names()[0] == [] and place.found() == {"old"}
    assert step > 6 and place.starts == step + 1


def test_a_full_disk_on_the_way_back_leaves_no_mixture(place):
    """What has not begun leaves all as it was. What has begun starts no node, and the next start finishes it: as it
    does when the parent is killed there."""
    place.act("create")
    unfinished = 0
    for step in range(100):
        place.set("new")
        starts, place.disk.left = place.starts, step
        try:
            code, _, _ = place.act("restore")
        except StorageFailure:
            assert place.answers[0][0] == errors.KAFKA_STORAGE_ERROR and place.starts == starts
            place.disk.left = 10**9
            snapshot_store.remove_all(place.disk, snapshot_store.settle(place.disk, place.paths))
            assert place.found() == {"old"}
            unfinished += 1
            continue
        place.disk.left = 10**9
        assert place.starts == starts + 1
        # Old files that could not be put away are no mixture: they lie beside the directories.
        assert len(place.found()) == 1
        if code == errors.NONE:
            assert place.found() == {"old"}
            break
    assert unfinished > 6


def test_a_node_that_does_not_stop(place):
    """Of one that was killed nothing is saved; its directory goes back like the others."""
    place.act("create", name="whole")
    place.killed = [SimpleNamespace(role="broker", node_id=2)]
    code, text, _ = place.act("create")
    assert code == errors.UNKNOWN_SERVER_ERROR
    assert text == "broker 2 did not stop in time and was killed; nothing was saved"
    assert place.names() == [["whole"]] * 3
    place.set("new")
    assert place.act("restore", name="whole")[0] == errors.NONE and place.found() == {"old"}


def test_a_directory_that_another_process_uses(place):
    """Nothing is saved, and the nodes start again or say why they cannot."""
    lock = place.disk.lock(f"{place.paths[1]}/.lock")
    code, text, is_last = place.act("create")
    lock.close()
    assert code == errors.KAFKA_STORAGE_ERROR and "another broker uses the directory" in text and is_last
    assert place.names() == [[]] * 3 and place.starts == 1


@pytest.mark.parametrize(
    ("action", "more", "problem"),
    [
        ("create", {"nodes": (1, 7)}, "node 7 is elsewhere"),
        ("restore", {}, "there is no snapshot first; there are: none"),
        ("create", {"name": "a/b"}, "a snapshot's name has 1 to 100"),
    ],
)
def test_what_cannot_be_stops_nobody(place, action, more, problem):
    code, text, is_last = place.act(action, **more)
    assert code and problem in text and not is_last and place.starts == 0
