"""Committing, fetching, deleting and expiring offsets."""

from __future__ import annotations

import pytest

from pykafkad.coordinator import events, offset_deletion, record_codec
from pykafkad.coordinator.events import TopicsDeleted
from pykafkad.coordinator.shard import RECORDS_PER_APPEND
from pykafkad.effects import Append, TimerFired
from pykafkad.errors import name
from pykafkad.wire import messages
from pykafkad.wire.batch import build_batch
from tests.coordinator.world import TOPIC_ID, World, error, subscription

DAY_MS = 86_400_000


def fetch(world, *asked, group="g", topic_id=bytes(16)):
    """Offsets for `(topic, partition)` pairs, as `(offset, leader epoch, metadata, error)`."""
    topics = [
        messages.OffsetFetchRequest.OffsetFetchRequestTopics(
            name=topic, topic_id=topic_id, partition_indexes=[partition]
        )
        for topic, partition in asked
    ]
    rows = world.shard.fetch_offsets(group, topics)
    return [
        (p.committed_offset, p.committed_leader_epoch, p.metadata, name(p.error_code))
        for row in rows
        for p in row.partitions
    ]


def pass_time(world, days):
    """Move both clocks and fire the expiry timer once."""
    world.clock.advance(days * 86_400)
    world.send(TimerFired(("expiry",)))


# Commits.


def test_the_first_commit_of_a_simple_consumer_creates_its_group():
    """Administrators, and consumers that choose their partitions themselves, commit with generation -1 and no member
    id."""
    world = World()
    assert world.commit({("t", 0): 5, ("t", 1): 6}, metadata="note") == ["NONE", "NONE"]
    assert fetch(world, ("t", 0), ("t", 1), ("t", 2)) == [
        (5, 7, "note", "NONE"),
        (6, 7, "note", "NONE"),
        (-1, -1, "", "NONE"),
    ]
    assert (world.state(), world.shard.groups["g"].protocol_type) == ("Empty", None)
    assert fetch(world, ("t", 0), group="other") == [(-1, -1, "", "NONE")]


def test_a_member_commits_in_its_generation():
    world = World()
    generation, (leader,) = world.stable()
    assert world.commit({("t", 0): 5}, member_id=leader, generation=generation) == ["NONE"]
    assert world.committed("t", 0) == 5


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"member_id": "stranger"}, "UNKNOWN_MEMBER_ID"),
        ({"generation": 0}, "ILLEGAL_GENERATION"),
        ({"generation": -1}, "ILLEGAL_GENERATION"),
        ({"generation": -1, "member_id": ""}, "UNKNOWN_MEMBER_ID"),
        ({"instance": "nobody"}, "UNKNOWN_MEMBER_ID"),
    ],
)
def test_a_refused_commit_to_a_group_with_members_writes_nothing(options, expected):
    world = World()
    generation, (leader,) = world.stable()
    written = len(world.log)
    options = {"member_id": leader, "generation": generation, **options}
    assert world.commit({("t", 0): 5, ("u", 3): 5}, **options) == [expected] * 2
    assert world.committed("t", 0) is None and len(world.log) == written


def test_a_commit_with_a_generation_to_an_unknown_group_is_refused():
    """The error is GROUP_ID_NOT_FOUND from version 9, and ILLEGAL_GENERATION before."""
    world = World()
    assert world.commit({("t", 0): 5}, generation=1, member_id="m") == ["GROUP_ID_NOT_FOUND"]
    assert world.commit({("t", 0): 5}, generation=1, member_id="m", group_id_not_found=False) == ["ILLEGAL_GENERATION"]
    assert world.state() is None


def test_members_commit_during_the_join_phase_and_not_while_they_wait_for_the_assignment():
    world = World()
    generation, (leader, follower) = world.stable(2)
    world.join()
    assert world.commit({("t", 0): 5}, member_id=leader, generation=generation) == ["NONE"]
    world.join(leader)
    world.join(follower)
    assert world.commit({("t", 0): 6}, member_id=leader, generation=generation + 1) == ["REBALANCE_IN_PROGRESS"]
    assert world.commit({("t", 0): 6}, member_id=leader, generation=generation) == ["ILLEGAL_GENERATION"]
    assert world.committed("t", 0) == 5


