"""ReadShareGroupStateSummary: where share partitions stand."""

import pytest

from pykafkad.errors import name
from pykafkad.wire import messages
from tests.handlers.share_state_requests import ask, begin, prepared


@pytest.mark.parametrize("version", [0, 1])
def test_what_has_no_state_has_no_offset(world, peer, version):
    topic_id = prepared(world, peer)
    rows = [
        messages.ReadShareGroupStateSummaryRequest.PartitionData(partition=index, leader_epoch=-1)
        for index in (0, 1, 2)
    ]
    begin(peer, topic_id)
    found = ask(peer, "ReadShareGroupStateSummary", topic_id, rows, version)
    assert [row.start_offset for row in found] == [5, -1, 0]
    assert [name(row.error_code) for row in found] == ["NONE", "NONE", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert found[0].delivery_complete_count == (0 if version else -1)
