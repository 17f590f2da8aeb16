"""AlterReplicaLogDirs: a replica moves to another directory while it is written to."""

import random

import pytest

from pykafkad import errors
from pykafkad.errors import StorageFailure
from pykafkad.log import moves as log_moves
from pykafkad.server.directories import directory_id
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.handlers.test_produce import values
from tests.server.test_directories import places, start, write

Request = messages.AlterReplicaLogDirsRequest


@pytest.fixture
def paths(tmp_path):
    return [str(tmp_path / name) for name in ("a", "b", "c")]


@pytest.fixture
def world(paths):
    made = start(paths)
    made.create_topic("t")
    made.turn()
    yield made
    assert made.runtime.metrics.unexpected_errors == 0


def alter(world, *rows, version=2):
    """Request (path, topic, partition) for each row; returns the codes in the order of topic and partition."""
    dirs = [
        Request.AlterReplicaLogDir(path=path, topics=[Request.AlterReplicaLogDirTopic(name=name, partitions=[index])])
        for path, name, index in rows
    ]
    answer = world.connect().ask(Request(dirs=dirs), version)
    return [row.error_code for topic in answer.results for row in topic.partitions]


def other(world, paths, number=0):
    """A path of a directory without the partition."""
    (place,) = places(world, "t")
    return [path for path in paths if not path.endswith(place)][number]


def finish(world):
    """Run the moves to their end."""
    for _ in range(1000):
        if not len(world.broker.moves):
            return
        world.turn()
        world.runtime.offload.close()
    raise AssertionError("the move does not end")


def fill(world, count=50, size=1000, first=0):
    for number in range(first, first + count):
        answer = world.connect().ask(produce("t", {0: batch(b"%06d" % number + bytes(size))}), 8)
        assert answer.responses[0].partition_responses[0].error_code == 0
        if number % 10 == 9:
            world.broker.partitions.get("t", 0).roll(world.runtime.now_ms)


def numbers(world):
    log = world.broker.partitions.get("t", 0)
    found, offset = [], 0
    while offset < log.end_offset:
        row = world.connect().ask(fetch("t", {0: offset}), 11).responses[0].partitions[0]
        assert row.error_code == 0
        more = [int(value[:6]) for value in values(row)]
        found += more
        offset += len(more)
    return found


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_moves_with_all_its_records(world, paths, tmp_path, version):
    fill(world)
    log = world.broker.partitions.get("t", 0)
    (place,) = places(world, "t")
    target = other(world, paths)
    assert alter(world, (target, "t", 0), version=version) == [0]
    finish(world)
    assert places(world, "t") == [target[-1]] and world.broker.partitions.get("t", 0) is log
    assert not (tmp_path / place / "t-0").exists()
    (named,) = world.broker.image.partition("t", 0).directories
    assert named == directory_id(world.broker.directories.at(target))
    fill(world, 20, first=50)
    assert numbers(world) == list(range(70))
    world.stop()
    world = world.restart()
    assert places(world, "t") == [target[-1]] and numbers(world) == list(range(70))


def test_records_written_during_the_move_move_too(world, paths, monkeypatch):
    monkeypatch.setattr(log_moves, "STEP_BYTES", 3000)
    monkeypatch.setattr(log_moves, "LAST_BYTES", 2000)
    fill(world, 30)
    target = other(world, paths)
    alter(world, (target, "t", 0))
    number = 30
    while len(world.broker.moves):
        fill(world, 1, 1000, first=number)
        number += 1
        world.turn()
        world.runtime.offload.close()
        assert number < 500
    assert number > 35 and numbers(world) == list(range(number)) and places(world, "t") == [target[-1]]
    # The old world stays as a killed broker leaves it.
    for directory in world.broker.directories.every():
        directory._lock.close()
    again = world.restart()
    assert numbers(again) == list(range(number)), "recovered after a kill, with every file in its new place"


def test_describe_log_dirs_shows_both_replicas_of_a_move(world, paths, monkeypatch):
    monkeypatch.setattr(log_moves, "STEP_BYTES", 5000)
    fill(world, 30)
    target = other(world, paths)
    alter(world, (target, "t", 0))

    def described():
        results = world.connect().ask(messages.DescribeLogDirsRequest(topics=None), 5).results
        return {
            row.is_future_key: (result.log_dir, row.partition_size, row.offset_lag)
            for result in results
            for topic in result.topics
            for row in topic.partitions
        }

    rows = described()
    # The first step may have run already.
    assert rows[True][0] == target and rows[True][1] in (0, 5000) and rows[True][2] == 30
    assert rows[False][1] > 30_000 and rows[False][2] == 0
    for _ in range(4):
        world.turn()
        world.runtime.offload.close()
    rows = described()
    assert 5000 <= rows[True][1] < rows[False][1] and 0 < rows[True][2] < 30
    finish(world)
    assert list(described()) == [False]


