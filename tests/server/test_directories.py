"""Several `log.dirs`: where partitions go, what a failed directory takes with it, and what a restart finds."""

import errno
import shutil
from pathlib import Path

import pytest

from pykafkad import errors
from pykafkad.disk import Disk
from pykafkad.errors import ConfigError, StorageFailure
from pykafkad.log.checkpoints import CLEAN_SHUTDOWN_FILE, HIGH_WATERMARK_FILE, encode_offsets
from pykafkad.log.offset_checkpoints import OffsetCheckpoints
from pykafkad.metadata.placement import UNASSIGNED_DIRECTORY
from pykafkad.server.directories import directory_id
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.simulation.world import World


@pytest.fixture
def paths(tmp_path):
    return [str(tmp_path / name) for name in ("a", "b", "c")]


def start(paths, **settings):
    return World(paths[0], more_directories=tuple(paths[1:]), **settings)


def places(world, topic):
    """Partition to the last part of the path of its directory."""
    node = world.broker
    return [
        node.directories.of(node.partitions.get(topic, state.index)).path[-1]
        for state in node.image.topics[topic].partitions
    ]


def codes(answer):
    return [
        row.error_code
        for topic in answer.responses
        for row in getattr(topic, "partition_responses", None) or topic.partitions
    ]


def write(world, topic, partition=0, value=b"x"):
    return codes(world.connect().ask(produce(topic, {partition: batch(value)}), 8))[0]


def read(world, topic, partition=0):
    return codes(world.connect().ask(fetch(topic, {partition: 0}), 11))[0]


def fail_directory(world, letter):
    node = world.broker
    directory = next(each for each in node.directories.online if each.path.endswith(letter))
    node.directories.report(directory, StorageFailure("write", directory.path, "simulated"))
    world.turn()
    return directory


def test_a_new_partition_for_which_a_descriptor_is_lacking_takes_no_directory_out_of_service(paths, monkeypatch):
    world = start(paths)

    def refuse(disk, path, data, *, sync=False):
        raise StorageFailure("write", path, OSError(errno.EMFILE, "Too many open files"))

    with monkeypatch.context() as lacking:
        lacking.setattr(Disk, "write", refuse)
        world.create_topic("t", 3)
    world.turn()
    assert len(world.broker.directories.online) == 3
    assert write(world, "t") == errors.KAFKA_STORAGE_ERROR


def test_partitions_go_where_the_fewest_are_and_the_metadata_says_so(paths):
    world = start(paths)
    world.create_topic("t", 6)
    world.turn()
    assert sorted(places(world, "t")) == ["a", "a", "b", "b", "c", "c"]
    by_id = {directory_id(each): each.path[-1] for each in world.broker.directories.online}
    assert len(by_id) == 3 and world.broker.image.brokers[1].log_dirs == list(by_id)
    told = [by_id[state.directories[0]] for state in world.broker.image.topics["t"].partitions]
    assert told == places(world, "t")
    before = places(world, "t")
    world.stop()
    world = world.restart()
    assert places(world, "t") == before and list(by_id) == world.broker.directories.ids()


def test_a_new_replica_is_unassigned_until_the_broker_has_chosen(paths):
    world = start(paths)
    world.create_topic("t")
    log = world.broker.partitions.get("t", 0)
    assert log is not None and UNASSIGNED_DIRECTORY not in world.broker.image.partition("t", 0).directories


def test_the_metadata_log_may_have_a_directory_of_its_own(paths, tmp_path):
    world = start(paths[:2], metadata_log_dir=str(tmp_path / "m"))
    world.create_topic("t", 2)
    assert (tmp_path / "m" / "__cluster_metadata-0").is_dir() and not (tmp_path / "a" / "__cluster_metadata-0").exists()
    assert sorted(places(world, "t")) == ["a", "b"]
    world.stop()
    world = world.restart(metadata_log_dir=str(tmp_path / "m"))
    assert write(world, "t") == 0 and len({each.meta["directory.id"] for each in world.broker.directories.every()}) == 3


