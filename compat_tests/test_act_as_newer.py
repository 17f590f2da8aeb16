"""`--act-as 4.4`: the APIs and versions that are new in that release, asked of its own broker and of pykafkad."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.brokers.release_sides import Sides, running_sides
from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.transcripts import assert_same_answers
from pykafkad.errors import name
from pykafkad.wire import messages

RELEASE = "4.4"
SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}
UNKNOWN_ID = b"u" * 16
# Everybody may do what no entry is about.
WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
TOPIC, LITERAL, DESCRIBE, DENY, ALLOW = 2, 3, 8, 2, 3
TRANSACTION = 1


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """The release's own broker and ours."""
    with running_sides(RELEASE, tmp_path_factory.mktemp("both")) as sides:
        yield sides


@pytest.fixture(scope="module")
def both_with_acls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """The same with an authorizer."""
    with running_sides(RELEASE, tmp_path_factory.mktemp("with-acls"), WITH_ACLS) as sides:
        yield sides


def clients_that_say_whom_they_mean(broker: Exchange) -> None:
    """KIP-1242: of this cluster and node, another node, another cluster, and halves of both."""
    cluster_id = broker.quietly("Metadata", 12, topics=[]).cluster_id
    codes = []
    for meant in ((cluster_id, 1), (cluster_id, 2), ("other", 1), (None, -1), (None, 1), (cluster_id, -1), ("", -1)):
        answer = broker.quietly("ApiVersions", 5, cluster_id=meant[0], node_id=meant[1], **SOFTWARE)
        codes.append((name(answer.error_code), len(answer.api_keys)))
    broker.record("ApiVersions v5", str(codes))


def controllers(broker: Exchange) -> None:
    """KIP-1312: the active one, and those that nobody has registered."""
    for controller_id in (1, 2, -1):
        broker.ask("UnregisterController", 0, note=str(controller_id), controller_id=controller_id)


def descriptions_of_topologies(broker: Exchange) -> None:
    """KIP-1331 without a plug-in, whatever is pushed."""
    description = messages.StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription()
    for group_id, member_id in (("g", "m"), ("", "")):
        fields = {"group_id": group_id, "member_id": member_id, "topology_epoch": 1}
        broker.ask("StreamsGroupTopologyDescriptionUpdate", 0, topology_description=description, **fields)


def streams_groups(broker: Exchange) -> None:
    """What a member and an administrator are told in both versions."""
    topic, group = broker.topic(partitions=2), broker.name("group")
    broker.coordinator(group)
    of = messages.StreamsGroupHeartbeatRequest
    topology = of.Topology(epoch=1, subtopologies=[of.Subtopology(subtopology_id="0", source_topics=[topic])])
    tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": [], "client_tags": []}
    joining = {"member_id": "m", "process_id": "p", "rebalance_timeout_ms": 1000, "topology": topology, **tasks}
    for version in (1, 0):
        broker.ask("StreamsGroupHeartbeat", version, group_id=group, member_epoch=0, **joining)
    for asked in (False, True):
        broker.ask("StreamsGroupDescribe", 1, group_ids=[group], include_topology_description=asked)
        broker.ask("StreamsGroupDescribe", 1, group_ids=["none"], include_topology_description=asked)
    broker.ask("DeleteGroups", 3, groups_names=[group])


def deletions(broker: Exchange) -> None:
    """Of a group that is not there."""
    group = broker.name("group")
    broker.coordinator(group)
    broker.ask("DeleteGroups", 3, groups_names=[group])


def offsets_in_transactions(broker: Exchange) -> None:
    """KIP-1319: topics by id, and errors that older versions do not know."""
    topic, group, transaction = broker.topic(), broker.name("group"), broker.name("transaction")
    topic_id = broker.topic_id(topic)
    broker.coordinator(group)
    broker.until(
        lambda: broker.quietly("FindCoordinator", 4, key_type=TRANSACTION, coordinator_keys=[transaction]),
        lambda answer: answer.coordinators[0].error_code == 0,
    )
    producer = broker.until(
        lambda: broker.quietly("InitProducerId", 4, transactional_id=transaction, transaction_timeout_ms=60_000),
        lambda answer: answer.error_code == 0,
    )
    rows = [part("TxnOffsetCommit", "TxnOffsetCommitRequestPartition", partition_index=each) for each in (0, 9)]
    known = {"topic_id": topic_id, "name": topic, "partitions": rows}
    for version in (5, 6):
        for generation, member in ((-1, ""), (3, ""), (3, "m")):
            for each in (known, {**known, "topic_id": UNKNOWN_ID, "name": "none", "partitions": rows[:1]}):
                broker.ask(
                    "TxnOffsetCommit",
                    version,
                    note=f"{generation} {member}",
                    transactional_id=transaction,
                    group_id=group,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    generation_id=generation,
                    member_id=member,
                    topics=[part("TxnOffsetCommit", "TxnOffsetCommitRequestTopic", **each)],
                )


