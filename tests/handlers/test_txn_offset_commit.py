"""TxnOffsetCommit: offsets in transactions, from the request to readers."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.coordinator.partitioning import partition_for
from pykafkad.wire import messages
from tests.handlers.transactions import Coordinator, marker, write_markers

UNSTABLE = errors.UNSTABLE_OFFSET_COMMIT
PLACE = ("__consumer_offsets", partition_for("g", 3))


@pytest.fixture
def coordinator(world, peer):
    world.create_topic("t", 2)
    peer.ask(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    world.turn()
    made = world.broker.services.transactions = Coordinator()
    return made


def request(*places, offset=5, **fields):
    of = messages.TxnOffsetCommitRequest
    topics = [
        of.TxnOffsetCommitRequestTopic(
            name=name, partitions=[of.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)]
        )
        for name, index in places or [("t", 0)]
    ]
    return of(
        **{"transactional_id": "tx", "group_id": "g", "producer_id": 1, "producer_epoch": 0} | fields, topics=topics
    )


def codes(answer):
    return [(topic.name, each.partition_index, each.error_code) for topic in answer.topics for each in topic.partitions]


def commit(peer, version, *places, **fields):
    return [code for _, _, code in codes(peer.ask(request(*places, **fields), version))]


def fetched(peer, stable=True, partition=0):
    of = messages.OffsetFetchRequest
    topic = of.OffsetFetchRequestTopics(name="t", partition_indexes=[partition])
    group = of.OffsetFetchRequestGroup(group_id="g", topics=[topic])
    (row,) = peer.ask(of(groups=[group], require_stable=stable), 8).groups[0].topics[0].partitions
    return row.error_code or row.committed_offset


@pytest.mark.parametrize(("version", "verify_only"), [(0, True), (4, True), (5, False)])
def test_offsets_take_effect_with_the_marker(world, peer, coordinator, version, verify_only):
    assert commit(peer, version, ("t", 0), ("t", 1)) == [0, 0]
    assert coordinator.asked == [("tx", 1, 0, [PLACE], verify_only)]
    assert (fetched(peer), fetched(peer, stable=False)) == (UNSTABLE, -1)
    assert commit(peer, version, ("t", 0), offset=6) == [0]
    assert len(coordinator.asked) == 1, "the transaction is ongoing in the partition"
    assert write_markers(peer, marker(PLACE)) == {(1, *PLACE): 0}
    assert (fetched(peer), fetched(peer, partition=1)) == (6, 5)


def test_an_aborted_transaction_commits_nothing(peer, coordinator):
    commit(peer, 5)
    write_markers(peer, marker(PLACE, commit=False))
    assert fetched(peer) == -1


def test_transactions_survive_a_restart(world, peer, coordinator):
    commit(peer, 5)
    world.stop()
    world = world.restart()
    peer = world.connect()
    for _ in range(20):
        world.turn()
    assert fetched(peer) == UNSTABLE
    write_markers(peer, marker(PLACE))
    assert fetched(peer) == 5
    world.stop()
    world = world.restart()
    peer = world.connect()
    for _ in range(20):
        world.turn()
    assert fetched(peer) == 5
    world.stop()


def test_absent_partitions_come_first_and_each_topic_once(peer, coordinator):
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    answer = peer.ask(request(("t", 0), ("x", 0), ("t", 9)), 5)
    assert codes(answer) == [("x", 0, unknown), ("t", 9, unknown), ("t", 0, 0)]
    assert commit(peer, 5, ("x", 0)) == [unknown]


@pytest.mark.parametrize(
    ("version", "code", "told"),
    [
        (5, errors.INVALID_PRODUCER_ID_MAPPING, errors.INVALID_PRODUCER_ID_MAPPING),
        (3, errors.TRANSACTION_ABORTABLE, errors.INVALID_TXN_STATE),
        (4, errors.TRANSACTION_ABORTABLE, errors.TRANSACTION_ABORTABLE),
        (5, errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH),
        (5, errors.CONCURRENT_TRANSACTIONS, errors.CONCURRENT_TRANSACTIONS),
        (2, errors.COORDINATOR_LOAD_IN_PROGRESS, errors.COORDINATOR_LOAD_IN_PROGRESS),
        (1, errors.COORDINATOR_LOAD_IN_PROGRESS, errors.COORDINATOR_NOT_AVAILABLE),
        (5, errors.NETWORK_EXCEPTION, errors.COORDINATOR_LOAD_IN_PROGRESS),
        (5, errors.NOT_COORDINATOR, errors.NOT_COORDINATOR),
    ],
)
def test_what_the_transaction_coordinator_says_is_told(peer, coordinator, version, code, told):
    coordinator.code = code
    assert commit(peer, version) == [told]
    assert fetched(peer) == -1


def test_a_marker_while_the_coordinator_is_asked_refuses_the_commit(world, peer, coordinator):
    other = world.connect()
    for commits in (False, True):
        coordinator.code = None
        peer.answers.clear()
        peer.send(request(producer_epoch=int(commits)), 4)
        assert peer.answers == []
        write_markers(other, marker(PLACE, commit=commits, epoch=int(commits)))
        coordinator.answer(0)
        world.turn()
        assert codes(peer.answers[0]) == [("t", 0, errors.INVALID_TXN_STATE)]
    assert fetched(other) == -1


def test_an_older_epoch_is_refused_without_a_question(peer, coordinator):
    assert commit(peer, 5, producer_epoch=3) == [0]
    assert commit(peer, 5, producer_epoch=2) == [errors.INVALID_PRODUCER_EPOCH]
    assert len(coordinator.asked) == 1


def test_the_group_is_checked_after_the_transaction(peer, coordinator):
    assert commit(peer, 5, generation_id=3, member_id="m") == [errors.ILLEGAL_GENERATION]
    assert commit(peer, 5, group_id="") == [errors.INVALID_GROUP_ID]
    coordinator.code = errors.INVALID_TXN_STATE
    assert commit(peer, 5, generation_id=3, member_id="m") == [errors.INVALID_TXN_STATE]


def test_a_group_that_is_being_loaded_is_told_apart(world, peer, coordinator):
    runner = world.broker.groups.runner_of(PLACE[1])
    runner.is_loading = True
    assert commit(peer, 2) == [errors.COORDINATOR_LOAD_IN_PROGRESS]
    assert commit(peer, 1) == [errors.COORDINATOR_NOT_AVAILABLE]
    runner.is_loading = False
    assert commit(peer, 1) == [0]


def test_verification_can_be_switched_off_for_older_clients(world, peer, coordinator):
    world.broker.settings.set_dynamic({"transaction.partition.verification.enable": "false"}, {})
    assert commit(peer, 4) == [0]
    assert coordinator.asked == []


def test_without_offsets_of_the_coordinator_nobody_coordinates(world, peer):
    world.create_topic("t")
    assert [commit(peer, version) for version in (0, 5)] == [[errors.COORDINATOR_NOT_AVAILABLE]] * 2