def test_a_move_is_redirected_and_stopped(world, paths, tmp_path):
    fill(world, 5)
    (place,) = places(world, "t")
    first, second = other(world, paths), other(world, paths, 1)
    here = next(path for path in paths if path.endswith(place))
    assert alter(world, (first, "t", 0)) == [0] and alter(world, (first, "t", 0)) == [0]
    assert alter(world, (second, "t", 0)) == [0]
    moves = world.broker.moves
    assert len(moves) == 1 and moves.target(world.broker.partitions.get("t", 0)).path == second
    assert alter(world, (here, "t", 0)) == [0] and len(moves) == 0
    world.turn()
    world.advance(1)
    for _ in range(2):
        # The second folder may wait until the first is removed.
        world.runtime.offload.close()
    assert places(world, "t") == [place] and not [
        name for path in paths for name in tmp_path.joinpath(path).iterdir() if "-future" in name.name
    ]


def test_a_step_that_runs_while_its_move_is_redirected_changes_nothing(world, paths, monkeypatch):
    fill(world, 30)
    first, second = other(world, paths), other(world, paths, 1)
    steps = []
    with monkeypatch.context() as patch:
        patch.setattr(type(world.runtime.offload), "submit", lambda offload, job, then: steps.append(then))
        alter(world, (first, "t", 0))
        alter(world, (second, "t", 0))
    then = steps[0]
    # The folder has another name by now.
    then(StorageFailure("write", f"{first}/t-0.0-future/x", "No such file or directory"))
    finish(world)
    world.turn()
    assert (
        places(world, "t") == [second[-1]] and numbers(world) == list(range(30)) and not world.broker.directories.failed
    )


def one_step(world):
    world.turn()
    world.runtime.offload.close()


def test_segments_that_are_replaced_or_removed_during_the_move_are_copied_anew(world, paths, monkeypatch):
    """A cleaned segment is a new file, whatever its content. A segment that retention removed does not come back."""
    monkeypatch.setattr(log_moves, "STEP_BYTES", 3000)
    fill(world, 30)
    log = world.broker.partitions.get("t", 0)
    alter(world, (other(world, paths), "t", 0))
    for _ in range(12):
        one_step(world)
    swapped, removed = log.segments[1], log.segments[0]
    data = swapped.file.pread(swapped.size, 0)
    path = swapped.file.path
    world.runtime.disk.rename(path, f"{path}.old")
    swapped.file = world.runtime.disk.open(path, create=True)
    swapped.file.pwrite(data.replace(b"000015", b"999999"), 0)
    log.segments.remove(removed)
    log.log_start_offset = swapped.base_offset
    finish(world)
    directory = world.runtime.disk.listdir(log.directory)
    assert f"{removed.base_offset:020d}.log" not in directory and f"{swapped.base_offset:020d}.log" in directory
    assert b"999999" in log.segments[0].file.pread(swapped.size, 0)


def test_synced_appends_stay_synced(world, paths, monkeypatch):
    """Appends that are synced in the old directory after the copy's sync are synced in the new directory too."""
    fill(world, 5)
    log = world.broker.partitions.get("t", 0)
    # Only this test runs steps.
    monkeypatch.setattr(type(world.runtime.offload), "submit", lambda *_: None)
    alter(world, (other(world, paths), "t", 0))
    move = world.broker.moves.queue.find("t", 0)
    while (step := move.next_step()) is not None:
        step()
    fill(world, 1, first=5)
    log.flush()
    synced = []
    monkeypatch.setattr("pykafkad.disk.File.sync", lambda file: synced.append(file.path))
    move.complete()
    assert [path for path in synced if "-future" in path], synced


def test_nothing_moves_while_a_directory_is_offline(world, paths):
    """As in Kafka, because the failed directory may hold the future replica of the same partition."""
    (place,) = places(world, "t")
    metadata = world.broker.directories.metadata
    broken = next(
        each for each in world.broker.directories.online if each is not metadata and not each.path.endswith(place)
    )
    world.broker.directories.report(broken, StorageFailure("write", broken.path, "simulated"))
    world.turn()
    target = next(each.path for each in world.broker.directories.online if not each.path.endswith(place))
    here = next(each.path for each in world.broker.directories.online if each.path.endswith(place))
    assert alter(world, (target, "t", 0)) == [errors.KAFKA_STORAGE_ERROR] and alter(world, (here, "t", 0)) == [0]


