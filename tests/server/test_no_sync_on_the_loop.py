"""Nothing is synced on the loop's thread while a broker serves: a slow device holds up only those who wait for it.

The docstring of `pykafkad.server` names the exceptions with their reasons."""

import threading
import traceback

import pytest

from pykafkad.server.offload import Offload
from pykafkad.wire import messages
from tests.handlers.requests import batch, produce
from tests.server.test_coordinator_host import commit_request
from tests.server.test_data_snapshots import request as snapshot_action
from tests.simulation.disk import MemoryDisk, MemoryFile
from tests.simulation.world import NOTHING, World


class WatchedFile(MemoryFile):
    def sync(self):
        self._disk.note(self.path)
        super().sync()


class WatchedDisk(MemoryDisk):
    """Notes what is synced on the loop's thread, from when the broker serves."""

    def __init__(self):
        super().__init__()
        self.loop = None
        self.on_loop = []
        self.elsewhere = self.fresh = 0

    def note(self, path):
        if threading.get_ident() == self.loop:
            self.on_loop.append((path, traceback.format_stack(limit=8)))
        else:
            self.elsewhere += 1

    def open(self, path, *, create=False):
        file = super().open(path, create=create)
        return WatchedFile(self, path, file._content)

    def sync(self, path):
        self.note(path)
        super().sync(path)

    def write(self, path, data, *, sync=False):
        if sync:
            self.note(path)
        self.fresh += path.endswith(".fresh.tmp")
        super().write(path, data, sync=sync)

    def sync_directory(self, path):
        self.note(path)
        super().sync_directory(path)

    def link(self, source, target):
        self.files[target] = self.files[source]

    def sync_all(self):
        self.note("everything")
        super().sync_all()


@pytest.fixture(params=["false", "true"], ids=["unsynced", "group commit"])
def world(request):
    made = World(
        "/data",
        more_directories=("/more",),
        disk=WatchedDisk(),
        pykafkad_group_commit=request.param,
        log_flush_interval_messages=5,
        metadata_log_max_record_bytes_between_snapshots=3000,
        offsets_topic_num_partitions=2,
    )
    runtime = made.runtime
    made.controller.sync_offload = Offload(runtime.reactor.wake, runtime.unexpected)
    runtime.offload, runtime.cpu_offload = (Offload(runtime.reactor.wake, runtime.unexpected) for _ in range(2))
    made.disk.loop = threading.get_ident()
    made.turn()
    yield made
    made.disk.loop = None
    made.stop()
    made.controller.sync_offload.close()


def ask(world, request, version):
    """The answer, however many turns it takes."""
    peer = world.connect()
    answer = peer.ask(request, version)
    rest = threading.Event()
    for _ in range(5000):
        if answer is not NOTHING:
            return answer
        rest.wait(0.001)
        world.turn()
        answer = peer.answers[0] if peer.answers else NOTHING
    raise AssertionError(f"no answer to {request}")


def create(world, name, partitions=3, **configs):
    request = messages.CreateTopicsRequest
    rows = [
        request.CreatableTopicConfig(name=key.replace("_", "."), value=str(value)) for key, value in configs.items()
    ]
    topic = request.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=rows)
    assert ask(world, request(topics=[topic], timeout_ms=1000), 7).topics[0].error_code == 0


def is_written(disk):
    """Whether the threads have written what the test has brought about."""
    checkpoint = "/data/recovery-point-offset-checkpoint"
    return (
        disk.exists(checkpoint)
        and b"other-19 2 0" in disk.read(checkpoint)
        and disk.exists("/data.snapshots/one/.kafka_cleanshutdown")
        and not any(path.endswith(".fresh.tmp") for path in list(disk.files))
    )


def test_a_broker_that_serves_syncs_nothing_on_its_loop(world):
    create(world, "t")
    for number in range(30):
        row = ask(world, produce("t", {number % 3: batch(b"%d" % number)}), 9).responses[0].partition_responses[0]
        assert row.error_code == 0
    ask(world, messages.FindCoordinatorRequest(key="g", key_type=0), 2)
    for offset in range(5):
        assert ask(world, commit_request("g", offset), 8).topics[0].partitions[0].error_code in (0, 14, 15, 16)
    # What is deleted and made again must not be taken for what was, before and after the next checkpoint.
    create(world, "again")
    for _ in range(2):
        row = ask(world, messages.DeleteTopicsRequest(topic_names=["again"], timeout_ms=1000), 5).responses[0]
        assert row.error_code == 0
        create(world, "again")
    assert ask(world, messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5).responses[0].error_code == 0
    for _ in range(20):
        threading.Event().wait(0.002)
        world.advance(0.01)
    create(world, "t")
    for number in range(20):
        create(world, f"other-{number}")
    for log in list(world.broker.partitions):
        # With group commit each of them is synced up to its end.
        log.roll(world.runtime.now_ms)
    assert ask(world, snapshot_action("create", "one"), 1).responses[0].error_code == 0
    assert ask(world, snapshot_action("restore", "one:t"), 1).responses[0].error_code == 0
    for log in list(world.broker.partitions)[:8]:
        place = world.broker.directories.of(log).path
        request = messages.AlterReplicaLogDirsRequest
        topic = request.AlterReplicaLogDirTopic(name=log.topic, partitions=[log.partition])
        target = request.AlterReplicaLogDir(path="/more" if place == "/data" else "/data", topics=[topic])
        assert ask(world, request(dirs=[target]), 2).results[0].partitions[0].error_code == 0
        ask(world, produce(log.topic, {log.partition: batch(b"moving")}), 9)
    for _ in range(5000):
        if not len(world.broker.moves):
            break
        world.advance(0.001)
        threading.Event().wait(0.001)
    # Checkpoints, syncs of what has rolled, scheduled flushes, deletions.
    for _ in range(40):
        world.advance(5.0)
    for turn in range(5000):
        if turn >= 40 and is_written(world.disk):
            break
        threading.Event().wait(0.005)
        world.turn()
    assert any(path.endswith(".checkpoint") for path in list(world.disk.files) if "00000000000000000000-" not in path)
    assert is_written(world.disk)
    assert not len(world.broker.moves)
    assert world.disk.elsewhere > 20 and world.disk.fresh >= 3
    assert world.runtime.metrics.unexpected_errors == 0
    stacks = {path: "".join(stack) for path, stack in world.disk.on_loop}
    assert stacks == {}, "\n".join(f"{path}:\n{stack}" for path, stack in stacks.items())
