"""Streams groups (KIP-1071): heartbeats, tasks, descriptions, offsets, records. `streams_topologies.py` goes on."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.registry import scenario
from compat_tests.scenarios.stored_groups import STREAMS_TYPES, record_stored

JOIN, LEAVE, STATIC_LEAVE = 0, -1, -2
FIRST, SECOND, THIRD = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"
API = "StreamsGroupHeartbeat"


def info(name: str, partitions: int = 0, replication_factor: int = 0, **configs: str) -> Any:
    """An internal topic of a topology. Underscores in configs stand for dots."""
    return part(
        API,
        "TopicInfo",
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        topic_configs=[part(API, "KeyValue", key=key.replace("_", "."), value=configs[key]) for key in configs],
    )


def subtopology(number: int = 0, *sources: str, **fields: Any) -> Any:
    """One subtopology that reads topics."""
    return part(API, "Subtopology", subtopology_id=str(number), source_topics=list(sources), **fields)


def topology(*subtopologies: Any, epoch: int = 0) -> Any:
    """A topology."""
    return part(API, "Topology", epoch=epoch, subtopologies=list(subtopologies))


class Group:
    """A streams group of its own with a source topic. Unless `waits`, it assigns at once."""

    def __init__(self, broker: Exchange, kind: str = "group", partitions: int = 4, *, waits: bool = False) -> None:
        self.broker = broker
        self.name = broker.name(kind)
        self.topic = broker.topic(f"{kind}-topic", partitions)
        self.topology = topology(subtopology(0, self.topic))
        broker.coordinator(self.name)
        if not waits:
            self.set(streams_initial_rebalance_delay_ms="0", streams_assignment_interval_ms="0")

    def set(self, **configs: str) -> None:
        """Change settings of the group."""
        self.broker.set_group(self.name, **configs)

    def member(self, member_id: str = FIRST, **options: Any) -> Member:
        return Member(self, member_id, **options)

    def describe(self, note: str = "", *others: str) -> Any:
        return self.broker.ask("StreamsGroupDescribe", 0, note=note, group_ids=[self.name, *others])

    def internal(self, *names: str) -> None:
        """Wait until internal topics exist."""
        rows = [part("Metadata", "MetadataRequestTopic", name=name) for name in names]
        self.broker.until(
            lambda: self.broker.quietly("Metadata", 12, topics=rows, allow_auto_topic_creation=False),
            lambda answer: (
                not any(row.error_code or any(each.error_code for each in row.partitions) for row in answer.topics)
            ),
        )
        self.broker.in_effect()


class Member:
    """A member that knows its epoch and its tasks, and says that it has them."""

    def __init__(self, group: Group, member_id: str, **fields: Any) -> None:
        self.group = group
        self.member_id = member_id
        self.own = {"process_id": f"process-{member_id[-1]}", **fields}
        self.epoch = JOIN
        self.endpoints = 0
        self.active: list[Any] = []
        self.standby: list[Any] = []

    def fields(self, **fields: Any) -> dict[str, Any]:
        known: dict[str, Any] = {
            "group_id": self.group.name,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "endpoint_information_epoch": self.endpoints,
            "active_tasks": self.active,
            "standby_tasks": self.standby,
            "warmup_tasks": [],
        }
        if self.epoch == JOIN:
            known |= {"rebalance_timeout_ms": 120_000, "topology": self.group.topology, **self.own}
        return {**known, **fields}

    def beat(self, note: str = "", *, quietly: bool = False, **fields: Any) -> Any:
        """A heartbeat; its answer changes what the member knows."""
        broker = self.group.broker
        values = self.fields(**fields)
        answer = broker.quietly(API, 0, **values) if quietly else broker.ask(API, 0, note=note, **values)
        if answer.error_code == 0 and answer.member_epoch > 0:
            self.epoch = answer.member_epoch
            self.endpoints = answer.endpoint_information_epoch
            if answer.active_tasks is not None:
                self.active, self.standby = _tasks(answer.active_tasks), _tasks(answer.standby_tasks)
        return answer

    def rejoin(self) -> None:
        """Forget everything."""
        self.epoch, self.endpoints, self.active, self.standby = JOIN, 0, [], []


def _tasks(rows: list[Any]) -> list[Any]:
    return [
        part(API, "TaskIds", subtopology_id=row.subtopology_id, partitions=list(row.partitions)) for row in rows or ()
    ]


def _listed(broker: Exchange) -> None:
    """The scenario's own groups in a list of streams groups."""
    answer = broker.quietly("ListGroups", 5, types_filter=["streams"])
    answer.groups = [row for row in answer.groups if row.group_id.startswith(broker.prefix)]
    broker.record("ListGroups v5", answer, 5)