def test_a_commit_keeps_the_session_alive():
    world = World()
    generation, (leader,) = world.stable(session_ms=10_000)
    for offset in range(5):
        world.advance(9)
        assert world.commit({("t", 0): offset}, member_id=leader, generation=generation) == ["NONE"]
    assert world.state() == "Stable"


def test_an_administrator_commits_to_an_empty_group():
    world = World()
    _generation, (leader,) = world.stable()
    assert world.commit({("t", 0): 1}) == ["UNKNOWN_MEMBER_ID"]
    world.leave(leader)
    assert world.commit({("t", 0): 1}) == ["NONE"]
    assert world.commit({("t", 0): 2}, member_id="tool") == ["NONE"]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("x" * 4096, "NONE"),
        ("x" * 4097, "OFFSET_METADATA_TOO_LARGE"),
        ("é" * 4096, "NONE"),
        ("😀" * 2049, "OFFSET_METADATA_TOO_LARGE"),
        (None, "NONE"),
    ],
)
def test_metadata_has_a_limit_in_utf16_units(metadata, expected):
    world = World()
    assert world.commit({("t", 0): 1}, metadata=metadata) == [expected]
    if expected == "NONE":
        assert fetch(world, ("t", 0))[0][2] == (metadata or "")
    else:
        assert world.committed("t", 0) is None


def test_a_commit_that_does_not_fit_a_batch_is_refused_as_a_whole():
    world = World(message_max_bytes=10_000, offset_metadata_max_bytes=100)
    assert set(world.commit({("t", p): 1 for p in range(90)})) == {"NONE"}
    assert set(world.commit({("t", p): 2 for p in range(300)}, metadata="x" * 100)) == {"UNKNOWN_SERVER_ERROR"}
    assert world.committed("t", 0) == 1


@pytest.mark.parametrize("offset", [-1, 2**63 - 1])
def test_offsets_are_not_compared_with_the_log(offset):
    world = World()
    assert world.commit({("t", 0): offset}) == ["NONE"]
    assert fetch(world, ("t", 0))[0][0] == offset


# Fetches.


def test_all_offsets_of_a_group_are_fetched():
    world = World()
    world.commit({("t", 0): 1, ("u", 2): 3})
    rows = world.shard.fetch_offsets("g", None)
    assert {(row.name, p.partition_index, p.committed_offset) for row in rows for p in row.partitions} == {
        ("t", 0, 1),
        ("u", 2, 3),
    }
    assert world.shard.fetch_offsets("other", None) == []


def test_an_offset_of_an_earlier_topic_of_that_name_is_not_shown_by_id():
    world = World()
    world.commit({("t", 0): 1})
    assert fetch(world, ("t", 0), topic_id=TOPIC_ID)[0][0] == 1
    assert fetch(world, ("t", 0), topic_id=bytes(15) + b"x")[0][0] == -1
    assert fetch(world, ("t", 0))[0][0] == 1


# Deletion.


def codes(answer):
    return name(answer.error_code), [name(p.error_code) for topic in answer.topics for p in topic.partitions]


def test_offsets_of_an_empty_group_are_deleted_and_unknown_ones_too():
    world = World()
    world.commit({("t", 0): 1})
    assert codes(world.delete_offsets(("t", 0), ("t", 1))) == ("NONE", ["NONE", "NONE"])
    assert world.committed("t", 0) is None
    assert codes(world.delete_offsets(("t", 0), group="other")) == ("GROUP_ID_NOT_FOUND", [])


def test_offsets_of_subscribed_topics_are_not_deleted():
    world = World()
    generation, (leader,) = world.stable(protocols=(("range", subscription("wanted")),))
    world.commit({("wanted", 0): 1, ("old", 0): 1}, member_id=leader, generation=generation)
    answer = world.delete_offsets(("wanted", 0), ("old", 0))
    assert codes(answer) == ("NONE", ["GROUP_SUBSCRIBED_TO_TOPIC", "NONE"])
    assert (world.committed("wanted", 0), world.committed("old", 0)) == (1, None)


