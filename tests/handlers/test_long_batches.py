"""Produce with batches of so many records that opening them would keep the loop: they are opened on another thread."""

import pytest

from pykafkad import errors
from pykafkad.handlers import produce as produce_handler
from pykafkad.log import append_rules
from pykafkad.wire.batch import build_batch
from tests.handlers.requests import NOW_MS, batch, produce
from tests.simulation.world import NOTHING


@pytest.fixture(autouse=True)
def threads(world, monkeypatch):
    """Where batches are opened: the names of the threads; more than 100 records count as long."""
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
def test_opened_off_the_loop_and_appended_on_it(world, peer, threads, configs, version):
    world.create_topic("t", 2, **configs)
    assert (
        peer.ask(produce("t", {0: long(), 1: batch(b"short") if "cleanup_policy" not in configs else long(3)}), version)
        is NOTHING
    )
    assert world.broker.partitions.get("t", 0).end_offset == 0 and world.broker.partitions.get("t", 1).end_offset > 0
    finish(world)
    assert rows(peer.answers[-1]) == [(0, 0, 0), (1, 0, 0)]
    assert threads == ["offload"] and world.broker.partitions.get("t", 0).written_end_offset == 300


def test_a_plain_topic_opens_nothing(world, peer, threads):
    world.create_topic("t")
    assert rows(peer.ask(produce("t", {0: long()}), 8)) == [(0, 0, 0)] and threads == []


def test_what_is_refused_is_told_and_the_rest_appended(world, peer):
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


def test_without_acks_nobody_waits(world, peer):
    world.create_topic("t", cleanup_policy="compact")
    peer.send(produce("t", {0: long()}, acks=0), 8)
    assert world.broker.partitions.get("t", 0).written_end_offset == 300 and peer.closed is None


def test_a_topic_that_is_deleted_meanwhile(world, peer):
    from pykafkad.wire import messages

    world.create_topic("t", cleanup_policy="compact")
    peer.send(produce("t", {0: long()}), 8)
    world.connect().ask(messages.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 4)
    finish(world)
    assert rows(peer.answers[-1]) == [(0, errors.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_a_connection_that_is_gone_meanwhile_is_not_answered(world, peer):
    world.create_topic("t", cleanup_policy="compact")
    peer.send(produce("t", {0: long()}), 8)
    peer.end()
    finish(world)
    assert peer.answers == [] and world.broker.partitions.get("t", 0).written_end_offset == 300


def test_the_limit_is_what_keeps_the_loop_for_a_moment_only(monkeypatch):
    """A lying count in a small batch is no long batch."""
    assert not append_rules.is_long(memoryview(long(100))) and append_rules.is_long(memoryview(long(101)))
    lying = bytearray(long(3))
    lying[57:61] = (1_000_000).to_bytes(4, "big")
    assert not append_rules.is_long(memoryview(lying)) and not append_rules.is_long(memoryview(b"short"))
