"""The end of a move between directories, when something fails in it or comes between."""

import errno
import random

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log.directory import LogDirectory
from pykafkad.log.moves import FutureReplica
from pykafkad.log.reopening import ReopenJob
from pykafkad.server.directories import directory_id
from pykafkad.server.full_disk import LOOK_SECONDS
from pykafkad.server.moves import Moves
from tests.handlers.test_alter_replica_log_dirs import alter, fill_with_syncs, finish, numbers, one_step
from tests.server.test_directories import places, start
from tests.simulation.disk import MemoryDisk


@pytest.fixture
def world():
    """A broker that answers after a sync, with the topic `t` in the directory of the metadata log."""
    made = start(["/a", "/b"], disk=MemoryDisk(), pykafkad_group_commit="true")
    made.create_topic("t")
    if places(made, "t") == ["b"]:
        alter(made, ("/a", "t", 0))
        finish(made)
        made.advance(600)
    fill_with_syncs(made, 0, 10)
    yield made
    assert made.runtime.metrics.unexpected_errors == 0


def named(world):
    (directory,) = world.broker.image.partition("t", 0).directories
    return next(each.path for each in world.broker.directories.every() if directory_id(each) == directory)


def refuse(path):
    def fail(*_):
        raise StorageFailure("write", path, "simulated")

    return fail


@pytest.mark.parametrize("where", ["the last copy", "the new folder's name"])
def test_a_target_that_fails_in_the_last_turn_leaves_the_log_where_it_is(world, monkeypatch, where):
    if where == "the last copy":
        copy_rest, calls = FutureReplica._copy_rest, []

        def fail_second(move):
            calls.append(move)
            return copy_rest(move) if len(calls) == 1 else refuse(f"{move.path}/x")()

        monkeypatch.setattr(FutureReplica, "_copy_rest", fail_second)
    else:
        monkeypatch.setattr(LogDirectory, "adopt", refuse("/b/t-0.0-future"))
    alter(world, ("/b", "t", 0))
    finish(world)
    for _ in range(5):
        one_step(world)
    assert "/b" in world.broker.directories.failed
    assert places(world, "t") == ["a"] and named(world) == "/a"
    fill_with_syncs(world, 10, 5)
    assert numbers(world) == list(range(15))
    world.disk.lose_power(random.Random(1))
    again = world.restart()
    assert numbers(again) == list(range(15))


def test_a_source_that_cannot_rename_the_old_folder_does_not_stop_the_move(world, monkeypatch):
    """The copy has its name by then. The next start removes the old folder, because the metadata names the new one."""
    monkeypatch.setattr(LogDirectory, "_rename_for_removal", refuse("/a/t-0"))
    alter(world, ("/b", "t", 0))
    finish(world)
    monkeypatch.undo()
    for _ in range(5):
        one_step(world)
    assert places(world, "t") == ["b"] and named(world) == "/b"
    fill_with_syncs(world, 10, 5)
    world.disk.lose_power(random.Random(1))
    again = world.restart()
    assert places(again, "t") == ["b"] and numbers(again) == list(range(15))
    again.advance(600)
    again.runtime.offload.close()
    assert not again.disk.exists("/a/t-0")


def test_a_log_that_moves_while_it_is_recovered_after_a_full_disk_is_recovered_again(world, monkeypatch):
    """What the recovery found are the files of the old folder."""
    log, moves = world.broker.partitions.get("t", 0), world.broker.moves
    with monkeypatch.context() as patch:
        patch.setattr(Moves, "_finish", lambda *_: None)
        alter(world, ("/b", "t", 0))
        for _ in range(50):
            one_step(world)
    assert named(world) == "/b" and places(world, "t") == ["a"]
    failure = StorageFailure("write", "/a/t-0/x", OSError(errno.ENOSPC, "simulated"))
    log.fail(failure)
    world.broker.log_failed(log, failure)
    run = ReopenJob.run

    def run_slowly(job):
        run(job)
        moves.fired("")

    monkeypatch.setattr(ReopenJob, "run", run_slowly)
    world.advance(LOOK_SECONDS)
    for _ in range(5):
        one_step(world)
    assert places(world, "t") == ["b"] and log.offline is None
    assert [segment.file.path for segment in log.segments] == ["/b/t-0/00000000000000000000.log"]
    fill_with_syncs(world, 10, 5)
    world.disk.lose_power(random.Random(1))
    assert numbers(world.restart()) == list(range(15))


def test_a_move_does_not_end_while_the_log_is_about_to_be_cut(world):
    """The cut ends the move: what the copy has may be what is cut."""
    partitions = world.broker.partitions
    log = partitions.get("t", 0)
    partitions.hold(log)
    alter(world, ("/b", "t", 0))
    for _ in range(30):
        one_step(world)
    assert places(world, "t") == ["a"] and named(world) == "/a"
    partitions.release(log)
    finish(world)
    assert places(world, "t") == ["b"] and numbers(world) == list(range(10))