def test_with_members_of_another_protocol_nothing_is_deleted():
    world = World()
    world.stable(protocol_type="connect")
    assert codes(world.delete_offsets(("t", 0))) == ("NON_EMPTY_GROUP", [])


def test_no_offset_is_deleted_while_a_subscription_cannot_be_decoded():
    world = World()
    generation, (leader,) = world.stable(protocols=(("range", b"\x00\x01garbage"),))
    world.commit({("t", 0): 1}, member_id=leader, generation=generation)
    assert codes(world.delete_offsets(("t", 0))) == ("NONE", ["GROUP_SUBSCRIBED_TO_TOPIC"])


def test_an_empty_group_is_deleted_with_its_offsets():
    world = World()
    generation, (leader,) = world.stable()
    world.commit({("t", 0): 1}, member_id=leader, generation=generation)
    assert world.delete_group() == "NON_EMPTY_GROUP"
    world.leave(leader)
    assert world.delete_group() == "NONE"
    assert (world.state(), world.committed("t", 0), world.delete_group()) == (None, None, "GROUP_ID_NOT_FOUND")
    assert world.replayed().groups == {} and world.replayed().offsets.by_group == {}
    assert set(world.timers) == {("expiry",)}


def test_offsets_of_deleted_topics_are_deleted_but_not_those_of_later_topics():
    world = World()
    world.commit({("t", p): 1 for p in range(700)})
    world.send(TopicsDeleted([("t", b"another topic id")]))
    assert world.committed("t", 0) == 1
    world.send(TopicsDeleted([("t", TOPIC_ID)]))
    world.advance(0)
    assert world.committed("t", 0) is None and world.state() == "Empty"


# Expiry.


def test_offsets_of_a_simple_consumer_expire_after_their_last_commit():
    world = World()
    world.commit({("t", 0): 1})
    pass_time(world, 6)
    world.commit({("t", 1): 1})
    pass_time(world, 1)
    assert (world.committed("t", 0), world.committed("t", 1)) == (None, 1)
    pass_time(world, 6)
    assert world.state() is None


def test_many_offsets_expire_in_several_steps():
    """One step must not hold the loop."""
    world = World()
    for number in range(RECORDS_PER_APPEND):
        world.commit({("t", 0): 1}, group=f"g{number}")
    written = len(world.log)
    pass_time(world, 8)
    assert RECORDS_PER_APPEND <= len(world.log) - written <= RECORDS_PER_APPEND + 2
    world.advance(1)
    assert world.shard.groups == {} and len(world.log) - written == 2 * RECORDS_PER_APPEND


def test_offsets_of_a_group_expire_after_it_becomes_empty():
    world = World()
    generation, (leader,) = world.stable()
    world.commit({("t", 0): 1}, member_id=leader, generation=generation)
    pass_time(world, 30)
    assert world.committed("t", 0) == 1
    world.leave(leader)
    pass_time(world, 6.9)
    assert world.committed("t", 0) == 1
    pass_time(world, 0.2)
    assert (world.committed("t", 0), world.state()) == (None, None)
    assert world.replayed().groups == {}


def test_offsets_of_topics_that_a_stable_group_unsubscribed_from_expire_after_their_commit():
    world = World()
    generation, (leader,) = world.stable(protocols=(("range", subscription("wanted")),), session_ms=1_800_000)
    world.commit({("wanted", 0): 1, ("old", 0): 1}, member_id=leader, generation=generation)
    pass_time(world, 8)
    assert (world.committed("wanted", 0), world.committed("old", 0), world.state()) == (1, None, "Stable")


def test_no_offset_expires_during_a_rebalance_or_while_subscriptions_cannot_be_decoded():
    world = World()
    generation, (leader,) = world.stable(protocols=(("range", b"?"),))
    world.commit({("t", 0): 1}, member_id=leader, generation=generation)
    pass_time(world, 8)
    assert world.committed("t", 0) == 1
    world.join(protocols=(("range", subscription("x")),))
    pass_time(world, 8)
    assert world.committed("t", 0) == 1


