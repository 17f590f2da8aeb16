"""DescribeLogDirs: the partitions and sizes of each directory."""

import pytest

from pykafkad.wire import messages
from tests.handlers.requests import batch, produce


def describe(peer, version, topics):
    request = messages.DescribeLogDirsRequest
    if topics is not None:
        topics = [request.DescribableLogDirTopic(topic=topic, partitions=partitions) for topic, partitions in topics]
    answer = peer.ask(request(topics=topics), version)
    assert answer.error_code == 0
    (result,) = answer.results
    return result, {
        (topic.name, row.partition_index): row.partition_size for topic in result.topics for row in topic.partitions
    }


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_the_request_names_partitions_or_means_all(world, peer, version):
    """Null means all. The metadata log and partitions without a replica here are left out."""
    world.create_topic("t", 2)
    records = batch(b"x" * 100)
    peer.ask(produce("t", {1: records}), 8)
    result, sizes = describe(peer, version, None)
    assert sizes == {("t", 0): 0, ("t", 1): len(records)}
    assert result.log_dir.endswith("/data") and result.error_code == 0
    if version >= 4:
        assert 0 < result.usable_bytes <= result.total_bytes
    assert describe(peer, version, [("t", [1, 9]), ("nowhere", [0])])[1] == {("t", 1): len(records)}
    assert describe(peer, version, [])[1] == {}


def test_the_request_opens_no_log_after_a_restart(world, peer):
    world.create_topic("t", 2)
    peer.ask(produce("t", {1: batch(b"x" * 100)}), 8)
    world.stop()
    world = world.restart()
    assert describe(world.connect(), 4, None)[1]["t", 1] > 100
    assert not world.broker.partitions.get("t", 1).is_loaded
