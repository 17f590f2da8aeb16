"""InitProducerId: unique ids, and the epochs of transactional ids."""

from __future__ import annotations

import pytest

from pykafkad.handlers.init_producer_id import handle
from pykafkad.wire import messages
from tests.handlers.group_surroundings import Context, error
from tests.handlers.transaction_requests import Producer


def init(ctx, version, **fields):
    return ctx.call(handle, version, messages.InitProducerIdRequest(**{"transactional_id": None, **fields}))


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_an_id_of_its_own(version):
    ctx = Context()
    answers = [init(ctx, version) for _ in range(1001)]
    assert [(error(each), each.producer_id, each.producer_epoch) for each in answers[:2]] == [
        ("NONE", 4000, 0),
        ("NONE", 4001, 0),
    ]
    assert len({each.producer_id for each in answers}) == 1001
    assert len(ctx.controller.submitted) == 2
    assert (ctx.controller.submitted[0].broker_id, ctx.controller.submitted[0].broker_epoch) == (1, 9)


def test_a_producer_that_names_its_old_id_gets_a_new_one():
    assert init(Context(), 3, producer_id=7, producer_epoch=2).producer_id == 4000


@pytest.mark.parametrize("fields", [{"producer_id": 7}, {"producer_epoch": 2}, {"transactional_id": ""}])
def test_an_incomplete_identity_is_refused(fields):
    answer = init(Context(), 3, **fields)
    assert (error(answer), answer.producer_id, answer.producer_epoch) == ("INVALID_REQUEST", -1, -1)


@pytest.mark.parametrize("version", range(6))
def test_each_producer_of_a_transactional_id_gets_a_higher_epoch(world, peer, version):
    producer = Producer(world, peer).find()
    for epoch in range(3):
        assert producer.init(version) == "NONE"
        assert producer.epoch == epoch
    assert producer.producer_id >= 0


@pytest.mark.parametrize("version", (3, 4, 5))
def test_a_producer_goes_on_unless_another_took_over(world, peer, version):
    producer = Producer(world, peer).find()
    producer.init(version)
    old = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}
    assert producer.init(version, **old) == producer.init(version, **old) == "NONE"
    assert producer.epoch == 1
    producer.init(version)
    assert producer.init(version, **old) == ("PRODUCER_FENCED" if version >= 4 else "INVALID_PRODUCER_EPOCH")


def test_a_timeout_has_limits(world, peer):
    producer = Producer(world, peer).find()
    longest = world.broker.settings.transaction_max_timeout_ms
    for timeout_ms in (longest + 1, 0, -1):
        assert producer.init(transaction_timeout_ms=timeout_ms) == "INVALID_TRANSACTION_TIMEOUT"
    assert producer.init(transaction_timeout_ms=longest) == "NONE"


def test_without_the_topic_nobody_coordinates(world, peer):
    assert Producer(world, peer).init() == "NOT_COORDINATOR"


def test_an_id_needs_permission():
    ctx = Context()
    ctx.denied |= {("IdempotentWrite", "Cluster", "kafka-cluster"), ("Write", "TransactionalId", "t")}
    assert error(init(ctx, 5)) == "NONE", "a caller that may write to any topic may write idempotently"
    ctx.denied.add(("Write", "Topic", None))
    assert error(init(ctx, 5)) == "CLUSTER_AUTHORIZATION_FAILED"
    assert error(init(ctx, 5, transactional_id="t")) == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"


def test_a_request_without_ids_waits_for_the_next_block():
    """The controller is asked once, and again if it does not answer."""
    ctx = Context()
    given, ctx.controller.submit = ctx.controller.submit, lambda event: events.append(event)
    events: list = []
    ctx.now = ctx.producer_ids._broker.runtime.now = 100.0
    first, second = (handle(ctx, messages.InitProducerIdRequest(transactional_id=None)) for _ in range(2))
    assert len(events) == 1 and first.attempt(100.0) is None and first.keys == (ctx.producer_ids,)
    ctx.producer_ids._broker.runtime.now = 101.0
    assert first.attempt(101.0) is None and len(events) == 2
    given(events[0])
    assert [wait.attempt(102.0).producer_id for wait in (first, second)] == [4000, 4001]
    assert error(first.expire(105.0)) == "COORDINATOR_LOAD_IN_PROGRESS" and first.deadline == 105.0


def test_after_a_refusal_the_controller_is_asked_again():
    ctx = Context()
    given, ctx.controller.submit = ctx.controller.submit, lambda event: 1 // 0
    with pytest.raises(ZeroDivisionError):
        init(ctx, 3)
    ctx.controller.submit = given
    assert init(ctx, 3).producer_id == 4000
