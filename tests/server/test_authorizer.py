"""A broker with Kafka's authorizer: who is refused, and from when on."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.metadata.standard_authorizer import StandardAuthorizer
from pykafkad.wire import messages
from tests.handlers.requests import batch, fetch, produce
from tests.metadata.test_acls import chosen, entry
from tests.simulation.world import World

CLUSTER, READ, WRITE, CREATE, ALTER, DESCRIBE = 4, 3, 4, 5, 7, 8
DENY = 2


def guarded(path: Path, **settings: object) -> World:
    """A broker that asks the authorizer."""
    return World(path, authorizer_class_name=STANDARD_AUTHORIZER, **settings)


def produced(peer, topic: str = "t") -> int:
    """The error of a small batch."""
    return peer.ask(produce(topic, {0: batch(b"x")}), 8).responses[0].partition_responses[0].error_code


def fetched(peer, topic: str = "t") -> int:
    """The error of a small fetch."""
    return peer.ask(fetch(topic, {0: 0}), 4).responses[0].partitions[0].error_code


def add(peer, *entries) -> None:
    """Create ACLs."""
    answer = peer.ask(messages.CreateAclsRequest(creations=list(entries)), 3)
    assert [row.error_code for row in answer.results] == [0] * len(entries)


def remove(peer, **filter_fields: object) -> None:
    """Delete ACLs."""
    answer = peer.ask(messages.DeleteAclsRequest(filters=[chosen(**filter_fields)]), 3)
    assert answer.filter_results[0].error_code == 0


def anonymous(name: str, operation: int, **fields: object):
    """An entry for whoever has not logged in."""
    return entry(name, principal="User:ANONYMOUS", operation=operation, **fields)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """One on which everybody may do what no entry is about, so that it can be set up; with a topic `t`."""
    made = guarded(tmp_path, allow_everyone_if_no_acl_found="true")
    made.create_topic("t")
    return made


def test_nobody_may_do_anything_without_entries(tmp_path: Path) -> None:
    """But for the super users."""
    strict = guarded(tmp_path)
    peer = strict.connect()
    topic = messages.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    answer = peer.ask(messages.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
    assert answer.topics[0].error_code == errors.TOPIC_AUTHORIZATION_FAILED
    assert produced(peer) == errors.TOPIC_AUTHORIZATION_FAILED
    answer = peer.ask(messages.DescribeAclsRequest(resource_type_filter=1, pattern_type_filter=1, operation=1,
                                                   permission_type=1), 3)  # fmt: skip
    assert answer.error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    answer = peer.ask(messages.CreateAclsRequest(creations=[entry()]), 3)
    assert answer.results[0].error_code == errors.CLUSTER_AUTHORIZATION_FAILED and not strict.broker.image.acls
    strict.stop()
    root = guarded(tmp_path, super_users="User:root;User:ANONYMOUS")
    root.create_topic("t")
    add(root.connect(), entry())
    assert produced(root.connect()) == errors.NONE


def test_changed_entries_count_from_the_next_request_on(world: World) -> None:
    """Also on connections that were decided about before, on those of others, and for requests that the controller
    decides."""
    peer, other = world.connect(), world.connect()
    assert produced(peer) == produced(other) == fetched(peer) == errors.NONE
    add(peer, anonymous("t", WRITE))
    assert (produced(peer), fetched(peer)) == (errors.NONE, errors.TOPIC_AUTHORIZATION_FAILED)
    add(peer, anonymous("t", WRITE, permission_type=DENY))
    assert produced(peer) == produced(other) == errors.TOPIC_AUTHORIZATION_FAILED
    remove(other, permission_type=DENY)
    assert produced(peer) == produced(other) == errors.NONE
    add(peer, anonymous("kafka-cluster", ALTER, resource_type=CLUSTER, permission_type=DENY))
    answer = peer.ask(messages.CreateAclsRequest(creations=[entry()]), 3)
    assert answer.results[0].error_code == errors.CLUSTER_AUTHORIZATION_FAILED


def test_entries_of_the_log_count_after_a_restart(world: World) -> None:
    """Without a request that would change them."""
    add(world.connect(), anonymous("t", READ), anonymous("gone", READ))
    remove(world.connect(), resource_name_filter="gone")
    world.stop()
    again = world.restart(authorizer_class_name=STANDARD_AUTHORIZER)
    peer = again.connect()
    assert (fetched(peer), produced(peer)) == (errors.NONE, errors.TOPIC_AUTHORIZATION_FAILED)
    assert fetched(peer, "gone") == errors.TOPIC_AUTHORIZATION_FAILED
    again.stop()
    # Without the authorizer everybody may do everything, and the entries stay.
    without = world.restart()
    assert produced(without.connect()) == errors.NONE and len(without.broker.image.acls) == 1


def test_answers_hide_and_count_what_the_caller_may(world: World) -> None:
    """All topics are those that may be described; the bit fields say what may be done."""
    world.create_topic("hidden")
    peer = world.connect()
    add(peer, anonymous("t", READ), entry("hidden"))
    answer = peer.ask(messages.MetadataRequest(topics=None, include_topic_authorized_operations=True), 12)
    assert [(row.name, row.topic_authorized_operations) for row in answer.topics] == [("t", 1 << READ | 1 << DESCRIBE)]
    answer = peer.ask(messages.DescribeClusterRequest(include_cluster_authorized_operations=True), 0)
    assert answer.cluster_authorized_operations & (1 << ALTER)
    add(peer, anonymous("kafka-cluster", DESCRIBE, resource_type=CLUSTER))
    answer = peer.ask(messages.DescribeClusterRequest(include_cluster_authorized_operations=True), 0)
    assert answer.cluster_authorized_operations == 1 << DESCRIBE


def test_a_subscription_by_pattern_tells_of_no_topic_that_the_caller_may_not_describe(world: World) -> None:
    """Neither by an assignment nor by what the group is said to be subscribed to."""
    world.create_topic("secret")
    peer = world.connect()
    add(peer, anonymous("t", DESCRIBE), entry("secret"))
    request = messages.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m" * 22, member_epoch=0, rebalance_timeout_ms=60_000, topic_partitions=[],
        subscribed_topic_regex="t|secret",
    )  # fmt: skip
    peer.ask(messages.FindCoordinatorRequest(key="g"), 0)
    answer = peer.ask(request, 1)
    assert answer.error_code == errors.NONE
    for _ in range(3):
        world.advance(1)
        request = messages.ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=answer.member_id, member_epoch=answer.member_epoch
        )
        answer = peer.ask(request, 1)
        assigned = answer.assignment and [row.topic_id for row in answer.assignment.topic_partitions]
        if assigned:
            break
    assert assigned == [world.broker.image.topics["t"].id]


def test_metadata_of_topics_that_are_not_there(world: World) -> None:
    """Operations are told of a name that may be described; who may not create a topic learns nothing of its name."""
    peer = world.connect()
    add(peer, anonymous("x", READ, resource_pattern_type=4), entry("__consumer_offsets"))

    def rows(*names: str, creates: bool = False) -> list[tuple[int, int]]:
        topics = [messages.MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        request = messages.MetadataRequest(
            topics=topics, include_topic_authorized_operations=True, allow_auto_topic_creation=creates
        )
        return [(row.error_code, row.topic_authorized_operations) for row in peer.ask(request, 12).topics]

    may_read, not_told = 1 << READ | 1 << DESCRIBE, -(2**31)
    assert rows("x", "x/") == [
        (errors.UNKNOWN_TOPIC_OR_PARTITION, may_read),
        (errors.INVALID_TOPIC_EXCEPTION, may_read),
    ]
    add(peer, anonymous("kafka-cluster", ALTER, resource_type=CLUSTER))
    assert rows("x", "x/", creates=True) == [(errors.TOPIC_AUTHORIZATION_FAILED, not_told)] * 2
    assert "x" not in world.broker.image.topics
    request = messages.MetadataRequest(
        topics=[messages.MetadataRequest.MetadataRequestTopic(name="__consumer_offsets")]
    )
    (row,) = peer.ask(request, 12).topics
    assert (row.error_code, row.is_internal) == (errors.TOPIC_AUTHORIZATION_FAILED, False)


def test_whoever_may_write_to_some_topic_gets_a_producer_id(world: World) -> None:
    """And nobody else but who may do so on the cluster."""
    peer = world.connect()

    def code() -> int:
        request = messages.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
        )
        return peer.ask(request, 4).error_code

    assert code() == errors.NONE
    add(peer, entry("*"), anonymous("t", READ), anonymous("kafka-cluster", ALTER, resource_type=CLUSTER))
    assert code() == errors.CLUSTER_AUTHORIZATION_FAILED
    add(peer, anonymous("u", WRITE))
    assert code() == errors.NONE
    remove(peer, resource_name_filter="u")
    assert code() == errors.CLUSTER_AUTHORIZATION_FAILED
    add(peer, anonymous("kafka-cluster", 12, resource_type=CLUSTER))
    assert code() == errors.NONE


def test_a_controller_alone_asks_it_too(tmp_path: Path) -> None:
    """With the entries of its log, and those that come."""
    alone = World(tmp_path, process_roles="controller", authorizer_class_name=STANDARD_AUTHORIZER)
    peer = alone.connect()
    answer = peer.ask(messages.CreateAclsRequest(creations=[entry()]), 3)
    assert answer.results[0].error_code == errors.CLUSTER_AUTHORIZATION_FAILED
    alone.stop()
    alone = alone.restart(
        process_roles="controller", authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:ANONYMOUS"
    )
    add(alone.connect(), anonymous("kafka-cluster", ALTER, resource_type=CLUSTER))
    alone.stop()
    alone = alone.restart(process_roles="controller", authorizer_class_name=STANDARD_AUTHORIZER)
    peer = alone.connect()
    add(peer, entry("more"))
    add(peer, anonymous("kafka-cluster", ALTER, resource_type=CLUSTER, permission_type=DENY))
    answer = peer.ask(messages.CreateAclsRequest(creations=[entry("x")]), 3)
    assert answer.results[0].error_code == errors.CLUSTER_AUTHORIZATION_FAILED


def test_an_authorizer_that_is_handed_in_takes_its_place(tmp_path: Path) -> None:
    """As tests do."""
    own = StandardAuthorizer(["User:ANONYMOUS"])
    replaced = guarded(tmp_path, authorizer=own)
    assert replaced.broker.sessions.authorizer is own and replaced.process._acls is None
