"""`pykafkad snapshot fork`, which needs no broker.

`compat_tests/test_snapshots.py` tests the other actions.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.__main__ import main
from pykafkad.disk import Disk
from pykafkad.errors import StorageFailure
from tests.log.numbered import contents, fill, numbers
from tests.server.test_data_snapshots import act
from tests.simulation.world import World


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The directory of a stopped broker, with a snapshot `one` of ten records."""
    world = World(tmp_path / "data")
    world.create_topic("t", 2)
    fill(world, 0, 10)
    act(world, "create", "one")
    fill(world, 10, 10)
    world.stop()
    return tmp_path / "data"


def fork(data: Path, *targets: Path, name: str = "one") -> int:
    return main(["snapshot", "fork", name, *map(str, targets), "--data", str(data)])


def test_a_fork_is_a_complete_data_directory(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The target may be empty, or below directories that do not exist yet."""
    (tmp_path / "empty").mkdir()
    for target in (tmp_path / "empty", tmp_path / "deep" / "er"):
        assert fork(data, target) == 0
        assert capsys.readouterr().out == f"{target}: pykafkad serve --data {target} --listen localhost:0\n"
        assert numbers(World(target)) == list(range(10))


@pytest.mark.parametrize(
    ("name", "source", "target", "words"),
    [
        ("one", "data", "data", "already exists"),
        ("one", "data", "data.snapshots", "already exists"),
        ("one", "data", "file", "already exists"),
        ("two", "data", "new", "has no snapshot two; its snapshots: one"),
        ("../one", "data", "new", "has no snapshot ../one"),
        ("", "data", "new", "has no snapshot"),
        ("one", "nowhere", "new", "is not a directory"),
    ],
)  # fmt: skip
def test_invalid_forks_are_refused(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture, name: str, source: str, target: str, words: str
) -> None:
    (tmp_path / "file").write_text("mine")
    before = contents(tmp_path)
    assert fork(tmp_path / source, tmp_path / target, name=name) == 1
    assert words in capsys.readouterr().err
    assert contents(tmp_path) == before


@pytest.mark.parametrize("is_there", [True, False])
def test_a_failed_fork_leaves_no_directory(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """A broker would start on a partial directory without noticing that records are missing."""
    if is_there:
        (tmp_path / "new").mkdir()

    def link(self: Disk, source: str, target: str) -> None:
        if "t-1" in source:
            raise StorageFailure("link", source, "no more")
        original(self, source, target)

    original = Disk.link
    monkeypatch.setattr(Disk, "link", link)
    assert fork(data, tmp_path / "new") == 1
    assert "no more" in capsys.readouterr().err
    assert (tmp_path / "new").exists() == is_there and contents(tmp_path / "new") == {}


@pytest.mark.parametrize("named", ["a", "b", "a,b"])
def test_a_fork_has_as_many_directories_as_the_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture, named: str
) -> None:
    """`--data` may name any of the directories: the snapshot knows all of them."""
    first, second = tmp_path / "a", tmp_path / "b"
    world = World(first, more_directories=[str(second)])
    world.create_topic("t", 2)
    fill(world, 0, 10)
    act(world, "create", "one")
    world.stop()
    source = Path(",".join(str(tmp_path / each) for each in named.split(",")))
    assert fork(source, tmp_path / "x") == 1
    assert f"is of 2 directories ({first}, {second}); name as many" in capsys.readouterr().err
    for targets in ("xx", "xyz", "xxy"):
        assert fork(source, *(tmp_path / each for each in targets)) == 1
    assert fork(source, tmp_path / "x", tmp_path / "y") == 0
    assert f"--data {tmp_path}/x,{tmp_path}/y " in capsys.readouterr().out
    assert numbers(World(tmp_path / "x", more_directories=[str(tmp_path / "y")])) == list(range(10))
