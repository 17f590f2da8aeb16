"""A coordinator of transactions that was replaced, and has not heard of that."""

from __future__ import annotations

import pytest

from pykafkad.coordinator import transaction_events as asked
from pykafkad.effects import Append, Reply
from pykafkad.wire import messages
from tests.coordinator.transaction_world import TransactionWorld

PLACE = ("a", 0)


@pytest.mark.parametrize("commit", (True, False))
def test_an_end_that_is_asked_for_again_waits_for_a_record(commit):
    """It may know the end of the transaction before only. It commits no record, and so it does not answer."""
    world = TransactionWorld(0)
    producer = world.producer()
    world.add(producer, PLACE)
    world.end(producer, commit)
    before = world.state()
    request = messages.EndTxnRequest(
        transactional_id="t", producer_id=producer[0], producer_epoch=producer[1], committed=commit
    )
    effects = world.send(asked.EndTxn("again", request, 0, True))
    assert [type(each) for each in effects] == [Append, Reply]
    assert world.replayed().transactions["t"].state == world.state() == before
    assert world.markers == [(PLACE, *producer, commit)]
