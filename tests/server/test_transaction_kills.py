"""SIGKILL at every write of a transaction's end: after the restart it is wholly there or wholly not."""

from __future__ import annotations

import pytest

from pykafkad.errors import name
from pykafkad.wire import messages
from pykafkad.wire.batch import parse_header
from pykafkad.wire.records import iterate_records
from tests import seeds
from tests.handlers.requests import batch, fetch, produce
from tests.handlers.transaction_requests import Producer
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World

PARTITIONS = 3
GROUP = "g"


class Killed(BaseException):
    """The process is gone in the middle of a write."""


class KillingDisk(MemoryDisk):
    """Its process dies before the write that `writes_left` counts to; None: never."""

    def __init__(self):
        super().__init__()
        self.writes_left = None

    def _call(self, operation, path, data=b""):
        if operation == "write" and self.writes_left is not None:
            if not self.writes_left:
                raise Killed
            self.writes_left -= 1
        return super()._call(operation, path, data)


def opened(disk):
    world = World("/data", disk=disk)
    return world, world.connect()


def within(producer, topic="t"):
    """Add a batch to each partition, and a group's offset, to the producer's transaction."""
    ids = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch, "base_sequence": 0}
    rows = {index: batch(b"%d" % index, is_transactional=True, **ids) for index in range(PARTITIONS)}
    answer = producer.peer.ask(produce(topic, rows, transactional_id=producer.transactional_id), 12)
    assert [row.error_code for row in answer.responses[0].partition_responses] == [0] * PARTITIONS
    of = messages.TxnOffsetCommitRequest
    offset = of.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    topics = [of.TxnOffsetCommitRequestTopic(name=topic, partitions=[offset])]
    answer = producer.peer.ask(
        of(
            transactional_id=producer.transactional_id,
            group_id=GROUP,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=topics,
        ),
        5,
    )
    assert answer.topics[0].partitions[0].error_code == 0


def find_groups(world, peer):
    for _ in range(20):
        answer = peer.ask(messages.FindCoordinatorRequest(key=GROUP), 3)
        if not answer.error_code and not world.broker.groups.is_loading:
            return
        world.turn()
    raise AssertionError(answer)


def values_in(data):
    """The values of all records that are no markers."""
    found, view = [], memoryview(data)
    while view:
        header = parse_header(view)
        if not header.is_control:
            found += [bytes(record.value) for record in iterate_records(view, header)]
        view = view[header.size_bytes :]
    return found


def seen(world, peer):
    """What a reader of committed records sees: values by partition, and the group's offset."""
    answer = peer.ask(fetch("t", dict.fromkeys(range(PARTITIONS), 0), isolation_level=1), 11)
    values = []
    for row in answer.responses[0].partitions:
        aborted = {each.producer_id for each in row.aborted_transactions or ()}
        values.append([] if aborted else values_in(bytes(row.records or b"")))
    of = messages.OffsetFetchRequest
    topics = [of.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    group = of.OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
    (row,) = peer.ask(of(groups=[group], require_stable=True), 8).groups[0].topics[0].partitions
    return values, (name(row.error_code), row.committed_offset)


def settled(world, producer):
    """The state of the transaction once nothing of its end is left to do."""
    for _ in range(20):
        state = producer.state()
        if state not in ("PrepareCommit", "PrepareAbort"):
            return state
        world.advance(0.2)
    raise AssertionError(state)


WHOLE = [[b"%d" % index] for index in range(PARTITIONS)], ("NONE", 7)
NOTHING = [[] for _ in range(PARTITIONS)], ("NONE", -1)


def end_with_a_kill(writes_left, commit, version):
    """Open a transaction, kill the broker at a write of its end, and check what is there after the restart. Whether it
    was killed, and whether the producer was answered before."""
    disk = KillingDisk()
    world, peer = opened(disk)
    producer = Producer(world, peer).create_topic(partitions=PARTITIONS).find()
    find_groups(world, peer)
    assert producer.init() == "NONE"
    within(producer)
    request = messages.EndTxnRequest(
        transactional_id=producer.transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commit,
    )
    before = len(peer.answers)
    disk.writes_left = writes_left
    was_killed = False
    try:
        peer.send(request, version)
        for _ in range(5):
            world.advance(0.1)
    except Killed:
        was_killed = True
    disk.writes_left = None
    answer = peer.answers[before] if len(peer.answers) > before else None
    assert answer is None or answer.error_code == 0
    disk.kill()
    world, peer = opened(disk)
    producer.world, producer.peer = world, peer
    producer.find()
    find_groups(world, peer)
    state = settled(world, producer)
    ended = "CompleteCommit" if commit else "CompleteAbort"
    assert state in (ended, "Ongoing") and (answer is None or state == ended)
    if state == "Ongoing":
        values, (error, offset) = seen(world, peer)
        assert (values, error) == (NOTHING[0], "UNSTABLE_OFFSET_COMMIT"), (values, error, offset)
        assert producer.init() == "CONCURRENT_TRANSACTIONS"
        assert settled(world, producer) == "CompleteAbort"
    assert seen(world, peer) == (WHOLE if state == "CompleteCommit" else NOTHING)
    # The producer's next transaction is not disturbed.
    assert producer.init() == "NONE"
    assert producer.add(0) == ["NONE"]
    assert producer.end(commit) == "NONE"
    world.stop()
    return was_killed, answer is not None


@pytest.mark.parametrize("version", seeds.sampled([5, 4], 2))
@pytest.mark.parametrize("commit", seeds.sampled([True, False], 2))
def test_a_kill_at_each_write_of_an_end(commit, version):
    """One more write is done in each round, until the end is whole."""
    outcomes = []
    while not outcomes or outcomes[-1][0]:
        outcomes.append(end_with_a_kill(len(outcomes), commit, version))
    # The decision, a marker in each partition and in the group's, the end.
    assert len(outcomes) > PARTITIONS + 3
    assert outcomes[-1] == (False, True)