def test_a_failed_directory_takes_its_partitions_and_no_others(paths):
    world = start(paths)
    world.create_topic("t", 3)
    world.turn()
    where = places(world, "t")
    for index in range(3):
        assert write(world, "t", index) == 0
    fail_directory(world, "b")
    for index, letter in enumerate(where):
        expected = errors.KAFKA_STORAGE_ERROR if letter == "b" else errors.NONE
        assert (write(world, "t", index), read(world, "t", index)) == (expected, expected)
        state = world.broker.image.partition("t", index)
        assert state.leader == (-1 if letter == "b" else 1)
    lost = where.index("b")
    row = world.connect().ask(messages.MetadataRequest(topics=None), 9).topics[0].partitions[lost]
    assert (row.error_code, row.leader_id, row.offline_replicas) == (errors.LEADER_NOT_AVAILABLE, -1, [1])
    results = world.connect().ask(messages.DescribeLogDirsRequest(topics=None), 4).results
    assert [result.error_code for result in results] == [0, errors.KAFKA_STORAGE_ERROR, 0]
    election = messages.ElectLeadersRequest.TopicPartitions(topic="t", partitions=[lost])
    for kind, code in ((0, errors.PREFERRED_LEADER_NOT_AVAILABLE), (1, errors.ELIGIBLE_LEADERS_NOT_AVAILABLE)):
        answer = world.connect().ask(messages.ElectLeadersRequest(election_type=kind, topic_partitions=[election]), 2)
        assert answer.replica_election_results[0].partition_result[0].error_code == code
    world.stop()
    world = world.restart()
    assert [write(world, "t", index) for index in range(3)] == [0, 0, 0]
    assert (
        world.broker.image.partition("t", lost).leader == 1 and world.broker.partitions.get("t", lost).end_offset == 2
    )


def test_a_write_that_fails_gives_up_the_directory(paths, monkeypatch):
    world = start(paths[:2])
    world.create_topic("t", 2)
    world.turn()
    in_b = places(world, "t").index("b")

    def refuse(file, data, position):
        raise StorageFailure("write", file.path, "simulated")

    write(world, "t", in_b)
    with monkeypatch.context() as patch:
        patch.setattr("pykafkad.disk.File.pwrite", refuse)
        assert write(world, "t", in_b) == errors.KAFKA_STORAGE_ERROR
    world.turn()
    assert [each.path[-1] for each in world.broker.directories.online] == ["a"]
    assert write(world, "t", 1 - in_b) == 0 and world.runtime.stopping is None


def test_a_read_that_fails_gives_up_the_directory(paths, monkeypatch):
    world = start(paths[:2])
    world.create_topic("t", 2)
    world.turn()
    in_b = places(world, "t").index("b")

    def refuse(log, *_, **__):
        raise StorageFailure("read", log.directory, "simulated")

    for index in range(2):
        write(world, "t", index)
    with monkeypatch.context() as patch:
        patch.setattr("pykafkad.log.partition_log.PartitionLog.read", refuse)
        assert [read(world, "t", index) for index in (in_b, 1 - in_b)] == [errors.KAFKA_STORAGE_ERROR] * 2
    world.turn()
    assert [each.path[-1] for each in world.broker.directories.online] == ["a"] and read(world, "t", 1 - in_b) == 0


def test_the_last_directory_stops_the_broker(paths, tmp_path):
    world = start(paths[:2], metadata_log_dir=str(tmp_path / "m"))
    fail_directory(world, "a")
    assert world.runtime.stopping is None
    fail_directory(world, "b")
    assert "last directory" in world.runtime.stopping and world.runtime.has_failed


