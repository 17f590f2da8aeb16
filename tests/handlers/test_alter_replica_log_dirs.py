"""AlterReplicaLogDirs: a replica moves to another directory while it is written to."""

import random
from copy import copy

import pytest

from pykafkad import errors
from pykafkad.disk import File
from pykafkad.errors import StorageFailure
from pykafkad.log import moves as log_moves
from pykafkad.log.moves import SHORTEST_PAUSE_SECONDS
from pykafkad.server.directories import directory_id
from pykafkad.wire import messages
from tests import seeds
from tests.handlers.requests import batch, fetch, produce
from tests.handlers.test_produce import values
from tests.server.test_directories import places, start, write
from tests.simulation.crash_disk import CrashDisk

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


def one_step(world):
    """A turn, with the work beside the loop. The time is for what looks again after a pause."""
    world.advance(SHORTEST_PAUSE_SECONDS)
    world.runtime.offload.close()


def finish(world):
    """Run the moves to their end."""
    for _ in range(1000):
        if not len(world.broker.moves):
            return
        one_step(world)
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
        one_step(world)
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


def test_segments_that_are_replaced_or_removed_during_the_move_are_copied_anew(world, paths, monkeypatch):
    """A cleaned segment is a new one, whatever its content. A segment that retention removed does not come back."""
    monkeypatch.setattr(log_moves, "STEP_BYTES", 3000)
    fill(world, 30)
    log = world.broker.partitions.get("t", 0)
    alter(world, (other(world, paths), "t", 0))
    for _ in range(12):
        one_step(world)
    swapped, removed = copy(log.segments[1]), log.segments[0]
    log.segments[1] = swapped
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


def test_no_sync_of_the_log_begins_while_its_copy_is_synced_for_the_last_time(paths, monkeypatch):
    """With group commit an append in that time waits. Its sync is one of the new files."""
    world = start(paths, pykafkad_group_commit="true")
    world.create_topic("t")
    world.turn()
    log = world.broker.partitions.get("t", 0)
    target = other(world, paths)
    alter(world, (target, "t", 0))
    postponed = []
    commits = world.broker.commits
    monkeypatch.setattr(type(commits), "is_under_sync", lambda commits, log: bool(postponed.append(log)) or True)
    for _ in range(10):
        one_step(world)
    assert log in postponed and len(world.broker.moves) == 1
    peer = world.connect()
    peer.send(produce("t", {0: batch(b"new")}, acks=-1), 8)
    one_step(world)
    assert peer.answers == []
    monkeypatch.undo()
    synced = []
    sync = File.sync
    monkeypatch.setattr(File, "sync", lambda file: (synced.append(file.path), sync(file))[1])
    finish(world)
    for _ in range(20):
        world.runtime.offload.close()
        world.turn()
    assert peer.answers[0].responses[0].partition_responses[0].error_code == 0
    assert log.recovery_point == log.end_offset == 1
    assert [path for path in synced if path.startswith(f"{target}/t-0/")], synced
    assert not [path for path in synced if "/t-0/" in path and not path.startswith(target)], synced


@pytest.mark.parametrize("seed", seeds.sampled(range(12), 4))
def test_a_power_loss_during_a_move_loses_nothing_that_was_acknowledged_as_synced(seed, monkeypatch):
    """With group commit every acknowledged record was synced, in one place or the other. Segments roll meanwhile. Half
    of the disks keep names only after a sync of their directory."""
    monkeypatch.setattr(log_moves, "STEP_BYTES", 4000)
    chance = random.Random(seed)
    disk = CrashDisk()
    disk.names_apart = chance.random() < 0.5
    world = start(["/a", "/b"], disk=disk, pykafkad_group_commit="true")
    world.create_topic("t")
    fill_with_syncs(world, 0, 10)
    (place,) = places(world, "t")
    alter(world, ("/b" if place == "a" else "/a", "t", 0))
    written = 10
    for _ in range(chance.randrange(60)):
        if chance.random() < 0.5:
            fill_with_syncs(world, written, 1)
            written += 1
        if chance.random() < 0.2:
            world.broker.partitions.get("t", 0).roll(world.runtime.now_ms)
        one_step(world)
    if chance.random() < 0.7:
        world.disk.lose_power(chance)
    else:
        world.disk.kill()
    again = world.restart()
    assert numbers(again)[:written] == list(range(written))
    # The name of a copy that was not synced yet may be lost, and the move with it.
    has_moved = len(again.broker.moves) > 0 or places(again, "t") != [place]
    finish(again)
    assert numbers(again)[:written] == list(range(written)) and (places(again, "t") != [place]) == has_moved
    assert again.runtime.metrics.unexpected_errors == 0