@scenario
def streams_group_join_and_leave(broker: Exchange) -> None:
    """A member joins, gets a task for each partition, and leaves."""
    group = Group(broker)
    member = group.member(
        rack_id="rack",
        client_tags=[part(API, "KeyValue", key="zone", value="a")],
        user_endpoint=part(API, "Endpoint", host="localhost", port=8080),
    )
    member.beat("joins")
    member.beat("again")
    member.beat("says nothing", active_tasks=None, standby_tasks=None, warmup_tasks=None)
    group.describe("assigned", broker.name("nobody"), "")
    _listed(broker)
    broker.ask("DescribeGroups", 6, groups=[group.name])
    broker.ask("ConsumerGroupDescribe", 1, group_ids=[group.name])
    broker.ask("DeleteGroups", 2, note="not empty", groups_names=[group.name])
    member.beat("leaves", member_epoch=LEAVE)
    member.beat("is gone")
    group.describe("empty")
    _listed(broker)
    broker.ask("DeleteGroups", 2, groups_names=[group.name])
    group.describe("deleted")


@scenario
def streams_group_waits_for_members(broker: Exchange) -> None:
    """A new group waits some time before it assigns, and says so. Both members are there by then."""
    group = Group(broker, waits=True)
    first, second = group.member(FIRST), group.member(SECOND)
    first.beat("first joins")
    second.beat("second joins")
    group.describe("waits")
    broker.until(
        lambda: broker.quietly("StreamsGroupDescribe", 0, group_ids=[group.name]).groups[0],
        lambda described: described.assignment_epoch == described.group_epoch,
    )
    first.beat("first is assigned")
    second.beat("second is assigned")
    group.describe("assigned")


@scenario
def streams_group_tasks_move(broker: Exchange) -> None:
    """The second member waits until the first has given up a part; a third process gets its share."""
    group = Group(broker, partitions=6)
    first, second = group.member(FIRST), group.member(SECOND)
    first.beat("first")
    second.beat("second joins")
    group.describe("while the first has all")
    before = first.active
    first.beat("first is told to give up")
    kept, first.active = first.active, before
    second.beat("second waits")
    first.beat("first still has all")
    first.active = kept
    first.beat("first has given up")
    second.beat("second gets its part")
    group.describe("settled")
    third = group.member(THIRD)
    third.beat("third joins", quietly=True)
    for _ in range(3):
        for member in (first, second, third):
            member.beat(quietly=True)
    group.describe("three")
    second.beat("second leaves", member_epoch=LEAVE)
    for _ in range(3):
        for member in (first, third):
            member.beat(quietly=True)
    group.describe("two")


@scenario
def streams_group_two_members_of_a_process(broker: Exchange) -> None:
    """Members of one process share its tasks. An active task moves between them only when it is given up."""
    group = Group(broker, partitions=4)
    first, second = group.member(FIRST, process_id="process"), group.member(SECOND, process_id="process")
    first.beat("first")
    second.beat("second joins")
    for turn in range(2):
        first.beat(f"first {turn}")
        second.beat(f"second {turn}")
    group.describe("settled")


@scenario
def streams_group_standby_tasks(broker: Exchange) -> None:
    """With a state store and one standby replica each task has a second place, in another process."""
    group = Group(broker, partitions=2)
    changelog = f"{group.name}-store-changelog"
    group.topology = topology(subtopology(0, group.topic, state_changelog_topics=[info(changelog)]))
    group.set(streams_num_standby_replicas="1")
    first, second = group.member(FIRST), group.member(SECOND)
    first.beat("first", quietly=True)
    group.internal(changelog)
    for member in (first, second, first, second, first, second):
        member.beat(quietly=True)
    group.describe("one standby")
    group.set(streams_num_standby_replicas="0")
    for member in (first, second, first, second):
        member.beat(quietly=True)
    group.describe("none")


