"""Answers that leave only after a sync: who waits, what a sync covers, and what becomes of answers whose sync fails."""

import pytest

from pykafkad import errors
from pykafkad.errors import StorageFailure
from pykafkad.server.commits import Commits
from pykafkad.server.connection import OUTBOX_LIMIT_BYTES
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.server.test_incremental_tasks import TickingClock
from tests.simulation.world import NOTHING, World


class ManualOffload:
    """Jobs run when the test says so, on its own thread."""

    def __init__(self):
        self.jobs = []
        self.results = []

    def submit(self, job, then):
        self.jobs.append((job, then))

    def finished(self):
        while self.results:
            then, result = self.results.pop(0)
            then(result)

    def work(self):
        """Run what was submitted; how many jobs that were."""
        jobs, self.jobs = self.jobs, []
        self.results += [(then, job()) for job, then in jobs]
        return len(jobs)

    def close(self):
        self.work()
        self.finished()


def make(tmp_path, **settings):
    world = World(tmp_path, **settings)
    world.create_topic("t", 3)
    world.runtime.offload = ManualOffload()
    return world


@pytest.fixture
def world(tmp_path):
    return make(tmp_path, pykafkad_group_commit="true")


def codes(peer):
    """The error codes of all produce answers so far, a list each."""
    return [[row.error_code for row in answer.responses[0].partition_responses] for answer in peer.answers]


def high_watermark(world, index=0):
    return world.connect().ask(fetch("t", {index: 0}), 11).responses[0].partitions[0].high_watermark


@pytest.mark.parametrize("fast", [True, False])
def test_a_client_that_sends_nothing_more_gets_the_answers_that_are_held(world, fast):
    """It is let go when they have left."""
    peer = world.connect()
    partitions = {0: batch(b"a")} if fast else {0: batch(b"a"), 1: batch(b"b")}
    peer.put_on_the_wire(peer.encode(produce("t", partitions), 8))
    peer.socket.shutdown(1)
    world.turn()
    assert peer.answers == [] and peer.closed is None
    world.runtime.offload.work()
    world.turn()
    assert codes(peer) == [[0] * len(partitions)]
    world.turn()
    assert peer.closed == "closed by the peer"


@pytest.mark.parametrize("flat", [True, False])
def test_an_answer_waits_for_its_sync_and_readers_do_not_see_the_records_before(world, flat):
    peer = world.connect()
    partitions = {0: batch(b"a")} if flat else {0: batch(b"a"), 1: batch(b"b")}
    assert peer.ask(produce("t", partitions), 8) is NOTHING
    assert high_watermark(world) == 0
    assert world.runtime.offload.work() == 1
    assert peer.answers == []
    world.turn()
    assert codes(peer) == [[0] * len(partitions)]
    assert high_watermark(world) == 1
    log = world.broker.partitions.get("t", 0)
    assert log.recovery_point == log.end_offset == 1


def test_requests_that_come_during_a_sync_share_the_next(world):
    peers = [world.connect() for _ in range(10)]
    peers[0].send(produce("t", {0: batch(b"first")}), 8)
    for index, peer in enumerate(peers[1:]):
        peer.send(produce("t", {index % 3: batch(b"later")}), 8)
    assert world.runtime.offload.work() == 1
    world.turn()
    assert [len(peer.answers) for peer in peers] == [1] + [0] * 9
    assert world.runtime.offload.work() == 1, "nine requests, three logs, one round"
    world.turn()
    assert [len(peer.answers) for peer in peers] == [1] * 10


def test_answers_of_one_connection_stay_in_order(world):
    peer = world.connect()
    peer.send(produce("t", {0: batch(b"1")}), 8)
    peer.send(produce("t", {0: batch(b"2")}), 8)
    peer.send(messages.ApiVersionsRequest(), 0)
    assert peer.answers == []
    for _ in range(2):
        world.runtime.offload.work()
        world.turn()
    assert [type(answer).__name__ for answer in peer.answers] == [
        "ProduceResponse",
        "ProduceResponse",
        "ApiVersionsResponse",
    ]
    assert [answer.responses[0].partition_responses[0].base_offset for answer in peer.answers[:2]] == [0, 1]


