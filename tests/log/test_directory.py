"""One directory of logs: its owner, what survives a restart, and what is removed."""

from __future__ import annotations

import os
import random
import shutil
import time

import pytest

from pykafkad.clock import ManualClock
from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.log import offset_checkpoints
from tests.log.settings import TOPIC_ID, append, batch, open_directory, open_log, topic_settings
from tests.simulation.disk import MemoryDisk


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path):
    """The error names the directory. When the first broker has stopped, the second may use it."""
    first = open_directory(tmp_path / "data")
    with pytest.raises(ConfigError, match=f"another broker uses the directory {tmp_path}/data"):
        open_directory(tmp_path / "data")
    first.close()
    open_directory(tmp_path / "data").close()


def test_the_directory_of_another_broker_or_cluster_is_refused():
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    assert directory.meta == {}
    directory.check_meta(cluster_id="c", node_id=1)
    directory.write_meta(cluster_id="c", node_id=1, directory_id="AAAAAAAAAAAAAAAAAAAAAQ")
    directory.close()
    directory = open_directory(disk=disk)
    assert directory.meta == {
        "version": "1",
        "cluster.id": "c",
        "node.id": "1",
        "directory.id": "AAAAAAAAAAAAAAAAAAAAAQ",
    }
    directory.check_meta(cluster_id=None, node_id=1)
    with pytest.raises(ConfigError, match=r"belongs to node.id 1, this broker is 2"):
        directory.check_meta(cluster_id="c", node_id=2)
    with pytest.raises(ConfigError, match="belongs to the cluster c, not to d"):
        directory.check_meta(cluster_id="d", node_id=1)


def test_a_start_removes_the_clean_marker_at_once():
    """A broker that is killed right after its start has not stopped cleanly."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    assert (directory.clean, directory.broker_epoch) == (False, -1)
    directory.close(broker_epoch=17)
    assert disk.files["/data/.kafka_cleanshutdown"].data == b'{"version":0,"brokerEpoch":17}'
    directory = open_directory(disk=disk)
    assert (directory.clean, directory.broker_epoch) == (True, 17)
    disk.kill()
    assert not open_directory(disk=disk).clean


def test_a_stop_that_is_not_clean_leaves_no_marker():
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    append(open_log(directory), batch())
    directory.close(clean=False)
    directory = open_directory(disk=disk)
    assert not directory.clean
    assert open_log(directory).end_offset == 1


def test_unopened_logs_of_an_unclean_start_prevent_the_marker():
    """They were never recovered, so the next start must recover them."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    for partition in (0, 1):
        append(open_log(directory, partition=partition), batch())
    disk.kill()
    directory = open_directory(disk=disk)
    open_log(directory, partition=0)
    directory.close()
    assert not open_directory(disk=disk).clean