def test_a_directory_that_cannot_be_opened_is_put_aside_at_a_start(paths, tmp_path):
    world = start(paths[:2])
    world.create_topic("t", 2)
    world.turn()
    lost = places(world, "t").index("b")
    world.stop()
    shutil.move(tmp_path / "b", tmp_path / "elsewhere")
    (tmp_path / "b").write_text("in the way")
    world = world.restart()
    assert write(world, "t", 1 - lost) == 0 and write(world, "t", lost) == errors.KAFKA_STORAGE_ERROR
    assert [state.leader for state in world.broker.image.topics["t"].partitions].count(-1) == 1
    world.create_topic("u", 2)
    world.turn()
    assert places(world, "u") == ["a", "a"]
    world.stop()
    (tmp_path / "b").unlink()
    shutil.move(tmp_path / "elsewhere", tmp_path / "b")
    world = world.restart()
    assert write(world, "t", lost) == 0 and world.broker.image.partition("t", lost).leader == 1


def test_a_directory_that_is_not_configured_any_more_takes_its_partitions(paths):
    """Nothing begins anew and empty under the name of what lies elsewhere; named again, all of it is there."""
    world = start(paths[:2])
    world.create_topic("t", 2)
    world.turn()
    lost = places(world, "t").index("b")
    for index in range(2):
        write(world, "t", index)
    world.stop()
    world = world.restart(more_directories=())
    assert [write(world, "t", index) for index in (lost, 1 - lost)] == [errors.KAFKA_STORAGE_ERROR, 0]
    assert world.broker.image.partition("t", lost).leader == -1
    world.stop()
    world = world.restart(more_directories=(paths[1],))
    assert write(world, "t", lost) == 0 and world.broker.partitions.get("t", lost).end_offset == 2


def test_a_topic_of_a_failed_directory_can_be_deleted(paths):
    world = start(paths)
    world.create_topic("t", 3)
    world.turn()
    fail_directory(world, "c")
    answer = world.connect().ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
    assert answer.responses[0].error_code == 0 and len(world.broker.partitions) == 0


def test_directories_of_another_broker_or_cluster_are_refused(paths, tmp_path):
    world = start(paths[:1])
    world.stop()
    other = start(paths[1:2], seed=2)
    other.stop()
    with pytest.raises(ConfigError, match="belongs to the cluster"):
        start(paths[:2])


def test_two_directories_with_one_id_are_refused(paths, tmp_path):
    start(paths[:2]).stop()
    shutil.copy(tmp_path / "a" / "meta.properties", tmp_path / "b" / "meta.properties")
    with pytest.raises(ConfigError, match="same directory.id"):
        start(paths[:2])


def test_cordoned_directories_take_nothing_new(paths, tmp_path):
    world = start(paths[:2], log_dirs=",".join(paths[:2]), cordoned_log_dirs=paths[0])
    world.create_topic("t", 3)
    world.turn()
    assert places(world, "t") == ["b", "b", "b"]
    broker = world.broker.image.brokers[1]
    assert broker.cordoned_log_dirs == [directory_id(world.broker.directories.online[0])]
    results = world.connect().ask(messages.DescribeLogDirsRequest(topics=None), 5).results
    assert [result.is_cordoned for result in results] == [True, False]


def test_all_cordoned_leaves_no_place(paths):
    world = start(paths[:2], cordoned_log_dirs="*")
    topic = messages.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    answer = world.connect().ask(messages.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
    assert answer.topics[0].error_code == errors.INVALID_REPLICATION_FACTOR


def stopped_with_a_record(paths):
    """A stopped broker of two directories, the one in which the partition of `t` is, and the other one."""
    world = start(paths[:2])
    world.create_topic("t")
    world.turn()
    write(world, "t")
    (place,) = places(world, "t")
    world.stop()
    return world, place, "b" if place == "a" else "a"


def test_a_second_copy_of_a_partition_is_removed(paths, tmp_path):
    """The metadata says which of the two is the partition's."""
    world, place, other = stopped_with_a_record(paths)
    shutil.copytree(tmp_path / place / "t-0", tmp_path / other / "t-0")
    world = world.restart()
    assert places(world, "t") == [place] and not (tmp_path / other / "t-0").exists()


def test_a_folder_in_another_directory_than_named_counts(paths, tmp_path):
    """Somebody moved it by hand while the broker was down: the metadata follows."""
    world, place, other = stopped_with_a_record(paths)
    shutil.move(tmp_path / place / "t-0", tmp_path / other / "t-0")
    world = world.restart()
    world.turn()
    assert places(world, "t") == [other] and read(world, "t") == 0
    (named,) = world.broker.image.partition("t", 0).directories
    assert named == directory_id(next(each for each in world.broker.directories.online if each.path.endswith(other)))


def cordon(world, value):
    """Set `cordoned.log.dirs` of the broker live; the error code."""
    request = messages.IncrementalAlterConfigsRequest
    change = request.AlterableConfig(name="cordoned.log.dirs", config_operation=0, value=value)
    resource = request.AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])
    code = world.connect().ask(request(resources=[resource]), 1).responses[0].error_code
    world.turn()
    return code


