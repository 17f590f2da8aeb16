"""A broker that acts as another release of Kafka (`pykafkad.act.as`); compat_tests/test_act_as.py asks real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.config import Settings
from pykafkad.errors import ConfigError
from pykafkad.handlers import table
from pykafkad.settings.release import of
from pykafkad.settings.rows import ACT_AS, BROKER, ROWS, SERVED_RELEASE, TOPIC
from pykafkad.wire import messages
from tests.simulation.world import World

RELEASES = [each for each in ROWS[BROKER][ACT_AS].allowed.split("|") if each != SERVED_RELEASE]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "data", pykafkad_act_as="4.0")


@pytest.mark.parametrize("name", RELEASES)
def test_each_fact_is_about_something(name: str) -> None:
    """APIs and features are known here, a range is not empty, and a new cluster's level is supported."""
    release = of(name)
    rows = {row.name: row for row in (*table.every_row(), *table.NEWER_ROWS)}
    assert release.apis.keys() <= rows.keys()
    for api, found in release.apis.items():
        if found is not None:
            advertised, low, high = found
            assert advertised <= low <= high
            assert {low, high} <= set(messages.known_versions(messages.request_class(rows[api].key))), api
    assert "metadata.version" in release.features and release.new_cluster.keys() <= release.features.keys()
    for feature, level in release.new_cluster.items():
        low, high = release.features[feature]
        assert low <= level <= high


@pytest.mark.parametrize("name", RELEASES)
def test_a_new_cluster_of_each_release_serves(tmp_path: Path, name: str) -> None:
    """It has the release's features and no more, and a topic can be written to, also after a restart."""
    world = World(tmp_path / "data", pykafkad_act_as=name)
    _create_topic(world)
    world.stop()
    world = World(tmp_path / "data", pykafkad_act_as=name)
    found = {each: level for each, level in world.broker.image.features.items() if level and each != "kraft.version"}
    assert found == of(name).new_cluster
    answer = world.connect().ask(messages.MetadataRequest(topics=None), 9)
    assert [row.name for row in answer.topics] == ["events"]


def test_newer_apis_and_versions_are_not_answered(world: World) -> None:
    """Produce of version 13 came with 4.1, StreamsGroupHeartbeat with 4.2: such requests end the connection, as they do
    with Kafka. Version 12 is answered, by the fast path too."""
    listed = {row.api_key: row.max_version for row in world.connect().ask(messages.ApiVersionsRequest(), 0).api_keys}
    assert listed[0] == 12 and 88 not in listed
    assert {word & 0xFFFF for word in world.broker.fast_paths if word >> 16 == 0} <= set(range(13))
    for frame in (_frame(0, 13), _frame(88, 0)):
        peer = world.connect()
        peer.send_bytes(frame)
        assert "is not answered here" in peer.closed


def test_a_version_above_the_releases_is_told_its_range(tmp_path: Path) -> None:
    """Kafka 3.7 had ApiVersions up to version 3."""
    peer = World(tmp_path / "data", pykafkad_act_as="3.7").connect()
    peer.expected.append((messages.ApiVersionsResponse, 0, False))
    peer.send_bytes(_frame(18, 4))
    (answer,) = peer.answers
    assert answer.error_code == errors.UNSUPPORTED_VERSION
    assert [(row.min_version, row.max_version) for row in answer.api_keys] == [(0, 3)]


def test_settings_are_the_releases() -> None:
    """Those that it lacks are unknown, those that only it has are shown, and defaults are its own."""
    settings = Settings({ACT_AS: "3.9"})
    assert settings.log_message_timestamp_after_max_ms == 2**63 - 1
    assert "cordoned.log.dirs" not in settings.rows[BROKER] and settings.cordoned_log_dirs == ()
    assert settings.rows[TOPIC]["message.format.version"].default == "3.0-IV1"
    assert Settings({}).log_message_timestamp_after_max_ms == 3_600_000
    settings.set_dynamic({"log.message.downconversion.enable": "false"}, {})
    assert settings.dynamic_default == {"log.message.downconversion.enable": "false"}


