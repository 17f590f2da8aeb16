"""Consumer groups of KIP-848: ConsumerGroupHeartbeat, ConsumerGroupDescribe, and what offsets and lists say of them."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.registry import scenario
from pykafkad.wire import messages

JOIN, LEAVE, STATIC_LEAVE = 0, -1, -2
FIRST, SECOND, THIRD = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"
# The longest interval between two assignments that a group may set. No scenario takes nearly as long.
LONG_INTERVAL_MS = 15_000
# A group of three members that lists two topics is settled after five.
SETTLING_ROUNDS = 20


class Member:
    """A member that knows its epoch and what it owns."""

    def __init__(self, group: Group, member_id: str, *, instance: str | None = None, version: int = 1) -> None:
        self.group = group
        self.member_id = member_id
        self.instance = instance
        self.version = version
        self.epoch = JOIN
        self.owned: list[Any] = []

    def fields(self, **fields: Any) -> dict[str, Any]:
        known = {
            "group_id": self.group.name,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance,
            "topic_partitions": self.owned,
        }
        if self.epoch == JOIN:
            known |= {
                "rebalance_timeout_ms": 120_000,
                "subscribed_topic_names": [self.group.topic],
                "topic_partitions": [],
            }
        return {**known, **fields}

    def beat(self, note: str = "", *, quietly: bool = False, **fields: Any) -> Any:
        """A heartbeat; its answer changes what the member knows."""
        broker = self.group.broker
        values = self.fields(**fields)
        if quietly:
            answer = broker.quietly("ConsumerGroupHeartbeat", self.version, **values)
        else:
            answer = broker.ask("ConsumerGroupHeartbeat", self.version, note=note, **values)
        if answer.error_code == 0 and answer.member_epoch > 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = [
                    part(
                        "ConsumerGroupHeartbeat",
                        "TopicPartitions",
                        topic_id=row.topic_id,
                        partitions=list(row.partitions),
                    )
                    for row in answer.assignment.topic_partitions
                ]
        return answer


class Group:
    """A group of its own, with a topic that its coordinator knows. It assigns at once, so no answer depends on time."""

    def __init__(
        self, broker: Exchange, kind: str = "group", partitions: int = 4, *, assignment_interval_ms: int = 0
    ) -> None:
        self.broker = broker
        self.name = broker.name(kind)
        self.topic = broker.topic(f"{kind}-topic", partitions)
        broker.coordinator(self.name)
        self.set_interval(assignment_interval_ms)

    def set_interval(self, interval_ms: int) -> None:
        """Change the least time between two assignments."""
        self.broker.set_group(self.name, consumer_assignment_interval_ms=str(interval_ms))

    def member(self, member_id: str = FIRST, **options: Any) -> Member:
        return Member(self, member_id, **options)

    def settle(self, *members: Member) -> None:
        """Unrecorded heartbeats until those of all members change nothing: they have what they shall have."""
        for _ in range(SETTLING_ROUNDS):
            before = [(member.epoch, member.owned) for member in members]
            for member in members:
                answer = member.beat(quietly=True)
                assert answer.error_code == 0, answer
            if before == [(member.epoch, member.owned) for member in members]:
                return
        raise AssertionError(f"not settled after {SETTLING_ROUNDS} rounds: {before}")

    def describe(self, version: int = 1, note: str = "") -> Any:
        return self.broker.ask("ConsumerGroupDescribe", version, note=note, group_ids=[self.name])


@scenario
def consumer_group_join_and_leave(broker: Exchange) -> None:
    """A member joins, gets everything, and leaves; in every version."""
    for version in versions("ConsumerGroupHeartbeat"):
        group = Group(broker, f"group-{version}")
        member = group.member(version=version)
        member.beat("joins")
        member.beat("again")
        group.describe(version)
        member.beat("sends all", rebalance_timeout_ms=120_000, subscribed_topic_names=[group.topic])
        member.beat("leaves", member_epoch=LEAVE)
        member.beat("is gone")
        group.describe(version, "empty")
    _listed(broker, "Empty")


def _listed(broker: Exchange, state: str) -> None:
    """The scenario's own groups in a list of consumer groups."""
    answer = broker.quietly("ListGroups", 5, types_filter=["consumer"], states_filter=[state])
    answer.groups = [row for row in answer.groups if row.group_id.startswith(broker.prefix)]
    broker.record("ListGroups v5", answer, 5)