@pytest.mark.parametrize("flat", [True, False])
def test_a_failed_sync_is_told_and_never_counts_as_done(world, flat, monkeypatch):
    good, bad = world.broker.partitions.get("t", 0), world.broker.partitions.get("t", 1)
    first, second = world.connect(), world.connect()
    if flat:
        first.send(produce("t", {0: batch(b"x")}), 8)
        world.runtime.offload.work()
        world.turn()
        second.send(produce("t", {1: batch(b"x")}), 8)
    else:
        second.send(produce("t", {0: batch(b"x"), 1: batch(b"x")}), 8)

    def fail():
        raise StorageFailure("sync", bad.directory, "the device says no")

    class Broken:
        def __init__(self, file):
            self._file = file

        def __getattr__(self, name):
            return fail if name == "sync" else getattr(self._file, name)

    monkeypatch.setattr(bad.segments[-1], "file", Broken(bad.segments[-1].file))
    world.runtime.offload.work()
    world.turn()
    assert codes(second) == [[errors.KAFKA_STORAGE_ERROR]] if flat else [[0, errors.KAFKA_STORAGE_ERROR]]
    assert (good.high_watermark, bad.high_watermark, bad.recovery_point) == (1, 0, 0)
    assert bad.offline is not None
    assert (
        world.connect().ask(produce("t", {1: batch(b"y")}), 8).responses[0].partition_responses[0].error_code
        == errors.KAFKA_STORAGE_ERROR
    )


def commit_offset(peer, group="g"):
    topic, partition = (
        messages.OffsetCommitRequest.OffsetCommitRequestTopic,
        messages.OffsetCommitRequest.OffsetCommitRequestPartition,
    )
    request = messages.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[topic(name="t", partitions=[partition(partition_index=0, committed_offset=5)])],
    )
    return peer.ask(request, 8)


def test_a_failed_sync_of_names_is_told_too(world, monkeypatch):
    """Without its name nothing of a new segment would be found again."""
    synced, failing = [], []

    def sync_directory(disk, path):
        synced.append(path)
        if failing:
            raise StorageFailure("sync", path, "the device says no")

    monkeypatch.setattr("pykafkad.disk.Disk.sync_directory", sync_directory)
    log = world.broker.partitions.get("t", 0)
    peer = world.connect()
    for _ in range(2):
        peer.send(produce("t", {0: batch(b"x")}), 8)
        world.runtime.offload.work()
        world.turn()
    assert codes(peer) == [[0], [0]] and synced.count(log.directory) == 1
    log.roll(world.runtime.now_ms)
    failing.append(True)
    peer.send(produce("t", {0: batch(b"x")}), 8)
    world.runtime.offload.work()
    world.turn()
    assert codes(peer)[2:] == [[errors.KAFKA_STORAGE_ERROR]]
    assert (log.recovery_point, high_watermark(world)) == (1, 2) and log.offline is not None


def test_a_committed_offset_is_synced_before_it_is_acknowledged(world):
    ask_for_coordinator(world)
    peer = world.connect()
    assert commit_offset(peer) is NOTHING
    assert world.runtime.offload.work() == 1
    world.turn()
    assert peer.answers[0].topics[0].partitions[0].error_code == 0


def test_a_committed_offset_is_not_told_before_it_is_synced(world):
    """Who reads it may act on it: it has to be there after a power loss."""
    ask_for_coordinator(world)
    assert commit_offset(world.connect()) is NOTHING
    reader = world.connect()
    asked = messages.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    assert reader.ask(messages.OffsetFetchRequest(groups=[asked]), 8) is NOTHING
    world.runtime.offload.work()
    world.turn()
    assert reader.answers[0].groups[0].topics[0].partitions[0].committed_offset == 5


