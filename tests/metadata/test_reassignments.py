"""Reassignments, elections, and the partition changes behind both, in a cluster of brokers that exist only as
registrations."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.effects import Append
from pykafkad.metadata import events, partition_changes, placement, reassignments, record_codec
from pykafkad.metadata.brokers import Endpoint
from pykafkad.wire import messages
from tests.metadata.cluster import DIRECTORY_ID, Cluster, facts

Alter = messages.AlterPartitionReassignmentsRequest
Create = messages.CreateTopicsRequest
Elect = messages.ElectLeadersRequest


def directory(broker):
    return bytes([broker]) * 16


@pytest.fixture
def cluster():
    """Brokers 1 to 4 are active. The topic `t` has replicas on 1, 2 and 3."""
    made = Cluster()
    for broker in (2, 3, 4):
        made.submit(
            events.RegisterBroker(broker, b"b" * 16, [Endpoint("PLAINTEXT", "localhost", 9092)], [directory(broker)])
        )
        made.submit(events.UnfenceBroker(broker, made.image.brokers[broker].epoch))
    assignment = Create.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2, 3])
    made.submit(
        events.CreateTopics(
            "token",
            [Create.CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment])],
        )
    )
    return made


def reassign(cluster, replicas, index=0, name="t", **fields):
    partition = Alter.ReassignablePartition(partition_index=index, replicas=replicas)
    request = Alter(topics=[Alter.ReassignableTopic(name=name, partitions=[partition])], **fields)
    row = cluster.submit(events.AlterPartitionReassignments("token", request)).responses[0].partitions[0]
    return row.error_code


def state(cluster):
    return cluster.image.partition("t", 0)


def change(cluster, **targets):
    """Change the partition by a record."""
    topic = cluster.image.topics["t"]
    made = partition_changes.PartitionChange(cluster.image, cluster.settings, topic, topic.partitions[0])
    for name, value in targets.items():
        setattr(made, name, value)
    record = made.record()
    if record is not None:
        cluster.perform([Append(record_codec.LOG, [record])])
    return record


def fence(cluster, broker):
    record = record_codec.record(messages.FenceBrokerRecord(id=broker, epoch=cluster.image.brokers[broker].epoch))
    cluster.perform([Append(record_codec.LOG, [record])])


def elect(cluster, election, topics=None, version=2):
    if topics is not None:
        topics = [Elect.TopicPartitions(topic=name, partitions=indexes) for name, indexes in topics]
    return cluster.submit(events.ElectLeaders("token", election, topics, version))


def test_a_reassignment_begins_is_listed_and_ends_when_its_replicas_are_in_sync(cluster):
    assert reassign(cluster, [4, 1]) == errors.NONE
    now = state(cluster)
    assert now.replicas == (4, 1, 2, 3) and now.adding_replicas == (4,) and now.removing_replicas == (2, 3)
    assert now.directories == (directory(4), DIRECTORY_ID, directory(2), directory(3))
    listed = reassignments.ongoing(cluster.image, None).topics
    assert [(topic.name, [row.partition_index for row in topic.partitions]) for topic in listed] == [("t", [0])]
    assert listed[0].partitions[0].adding_replicas == [4] and listed[0].partitions[0].removing_replicas == [2, 3]
    epoch = now.leader_epoch
    change(cluster, isr=[1, 2, 3, 4])
    now = state(cluster)
    assert now.replicas == (4, 1) and now.isr == (1, 4) and not now.adding_replicas and not now.removing_replicas
    assert now.leader == 1 and now.leader_epoch == epoch + 1, "who is no replica any more is shut out by a new epoch"
    assert reassignments.ongoing(cluster.image, None).topics == []
    assert facts(cluster.restart().image.topics["t"]) == facts(cluster.image.topics["t"])


def test_a_reassignment_that_shrinks_a_partition_waits_for_all_replicas_that_stay(cluster):
    """Otherwise the partition would have fewer replicas in sync than before."""
    change(cluster, isr=[1, 2])
    reassign(cluster, [1, 3])
    assert state(cluster).removing_replicas == (2,) and set(state(cluster).replicas) == {1, 2, 3}
    change(cluster, isr=[1, 2, 3])
    assert state(cluster).replicas == (1, 3) and state(cluster).isr == (1, 3)


def test_another_order_of_the_same_replicas_is_done_at_once(cluster):
    epoch = state(cluster).leader_epoch
    assert reassign(cluster, [3, 1, 2]) == errors.NONE
    now = state(cluster)
    assert now.replicas == (3, 1, 2) and now.leader == 1 and now.leader_epoch == epoch
    count = len(cluster.disk.batches)
    assert reassign(cluster, [3, 1, 2]) == errors.NONE
    assert len(cluster.disk.batches) == count, "what is so already writes no record"


def test_a_cancelled_reassignment_restores_the_old_replicas(cluster):
    assert reassign(cluster, None) == errors.NO_REASSIGNMENT_IN_PROGRESS
    reassign(cluster, [1, 4])
    assert reassign(cluster, None) == errors.NONE
    now = state(cluster)
    assert set(now.replicas) == {1, 2, 3} and now.isr == (1, 2, 3) and not now.adding_replicas


@pytest.mark.parametrize("allowed, code", [("false", errors.INVALID_REPLICA_ASSIGNMENT), ("true", errors.NONE)])
def test_a_cancellation_that_may_lose_records_needs_unclean_elections(cluster, allowed, code):
    """Only a new replica is in sync, so the old replicas would need an unclean election."""
    cluster.submit(events.RegisterBroker(5, b"b" * 16, [Endpoint("PLAINTEXT", "localhost", 9092)], [directory(5)]))
    cluster.submit(events.UnfenceBroker(5, cluster.image.brokers[5].epoch))
    cluster.submit(
        events.AlterConfigs("token", [(2, "t", [("unclean.leader.election.enable", 0, allowed)])], incremental=True)
    )
    reassign(cluster, [4, 5, 1])
    change(cluster, isr=[4])
    assert state(cluster).adding_replicas == (4, 5) and state(cluster).leader == 4
    assert reassign(cluster, None) == code
    if code == errors.NONE:
        assert state(cluster).isr == (1,) and state(cluster).leader == 1 and set(state(cluster).replicas) == {1, 2, 3}


@pytest.mark.parametrize(
    "replicas, code",
    [
        ([], errors.INVALID_REPLICA_ASSIGNMENT),
        ([9], errors.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], errors.INVALID_REPLICA_ASSIGNMENT),
        ([1, 2], errors.INVALID_REPLICATION_FACTOR),
        ([1, 2, 4], errors.NONE),
    ],
)
def test_the_number_of_replicas_changes_only_where_that_is_allowed(cluster, replicas, code):
    assert reassign(cluster, replicas, allow_replication_factor_change=False) == code


def test_an_unknown_partition_cannot_be_moved(cluster):
    for index, name in ((1, "t"), (-1, "t"), (0, "u")):
        assert reassign(cluster, [1], index, name) == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_a_request_for_too_many_partitions_moves_none(cluster, monkeypatch):
    monkeypatch.setattr(record_codec, "MAX_RECORDS_PER_CHANGE", 0)
    assert reassign(cluster, [1, 4]) == errors.POLICY_VIOLATION
    assert state(cluster).replicas == (1, 2, 3)


def test_a_preferred_election_makes_the_first_replica_leader(cluster):
    fence(cluster, 1)
    change(cluster)
    assert state(cluster).leader == 2
    rows = elect(cluster, partition_changes.PREFERRED, [("t", [0])]).replica_election_results
    assert rows[0].partition_result[0].error_code == errors.PREFERRED_LEADER_NOT_AVAILABLE
    cluster.submit(
        events.RegisterBroker(
            1,
            b"c" * 16,
            [Endpoint("PLAINTEXT", "localhost", 9092)],
            [DIRECTORY_ID],
            previous_broker_epoch=cluster.image.brokers[1].epoch,
        )
    )
    cluster.submit(events.UnfenceBroker(1, cluster.image.brokers[1].epoch))
    rows = elect(cluster, partition_changes.PREFERRED).replica_election_results
    assert [(row.partition_id, row.error_code) for row in rows[0].partition_result] == [(0, errors.NONE)]
    assert state(cluster).leader == 1
    rows = elect(cluster, partition_changes.PREFERRED).replica_election_results
    assert rows[0].topic == "t" and rows[0].partition_result == []


def test_an_unclean_election_makes_an_active_replica_leader(cluster):
    """No replica in sync is active. Broker 3 is not in sync, and leads only after an unclean election."""
    change(cluster, isr=[1])
    fence(cluster, 1)
    change(cluster)
    now = state(cluster)
    assert now.leader == -1 and now.last_known_elr == (1,)
    rows = elect(cluster, partition_changes.UNCLEAN, [("t", [0, 0, 5]), ("u", [0])]).replica_election_results
    assert [row.error_code for row in rows[0].partition_result] == [
        errors.NONE,
        errors.NONE,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert rows[1].partition_result[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    now = state(cluster)
    assert now.leader == 2 and now.isr == (2,) and now.leader_recovery_state == 1 and now.last_known_elr == ()
    rows = elect(cluster, partition_changes.UNCLEAN, [("t", [0])]).replica_election_results
    assert rows[0].partition_result[0].error_code == errors.ELECTION_NOT_NEEDED


def test_no_leader_is_elected_when_no_replica_is_active(cluster):
    for broker in (1, 2, 3):
        fence(cluster, broker)
        change(cluster)
    rows = elect(cluster, partition_changes.UNCLEAN, [("t", [0])]).replica_election_results
    assert rows[0].partition_result[0].error_code == errors.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_a_replica_that_leaves_an_isr_below_the_minimum_stays_eligible(cluster):
    """No record was committed below min.insync.replicas, so the replica has all committed records (KIP-966)."""
    cluster.submit(events.AlterConfigs("token", [(2, "t", [("min.insync.replicas", 0, "2")])], incremental=True))
    change(cluster, isr=[1, 2])
    assert state(cluster).elr == ()
    change(cluster, isr=[1])
    assert state(cluster).elr == (2,)
    change(cluster, isr=[1, 3])
    assert state(cluster).elr == ()


def test_a_broker_that_is_a_replica_no_longer_is_not_an_eligible_leader(cluster):
    """It has deleted its log. When it is a replica again, it must not lead without a record."""
    cluster.submit(events.AlterConfigs("token", [(2, "t", [("min.insync.replicas", 0, "2")])], incremental=True))
    assert reassign(cluster, [1, 4, 3]) == errors.NONE
    change(cluster, isr=[2])
    change(cluster, isr=[2, 4])
    now = state(cluster)
    assert (now.replicas, now.isr, now.elr, now.leader) == ((1, 4, 3), (4,), (1, 3), 4)
    for broker in (1, 3, 4):
        fence(cluster, broker)
    change(cluster, isr=[])
    assert state(cluster).elr == (1, 3, 4) and state(cluster).leader == -1
    assert reassign(cluster, [2, 4, 1]) == errors.NONE
    assert state(cluster).leader == -1


def test_a_replica_in_a_failed_directory_does_not_lead(cluster):
    def may_lead(broker):
        return partition_changes.may_lead(cluster.image, state(cluster), broker)

    assert may_lead(2)
    cluster.image.brokers[2].log_dirs = [directory(9)]
    assert not may_lead(2) and not may_lead(77)


@pytest.mark.parametrize("version", [0, 2])
def test_elections_beyond_one_batch_are_refused(cluster, monkeypatch, version):
    reassign(cluster, [2, 1, 3])
    monkeypatch.setattr(record_codec, "MAX_RECORDS_PER_CHANGE", 0)
    answer = elect(cluster, partition_changes.PREFERRED, [("t", [0])], version)
    assert answer.error_code == (errors.POLICY_VIOLATION if version else errors.NONE)
    assert answer.replica_election_results[0].partition_result[0].error_code == errors.POLICY_VIOLATION
    assert state(cluster).leader == 1


def test_the_broker_chooses_the_directory_of_a_replica_when_it_has_several():
    """A broker with one directory has no choice (KIP-858)."""
    assert placement.directory(None) == placement.UNASSIGNED_DIRECTORY
    cluster = Cluster()
    broker = cluster.image.brokers[1]
    assert placement.directory(broker) == DIRECTORY_ID
    broker.log_dirs = [directory(1), directory(2)]
    assert placement.directory(broker) == placement.UNASSIGNED_DIRECTORY
    broker.log_dirs = []
    assert placement.directory(broker) == placement.MIGRATING_DIRECTORY
    assert placement.has_online_directory(broker, directory(5))
    assert not placement.has_online_directory(broker, placement.LOST_DIRECTORY)