@pytest.mark.parametrize("count", [3, 40])
def test_a_clean_stop_syncs_everything(count):
    """A power loss right after the stop loses nothing, with few logs and with many."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    for partition in range(count):
        append(open_log(directory, partition=partition), batch(3))
    before = disk.calls.get("sync", 0)
    directory.close()
    # Few logs are synced one by one, with indexes, epochs and names. For many, the whole disk is synced in one call,
    # and then each file is asked whether a write failed.
    assert disk.calls["sync"] - before < 5 * count + 12
    disk.lose_power(random.Random(1))
    directory = open_directory(disk=disk)
    assert directory.clean
    for partition in range(count):
        assert open_log(directory, partition=partition).end_offset == 3


def test_rolled_segments_have_sync_jobs():
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    quiet, rolled = open_log(directory), open_log(directory, partition=1, segment_bytes=100)
    append(quiet, batch())
    append(rolled, batch(), batch())
    (job,) = directory.sync_jobs()
    job.run()
    job.finish()
    assert (rolled.recovery_point, directory.sync_jobs()) == (1, [])


def test_checkpoints_have_kafkas_format_and_are_written_only_when_changed():
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log, other = open_log(directory, "b", 2), open_log(directory, "a", 10)
    append(log, batch(4))
    append(other, batch(1))
    log.flush()
    log.delete_records(3)
    directory.checkpoint()
    read = {
        name: disk.files[f"/data/{name}"].data.decode()
        for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint")
    }
    assert read == {
        "recovery-point-offset-checkpoint": "0\n2\na 10 0\nb 2 4\n",
        "log-start-offset-checkpoint": "0\n1\nb 2 3\n",
        "replication-offset-checkpoint": "0\n2\na 10 1\nb 2 4\n",
    }
    renames = disk.calls["rename"]
    directory.checkpoint()
    assert disk.calls["rename"] == renames
    disk.kill()
    log = open_log(open_directory(disk=disk), "b", 2)
    assert (log.log_start_offset, log.recovery_point) == (3, 4)


@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"]
)
def test_a_damaged_checkpoint_counts_as_missing(name):
    """As in Kafka, recovery then begins earlier, the log starts with its first segment, and nothing is lost."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    append(open_log(directory), batch(4))
    directory.checkpoint()
    disk.kill()
    for garbage in (b"", b"0\n2\nt 0 1\n", b"7\n0\n", b"\xff\xfe", b"0\n1\nt zero 1\n"):
        disk.files[f"/data/{name}"].data = bytearray(garbage)
        disk.kill()
        log = open_log(open_directory(disk=disk))
        assert (log.log_start_offset, log.end_offset) == (0, 4)


def test_the_topic_id_is_stored_and_compared():
    """The folder of another topic of the same name is not served."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    open_log(directory)
    assert disk.files["/data/t-0/partition.metadata"].data == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    directory.close()
    directory = open_directory(disk=disk)
    log = directory.open_partition("t", 0, bytes(16), topic_settings())
    with pytest.raises(StorageFailure, match="AAECAwQFBgcICQoLDA0ODw"):
        _ = log.end_offset


def test_a_deleted_partition_is_renamed_at_once_and_removed_later():
    """A topic of the same name can be created at once. The next start removes what a killed broker left."""
    disk, clock = MemoryDisk(), ManualClock()
    directory = open_directory(disk=disk, clock=clock)
    append(open_log(directory, file_delete_delay_ms=1000), batch())
    directory.delete_partition("t", 0)
    assert ("t", 0) not in directory.logs
    (renamed,) = (path for path in disk.directories if path.endswith("-delete"))
    assert renamed.startswith("/data/t-0.") and len(renamed) == len("/data/t-0.") + 32 + len("-delete")
    assert append(open_log(directory), batch()) == [0]
    assert directory.next_deletion_ms == clock.now_ms() + 1000
    assert directory.take_due_deletions(clock.now_ms() + 999) == []
    due = directory.take_due_deletions(clock.now_ms() + 1000)
    assert due == [(renamed, True)]
    assert directory.next_deletion_ms is None
    directory.close()
    directory = open_directory(disk=disk, clock=clock)
    assert directory.take_due_deletions(clock.now_ms()) == due
    directory.remove(*due[0])
    assert not disk.exists(renamed) and disk.exists("/data/t-0")


def test_the_longest_topic_name_can_be_deleted(tmp_path):
    """The name is cut so that it fits 255 bytes with the suffix."""
    directory = open_directory(tmp_path / "data")
    open_log(directory, "x" * 249, 99)
    directory.delete_partition("x" * 249, 99)
    assert [len(name) for name in os.listdir(tmp_path / "data") if name.endswith("-delete")] == [255]
    directory.close()


def test_unknown_files_are_ignored(tmp_path):
    """Files, links and folders with other names are no partitions. Links are never followed."""
    (tmp_path / "elsewhere-0").mkdir()
    data = tmp_path / "data"
    data.mkdir()
    for name in ("notes-1.txt", "t-0-stray", "t-0.abc-future", "nodash", "-3", "t-x"):
        (data / name).mkdir()
    (data / "file-0").write_text("x")
    (data / "link-0").symlink_to(tmp_path / "elsewhere-0")
    directory = open_directory(data)
    names = sorted(os.listdir(data))
    for topic, partition in (("link", 0), ("file", 0), ("t", 0), ("", 3)):
        directory.delete_partition(topic, partition)
    assert sorted(os.listdir(data)) == names
    directory.close()


@pytest.mark.long
def test_ten_thousand_partitions_start_quickly():
    """After a clean stop a start opens no partition. A whole broker may take two seconds to start."""
    disk, settings = MemoryDisk(), topic_settings()
    directory = open_directory(disk=disk)
    for partition in range(10_000):
        directory.open_partition("many", partition, TOPIC_ID, settings)
    directory.close()
    begin, opened = time.process_time(), disk.calls["open"]
    directory = open_directory(disk=disk)
    for partition in range(10_000):
        directory.open_partition("many", partition, TOPIC_ID, settings).lead(0, sole_replica=True)
    seconds = time.process_time() - begin
    assert disk.calls["open"] - opened == 1, "the lock, and no log"
    assert seconds < 1


@pytest.mark.parametrize("between", ["", "killed"])
def test_checkpoints_of_a_deleted_partition_do_not_truncate_a_new_one_of_the_same_name(between):
    """The old offsets are of other records, and the next checkpoint may be a minute away."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    log = open_log(directory)
    append(log, *[batch() for _ in range(20)])
    log.advance_high_watermark(20)
    log.delete_records(15)
    log.flush()
    directory.checkpoint()
    directory.delete_partition(log.topic, log.partition)
    if between:
        disk.kill()
        directory = open_directory(disk=disk)
    log = open_log(directory)
    append(log, batch(), batch())
    disk.kill()
    log = open_log(open_directory(disk=disk))
    assert (log.log_start_offset, log.end_offset, log.recovery_point) == (0, 2, 0)