def test_each_refusal_has_its_own_error(world, paths):
    long = "x" * 214
    world.create_topic(long)
    target = other(world, paths)
    rows = [("/nowhere", "t", 0), (target, "t", 1), (target, "u", 0), (target, long, 0)]
    expected = {"t": [errors.LOG_DIR_NOT_FOUND, errors.UNKNOWN_TOPIC_OR_PARTITION]}
    assert alter(world, *rows[:2]) == expected["t"]
    assert alter(world, rows[2]) == [errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert alter(world, rows[3]) == [errors.INVALID_TOPIC_EXCEPTION]
    log = world.broker.partitions.get("t", 0)
    log.offline = StorageFailure("write", "t-0", "simulated")
    assert alter(world, (target, "t", 0)) == [errors.KAFKA_STORAGE_ERROR]
    log.offline = None
    directory = world.broker.directories.at(target)
    world.broker.directories.report(directory, StorageFailure("write", target, "simulated"))
    world.turn()
    if directory is not world.broker.directories.metadata:
        assert alter(world, (target, "t", 0)) == [errors.KAFKA_STORAGE_ERROR]


def test_a_later_replica_is_created_in_the_chosen_directory(world, paths):
    for path in paths:
        name = f"to-come-{path[-1]}"
        assert alter(world, (path, name, 0)) == [errors.UNKNOWN_TOPIC_OR_PARTITION]
        world.create_topic(name)
        assert places(world, name) == [path[-1]]


def test_a_cordoned_directory_takes_no_move(paths):
    world = start(paths[:2], log_dirs=",".join(paths[:2]), cordoned_log_dirs=paths[1])
    world.create_topic("t")
    assert alter(world, (paths[1], "t", 0)) == [errors.INVALID_REPLICA_ASSIGNMENT]


def test_a_deleted_topic_ends_its_move(world, paths, tmp_path):
    fill(world, 5)
    alter(world, (other(world, paths), "t", 0))
    world.connect().ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
    assert len(world.broker.moves) == 0
    world.turn()
    world.runtime.offload.close()
    world.turn()
    assert not [name for path in paths for name in tmp_path.joinpath(path).iterdir() if "-future" in name.name]


def test_a_target_that_fails_ends_the_move(world, paths, monkeypatch):
    fill(world, 30)
    target = other(world, paths)
    if world.broker.directories.at(target) is world.broker.directories.metadata:
        target = other(world, paths, 1)
    alter(world, (target, "t", 0))
    real = log_moves._copy

    def refuse(copy, size):
        raise StorageFailure("write", copy.file.path, "simulated")

    monkeypatch.setattr(log_moves, "_copy", refuse)
    finish(world)
    monkeypatch.setattr(log_moves, "_copy", real)
    world.turn()
    assert target in world.broker.directories.failed and write(world, "t") == 0


@pytest.mark.parametrize("seed", range(6))
def test_a_broker_that_is_killed_during_a_move_keeps_all_records(world, paths, monkeypatch, seed):
    """After any number of steps the partition is complete and in one place, and the move begins anew or is over."""
    monkeypatch.setattr(log_moves, "STEP_BYTES", 4000)
    fill(world, 25)
    target = other(world, paths)
    alter(world, (target, "t", 0))
    for _ in range(random.Random(seed).randrange(25)):
        world.turn()
        world.runtime.offload.close()
    for directory in world.broker.directories.every():
        directory._lock.close()
    again = world.restart()
    finish(again)
    assert numbers(again) == list(range(25)) and places(again, "t") == [target[-1]]


@pytest.mark.parametrize("renamed", [0, 1])
def test_a_broker_that_is_killed_while_the_folders_are_renamed_finishes_the_move(world, paths, monkeypatch, renamed):
    """The metadata names the new directory already, and the start does the rest."""
    fill(world, 25)
    target = other(world, paths)
    alter(world, (target, "t", 0))

    class Died(Exception):
        pass

    def die(*_):
        raise Died

    monkeypatch.setattr(
        "pykafkad.log.directory.LogDirectory.release" if not renamed else "pykafkad.log.directory.LogDirectory.adopt",
        die,
    )
    finish(world)
    monkeypatch.undo()
    assert world.runtime.metrics.unexpected_errors == 1
    world.runtime.metrics.unexpected_errors = 0
    for directory in world.broker.directories.every():
        directory._lock.close()
    again = world.restart()
    assert numbers(again) == list(range(25)) and places(again, "t") == [target[-1]] and len(again.broker.moves) == 0


def test_a_rate_limit_makes_moves_wait(paths):
    world = start(paths, replica_alter_log_dirs_io_max_bytes_per_second=10_000)
    world.create_topic("t")
    world.turn()
    fill(world, 50)
    alter(world, (other(world, paths), "t", 0))
    for _ in range(20):
        world.turn()
        world.runtime.offload.close()
    assert len(world.broker.moves) == 1
    for _ in range(20):
        world.advance(1)
        world.runtime.offload.close()
    assert len(world.broker.moves) == 0
