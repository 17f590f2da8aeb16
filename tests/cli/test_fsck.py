"""`pykafkad fsck` prints findings, returns exit codes and changes nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from pykafkad.__main__ import main
from pykafkad.clock import ManualClock
from pykafkad.errors import ConfigError, StorageFailure
from tests import seeds
from tests.handlers.requests import batch, produce
from tests.simulation import damage
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
        # The lock file is removed, as it is when the process is killed.
        (path / ".lock").unlink()
    return world


@pytest.fixture(autouse=True)
def quiet():
    """Restores the log level: the command changes it for the whole process."""
    from pykafkad.server import logs

    level = logs._OUTPUT.threshold
    yield
    logs._OUTPUT.threshold = level


def test_a_clean_directory_has_no_findings(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The exit code is 0, and no byte of the directory changes."""
    fill(tmp_path / "d", stop=True)
    before = contents(tmp_path)
    assert main(["fsck", str(tmp_path / "d")]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "no findings: a start would change nothing\n")
    assert contents(tmp_path) == before


def test_a_torn_tail_is_damage_that_a_start_cuts_off(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The finding says at which offset the next start cuts off the incomplete batch."""
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


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (0, "the offsets from 5 to 72057594037927940 are missing before the batch at position {begin}"),
        (1000, "{size} bytes from position {begin} on are no whole batch: the offsets from 5 to 5"),
        (-1, "{size} bytes from position {begin} on are no whole batch: the offsets from 5 to 5"),
    ],
    ids=["offset", "record", "last"],
)
def test_a_flipped_byte_is_named(tmp_path: Path, capsys: pytest.CaptureFixture, at: int, told: str) -> None:
    """By the batch that holds it, also after a clean stop: in the records, and in the offset, which no checksum covers.
    `dump-log` names the batch of a checksum that does not match, too."""
    fill(tmp_path / "d", stop=True)
    log = next((tmp_path / "d" / "t-1").glob("*.log"))
    content = bytearray(log.read_bytes())
    size = len(content) // 10
    begin = 5 * size
    content[begin + at % size] ^= 1
    log.write_bytes(content)
    assert main(["fsck", "--json", str(tmp_path / "d")]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = [row["what"] for row in rows if (row["kind"], row["path"]) == ("damage", f"t-1/{log.name}")]
    assert found[0].startswith(told.format(begin=begin, size=size))
    if at:
        assert main(["dump-log", "--json", str(log)]) == 1
        damaged = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert damaged == {"kind": "damaged", "position": begin, "reason": "the checksum does not match"}


def test_an_unfinished_restore_is_the_only_finding(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    fill(tmp_path / "data", stop=True)
    (tmp_path / "data.snapshots").mkdir()
    (tmp_path / "data.snapshots" / "restoring").write_text("monday")
    assert main(["fsck", "--json", str(tmp_path / "data")]) == 1
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert row["kind"] == "start" and "monday" in row["what"]


def test_changes_of_every_start_are_shown_with_all(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    fill(tmp_path / "d", stop=True)
    assert main(["fsck", "--all", str(tmp_path / "d")]) == 1
    assert "start\t.kafka_cleanshutdown\tremoved" in capsys.readouterr().out


def test_a_clean_second_stop_has_no_findings(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Each start removes the producer snapshot of the stop before the last one: that is routine."""
    fill(tmp_path / "d", stop=True)
    world = World(tmp_path / "d")
    world.connect().send(produce("t", {0: batch(b"more")}), 8)
    world.stop()
    assert main(["fsck", str(tmp_path / "d")]) == 0
    assert main(["fsck", "--all", str(tmp_path / "d")]) == 1
    assert "start\tt-0/00000000000000000010.snapshot\tremoved" in capsys.readouterr().out


def test_partitions_without_records_have_no_findings(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The first use of a partition makes its files. A partition that lost its files has a finding."""
    world = fill(tmp_path / "d", stop=False)
    world.create_topic("idle", 2)
    world.stop()
    assert main(["fsck", str(tmp_path / "d")]) == 0
    assert "idle-0" not in capsys.readouterr().out
    for path in (tmp_path / "d" / "t-1").iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    assert main(["fsck", str(tmp_path / "d")]) == 1
    assert "start\tt-1/00000000000000000000.log\tcreated with 0 bytes" in capsys.readouterr().out


def test_missing_records_are_damage(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """A gap in a log that was never compacted is damage, and so is a log that ends below its high watermark."""
    world = fill(tmp_path / "d", stop=False)
    world.create_topic("c", 1, cleanup_policy="compact")
    for topic in ("t", "c"):
        log = world.broker.partitions.get(topic, 0)
        for _ in range(3):
            log.roll(0)
            log.append_records([(b"k", b"v")], 0)
    world.stop()
    for topic in ("t", "c"):
        sorted((tmp_path / "d" / f"{topic}-0").glob("*.log"))[1].unlink()
    sorted((tmp_path / "d" / "t-1").glob("*.log"))[-1].write_bytes(b"")
    assert main(["fsck", "--json", str(tmp_path / "d")]) == 1
    rows = {(row["kind"], row["path"]): row["what"] for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert (
        rows["damage", "t-0/00000000000000000011.log"]
        == "begins with offset 11: the offsets from 10 to 10 are missing before it"
    )
    assert rows["damage", "t-1"] == "the log ends at offset 0 but its high watermark was 10: records are lost"
    assert [(kind, path) for kind, path in rows if "c-0" in path and kind != "start"] == [
        ("stale", f"c-0/00000000000000000001.{each}") for each in ("index", "timeindex")
    ]


def test_damage_is_reported_when_a_broker_would_not_start(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    fill(tmp_path / "d", stop=True)
    (tmp_path / "d" / "meta.properties").unlink()
    log = next((tmp_path / "d" / "t-1").glob("*.log"))
    log.write_bytes(log.read_bytes()[:-10])
    assert main(["fsck", str(tmp_path / "d")]) == 1
    printed = capsys.readouterr()
    assert f"damage\tt-1/{log.name}" in printed.out and "would not start here" in printed.err
    assert main(["fsck", "--quick", str(tmp_path / "d")]) == 1
    assert capsys.readouterr().out == ""


def test_a_partition_in_an_unnamed_directory_is_offline(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    world = World(tmp_path / "a", more_directories=[str(tmp_path / "b")])
    world.create_topic("t", 2)
    world.stop()
    (away,) = (tmp_path / "b").glob("t-*")
    assert main(["fsck", "--json", str(tmp_path / "a")]) == 1
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (row["kind"], row["path"]) == ("offline", away.name) and "not in log.dirs" in row["what"]
    assert main(["fsck", str(tmp_path / "a"), str(tmp_path / "b")]) == 0


def tree(root: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


@pytest.fixture(scope="module")
def brokers() -> dict[str, damage.MemoryDisk]:
    """A data directory with many kinds of files, left behind in different ways."""
    return {left: damage.build(left)[0] for left in damage.LEFT}


def put(disk: damage.MemoryDisk, root: Path) -> Path:
    """Copies the files of a simulated disk into a real folder; returns the path of the data."""
    for path, content in disk.files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.seen)
    return root / "data"


@pytest.mark.parametrize("kind", seeds.sampled(damage.KINDS, 12))
def test_the_findings_are_what_a_start_does(
    brokers: dict[str, damage.MemoryDisk], tmp_path: Path, capsys: pytest.CaptureFixture, kind: str
) -> None:
    """The findings name every file that a start changes, no other, and the same refusal. The check changes nothing."""
    properties = tmp_path / "server.properties"
    properties.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in damage.SETTINGS.items()))
    for left, name in zip(damage.LEFT, ("gone", "cut", "flipped"), strict=True):
        if not damage.files_of(brokers[left], kind):
            continue
        disk, _ = damage.do_damage(brokers[left], kind, name, random.Random(f"{kind} {name}"))
        checked, started = (put(disk, tmp_path / f"{name}-{what}") for what in ("checked", "started"))
        before = tree(checked)
        assert main(["fsck", "--json", "--all", "--properties", str(properties), str(checked)]) == 1
        printed = capsys.readouterr()
        assert tree(checked) == before
        try:
            world = World(started, clock=ManualClock(damage.START_MS), **damage.SETTINGS)
        except (ConfigError, StorageFailure) as refusal:
            assert str(refusal).replace(str(started), str(checked)) in printed.err
            continue
        offline = {f"{log.topic}-{log.partition}" for log in world.broker.partitions if not opens(log)}
        rows = [json.loads(line) for line in printed.out.splitlines()]
        after = tree(started)
        changed = {path for path in {*before, *after} if before.get(path, 0) != after.get(path, 0)}
        told = {row["path"] for row in rows if row["kind"] == "start"}
        assert beside_metadata(changed) == beside_metadata(told), f"{name} of a broker that was {left}"
        assert {row["path"].split("/")[0] for row in rows if row["kind"] == "offline"} == offline


def opens(log: object) -> bool:
    """Whether a log can be opened."""
    try:
        return log.offline is None and log.end_offset >= 0
    except StorageFailure:
        return False


def beside_metadata(paths: set[str]) -> set[str]:
    """The changed files, without those whose content depends on the time."""
    return {path for path in paths if not path.startswith("__cluster_metadata-0") and path != ".lock"}


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda path: None, "is not a directory"),
        (lambda path: path.mkdir(), "is not a broker's directory"),
        (
            lambda path: (path.mkdir(), (path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=x\n")),
            "holds a metadata log",
        ),
    ],
)
def test_a_directory_without_a_broker_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture, make: object, complaint: str
) -> None:
    make(tmp_path / "d")
    assert main(["fsck", str(tmp_path / "d")]) == 1
    assert complaint in capsys.readouterr().err


def test_the_directory_of_a_running_broker_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    world = World(tmp_path / "d")
    assert main(["fsck", str(tmp_path / "d")]) == 1
    assert "stop it first" in capsys.readouterr().err
    world.stop()


def test_the_data_of_several_brokers_is_read(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """All of it; a start is not tried, and nothing changes."""
    for number in (1, 2):
        fill(tmp_path / "d" / f"broker{number}", stop=True)
    before = contents(tmp_path)
    assert main(["fsck", str(tmp_path / "d")]) == 0
    assert capsys.readouterr().err == "no findings\n"
    assert contents(tmp_path) == before
    segment = tmp_path / "d" / "broker2" / "t-1" / f"{0:020}.log"
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    assert main(["fsck", str(tmp_path / "d"), "--json"]) == 1
    rows = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert {(row["kind"], row["path"]) for row in rows} == {("damage", f"broker2/t-1/{0:020}.log")}
    assert main(["fsck", str(tmp_path / "d"), "--quick"]) == 2
    assert "holds the data of several brokers, of which no start is tried" in capsys.readouterr().err
