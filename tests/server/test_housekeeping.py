"""What a broker does by the clock."""

import pytest

from pykafkad.errors import StorageFailure
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
    return world.node.partitions.get("t", 0)


def settle(world):
    """Let the offloaded jobs finish and their results arrive."""
    world.node.offload.close()
    world.turn()


def test_rolled_segments_are_synced_in_the_background(world):
    """Kafka syncs a segment some time after it rolled: a restart after a crash reads only what came later."""
    log = fill(world)
    assert (len(log.segments) > 2, log.recovery_point) == (True, 0)
    world.advance(6)
    settle(world)
    assert log.recovery_point == log.segments[-1].base_offset


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