def fill_with_syncs(world, first, count):
    """Records that are acknowledged after their sync."""
    for number in range(first, first + count):
        peer = world.connect()
        peer.send(produce("t", {0: batch(b"%06d" % number + bytes(500))}, acks=-1), 8)
        for _ in range(50):
            if peer.answers:
                break
            one_step(world)
        assert peer.answers[0].responses[0].partition_responses[0].error_code == 0


def test_a_stop_does_not_wait_for_a_move(paths):
    """What the move kept from being synced is synced by the stop."""
    world = start(paths, pykafkad_group_commit="true")
    world.create_topic("t")
    world.turn()
    alter(world, (other(world, paths), "t", 0))
    log = world.broker.partitions.get("t", 0)
    world.broker.commits.postpone_syncs(log)
    peer = world.connect()
    peer.send(produce("t", {0: batch(b"new")}, acks=-1), 8)
    world.turn()
    world.stop()
    world = world.restart()
    assert world.broker.partitions.get("t", 0).end_offset == 1


def test_a_move_that_is_stopped_after_the_metadata_named_its_target_is_taken_back(world, paths, monkeypatch):
    fill(world, 5)
    (place,) = places(world, "t")
    here = next(path for path in paths if path.endswith(place))
    target = other(world, paths)

    def named():
        return world.broker.image.partition("t", 0).directories[0]

    with monkeypatch.context() as patch:
        patch.setattr(type(world.broker.moves), "_finish", lambda *_: None)
        alter(world, (target, "t", 0))
        for _ in range(100):
            one_step(world)
        assert named() == directory_id(world.broker.directories.at(target)) and places(world, "t") == [place]
    assert alter(world, (here, "t", 0)) == [0]
    for _ in range(5):
        one_step(world)
    assert named() == directory_id(world.broker.directories.at(here)) and numbers(world) == list(range(5))


def test_a_partition_whose_own_folder_is_there_begins_its_move_anew(world, paths, monkeypatch):
    """A broker that was killed after the metadata named the new directory: clients still wrote to the old folder."""
    fill(world, 5)
    with monkeypatch.context() as patch:
        patch.setattr(type(world.broker.moves), "_finish", lambda *_: None)
        target = other(world, paths)
        alter(world, (target, "t", 0))
        for _ in range(100):
            one_step(world)
        fill(world, 5, first=5)
    for directory in world.broker.directories.every():
        directory._lock.close()
    again = world.restart()
    assert numbers(again) == list(range(10)) and len(again.broker.moves) == 1
    finish(again)
    assert numbers(again) == list(range(10)) and places(again, "t") == [target[-1]]


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
    for _ in range(random.Random(seed).randrange(30)):
        one_step(world)
    for directory in world.broker.directories.every():
        directory._lock.close()
    again = world.restart()
    finish(again)
    assert numbers(again) == list(range(25)) and places(again, "t") == [target[-1]]


@pytest.mark.parametrize("renamed", ["neither", "the copy", "the old folder"])
def test_a_broker_that_dies_while_the_folders_are_renamed_finishes_the_move(world, paths, monkeypatch, renamed):
    """The metadata names the new directory already. While only the old folder has its name the move begins anew. Of two
    folders the new one counts. If a loss of power left none, the start makes the copy the partition."""
    fill(world, 25)
    (place,) = places(world, "t")
    target = other(world, paths)
    alter(world, (target, "t", 0))

    class Died(Exception):
        pass

    def die(*_):
        raise Died

    method = "release" if renamed == "the copy" else "adopt"
    monkeypatch.setattr(f"pykafkad.log.directory.LogDirectory.{method}", die)
    finish_or_die(world)
    monkeypatch.undo()
    assert world.runtime.metrics.unexpected_errors == 1
    world.runtime.metrics.unexpected_errors = 0
    for directory in world.broker.directories.every():
        directory._lock.close()
        if renamed == "the old folder" and directory.path.endswith(place):
            directory._rename_for_removal(("t", 0))
    again = world.restart()
    assert numbers(again) == list(range(25)) and len(again.broker.moves) == (renamed == "neither")
    finish(again)
    assert numbers(again) == list(range(25)) and places(again, "t") == [target[-1]]


def finish_or_die(world):
    for _ in range(100):
        one_step(world)
        if world.runtime.metrics.unexpected_errors:
            return
    raise AssertionError("nothing died")


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
