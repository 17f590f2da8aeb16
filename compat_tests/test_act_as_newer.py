"""`--act-as 4.4`: the APIs and versions that are new in that release, asked of its own broker and of pykafkad."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.normalise import differences, normalised
from compat_tests.setup.kafka_jars import fetch_other_broker
from pykafkad.errors import name
from pykafkad.wire import messages

RELEASE = "4.4"
SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}
UNKNOWN_ID = b"u" * 16
TRANSACTION = 1


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ProcessBroker, ProcessBroker]]:
    """The release's own broker and ours."""
    kafka = KafkaProcess(fetch_other_broker(RELEASE), tmp_path_factory.mktemp("kafka"))
    ours = PykafkadProcess(tmp_path_factory.mktemp("pykafkad"), {"pykafkad.act.as": RELEASE})
    try:
        for each in (kafka, ours):
            each.start()
        yield kafka, ours
    finally:
        for each in (kafka, ours):
            each.close()


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
def test_new_in_4_4(both: tuple[ProcessBroker, ProcessBroker], round_of: Any) -> None:
    """Every field of the answers."""
    transcripts = []
    for each in both:
        exchange = Exchange(each.bootstrap, "newer")
        try:
            round_of(exchange)
        finally:
            exchange.close()
        transcripts.append(normalised(exchange))
    theirs, ours = transcripts
    assert [label for label, _ in theirs] == [label for label, _ in ours] != []
    found = [
        row
        for (label, expected), (_, answered) in zip(theirs, ours, strict=True)
        for row in differences(label, expected, answered)
    ]
    assert found == []