@scenario
def consumer_group_second_member(broker: Exchange) -> None:
    """The second member waits until the first has given up its part."""
    group = Group(broker)
    first, second = group.member(FIRST), group.member(SECOND)
    first.beat("first")
    second.beat("second joins")
    group.describe(note="while the first has all")
    before = first.owned
    first.beat("first is told to give up")
    group.describe(note="before it has")
    second.beat("second waits")
    kept, first.owned = first.owned, before
    first.beat("first still has all")
    first.owned = kept
    first.beat("first has given up")
    second.beat("second gets its part")
    group.describe(note="settled")
    second.beat("second leaves", member_epoch=LEAVE)
    first.beat("first gets all again")
    group.describe(note="alone again")


@scenario
def consumer_group_assigns_after_its_interval(broker: Exchange) -> None:
    """A new assignment waits until the group's last one is old enough; a group that has none gets one at once."""
    group = Group(broker, assignment_interval_ms=LONG_INTERVAL_MS)
    first, second = group.member(FIRST), group.member(SECOND)
    first.beat("first")
    second.beat("second waits for the next assignment")
    first.beat("first keeps all")
    group.describe(note="the assignment is older than the group")
    group.set_interval(0)
    second.beat("second waits for the first")
    first.beat("first is told to give up")
    group.describe(note="a new assignment")


@scenario
def consumer_group_epochs(broker: Exchange) -> None:
    """Wrong epochs, unknown members and groups."""
    group = Group(broker)
    other = broker.topic("other", 2)
    broker.in_effect()
    member = group.member()
    member.beat("unknown group", member_epoch=3)
    member.beat("leaves an unknown group", member_epoch=LEAVE)
    member.beat("joins")
    stranger = group.member(SECOND)
    stranger.epoch = 2
    stranger.beat("a stranger")
    stranger.beat("a stranger leaves", member_epoch=LEAVE)
    member.beat("a later epoch", member_epoch=member.epoch + 1)
    member.beat("changes its topics", subscribed_topic_names=[group.topic, other])
    old = member.epoch - 1
    member.beat("the epoch before, with nothing", member_epoch=old, topic_partitions=[])
    member.beat("the epoch before, without saying", member_epoch=old, topic_partitions=None)
    member.beat("an epoch long ago", member_epoch=1, topic_partitions=[])
    member.beat("joins again", member_epoch=JOIN, rebalance_timeout_ms=5000, topic_partitions=[])


@scenario
def consumer_group_bad_input(broker: Exchange) -> None:
    """What is refused before the group is looked at."""
    group = Group(broker)
    member = group.member()
    for version in versions("ConsumerGroupHeartbeat"):
        member.version = version
        for note, fields in (
            ("no group", {"group_id": ""}),
            ("a blank group", {"group_id": " "}),
            ("no instance", {"instance_id": ""}),
            ("no rack", {"rack_id": ""}),
            ("no rebalance timeout", {"rebalance_timeout_ms": -1}),
            ("owns partitions", {"topic_partitions": None}),
            ("no subscription", {"subscribed_topic_names": None}),
            ("a low epoch", {"member_epoch": -3}),
            ("leaves for a while without an instance", {"member_epoch": STATIC_LEAVE}),
            ("leaves without an id", {"member_epoch": LEAVE, "member_id": ""}),
            ("an unknown assignor", {"server_assignor": "mine"}),
        ):
            member.beat(note, **fields)
    member.beat("no id", member_id="")
    member.beat("a bad pattern", subscribed_topic_names=None, subscribed_topic_regex="a(b")
    for version in versions("ConsumerGroupDescribe"):
        broker.ask("ConsumerGroupDescribe", version, note="of none", group_ids=[group.name, ""])


