"""Folders of deleted topics: renamed share by share, and what a start finds that the metadata knows nothing of."""

import re

import pytest

from pykafkad.errors import StorageFailure
from pykafkad.log.checkpoints import encode_partition_metadata
from pykafkad.server import housekeeping
from pykafkad.server.pending_partitions import AT_ONCE
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import NOTHING, World

COUNT = AT_ONCE + 200
STRAY = re.compile(r"/data/([\w.-]+)-(\d+)\.[0-9a-f]{32}-stray")


class Jobs:
    """What is to be done on the other thread, done when the test says so."""

    def __init__(self):
        self.waiting = []

    def submit(self, job, then):
        self.waiting.append((job, then))

    def run(self):
        job, then = self.waiting.pop(0)
        then(job())

    def finished(self):
        pass

    def close(self):
        while self.waiting:
            self.run()


@pytest.fixture
def world():
    made = World("/data", disk=MemoryDisk())
    made.create_topic("t", COUNT)
    yield made
    assert made.runtime.metrics.unexpected_errors == 0


def delete(world, name="t"):
    request = messages.DeleteTopicsRequest(
        topics=[messages.DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=1000
    )
    (row,) = world.connect().ask(request, 6).responses
    assert row.error_code == 0


def folders(world, ending):
    """How many partitions of `t` have a folder of this form."""
    return sum(re.fullmatch(f"/data/t-[0-9]+{ending}", path) is not None for path in world.disk.directories)


def write(world, index, value):
    return world.connect().ask(produce("t", {index: batch(value)}), 8).responses[0].partition_responses[0].error_code


def read(world, index):
    answer = world.connect().ask(fetch("t", {index: 0}), 11)
    return bytes(answer.responses[0].partitions[0].records)


def test_no_turn_renames_more_than_its_share(world):
    """The answer does not wait for the names."""
    delete(world)
    left = folders(world, "")
    assert 0 < left < COUNT and folders(world, r"\..*-delete") == COUNT - left and not len(world.broker.partitions)
    turns = 0
    while folders(world, ""):
        before = folders(world, "")
        world.turn()
        turns += 1
        assert 0 < before - folders(world, "") <= 64
    assert turns > 1 and folders(world, r"\..*-delete") == COUNT


def test_a_topic_of_the_same_name_can_come_at_once(world):
    """What has its old name still makes room when the new partition comes."""
    for index in (0, COUNT - 1):
        assert write(world, index, b"old") == 0
    delete(world)
    world.create_topic("t", COUNT)
    for index in (0, COUNT - 1):
        assert write(world, index, b"new") == 0
        assert b"new" in read(world, index) and b"old" not in read(world, index)
    while world.broker.directory.is_leaving:
        world.turn()
    assert folders(world, "") == folders(world, r"\..*-delete") == COUNT


@pytest.mark.parametrize("checkpoints", [False, True], ids=["killed before", "killed after the next checkpoint"])
def test_the_offsets_of_an_earlier_topic_do_not_cut_the_next_one_after_a_kill(world, checkpoints):
    """The checkpoints name the earlier one until the next are written, which is beside the loop."""
    for _ in range(5):
        write(world, 0, b"earlier")
    log = world.broker.partitions.get("t", 0)
    log.flush()
    world.broker.directory.checkpoint()
    assert b"t 0 5" in world.disk.read("/data/recovery-point-offset-checkpoint")
    delete(world)
    world.turn()
    world.create_topic("t", 2)
    assert write(world, 0, b"later") == 0
    assert any(path.endswith(".fresh.tmp") for path in world.disk.files)
    if checkpoints:
        for _ in range(3):
            world.advance(10)
            world.runtime.offload.close()
        assert not any(path.endswith(".fresh.tmp") for path in world.disk.files)
    world.disk.kill()
    again = world.restart()
    assert b"later" in read(again, 0) and b"earlier" not in read(again, 0)
    assert again.broker.partitions.get("t", 0).end_offset == 1


def test_a_stop_renames_what_is_left(world):
    delete(world)
    world.stop()
    assert folders(world, "") == 0 and folders(world, r"\..*-delete") == COUNT


def test_what_a_death_in_a_deletion_leaves_is_put_aside_at_the_start(world):
    """As Kafka does; nobody removes it, and a topic of that name begins anew."""
    assert write(world, COUNT - 1, b"old") == 0
    delete(world)
    left = folders(world, "")
    assert left
    world.disk.kill()
    world = world.restart()
    assert folders(world, "") == 0 and folders(world, r"\..*-stray") == left
    (stray,) = [path for path in world.disk.directories if re.fullmatch(rf"/data/t-{COUNT - 1}\..*-stray", path)]
    assert world.disk.size(f"{stray}/00000000000000000000.log")
    world.create_topic("t", COUNT)
    assert write(world, COUNT - 1, b"new") == 0 and b"old" not in read(world, COUNT - 1)
    world.stop()
    world = world.restart()
    assert folders(world, r"\..*-stray") == left and b"new" in read(world, COUNT - 1)


@pytest.mark.parametrize("clean", [True, False])
def test_a_folder_that_the_metadata_knows_nothing_of(world, clean):
    """And the metadata log of another time, which is no partition's."""
    disk = world.disk
    world.stop() if clean else disk.kill()
    for name in ("gone-3", "__cluster_metadata-7", "notes"):
        disk.make_directories(f"/data/{name}")
    world.restart()
    assert [STRAY.fullmatch(path).groups() for path in sorted(disk.directories) if "stray" in path] == [
        ("__cluster_metadata", "7"),
        ("gone", "3"),
    ]
    assert "/data/notes" in disk.directories and "/data/__cluster_metadata-0" in disk.directories


def test_a_folder_of_an_earlier_topic_of_the_same_name(world):
    """Its directory was out of service when that was deleted: it has the id of then."""
    disk = world.disk
    assert write(world, 0, b"old") == 0
    disk.kill()
    disk.replace("/data/t-0/partition.metadata", encode_partition_metadata(b"o" * 16))
    world = world.restart()
    assert [STRAY.fullmatch(path).groups() for path in disk.directories if "stray" in path] == [("t", "0")]
    assert write(world, 0, b"new") == 0 and b"old" not in read(world, 0)


def test_who_deletes_many_is_answered_though_a_rename_fails(world):
    delete(world)
    left = folders(world, "")
    world.disk.fail("rename", sticky=True)
    for _ in range(left):
        world.turn()
    assert not world.broker.directory.is_leaving and folders(world, "") == left
    world.disk.heal()
    assert world.connect().ask(messages.MetadataRequest(topics=None), 12) is not NOTHING


@pytest.mark.parametrize("index", [0, COUNT - 1])
def test_a_folder_that_could_not_be_renamed_is_none_of_the_next_topics(world, index):
    assert write(world, index, b"old") == 0
    world.disk.fail("rename", sticky=True)
    delete(world)
    for _ in range(COUNT):
        world.turn()
    world.disk.heal()
    assert folders(world, "") == COUNT
    world.create_topic("t", COUNT)
    assert write(world, index, b"new") == 0
    assert b"new" in read(world, index) and b"old" not in read(world, index)


def test_renames_that_fail_at_the_stop_leave_it_clean(world, monkeypatch):
    """The folders are nobody's, which the next start finds out."""
    world.stop()
    world = world.restart()
    delete(world)
    left = folders(world, "")
    rename = MemoryDisk.rename

    def refused(self, source, target):
        if target.endswith("-delete"):
            raise StorageFailure("rename", source, "no")
        rename(self, source, target)

    with monkeypatch.context() as broken:
        broken.setattr(MemoryDisk, "rename", refused)
        world.stop()
    assert folders(world, "") == left > 0
    world = world.restart()
    assert world.broker.directory.clean and folders(world, r"\..*-stray") == left


def test_removals_let_syncs_and_a_stop_pass(world, monkeypatch):
    """Thousands of folders take seconds: what comes to the same thread meanwhile stands behind a few of them."""
    monkeypatch.setitem(housekeeping._JOBS, housekeeping._HIGH_WATERMARK, lambda _: None)
    jobs = world.runtime.offload = Jobs()
    delete(world)
    for _ in range(COUNT):
        world.turn()
    world.disk.fail("list")
    world.advance(61)
    removed = []
    for _ in range(3):
        before = folders(world, r"\..*-delete")
        (only,) = jobs.waiting
        jobs.run()
        assert len(jobs.waiting) == 1 and jobs.waiting[0] is not only
        removed.append(before - folders(world, r"\..*-delete"))
        world.turn()
    assert removed == [15, 16, 16], "one could not be removed"
    world.stop()
    assert not jobs.waiting and COUNT - 80 < folders(world, r"\..*-delete") < COUNT - 47
    world = world.restart()
    world.runtime.offload = jobs
    world.turn()
    while jobs.waiting:
        jobs.run()
    assert folders(world, r"\..*-delete") == 0
