"""What a broker does by the clock."""

import pytest

from pykafkad.disk import File
from pykafkad.errors import StorageFailure
from pykafkad.log.log_files import LogFiles
from pykafkad.server import housekeeping
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch
from tests.handlers.requests import batch, produce
from tests.simulation.world import World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "data")


def fill(world, count=32):
    """A topic of several segments; its log."""
    world.create_topic("t", 1, segment_bytes=1048576, retention_ms=60_000)
    peer = world.connect()
    for _ in range(count):
        answer = peer.ask(produce("t", {0: batch(b"x" * 100_000)}), 8)
        assert answer.responses[0].partition_responses[0].error_code == 0
    return world.broker.partitions.get("t", 0)


def settle(world):
    """Let the offloaded jobs finish and their results arrive."""
    world.runtime.offload.close()
    world.turn()


def test_rolled_segments_are_synced_in_the_background(world):
    """Kafka syncs a segment some time after it rolled: a restart after a crash reads only what came later."""
    log = fill(world)
    assert (len(log.segments) > 2, log.recovery_point) == (True, 0)
    world.advance(6)
    settle(world)
    assert log.recovery_point == log.segments[-1].base_offset


def test_scheduled_flushes_run_beside_the_loop(world, monkeypatch):
    """`flush.ms`: what was written is synced when it has passed, and again when more was; nobody waits for it."""
    world.create_topic("t", 1, flush_ms=1000)
    world.create_topic("unflushed", 1)
    beside, sync = [], File.sync
    monkeypatch.setattr(File, "sync", lambda file: (beside.append(world.runtime.offload.working), sync(file)))
    logs = [world.broker.partitions.get(name, 0) for name in ("t", "unflushed")]
    for count in (1, 2):
        for name in ("t", "unflushed"):
            assert (
                world.connect().ask(produce(name, {0: batch(b"x")}), 8).responses[0].partition_responses[0].error_code
                == 0
            )
        world.advance(61)
        settle(world)
        assert [log.recovery_point for log in logs] == [count, 0]
    world.advance(61)
    settle(world)
    assert beside == [True, True]


def test_a_failed_sync_takes_the_log_out_of_service(world, monkeypatch):
    log = fill(world)

    def refuse(file):
        raise StorageFailure("sync", file.path, "simulated")

    monkeypatch.setattr("pykafkad.disk.File.sync", refuse)
    world.advance(6)
    settle(world)
    assert log.offline is not None


def test_old_segments_are_renamed_and_then_removed(world, tmp_path):
    """Retention at its interval, the files after file.delete.delay.ms."""
    log = fill(world)
    folder = tmp_path / "data" / "t-0"
    world.advance(301)
    assert (len(log.segments), log.log_start_offset) == (1, log.end_offset)
    assert [name for name in folder.iterdir() if name.name.endswith(".deleted")]
    world.advance(61)
    world.advance(6)
    settle(world)
    assert not [name for name in folder.iterdir() if name.name.endswith(".deleted")]


def test_the_high_watermark_is_checkpointed(world, tmp_path):
    log = fill(world, 1)
    world.advance(6)
    settle(world)
    assert f"t 0 {log.high_watermark}\n" in (tmp_path / "data" / "replication-offset-checkpoint").read_text()


@pytest.mark.parametrize(("interval_ms", "is_written"), [(1000, True), (60_000, False)])
def test_log_starts_are_written_as_often_as_is_asked(tmp_path, interval_ms, is_written):
    """At least: with the high watermarks they are written every five seconds."""
    world = World(tmp_path / "data", log_flush_start_offset_checkpoint_interval_ms=interval_ms)
    log = fill(world, 3)
    log.delete_records(2)
    world.advance(1.5, 3)
    settle(world)
    path = tmp_path / "data" / "log-start-offset-checkpoint"
    assert (path.exists() and "t 0 2\n" in path.read_text()) == is_written
    world.advance(6)
    settle(world)
    assert "t 0 2\n" in path.read_text()


def test_new_leader_epochs_are_written_a_few_per_turn(world, monkeypatch):
    """After an unclean start every log has a new one: the files of all of them at once would hold the loop. A topic
    that is deleted meanwhile is passed over."""
    world.create_topic("many", 100)
    world.create_topic("gone", 20)
    written = []
    write = LogFiles.write_epochs
    monkeypatch.setattr(LogFiles, "write_epochs", lambda log: (log.epochs.changed and written.append(log), write(log)))
    logs = [world.broker.partitions.get("many", index) for index in range(100)]
    for log in [*logs, *(world.broker.partitions.get("gone", index) for index in range(20))]:
        log.epochs.changed = True
    job = housekeeping._HIGH_WATERMARK
    world.broker.housekeeping.fired(job)
    assert len(written) == housekeeping._EPOCH_FILES_PER_TURN
    request = messages.DeleteTopicsRequest
    world.connect().ask(request(topics=[request.DeleteTopicState(name="gone")], timeout_ms=1000), 6)
    turns = 1
    while world.broker.housekeeping._to_note:
        count = len(written)
        world.turn()
        assert len(written) - count <= housekeeping._EPOCH_FILES_PER_TURN
        turns += 1
    assert set(logs) <= set(written) and turns >= 120 // housekeeping._EPOCH_FILES_PER_TURN
    assert not any(log.epochs.changed for log in logs)