@scenario
def consumer_group_static_member(broker: Exchange) -> None:
    """A static member leaves for a while and comes back under another id."""
    group = Group(broker)
    first = group.member(FIRST, instance="one")
    first.beat("joins")
    second = group.member(SECOND, instance="one")
    second.beat("while the first is there")
    second.epoch = first.epoch
    second.beat("with its epoch")
    second.beat("leaves for it", member_epoch=STATIC_LEAVE)
    first.beat("leaves for a while", member_epoch=STATIC_LEAVE)
    group.describe(note="away")
    second.epoch = JOIN
    second.beat("takes its place")
    group.describe(note="back")
    first.beat("the old one")
    second.beat("leaves", member_epoch=LEAVE)
    second.beat("an unknown instance")


@scenario
def consumer_group_assignors(broker: Exchange) -> None:
    """Three members with either assignor, and with different subscriptions."""
    for assignor in ("uniform", "range"):
        group = Group(broker, assignor, partitions=7)
        members = [group.member(each) for each in (FIRST, SECOND, THIRD)]
        for member in members:
            member.beat(quietly=True, server_assignor=assignor)
        group.settle(*members)
        group.describe(note=f"{assignor}")
        other = broker.topic(f"{assignor}-other", 3)
        broker.in_effect()
        members[0].beat(f"{assignor} other topic", subscribed_topic_names=[group.topic, other])
        group.settle(*members)
        group.describe(note=f"{assignor} with another topic")


@scenario
def consumer_group_topics_change(broker: Exchange) -> None:
    """A topic is created, gets more partitions, and is deleted."""
    group = Group(broker, partitions=2)
    name = broker.name("later")
    member = group.member()
    member.beat("joins", subscribed_topic_names=[group.topic, name])
    broker.topic("later", 1)
    answer = broker.until(lambda: member.beat(quietly=True), lambda answer: answer.assignment is not None)
    broker.record("after the creation", answer, 1)
    more = part("CreatePartitions", "CreatePartitionsTopic", name=group.topic, count=3, assignments=None)
    answer = broker.quietly("CreatePartitions", 3, topics=[more], timeout_ms=10_000)
    assert answer.results[0].error_code == 0, answer
    answer = broker.until(lambda: member.beat(quietly=True), lambda answer: answer.assignment is not None)
    broker.record("after more partitions", answer, 1)
    group.describe()


@scenario
def consumer_group_pattern(broker: Exchange) -> None:
    """A subscription by pattern."""
    group = Group(broker, partitions=2)
    member = group.member()
    member.beat(
        "joins", subscribed_topic_names=None, subscribed_topic_regex=broker.prefix.replace("-", ".") + "[.]group-t.*"
    )
    answer = broker.until(
        lambda: member.beat(quietly=True),
        lambda answer: answer.assignment is not None and answer.assignment.topic_partitions,
    )
    broker.record("has matched", answer, 1)
    member.beat("another pattern", subscribed_topic_regex="none.*")
    member.beat("no pattern", subscribed_topic_regex="", subscribed_topic_names=[group.topic])
    group.settle(member)
    group.describe()