@scenario
def streams_group_bad_heartbeats(broker: Exchange) -> None:
    """Wrong epochs, ids, and fields that do not belong together."""
    group = Group(broker)
    other = group.member(SECOND)
    other.beat("no such group", member_epoch=1, topology=None)
    other.beat("leaves no group", member_epoch=LEAVE, topology=None)
    member = group.member()
    member.beat("joins")
    for note, fields in {
        "no member id": {"member_id": ""},
        "no group": {"group_id": ""},
        "no rack": {"rack_id": " "},
        "a static member": {"instance_id": "instance"},
        "an empty instance": {"instance_id": ""},
        "leaves for a while": {"member_epoch": STATIC_LEAVE},
        "epoch -3": {"member_epoch": -3},
        "task offsets": {"task_offsets": []},
        "end offsets": {"task_end_offsets": []},
        "warm-up tasks": {"warmup_tasks": [part(API, "TaskIds", subtopology_id="0", partitions=[0])]},
        "only active tasks": {"standby_tasks": None, "warmup_tasks": None},
        "only null active tasks": {"active_tasks": None},
        "a topology": {"topology": group.topology},
        "a greater epoch": {"member_epoch": member.epoch + 1},
        "a smaller epoch": {"member_epoch": member.epoch - 1},
        "the epoch before, with foreign tasks": {
            "member_epoch": member.epoch - 1,
            "active_tasks": [part(API, "TaskIds", subtopology_id="0", partitions=[9])],
        },
        "an unknown subtopology": {"active_tasks": [part(API, "TaskIds", subtopology_id="x", partitions=[0])]},
        "an unknown task": {"active_tasks": [part(API, "TaskIds", subtopology_id="0", partitions=[99])]},
        "a negative task": {"active_tasks": [part(API, "TaskIds", subtopology_id="0", partitions=[-1])]},
        "an unknown standby task": {"standby_tasks": [part(API, "TaskIds", subtopology_id="0", partitions=[99])]},
        "an unknown member": {"member_id": SECOND},
        "an unknown member leaves": {"member_id": SECOND, "member_epoch": LEAVE},
    }.items():
        broker.ask(API, 0, note=note, **member.fields(**fields))
    for note, fields in {
        "joins without a time-out": {"rebalance_timeout_ms": -1},
        "joins with tasks": {"active_tasks": [part(API, "TaskIds", subtopology_id="0", partitions=[0])]},
        "joins with null tasks": {"active_tasks": None},
        "joins with null standby tasks": {"standby_tasks": None},
        "joins with null warm-up tasks": {"warmup_tasks": None},
        "joins without a topology": {"topology": None},
    }.items():
        broker.ask(API, 0, note=note, **other.fields(**fields))
    member.beat("goes on")
    member.rejoin()
    member.beat("joins again")
    group.describe()


@scenario
def streams_group_endpoints(broker: Exchange) -> None:
    """Members with an endpoint are told where the partitions of all others are, when that has changed."""
    group = Group(broker, partitions=2)
    first, second = (
        group.member(each, user_endpoint=part(API, "Endpoint", host=each[-1], port=port))
        for each, port in ((FIRST, 1), (SECOND, 65535))
    )
    first.beat("first")
    first.beat("nothing new")
    second.beat("second joins")
    for turn in range(3):
        first.beat(f"first {turn}")
        second.beat(f"second {turn}")
    first.beat("knows nothing", endpoint_information_epoch=-1)
    group.describe()


@scenario
def streams_group_shutdown(broker: Exchange) -> None:
    """One member asks for the end of the application, and every member is told."""
    group = Group(broker)
    first, second = group.member(FIRST), group.member(SECOND)
    first.beat("first")
    second.beat("second")
    second.beat("asks for the end", shutdown_application=True)
    first.beat("first is told")
    second.beat("leaves", member_epoch=LEAVE)
    first.beat("first is still told")


@scenario
def streams_group_offsets(broker: Exchange) -> None:
    """Offsets are committed with the member's epoch, by nobody while there are members, and by anybody afterwards."""
    group = Group(broker)
    member = group.member()
    member.beat("joins")

    def commit(note: str, version: int = 9, *, topic: str = group.topic, **fields: Any) -> None:
        row = part("OffsetCommit", "OffsetCommitRequestPartition", partition_index=0, committed_offset=1)
        topics = [part("OffsetCommit", "OffsetCommitRequestTopic", name=topic, partitions=[row])]
        values = {
            "group_id": group.name,
            "member_id": member.member_id,
            "generation_id_or_member_epoch": member.epoch,
            "topics": topics,
            **fields,
        }
        broker.ask("OffsetCommit", version, note=note, **values)

    commit("by the member")
    commit("in a version for classic members", 8)
    commit("an older epoch", generation_id_or_member_epoch=member.epoch - 1)
    commit("a newer epoch", generation_id_or_member_epoch=member.epoch + 1)
    commit("a stranger", member_id=SECOND)
    commit("nobody", member_id="", generation_id_or_member_epoch=-1)
    for note, fields in {
        "by the member": {"member_id": member.member_id, "member_epoch": member.epoch},
        "an older epoch": {"member_id": member.member_id, "member_epoch": member.epoch - 1},
        "a stranger": {"member_id": SECOND, "member_epoch": member.epoch},
        "nobody": {},
    }.items():
        row = part("OffsetFetch", "OffsetFetchRequestGroup", group_id=group.name, topics=None, **fields)
        broker.ask("OffsetFetch", 9, note=note, groups=[row])

    def delete(note: str) -> None:
        row = part("OffsetDelete", "OffsetDeleteRequestPartition", partition_index=0)
        topics = [part("OffsetDelete", "OffsetDeleteRequestTopic", name=group.topic, partitions=[row])]
        broker.ask("OffsetDelete", 0, note=note, group_id=group.name, topics=topics)

    delete("while the topic is read")
    member.beat("leaves", member_epoch=LEAVE)
    commit("a member that left")
    commit("nobody in an empty group", member_id="", generation_id_or_member_epoch=-1)
    delete("while nobody reads")


