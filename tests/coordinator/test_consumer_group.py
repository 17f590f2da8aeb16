"""Consumer groups (KIP-848): joining, revoking, fencing, static members, time-outs, patterns, settings, offsets."""

from __future__ import annotations

from collections import Counter

import pytest

from pykafkad.coordinator import assignors, metadata_hash
from pykafkad.coordinator.assignors import GroupSpec, Subscriber
from pykafkad.coordinator.consumer_patterns import NAMES_PER_STEP
from tests.coordinator.consumer_world import Broker, Cluster, ConsumerWorld, Topic


def counts(*members):
    return sorted(len(member.partitions) for member in members)


# Joining, revoking.


def test_a_partition_is_given_away_only_after_its_owner_gave_it_up():
    world = ConsumerWorld()
    (first,) = world.joined("first")
    second = world.member("second")
    assert second.beat() == "NONE" and second.partitions == set()
    world.advance(1.5)
    before = dict(first.owned)
    assert first.beat() == "NONE" and len(first.partitions) == 3
    told, first.owned = first.owned, before
    second.beat()
    assert second.partitions == set()
    # The first member still works on all of them: the second waits.
    first.owned, kept = before, told
    assert first.beat(topic_partitions=first.rows()) == "NONE"
    second.beat()
    assert second.partitions == set() and world.group.state == "Reconciling"
    first.owned = kept
    first.beat()
    second.beat()
    assert counts(first, second) == [3, 3] and first.epoch == second.epoch == world.group.epoch == 3
    assert world.group.state == "Stable"


def test_a_new_target_waits_for_the_assignment_interval():
    world = ConsumerWorld()
    first, second = world.member("first"), world.member("second")
    first.beat()
    second.beat()
    assert (world.group.epoch, world.group.target_epoch, world.group.state) == (3, 2, "Assigning")
    world.advance(0.9)
    second.beat()
    assert world.group.target_epoch == 2
    world.advance(0.2)
    second.beat()
    assert world.group.target_epoch == 3


def test_a_heartbeat_that_changes_nothing_writes_nothing():
    world = ConsumerWorld()
    first, second = world.joined("first", "second")
    size = len(world.log)
    for member in (first, second):
        assert member.beat() == "NONE" and member.last.assignment is None
    assert len(world.log) == size


def test_a_full_request_gets_its_assignment_again():
    world = ConsumerWorld()
    (member,) = world.joined("member")
    member.beat(rebalance_timeout_ms=60_000, subscribed_topic_names=["t"])
    assert member.last.assignment is not None


# Epochs.


def test_the_epoch_before_is_accepted_while_the_member_owns_no_more_than_it_may():
    world = ConsumerWorld(topics=(("t", 6), ("u", 2)))
    (member,) = world.joined("member")
    old = member.epoch
    world.beat(member.request(subscribed_topic_names=["t", "u"]))
    assert world.group.members["member"].epoch == old + 1
    assert member.beat() == "NONE" and member.epoch == old + 1
    assert member.beat(member_epoch=old, topic_partitions=None) == "FENCED_MEMBER_EPOCH"
    member.epoch, member.owned = old, {b"?" * 16: {0}}
    assert member.beat() == "FENCED_MEMBER_EPOCH"
    member.epoch = 99
    assert member.beat() == "FENCED_MEMBER_EPOCH"
    assert member.beat() == "NONE", "epoch 0 joins again"


def test_a_full_group_takes_no_more_members():
    world = ConsumerWorld(group_consumer_max_size=1)
    (first,) = world.joined("first")
    assert world.member("second").beat() == "GROUP_MAX_SIZE_REACHED"
    assert first.beat() == "NONE"


# Static members.


def test_a_static_member_comes_back_without_a_rebalance():
    world = ConsumerWorld()
    one, two = world.joined("one", instance="1")[0], world.joined("two")[0]
    world.settle(one, two)
    epoch, owned = world.group.epoch, one.partitions
    assert world.member("thief", instance="1").beat() == "UNRELEASED_INSTANCE_ID"
    assert one.leave(static=True) == "NONE"
    assert world.group.members["one"].epoch == -2
    again = world.member("again", instance="1")
    assert again.beat() == "NONE"
    assert (world.group.epoch, again.partitions) == (epoch, owned)
    one.epoch = epoch
    assert one.beat() == "FENCED_INSTANCE_ID"
    assert "one" not in world.group.members


def test_a_static_member_that_stays_away_is_removed():
    world = ConsumerWorld()
    (one,) = world.joined("one", instance="1")
    one.leave(static=True)
    world.advance(44)
    assert "one" in world.group.members
    world.advance(2)
    assert not world.group.members and not world.group.owners


