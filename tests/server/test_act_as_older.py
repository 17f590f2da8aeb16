"""What groups, features and settings of Kafka 3.9 and older do otherwise; beside real ones the scenarios ask the same
(compat_tests/test_scenarios_by_release.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.config import Settings
from pykafkad.errors import ConfigError
from pykafkad.settings.rows import ACT_AS
from pykafkad.wire import messages
from tests.simulation.world import World

OLDER = "3.9"
TOPIC, CLIENT_METRICS, BROKER = 2, 16, 4
Make = Callable[[str], World]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A broker that acts as a release."""
    return lambda release: World(tmp_path / release, pykafkad_act_as=release)


def created(world: World, **configs: str) -> int:
    request = messages.CreateTopicsRequest
    rows = [request.CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    topic: Any = request.CreatableTopic(name="events", num_partitions=1, replication_factor=1, configs=rows)
    code: int = world.connect().ask(request(topics=[topic], timeout_ms=1000), 5).topics[0].error_code
    return code


def changed(world: World, kind: int, resource: str, setting: str, value: str) -> int:
    of = messages.IncrementalAlterConfigsRequest
    configs = [of.AlterableConfig(name=setting, value=value)]
    rows = [of.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=configs)]
    code: int = world.connect().ask(of(resources=rows), 1).responses[0].error_code
    return code


def test_segments_may_be_small(make: Make) -> None:
    """Kafka 4.0 brought a lower limit of 1 MiB for brokers, and 4.1 for topics (KIP-1030)."""
    older = make("4.0")
    for world in (make(OLDER), older):
        assert created(world, segment_bytes="1024") == errors.NONE
    assert created(make("4.1"), segment_bytes="1024") == errors.INVALID_CONFIG
    assert changed(older, BROKER, "", "log.segment.bytes", "1024") == errors.INVALID_REQUEST
    assert changed(make("3.7"), BROKER, "", "log.segment.bytes", "13") == errors.INVALID_REQUEST
    assert changed(make("3.4"), BROKER, "", "log.segment.bytes", "14") == errors.NONE


def test_a_file_of_settings_is_read_as_the_release_does() -> None:
    text = {"log.segment.bytes": ("1024", "server.properties:1")}
    settings = Settings.from_properties({**text, ACT_AS: (OLDER, "--act-as")})
    assert settings.log_segment_bytes == 1024
    for release in ("4.0", "4.3"):
        with pytest.raises(ConfigError, match="server.properties:1: log.segment.bytes"):
            Settings.from_properties({**text, ACT_AS: (release, "--act-as")})


def test_settings_that_the_release_has_not_are_named() -> None:
    """They keep their defaults, whatever the text is. What it alone has is known, and without effect."""
    text = {"group.share.max.share.sessions": ("abc", "p:1"), "zookeeper.connect": ("localhost:2181", "p:2")}
    settings = Settings.from_properties({**text, ACT_AS: (OLDER, "--act-as")})
    assert settings.warnings == [
        f"p:1: group.share.max.share.sessions is not a setting of Kafka {OLDER} and is ignored"
    ]
    assert settings.without_effect == ["zookeeper.connect"]
    assert settings.group_share_max_share_sessions == Settings.from_properties({}).group_share_max_share_sessions
    with pytest.raises(ConfigError, match="p:1: group.share.max.share.sessions"):
        Settings.from_properties(text)


def test_items_of_lists_may_be_empty(make: Make) -> None:
    """Before Kafka 4.2."""
    older, newer = make("4.1"), make("4.2")
    for kind, name, setting in ((BROKER, "1", "ssl.cipher.suites"), (CLIENT_METRICS, "m", "metrics")):
        assert changed(older, kind, name, setting, "a,,b") == errors.NONE
        assert changed(newer, kind, name, setting, "a,,b") != errors.NONE


def test_repeated_partitions_have_rows_of_their_own(make: Make) -> None:
    of = messages.ListOffsetsRequest
    counts = {}
    for release in (OLDER, "4.0"):
        world = make(release)
        created(world)
        rows = [of.ListOffsetsPartition(partition_index=0, timestamp=each) for each in (-1, -2)]
        asked = of(replica_id=-1, topics=[of.ListOffsetsTopic(name="events", partitions=rows)])
        (topic,) = world.connect().ask(asked, 5).topics
        counts[release] = [row.error_code for row in topic.partitions]
    assert counts == {OLDER: [errors.INVALID_REQUEST] * 2, "4.0": [errors.INVALID_REQUEST]}


def test_each_feature_changes_by_itself(make: Make) -> None:
    """Since Kafka 4.0 all of them change, or none."""
    of = messages.UpdateFeaturesRequest
    updates = [
        of.FeatureUpdateKey(feature=name, max_version_level=level)
        for name, level in (("metadata.version", 21), ("nope", 1))
    ]
    asked = of(feature_updates=updates, timeout_ms=1000)
    answer = make(OLDER).connect().ask(asked, 1)
    assert (answer.error_code, answer.error_message) == (errors.NONE, "")
    assert [(row.feature, row.error_code, bool(row.error_message)) for row in answer.results] == [
        ("metadata.version", errors.NONE, False), ("nope", errors.INVALID_UPDATE_VERSION, True),
    ]  # fmt: skip
    answer = make("4.0").connect().ask(asked, 1)
    assert (answer.error_code, answer.results) == (errors.INVALID_UPDATE_VERSION, [])