def test_a_topic_may_have_the_releases_settings_alone(world: World) -> None:
    """max.decompressed.message.bytes is a setting of 4.2's last patches."""
    assert _create_topic(world, {"max.decompressed.message.bytes": "1"}) == errors.INVALID_CONFIG
    assert _create_topic(world, {"compression.gzip.level": "2"}) == errors.NONE


def test_an_upgrade_goes_as_far_as_the_release(world: World) -> None:
    """metadata.version 27 came with 4.1."""
    update = messages.UpdateFeaturesRequest.FeatureUpdateKey(feature="metadata.version", max_version_level=27)
    answer = world.connect().ask(messages.UpdateFeaturesRequest(feature_updates=[update], timeout_ms=1000), 1)
    assert answer.error_code == errors.INVALID_UPDATE_VERSION
    assert "only supports versions 7-25" in answer.error_message


def test_a_newer_clusters_directory_is_refused(tmp_path: Path) -> None:
    """The error says which feature is in the way; the other way round is an upgrade that has not come yet."""
    World(tmp_path / "data").stop()
    with pytest.raises(
        ConfigError, match=r"metadata.version=30.* which Kafka 4.0, as which it would act, does not have"
    ):
        World(tmp_path / "data", pykafkad_act_as="4.0")


def test_an_older_clusters_directory_is_served(tmp_path: Path) -> None:
    """A cluster that was begun as 3.9 keeps its features."""
    World(tmp_path / "data", pykafkad_act_as="3.9").stop()
    assert World(tmp_path / "data").broker.image.features["metadata.version"] == 21


def test_an_unknown_release_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(ConfigError, match="2.8, 3.4, 3.7, 3.9, 4.0, 4.1, 4.2, 4.3, 4.4"):
        Settings.from_properties({ACT_AS: ("5.0", "--act-as")})


def _create_topic(world: World, configs: dict[str, str] | None = None) -> int:
    request = messages.CreateTopicsRequest
    rows = [request.CreatableTopicConfig(name=name, value=value) for name, value in (configs or {}).items()]
    topic: Any = request.CreatableTopic(name="events", num_partitions=1, replication_factor=1, configs=rows)
    code: int = world.connect().ask(request(topics=[topic], timeout_ms=1000), 5).topics[0].error_code
    return code


def _frame(key: int, version: int) -> bytes:
    body = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + bytes(20)
    return len(body).to_bytes(4, "big") + body


def test_a_release_with_zookeeper_tells_of_no_features_and_keeps_old_offsets(tmp_path: Path) -> None:
    """Clients from before Kafka 0.9 commit with version 0; releases of 3.x refuse it."""
    codes = {}
    for release in ("2.8", "3.9"):
        world = World(tmp_path / release, pykafkad_act_as=release)
        peer = world.connect()
        names = {"client_software_name": "test", "client_software_version": "1"}
        told = peer.ask(messages.ApiVersionsRequest(**names), 3)
        assert bool(told.supported_features) is (release == "3.9")
        assert _create_topic(world) == errors.NONE
        peer.ask(messages.FindCoordinatorRequest(key="g"), 0)
        world.turn()
        of = messages.OffsetCommitRequest
        rows = [of.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="m")]
        request = of(group_id="g", topics=[of.OffsetCommitRequestTopic(name="events", partitions=rows)])
        codes[release] = peer.ask(request, 0).topics[0].partitions[0].error_code
        if release == "2.8":
            topic = messages.OffsetFetchRequest.OffsetFetchRequestTopic(name="events", partition_indexes=[0, 1])
            fetched = peer.ask(messages.OffsetFetchRequest(group_id="g", topics=[topic]), 0).topics[0].partitions
            assert [(row.committed_offset, row.metadata, row.error_code) for row in fetched] == [
                (5, "", errors.NONE),
                (-1, "", errors.UNKNOWN_TOPIC_OR_PARTITION),
            ]
        world.stop()
    assert codes == {"2.8": errors.NONE, "3.9": errors.UNSUPPORTED_VERSION}


