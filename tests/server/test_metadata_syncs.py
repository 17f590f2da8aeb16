"""The metadata log is synced beside the loop: what waits for that, and what becomes of it when it fails."""

import random

import pytest

from pykafkad import errors
from pykafkad.errors import StorageFailure
from pykafkad.server.offload import Offload, outcome
from pykafkad.wire import messages
from tests.simulation.crash_disk import CrashDisk
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import NOTHING, World


class ManualOffload(Offload):
    """Jobs run when the test says so."""

    def submit(self, job, then):
        self._jobs.append((job, then))

    def work(self):
        """Run what was submitted; how many jobs that were."""
        jobs = list(self._jobs)
        self._jobs.clear()
        self._results.extend((then, outcome(job)) for job, then in jobs)
        return len(jobs)

    def close(self):
        self.work()
        self.finished()


@pytest.fixture
def world():
    made = World("/data", disk=MemoryDisk())
    made.turn()
    made.controller.sync_offload = ManualOffload(made.runtime.reactor.wake, made.runtime.unexpected)
    return made


def creation(name, partitions=1):
    topic = messages.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return messages.CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def sync(world):
    count = world.controller.sync_offload.work()
    world.turn()
    return count


def test_a_topic_is_there_and_its_creation_answered_after_the_sync(world):
    peer = world.connect()
    assert peer.ask(creation("t"), 7) is NOTHING
    assert "t" not in world.broker.image.topics and world.broker.partitions.get("t", 0) is None
    log = world.controller.metadata_log._log
    assert log.recovery_point < log.end_offset and log.high_watermark < log.end_offset
    assert sync(world) == 1
    assert peer.answers[0].topics[0].error_code == 0
    assert world.broker.partitions.get("t", 0) is not None
    assert log.recovery_point == log.high_watermark == log.end_offset


def test_whoever_needs_a_producer_id_gets_it_when_the_block_is_committed(world):
    """Long before the wait ends by itself."""
    peer = world.connect()
    assert peer.ask(messages.InitProducerIdRequest(transactional_id=None), 4) is NOTHING
    assert sync(world) == 1
    (answer,) = peer.answers
    assert answer.error_code == errors.NONE and answer.producer_id >= 0


def test_the_controller_takes_the_next_event_when_the_last_one_is_committed(world):
    """Or it would decide by a picture that lacks what it has decided before."""
    peers = [world.connect() for _ in range(3)]
    for peer in peers:
        peer.send(creation("same"), 7)
    assert [peer.answers for peer in peers] == [[], [], []]
    assert sync(world) == 1
    codes = [[answer.topics[0].error_code for answer in peer.answers] for peer in peers]
    assert codes == [[0], [errors.TOPIC_ALREADY_EXISTS], [errors.TOPIC_ALREADY_EXISTS]]


def test_others_are_served_meanwhile(world):
    world.connect().send(creation("t"), 7)
    assert world.connect().ask(messages.MetadataRequest(topics=[]), 8).controller_id == world.broker.node_id


def test_a_sync_that_fails_changes_nothing_and_what_comes_later_is_refused(world):
    peers = [world.connect() for _ in range(2)]
    for peer in peers:
        peer.send(creation("t"), 7)
    offload = world.controller.sync_offload
    ((_, then),) = offload._jobs
    offload._jobs.clear()
    offload._results.append((then, StorageFailure("sync", "there", "no")))
    world.turn()
    assert all(peer.answers == [] and "write failed" in peer.closed for peer in peers)
    assert "t" not in world.broker.image.topics
    assert world.controller.metadata_log._log.offline is not None and not world.controller.is_busy
    assert world.connect().ask(messages.MetadataRequest(topics=[]), 8) is not NOTHING


@pytest.mark.parametrize("seed", range(10))
def test_what_is_answered_survives_a_loss_of_power(seed):
    world = World("/data", disk=CrashDisk())
    world.turn()
    world.controller.sync_offload = ManualOffload(world.runtime.reactor.wake, world.runtime.unexpected)
    peers = [world.connect() for _ in range(3)]
    for number, peer in enumerate(peers):
        assert peer.ask(creation(f"t{number}"), 7) is NOTHING
    for _ in range(2):
        sync(world)
    assert [len(peer.answers) for peer in peers] == [1, 1, 0]
    world.disk.lose_power(random.Random(seed))
    topics = world.restart(seed=2).broker.image.topics
    assert {"t0", "t1"} <= set(topics)


def code_of(world):
    return world.connect().ask(creation("t"), 7).topics[0].error_code


def test_a_stop_commits_what_is_under_way(world):
    peer = world.connect()
    peer.send(creation("t"), 7)
    world.stop()
    assert "t" in world.broker.image.topics
    assert code_of(world.restart()) == errors.TOPIC_ALREADY_EXISTS


def test_a_stop_answers_a_creation_whose_logs_are_still_to_be_made(world):
    """Also one that the controller takes only when the one before it is committed."""
    peers = [world.connect() for _ in range(2)]
    for number, peer in enumerate(peers):
        assert peer.ask(creation(f"t{number}", 100), 7) is NOTHING
    world.stop()
    for peer in peers:
        peer.take_what_came()
        assert [answer.topics[0].error_code for answer in peer.answers] == [0]


def test_a_client_that_sends_nothing_more_gets_its_answer(world):
    """As from Kafka, which does not look for the end while it works on a request."""
    peer = world.connect()
    peer.put_on_the_wire(peer.encode(creation("t"), 7))
    peer.socket.shutdown(1)
    world.turn()
    assert peer.answers == [] and peer.closed is None
    sync(world)
    assert peer.answers[0].topics[0].error_code == 0
    world.turn()
    assert peer.closed == "closed by the peer"


def test_a_bug_in_what_follows_a_commit_ends_its_request_and_no_other(world, monkeypatch):
    peers = [world.connect() for _ in range(2)]
    peers[0].send(creation("t"), 7)
    peers[1].send(creation("u"), 7)
    with monkeypatch.context() as patched:
        patched.setattr(world.broker, "metadata_changed", lambda delta: 1 // 0)
        sync(world)
    assert peers[0].answers[0].topics[0].error_code == errors.UNKNOWN_SERVER_ERROR
    sync(world)
    assert peers[1].answers[0].topics[0].error_code == 0