def test_an_offset_committed_while_others_are_looked_up_is_not_told_before_it_is_synced(tmp_path):
    """A question for thousands takes several turns, and its last ones tell of what came after its first."""
    world = make(tmp_path, clock=TickingClock(), pykafkad_group_commit="true")
    ask_for_coordinator(world)
    reader = world.connect()
    topic, group = (
        messages.OffsetFetchRequest.OffsetFetchRequestTopics,
        messages.OffsetFetchRequest.OffsetFetchRequestGroup,
    )
    names = [*(f"unknown-{number}" for number in range(500)), "t"]
    asked = group(group_id="g", topics=[topic(name=name, partition_indexes=[0]) for name in names])
    assert reader.ask(messages.OffsetFetchRequest(groups=[asked]), 8) is NOTHING
    assert world.runtime.tasks
    assert commit_offset(world.connect()) is NOTHING
    while world.runtime.tasks:
        world.turn()
    assert not reader.answers
    world.runtime.offload.work()
    world.turn()
    assert reader.answers[0].groups[0].topics[-1].partitions[0].committed_offset == 5


def test_an_offset_commit_whose_sync_fails_is_not_acknowledged(world, monkeypatch):
    ask_for_coordinator(world)
    peer = world.connect()
    assert commit_offset(peer) is NOTHING
    ((job, then),) = world.runtime.offload.jobs
    world.runtime.offload.jobs.clear()
    results = [(each, StorageFailure("sync", "there", "no")) for each, _ in job()]
    world.runtime.offload.results.append((then, results))
    world.turn()
    assert peer.answers == []
    assert "sync" in peer.closed


def ask_for_coordinator(world):
    """Makes `__consumer_offsets`."""
    world.connect().ask(messages.FindCoordinatorRequest(key="g", key_type=0), 2)
    for _ in range(20):
        world.runtime.offload.work()
        world.turn()
    assert world.broker.partitions.get("__consumer_offsets", 0) is not None


def test_a_segment_sealed_during_its_sync_is_synced_again_with_its_indexes(world):
    """The job has not seen the index files that the roll wrote: recovery must not begin behind them."""
    log = world.broker.partitions.get("t", 0)
    peer = world.connect()
    peer.send(produce("t", {0: batch(b"x")}), 8)
    log.roll(world.clock.now_ms())
    world.runtime.offload.work()
    world.turn()
    assert codes(peer) == [[0]]
    assert (log.high_watermark, log.recovery_point) == (1, 0)
    peer.send(produce("t", {0: batch(b"y")}), 8)
    world.runtime.offload.work()
    world.turn()
    assert (log.high_watermark, log.recovery_point) == (2, 2)


def test_what_waits_on_one_connection_is_bounded(world):
    """A slow sync and a peer that goes on sending: with a full outbox nothing of it is served, and everything in the
    end."""
    peer = world.connect()
    topics = {"t": 3}
    sent = 0
    while not peer.connection.muted:
        peer.send(produce("t", {0: batch(b"x")}), 8)
        sent += 1
        assert sent < 3000, topics
    assert peer.connection.outbox_bytes > OUTBOX_LIMIT_BYTES
    peer.send(produce("t", {0: batch(b"behind")}), 8)
    assert world.broker.partitions.get("t", 0).end_offset == sent
    for _ in range(4):
        world.runtime.offload.work()
        world.turn()
    assert codes(peer) == [[0]] * (sent + 1)


def test_a_peer_that_left_while_it_waited_is_forgotten(world):
    peer = world.connect()
    peer.send(produce("t", {0: batch(b"x")}), 8)
    peer.end()
    world.runtime.offload.work()
    world.turn()
    assert peer.answers == []
    assert world.broker.commits.is_idle
    assert high_watermark(world) == 1