def test_a_directory_is_cordoned_live_and_stays_it_after_a_restart(paths):
    world = start(paths[:2], log_dirs=",".join(paths[:2]))
    assert (
        cordon(world, "/nowhere") == errors.INVALID_REQUEST and cordon(world, f"*,{paths[0]}") == errors.INVALID_REQUEST
    )
    assert cordon(world, paths[1]) == 0
    (cordoned,) = world.broker.image.brokers[1].cordoned_log_dirs
    assert cordoned == directory_id(world.broker.directories.online[1])
    world.create_topic("t", 2)
    assert places(world, "t") == ["a", "a"]
    world.stop()
    world = world.restart(log_dirs=",".join(paths[:2]))
    assert world.broker.image.brokers[1].cordoned_log_dirs == [cordoned]
    world.create_topic("u", 2)
    assert places(world, "u") == ["a", "a"]
    assert cordon(world, "") == 0 and world.broker.image.brokers[1].cordoned_log_dirs == []


@pytest.mark.parametrize("which", [0, 1])
def test_a_single_broker_does_not_begin_in_the_directory_of_several(paths, which):
    """The error names the directory and who has it; the brokers that have it start there afterwards."""
    for name in ("broker1", "broker12", "controller", "brokers", "broker3"):
        (Path(paths[which]) / name).mkdir(parents=True)
    for name in ("broker1", "broker12", "controller", "brokers"):
        (Path(paths[which]) / name / "meta.properties").write_text("version=1\n")
    with pytest.raises(ConfigError) as error:
        start(paths)
    assert str(error.value) == (
        f"log.dirs: {paths[which]} holds the data of several brokers (broker1, broker12, controller); start them with "
        "--brokers, or give a single broker a directory of its own"
    )
    assert not (Path(paths[which]) / "meta.properties").exists()


def test_a_directory_inside_another_may_be_called_like_one_of_several(tmp_path):
    """Where it is this broker's own."""
    world = start([str(tmp_path / "broker2"), str(tmp_path)])
    assert len(world.broker.directories.online) == 2
    world.stop()


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE, errno.ENFILE])
def test_a_directory_whose_old_checkpoint_cannot_be_corrected_goes_out_of_service(paths, monkeypatch, code):
    """Even if only descriptors are lacking, as what is appended would be committed by it. The others serve: only that
    of the metadata is needed by all."""
    world = start(paths)
    world.create_topic("t", 3)
    for partition in range(3):
        assert write(world, "t", partition) == 0
    place = places(world, "t").index("b")
    world.stop()
    Path(paths[1], CLEAN_SHUTDOWN_FILE).unlink()
    Path(paths[1], HIGH_WATERMARK_FILE).write_bytes(encode_offsets({("t", place): 50}))

    def write_tables(self, *tables):
        assert self.path == paths[1]
        raise StorageFailure("write", self.path, OSError(code, "simulated"))

    with monkeypatch.context() as failing:
        failing.setattr(OffsetCheckpoints, "write", write_tables)
        world = world.restart()
    world.turn()
    assert [each.path for each in world.broker.directories.online] == [paths[0], paths[2]]
    assert [write(world, "t", each) for each in range(3) if each != place] == [0, 0]
    assert write(world, "t", place) == errors.KAFKA_STORAGE_ERROR
    world.stop()
