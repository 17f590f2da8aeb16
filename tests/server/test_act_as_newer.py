"""A broker that acts as Kafka 4.4: what it has besides 4.3 (compat_tests/test_act_as_newer.py asks a real one)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad.errors import name
from pykafkad.wire import messages
from tests.simulation.world import World

UNKNOWN_ID = b"u" * 16


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "data", pykafkad_act_as="4.4")


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [
        (None, -1, "NONE"),
        ("ours", 1, "NONE"),
        ("ours", 2, "REBOOTSTRAP_REQUIRED"),
        ("other", 1, "REBOOTSTRAP_REQUIRED"),
        ("ours", -1, "INVALID_REQUEST"),
        (None, 1, "INVALID_REQUEST"),
    ],
)
def test_a_client_may_say_whom_it_means(world: World, cluster_id: str | None, node_id: int, code: str) -> None:
    """KIP-1242: it names the cluster and the node, or neither."""
    peer = world.connect()
    ours: str = peer.ask(messages.MetadataRequest(topics=[]), 12).cluster_id
    meant = ours if cluster_id == "ours" else cluster_id
    names = {"client_software_name": "test", "client_software_version": "1"}
    answer = peer.ask(messages.ApiVersionsRequest(cluster_id=meant, node_id=node_id, **names), 5)
    assert name(answer.error_code) == code
    assert bool(answer.api_keys) is (code == "NONE")


def test_deletions_of_groups_have_room_for_a_text(world: World) -> None:
    peer = world.connect()
    peer.ask(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    world.turn()
    (row,) = peer.ask(messages.DeleteGroupsRequest(groups_names=["g"]), 3).results
    assert (name(row.error_code), row.error_message) == ("GROUP_ID_NOT_FOUND", None)


@pytest.mark.parametrize(
    ("version", "generation_id", "code"), [(5, -1, "NONE"), (5, 3, "ILLEGAL_GENERATION"), (6, 3, "GROUP_ID_NOT_FOUND")]
)
def test_offsets_in_a_transaction_name_topics_by_id(world: World, version: int, generation_id: int, code: str) -> None:
    """From version 6 (KIP-1319), which also says more of what is wrong with the group."""
    peer = world.connect()
    topic = world.create_topic("t", 1)
    for kind, key in ((0, "g"), (1, "tx")):
        peer.ask(messages.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 4)
        world.turn()
    begun = peer.ask(messages.InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 4)
    assert begun.error_code == 0
    topic_id = world.broker.image.topics["t"].id
    answer = _commit(peer, begun, version, [("t", topic_id, 0), ("t", topic_id, 7)], generation_id)
    assert [(row.name, row.topic_id) for row in answer.topics] == [("t", bytes(16)) if version < 6 else ("", topic_id)]
    rows = [(each.partition_index, name(each.error_code)) for each in answer.topics[0].partitions]
    assert rows == [(7, "UNKNOWN_TOPIC_OR_PARTITION"), (0, code)]
    assert topic is not None


def test_an_unknown_id_of_a_topic_is_told(world: World) -> None:
    begun = messages.InitProducerIdResponse(producer_id=1)
    answer = _commit(world.connect(), begun, 6, [("", UNKNOWN_ID, 0)], -1)
    assert [(row.topic_id, name(row.partitions[0].error_code)) for row in answer.topics] == [
        (UNKNOWN_ID, "UNKNOWN_TOPIC_ID")
    ]


def _commit(peer: Any, begun: Any, version: int, places: list[tuple[str, bytes, int]], generation_id: int) -> Any:
    of = messages.TxnOffsetCommitRequest
    topics: dict[bytes, Any] = {}
    for topic, topic_id, index in places:
        row = topics.setdefault(topic_id, of.TxnOffsetCommitRequestTopic(name=topic, topic_id=topic_id))
        row.partitions.append(of.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=5))
    request = of(
        transactional_id="tx",
        group_id="g",
        producer_id=begun.producer_id,
        producer_epoch=begun.producer_epoch,
        generation_id=generation_id,
        topics=list(topics.values()),
    )
    return peer.ask(request, version)


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("*", "NONE"),
        ("not a host", "NONE"),
        ("", "INVALID_REQUEST"),
        ("10.1.2.3/8", "NONE"),
        ("10.0.0.0/33", "INVALID_REQUEST"),
        ("2001:db8::/32", "NONE"),
        ("2001:db8::/129", "INVALID_REQUEST"),
    ],
)
def test_entries_may_be_for_ranges_of_addresses(tmp_path: Path, host: str, code: str) -> None:
    """KIP-1276; other releases take every text that is not empty, and a cluster of an older level no ranges."""
    creation = messages.CreateAclsRequest.AclCreation(
        resource_type=2, resource_name="t", principal="User:a", host=host, operation=3, permission_type=3
    )
    authorizer = {"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    authorizer["super_users"] = "User:ANONYMOUS"
    codes = []
    for release in ("4.4", "4.3"):
        world = World(tmp_path / release, pykafkad_act_as=release, **authorizer)
        answer = world.connect().ask(messages.CreateAclsRequest(creations=[creation]), 3)
        codes.append(name(answer.results[0].error_code))
    assert codes == [code, "NONE"]


def test_quotas_are_finite(tmp_path: Path, world: World) -> None:
    of = messages.AlterClientQuotasRequest
    change = of.OpData(key="request_percentage", value=float("inf"), remove=False)
    entry = of.EntryData(entity=[of.EntityData(entity_type="user", entity_name="a")], ops=[change])
    older = World(tmp_path / "older")
    codes = [each.connect().ask(of(entries=[entry]), 1).entries[0].error_code for each in (world, older)]
    assert list(map(name, codes)) == ["INVALID_REQUEST", "NONE"]


def test_an_unknown_operation_on_a_logger_is_an_invalid_request(world: World) -> None:
    of = messages.IncrementalAlterConfigsRequest
    configs = [of.AlterableConfig(name="root", config_operation=9, value="9")]
    rows = [of.AlterConfigsResource(resource_type=8, resource_name="1", configs=configs)]
    assert name(world.connect().ask(of(resources=rows), 1).responses[0].error_code) == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("kind", "resource", "setting", "value", "code"),
    [
        (2, "t", "max.decompressed.message.bytes", "0", "INVALID_CONFIG"),
        (2, "t", "max.decompressed.message.bytes", "1", "NONE"),
        (2, "t", "remote.copy.lag.ms", "-2", "INVALID_CONFIG"),
        (2, "t", "remote.copy.lag.bytes", "-1", "NONE"),
        (4, "1", "log.remote.copy.lag.bytes", "-2", "INVALID_REQUEST"),
        (32, "g", "streams.assignor.name", "other", "INVALID_CONFIG"),
        (32, "g", "streams.assignor.name", "sticky", "NONE"),
    ],
)
def test_values_of_its_own_settings_are_checked(
    world: World, kind: int, resource: str, setting: str, value: str, code: str
) -> None:
    """Though they have no effect here."""
    world.create_topic("t", 1)
    of = messages.IncrementalAlterConfigsRequest
    configs = [of.AlterableConfig(name=setting, value=value)]
    rows = [of.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=configs)]
    assert name(world.connect().ask(of(resources=rows), 1).responses[0].error_code) == code
