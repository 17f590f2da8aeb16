"""Produce with batches of so many records that checking them would hold the loop: another thread checks them."""

import pytest

from pykafkad import errors
from pykafkad.handlers import produce as produce_handler
from pykafkad.log import append_rules
from pykafkad.wire.batch import build_batch
from tests.handlers.requests import NOW_MS, batch, produce
from tests.simulation.world import NOTHING


@pytest.fixture(autouse=True)
def threads(world, monkeypatch):
    """The names of the threads that check batches. Batches of more than 100 records count as long."""
    monkeypatch.setattr(append_rules, "LONG_RECORDS", 100)
    names = []
    real = produce_handler.check

    def check(*arguments):
        names.append("offload" if world.runtime.cpu_offload.working else "loop")
        return real(*arguments)

    monkeypatch.setattr(produce_handler, "check", check)
    return names


def long(count=300, key=b"k", **fields):
    return bytes(build_batch([(key, b"%d" % number) for number in range(count)], timestamp_ms=NOW_MS, **fields))


def finish(world):
    world.runtime.cpu_offload.close()
    world.turn()


def rows(answer):
    return [
        (row.index, row.error_code, row.base_offset) for topic in answer.responses for row in topic.partition_responses
    ]


@pytest.mark.parametrize(
    "configs",
    [{"cleanup_policy": "compact"}, {"message_timestamp_type": "LogAppendTime"}, {"compression_type": "gzip"}],
)
@pytest.mark.parametrize("version", [8, 9])
def test_a_long_batch_is_checked_on_another_thread_and_appended_on_the_loop(world, peer, threads, configs, version):
    world.create_topic("t", 2, **configs)
    assert (
        peer.ask(produce("t", {0: long(), 1: batch(b"short") if "cleanup_policy" not in configs else long(3)}), version)
        is NOTHING
    )
    assert world.broker.partitions.get("t", 0).end_offset == 0 and world.broker.partitions.get("t", 1).end_offset > 0
    finish(world)
    assert rows(peer.answers[-1]) == [(0, 0, 0), (1, 0, 0)]
    assert threads == ["offload"] and world.broker.partitions.get("t", 0).written_end_offset == 300


def test_batches_for_a_plain_topic_are_not_checked(world, peer, threads):
    world.create_topic("t")
    assert rows(peer.ask(produce("t", {0: long()}), 8)) == [(0, 0, 0)] and threads == []


def test_a_refused_batch_has_an_error_and_the_others_are_appended(world, peer):
    world.create_topic("t", 3, cleanup_policy="compact")
    assert peer.ask(produce("t", {0: long(key=None), 1: long(), 2: long(3)}), 8) is NOTHING
    finish(world)
    assert rows(peer.answers[-1]) == [(0, errors.INVALID_RECORD, -1), (1, 0, 0), (2, 0, 0)]
    assert len(peer.answers[-1].responses[0].partition_responses[0].record_errors) == 300


def test_requests_behind_it_keep_their_order(world, peer):
    world.create_topic("t", cleanup_policy="compact")
    peer.send(produce("t", {0: long()}), 8)
    peer.send(produce("t", {0: long(3)}), 8)
    assert peer.answers == []
    finish(world)
    assert [rows(answer) for answer in peer.answers] == [[(0, 0, 0)], [(0, 0, 300)]]


def test_acks_0_is_checked_on_the_loop(world, peer):
    world.create_topic("t", cleanup_policy="compact")
    peer.send(produce("t", {0: long()}, acks=0), 8)
    assert world.broker.partitions.get("t", 0).written_end_offset == 300 and peer.closed is None


def test_a_topic_that_is_deleted_during_the_check_is_an_error(world, peer):
    from pykafkad.wire import messages

    world.create_topic("t", cleanup_policy="compact")
    peer.send(produce("t", {0: long()}), 8)
    world.connect().ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
    finish(world)
    assert rows(peer.answers[-1]) == [(0, errors.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_a_connection_that_ends_during_the_check_gets_no_answer(world, peer):
    world.create_topic("t", cleanup_policy="compact")
    peer.send(produce("t", {0: long()}), 8)
    peer.end()
    finish(world)
    assert peer.answers == [] and world.broker.partitions.get("t", 0).written_end_offset == 300


def test_only_batches_with_many_records_are_long(monkeypatch):
    """A small batch with a false record count is not long."""
    assert not append_rules.is_long(memoryview(long(100))) and append_rules.is_long(memoryview(long(101)))
    lying = bytearray(long(3))
    lying[57:61] = (1_000_000).to_bytes(4, "big")
    assert not append_rules.is_long(memoryview(lying)) and not append_rules.is_long(memoryview(b"short"))
