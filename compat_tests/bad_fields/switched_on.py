"""Valid requests of transactions, share groups and streams groups, on live ones: everything is switched on.

`bases.py` asks the same APIs for what nobody has, with the groups switched off. Here each request has a producer, a
member or a group of its own, so that no change is seen in later answers.
"""

from __future__ import annotations

import time
from typing import Any

from compat_tests.bad_fields.bases import Base, numbers, partitions
from compat_tests.bad_fields.cluster import LOADING, Cluster
from compat_tests.bad_fields.differences import ALLOWED, EXCEPTION, NEVER_ANSWERED, Difference
from compat_tests.bad_fields.encoding import Plain
from compat_tests.scenarios import streams_groups
from compat_tests.scenarios.exchange import Exchange, part
from pykafkad.wire.batch import build_batch

# Nobody is lost while the tests run, and everybody is assigned something at once.
LONG_MS = "3600000"
SETTINGS = {
    **{f"group.{kind}.{which}session.timeout.ms": LONG_MS for kind in ("share", "streams") for which in ("", "max.")},
    **{f"group.{kind}.assignment.interval.ms": "0" for kind in ("consumer", "share", "streams")},
    "group.streams.initial.rebalance.delay.ms": "0",
}
MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
TRANSACTION_MS = 900_000
STATE_EPOCH = 1


class SwitchedOnCluster(Cluster):
    """A cluster with a share group and a streams group, which makes producers and members."""

    def __init__(self, broker: Exchange) -> None:
        super().__init__(broker)
        self.await_producer_ids()
        self.shared = broker.topic("shared", partitions=2)
        self.shared_id = broker.topic_id(self.shared)
        self.share_group, self.empty_share_group = broker.name("share"), broker.name("empty-share")
        for group in (self.share_group, self.empty_share_group):
            self.join_share_group(group)
        leaving = {**joining(self.empty_share_group, self.shared), "member_epoch": -1}
        assert broker.quietly("ShareGroupHeartbeat", 1, **leaving).error_code == 0
        self.share_state()
        self.share_session(2)
        self.changelog = broker.name("store-changelog")
        self.streams_group, _ = self.streams_member(self.topology())
        self.await_topic(self.changelog)

    def join_share_group(self, group: str) -> int:
        """The epoch of the group's member, when it has its partitions: that takes a moment."""
        broker = self.broker
        broker.coordinator(group)
        answer = broker.quietly("ShareGroupHeartbeat", 1, **joining(group, self.shared))
        if not (answer.assignment and answer.assignment.topic_partitions):
            answer = broker.until(
                lambda: broker.quietly(
                    "ShareGroupHeartbeat", 1, **{**joining(group, self.shared), "member_epoch": answer.member_epoch}
                ),
                lambda answer: answer.error_code or (answer.assignment and answer.assignment.topic_partitions),
            )
        assert answer.error_code == 0, answer
        epoch: int = answer.member_epoch
        return epoch

    # --- share groups ---

    def share_session(self, version: int) -> str:
        """The member id of a new session on the shared topic, which has no records."""
        self._count += 1
        member_id = f"member-{self._count}"
        rows = [part("ShareFetch", "FetchPartition", partition_index=index) for index in range(2)]
        topic = part("ShareFetch", "FetchTopic", topic_id=self.shared_id, partitions=rows)
        fields = {"max_wait_ms": 0, "min_bytes": 0, "max_records": 1, "batch_size": 1, "share_session_epoch": 0}
        who = {"group_id": self.share_group, "member_id": member_id}
        answer = self.broker.quietly("ShareFetch", version, **who, topics=[topic], **fields)
        assert answer.error_code == 0, answer
        return member_id

    def share_state(self) -> str:
        """The name of a group that has a state in the first partition."""
        group = self.fresh("state")
        row = part("InitializeShareGroupState", "PartitionData", partition=0, state_epoch=STATE_EPOCH, start_offset=0)
        topic = part("InitializeShareGroupState", "InitializeStateData", topic_id=self.topic_id, partitions=[row])
        answer = self.broker.until(
            lambda: self.broker.quietly("InitializeShareGroupState", 0, group_id=group, topics=[topic]),
            lambda answer: answer.results[0].partitions[0].error_code not in LOADING,
        )
        assert answer.results[0].partitions[0].error_code == 0, answer
        return group

    # --- streams groups ---

    def topology(self) -> Any:
        """One subtopology with a store."""
        changelog = streams_groups.info(self.changelog, cleanup_policy="compact")
        copartitioned = part("StreamsGroupHeartbeat", "CopartitionGroup", source_topics=[0])
        fields = {"state_changelog_topics": [changelog], "copartition_groups": [copartitioned]}
        return streams_groups.topology(streams_groups.subtopology(0, self.topic, **fields))

    def streams_member(self, topology: Any = None) -> tuple[str, int]:
        """A new group and the epoch of its member."""
        group = self.fresh("streams")
        self.broker.coordinator(group)
        topology = topology or streams_groups.topology(streams_groups.subtopology(0, self.topic))
        fields = {"member_epoch": 0, "rebalance_timeout_ms": 5000, "process_id": "process", "topology": topology}
        tasks = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        answer = self.broker.quietly("StreamsGroupHeartbeat", 0, group_id=group, member_id=MEMBER, **fields, **tasks)
        assert answer.error_code == 0, answer
        return group, answer.member_epoch

    # --- transactions ---

    def producer(self, *, is_open: bool = True, with_group: bool = False) -> Plain:
        """A new transactional producer, whose transaction has a partition, and maybe a group."""
        name = self.fresh("id")
        answer = self._until("InitProducerId", 4, transactional_id=name, transaction_timeout_ms=TRANSACTION_MS)
        identity = {
            "transactional_id": name,
            "producer_id": answer.producer_id,
            "producer_epoch": answer.producer_epoch,
        }
        if is_open:
            topic = part("AddPartitionsToTxn", "AddPartitionsToTxnTopic", name=self.written, partitions=[0])
            fields = {f"v3_and_below_{key}": value for key, value in identity.items()}
            self._until("AddPartitionsToTxn", 3, v3_and_below_topics=[topic], **fields)
        if with_group:
            self._until("AddOffsetsToTxn", 3, group_id=self.group, **identity)
        return identity

    def _until(self, api: str, version: int, **fields: Any) -> Any:
        return self.broker.until(
            lambda: self.broker.quietly(api, version, **fields),
            lambda answer: getattr(answer, "error_code", 0) not in LOADING,
        )


