"""AlterPartition in the controller: which proposals of an ISR are taken, and what they lead to."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.metadata import events
from pykafkad.metadata.partition_changes import RECOVERED, RECOVERING, UNCLEAN
from pykafkad.wire import messages
from tests.metadata.test_reassignments import change, cluster, reassign, state

__all__ = ["cluster"]

Asked = messages.AlterPartitionRequest


def propose(cluster, isr, *, broker=1, broker_epoch=None, version=3, topic_id=None, index=0, **fields):
    """The row of the answer. `isr` are brokers, or pairs of broker and epoch."""
    of = state(cluster)
    pairs = [each if isinstance(each, tuple) else (each, -1) for each in isr]
    data = Asked.PartitionData(
        partition_index=index,
        **{"leader_epoch": of.leader_epoch, "partition_epoch": of.partition_epoch, **fields},
    )
    if version >= 3:
        data.new_isr_with_epochs = [Asked.BrokerState(broker_id=each, broker_epoch=epoch) for each, epoch in pairs]
    else:
        data.new_isr = [each for each, _ in pairs]
    topic = Asked.TopicData(topic_id=topic_id or cluster.image.topics["t"].id, partitions=[data])
    epoch = cluster.image.brokers[broker].epoch if broker_epoch is None else broker_epoch
    request = Asked(broker_id=broker, broker_epoch=epoch, topics=[topic])
    answer = cluster.submit(events.AlterPartition("token", request, version))
    if answer.error_code:
        return answer
    (row,) = answer.topics[0].partitions
    return row


def epoch_of(cluster, broker):
    return cluster.image.brokers[broker].epoch


@pytest.mark.parametrize("version", [2, 3])
def test_a_proposal_is_taken_and_told(cluster, version):
    row = propose(cluster, [1, 2], version=version)
    assert (row.error_code, row.leader_id, row.leader_epoch, row.isr, row.partition_epoch) == (0, 1, 0, [1, 2], 1)
    assert list(state(cluster).isr) == [1, 2] and state(cluster).partition_epoch == 1
    row = propose(cluster, [(1, epoch_of(cluster, 1)), (2, -1), (3, epoch_of(cluster, 3))])
    assert row.error_code == 0 and list(state(cluster).isr) == [1, 2, 3]


def test_what_is_so_already_changes_nothing(cluster):
    row = propose(cluster, [1, 2, 3])
    assert (row.error_code, row.partition_epoch, row.isr) == (0, 0, [1, 2, 3])
    assert state(cluster).partition_epoch == 0


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"leader_epoch": 1}, errors.NOT_CONTROLLER),
        ({"partition_epoch": 6}, errors.NOT_CONTROLLER),
        ({"leader_epoch": -1}, errors.FENCED_LEADER_EPOCH),
        ({"leader_epoch": -1, "partition_epoch": 6}, errors.NOT_CONTROLLER),
        ({"partition_epoch": -1}, errors.INVALID_UPDATE_VERSION),
        ({"broker": 2}, errors.INVALID_REQUEST),
        ({"index": 1}, errors.UNKNOWN_TOPIC_OR_PARTITION),
        ({"index": -1}, errors.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic_id": b"?" * 16}, errors.UNKNOWN_TOPIC_ID),
        ({"broker_epoch": 1}, errors.STALE_BROKER_EPOCH),
        ({"leader_recovery_state": RECOVERING}, errors.INVALID_REQUEST),
    ],
)
def test_a_leader_that_knows_other_things_is_refused(cluster, fields, expected):
    assert propose(cluster, [1, 2], **fields).error_code == expected
    assert list(state(cluster).isr) == [1, 2, 3]


@pytest.mark.parametrize("isr", [[2, 3], [1, 4], [], [1, 2, 2]])
def test_an_isr_without_the_leader_or_with_strangers_is_refused(cluster, isr):
    assert propose(cluster, isr).error_code == errors.INVALID_REQUEST


def test_nobody_gets_in_who_is_fenced_stops_or_lives_another_life(cluster):
    propose(cluster, [1])
    assert propose(cluster, [1, (2, epoch_of(cluster, 2) - 1)]).error_code == errors.INELIGIBLE_REPLICA
    assert propose(cluster, [1, (2, epoch_of(cluster, 2) + 1)]).error_code == errors.INELIGIBLE_REPLICA
    cluster.submit(events.FenceBroker(3, epoch_of(cluster, 3)))
    assert propose(cluster, [1, 2, 3]).error_code == errors.INELIGIBLE_REPLICA
    cluster.submit(events.UnregisterBroker(None, 3))
    assert propose(cluster, [1, 2, 3]).error_code == errors.INELIGIBLE_REPLICA
    assert propose(cluster, [1, (2, epoch_of(cluster, 2))]).error_code == 0


def test_a_reassignment_ends_when_the_new_replicas_are_in_sync(cluster):
    assert reassign(cluster, [1, 2, 4]) == 0
    assert propose(cluster, [1, 2, 3, 4]).error_code == 0
    of = state(cluster)
    assert (list(of.replicas), sorted(of.isr), of.adding_replicas, of.removing_replicas) == (
        [1, 2, 4],
        [1, 2, 4],
        (),
        (),
    )
    assert of.leader_epoch > 0, "nobody fetches from the replica that is removed"


def test_a_reassignment_that_removes_the_leader_tells_it_so(cluster):
    assert reassign(cluster, [2, 3, 4]) == 0
    row = propose(cluster, [1, 2, 3, 4])
    assert (row.error_code, row.isr, row.partition_epoch) == (errors.NEW_LEADER_ELECTED, [], 0)
    assert state(cluster).leader == 2 and list(state(cluster).replicas) == [2, 3, 4]


def test_a_leader_elected_uncleanly_says_that_it_has_recovered(cluster):
    propose(cluster, [1])
    cluster.submit(events.FenceBroker(1, epoch_of(cluster, 1)))
    assert (state(cluster).leader, list(state(cluster).isr), list(state(cluster).elr)) == (-1, [], [1])
    change(cluster, lost=1)
    change(cluster, isr=[], election=UNCLEAN, acceptable=lambda broker: broker == 3)
    of = state(cluster)
    assert (of.leader, list(of.isr), of.leader_recovery_state) == (3, [3], RECOVERING)
    assert propose(cluster, [3, 2], broker=3, leader_recovery_state=RECOVERING).error_code == errors.INVALID_REQUEST
    row = propose(cluster, [3, 2], broker=3)
    assert (row.error_code, row.leader_recovery_state) == (0, RECOVERED)
    assert state(cluster).leader_recovery_state == RECOVERED
