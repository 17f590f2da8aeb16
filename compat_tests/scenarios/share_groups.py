"""Share groups (KIP-932): heartbeats, share fetches and acknowledgements, the share coordinator, offsets."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.registry import scenario
from pykafkad.uuids import to_text
from pykafkad.wire.batch import build_batch

JOIN, LEAVE = 0, -1
FIRST, SECOND = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
STRANGER = bytes(range(16))
# The longest interval between two assignments that a group may set. No scenario takes nearly as long.
LONG_INTERVAL_MS = 15_000
SHARE = 2


class Group:
    """A share group of its own that begins at the start of a topic with six records in two batches."""

    def __init__(
        self, broker: Exchange, kind: str = "group", partitions: int = 1, *, assignment_interval_ms: int = 0
    ) -> None:
        self.broker = broker
        self.name = broker.name(kind)
        self.topic = broker.topic(f"{kind}-topic", partitions)
        self.topic_id = (
            broker.quietly("Metadata", 12, topics=[part("Metadata", "MetadataRequestTopic", name=self.topic)])
            .topics[0]
            .topic_id
        )
        broker.coordinator(self.name)
        broker.set_group(
            self.name, share_auto_offset_reset="earliest", share_assignment_interval_ms=str(assignment_interval_ms)
        )
        for values in ("abcd", "ef"):
            batch = build_batch([(None, value.encode()) for value in values], timestamp_ms=int(time.time() * 1000))
            broker.produce(self.topic, 0, bytes(batch))

    def share_coordinator(self) -> None:
        """Wait for the share coordinator of the first partition."""
        self.broker.needs("ReadShareGroupStateSummary")
        key = f"{self.name}:{to_text(self.topic_id)}:0"
        self.broker.until(
            lambda: self.broker.quietly("FindCoordinator", 6, key_type=SHARE, coordinator_keys=[key]),
            lambda answer: answer.coordinators[0].error_code == 0,
        )
        row = part("ReadShareGroupStateSummary", "PartitionData", partition=0, leader_epoch=-1)
        data = part("ReadShareGroupStateSummary", "ReadStateSummaryData", topic_id=self.topic_id, partitions=[row])
        self.broker.until(
            lambda: self.broker.quietly("ReadShareGroupStateSummary", 1, group_id=self.name, topics=[data]),
            lambda answer: answer.results[0].partitions[0].error_code == 0,
        )


class Member:
    """A member with a connection of its own, which knows its epoch and its session's."""

    def __init__(self, group: Group, member_id: str = FIRST) -> None:
        self.group = group
        self.member_id = member_id
        self.epoch = JOIN
        self.session = 0
        self.assigned = False
        self.connection = group.broker.connect()

    def beat(self, note: str = "", *, quietly: bool = False, **fields: Any) -> Any:
        """A heartbeat; its answer changes what the member knows."""
        broker = self.group.broker
        values = {
            "group_id": self.group.name,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "subscribed_topic_names": [self.group.topic] if self.epoch == JOIN else None,
            **fields,
        }
        if quietly:
            answer = broker.quietly("ShareGroupHeartbeat", 1, **values)
        else:
            answer = broker.ask("ShareGroupHeartbeat", 1, note=note, **values)
        if answer.error_code == 0 and answer.member_epoch > 0:
            self.epoch = answer.member_epoch
            self.assigned = self.assigned or bool(answer.assignment and answer.assignment.topic_partitions)
        return answer

    def join(self) -> Member:
        """Unrecorded heartbeats until there is an assignment."""
        answer = self.group.broker.until(
            lambda: self.beat(quietly=True), lambda answer: self.assigned or answer.error_code
        )
        assert answer.error_code == 0, answer
        return self

    def fetch(
        self, note: str = "", *, version: int = 2, back: Any = (), epoch: int | None = None, **fields: Any
    ) -> Any:
        """A share fetch of the first partition."""
        first = part(
            "ShareFetch",
            "FetchPartition",
            partition_index=0,
            acknowledgement_batches=[
                part("ShareFetch", "AcknowledgementBatch", first_offset=a, last_offset=b, acknowledge_types=types)
                for a, b, types in back
            ],
        )
        topic = part("ShareFetch", "FetchTopic", topic_id=self.group.topic_id, partitions=[first])
        values = {
            "group_id": self.group.name,
            "member_id": self.member_id,
            "share_session_epoch": self.session if epoch is None else epoch,
            # Some steps find nothing. The share partition is loaded at the first fetch, which may take a moment.
            "max_wait_ms": 10_000 if "gets" in note else 300,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 100,
            "batch_size": 100,
            "topics": [topic] if self.session == 0 or back or epoch is not None else [],
            "forgotten_topics_data": [],
            **fields,
        }
        answer = self.group.broker.ask("ShareFetch", version, on=self.connection, note=note, **values)
        if answer.error_code == 0 and epoch is None:
            self.session += 1
        return answer

    def give_back(
        self, note: str, *batches: Any, version: int = 2, epoch: int | None = None, index: int = 0, **fields: Any
    ) -> Any:
        """A ShareAcknowledge of the first partition."""
        row = part(
            "ShareAcknowledge",
            "AcknowledgePartition",
            partition_index=index,
            acknowledgement_batches=[
                part("ShareAcknowledge", "AcknowledgementBatch", first_offset=a, last_offset=b, acknowledge_types=types)
                for a, b, types in batches
            ],
        )
        topic_id = fields.pop("topic_id", self.group.topic_id)
        values = {
            "group_id": self.group.name,
            "member_id": self.member_id,
            "share_session_epoch": self.session if epoch is None else epoch,
            "topics": [part("ShareAcknowledge", "AcknowledgeTopic", topic_id=topic_id, partitions=[row])],
            **fields,
        }
        answer = self.group.broker.ask("ShareAcknowledge", version, on=self.connection, note=note, **values)
        if answer.error_code == 0 and epoch is None:
            self.session += 1
        return answer


