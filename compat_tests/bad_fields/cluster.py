"""The topics, records and groups that every broker gets first, and new ones for requests that use them up."""

from __future__ import annotations

import time
from typing import Any

from compat_tests.bad_fields.variants import CREATABLE
from compat_tests.scenarios.exchange import Exchange, part
from pykafkad.wire.batch import build_batch

REBALANCE_MS = 1000
SESSION_MS = 1_800_000
# Longer than the longest session that a variant may have given to a group with one of its own names.
SESSION_SECONDS = 180.0
GROUP, TRANSACTION = 0, 1
UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE = 3, 5
LOADING = (14, 15, 16)


def records() -> bytes:
    """A batch of three records with the current time: older ones would be deleted while the tests run."""
    return bytes(build_batch([(b"key", b"value"), (None, b"1"), (b"key", None)], timestamp_ms=int(time.time() * 1000)))


class Cluster:
    """One broker's state. Names carry the exchange's prefix, so that answers compare equal; `fresh` numbers them."""

    def __init__(self, broker: Exchange) -> None:
        self.broker = broker
        self._count = 0
        self._session_id = 0
        self.topic = broker.topic("topic", partitions=2)
        self.empty = broker.topic("empty")
        self.written = broker.topic("written")
        self.configured = broker.topic("configured")
        self.growing = broker.topic("growing")
        self.topic_id = broker.topic_id(self.topic)
        self.written_id = broker.topic_id(self.written)
        for _ in range(3):
            broker.produce(self.topic, 0, records())
        self.group = broker.name("group")
        broker.coordinator(self.group)
        self.commit(self.group)
        self.member_group, self.member_id = self.member("members", SESSION_MS)
        self.static_group, self.static_id = self.member("static", SESSION_MS, "instance")
        described = broker.quietly("DescribeCluster", 0)
        self.cluster_id = described.cluster_id
        broker.quietly("DescribeLogDirs", 4, topics=None)
        self.log_dir = broker.quietly("DescribeLogDirs", 4, topics=None).results[0].log_dir

    def renew_written(self) -> None:
        """Begin with a new topic to write to."""
        self.written = self.broker.topic(f"written-{self._count}")
        self.written_id = self.broker.topic_id(self.written)
        self._count += 1

    def create_made_up(self) -> None:
        """Wait until the topics exist that requests have created by asking for an unknown name."""
        self._await_made_up(lambda code: code not in (UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE), creating=True)

    def delete_made_up(self) -> None:
        """Delete the topics that requests have created as a side effect, so that unknown names are unknown again."""
        self.broker.quietly("DeleteTopics", 5, topic_names=list(CREATABLE), timeout_ms=10_000)
        self._await_made_up(lambda code: code == UNKNOWN_TOPIC, creating=False)

    def _await_made_up(self, accept: Any, creating: bool) -> None:
        rows = [part("Metadata", "MetadataRequestTopic", name=name) for name in CREATABLE]
        self.broker.until(
            lambda: self.broker.quietly("Metadata", 7, topics=rows, allow_auto_topic_creation=creating),
            lambda answer: all(accept(topic.error_code) for topic in answer.topics),
        )

    def await_topic(self, name: str) -> None:
        """Wait until an internal topic exists that a request has made the broker create."""
        rows = [part("Metadata", "MetadataRequestTopic", name=name)]
        self.broker.until(
            lambda: self.broker.quietly("Metadata", 12, topics=rows, allow_auto_topic_creation=False),
            lambda answer: not answer.topics[0].error_code,
        )

    def await_producer_ids(self) -> None:
        """Wait until producer ids are given out and coordinators of transactions are found. Both take a moment at
        first.
        """
        find = lambda: self.broker.quietly("FindCoordinator", 3, key="nobody", key_type=TRANSACTION)  # noqa: E731
        self.broker.until(find, lambda answer: answer.error_code not in LOADING)
        ask = lambda: self.broker.quietly("InitProducerId", 2, transactional_id=None, transaction_timeout_ms=1)  # noqa: E731
        self.broker.until(ask, lambda answer: answer.error_code not in LOADING)
        add = lambda: self.broker.quietly("AddOffsetsToTxn", 2, transactional_id="nobody", group_id="nobody")  # noqa: E731
        self.broker.until(add, lambda answer: isinstance(answer, str) or answer.error_code not in LOADING)

    def await_end_of_sessions(self) -> None:
        """Wait until no group with a variant's name has members.

        Nobody heartbeats for these members, and the rest of their sessions differs between brokers.
        """
        states = ["Stable", "PreparingRebalance", "CompletingRebalance"]
        deadline = time.monotonic() + SESSION_SECONDS
        while True:
            groups = self.broker.quietly("ListGroups", 4, states_filter=states).groups
            alive = [group.group_id[:40] for group in groups if not group.group_id.startswith(self.broker.prefix)]
            if not alive:
                return
            assert time.monotonic() < deadline, f"groups still have members after {SESSION_SECONDS} s: {alive[:10]}"
            time.sleep(0.2)

    def fresh(self, kind: str) -> str:
        """A name that was not used before."""
        self._count += 1
        return self.broker.name(f"{kind}-{self._count}")

    def fresh_topic(self) -> str:
        """A topic of one partition that nothing else uses."""
        name = self.fresh("topic")
        wanted = part("CreateTopics", "CreatableTopic", name=name, num_partitions=1, replication_factor=1)
        answer = self.broker.quietly("CreateTopics", 7, topics=[wanted], timeout_ms=10_000)
        assert answer.topics[0].error_code == 0, answer
        return name

    def fetch_session(self, version: int) -> int:
        """The id of a new session on the first topic (KIP-227); its next request has epoch 1.

        The session before it is closed, because a broker keeps few.
        """
        if self._session_id:
            self.broker.quietly("Fetch", version, session_id=self._session_id, session_epoch=-1)
        row = part("Fetch", "FetchPartition", partition=0, fetch_offset=1, partition_max_bytes=1 << 20)
        topic = part("Fetch", "FetchTopic", topic=self.topic, topic_id=self.topic_id, partitions=[row])
        answer = self.broker.quietly("Fetch", version, session_epoch=0, max_bytes=1 << 20, topics=[topic])
        assert answer.error_code == 0 and answer.session_id, answer
        self._session_id = answer.session_id
        return answer.session_id

    def fresh_group(self) -> str:
        """A group without members that has committed an offset."""
        name = self.fresh("group")
        self.commit(name)
        return name

    def commit(self, group: str) -> None:
        """Commit an offset without a member (generation -1)."""
        row = part("OffsetCommit", "OffsetCommitRequestPartition", partition_index=0, committed_offset=1)
        row.committed_metadata = "note"
        topics = [part("OffsetCommit", "OffsetCommitRequestTopic", name=self.topic, partitions=[row])]
        answer = self.broker.quietly("OffsetCommit", 7, group_id=group, topics=topics)
        assert answer.topics[0].partitions[0].error_code == 0, answer

    def fresh_member(self, session_ms: int = SESSION_MS, instance_id: str | None = None) -> tuple[str, str]:
        """A stable group of one member: its name, and the member's id."""
        return self.member(self.fresh("member"), session_ms, instance_id)

    def member(self, kind: str, session_ms: int, instance_id: str | None = None) -> tuple[str, str]:
        """A stable group of one member in generation 1, static if it has an instance id."""
        group = kind if kind.startswith(self.broker.prefix) else self.broker.name(kind)
        protocol = part("JoinGroup", "JoinGroupRequestProtocol", name="range", metadata=b"range")
        fields: dict[str, Any] = {
            "session_timeout_ms": session_ms,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
        }
        version = 3 if instance_id is None else 5
        joined = self.broker.quietly(
            "JoinGroup", version, group_id=group, group_instance_id=instance_id, protocols=[protocol], **fields
        )
        assert joined.error_code == 0, joined
        assigned = [part("SyncGroup", "SyncGroupRequestAssignment", member_id=joined.member_id, assignment=b"all")]
        identity = {"generation_id": 1, "member_id": joined.member_id, "group_instance_id": instance_id}
        synced = self.broker.quietly("SyncGroup", 3, group_id=group, assignments=assigned, **identity)
        assert synced.error_code == 0, synced
        return group, joined.member_id