def test_a_topic_deleted_while_its_sync_runs_acknowledges_nothing(world):
    peer = world.connect()
    peer.send(produce("t", {0: batch(b"x")}), 8)
    other = world.connect()
    answer = other.ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    assert answer.responses[0].error_code == 0
    world.runtime.offload.work()
    world.turn()
    assert codes(peer) == [[errors.UNKNOWN_TOPIC_OR_PARTITION]]


def test_a_bug_after_a_sync_acknowledges_nothing_and_holds_nobody_up(world, monkeypatch):
    """Who waited must ask again; the next round is as any other, and a stop ends."""
    waiting, other = world.connect(), world.connect()
    waiting.send(produce("t", {0: batch(b"x")}), 8)
    with monkeypatch.context() as patched:
        patched.setattr(Commits, "_committed", lambda commits, log, end: 1 // 0)
        world.runtime.offload.work()
        with pytest.raises(ZeroDivisionError):
            world.turn()
    world.turn()
    assert "unexpected error" in waiting.closed and not waiting.answers and world.broker.commits.is_idle
    other.send(produce("t", {0: batch(b"y")}), 8)
    world.runtime.offload.work()
    world.turn()
    assert codes(other) == [[0]]
    world.stop()
    assert world.broker.commits.is_idle


def test_a_stop_finishes_the_syncs_and_answers(world):
    first, second = world.connect(), world.connect()
    first.send(produce("t", {0: batch(b"x")}), 8)
    second.send(produce("t", {0: batch(b"y")}), 8)
    drained = []
    world.runtime.reactor.drain = lambda seconds_left: drained.append(
        [len(peer.connection.outbox) for peer in (first, second)]
    )
    world.stop()
    assert world.broker.commits.is_idle
    assert drained == [[1, 1]]


def test_without_the_setting_nothing_waits(tmp_path):
    world = make(tmp_path)
    peer = world.connect()
    peer.send(produce("t", {0: batch(b"x")}), 8)
    assert codes(peer) == [[0]]
    assert world.runtime.offload.jobs == []


def test_flush_messages_holds_the_answer_that_reaches_it(tmp_path):
    """Kafka syncs inside the append that crosses `flush.messages`; here the loop goes on meanwhile."""
    world = make(tmp_path)
    world.create_topic("f", 1, flush_messages=3)
    peer = world.connect()
    for _ in range(2):
        peer.send(produce("f", {0: batch(b"x")}), 8)
    assert codes(peer) == [[0], [0]]
    assert peer.ask(produce("f", {0: batch(b"x")}), 8) is NOTHING
    assert world.runtime.offload.work() == 1
    world.turn()
    assert codes(peer) == [[0]] * 3
    assert world.broker.partitions.get("f", 0).recovery_point == 3


def test_what_comes_while_flush_messages_is_synced_waits_for_the_next_sync(tmp_path):
    """Otherwise it would carry the high watermark past records whose sync may still fail: also when the setting would
    ask for no sync any more."""
    world = make(tmp_path)
    world.create_topic("f", 1, flush_messages=2)
    first, second = world.connect(), world.connect()
    assert first.ask(produce("f", {0: batch(b"x", b"y")}), 8) is NOTHING
    request = messages.IncrementalAlterConfigsRequest
    rows = [request.AlterableConfig(name="flush.messages", config_operation=0, value="1000")]
    resource = request.AlterConfigsResource(resource_type=2, resource_name="f", configs=rows)
    assert world.connect().ask(request(resources=[resource]), 1).responses[0].error_code == 0
    assert second.ask(produce("f", {0: batch(b"z")}), 8) is NOTHING
    log = world.broker.partitions.get("f", 0)
    assert (log.end_offset, log.high_watermark) == (3, 0)
    assert world.runtime.offload.work() == 1
    world.turn()
    assert (codes(first), codes(second), log.high_watermark) == ([[0]], [], 2)
    assert world.runtime.offload.work() == 1
    world.turn()
    assert (codes(second), log.high_watermark) == ([[0]], 3)