def describe(group: Group, note: str = "", *names: str) -> Any:
    """Record a description of the group, and of others."""
    return group.broker.ask("ShareGroupDescribe", 1, note=note, group_ids=[group.name, *names])


@scenario
def share_group_join_and_leave(broker: Exchange) -> None:
    """A member joins, gets everything, and leaves."""
    group = Group(broker)
    member = Member(group)
    member.beat("joins")
    member.join()
    member.beat("assigned")
    member.beat("sends all", subscribed_topic_names=[group.topic])
    describe(group, "assigned", broker.name("nobody"))
    member.beat("leaves", member_epoch=LEAVE)
    member.beat("is gone")
    describe(group, "empty")
    broker.ask("DeleteGroups", 2, groups_names=[group.name])


@scenario
def share_group_assigns_after_its_interval(broker: Exchange) -> None:
    """A new assignment waits until the group's last one is old enough."""
    broker.needs_setting("share.assignment.interval.ms")
    group = Group(broker, assignment_interval_ms=LONG_INTERVAL_MS)
    member = Member(group)
    member.beat("joins")
    broker.until(
        lambda: (
            member.beat(quietly=True),
            broker.quietly("ShareGroupDescribe", 1, group_ids=[group.name]).groups[0],
        ),
        lambda answers: answers[1].group_epoch > answers[1].assignment_epoch,
    )
    member.beat("waits")
    describe(group, "waits")
    broker.set_group(group.name, share_assignment_interval_ms="0")
    member.beat("assigned")
    describe(group, "assigned")