def test_the_folder_of_a_deleted_topic_of_the_same_name_is_renamed_as_a_stray():
    """A kill in the middle of a deletion leaves folders with their old names."""
    disk = MemoryDisk()
    directory = open_directory(disk=disk)
    append(open_log(directory), batch())
    directory.checkpoint()
    disk.kill()
    directory = open_directory(disk=disk)
    append(directory.open_partition("t", 0, bytes(16), topic_settings(), is_created=True), batch(), batch())
    (stray,) = [name for name in disk.listdir("/data") if name.endswith("-stray")]
    assert stray.startswith("t-0.") and disk.size(f"/data/{stray}/00000000000000000000.log")
    disk.kill()
    directory = open_directory(disk=disk)
    log = directory.open_partition("t", 0, bytes(16), topic_settings())
    assert (log.offline, log.log_start_offset, log.end_offset) == (None, 0, 2)
    assert stray in disk.listdir("/data")


def checkpointed(directory, job):
    """A job that was begun earlier comes to its end."""
    job.run()
    if job.finish():
        job.sync_names()


def test_a_checkpoint_beside_the_loop_is_the_same(tmp_path):
    directory, offsets = open_directory(tmp_path), "recovery-point-offset-checkpoint"
    log = directory.open_partition("t", 0, TOPIC_ID, topic_settings())
    log.lead(0, sole_replica=True)
    append(log, batch(10))
    log.flush()
    directory.note_offsets(log)
    checkpointed(directory, directory.checkpoint_job())
    beside = (tmp_path / offsets).read_bytes()
    directory.checkpoint()
    assert (tmp_path / offsets).read_bytes() == beside and b"t 0 10" in beside
    directory.close()


def copied(path):
    """What a kill would leave of a directory that is open, elsewhere."""
    return shutil.copytree(path, path.with_name(f"{path.name}-copy"))


