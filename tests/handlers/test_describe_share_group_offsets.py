"""DescribeShareGroupOffsets: start offsets and lag."""

import pytest

from pykafkad.wire import messages
from tests.handlers.share_requests import Share


def describe(peer, topics=None, version=1):
    request = messages.DescribeShareGroupOffsetsRequest
    wanted = None
    if topics is not None:
        wanted = [
            request.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    group = request.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=wanted)
    (row,) = peer.ask(request(groups=[group]), version).groups
    assert row.error_code == 0
    return {
        (topic.topic_name, each.partition_index): (each.start_offset, each.lag)
        for topic in row.topics
        for each in topic.partitions
    }


@pytest.mark.parametrize("version", [0, 1])
def test_offsets_and_lag(world, version):
    share = Share(world, partitions=2).begin_at_the_start().join()
    assert describe(share.peer) == {("t", 0): (-1, -1), ("t", 1): (-1, -1)}
    share.produce(b"a", b"b", b"c")
    share.fetch(max_wait_ms=100)
    world.turn()
    share.session = 1
    share.acknowledge((0, 0, [1]))
    found = describe(share.peer, version=version)
    assert found == {("t", 0): (0, 2 if version else -1), ("t", 1): (-1, -1)}
    assert describe(share.peer, {"t": [1], "none": [0]}) == {("t", 1): (-1, -1), ("none", 0): (-1, -1)}
    assert describe(share.peer, {}) == {}