def test_a_refused_return_does_not_keep_a_static_member_for_ever():
    world = ConsumerWorld()
    (one,) = world.joined("one", instance="1")
    one.leave(static=True)
    assert world.member("two", instance="1", topics=None, regex="(").beat() == "INVALID_REGULAR_EXPRESSION"
    assert set(world.group.members) == {"one"}
    world.advance(46)
    assert not world.group.members


# Time-outs.


def test_a_member_without_heartbeats_is_removed():
    world = ConsumerWorld()
    first, second = world.joined("first", "second")
    for _ in range(5):
        world.advance(10)
        first.beat()
    assert set(world.group.members) == {"first"}
    assert second.beat() == "UNKNOWN_MEMBER_ID"
    world.settle(first)
    assert counts(first) == [6]


def test_a_member_that_gives_nothing_up_in_time_is_removed():
    world = ConsumerWorld()
    (first,) = world.joined("first")
    second = world.member("second")
    second.beat()
    everything = first.rows()
    for _ in range(7):
        world.advance(10)
        first.beat(topic_partitions=everything)
        second.beat()
    assert set(world.group.members) == {"second"}
    second.beat()
    assert counts(second) == [6]


def test_settings_of_a_group_stand_before_those_of_the_broker():
    world = ConsumerWorld()
    world.metadata.group_configs["g"] = {
        "consumer.session.timeout.ms": "50000",
        "consumer.heartbeat.interval.ms": "20000",
        "consumer.assignment.interval.ms": "0",
    }
    first = world.member("first")
    first.beat()
    assert first.last.heartbeat_interval_ms == 15_000, "the broker's bound"
    world.member("second").beat()
    assert world.group.target_epoch == 3, "no interval"
    world.advance(49)
    assert "first" in world.group.members
    world.advance(2)
    assert "first" not in world.group.members


# Topics.


def test_topics_that_are_created_grow_and_go_change_the_assignment():
    world = ConsumerWorld(topics=(("t", 2),))
    (member,) = world.joined("member", topics=("t", "u"))
    world.create("u", 1)
    world.settle(member)
    assert member.partitions == {("t", 0), ("t", 1), ("u", 0)}
    world.grow("t", 3)
    world.settle(member)
    assert counts(member) == [4]
    world.drop("u")
    world.settle(member)
    assert member.partitions == {("t", 0), ("t", 1), ("t", 2)}
    epoch = world.group.epoch
    world.create("other", 1)
    world.settle(member)
    assert world.group.epoch == epoch


# Patterns.


def test_a_pattern_is_held_against_the_topics_after_the_answer():
    world = ConsumerWorld(topics=(("t-1", 1), ("t-2", 2), ("u", 1)))
    member = world.member("member", topics=None, regex="t-.*")
    assert member.beat() == "NONE" and member.partitions == set()
    world.settle(member, rounds=1)
    assert member.partitions == {("t-1", 0), ("t-2", 0), ("t-2", 1)}
    world.create("t-3", 1)
    world.settle(member, rounds=2)
    assert counts(member) == [3], "not before ten seconds"
    world.advance(10)
    world.settle(member)
    assert counts(member) == [4]
    assert world.group.is_subscribed_to("t-3") and not world.group.is_subscribed_to("u")
    member.change(topics=("u",))
    world.settle(member)
    assert member.partitions == {("u", 0)} and not world.group.patterns


def test_a_pattern_matches_what_the_caller_may_know_of():
    """The caller whose heartbeat begins the matching, also when its topics are looked at again."""
    world = ConsumerWorld(topics=(("t-1", 1), ("t-2", 1)))
    world.may_describe = {"t-1", "t-3"}.__contains__
    member = world.member("member", topics=None, regex="t-.*")
    member.beat()
    world.settle(member, rounds=1)
    assert member.partitions == {("t-1", 0)} and world.group.patterns["t-.*"].topics == {"t-1"}
    world.create("t-3", 1)
    world.create("t-4", 1)
    world.advance(10)
    world.settle(member)
    assert member.partitions == {("t-1", 0), ("t-3", 0)}


def test_many_topics_are_looked_at_in_several_steps():
    world = ConsumerWorld(topics=tuple((f"t{number}", 1) for number in range(NAMES_PER_STEP + 1)))
    member = world.member("member", topics=None, regex="t1")
    member.beat()
    steps = []
    while world.group.matching is not None:
        steps.append(world.group.matching.place)
        world.advance(0)
        if len(steps) > 5:
            break
    assert world.group.patterns["t1"].topics == {"t1"}


