"""Answers whose records are written beside the loop: when they leave, and what they say if the write fails."""

import _thread
import threading
from types import SimpleNamespace

import pytest

from pykafkad import errors
from pykafkad.server import log_writer
from pykafkad.server.log_writer import LogWriter
from pykafkad.testing.waits import until
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.simulation.world import World

LARGE = b"x" * 700_000


@pytest.fixture
def world(tmp_path):
    """A broker that writes large batches when the test says so."""
    world = World(tmp_path)
    world.create_topic("t", 3)
    world.ends_writes = False
    return world


def end_writes(world, count=1 << 30):
    """Let writes end; then a turn."""
    world.writes.work(count)
    world.turn()


def codes(peer):
    """The error codes of all produce answers so far, a list each."""
    return [[row.error_code for row in answer.responses[0].partition_responses] for answer in peer.answers]


def high_watermark(world, index=0):
    return world.connect().ask(fetch("t", {index: 0}), 11).responses[0].partitions[0].high_watermark


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", [8, 13])
def test_an_answer_leaves_when_its_write_has_ended(world, acks, version):
    topic_id = world.broker.image.topics["t"].id if version >= 13 else bytes(16)
    peer = world.connect()
    peer.send(produce("t", {0: batch(LARGE)}, acks=acks, topic_id=topic_id), version)
    world.turn()
    assert peer.answers == [] and high_watermark(world) == 0
    end_writes(world)
    assert codes(peer) == [[0]] and high_watermark(world) == 1
    assert world.broker.commits.is_idle and not peer.connection.held


def test_acks_0_is_written_all_the_same(world):
    peer = world.connect()
    peer.send(produce("t", {0: batch(LARGE)}, acks=0), 8)
    world.turn()
    assert high_watermark(world) == 0
    end_writes(world)
    assert high_watermark(world) == 1 and world.broker.commits.is_idle


def test_answers_stay_in_order_and_others_do_not_wait(world):
    """A small batch behind a large one of the same log waits with it; one of another log on another connection does
    not."""
    first, second, third = (world.connect() for _ in range(3))
    first.send(produce("t", {0: batch(LARGE)}), 8)
    first.send(produce("t", {1: batch(b"small")}), 8)
    second.send(produce("t", {0: batch(b"behind")}), 8)
    third.send(produce("t", {1: batch(b"elsewhere")}), 8)
    world.turn()
    assert (codes(first), codes(second), codes(third)) == ([], [], [[0]])
    end_writes(world)
    assert (codes(first), codes(second)) == ([[0], [0]], [[0]])
    assert [answer.responses[0].partition_responses[0].base_offset for answer in second.answers] == [1]


def test_a_delayed_fetch_gets_what_was_written(world):
    reader, writer = world.connect(), world.connect()
    reader.send(fetch("t", {0: 0}, max_wait_ms=10_000, min_bytes=1), 11)
    world.turn()
    writer.send(produce("t", {0: batch(LARGE)}), 8)
    world.turn()
    assert reader.answers == []
    end_writes(world)
    assert len(reader.answers) == 1 and reader.answers[0].responses[0].partitions[0].high_watermark == 1


def fail_writes(world, monkeypatch, index=0):
    """The partition's writes of several pieces fail, as those of large batches are."""
    log = world.broker.partitions.get("t", index)
    assert log.end_offset == 0

    def broken(self, pieces, position):
        raise errors.StorageFailure("write", self.path, OSError(28, "No space left on device"))

    monkeypatch.setattr(type(log._active.file), "pwritev", broken)
    return log


def test_answers_to_what_could_not_be_written_say_so(world, monkeypatch, capfd):
    peer, other = world.connect(), world.connect()
    log = fail_writes(world, monkeypatch)
    peer.send(produce("t", {0: batch(LARGE)}), 8)
    peer.send(produce("t", {0: batch(LARGE)}), 8)
    other.send(produce("t", {0: batch(b"behind"), 1: batch(b"elsewhere")}), 8)
    world.turn()
    assert peer.answers == other.answers == []
    end_writes(world)
    assert codes(peer) == [[errors.KAFKA_STORAGE_ERROR]] * 2
    assert codes(other) == [[errors.KAFKA_STORAGE_ERROR, 0]]
    assert log.offline is not None and world.broker.commits.is_idle
    logged = capfd.readouterr().err
    assert logged.count("partition-offline topic=t partition=0") == 1 and "No space left" in logged