@scenario
def share_group_bad_heartbeats(broker: Exchange) -> None:
    """Wrong epochs, ids and names."""
    group = Group(broker)
    other = Member(group, SECOND)
    other.beat("no such group", member_epoch=1, subscribed_topic_names=None)
    other.beat("leaves no group", member_epoch=LEAVE, subscribed_topic_names=None)
    member = Member(group).join()
    for note, fields in {
        "no member id": {"member_id": ""},
        "a long member id": {"member_id": "x" * 37},
        "no group": {"group_id": ""},
        "no rack": {"rack_id": ""},
        "no topics": {"member_epoch": 0, "member_id": SECOND, "subscribed_topic_names": []},
        "null topics": {"member_epoch": 0, "member_id": SECOND, "subscribed_topic_names": None},
        "epoch -2": {"member_epoch": -2},
        "a greater epoch": {"member_epoch": member.epoch + 1},
        "a smaller epoch": {"member_epoch": member.epoch - 2},
        "an unknown member": {"member_id": SECOND},
        "an unknown member leaves": {"member_id": SECOND, "member_epoch": LEAVE},
    }.items():
        broker.ask(
            "ShareGroupHeartbeat",
            1,
            note=note,
            **{
                "group_id": group.name,
                "member_id": member.member_id,
                "member_epoch": member.epoch,
                "subscribed_topic_names": None,
                **fields,
            },
        )


@scenario
def share_fetch_and_acknowledge(broker: Exchange) -> None:
    """Records are given once, and come back in every way; in every version."""
    for version in versions("ShareFetch"):
        group = Group(broker, f"group-{version}")
        member = Member(group).join()
        member.fetch("gets all", version=version)
        other = Member(group, SECOND)
        other.fetch("nothing is left", version=version)
        member.give_back("accepts two, rejects one", (0, 1, [1]), (2, 2, [3]), version=version)
        member.give_back("releases one", (3, 3, [2]), version=version)
        other.fetch("gets the released one", version=version)
        member.fetch("accepts with a fetch", back=[(4, 5, [1, 0])], version=version)
        other.give_back("accepts", (3, 3, [1]), version=version)
        other.give_back("ends its session", epoch=-1, version=version)
        member.fetch("ends its session", epoch=-1, version=version, back=[])


@scenario
def share_fetch_modes(broker: Exchange) -> None:
    """Exact numbers of records, renewal, deliveries until a record is given up."""
    group = Group(broker)
    member = Member(group).join()
    member.fetch("gets two records", max_records=2, share_acquire_mode=1)
    member.fetch("gets three records", max_records=3, share_acquire_mode=1)
    member.give_back("renews", (0, 1, [4]), is_renew_ack=True)
    member.fetch(
        "renews with a fetch",
        back=[(2, 2, [4])],
        is_renew_ack=True,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=0,
        max_records=0,
    )
    member.fetch("renewal wants zeros", is_renew_ack=True)
    member.give_back("accepts", (0, 4, [1]))
    for times in range(1, 7):
        member.fetch(f"gets delivery {times}" if times < 5 else f"delivery {times}")
        member.give_back(f"release {times}", (5, 5, [2]))


@scenario
def share_sessions(broker: Exchange) -> None:
    """Wrong epochs and members, unknown partitions."""
    group = Group(broker)
    member = Member(group).join()
    member.fetch("no session yet", epoch=4)
    member.fetch("ends no session", epoch=-1)
    member.fetch("gives back without a session", back=[(0, 0, [1])])
    member.give_back("no session", (0, 0, [1]), epoch=3)
    member.give_back("epoch 0", (0, 0, [1]), epoch=0)
    member.fetch("gets all")
    member.fetch("an old epoch", epoch=7)
    member.give_back("a wrong epoch", (0, 0, [1]), epoch=7)
    for note, fields in {
        "no member": {"member_id": ""},
        "no group": {"group_id": None},
        "a long member": {"member_id": "x" * 37},
    }.items():
        member.fetch(note, epoch=1, **fields)
        member.give_back(note, (0, 0, [1]), epoch=1, **fields)
    topic = part(
        "ShareFetch",
        "FetchTopic",
        topic_id=group.topic_id,
        partitions=[part("ShareFetch", "FetchPartition", partition_index=9)],
    )
    Member(group, SECOND).fetch("an unknown partition", topics=[topic])


