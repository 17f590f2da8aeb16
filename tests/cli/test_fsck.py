"""`pykafkad fsck`: what it prints, its exit codes, and that it changes nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from pykafkad.__main__ import main
from tests.handlers.requests import batch, produce
from tests.simulation.world import World


def contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def fill(path: Path, *, stop: bool) -> World:
    world = World(path)
    world.create_topic("t", 2)
    peer = world.connect()
    chance = random.Random(1)
    for index in range(20):
        peer.send(produce("t", {index % 2: batch(chance.randbytes(2000))}), 8)
    if stop:
        world.stop()
    else:
        # As after a kill: the lock goes with the process.
        (path / ".lock").unlink()
    return world


@pytest.fixture(autouse=True)
def quiet():
    """The command sets the level of the log, which is the process's."""
    from pykafkad.server import logs

    level = logs._OUTPUT.level
    yield
    logs._OUTPUT.level = level


def test_a_clean_directory(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Nothing to say, exit code 0, no byte changed."""
    fill(tmp_path / "d", stop=True)
    before = contents(tmp_path)
    assert main(["fsck", str(tmp_path / "d")]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "nothing wrong, and a start would change nothing\n")
    assert contents(tmp_path) == before


def test_a_torn_tail_after_a_kill(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The batch that was cut short is damage; the start cuts it off, and says where."""
    fill(tmp_path / "d", stop=False)
    log = next((tmp_path / "d" / "t-1").glob("*.log"))
    size = log.stat().st_size
    log.write_bytes(log.read_bytes()[:-10])
    before = contents(tmp_path)
    assert main(["fsck", "--json", str(tmp_path / "d")]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"kind", "path", "what"} == set(rows[0])
    by_path = {(row["kind"], row["path"]): row["what"] for row in rows}
    assert "no whole batch" in by_path["damage", f"t-1/{log.name}"]
    assert by_path["start", f"t-1/{log.name}"].startswith(f"cut from {size - 10} to ")
    assert contents(tmp_path) == before
    assert main(["fsck", "--quick", str(tmp_path / "d")]) == 1
    assert "damage" not in capsys.readouterr().out


def test_an_unfinished_way_back_is_all_that_counts(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    fill(tmp_path / "data", stop=True)
    (tmp_path / "data.snapshots").mkdir()
    (tmp_path / "data.snapshots" / "restoring").write_text("monday")
    assert main(["fsck", "--json", str(tmp_path / "data")]) == 1
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert row["kind"] == "start" and "monday" in row["what"]


def test_what_every_start_writes_is_shown_on_request(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    fill(tmp_path / "d", stop=True)
    assert main(["fsck", "--all", str(tmp_path / "d")]) == 1
    assert "start\t.kafka_cleanshutdown\tremoved" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda path: None, "is not a directory"),
        (lambda path: path.mkdir(), "is no broker's directory"),
        (lambda path: (path.mkdir(), (path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")), "holds a metadata log"),
    ],
)
def test_what_is_no_brokers_directory(tmp_path: Path, capsys: pytest.CaptureFixture, make: object, complaint: str) -> None:
    make(tmp_path / "d")
    assert main(["fsck", str(tmp_path / "d")]) == 1
    assert complaint in capsys.readouterr().err


def test_a_running_broker_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    world = World(tmp_path / "d")
    assert main(["fsck", str(tmp_path / "d")]) == 1
    assert "stop it first" in capsys.readouterr().err
    world.stop()
