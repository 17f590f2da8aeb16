"""A snapshot that takes many turns shows one moment, whatever happens meanwhile, and may fail without harm."""

import random

import pytest

from pykafkad import errors
from pykafkad.disk import Disk
from pykafkad.errors import StorageFailure
from pykafkad.log import checkpoints, snapshot_store
from pykafkad.log.partition_log import PartitionLog, UnopenedLog
from pykafkad.log.snapshot_writer import SnapshotWriter
from pykafkad.server import data_snapshots
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch
from tests import seeds
from tests.handlers.requests import NOW_MS, batch, produce
from tests.log.numbered import contents, fill, numbers, two_topics
from tests.server.test_compaction import settle
from tests.server.test_data_snapshots import act, listed, request
from tests.simulation.world import NOTHING, World


@pytest.fixture(autouse=True)
def one_log_a_turn(monkeypatch):
    monkeypatch.setattr(data_snapshots, "BUDGET_SECONDS", 0.0)


@pytest.fixture
def world(tmp_path):
    return two_topics(tmp_path / "data")


def begin(world, name="one"):
    """Begin a snapshot; returns the client whose request is answered when it is complete."""
    peer = world.connect()
    assert peer.ask(request("create", name), 1) is NOTHING
    return peer


def finish(world, peer, turns=60):
    """(error code, message) of the response."""
    for _ in range(turns):
        if peer.answers:
            (row,) = peer.answers[0].responses
            assert {type(log) for log in world.broker.partitions} <= {PartitionLog, UnopenedLog}
            return row.error_code, row.error_message
        assert listed(world) == "", "it counts when it is whole"
        world.turn()
    raise AssertionError("the snapshot does not end")


def state(world):
    """Log start, end, and all bytes between, of every partition."""
    found = {}
    for log in list(world.broker.partitions):
        data, offset = b"", log.log_start_offset
        while (piece := log.read(offset, 1 << 20, end_offset=log.end_offset)) is not None:
            view = piece.pread()
            data += view
            position = 0
            while position < len(view):
                size = 12 + int.from_bytes(view[position + 8 : position + 12], "big")
                offset = (
                    int.from_bytes(view[position : position + 8], "big")
                    + int.from_bytes(view[position + 23 : position + 27], "big")
                    + 1
                )
                position += size
        found[log.topic, log.partition] = log.log_start_offset, log.end_offset, data
    return found


def forked(tmp_path, name="fork"):
    snapshot_store.materialize(Disk(), str(tmp_path / "data.snapshots" / "one"), str(tmp_path / name))
    return World(tmp_path / name)


def produce_one(world, chance):
    log = chance.choice([log for log in world.broker.partitions if not log.topic.startswith("__")])
    records = build_batch(
        [(b"%d" % chance.randrange(3), chance.randbytes(chance.choice((10, 30_000))))], timestamp_ms=NOW_MS
    )
    answer = world.connect().ask(produce(log.topic, {log.partition: bytes(records)}), 8)
    assert answer.responses[0].partition_responses[0].error_code == 0


def roll_one(world, chance):
    log = chance.choice([log for log in world.broker.partitions if not log.topic.startswith("__")])
    log.roll(world.clock.now_ms())


def delete_some(world, chance):
    log = chance.choice([log for log in world.broker.partitions if not log.topic.startswith("__")])
    log.delete_records(chance.randint(0, log.end_offset))


def retain(world, chance):
    for log in list(world.broker.partitions):
        log.run_retention(world.clock.now_ms() + chance.choice((0, 10**10)))


def clean(world, chance):
    world.advance(16)
    settle(world)


def create_topic(world, chance):
    world.create_topic(f"new-{chance.random()}", 2)


def delete_topic(world, chance):
    names = [name for name in world.broker.image.topics if not name.startswith("__")]
    if len(names) > 1:
        world.connect().ask(messages.DeleteTopicsRequest(topic_names=[chance.choice(names)], timeout_ms=1000), 5)


@pytest.mark.parametrize("seed", seeds.sampled(range(30), 5))
def test_a_snapshot_shows_the_moment_in_which_it_began(tmp_path, seed):
    """Between its steps there are appends, rolls, retention, compaction, and deletions of records and topics. Some logs
    are not open."""
    chance = random.Random(seed)
    world = World(tmp_path / "data")
    world.create_topic("c", 2, cleanup_policy="compact", min_cleanable_dirty_ratio=0)
    for name in ("t", "u"):
        world.create_topic(name, 2)
    for _ in range(30):
        produce_one(world, chance)
        if chance.random() < 0.3:
            roll_one(world, chance)
    expected = state(world)
    if chance.random() < 0.5:
        # These logs are unopened since the start.
        world.stop()
        world = World(tmp_path / "data", seed=seed)
    peer = begin(world)
    while not peer.answers:
        chance.choice((produce_one, produce_one, roll_one, delete_some, retain, clean, create_topic, delete_topic))(
            world, chance
        )
        world.turn()
    assert finish(world, peer) == (0, None)
    world.runtime.cpu_offload.close()
    before = contents(tmp_path / "data.snapshots")
    fork = forked(tmp_path)
    assert fork.broker.directory.clean and state(fork) == expected
    for _ in range(10):
        produce_one(world, chance)
    retain(world, chance)
    world.stop()
    fork.stop()
    assert contents(tmp_path / "data.snapshots") == before
    assert not [name for name in before if ".partial" in name]
    World(tmp_path / "data").stop()