def joining(group: str, topic: str) -> Plain:
    return {"group_id": group, "member_id": MEMBER, "member_epoch": 0, "subscribed_topic_names": [topic]}


def share_join(cluster: SwitchedOnCluster, version: int) -> Plain:
    return {**joining(cluster.fresh("share"), cluster.shared), "rack_id": "rack"}


def share_heartbeat(cluster: SwitchedOnCluster, version: int) -> Plain:
    group = cluster.fresh("share")
    return {**joining(group, cluster.shared), "member_epoch": cluster.join_share_group(group)}


def share_topics(cluster: SwitchedOnCluster, *acknowledged: Plain) -> list[Plain]:
    row = {"partition_index": 1, "acknowledgement_batches": list(acknowledged)}
    return [{"topic_id": cluster.shared_id, "partitions": [row]}]


def share_fetch(cluster: SwitchedOnCluster, version: int) -> Plain:
    limits = {"max_wait_ms": 10, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 10, "batch_size": 10}
    who = {"group_id": cluster.share_group, "member_id": cluster.fresh("reader"), "share_session_epoch": 0}
    return {**who, **limits, "topics": share_topics(cluster)}


def share_fetch_in_a_session(cluster: SwitchedOnCluster, version: int) -> Plain:
    acknowledged = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}
    forgotten = [{"topic_id": cluster.shared_id, "partitions": [0]}]
    who = {"member_id": cluster.share_session(version), "share_session_epoch": 1}
    topics = share_topics(cluster, acknowledged)
    return {**share_fetch(cluster, version), **who, "topics": topics, "forgotten_topics_data": forgotten}


def share_acknowledge(cluster: SwitchedOnCluster, version: int) -> Plain:
    acknowledged = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}
    who = {"group_id": cluster.share_group, "member_id": cluster.share_session(version), "share_session_epoch": 1}
    return {**who, "topics": share_topics(cluster, acknowledged)}


def share_state(cluster: SwitchedOnCluster, version: int) -> Plain:
    batch = {"first_offset": 0, "last_offset": 1, "delivery_state": 2, "delivery_count": 1}
    row = {"partition": 0, "state_epoch": STATE_EPOCH, "leader_epoch": 0, "start_offset": 0, "state_batches": [batch]}
    topic = {"topic_id": cluster.topic_id, "partitions": [row]}
    return {"group_id": cluster.share_state(), "topics": [topic]}