@scenario
def share_acknowledgements_of_records_never_given(broker: Exchange) -> None:
    """Each batch is refused, and changes nothing."""
    group = Group(broker)
    member = Member(group).join()
    member.fetch("gets four", max_records=4, share_acquire_mode=1)
    for note, batches in {
        "backwards": [(3, 2, [1])],
        "out of order": [(2, 3, [1]), (0, 1, [1])],
        "no type": [(0, 1, [])],
        "too few types": [(0, 3, [1, 1])],
        "an unknown type": [(0, 1, [5])],
        "a negative type": [(0, 1, [-1])],
        "renewal without saying so": [(0, 1, [4])],
        "past the end": [(50, 60, [1])],
        "beyond the end": [(0, 60, [1])],
        "not acquired": [(4, 5, [1])],
        "half acquired": [(3, 5, [1])],
    }.items():
        member.give_back(note, *batches)
    member.give_back("an unknown partition", (0, 0, [1]), index=9)
    member.give_back("an unknown topic", (0, 0, [1]), topic_id=STRANGER)
    member.give_back("nothing")
    other = Member(group, SECOND)
    other.fetch("gets the rest", max_records=4)
    other.give_back("somebody else's", (0, 3, [1]))
    other.give_back("somebody else's, in part", (1, 2, [1]))
    member.give_back("accepts", (0, 3, [1]))
    member.give_back("accepts twice", (0, 3, [1]))


def _state(broker: Exchange, api: str, group: str, topic_id: bytes, version: int, note: str, *rows: Any) -> Any:
    data = api.replace("ShareGroupState", "State") + "Data"
    topics = [part(api, data, topic_id=topic_id, partitions=list(rows))]
    return broker.ask(api, version, note=note, group_id=group, topics=topics)


@scenario
def share_coordinator(broker: Exchange) -> None:
    """The five APIs of the share coordinator, and what they refuse."""
    group = Group(broker)
    group.share_coordinator()
    name, topic_id = group.name, group.topic_id

    def begin(note: str, partition: int = 0, epoch: int = 1, start: int = 5, topic: bytes = topic_id) -> None:
        row = part(
            "InitializeShareGroupState", "PartitionData", partition=partition, state_epoch=epoch, start_offset=start
        )
        _state(broker, "InitializeShareGroupState", name, topic, 0, note, row)

    def read(note: str, partition: int = 0, epoch: int = -1, topic: bytes = topic_id) -> None:
        row = part("ReadShareGroupState", "PartitionData", partition=partition, leader_epoch=epoch)
        _state(broker, "ReadShareGroupState", name, topic, 0, note, row)

    def write(
        note: str, *batches: Any, partition: int = 0, version: int = 1, topic: bytes = topic_id, **fields: Any
    ) -> None:
        rows = [
            part(
                "WriteShareGroupState", "StateBatch", first_offset=a, last_offset=b, delivery_state=s, delivery_count=c
            )
            for a, b, s, c in batches
        ]
        fields = {"state_epoch": 1, "leader_epoch": 0, "start_offset": -1, "delivery_complete_count": 0, **fields}
        if version == 0:
            del fields["delivery_complete_count"]
        row = part("WriteShareGroupState", "PartitionData", partition=partition, state_batches=rows, **fields)
        _state(broker, "WriteShareGroupState", name, topic, version, note, row)

    def summary(note: str, version: int = 1, partition: int = 0, topic: bytes = topic_id) -> None:
        row = part("ReadShareGroupStateSummary", "PartitionData", partition=partition, leader_epoch=-1)
        _state(broker, "ReadShareGroupStateSummary", name, topic, version, note, row)

    def delete(note: str, partition: int = 0, topic: bytes = topic_id) -> None:
        row = part("DeleteShareGroupState", "PartitionData", partition=partition)
        _state(broker, "DeleteShareGroupState", name, topic, 0, note, row)

    read("uninitialized")
    write("uninitialized")
    summary("uninitialized")
    delete("uninitialized")
    begin("begins")
    write("ranges", (5, 9, 2, 1), (10, 14, 0, 1), version=0)
    read("ranges")
    write("overlaps", (8, 11, 4, 2), (10, 10, 0, 1), start_offset=7, delivery_complete_count=3)
    read("overlaps", epoch=4)
    read("an old leader", epoch=3)
    write("an old leader", leader_epoch=3)
    write("an old state", leader_epoch=4, state_epoch=0)
    begin("an old state", epoch=0)
    for version in (0, 1):
        summary("known", version)
    begin("anew", epoch=2, start=-1)
    read("anew")
    summary("anew")
    for note, options in {
        "unknown topic": {"topic": STRANGER},
        "unknown partition": {"partition": 3},
        "negative": {"partition": -1},
    }.items():
        begin(note, **options)
        read(note, **options)
        write(note, **options)
        summary(note, **options)
        delete(note, **options)
    delete("deletes")
    read("deleted")
    for api in (
        "InitializeShareGroupState",
        "ReadShareGroupState",
        "WriteShareGroupState",
        "DeleteShareGroupState",
        "ReadShareGroupStateSummary",
    ):
        _state(broker, api, name, topic_id, 0, "no partitions")
        _state(broker, api, "", topic_id, 0, "no group")
        broker.ask(api, 0, note="no topics", group_id=name, topics=[])