def _changed(world: World, kind: int, resource: str, setting: str, value: str) -> int:
    of = messages.IncrementalAlterConfigsRequest
    configs = [of.AlterableConfig(name=setting, value=value)]
    rows = [of.AlterConfigsResource(resource_type=kind, resource_name=resource, configs=configs)]
    peer = world.connect()
    code: int = peer.ask(of(resources=rows), 1).responses[0].error_code
    return code


def _described(world: World, kind: int, resource: str) -> Any:
    of = messages.DescribeConfigsRequest
    rows = [of.DescribeConfigsResource(resource_type=kind, resource_name=resource, configuration_keys=None)]
    return world.connect().ask(of(resources=rows, include_synonyms=True), 4).results[0]


def test_a_live_change_is_measured_by_the_releases_defaults(tmp_path: Path) -> None:
    """Where 3.9 has -1 for remote.log.manager.copier.thread.pool.size, 4.3 has 10."""
    world = World(tmp_path / "data", pykafkad_act_as="3.9")
    assert _changed(world, 4, "1", "log.cleaner.threads", "2") == errors.NONE
    assert _changed(world, 4, "1", "log.cleaner.threads", "5") == errors.INVALID_REQUEST


def test_subscriptions_before_4_1_are_described_as_they_were_set(world: World) -> None:
    """Without defaults and without types."""
    assert _described(world, 16, "watched").configs == []
    assert _changed(world, 16, "watched", "interval.ms", "1000") == errors.NONE
    (row,) = _described(world, 16, "watched").configs
    assert (row.name, row.value, row.config_source, row.config_type, row.is_sensitive, row.synonyms) == (
        "interval.ms", "1000", 7, 0, False, [],
    )  # fmt: skip


def test_groups_have_settings_since_4_0(tmp_path: Path, world: World) -> None:
    assert _changed(world, 32, "g", "consumer.session.timeout.ms", "50000") == errors.NONE
    for release in ("2.8", "3.4", "3.7", "3.9"):
        older = World(tmp_path / release, pykafkad_act_as=release)
        changed = _changed(older, 32, "g", "consumer.session.timeout.ms", "50000")
        codes = changed, _described(older, 32, "g").error_code
        assert codes == (errors.INVALID_REQUEST, errors.INVALID_REQUEST), release


def test_a_groups_own_setting_before_4_3_hides_its_default(world: World) -> None:
    assert _changed(world, 32, "g", "consumer.session.timeout.ms", "50000") == errors.NONE
    found = {
        row.name: [(each.value, each.source) for each in row.synonyms] for row in _described(world, 32, "g").configs
    }
    assert found["consumer.session.timeout.ms"] == [("50000", 8)]
    assert found["consumer.heartbeat.interval.ms"] == [("5000", 5)]


def test_targets_before_4_3_are_computed_at_once(world: World) -> None:
    """Such releases have no assignment interval, so the second member gets its target as it joins."""
    assert _create_topic(world) == errors.NONE
    peer = world.connect()
    peer.ask(messages.FindCoordinatorRequest(key="g"), 0)
    world.turn()
    epochs = []
    for member in ("one", "two"):
        joining = messages.ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member, rebalance_timeout_ms=1000, topic_partitions=[],
            subscribed_topic_names=["events"],
        )  # fmt: skip
        peer.ask(joining, 1)
        world.turn()
        (group,) = peer.ask(messages.ConsumerGroupDescribeRequest(group_ids=["g"]), 0).groups
        epochs.append(group.assignment_epoch - group.group_epoch)
    assert epochs == [0, 0]