def no_share_state(cluster: SwitchedOnCluster, version: int) -> Plain:
    return {**share_state(cluster, version), "group_id": cluster.fresh("state")}


def share_offsets(cluster: SwitchedOnCluster, version: int) -> Plain:
    topic = {"topic_name": cluster.shared, "partitions": [0]}
    return {"groups": [{"group_id": cluster.empty_share_group, "topics": [topic]}]}


def share_offsets_changed(cluster: SwitchedOnCluster, version: int) -> Plain:
    row = {"partition_index": 0, "start_offset": 1}
    topic = {"topic_name": cluster.shared, "partitions": [row]}
    return {"group_id": cluster.empty_share_group, "topics": [topic]}


def streams_join(cluster: SwitchedOnCluster, version: int) -> Plain:
    changelog = {"name": cluster.changelog, "topic_configs": [{"key": "cleanup.policy", "value": "compact"}]}
    subtopology = {
        "subtopology_id": "0",
        "source_topics": [cluster.topic],
        "state_changelog_topics": [changelog],
        "copartition_groups": [{"source_topics": [0]}],
    }
    return {
        "group_id": cluster.fresh("streams"),
        "member_id": MEMBER,
        "member_epoch": 0,
        "rebalance_timeout_ms": 5000,
        "topology": {"epoch": 0, "subtopologies": [subtopology]},
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": "process",
        "user_endpoint": {"host": "localhost", "port": 1},
        "client_tags": [{"key": "zone", "value": "one"}],
    }


def streams_heartbeat(cluster: SwitchedOnCluster, version: int) -> Plain:
    group, epoch = cluster.streams_member()
    tasks = [{"subtopology_id": "0", "partitions": [0]}]
    return {
        "group_id": group,
        "member_id": MEMBER,
        "member_epoch": epoch,
        "topology": None,
        "active_tasks": tasks,
        "standby_tasks": [],
        "warmup_tasks": [],
    }


def init_producer_id(cluster: SwitchedOnCluster, version: int) -> Plain:
    return {"transactional_id": cluster.fresh("id"), "transaction_timeout_ms": 60_000}


def init_producer_id_again(cluster: SwitchedOnCluster, version: int) -> Plain:
    return {**cluster.producer(is_open=False), "transaction_timeout_ms": 60_000}


def transactional_produce(cluster: SwitchedOnCluster, version: int) -> Plain:
    identity = cluster.producer()
    ids = {"producer_id": identity["producer_id"], "producer_epoch": identity["producer_epoch"], "base_sequence": 0}
    now_ms = int(time.time() * 1000)
    batch = build_batch([(None, b"within")], timestamp_ms=now_ms, is_transactional=True, **ids)
    topic = {"name": cluster.written, "topic_id": cluster.written_id}
    topic["partition_data"] = [{"index": 0, "records": bytes(batch)}]
    who = {"transactional_id": identity["transactional_id"]}
    return {**who, "acks": -1, "timeout_ms": 10_000, "topic_data": [topic]}


def add_partitions(cluster: SwitchedOnCluster, version: int) -> Plain:
    identity = {**cluster.producer(is_open=False), "topics": numbers(cluster.written)}
    old = {f"v3_and_below_{name}": value for name, value in identity.items()}
    return {**old, "transactions": [identity]}


def add_offsets(cluster: SwitchedOnCluster, version: int) -> Plain:
    return {**cluster.producer(), "group_id": cluster.group}


def txn_offset_commit(cluster: SwitchedOnCluster, version: int) -> Plain:
    topics = partitions(cluster.topic, committed_offset=1, committed_metadata="note")
    return {**cluster.producer(with_group=True), "group_id": cluster.group, "topics": topics}


def end_txn(cluster: SwitchedOnCluster, version: int) -> Plain:
    return {**cluster.producer(), "committed": True}


def write_txn_markers(cluster: SwitchedOnCluster, version: int) -> Plain:
    identity = cluster.producer()
    del identity["transactional_id"]
    topics = numbers(cluster.written, "partition_indexes")
    return {"markers": [{**identity, "transaction_result": True, "topics": topics, "coordinator_epoch": 0}]}