@scenario
def streams_group_among_other_groups(broker: Exchange) -> None:
    """A group with members of another kind cannot become a streams group, nor the other way round."""
    group = Group(broker)
    member = group.member()
    member.beat("joins")
    consumer = {
        "group_id": group.name,
        "member_id": SECOND,
        "member_epoch": 0,
        "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": [group.topic],
        "topic_partitions": [],
    }
    broker.ask("ConsumerGroupHeartbeat", 1, note="in a streams group", **consumer)
    share = {
        "group_id": group.name,
        "member_id": SECOND,
        "member_epoch": 0,
        "subscribed_topic_names": [group.topic],
    }
    broker.ask("ShareGroupHeartbeat", 1, note="in a streams group", **share)
    protocol = part("JoinGroup", "JoinGroupRequestProtocol", name="range", metadata=b"")
    classic = {
        "group_id": group.name,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [protocol],
    }
    broker.ask("JoinGroup", 3, note="in a streams group", **classic)
    broker.ask("Heartbeat", 4, group_id=group.name, generation_id=1, member_id=member.member_id)
    broker.ask("SyncGroup", 5, group_id=group.name, generation_id=1, member_id=member.member_id)
    leaving = part("LeaveGroup", "MemberIdentity", member_id=member.member_id)
    broker.ask("LeaveGroup", 5, group_id=group.name, members=[leaving])
    member.beat("goes on")
    other = broker.name("consumers")
    broker.until(
        lambda: broker.quietly("ConsumerGroupHeartbeat", 1, **{**consumer, "group_id": other}),
        lambda answer: answer.error_code == 0,
    )
    member.rejoin()
    member.beat("in a consumer group", group_id=other)
    broker.ask("StreamsGroupDescribe", 0, note="a consumer group", group_ids=[other])
    member.beat("leaves a consumer group", group_id=other, member_epoch=LEAVE, topology=None)


@scenario
def streams_group_from_an_empty_classic_group(broker: Exchange) -> None:
    """A group that only has offsets becomes a streams group, and keeps them."""
    group = Group(broker)
    row = part("OffsetCommit", "OffsetCommitRequestPartition", partition_index=0, committed_offset=1)
    topics = [part("OffsetCommit", "OffsetCommitRequestTopic", name=group.topic, partitions=[row])]
    broker.ask("OffsetCommit", 8, group_id=group.name, generation_id_or_member_epoch=-1, topics=topics)
    member = group.member()
    member.beat("joins")
    group.describe()
    member.beat("leaves", member_epoch=LEAVE)
    asked = part("OffsetFetch", "OffsetFetchRequestGroup", group_id=group.name, topics=None)
    broker.ask("OffsetFetch", 9, groups=[asked])
    _listed(broker)


@scenario
def streams_group_records(broker: Exchange) -> None:
    """Every record that the coordinator writes of a group with a store, standby tasks, and members that come and go."""
    group = Group(broker, partitions=3)
    changelog = f"{group.name}-changelog"
    group.topology = topology(
        subtopology(0, group.topic, state_changelog_topics=[info(changelog, 0, 1, cleanup_policy="compact")])
    )
    group.set(streams_num_standby_replicas="1")
    first, second = (
        group.member(
            each,
            rack_id="rack",
            client_tags=[part(API, "KeyValue", key="zone", value="a")],
            user_endpoint=part(API, "Endpoint", host="localhost", port=9000),
        )
        for each in (FIRST, SECOND)
    )
    first.beat(quietly=True)
    group.internal(changelog)
    for member in (first, first, second, first, second, first, second):
        assert member.beat(quietly=True).error_code == 0
    first.beat(quietly=True, member_epoch=LEAVE)
    for _ in range(2):
        assert second.beat(quietly=True).error_code == 0
    second.beat(quietly=True, member_epoch=LEAVE)
    broker.ask("DeleteGroups", 2, groups_names=[group.name])
    record_stored(broker, group.name, STREAMS_TYPES)
