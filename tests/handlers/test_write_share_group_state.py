"""WriteShareGroupState: what has changed is stored."""

import pytest

from pykafkad.errors import name
from pykafkad.wire import messages
from tests.handlers.share_state_requests import ask, begin, prepared


def write(peer, topic_id, batches, version=1, **fields):
    request = messages.WriteShareGroupStateRequest
    rows = [
        request.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in batches
    ]
    fields = {"state_epoch": 1, "leader_epoch": 0, "start_offset": -1, **fields}
    row = request.PartitionData(partition=0, state_batches=rows, **fields)
    return ask(peer, "WriteShareGroupState", topic_id, [row], version)[0]


@pytest.mark.parametrize("version", [0, 1])
def test_ranges_are_stored(world, peer, version):
    topic_id = prepared(world, peer)
    assert name(write(peer, topic_id, []).error_code) == "INVALID_REQUEST"
    begin(peer, topic_id)
    assert write(peer, topic_id, [(5, 9, 2, 1), (10, 14, 0, 2)], version).error_code == 0
    assert name(write(peer, topic_id, [], state_epoch=0).error_code) == "FENCED_STATE_EPOCH"
    row = messages.ReadShareGroupStateRequest.PartitionData(partition=0, leader_epoch=-1)
    (read,) = ask(peer, "ReadShareGroupState", topic_id, [row])
    assert [(each.first_offset, each.last_offset) for each in read.state_batches] == [(5, 9), (10, 14)]