def test_a_checkpoint_that_something_else_overtook_changes_nothing(tmp_path):
    """The partition is deleted, made again, and what was promised of the earlier one would cut the later one."""
    directory = open_directory(tmp_path)
    log = directory.open_partition("t", 0, TOPIC_ID, topic_settings())
    log.lead(0, sole_replica=True)
    append(log, batch(10))
    log.flush()
    directory.note_offsets(log)
    late = directory.checkpoint_job()
    late.run()
    directory.delete_partition("t", 0)
    assert directory.departed_count == 1
    again = directory.open_partition("t", 0, b"u" * 16, topic_settings(), is_created=True)
    again.lead(0, sole_replica=True)
    append(again, batch(3))
    again.write_pending()
    assert late.finish()
    late.sync_names()
    assert b"t 0 10" in (tmp_path / "recovery-point-offset-checkpoint").read_bytes()
    # After a kill the checkpoints do not count for it.
    killed = open_directory(copied(tmp_path))
    assert killed.checkpointed(("t", 0)) == (0, 0, 0) and killed.departed_count == 1
    assert killed.open_partition("t", 0, b"u" * 16, topic_settings()).end_offset == 3
    directory.note_offsets(again)
    checkpointed(directory, directory.checkpoint_job())
    assert b"t 0 0" in (tmp_path / "recovery-point-offset-checkpoint").read_bytes()
    assert directory.departed_count == 0 and not list(tmp_path.glob("*.tmp"))
    directory.close()


@pytest.mark.parametrize("ends", ["job", "close"])
def test_checkpoints_count_again_for_a_partition_that_was_made_anew(tmp_path, ends):
    """Also after a start in between, and for names that fill a file's name."""
    topic = "t" * 249
    directory = open_directory(tmp_path)
    directory.open_partition(topic, 99999, TOPIC_ID, topic_settings())
    directory.delete_partition(topic, 99999)
    directory.open_partition(topic, 99999, b"u" * 16, topic_settings(), is_created=True)
    assert len(list(tmp_path.glob("*.fresh.tmp"))) == 1
    directory = open_directory(copied(tmp_path))
    log = directory.open_partition(topic, 99999, b"u" * 16, topic_settings())
    log.lead(0, sole_replica=True)
    append(log, batch(10))
    log.flush()
    directory.note_offsets(log)
    if ends == "job":
        checkpointed(directory, directory.checkpoint_job())
        assert not list(tmp_path.with_name(f"{tmp_path.name}-copy").glob("*.tmp"))
    directory.close()
    path = tmp_path.with_name(f"{tmp_path.name}-copy")
    assert not list(path.glob("*.tmp"))
    assert open_directory(path).checkpointed((topic, 99999))[0] == 10


def test_what_a_clean_stop_has_left_behind_does_not_count(tmp_path):
    directory = open_directory(tmp_path)
    log = directory.open_partition("t", 0, TOPIC_ID, topic_settings())
    log.lead(0, sole_replica=True)
    append(log, batch(10))
    directory.close()
    for name in (f"{offset_checkpoints._fresh_stem(('t', 0))}.0.3", "gone-0.00000000.0.1"):
        (tmp_path / f"{name}.fresh.tmp").write_bytes(b"")
    directory = open_directory(tmp_path)
    assert directory.clean and directory.checkpointed(("t", 0))[0] == 10 and not list(tmp_path.glob("*.tmp"))


def test_a_partition_that_left_during_a_checkpoint_is_still_named_in_it(tmp_path):
    directory = open_directory(tmp_path)
    directory.open_partition("t", 0, TOPIC_ID, topic_settings())
    job = directory.checkpoint_job()
    directory.delete_partition("t", 0)
    checkpointed(directory, job)
    assert directory.departed_count == 1
    checkpointed(directory, directory.checkpoint_job())
    assert directory.departed_count == 0
    directory.close()
