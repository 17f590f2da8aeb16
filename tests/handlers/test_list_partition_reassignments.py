"""ListPartitionReassignments on a broker. tests/metadata/test_reassignments.py tests the list of reassignments."""

import pytest

from pykafkad.wire import messages

Request = messages.ListPartitionReassignmentsRequest


@pytest.mark.parametrize(
    "topics", [None, [], [Request.ListPartitionReassignmentsTopics(name="t", partition_indexes=[0, 7])]]
)
def test_one_broker_has_no_reassignments(world, peer, topics):
    world.create_topic("t")
    answer = peer.ask(Request(topics=topics), 0)
    assert (answer.error_code, answer.error_message, answer.topics) == (0, None, [])


def test_a_reassignment_is_listed(world, peer):
    world.create_topic("t")
    state = world.broker.image.partition("t", 0)
    state.adding_replicas = (2,)
    (topic,) = peer.ask(Request(topics=None), 0).topics
    assert topic.name == "t" and topic.partitions[0].adding_replicas == [2]
