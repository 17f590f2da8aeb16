"""Replay equals live: the image of a restarted node equals that of the node that wrote the log."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from pykafkad.metadata import events, record_codec
from pykafkad.metadata.configs import APPEND, DELETE, SET
from pykafkad.metadata.image import TYPE_BROKER, TYPE_TOPIC, Image
from pykafkad.wire import messages
from tests.metadata.cluster import Cluster, facts
from tests.metadata.test_controller import topic
from tests.seeds import examples

NAMES = st.sampled_from(["a", "b", "c.d", "c_d", "a/b", "__consumer_offsets"])
VALUES = st.sampled_from(["1", "1000", "compact", "delete", "x"])
CREATE = st.builds(lambda name, count, value: ("create", name, count, value), NAMES, st.integers(-1, 4), VALUES)
DELETE_TOPIC = st.builds(lambda name: ("delete", name), NAMES)
GROW = st.builds(lambda name, count: ("grow", name, count), NAMES, st.integers(1, 8))
ALTER = st.builds(
    lambda kind, name, key, operation, value: ("alter", kind, name, key, operation, value),
    st.sampled_from([TYPE_TOPIC, TYPE_BROKER]),
    st.sampled_from(["a", "b", "1", ""]),
    st.sampled_from(["retention.ms", "cleanup.policy", "log.retention.ms", "min.insync.replicas"]),
    st.sampled_from([SET, DELETE, APPEND]),
    VALUES,
)
OTHERS = st.sampled_from([("auto", "a"), ("ids",), ("restart", True), ("restart", False)])


def perform(cluster, step):
    match step:
        case ("create", name, count, value):
            cluster.submit(events.CreateTopics("t", [topic(name, count, 1, cleanup_policy=value)]))
            cluster.submit(events.CreateTopics("t", [topic(name, count, 1)]))
        case ("delete", name):
            found = cluster.image.topics.get(name)
            cluster.submit(events.DeleteTopics("t", {found.id if found else b"?" * 16: name}))
        case ("grow", name, count):
            part = messages.CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
            cluster.submit(events.CreatePartitions("t", [part]))
        case ("alter", kind, name, key, operation, value):
            value = None if operation == DELETE else value
            if kind == TYPE_TOPIC or not name or name.isdigit():
                cluster.submit(events.AlterConfigs("t", [(kind, name, [(key, operation, value)])], incremental=True))
        case ("auto", name):
            cluster.submit(events.AutoCreateTopics([name]))
        case ("ids",):
            cluster.submit(events.AllocateProducerIds("t", 1, 1))
        case ("restart", clean):
            return cluster.restart(clean=clean)
    return cluster


@settings(max_examples=examples(40), deadline=None)
@given(steps=st.lists(st.one_of(CREATE, DELETE_TOPIC, GROW, ALTER, OTHERS), max_size=25))
def test_replay_equals_live(steps):
    cluster = Cluster(offsets_topic_num_partitions="3")
    for step in steps:
        cluster = perform(cluster, step)
    replayed = Image()
    for epoch, batch in cluster.disk.batches:
        for key, value in batch:
            replayed.apply(record_codec.decode(key, value), epoch=epoch)
    assert facts(replayed) == facts(cluster.image)
    # The tables by name, id and collision key agree.
    image = cluster.image
    assert {found.id: name for name, found in image.topics.items()} == {
        key: found.name for key, found in image._topics_by_id.items()
    }
    assert all(None not in found.partitions and found.partitions for found in image.topics.values())


@pytest.mark.long
def test_ten_thousand_partitions_replay_fast_enough():
    """A start may take two seconds for them. To decode and apply a record takes a few microseconds; this test fails at
    fifty."""
    from time import process_time

    cluster = Cluster()
    for number in range(2):
        cluster.submit(events.CreateTopics("t", [topic(f"big{number}", 5000)], describable=frozenset()))
    records = [record for _, batch in cluster.disk.batches for record in batch]
    replayed = Image()
    begin = process_time()
    for key, value in records:
        replayed.apply(record_codec.decode(key, value))
    assert process_time() - begin < len(records) * 50e-6
    assert len(records) > 10_000