@scenario
def share_group_offsets(broker: Exchange) -> None:
    """Offsets of a share group: described, altered, deleted."""
    group = Group(broker)

    def described(note: str, topics: Any = None) -> None:
        for version in versions("DescribeShareGroupOffsets"):
            row = part(
                "DescribeShareGroupOffsets", "DescribeShareGroupOffsetsRequestGroup", group_id=group.name, topics=topics
            )
            broker.ask("DescribeShareGroupOffsets", version, note=note, groups=[row])

    def topic(name: str, *partitions: int) -> Any:
        return part(
            "DescribeShareGroupOffsets",
            "DescribeShareGroupOffsetsRequestTopic",
            topic_name=name,
            partitions=list(partitions),
        )

    def alter(note: str, name: str, group_id: str = group.name, **offsets: int) -> None:
        rows = [
            part(
                "AlterShareGroupOffsets",
                "AlterShareGroupOffsetsRequestPartition",
                partition_index=int(key[1:]),
                start_offset=value,
            )
            for key, value in offsets.items()
        ]
        topics = [
            part("AlterShareGroupOffsets", "AlterShareGroupOffsetsRequestTopic", topic_name=name, partitions=rows)
        ]
        broker.ask("AlterShareGroupOffsets", 0, note=note, group_id=group_id, topics=topics)

    def delete(note: str, *names: str, group_id: str = group.name) -> None:
        rows = [
            part("DeleteShareGroupOffsets", "DeleteShareGroupOffsetsRequestTopic", topic_name=each) for each in names
        ]
        broker.ask("DeleteShareGroupOffsets", 0, note=note, group_id=group_id, topics=rows)

    missing = broker.name("missing")
    described("no group")
    delete("no group", group.topic)
    member = Member(group).join()
    described("nothing read")
    member.fetch("gets all")
    member.give_back("accepts", (0, 1, [1]))
    member.give_back("accepts behind a gap", (4, 4, [1]))
    described("two and one done")
    described("by name", [topic(group.topic, 0), topic(missing, 0)])
    described("no topics", [])
    member.beat(quietly=True)
    alter("has members", group.topic, _0=1)
    delete("has members", group.topic)
    member.give_back("ends its session", epoch=-1)
    member.beat(quietly=True)
    member.beat("leaves", member_epoch=LEAVE)
    alter("empty", group.topic, _0=3, _7=1)
    alter("a missing topic", missing, _0=3)
    alter("no id", group.topic, group_id="", _0=3)
    described("altered")
    delete("a missing topic", missing)
    delete("no id", group.topic, group_id="")
    delete("empty", group.topic)
    delete("again", group.topic)
    described("deleted")


@scenario
def share_coordinators_found(broker: Exchange) -> None:
    """FindCoordinator for share partitions, which need not exist."""
    Group(broker).share_coordinator()
    for key in (f"group:{to_text(STRANGER)}:0", "", "group", "group:topic:0", f"group:{to_text(STRANGER)}:x"):
        broker.ask("FindCoordinator", 6, key_type=SHARE, coordinator_keys=[key])