def test_offsets_of_members_of_another_protocol_do_not_expire():
    world = World()
    generation, (leader,) = world.stable(protocol_type="connect")
    world.commit({("t", 0): 1}, member_id=leader, generation=generation)
    pass_time(world, 30)
    assert world.committed("t", 0) == 1


def test_offsets_of_unsubscribed_topics_do_not_expire_while_members_join():
    world = World()
    generation, (leader,) = world.stable(protocols=(("range", subscription("wanted")),))
    world.commit({("old", 0): 1}, member_id=leader, generation=generation)
    world.join(protocols=(("range", subscription("wanted")),))
    pass_time(world, 8)
    assert (world.committed("old", 0), world.state()) == (1, "PreparingRebalance")


def test_a_group_with_members_and_without_offsets_is_not_deleted():
    world = World()
    world.stable()
    pass_time(world, 30)
    assert world.state() == "Stable"


def test_an_old_client_sets_its_own_retention_time():
    world = World()
    world.commit({("t", 0): 1, ("t", 1): 1}, retention_ms=DAY_MS)
    assert world.log[-1][1][:2] == (1).to_bytes(2, "big")
    pass_time(world, 0.9)
    assert world.committed("t", 0) == 1
    pass_time(world, 0.2)
    assert world.committed("t", 0) is None


def test_an_empty_group_without_offsets_is_deleted_at_the_next_expiry_check():
    world = World()
    world.join(id_required=True, session_ms=60_000)
    world.advance(601)
    assert world.state() is None and set(world.timers) == {("expiry",)}


def test_the_expiry_timer_is_set_again():
    world = World()
    world.advance(3 * 600 + 1)
    assert world.timers == {("expiry",): 2400.0}


def test_the_stored_commit_is_version_4_with_the_topic_id():
    world = World()
    world.commit({("t", 3): 9}, metadata="m")
    key, value = world.log[-1]
    assert value[:2] == (4).to_bytes(2, "big") and key[:2] == (1).to_bytes(2, "big")
    record = record_codec.decode(key, value)
    assert (record.key.group, record.key.topic, record.key.partition) == ("g", "t", 3)
    assert (record.value.offset, record.value.leader_epoch, record.value.metadata) == (9, 7, "m")
    assert record.value.topic_id == TOPIC_ID and record.value.commit_timestamp == world.clock.now_ms()


# Groups and topics with many offsets.


def many(world, count, group="g", topic="t"):
    for start in range(0, count, 500):
        offsets = {(topic, partition): 1 for partition in range(start, min(start + 500, count))}
        assert set(world.commit(offsets, group=group)) == {"NONE"}


def appended(effects):
    return [len(effect.records) for effect in effects if type(effect) is Append]


@pytest.mark.long
def test_a_group_with_many_offsets_is_deleted_in_steps_and_wholly_or_not_at_all():
    world = World()
    many(world, 1_700)
    token = world.token()
    effects = world.send(events.DeleteGroup(token, "g"))
    steps = 1
    while offset_deletion.TIMER_DELETION in world.timers:
        assert appended(effects) == [] and token not in world.replies
        assert set(world.shard.deleting) == {"g"} and len(world.shard.deleting["g"].records) == 500 * steps
        assert world.replayed().offsets.count("g") == 1_700, "a broker that fails here has all of them"
        del world.timers[offset_deletion.TIMER_DELETION]
        effects = world.send(TimerFired(offset_deletion.TIMER_DELETION))
        steps += 1
    (append,) = [effect for effect in effects if type(effect) is Append]
    assert steps == 4 and len(append.records) == 1_701, "the last one is the group's own"
    assert append.body == build_batch([record_codec.encode(each) for each in append.records])[61:]
    assert error(world.replies[token]) == "NONE" and not world.shard.deleting
    assert world.shard.groups == world.replayed().groups == {}
    many(world, 3)
    assert world.delete_group() == "NONE", "few are deleted at once"


def test_a_group_whose_offsets_are_deleted_at_once_is_one_batch_too():
    world = World()
    many(world, RECORDS_PER_APPEND)
    effects = world.send(events.DeleteGroup(world.token(), "g"))
    assert appended(effects) == [RECORDS_PER_APPEND + 1]