@scenario
def consumer_group_offsets(broker: Exchange) -> None:
    """Offsets of members: with their epoch, with others, and after the group is empty."""
    group = Group(broker)
    member = group.member()
    member.beat("joins")

    def commit(note: str, epoch: int, member_id: str = FIRST, version: int = 9) -> None:
        partition = part("OffsetCommit", "OffsetCommitRequestPartition", partition_index=0, committed_offset=1)
        broker.ask(
            "OffsetCommit",
            version,
            note=note,
            group_id=group.name,
            member_id=member_id,
            generation_id_or_member_epoch=epoch,
            topics=[part("OffsetCommit", "OffsetCommitRequestTopic", name=group.topic, partitions=[partition])],
        )

    def fetch(note: str, epoch: int, member_id: str | None = FIRST) -> None:
        asked = part("OffsetFetch", "OffsetFetchRequestTopics", name=group.topic, partition_indexes=[0, 1])
        wanted = part(
            "OffsetFetch",
            "OffsetFetchRequestGroup",
            group_id=group.name,
            member_id=member_id,
            member_epoch=epoch,
            topics=[asked],
        )
        broker.ask("OffsetFetch", 9, note=note, groups=[wanted])

    def delete(note: str, topic: str) -> None:
        partition = part("OffsetDelete", "OffsetDeleteRequestPartition", partition_index=0)
        topics = [part("OffsetDelete", "OffsetDeleteRequestTopic", name=topic, partitions=[partition])]
        broker.ask("OffsetDelete", 0, note=note, group_id=group.name, topics=topics)

    commit("its epoch", member.epoch)
    commit("an older client", member.epoch, version=8)
    commit("an epoch before it was assigned", member.epoch - 1)
    commit("a later epoch", member.epoch + 1)
    commit("nobody", -1, "")
    commit("a stranger", member.epoch, "x")
    fetch("its epoch", member.epoch)
    fetch("another epoch", member.epoch + 1)
    fetch("a stranger", member.epoch, "x")
    fetch("nobody", -1, None)
    delete("a topic with subscribers", group.topic)
    delete("another topic", broker.topic("other"))
    for version in versions("DescribeGroups"):
        broker.ask("DescribeGroups", version, groups=[group.name])
    broker.ask("DeleteGroups", 2, note="with a member", groups_names=[group.name])
    broker.ask("JoinGroup", 9, note="another protocol", **_classic_join(group, "connect"))
    member.beat("leaves", member_epoch=LEAVE)
    commit("nobody, of an empty group", -1, "")
    broker.ask("DeleteGroups", 2, note="empty", groups_names=[group.name])
    group.describe(note="deleted")


def _classic_join(group: Group, protocol_type: str) -> dict[str, Any]:
    return {
        "group_id": group.name,
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": protocol_type,
        "protocols": [part("JoinGroup", "JoinGroupRequestProtocol", name="range", metadata=b"x")],
    }


@scenario
def consumer_group_settings(broker: Exchange) -> None:
    """A group with settings of its own."""
    group = Group(broker)

    def alter(name: str, value: str) -> None:
        config = part("IncrementalAlterConfigs", "AlterableConfig", name=name, config_operation=0, value=value)
        resource = part(
            "IncrementalAlterConfigs",
            "AlterConfigsResource",
            resource_type=32,
            resource_name=group.name,
            configs=[config],
        )
        broker.ask("IncrementalAlterConfigs", 1, note=f"{name}={value}", resources=[resource])

    alter("consumer.heartbeat.interval.ms", "7000")
    alter("consumer.heartbeat.interval.ms", "1")
    alter("consumer.session.timeout.ms", "50000")
    alter("consumer.assignment.interval.ms", "0")
    member = group.member()
    answer = broker.until(
        lambda: group.member().beat(quietly=True), lambda answer: answer.heartbeat_interval_ms == 7000
    )
    broker.record("an interval of its own", answer, 1)
    member.beat("joins")