def test_a_topic_deleted_while_it_is_written(world):
    """The deletion waits for the write; the answer says that the topic is gone."""
    peer, other = world.connect(), world.connect()
    peer.send(produce("t", {0: batch(LARGE)}), 8)
    world.turn()
    other.ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    world.turn()
    assert world.broker.log_writer.bytes_under_way == 0
    assert codes(peer) == [[errors.UNKNOWN_TOPIC_OR_PARTITION]] and world.broker.commits.is_idle


def test_a_peer_that_left_while_it_waited_is_forgotten(world):
    peer = world.connect()
    peer.send(produce("t", {0: batch(LARGE)}), 8)
    peer.end()
    end_writes(world)
    assert peer.answers == [] and world.broker.commits.is_idle and high_watermark(world) == 1


def test_a_stop_finishes_the_writes_and_answers(world):
    peer = world.connect()
    peer.send(produce("t", {0: batch(LARGE)}), 8)
    world.turn()
    world.stop()
    peer.take_what_came()
    assert codes(peer) == [[0]]


def test_a_synced_topic_is_synced_after_the_write(tmp_path):
    world = World(tmp_path, pykafkad_group_commit="true")
    world.create_topic("t", 1)
    world.ends_writes = False
    peer = world.connect()
    peer.send(produce("t", {0: batch(LARGE)}), 8)
    world.turn()
    for _ in range(3):
        world.runtime.offload.close()
        world.turn()
    assert peer.answers == []
    end_writes(world)
    assert peer.answers == [], "written, and not synced"
    world.runtime.offload.close()
    world.turn()
    world.turn()
    assert codes(peer) == [[0]] and world.broker.partitions.get("t", 0).recovery_point == 1


def test_many_large_batches_through_the_thread_are_in_order(tmp_path):
    """With the thread itself, and a bound that is reached: everything arrives, in order."""
    world = World(tmp_path)
    world.create_topic("t", 2)
    broker, runtime = world.broker, world.runtime
    woken = threading.Event()
    broker.log_writer = LogWriter(
        SimpleNamespace(wake=woken.set),
        broker.commits.mark,
        broker.log_writer.frame_buffers,
        from_bytes=1000,
        limit_bytes=100_000,
    )
    for index in range(2):
        broker.partitions.get("t", index).writer = broker.log_writer
    peers = [world.connect() for _ in range(2)]
    for number in range(60):
        for index, peer in enumerate(peers):
            value = bytes([number]) * (100 if number % 7 == 3 else 90_000)
            peer.send(produce("t", {index: batch(value)}), 8)
        world.turn()
        # The thread writes the first ones, however late it begins; above the bound the loop may write itself.
        assert woken.wait(60)
        assert broker.log_writer.bytes_under_way <= 400_000
    broker.log_writer.finish_all()
    world.turn()
    assert runtime.metrics.unexpected_errors == 0
    for index, peer in enumerate(peers):
        assert codes(peer) == [[0]] * 60
        assert [answer.responses[0].partition_responses[0].base_offset for answer in peer.answers] == list(range(60))
        assert broker.partitions.get("t", index).written_end_offset == 60
    broker.log_writer.close()


@pytest.fixture
def threaded(world):
    """The same with the threads themselves."""
    world.broker.log_writer.threads_left = log_writer.MOST_THREADS
    yield world
    world.broker.log_writer.close()


def test_two_logs_are_written_at_the_same_time_and_one_in_order(threaded, monkeypatch):
    """Neither log's first write ends before the other's has begun."""
    file = type(threaded.broker.partitions.get("t", 0)._active.file)
    pwritev, both, at_work, overlaps = file.pwritev, threading.Barrier(2, timeout=60), set(), []

    def meet_and_write(self, pieces, position):
        if self.path in at_work:
            overlaps.append(self.path)
        at_work.add(self.path)
        if not position:
            both.wait()
        pwritev(self, pieces, position)
        at_work.remove(self.path)

    monkeypatch.setattr(file, "pwritev", meet_and_write)
    peers = [threaded.connect() for _ in range(6)]
    for number, peer in enumerate(peers):
        peer.send(produce("t", {number % 2: batch(LARGE)}), 8)
    threaded.broker.log_writer.finish_all()
    threaded.turn()
    assert [codes(peer) for peer in peers] == [[[0]]] * 6 and not overlaps
    assert [threaded.broker.partitions.get("t", index).written_end_offset for index in range(2)] == [3, 3]