def test_a_log_is_saved_before_it_changes_and_stays_in_service(world, tmp_path):
    peer = begin(world)
    fill(world, 11, 1, "u")
    assert type(world.broker.partitions.get("u", 1)) is PartitionLog
    assert type(world.broker.partitions.get("u", 0)).__name__ == "Watched"
    assert finish(world, peer) == (0, None)
    assert numbers(forked(tmp_path), "u") == list(range(10))
    assert numbers(world, "u") == [*range(10), 11]


def test_a_failed_link_ends_the_snapshot_and_nothing_else(world, tmp_path, monkeypatch):
    peer = begin(world)

    def link(self, source, target):
        raise StorageFailure("link", source, "no more")

    with monkeypatch.context() as broken:
        broken.setattr(Disk, "link", link)
        fill(world, 10, 4)
    code, words = finish(world, peer)
    assert code == errors.KAFKA_STORAGE_ERROR and "no more" in words
    assert list((tmp_path / "data.snapshots").iterdir()) == []
    fill(world, 14, 4)
    assert numbers(world) == list(range(18))
    assert finish(world, begin(world)) == (0, None)


def test_a_log_that_fails_to_roll_goes_offline_and_ends_the_snapshot(world, tmp_path, monkeypatch):
    peer = begin(world)
    log = world.broker.partitions.get("u", 1)

    def write_snapshot(self):
        raise StorageFailure("write", "x", "no more")

    with monkeypatch.context() as broken:
        broken.setattr(PartitionLog, "write_snapshot", write_snapshot)
        answer = world.connect().ask(produce("u", {1: batch(b"77")}), 8)
    assert answer.responses[0].partition_responses[0].error_code == errors.KAFKA_STORAGE_ERROR
    assert log.end_offset == 5 and log.offline is not None
    assert finish(world, peer)[0] == errors.KAFKA_STORAGE_ERROR
    fill(world, 10, 4)


def test_a_bug_ends_the_snapshot_and_the_next_one_succeeds(world, monkeypatch):
    peer = begin(world)
    with monkeypatch.context() as broken:
        broken.setattr(snapshot_store, "link_partition", lambda *_: 1 // 0)
        assert finish(world, peer)[0] == errors.UNKNOWN_SERVER_ERROR
    assert world.runtime.metrics.unexpected_errors == 1
    assert finish(world, begin(world)) == (0, None)


def test_a_bug_in_the_first_step_ends_the_snapshot_and_the_next_one_succeeds(world, tmp_path, monkeypatch):
    """An unfinished snapshot would block every later action."""
    peer = world.connect()
    with monkeypatch.context() as broken:
        broken.setattr(snapshot_store, "link_partition", lambda *_: 1 // 0)
        (row,) = peer.ask(request("create", "one"), 1).responses
    assert row.error_code == errors.UNKNOWN_SERVER_ERROR and world.runtime.metrics.unexpected_errors == 1
    assert world.broker.data_snapshots.making is None
    assert finish(world, begin(world)) == (0, None)


@pytest.mark.parametrize(
    ("name", "value"), [("delete", "one"), ("create", "two"), ("restore", "one"), ("restore", "one:t")]
)
def test_other_actions_are_refused_while_a_snapshot_is_made(world, name, value):
    peer = begin(world)
    code, words = act(world, name, value)
    assert code == errors.INVALID_REQUEST and "the snapshot one is being made" in words
    assert finish(world, peer) == (0, None)


def test_a_stop_in_the_middle_leaves_no_snapshot_and_the_data_unchanged(world, tmp_path):
    begin(world)
    world.broker.data_snapshots.hand_over()
    world.stop()
    assert list((tmp_path / "data.snapshots").iterdir()) == []
    assert numbers(World(tmp_path / "data")) == list(range(10))


def test_a_partition_that_fails_meanwhile_ends_the_snapshot(world):
    peer = begin(world)
    world.broker.partitions.get("u", 1).fail(StorageFailure("write", "u-1", "gone"))
    code, words = finish(world, peer)
    assert code == errors.KAFKA_STORAGE_ERROR and "out of service" in words


def test_what_is_not_committed_stays_so(world):
    """Of a partition with followers the high watermark of the snapshot's moment is kept, not the end of its log."""
    fill(world, 0, 12)
    directory = world.broker.directory
    key = ("t", 0)
    log = directory.logs[key]
    assert log.end_offset > 3
    log.high_watermark = 3
    for are_replicated, expected in ((True, 3), (False, log.end_offset)):
        name = f"replicated-{are_replicated}"
        writer = SnapshotWriter(directory, name, are_replicated=are_replicated)
        log.high_watermark = log.end_offset
        while writer.step():
            pass
        writer.finish()
        writer.publish()
        log.high_watermark = 3
        path = f"{snapshot_store.path_of(directory.path, name)}/{checkpoints.HIGH_WATERMARK_FILE}"
        assert checkpoints.decode_offsets(directory.disk.read(path))[key] == expected
    log.high_watermark = log.end_offset
