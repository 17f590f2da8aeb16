"""The partitions of brokers that start, stop and fail, by Kafka's rules, also in logs that Kafka has written."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pykafkad.effects import Append
from pykafkad.metadata import events, record_codec, registrations
from pykafkad.metadata.brokers import IN_CONTROLLED_SHUTDOWN
from pykafkad.metadata.partition_changes import PartitionChange, broker_changes, may_lead
from pykafkad.metadata.placement import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from pykafkad.wire import messages
from tests.metadata.cluster import DIRECTORY_ID, NODE_ID, Cluster
from tests.metadata.test_controller import create, topic

OTHER = 2


def append(cluster, *values):
    """Write records to the log, as another controller would."""
    cluster.perform([Append(record_codec.LOG, [record_codec.record(value) for value in values])])


def stopped_by_kafka(cluster, name="a"):
    """The records of a controlled shutdown of Kafka: no leader, an empty ISR, and the broker in the ELR (KIP-966)."""
    made = cluster.image.topics[name]
    broker = cluster.image.brokers[NODE_ID]
    change = messages.BrokerRegistrationChangeRecord
    append(cluster, change(broker_id=NODE_ID, broker_epoch=broker.epoch, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN))
    for state in made.partitions:
        fields = {"isr": [], "leader": -1, "eligible_leader_replicas": [1], "last_known_elr": [1]}
        append(cluster, messages.PartitionChangeRecord(partition_id=state.index, topic_id=made.id, **fields))
    append(cluster, change(broker_id=NODE_ID, broker_epoch=broker.epoch, fenced=1))


def picture(state):
    return (
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.isr,
        state.elr,
        state.last_known_elr,
        state.leader_recovery_state,
    )


def test_after_a_clean_stop_of_kafka_the_eligible_broker_leads():
    cluster = Cluster()
    create(cluster, topic("a", 2))
    stopped_by_kafka(cluster)
    assert [picture(state) for state in cluster.image.topics["a"].partitions] == [(-1, 1, 1, (), (1,), (1,), 0)] * 2
    again = cluster.restart(clean=True)
    assert [picture(state) for state in again.image.topics["a"].partitions] == [(1, 2, 2, (1,), (), (), 0)] * 2
    assert again.image.brokers[NODE_ID].active


def test_after_an_unclean_stop_the_last_known_leader_leads_and_recovers():
    """It may have lost records, so it is not eligible any more. But it is the only replica."""
    cluster = Cluster()
    create(cluster, topic("a", 1))
    again = cluster.restart(clean=False)
    assert picture(again.image.topics["a"].partitions[0]) == (1, 2, 2, (1,), (), (), 1)
    stopped_by_kafka(again)
    once_more = again.restart(clean=False)
    assert picture(once_more.image.topics["a"].partitions[0])[:6] == (1, 4, 5, (1,), (), ())


def test_a_start_after_one_that_was_interrupted_before_unfencing_succeeds():
    cluster = Cluster()
    create(cluster, topic("a", 1))
    listener = list(cluster.image.brokers[NODE_ID].endpoints.values())
    cluster.submit(events.RegisterBroker(NODE_ID, b"c" * 16, listener, [DIRECTORY_ID], previous_broker_epoch=-1))
    assert cluster.image.topics["a"].partitions[0].leader == -1
    again = cluster.restart(clean=False)
    assert again.image.topics["a"].partitions[0].leader == 1
    assert again.image.topics["a"].partitions[0].isr == (1,)


def with_other_broker(cluster):
    """Register a second broker, which leads a partition with two replicas."""
    record = messages.RegisterBrokerRecord
    ends = [record.BrokerEndpoint(name="PLAINTEXT", host="h", port=1, security_protocol=0)]
    append(
        cluster,
        record(
            broker_id=OTHER,
            incarnation_id=b"o" * 16,
            broker_epoch=77,
            end_points=ends,
            fenced=False,
            log_dirs=[b"o" * 16],
        ),
    )
    made = messages.TopicRecord(name="two", topic_id=b"t" * 16)
    row = {
        "topic_id": b"t" * 16,
        "replicas": [OTHER, NODE_ID],
        "directories": [b"o" * 16, DIRECTORY_ID],
        "leader": OTHER,
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    both = messages.PartitionRecord(partition_id=0, isr=[OTHER, NODE_ID], **row)
    alone = messages.PartitionRecord(partition_id=1, isr=[OTHER], **row)
    append(cluster, made, both, alone)


def test_other_replicas_lead_the_partitions_of_a_failed_broker():
    cluster = Cluster()
    with_other_broker(cluster)
    cluster.submit(events.FenceBroker(OTHER, 76))
    assert not cluster.image.brokers[OTHER].fenced, "an older life of the broker"
    cluster.submit(events.FenceBroker(OTHER, 77))
    assert cluster.image.brokers[OTHER].fenced
    both, alone = cluster.image.topics["two"].partitions
    assert picture(both)[:6] == (NODE_ID, 1, 1, (NODE_ID,), (), ())
    assert picture(alone)[:6] == (-1, 1, 1, (), (OTHER,), (OTHER,))
    count = len(cluster.disk.batches)
    cluster.submit(events.FenceBroker(OTHER, 77))
    assert len(cluster.disk.batches) == count


def test_without_eligible_leaders_the_isr_never_becomes_empty():
    cluster = Cluster()
    with_other_broker(cluster)
    append(cluster, messages.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=0))
    cluster.submit(events.FenceBroker(OTHER, 77))
    assert picture(cluster.image.topics["two"].partitions[1])[:6] == (-1, 1, 1, (OTHER,), (), ())


def test_an_unclean_election_needs_the_topics_setting():
    cluster = Cluster()
    with_other_broker(cluster)
    append(
        cluster,
        messages.ConfigRecord(
            resource_type=2, resource_name="two", name="unclean.leader.election.enable", value="true"
        ),
    )
    cluster.submit(events.FenceBroker(OTHER, 77))
    alone = cluster.image.topics["two"].partitions[1]
    assert (alone.leader, alone.isr, alone.leader_recovery_state) == (NODE_ID, (NODE_ID,), 1)


@pytest.mark.parametrize(
    ("directory", "may"),
    [(DIRECTORY_ID, True), (UNASSIGNED_DIRECTORY, True), (LOST_DIRECTORY, False), (b"x" * 16, False)],
)
def test_a_broker_without_the_replicas_directory_may_not_lead(directory, may):
    cluster = Cluster()
    with_other_broker(cluster)
    state = cluster.image.topics["two"].partitions[0]
    state.directories = (b"o" * 16, directory)
    assert may_lead(cluster.image, state, NODE_ID) is may


def test_a_change_of_all_partitions_is_written_in_several_batches(monkeypatch):
    cluster = Cluster()
    create(cluster, topic("a", 5))
    monkeypatch.setattr(registrations, "RECORDS_AT_ONCE", 2)
    again = cluster.restart(clean=False)
    assert [state.leader for state in again.image.topics["a"].partitions] == [1] * 5
    assert again.image.brokers[NODE_ID].active
    changes = broker_changes(again.image, again.settings, lost=NODE_ID)
    assert [len(each.records) for each in registrations.in_batches(changes)] == [2, 2, 1]


@pytest.mark.parametrize("event", [events.FenceBroker, events.StopBroker])
def test_a_broker_of_many_partitions_goes_in_steps(monkeypatch, event):
    """No step looks at more than a few partitions, no append has more than its share, and the fence comes last."""
    cluster = Cluster()
    create(cluster, topic("a", 100))
    monkeypatch.setattr(registrations, "RECORDS_AT_ONCE", 30)
    looked_at, steps, record = [], [], PartitionChange.record
    monkeypatch.setattr(PartitionChange, "record", lambda self: looked_at.append(self) or record(self))
    asked = event(NODE_ID) if event is events.StopBroker else event(NODE_ID, cluster.image.brokers[NODE_ID].epoch)
    generator = cluster.controller.begin(asked)
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            appends = stop.value
            break
        steps.append(len(looked_at))
    assert max(after - before for before, after in pairwise([0, *steps, len(looked_at)])) <= 32
    sizes = [len(each.records) for each in appends]
    assert max(sizes) == 30 and sum(sizes) == 101 + (event is events.StopBroker)
    assert appends[-1].records[-1].value.fenced
    cluster.perform(appends)
    assert {state.leader for state in cluster.image.topics["a"].partitions} == {-1}


def test_a_broker_loses_leadership_at_a_clean_stop_and_gets_it_back_at_its_start():
    """A clean restart is two new leader epochs, as in Kafka. A Kafka that starts next need not wait until a session
    ends."""
    cluster = Cluster()
    create(cluster, topic("a", 2))
    cluster.submit(events.StopBroker(OTHER))
    cluster.submit(events.StopBroker(NODE_ID))
    broker = cluster.image.brokers[NODE_ID]
    assert broker.fenced and broker.in_controlled_shutdown
    assert [picture(state) for state in cluster.image.topics["a"].partitions] == [(-1, 1, 1, (), (1,), (1,), 0)] * 2
    again = cluster.restart(clean=True)
    assert again.image.brokers[NODE_ID].active
    assert [picture(state) for state in again.image.topics["a"].partitions] == [(1, 2, 2, (1,), (), (), 0)] * 2


def test_a_broker_that_leads_nothing_stops_with_one_record():
    cluster = Cluster()
    count = len(cluster.disk.batches)
    cluster.submit(events.StopBroker(NODE_ID))
    broker = cluster.image.brokers[NODE_ID]
    assert broker.fenced and not broker.in_controlled_shutdown
    assert len(cluster.disk.batches) == count + 1
    with_other_broker(cluster)
    cluster.submit(events.StopBroker(OTHER))
    both, alone = cluster.image.topics["two"].partitions
    assert cluster.image.brokers[OTHER].in_controlled_shutdown
    assert (both.isr, both.leader, alone.leader, alone.elr) == ((NODE_ID,), -1, -1, (OTHER,))