@pytest.mark.parametrize(
    ("regex", "why"),
    [
        ("a(b", "missing closing )"),
        ("[", "missing closing ]"),
        ("*", "missing argument to repetition operator"),
        ("\\", "trailing backslash at end of expression"),
    ],
)
def test_an_invalid_pattern_is_refused(regex, why):
    world = ConsumerWorld()
    member = world.member("member", topics=None, regex=regex)
    assert member.beat() == "INVALID_REGULAR_EXPRESSION"
    assert member.last.error_message == f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {why}."
    assert "g" not in world.shard.groups


def test_a_pattern_that_explodes_elsewhere_is_matched_at_once():
    world = ConsumerWorld(topics=(("a" * 200 + "b", 1),))
    member = world.member("member", topics=None, regex="(a+)+")
    member.beat()
    world.settle(member)
    assert member.partitions == set()


# Offsets.


def test_commits_of_members_need_their_epoch():
    world = ConsumerWorld()
    (member,) = world.joined("member")
    offsets = {("t", 0): 1}
    world.metadata.topics["t"].id = bytes(range(16))

    def commit(epoch, member_id="member", **options):
        return world.commit(offsets, member_id=member_id, generation=epoch, **options)

    assert commit(member.epoch) == ["NONE"]
    assert commit(member.epoch + 1) == ["STALE_MEMBER_EPOCH"]
    assert commit(member.epoch - 1) == ["STALE_MEMBER_EPOCH"]
    assert commit(member.epoch, group_id_not_found=False) == ["UNSUPPORTED_VERSION"]
    assert commit(-1, "") == ["UNKNOWN_MEMBER_ID"]
    assert commit(member.epoch, "x") == ["UNKNOWN_MEMBER_ID"]
    member.leave()
    assert commit(-1, "") == ["NONE"]


def test_a_commit_with_an_older_epoch_counts_for_what_the_member_had_then():
    """KIP-1251."""
    world = ConsumerWorld()
    world.metadata.topics["t"].id = bytes(range(16))
    (member,) = world.joined("member")
    old = member.epoch
    world.grow("t", 7)
    world.settle(member)
    assert member.epoch == old + 1
    assert world.commit({("t", 0): 1}, member_id="member", generation=old) == ["NONE"]
    assert world.commit({("t", 6): 1}, member_id="member", generation=old) == ["STALE_MEMBER_EPOCH"]
    # The epoch of a partition that is refused for its metadata is not looked at, nor that of an unknown one.
    too_long = "x" * 4_097
    refused = world.commit({("t", 6): 1, ("u", 0): 1}, member_id="member", generation=old, metadata=too_long)
    assert refused == ["OFFSET_METADATA_TOO_LARGE"] * 2
    assert world.commit({("t", 6): 1}, member_id="other", generation=old, metadata=too_long) == ["UNKNOWN_MEMBER_ID"]


def test_transactional_commits_follow_the_same_rules():
    """With the error that transactional producers know."""
    world = ConsumerWorld()
    (member,) = world.joined("member")
    old = member.epoch
    world.grow("t", 7)
    world.settle(member)
    assert member.epoch == old + 1

    def commit(partition, epoch, member_id="member", topic="t", **options):
        return world.commit_transactional({(topic, partition): 1}, member_id=member_id, generation=epoch, **options)

    assert commit(6, member.epoch) == ["NONE"]
    assert commit(0, old) == ["NONE"], "it had the partition then"
    assert commit(6, old) == ["ILLEGAL_GENERATION"]
    assert commit(0, old, topic="gone") == ["ILLEGAL_GENERATION"]
    assert commit(6, old, metadata="x" * 4097) == ["OFFSET_METADATA_TOO_LARGE"], "it is not committed anyway"
    assert commit(0, member.epoch, "x") == ["UNKNOWN_MEMBER_ID"]


def test_a_transactional_commit_without_group_metadata_is_accepted():
    """Producers from before KIP-447 send none, also for groups that have members."""
    world = ConsumerWorld()
    world.joined("member")
    assert world.commit_transactional({("t", 0): 5}) == ["NONE"]


def test_offsets_are_read_with_the_members_epoch():
    world = ConsumerWorld()
    (member,) = world.joined("member")
    check = world.shard.check_fetch
    assert [check("g", None, -1), check("g", "member", member.epoch), check("none", "x", 3)] == [0, 0, 0]
    assert (check("g", "member", 99), check("g", "x", member.epoch)) == (113, 25)


def test_a_group_with_members_is_not_deleted():
    world = ConsumerWorld()
    (member,) = world.joined("member")
    world.metadata.topics["t"].id = bytes(range(16))
    assert world.delete_group() == "NON_EMPTY_GROUP"
    member.leave()
    assert world.delete_group() == "NONE"
    assert not world.shard.groups and not world.replayed().groups


# Assignors.