@scenario
def consumer_group_of_a_classic_one(broker: Exchange) -> None:
    """An empty classic group becomes a consumer group, and keeps its offsets."""
    group = Group(broker)
    partition = part("OffsetCommit", "OffsetCommitRequestPartition", partition_index=0, committed_offset=3)
    topics = [part("OffsetCommit", "OffsetCommitRequestTopic", name=group.topic, partitions=[partition])]
    broker.quietly("OffsetCommit", 9, group_id=group.name, generation_id_or_member_epoch=-1, topics=topics)
    member = group.member()
    member.beat("joins a group of offsets")
    asked = part("OffsetFetch", "OffsetFetchRequestTopics", name=group.topic, partition_indexes=[0])
    wanted = part("OffsetFetch", "OffsetFetchRequestGroup", group_id=group.name, topics=[asked])
    broker.ask("OffsetFetch", 9, groups=[wanted])
    member.beat("leaves", member_epoch=LEAVE)
    broker.ask("JoinGroup", 9, note="classic, into the empty group", **_classic_join(group, "consumer"))


def _metadata(topic: str) -> bytes:
    """A subscription as consumers of the classic protocol send it."""
    content = messages.ConsumerProtocolSubscription(topics=[topic], user_data=None)
    return (1).to_bytes(2, "big") + bytes(messages.encode(content, 1))


class Classic:
    """A member of the classic protocol, the only one of its group or one of a consumer group."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.member_id = ""
        self.generation = -1

    def join(self, note: str) -> None:
        protocols = [part("JoinGroup", "JoinGroupRequestProtocol", name="range", metadata=_metadata(self.group.topic))]
        fields = _classic_join(self.group, "consumer") | {"protocols": protocols}
        broker = self.group.broker
        if not self.member_id:
            self.member_id = broker.quietly("JoinGroup", 9, **fields).member_id
        answer = broker.ask("JoinGroup", 9, note=note, member_id=self.member_id, **fields)
        self.generation = answer.generation_id
        assignments = []
        if answer.members:
            rows = [messages.ConsumerProtocolAssignment.TopicPartition(topic=self.group.topic, partitions=[0, 1, 2, 3])]
            content = messages.ConsumerProtocolAssignment(assigned_partitions=rows)
            everything = (1).to_bytes(2, "big") + bytes(messages.encode(content, 1))
            assignments = [
                part("SyncGroup", "SyncGroupRequestAssignment", member_id=self.member_id, assignment=everything)
            ]
        protocol = {"protocol_type": "consumer", "protocol_name": "range"}
        broker.ask("SyncGroup", 5, note=note, assignments=assignments, **protocol, **self.identity())

    def identity(self) -> dict[str, Any]:
        return {"group_id": self.group.name, "member_id": self.member_id, "generation_id": self.generation}

    def beat(self, note: str) -> Any:
        return self.group.broker.ask("Heartbeat", 4, note=note, **self.identity())


@scenario
def consumer_group_up_and_down(broker: Exchange) -> None:
    """A classic group becomes a consumer group while it lives, and a classic one again. Neither waits for the interval
    between assignments."""
    group = Group(broker, assignment_interval_ms=LONG_INTERVAL_MS)
    classic = Classic(group)
    classic.join("alone")
    newer = group.member(SECOND)
    newer.beat("the newer joins")
    group.describe(note="of both protocols")
    broker.ask("DescribeGroups", 6, note="of both protocols", groups=[group.name])
    classic.beat("is told to join")
    classic.join("beside the newer")
    newer.beat("the newer gets its part")
    classic.beat("settled")
    wrong = classic.generation
    classic.generation += 5
    classic.beat("another generation")
    classic.generation = wrong
    group.describe(note="settled")
    identity = part("LeaveGroup", "MemberIdentity", member_id="x")
    broker.ask("LeaveGroup", 5, note="a stranger", group_id=group.name, members=[identity])
    newer.beat("the newer leaves", member_epoch=LEAVE)
    group.describe(note="a classic one")
    classic.beat("is told to join again")
    classic.join("alone again")
    newer.epoch = JOIN
    newer.beat("the newer is back")
    identity = part("LeaveGroup", "MemberIdentity", member_id=classic.member_id)
    broker.ask("LeaveGroup", 5, note="the classic leaves", group_id=group.name, members=[identity])
    group.set_interval(0)
    group.settle(newer)
    group.describe(note="a consumer group")