def joined(world: World, group: str = "g") -> tuple[Any, Any]:
    """A peer that is the one member of a stable group, and its member."""
    peer = world.connect()
    peer.ask(messages.FindCoordinatorRequest(key=group), 0)
    world.turn()
    of = messages.JoinGroupRequest
    fields = {"group_id": group, "protocol_type": "consumer", "session_timeout_ms": 30_000}
    fields |= {"rebalance_timeout_ms": 30_000, "protocols": [of.JoinGroupRequestProtocol(name="range", metadata=b"m")]}
    member = peer.ask(of(**fields), 3)
    of_sync = messages.SyncGroupRequest
    row = of_sync.SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"mine")
    who = {"group_id": group, "member_id": member.member_id, "generation_id": member.generation_id}
    assert peer.ask(of_sync(**who, assignments=[row]), 1).assignment == b"mine"
    return peer, member


def described(peer: Any, group: str = "g") -> Any:
    asked = messages.DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
    return peer.ask(asked, 5).groups[0]


def test_members_are_described_with_what_they_have_while_the_group_is_stable(make: Make) -> None:
    """And the operations on a group are those that there were."""
    assignments, operations = {}, {}
    for release in (OLDER, "4.0"):
        world = make(release)
        peer, _ = joined(world)
        stable = described(peer)
        of = messages.JoinGroupRequest
        fields = {"group_id": "g", "protocol_type": "consumer", "session_timeout_ms": 30_000}
        fields |= {"protocols": [of.JoinGroupRequestProtocol(name="range", metadata=b"m")]}
        waiting = world.connect()
        waiting.send(of(**fields, rebalance_timeout_ms=30_000), 3)
        joining = described(peer)
        assert joining.group_state == "PreparingRebalance"
        assignments[release] = [[each.member_assignment for each in row.members] for row in (stable, joining)]
        operations[release] = stable.authorized_operations
    assert assignments == {OLDER: [[b"mine"], [b"", b""]], "4.0": [[b"mine"], [b"mine", b""]]}
    assert operations == {OLDER: 0b101001000, "4.0": 0b110101001000}


def test_a_commit_to_a_group_that_is_not_there_is_of_another_generation(make: Make) -> None:
    of = messages.OffsetCommitRequest
    codes = {}
    for release in (OLDER, "4.0"):
        world = make(release)
        created(world)
        peer, _ = joined(world)
        rows = [of.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")]
        topics = [of.OffsetCommitRequestTopic(name="events", partitions=rows)]
        asked = of(group_id="none", member_id="m", generation_id_or_member_epoch=1, topics=topics)
        peer.ask(messages.FindCoordinatorRequest(key="none"), 0)
        codes[release] = peer.ask(asked, 9).topics[0].partitions[0].error_code
    assert codes == {OLDER: errors.ILLEGAL_GENERATION, "4.0": errors.GROUP_ID_NOT_FOUND}


def test_an_acl_may_be_for_the_operations_of_the_release(tmp_path: Path) -> None:
    """TwoPhaseCommit came later."""
    of = messages.CreateAclsRequest
    codes = []
    authorizer = {"authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    world = World(tmp_path / "data", pykafkad_act_as=OLDER, **authorizer, super_users="User:ANONYMOUS")
    for operation in (14, 15):
        fields = {"resource_type": 5, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:a"}
        row = of.AclCreation(**fields, host="*", operation=operation, permission_type=3)
        codes.append(world.connect().ask(of(creations=[row]), 3).results[0].error_code)
    assert codes == [errors.NONE, errors.INVALID_REQUEST]


def test_subscriptions_are_described_in_whole(make: Make) -> None:
    """Before Kafka 4.1, whichever of their settings are asked for; with a documentation that is empty."""
    world = make("4.0")
    for name, value in (("interval.ms", "1000"), ("metrics", "a")):
        assert changed(world, CLIENT_METRICS, "m", name, value) == errors.NONE
    of = messages.DescribeConfigsRequest
    row = of.DescribeConfigsResource(resource_type=CLIENT_METRICS, resource_name="m", configuration_keys=["match"])
    (found,) = world.connect().ask(of(resources=[row]), 4).results
    assert [(each.name, each.documentation) for each in found.configs] == [("interval.ms", ""), ("metrics", "")]


def test_states_are_taken_as_they_are_written(make: Make) -> None:
    found = {}
    for release in (OLDER, "4.0"):
        peer, _ = joined(make(release))
        states = [" stable"], ["STABLE"]
        found[release] = [len(peer.ask(messages.ListGroupsRequest(states_filter=each), 4).groups) for each in states]
    assert found == {OLDER: [0, 1], "4.0": [1, 1]}