def spec(members, partition_counts, homogeneous=True, before=None):
    topics = {name: name.encode().ljust(16, b"\0") for name in partition_counts}
    subscribers = {
        member_id: Subscriber(None, frozenset(topics[name] for name in names), (before or {}).get(member_id, {}))
        for member_id, names in members.items()
    }
    owners = {}
    for member_id, target in (before or {}).items():
        for topic_id, partitions in target.items():
            owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))
    return GroupSpec(
        subscribers, {topics[name]: count for name, count in partition_counts.items()}, owners, homogeneous
    )


def sizes(targets):
    return {member_id: sum(map(len, target.values())) for member_id, target in targets.items()}


def moved(before, after):
    """How many partitions changed their owner."""
    return sum(
        len(partitions - after.get(member_id, {}).get(topic_id, frozenset()))
        for member_id, target in before.items()
        for topic_id, partitions in target.items()
    )


@pytest.mark.parametrize("members", [1, 2, 3, 7, 13, 30])
@pytest.mark.parametrize("partitions", [1, 5, 12, 40])
def test_uniform_is_even_and_moves_as_little_as_it_can(members, partitions):
    names = {f"member-{number}": ("t", "u") for number in range(members)}
    first = assignors.assign("uniform", spec(names, {"t": partitions, "u": 3}))
    given = Counter(sizes(first).values())
    assert sum(size * count for size, count in given.items()) == partitions + 3
    assert max(given) - min(given) <= 1
    again = assignors.assign("uniform", spec(names, {"t": partitions, "u": 3}, before=first))
    assert again == first
    fewer = dict(list(names.items())[1:])
    if fewer:
        left = {member_id: target for member_id, target in first.items() if member_id in fewer}
        after = assignors.assign("uniform", spec(fewer, {"t": partitions, "u": 3}, before=left))
        assert moved(left, after) == 0 and sum(sizes(after).values()) == partitions + 3


def test_uniform_balances_members_with_different_topics():
    members = {"a": ("t",), "b": ("t", "u"), "c": ("u",), "d": ()}
    targets = assignors.assign("uniform", spec(members, {"t": 9, "u": 3}, homogeneous=False))
    assert sizes(targets) == {"a": 5, "b": 4, "c": 3, "d": 0}
    before = {"a": targets["a"], "b": targets["b"]}
    after = assignors.assign("uniform", spec({"a": ("t",), "b": ("t", "u")}, {"t": 9, "u": 3}, False, before))
    assert sizes(after) == {"a": 6, "b": 6} and moved(before, after) <= 1


def test_range_gives_members_the_same_numbers_of_each_topic():
    targets = assignors.assign("range", spec({"b": ("t", "u"), "a": ("t", "u")}, {"t": 3, "u": 2}))
    assert [sorted(map(sorted, targets[each].values())) for each in "ab"] == [[[0], [0, 1]], [[1], [2]]]


def test_a_static_member_of_range_is_placed_by_its_instance_id():
    group = spec({"b": ("t",), "a": ("t",)}, {"t": 2})
    group.members["b"].instance_id = "z"
    targets = assignors.assign("range", group)
    assert [sorted(*targets[each].values()) for each in "ab"] == [[1], [0]]


# The hash of topics.


@pytest.mark.parametrize(
    ("size", "digest"),
    [
        (0, 0x2D06800538D394C2),
        (3, 0x5F4299FC161C9CBB),
        (8, 0x3A1C2D7C85AF88F8),
        (16, 0x8355E3A6F61770DB),
        (17, 0x9EF341A99DE37328),
        (100, 0x4E4F921A64BD1C),
        (200, 0xF42A8864FEAF0703),
        (300, 0xFDDA6967CF021DBC),
        (2500, 0x76EBAE7C9D5CDC5C),
    ],
)
def test_xxh3_of_every_length_class(size, digest):
    """The values are those of the reference implementation."""
    assert metadata_hash.xxh3(bytes(index % 251 for index in range(size))) == digest


def test_the_hash_follows_partitions_racks_and_names():
    cluster = Cluster()
    cluster.topics = {"t": Topic("t", b"t" * 16, 2), "u": Topic("u", b"u" * 16, 1)}
    seen = [metadata_hash.of_topics(cluster, names, {}) for names in (["t"], ["u"], ["t", "u"], [], ["gone"])]
    assert seen[3:] == [0, 0] and len(set(seen)) == 4
    cluster.brokers[1] = Broker("rack")
    seen.append(metadata_hash.of_topics(cluster, ["t"], {}))
    cluster.topics["t"].partitions.append(cluster.topics["t"].partitions[0])
    seen.append(metadata_hash.of_topics(cluster, ["t"], {}))
    assert len(set(seen)) == 6