BASES_SWITCHED_ON: tuple[tuple[str, Base], ...] = (
    ("InitProducerId", init_producer_id),
    ("InitProducerId", init_producer_id_again),
    ("AddPartitionsToTxn", add_partitions),
    ("AddOffsetsToTxn", add_offsets),
    ("Produce", transactional_produce),
    ("TxnOffsetCommit", txn_offset_commit),
    ("DescribeTransactions", lambda cluster, version: {"transactional_ids": [cluster.producer()["transactional_id"]]}),
    ("EndTxn", end_txn),
    ("WriteTxnMarkers", write_txn_markers),
    ("ShareGroupHeartbeat", share_join),
    ("ShareGroupHeartbeat", share_heartbeat),
    ("ShareGroupDescribe", lambda cluster, version: {"group_ids": [cluster.share_group]}),
    ("ShareFetch", share_fetch),
    ("ShareFetch", share_fetch_in_a_session),
    ("ShareAcknowledge", share_acknowledge),
    ("InitializeShareGroupState", no_share_state),
    ("ReadShareGroupState", share_state),
    ("WriteShareGroupState", share_state),
    ("ReadShareGroupStateSummary", share_state),
    ("DeleteShareGroupState", share_state),
    ("DescribeShareGroupOffsets", share_offsets),
    ("AlterShareGroupOffsets", share_offsets_changed),
    ("DeleteShareGroupOffsets", share_offsets_changed),
    ("StreamsGroupHeartbeat", streams_join),
    ("StreamsGroupHeartbeat", streams_heartbeat),
    ("StreamsGroupDescribe", lambda cluster, version: {"group_ids": [cluster.streams_group]}),
)


# Like NEVER_ANSWERED. The first waits for records, on both brokers.
UNANSWERED_SWITCHED_ON = (
    *NEVER_ANSWERED,
    ("ShareFetch", "max_wait_ms", "2147483647"),
    ("DescribeShareGroupOffsets", "groups.topics.partitions", "*an unknown one"),
    ("DescribeShareGroupOffsets", "groups.topics.partitions", "*the greatest"),
)
_NAMED_TWICE = "Kafka answers what is named twice with one row; we answer each row."
_OF_ALL = ("*", "Produce", "WriteTxnMarkers", "AddPartitionsToTxn")
ALLOWED_SWITCHED_ON = (
    *(row for row in ALLOWED if row.api in _OF_ALL),
    Difference(
        "ShareFetch",
        "group_id",
        "*",
        "responses*",
        "Kafka leaves out a share partition that it still loads when the request has waited long enough.",
        is_chance=True,
    ),
    Difference("ShareFetch", "max_bytes", "-*", "responses.0.partitions.0.error_code", EXCEPTION),
    *(Difference("ShareFetch", field, "*twice", "*", EXCEPTION) for field in ("topics", "topics.partitions")),
    *(
        Difference("ShareFetch", field, what, "*", f"{EXCEPTION} We tell UNKNOWN_TOPIC_ID for the topic's partitions.")
        for field, what in (
            ("topics", "good and bad"),
            ("topics", "bad and good"),
            ("topics.topic_id", "*"),
        )
    ),
    *(
        Difference(
            api,
            "topics.partitions.acknowledgement_batches.first_offset",
            "-1",
            "*",
            f"{EXCEPTION} We tell INVALID_RECORD_STATE for the partition.",
        )
        for api in ("ShareFetch", "ShareAcknowledge")
    ),
    *(
        Difference(f"{what}ShareGroup{of}", "*", "*twice", "*", _NAMED_TWICE)
        for of, whats in (
            ("State", ("Initialize", "Read", "Write", "Delete")),
            ("StateSummary", ("Read",)),
            ("Offsets", ("Describe", "Alter")),
        )
        for what in whats
    ),
    Difference("DescribeShareGroupOffsets", "groups.group_id", "empty", "*", EXCEPTION),
    *(
        Difference("DescribeShareGroupOffsets", "groups.topics.partitions", what, "*", reason)
        for what, reason in (
            ("empty", EXCEPTION),
            ("*a negative one", EXCEPTION),
            ("*an unknown one", "Kafka never answers."),
            ("*the greatest", "Kafka never answers."),
        )
    ),
    Difference("AlterShareGroupOffsets", "topics.partitions.partition_index", "-*", "*", EXCEPTION),
    *(
        Difference(
            "StreamsGroupHeartbeat",
            "topology.subtopologies.state_changelog_topics*",
            "*",
            f"{path}*",
            "When the group learns of an internal topic that an earlier request has created is chance.",
            is_chance=True,
        )
        for path in ("status", "active_tasks", "partitions_by_user_endpoint")
    ),
    Difference(
        "StreamsGroupHeartbeat",
        "topology.subtopologies.source_topics",
        "* an unknown one",
        "*",
        "Kafka meets an exception of its own where a member with an endpoint has a source topic that is missing.",
    ),
)