@pytest.mark.parametrize(
    "round_of",
    [
        clients_that_say_whom_they_mean,
        controllers,
        descriptions_of_topologies,
        streams_groups,
        deletions,
        offsets_in_transactions,
    ],
)
def test_new_in_4_4(both: Sides, round_of: Any) -> None:
    """Every field of the answers."""
    assert_same_answers([each.bootstrap for each in both], round_of)


def _entry(name: str, host: str, permission_type: int) -> Any:
    fields = {"resource_type": TOPIC, "resource_pattern_type": LITERAL, "operation": DESCRIBE}
    return part(
        "CreateAcls",
        "AclCreation",
        resource_name=name,
        principal="User:ANONYMOUS",
        host=host,
        permission_type=permission_type,
        **fields,
    )


def hosts_of_entries(broker: Exchange) -> None:
    """KIP-1276: ranges of addresses, and what is none."""
    name = broker.name("nothing")
    for host in (
        "*", "10.0.0.1", "not a host", "", "10.0.0.0/8", "10.1.2.3/8", "10.0.0.0/0", "10.0.0.0/32", "10.0.0.0/33",
        "010.0.0.0/8", "10.0.0.0/08", "10.0.0/8", "10.0.0.256/8", "1000.0.0.0/8", "10.0.0.0/", "/8", "10.0.0.0/-1",
        "10.0.0.0/255.0.0.0", "10.0.0.0/8/8", "a/b", "*/8", "2001:db8::/32", "2001:db8::1/32", "::/0", "::/128",
        "::/129", "::/-1", "::/a", "2001:db8::g/32", "::ffff:10.0.0.0/104", "::10.0.0.0/104",
    ):  # fmt: skip
        broker.ask("CreateAcls", 3, note=host, creations=[_entry(name, host, ALLOW)])


def entries_for_ranges(broker: Exchange) -> None:
    """Whom a denial is for; this client comes from 127.0.0.1."""
    for host in ("127.0.0.0/8", "127.0.0.1/32", "127.0.0.0/32", "126.0.0.0/7", "10.0.0.0/8", "0.0.0.0/0", "::/0"):
        topic = broker.topic(host.replace("/", "-").replace(":", "."))
        created = broker.quietly("CreateAcls", 3, creations=[_entry(topic, host, DENY)])
        assert created.results[0].error_code == 0
        broker.in_effect()
        asked = [part("Metadata", "MetadataRequestTopic", name=topic)]
        answer = broker.quietly("Metadata", 12, topics=asked, allow_auto_topic_creation=False)
        broker.record(f"Metadata {host}", name(answer.topics[0].error_code))


def quotas_without_an_end(broker: Exchange) -> None:
    """Infinite quotas, and those that are no number."""
    for key in ("producer_byte_rate", "request_percentage", "controller_mutation_rate"):
        for value in (float("inf"), float("nan"), 1e300):
            entity = [part("AlterClientQuotas", "EntityData", entity_type="user", entity_name=broker.name("u"))]
            change = [part("AlterClientQuotas", "OpData", key=key, value=value, remove=False)]
            entry = part("AlterClientQuotas", "EntryData", entity=entity, ops=change)
            broker.ask("AlterClientQuotas", 1, note=f"{key} {value}", entries=[entry])


@pytest.mark.parametrize("round_of", [hosts_of_entries, entries_for_ranges, quotas_without_an_end])
def test_entries_and_quotas_of_4_4(both_with_acls: Sides, round_of: Any) -> None:
    """Every field of the answers."""
    assert_same_answers([each.bootstrap for each in both_with_acls], round_of)