def restarted(world, tmp_path):
    """A broker that stopped and started on the same directory; nobody opens anything."""
    world.stop()
    again = World(tmp_path / "data", clock=world.clock)
    assert not any(log.is_loaded for log in again.broker.partitions)
    return again


def test_old_segments_of_a_log_that_nobody_opens_go_too(world, tmp_path, monkeypatch):
    """After a restart, and once more: when it has become of age. Then it costs nothing again."""
    fill(world)
    world.create_topic("empty", 1, retention_ms=1)
    world.create_topic("kept", 1, retention_ms=-1)
    assert world.connect().ask(produce("kept", {0: batch(b"x")}), 8).responses[0].partition_responses[0].error_code == 0
    world = restarted(world, tmp_path)
    log, kept, empty = (world.broker.partitions.get(name, 0) for name in ("t", "kept", "empty"))
    opened = []
    opens = LogFiles.load
    monkeypatch.setattr(LogFiles, "load", lambda each, *found: (opened.append(each.topic), opens(each, *found)))
    world.advance(31)
    assert sorted(opened) == ["kept", "t"] and not log.is_loaded
    world.advance(301)
    assert (len(log.segments), log.log_start_offset) == (1, log.end_offset) and log.end_offset > 0
    world.advance(301)
    world.advance(301)
    assert sorted(opened) == ["kept", "t", "t"], "no more often: the first look tells when the next is due"
    assert not kept.is_loaded and not empty.is_loaded
    assert (kept.end_offset, kept.log_start_offset, kept.recovery_point) == (1, 0, 1)


@pytest.mark.parametrize("enable", ["true", "false"])
def test_a_log_of_both_policies_that_nobody_opens_loses_its_only_segment_too(world, tmp_path, monkeypatch, enable):
    """The cleaner has no segment to open it for. Without the cleaner nothing of it goes, and what is compacted alone is
    left alone."""
    for name, policy in (("both", "compact,delete"), ("compacted", "compact")):
        world.create_topic(name, 1, cleanup_policy=policy, retention_ms=60_000)
        records = build_batch([(b"k", b"v")], timestamp_ms=world.runtime.now_ms)
        assert (
            world.connect().ask(produce(name, {0: bytes(records)}), 8).responses[0].partition_responses[0].error_code
            == 0
        )
    world.stop()
    world = World(tmp_path / "data", clock=world.clock, log_cleaner_enable=enable)
    both, compacted = (world.broker.partitions.get(name, 0) for name in ("both", "compacted"))
    opened = []
    opens = LogFiles.load
    monkeypatch.setattr(LogFiles, "load", lambda each, *found: (opened.append(each.topic), opens(each, *found)))
    world.advance(31)
    assert not both.is_loaded and opened == (["both"] if enable == "true" else [])
    world.advance(301)
    assert opened == (["both", "both"] if enable == "true" else [])
    world.advance(601)
    assert not compacted.is_loaded and opened.count("both") == (2 if enable == "true" else 0)
    assert (both.log_start_offset, both.end_offset) == (1 if enable == "true" else 0, 1)


def test_logs_that_nobody_opened_are_looked_at_a_few_per_turn(world, tmp_path):
    """Thousands at once would hold the loop. Changed settings are looked at anew."""
    world.create_topic("many", 100)
    for index in range(100):
        assert (
            world.connect().ask(produce("many", {index: batch(b"x")}), 8).responses[0].partition_responses[0].error_code
            == 0
        )
    world = restarted(world, tmp_path)
    logs = [world.broker.partitions.get("many", index) for index in range(100)]
    world.broker.housekeeping.fired(housekeeping._RETENTION)
    seen = [sum(log.due_ms > 0 for log in logs)]
    while world.broker.housekeeping._unopened:
        world.turn()
        seen.append(sum(log.due_ms > 0 for log in logs))
    assert seen[-1] == 100 and all(
        0 <= later - earlier <= housekeeping._UNOPENED_PER_TURN
        for earlier, later in zip([0, *seen], seen, strict=False)
    )
    assert not any(log.is_loaded for log in logs)
    settings = logs[0].settings
    logs[0].update_settings(settings)
    assert logs[0].due_ms == 0