def test_there_is_a_bound_to_the_threads_and_a_stop_ends_them(threaded, monkeypatch):
    writer, before = threaded.broker.log_writer, _thread._count()
    file = type(threaded.broker.partitions.get("t", 0)._active.file)
    pwritev, device = file.pwritev, threading.Event()

    def wait_and_write(self, pieces, position):
        assert device.wait(60)
        pwritev(self, pieces, position)

    monkeypatch.setattr(file, "pwritev", wait_and_write)
    for index in (0, 1, 2, 0, 1, 2):
        threaded.connect().send(produce("t", {index: batch(LARGE)}), 8)
    assert _thread._count() - before <= log_writer.MOST_THREADS == 2 and not writer.threads_left
    device.set()
    writer.finish_all()
    writer.close()
    until(_thread._count, lambda count: count <= before, "end of the threads", 60)


def test_without_a_thread_the_loop_writes(threaded, monkeypatch):
    def none(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(log_writer._thread, "start_new_thread", none)
    peer = threaded.connect()
    for _ in range(2):
        peer.send(produce("t", {0: batch(LARGE)}), 8)
        threaded.turn()
    assert codes(peer) == [[0]] * 2 and not threaded.broker.log_writer.bytes_under_way


def test_above_the_bound_a_connection_is_muted_and_nobody_else_waits(world):
    """The bound is a bit more than one batch here."""
    world.broker.log_writer.limit_bytes = 1_000_000
    large, other, small = (world.connect() for _ in range(3))
    for _ in range(4):
        large.put_on_the_wire(large.encode(produce("t", {0: batch(LARGE)}), 8))
    for _ in range(20):
        world.turn()
    log = world.broker.partitions.get("t", 0)
    assert log.end_offset == 2 and large.connection.muted and not large.answers
    assert "not written yet" in repr(large.connection)
    other.send(produce("t", {1: batch(LARGE)}), 8)
    assert other.connection.muted, "it added to what is under way"
    for _ in range(3):
        small.send(produce("t", {2: batch(b"x" * 90_000)}), 8)
    assert codes(small) == [[0]] * 3 and not small.connection.muted and high_watermark(world, 2) == 3
    assert world.broker.log_writer.bytes_under_way < 3 * 701_000
    end_writes(world, 2)
    assert codes(large) == [[0]] * 2 and not other.connection.muted
    for _ in range(5):
        end_writes(world)
    assert codes(large) == [[0]] * 4 and codes(other) == [[0]] and not large.connection.muted


def test_batches_from_half_a_megabyte_on_are_written_beside_the_loop(world):
    """Smaller ones are not: their write costs less than the hand-over."""
    peer, log = world.connect(), world.broker.partitions.get("t", 0)
    peer.send(produce("t", {0: batch(b"x" * (log_writer.FROM_BYTES - 200))}), 8)
    assert codes(peer) == [[0]] and not log.writes_under_way
    peer.send(produce("t", {0: batch(b"x" * log_writer.FROM_BYTES)}), 8)
    assert codes(peer) == [[0]] and len(log.writes_under_way) == 1
    end_writes(world)
    assert codes(peer) == [[0]] * 2 and not log.writes_under_way


def test_smaller_batches_are_written_beside_the_loop_while_writes_are_slow(world):
    """One of some is still written by the loop, to tell when writes are quick again."""
    peer, log, writer = world.connect(), world.broker.partitions.get("t", 0), world.broker.log_writer

    def is_beside(size=100_000):
        peer.answers.clear()
        peer.send(produce("t", {0: batch(b"x" * size)}), 8)
        found = bool(log.writes_under_way)
        end_writes(world)
        assert codes(peer) == [[0]]
        return found

    assert not is_beside()
    for _ in range(100):
        writer.observe(1_000_000, 0.0007)
    assert not is_beside()
    for _ in range(100):
        writer.observe(1_000_000, 0.0015)
    found = [is_beside() for _ in range(2 * log_writer.PROBE_EVERY)]
    # The clock of this world stands, so what the loop writes takes no time.
    assert found.count(False) == 2 and not is_beside(50_000) and is_beside(600_000)
    for _ in range(100):
        writer.observe(1_000_000, 0.0007)
    assert is_beside()
    for _ in range(100):
        writer.observe(1_000_000, 0.0003)
    assert not is_beside()


def test_the_loop_tells_how_long_its_writes_take(world, monkeypatch):
    log, told, now_ms = world.broker.partitions.get("t", 0), [], world.runtime.clock.now_ms()
    monkeypatch.setattr(log.writer, "observe", lambda size_bytes, seconds: told.append((size_bytes, seconds)))
    times = iter((5.0, 5.25))
    monkeypatch.setattr(type(world.runtime.clock), "now", lambda clock: next(times))
    log.append_batch(memoryview(bytearray(batch(b"x" * 20_000))), now_ms, 8)
    log.append_batch(memoryview(bytearray(batch(b"small"))), now_ms, 8)
    log.append_batch(memoryview(bytearray(batch(b"x" * 40_000))), now_ms, 8)
    ((size_bytes, seconds),) = told
    assert seconds == 0.25 and 40_100 < size_bytes < 40_300


def test_a_write_that_waits_for_the_device_holds_up_nobody_else(world, monkeypatch):
    """With the thread itself. The device takes nothing until the small batches are answered."""
    world.broker.log_writer.threads_left = log_writer.MOST_THREADS
    file = type(world.broker.partitions.get("t", 0)._active.file)
    pwritev, device = file.pwritev, threading.Event()

    def wait_and_write(self, pieces, position):
        assert device.wait(30)
        pwritev(self, pieces, position)

    monkeypatch.setattr(file, "pwritev", wait_and_write)
    large, small = world.connect(), world.connect()
    large.send(produce("t", {0: batch(LARGE)}), 8)
    for _ in range(50):
        small.send(produce("t", {1: batch(b"small")}), 8)
    assert codes(small) == [[0]] * 50 and high_watermark(world, 1) == 50
    assert codes(large) == [] and not large.connection.muted
    device.set()
    world.broker.log_writer.finish_all()
    world.turn()
    assert codes(large) == [[0]]
    world.broker.log_writer.close()


def test_a_muted_connection_may_end(world):
    world.broker.log_writer.limit_bytes = 500_000
    peer = world.connect()
    peer.send(produce("t", {0: batch(LARGE)}, acks=0), 8)
    assert peer.connection.muted
    peer.end()
    end_writes(world)
    assert peer.connection.close_reason and high_watermark(world) == 1


def test_the_frame_is_written_from_its_own_buffer_which_is_used_again_afterwards_and_not_before(world):
    peers = [world.connect() for _ in range(3)]
    buffers = world.broker.socket_server.frame_buffers
    for number, peer in enumerate(peers):
        peer.send(produce("t", {0: batch(bytes([number]) * 700_000)}), 8)
        world.turn()
    log = world.broker.partitions.get("t", 0)
    lent = [write.frame for write in log.writes_under_way]
    assert len({id(each) for each in lent}) == 3 and None not in lent
    assert not [each for each in buffers if any(each is one for one in lent)]
    end_writes(world)
    assert {id(each) for each in lent} <= {id(each) for each in buffers} and buffers.served is None
    data = log.read(0, 1 << 22, end_offset=3).pread()
    position = 0
    for number in range(3):
        size = int.from_bytes(data[position + 8 : position + 12], "big") + 12
        assert bytes([number]) * 600_000 in data[position : position + size]
        position += size


def test_a_batch_above_the_second_bound_is_written_while_its_frame_is_served(world):
    """Its own request waits for it. The frame's buffer cannot be used again yet, and is not."""
    world.broker.log_writer.limit_bytes = 100_000
    peer = world.connect()
    peer.send(produce("t", {0: batch(LARGE)}), 8)
    assert world.broker.log_writer.bytes_under_way == 0 and not world.broker.socket_server.frame_buffers
    assert codes(peer) == [[0]] and high_watermark(world) == 1 and not peer.connection.muted


def test_two_large_batches_of_one_frame_are_both_written(world):
    """The frame's buffer goes with the first; the second is copied."""
    peer = world.connect()
    peer.send(produce("t", {0: batch(LARGE), 1: batch(LARGE)}), 8)
    world.turn()
    writes = [world.broker.partitions.get("t", index).writes_under_way[0] for index in (0, 1)]
    assert writes[0].frame is not writes[1].frame
    end_writes(world)
    assert codes(peer) == [[0, 0]]
    assert all(high_watermark(world, index) == 1 for index in (0, 1))
