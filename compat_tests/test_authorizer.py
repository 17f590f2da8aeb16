"""The authorizer beside that of a real Kafka: the same ACLs, the same requests, answers compared.

Both brokers run with `allow.everyone.if.no.acl.found`, so that the anonymous caller can create ACLs: no ACL of a test
takes from it what it needs for that on the cluster.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.brokers.choose import broker_process
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, assert_no_bug_logged
from compat_tests.scenarios.acls import ALLOW, ANY, CLUSTER, DENY, GROUP, LITERAL, PREFIXED, TOPIC, acl, chosen, part
from compat_tests.scenarios.exchange import Exchange
from compat_tests.scenarios.normalise import differences, normalised
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.wire.batch import build_batch

TRANSACTIONAL_ID = 5
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS = range(2, 12)
IDEMPOTENT_WRITE = 12
SETTINGS = {"authorizer.class.name": STANDARD_AUTHORIZER, "allow.everyone.if.no.acl.found": "true"}
ANONYMOUS, EVERYBODY, OTHER = "User:ANONYMOUS", "User:*", "User:other"
HERE, ELSEWHERE = "127.0.0.1", "10.1.2.3"
# Names of topics and groups; those without records behind them are asked for as well.
TOPICS = ("alpha", "alpha-one", "beta")
MISSING = "alpha-none"
GROUPS = ("alpha-group", "beta-group")
OPERATIONS = (READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL)
# What the caller needs on the cluster to change ACLs, and the broker itself to be one.
KEPT = (ALTER, CLUSTER_ACTION, ALTER_CONFIGS, DESCRIBE_CONFIGS)
RANDOM_SETS = 25
SHOWN = 40


class Guarded:
    """One broker with an authorizer, asked by an anonymous caller from 127.0.0.1."""

    def __init__(self, broker: ProcessBroker) -> None:
        self.broker = broker
        self.exchange = Exchange(f"127.0.0.1:{broker.bootstrap.rpartition(':')[2]}", "authorizer")
        self.exchange.prefix = "authorizer"

    def prepare(self) -> None:
        """Topics with a record, and groups with an offset."""
        exchange = self.exchange
        for name in TOPICS:
            exchange.topic(name)
        for name in GROUPS:
            exchange.coordinator(exchange.name(name))
            commit(exchange, name, TOPICS[0], quietly=True)
        wait_for_producer_ids(exchange)

    def set_acls(self, rows: Iterable[Any]) -> None:
        """These ACLs, and no others, are in effect."""
        ask = self.exchange.quietly
        for kind in (TOPIC, GROUP, TRANSACTIONAL_ID, CLUSTER):
            answer = ask("DeleteAcls", 3, filters=[part("DeleteAcls", "DeleteAclsFilter", **of_type(kind))])
            assert answer.filter_results[0].error_code == 0, answer
        rows = list(rows)
        answer = ask("CreateAcls", 3, creations=rows)
        assert not any(row.error_code for row in answer.results), answer
        self.exchange.in_effect()


def of_type(kind: int) -> dict[str, Any]:
    """A filter for all ACLs of a resource type."""
    return chosen(resource_type_filter=kind, pattern_type_filter=ANY)


def commit(exchange: Exchange, group: str, topic: str, *, quietly: bool = False) -> None:
    """Commit an offset without a member."""
    partition = part("OffsetCommit", "OffsetCommitRequestPartition", partition_index=0, committed_offset=1)
    topics = [part("OffsetCommit", "OffsetCommitRequestTopic", name=exchange.name(topic), partitions=[partition])]
    ask = exchange.quietly if quietly else exchange.ask
    ask("OffsetCommit", 8, group_id=exchange.name(group), generation_id_or_member_epoch=-1, topics=topics)


def ask_about_topics(exchange: Exchange) -> None:
    """What a client may ask about topics, those that are missing included."""
    names = [exchange.name(name) for name in (*TOPICS, MISSING)]
    asked = [part("Metadata", "MetadataRequestTopic", name=name) for name in names]
    asked.append(part("Metadata", "MetadataRequestTopic", name="__consumer_offsets"))
    exchange.ask(
        "Metadata", 12, topics=asked, include_topic_authorized_operations=True, allow_auto_topic_creation=False
    )
    bad = [part("Metadata", "MetadataRequestTopic", name=exchange.name("alpha/bad"))]
    exchange.ask("Metadata", 12, note="creating", topics=bad, include_topic_authorized_operations=True)
    exchange.ask("Metadata", 9, note="creating without operations", topics=bad)
    exchange.ask(
        "Metadata", 12, note="all", topics=None, include_topic_authorized_operations=True,
        allow_auto_topic_creation=False,
    )  # fmt: skip
    exchange.ask("Metadata", 9, note="cluster", topics=[], include_cluster_authorized_operations=True)
    exchange.ask("DescribeCluster", 1, include_cluster_authorized_operations=True)
    exchange.ask(
        "DescribeTopicPartitions",
        0,
        topics=[part("DescribeTopicPartitions", "TopicRequest", name=name) for name in names],
    )
    # Of now: retention removes old ones.
    record = bytes(build_batch([(None, b"x")], timestamp_ms=int(time.time() * 1000)))
    for name in names:
        short = name.removeprefix(exchange.prefix)
        data = [part("Produce", "PartitionProduceData", index=0, records=record)]
        exchange.ask(
            "Produce", 9, note=short, acks=-1, timeout_ms=10_000,
            topic_data=[part("Produce", "TopicProduceData", name=name, partition_data=data)],
        )  # fmt: skip
        fetched = part("Fetch", "FetchPartition", partition=0, partition_max_bytes=100, current_leader_epoch=-1)
        exchange.ask(
            "Fetch", 11, note=short, replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=100, session_epoch=-1,
            topics=[part("Fetch", "FetchTopic", topic=name, partitions=[fetched])],
        )  # fmt: skip
    rows = [part("ListOffsets", "ListOffsetsPartition", partition_index=0, timestamp=-2)]
    topics = [part("ListOffsets", "ListOffsetsTopic", name=name, partitions=rows) for name in names]
    exchange.ask("ListOffsets", 7, replica_id=-1, topics=topics)
    resources = [
        part("DescribeConfigs", "DescribeConfigsResource", resource_type=2, resource_name=name,
             configuration_keys=["retention.ms"])
        for name in names
    ]  # fmt: skip
    exchange.ask("DescribeConfigs", 4, resources=resources)
    more = [part("CreatePartitions", "CreatePartitionsTopic", name=name, count=2) for name in names]
    exchange.ask("CreatePartitions", 3, topics=more, timeout_ms=10_000, validate_only=True)
    new = part("CreateTopics", "CreatableTopic", name=exchange.name("alpha-new"), num_partitions=1,
               replication_factor=1)  # fmt: skip
    exchange.ask("CreateTopics", 7, topics=[new], timeout_ms=10_000, validate_only=True)
    gone = [part("DeleteTopics", "DeleteTopicState", name=exchange.name(MISSING))]
    exchange.ask("DeleteTopics", 6, topics=gone, timeout_ms=10_000)
    producers = [part("DescribeProducers", "TopicRequest", name=name, partition_indexes=[0]) for name in names]
    exchange.ask("DescribeProducers", 0, topics=producers)


def ask_about_groups(exchange: Exchange) -> None:
    """What a client may ask about groups, transactional ids and producer ids."""
    names = [exchange.name(name) for name in GROUPS]
    exchange.ask("FindCoordinator", 4, key_type=0, coordinator_keys=names)
    exchange.ask("FindCoordinator", 4, note="transaction", key_type=1, coordinator_keys=[exchange.name("alpha-id")])
    exchange.ask("DescribeGroups", 5, groups=names, include_authorized_operations=True)
    exchange.ask("ConsumerGroupDescribe", 1, group_ids=names, include_authorized_operations=True)
    exchange.ask("ListGroups", 4)
    for group in GROUPS:
        for topic in TOPICS[:2]:
            commit(exchange, group, topic)
        rows = [part("OffsetFetch", "OffsetFetchRequestGroup", group_id=exchange.name(group), topics=None)]
        exchange.ask("OffsetFetch", 8, note=f"{group} all", groups=rows)
        topics = [
            part("OffsetFetch", "OffsetFetchRequestTopics", name=exchange.name(topic), partition_indexes=[0])
            for topic in TOPICS
        ]
        rows = [part("OffsetFetch", "OffsetFetchRequestGroup", group_id=exchange.name(group), topics=topics)]
        exchange.ask("OffsetFetch", 8, note=group, groups=rows)
        exchange.ask("Heartbeat", 4, note=group, group_id=exchange.name(group), generation_id=1, member_id="nobody")
    exchange.ask("DeleteGroups", 2, groups_names=[exchange.name("alpha-none"), exchange.name("beta-none")])
    exchange.ask(
        "InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000, producer_id=-1, producer_epoch=-1
    )
    exchange.ask("DescribeTransactions", 0, transactional_ids=[exchange.name("alpha-id"), exchange.name("beta-id")])
    exchange.ask("ListTransactions", 1, state_filters=[], producer_id_filters=[])


def own(name: str, operation: int, **fields: Any) -> Any:
    """An ACL for the caller, by default one that allows; `name` is that of this test."""
    resource = name if name == "*" else f"authorizer.{name}"
    return acl(resource, **{"principal": ANONYMOUS, "operation": operation, **fields})


def on_cluster(*operations: int, **fields: Any) -> list[Any]:
    """ACLs of the cluster, those that must stay allowed included."""
    wanted = {"resource_type": CLUSTER, "principal": ANONYMOUS}
    rows = [acl("kafka-cluster", operation=operation, **wanted) for operation in KEPT]
    return rows + [acl("kafka-cluster", operation=operation, **{**wanted, **fields}) for operation in operations]


SETS: dict[str, list[Any]] = {
    "none": [],
    "read one topic": [own("alpha", READ)],
    "of somebody else": [own("alpha", READ, principal=OTHER)],
    "everybody may write": [own("*", WRITE, principal=EVERYBODY)],
    "a prefix": [own("alpha", DESCRIBE, resource_pattern_type=PREFIXED)],
    "all but one": [own("*", ALL), own("alpha", ALL, permission_type=DENY)],
    "a denied prefix": [own("*", ALL), own("alpha-", READ, resource_pattern_type=PREFIXED, permission_type=DENY)],
    "here": [own("alpha", READ, host=HERE), own("beta", READ, host=ELSEWHERE)],
    "denied here": [own("*", READ), own("alpha", READ, host=HERE, permission_type=DENY),
                    own("beta", READ, host=ELSEWHERE, permission_type=DENY)],
    "denied describe": [own("*", ALL), own("alpha", DESCRIBE, permission_type=DENY)],
    "settings": [own("alpha", ALTER_CONFIGS), own("beta", DESCRIBE_CONFIGS)],
    "delete and alter": [own("alpha", DELETE, resource_pattern_type=PREFIXED), own("beta", ALTER)],
    "create": [own("alpha-new", CREATE), *on_cluster()],
    "create anywhere": [own("*", DESCRIBE), *on_cluster(CREATE)],
    "idempotent": [own("*", READ), *on_cluster(IDEMPOTENT_WRITE)],
    "not idempotent": [own("*", READ), *on_cluster()],
    "any topic": [own("elsewhere", WRITE), *on_cluster()],
    "any topic denied": [own("elsewhere", WRITE), own("else", ALL, permission_type=DENY,
                         resource_pattern_type=PREFIXED), *on_cluster()],
    "cluster described": on_cluster(DESCRIBE),
    "cluster not described": on_cluster(DESCRIBE, permission_type=DENY),
    "one group": [own("alpha-group", READ, resource_type=GROUP), own("alpha", READ)],
    "groups described": [own("*", DESCRIBE, resource_type=GROUP), own("alpha", DESCRIBE)],
    "groups deleted": [own("alpha", DELETE, resource_type=GROUP, resource_pattern_type=PREFIXED)],
    "transactional ids": [own("alpha", DESCRIBE, resource_type=TRANSACTIONAL_ID, resource_pattern_type=PREFIXED)],
}  # fmt: skip


def random_set(seed: int) -> list[Any]:
    """Some ACLs about the names of this test."""
    dice = random.Random(seed)
    rows = []
    for _ in range(dice.choice((1, 3, 8, 20))):
        kind = dice.choice((TOPIC, TOPIC, TOPIC, GROUP, TRANSACTIONAL_ID))
        prefixed = dice.random() < 0.4
        rows.append(
            own(
                dice.choice((*TOPICS, *GROUPS, "al", "beta-", MISSING, "*")),
                dice.choice(OPERATIONS),
                resource_type=kind,
                resource_pattern_type=PREFIXED if prefixed else LITERAL,
                principal=dice.choice((ANONYMOUS, ANONYMOUS, EVERYBODY, OTHER)),
                host=dice.choice(("*", "*", HERE, ELSEWHERE)),
                permission_type=dice.choice((ALLOW, ALLOW, DENY)),
            )
        )
    return rows + (on_cluster(*dice.sample((CREATE, IDEMPOTENT_WRITE), dice.choice((0, 1)))) if dice.random() < 0.3
                   else [])  # fmt: skip


@pytest.fixture(scope="module")
def guarded(
    kafka_jars: Path, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Guarded]]:
    """A real Kafka and a pykafkad, each with an authorizer."""
    started: list[ProcessBroker] = []
    try:
        for name in AGAINST[pytestconfig.getoption("--against")]:
            started.append(broker_process(name, kafka_jars, tmp_path_factory.mktemp(name), SETTINGS))
            started[-1].start()
        both = [Guarded(broker) for broker in started]
        for each in both:
            each.prepare()
        yield both
        for each in both:
            each.exchange.close()
    finally:
        for broker in started:
            broker.close()
            if isinstance(broker, PykafkadProcess):
                assert_no_bug_logged(broker)


@pytest.mark.parametrize("name", [*SETS, *range(RANDOM_SETS)])
def test_both_decide_alike(guarded: list[Guarded], name: str | int) -> None:
    """The ACLs of the table, and random ones: every answer is the same."""
    transcripts = []
    for each in guarded:
        each.set_acls(SETS[name] if isinstance(name, str) else random_set(name))
        each.exchange.steps.clear()
        ask_about_topics(each.exchange)
        ask_about_groups(each.exchange)
        transcripts.append(normalised(each.exchange))
    assert_alike(transcripts)


def assert_alike(transcripts: list[list[tuple[str, Any]]]) -> None:
    """All transcripts say the same; where they differ, the first comes first."""
    lines = []
    for (label, expected), (_, answered) in zip(transcripts[0], transcripts[-1], strict=True):
        lines += [
            f"{label}: {path}: {left!r} != {right!r}" for _, path, left, right in differences(label, expected, answered)
        ]
    assert not lines, "\n".join(lines[:SHOWN])


def test_a_directory_of_kafkas_is_guarded_as_kafka_guards_it(kafka_jars: Path, tmp_path: Path) -> None:
    """Kafka stores ACLs while the caller is a super user; then nobody is. Kafka and pykafkad, each with a copy of the
    directory, give the same answers."""
    rows = [*SETS["denied here"], *SETS["a prefix"], *SETS["one group"], *SETS["not idempotent"]]
    settings = {"authorizer.class.name": STANDARD_AUTHORIZER}
    (tmp_path / "first").mkdir()
    first = KafkaProcess(kafka_jars, tmp_path / "first", {**settings, "super.users": ANONYMOUS})
    try:
        first.start()
        guarded = Guarded(first)
        guarded.prepare()
        guarded.set_acls(rows)
        guarded.exchange.close()
        first.stop()
    finally:
        first.close()
    transcripts = []
    for name in ("kafka", "pykafkad"):
        shutil.copytree(tmp_path / "first" / "data", tmp_path / name / "data")
        broker = broker_process(name, kafka_jars, tmp_path / name, settings)
        try:
            broker.start()
            guarded = Guarded(broker)
            wait_for_the_groups(guarded.exchange)
            guarded.exchange.steps.clear()
            ask_about_topics(guarded.exchange)
            ask_about_groups(guarded.exchange)
            transcripts.append(normalised(guarded.exchange))
            guarded.exchange.close()
        finally:
            broker.close()
    assert_alike(transcripts)


def wait_for_producer_ids(exchange: Exchange) -> None:
    """The coordinator of transactions loads for a moment when it is used first, and so do producer ids."""
    new = {"transaction_timeout_ms": 1000, "producer_id": -1, "producer_epoch": -1}
    ids = [exchange.name(name) for name in ("alpha-id", "beta-id")]
    exchange.until(
        lambda: exchange.quietly("FindCoordinator", 4, key_type=1, coordinator_keys=ids),
        lambda answer: not any(row.error_code for row in answer.coordinators),
    )
    exchange.until(
        lambda: exchange.quietly("InitProducerId", 4, transactional_id=None, **new),
        lambda answer: answer.error_code == 0,
    )
    exchange.until(
        lambda: exchange.quietly("DescribeTransactions", 0, transactional_ids=ids),
        lambda answer: all(row.error_code not in (14, 15, 16) for row in answer.transaction_states),
    )


def wait_for_the_groups(exchange: Exchange) -> None:
    """A broker that starts loads its groups for a moment."""
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        answer = exchange.quietly("DescribeGroups", 5, groups=[exchange.name(GROUPS[0])])
        if answer.groups[0].error_code not in (14, 15, 16):
            return
        time.sleep(0.1)
    raise AssertionError("the groups are not loaded")
