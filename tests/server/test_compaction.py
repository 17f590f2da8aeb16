"""The cleaner beside a broker that serves: when it looks, how long it holds the loop, what stops it."""

import errno

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.server import compaction
from pykafkad.server.full_disk import LOOK_SECONDS
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch
from tests.handlers.requests import NOW_MS, produce
from tests.simulation.world import World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "data")


def fill(world, topic="t", *, batches=40, keys=4, **configs):
    """A compacted topic with several sealed segments; its log."""
    world.create_topic(
        topic, 1, **{"cleanup_policy": "compact", "segment_bytes": 1048576, "min_cleanable_dirty_ratio": 0, **configs}
    )
    peer = world.connect()
    for number in range(batches):
        records = build_batch([(b"%d" % (number % keys), b"x" * 100_000)], timestamp_ms=NOW_MS)
        answer = peer.ask(produce(topic, {0: bytes(records)}), 8)
        assert answer.responses[0].partition_responses[0].error_code == 0
    return world.broker.partitions.get(topic, 0)


def settle(world, turns=60):
    """Turns until what was handed to the offload thread has come back and nothing goes on."""
    for _ in range(turns):
        world.runtime.offload.close()
        world.turn()
        if not world.broker.compaction.busy:
            return
    raise AssertionError("the cleaner does not end")


def test_dirty_logs_are_cleaned_after_the_backoff_one_after_the_other(world, tmp_path):
    logs = [fill(world, topic) for topic in ("a", "b")]
    sizes = [log.size_bytes for log in logs]
    world.advance(14)
    assert not world.broker.compaction.busy
    world.advance(2)
    settle(world)
    world.advance(0.1)
    settle(world)
    for log, size in zip(logs, sizes, strict=False):
        assert log.size_bytes < size / 2
        assert log.end_offset == 40
    text = (tmp_path / "data" / "cleaner-offset-checkpoint").read_text()
    assert text.startswith("0\n2\n") and "a 0 " in text and "b 0 " in text
    assert not list((tmp_path / "data").glob("*/*.cleaned"))


def test_what_may_take_long_is_handed_over_and_each_turn_gets_its_share(world, monkeypatch):
    """A run goes on over many turns: each ends when the share of STEP_SECONDS is over."""
    log = fill(world)
    monkeypatch.setattr(compaction, "STEP_SECONDS", 0.0)
    world.advance(16)
    cleaner = world.broker.compaction
    assert cleaner.busy == [log]
    turns = 0
    while cleaner.busy:
        world.runtime.offload.close()
        world.turn()
        turns += 1
    assert turns > 20


def test_a_rate_limit_spreads_the_work(world):
    fill(world)
    world.broker.settings.log_cleaner_io_max_bytes_per_second = 1_000_000.0
    world.advance(16)
    cleaner = world.broker.compaction
    seconds = 0.0
    while cleaner.busy:
        world.runtime.offload.close()
        world.advance(0.25)
        seconds += 0.25
        assert seconds < 60
    assert seconds > 3


def test_the_cleaner_can_be_turned_off(tmp_path):
    world = World(tmp_path / "data", log_cleaner_enable="false")
    log = fill(world)
    size = log.size_bytes
    world.advance(60)
    assert (log.size_bytes, world.broker.compaction.busy) == (size, [])


def test_a_topic_that_is_deleted_meanwhile_is_let_go(world, tmp_path, monkeypatch):
    monkeypatch.setattr(compaction, "STEP_SECONDS", 0.0)
    log = fill(world)
    world.advance(16)
    world.connect().ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
    settle(world)
    assert log.closed
    assert world.runtime.metrics.unexpected_errors == 0
    assert not list((tmp_path / "data").glob("*/*.cleaned"))


def test_a_stop_in_the_middle_leaves_nothing_behind(world, tmp_path, monkeypatch):
    monkeypatch.setattr(compaction, "STEP_SECONDS", 0.0)
    fill(world)
    world.advance(16)
    while not list((tmp_path / "data").glob("t-0/*.cleaned")):
        world.turn()
    world.stop()
    assert not list((tmp_path / "data").glob("t-0/*.cleaned"))


def test_a_disk_that_fails_is_tried_again_later(world, monkeypatch):
    log = fill(world)

    def refuse(target, modified_ms):
        raise StorageFailure("sync", target.file.path, "simulated")

    with monkeypatch.context() as patched:
        patched.setattr("pykafkad.log.swap.finish", refuse)
        world.advance(16)
        settle(world)
    assert log.offline is None
    size = log.size_bytes
    world.advance(16)
    settle(world)
    assert log.size_bytes < size / 2


def test_a_log_that_a_full_disk_takes_out_of_service_comes_back(world, monkeypatch):
    """Although no client asks for it."""
    log = fill(world)

    def refuse(log, *_):
        raise StorageFailure("rename", log.directory, OSError(errno.ENOSPC, "No space left on device"))

    with monkeypatch.context() as patched:
        patched.setattr("pykafkad.log.swap._rename_deleted", refuse)
        world.advance(16)
        settle(world)
    assert log.offline is not None
    world.advance(LOOK_SECONDS)
    settle(world)
    assert log.offline is None


def test_compacted_logs_lose_what_retention_or_delete_records_passed(world):
    """At the cleaner's pace, and not while they are being cleaned."""
    log = fill(world, cleanup_policy="compact,delete", min_cleanable_dirty_ratio=1, retention_bytes=1048576)
    assert len(log.segments) > 3
    world.advance(16)
    settle(world)
    assert len(log.segments) <= 2
    assert log.log_start_offset == log.segments[0].base_offset > 0


def test_a_topic_that_comes_again_is_cleaned_from_its_start(world, tmp_path):
    """Also if the broker is restarted in between: the checkpoint forgets with the topic."""
    fill(world)
    world.advance(16)
    settle(world)
    path = tmp_path / "data" / "cleaner-offset-checkpoint"
    assert "t 0 " in path.read_text()
    world.connect().ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
    assert path.read_text() == "0\n0\n"
    log = fill(world)
    size = log.size_bytes
    world.advance(16)
    settle(world)
    assert log.size_bytes < size / 2


def test_a_log_that_is_about_to_be_cut_is_not_cleaned(world):
    """Nor does its retention run: both would change the segments under the cut."""
    log = fill(world)
    partitions, cleaner = world.broker.partitions, world.broker.compaction
    size = log.size_bytes
    log.delete_records(20)
    partitions.hold(log)
    world.advance(32)
    assert not cleaner.busy and log.size_bytes == size
    partitions.release(log)
    world.advance(16)
    settle(world)
    assert log.size_bytes < size / 2