def test_a_group_of_which_not_even_the_tombstones_fit_into_a_batch_stays():
    """Kafka answers so, too, and deletes nothing."""
    world = World()
    many(world, 1_200)
    world.settings.message_max_bytes = 15_000
    token = world.token()
    world.send(events.DeleteGroup(token, "g"))
    world.advance(0)
    assert error(world.replies[token]) == "UNKNOWN_SERVER_ERROR" and not world.shard.deleting
    assert world.shard.offsets.count("g") == world.replayed().offsets.count("g") == 1_200
    world.settings.message_max_bytes = 100_000
    world.send(events.DeleteGroup(token := world.token(), "g"))
    world.advance(0)
    assert error(world.replies[token]) == "NONE" and world.replayed().groups == {}


@pytest.mark.long
def test_what_is_committed_and_expires_while_a_group_is_deleted():
    """No request reaches the group meanwhile, but one may have been on its way."""
    world = World()
    many(world, 1_200)
    token = world.token()
    world.send(events.DeleteGroup(token, "g"))
    world.commit({("t", 5): 7, ("t", 1_200): 7, ("u", 0): 7})
    world.send(events.TopicsDeleted([("t", TOPIC_ID)]))
    world.advance(0)
    assert error(world.replies[token]) == "NONE"
    assert world.shard.groups == world.replayed().groups == {} and world.replayed().offsets.by_group == {}
    assert world.shard.offsets.by_group == {}


def test_a_group_that_expires_while_it_is_deleted_is_gone():
    world = World()
    many(world, 1_200)
    token = world.token()
    world.send(events.DeleteGroup(token, "g"))
    pass_time(world, 8)
    assert world.shard.groups == {}
    world.advance(0)
    assert error(world.replies[token]) == "NONE" and world.replayed().groups == {} == world.shard.groups


def test_offsets_of_open_transactions_go_with_their_group_too():
    world = World()
    many(world, 1_200)
    world.commit_transactional({("t", 0): 5, ("t", 1_300): 5})
    token = world.token()
    world.send(events.DeleteGroup(token, "g"))
    world.end_transaction()
    world.advance(0)
    assert error(world.replies[token]) == "NONE"
    assert world.shard.groups == {} and world.shard.offsets.by_group == {}
    assert not world.replayed().offsets.by_group


def test_a_group_that_is_not_empty_any_more_stays():
    """No request reaches the group meanwhile, but one may have been on its way."""
    world = World()
    many(world, 1_200)
    token = world.token()
    world.send(events.DeleteGroup(token, "g"))
    world.join()
    world.advance(0)
    assert error(world.replies[token]) == "NON_EMPTY_GROUP" and "g" in world.shard.groups


def test_a_deletion_ends_with_its_shard():
    world = World()
    many(world, 1_200)
    token = world.token()
    world.send(events.DeleteGroup(token, "g"))
    world.send(events.Resigned())
    assert error(world.replies[token]) == "NOT_COORDINATOR"
    assert appended(world.send(TimerFired(offset_deletion.TIMER_DELETION))) == []


def test_many_offsets_of_a_topic_are_deleted_in_steps():
    world = World()
    many(world, 1_300)
    many(world, 700, group="h")
    many(world, 5, group="h", topic="u")
    effects = world.send(events.TopicsDeleted([("t", TOPIC_ID)]))
    assert appended(effects) == [499], "a group that is looked at counts like an offset"
    world.send(events.TopicsDeleted([("u", TOPIC_ID)]))
    # The topic is created anew, and read.
    assert world.commit({("t", 1_299): 77, ("t", 5): 78}, group="g") == ["NONE"] * 2
    sizes = []
    while offset_deletion.TIMER_DELETION in world.timers:
        del world.timers[offset_deletion.TIMER_DELETION]
        sizes += appended(world.send(TimerFired(offset_deletion.TIMER_DELETION)))
    assert max(sizes) <= 500 and 499 + sum(sizes) == 1_300 - 1 + 700 + 5
    assert world.committed("t", 1_299) == 77 and world.committed("t", 5) == 78
    assert world.shard.offsets.count("g") == 2 and world.shard.offsets.count("h") == 0
    assert world.replayed().offsets.by_group.keys() == {"g"}
