"""The metadata log and its snapshots in both directions: pykafkad serves Kafka's, and a real Kafka continues
pykafkad's.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import assert_no_bug_logged
from compat_tests.java_tools import JavaTools
from compat_tests.numbered import PARTITIONS, committed, produce, read_all, read_in_group
from compat_tests.scenarios.exchange import Exchange, part

# So small that Kafka writes snapshots within seconds.
SNAPSHOT_BYTES = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
TOPIC = "kept"
GROUP = "readers"
RETENTION = "700000000"


def retention(broker: ProcessBroker) -> str:
    """The topic's `retention.ms`."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC)])["topic"][TOPIC]
    admin.close()
    entry = described["retention.ms"]
    return entry["value"] if isinstance(entry, dict) else entry


def fill(broker: ProcessBroker) -> None:
    """Create topics, configs of every kind, a user, quotas, records and a group: most kinds of metadata records."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    admin.create_topics(
        {TOPIC: {"num_partitions": PARTITIONS, "configs": {"retention.ms": RETENTION}}, "gone": {"num_partitions": 1}}
    )
    admin.delete_topics(["gone"])
    admin.close()
    exchange = Exchange(broker.bootstrap, "fill")
    credential = {"name": "alice", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"p" * 32}
    upsertion = part("AlterUserScramCredentials", "ScramCredentialUpsertion", **credential)
    exchange.quietly("AlterUserScramCredentials", 0, upsertions=[upsertion])
    entity = [part("AlterClientQuotas", "EntityData", entity_type="user", entity_name="alice")]
    quota = [part("AlterClientQuotas", "OpData", key="producer_byte_rate", value=1e8)]
    exchange.quietly("AlterClientQuotas", 1, entries=[part("AlterClientQuotas", "EntryData", entity=entity, ops=quota)])
    exchange.close()
    produce(broker.bootstrap, TOPIC, range(30))
    read_in_group(broker.bootstrap, TOPIC, GROUP, 15)


def users(broker: ProcessBroker) -> tuple[list[str], list[float]]:
    """Names of the users with credentials, and the quotas."""
    exchange = Exchange(broker.bootstrap, "users")
    credentials = exchange.quietly("DescribeUserScramCredentials", 0, users=None)
    quotas = exchange.quietly("DescribeClientQuotas", 1, components=[], strict=False)
    exchange.close()
    return [row.user for row in credentials.results], [
        value.value for entry in quotas.entries for value in entry.values
    ]


def assert_no_fault(kafka: KafkaProcess) -> None:
    """Check Kafka's log for the messages of faults in its controller or its metadata loader."""
    faults = [line for line in kafka.log_text().splitlines() if re.search(r"Encountered .*fault", line)]
    assert faults == []


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_kafkas_directory_is_taken_over_and_given_back(kafka_jars: Path, tmp_path: Path, end: str) -> None:
    """Kafka, pykafkad, Kafka, pykafkad serve one directory: topics, settings, users, records and groups stay, and
    grow.
    """
    (tmp_path / "kafka").mkdir()
    kafka = KafkaProcess(kafka_jars, tmp_path / "kafka", SNAPSHOT_BYTES)
    ours = PykafkadProcess(tmp_path, SNAPSHOT_BYTES)
    ours.data_directory = kafka.data_directory
    expected = 30
    try:
        kafka.start()
        fill(kafka)
        getattr(kafka, end)()
        for broker in (ours, kafka, ours):
            broker.start()
            assert read_all(broker.bootstrap, TOPIC) == list(range(expected)), f"records on {broker.name}"
            assert committed(broker.bootstrap, TOPIC, GROUP) == 15
            assert retention(broker) == RETENTION
            assert users(broker) == (["alice"], [1e8])
            produce(broker.bootstrap, TOPIC, range(expected, expected + 30))
            expected += 30
            getattr(broker, end)()
        assert_no_bug_logged(ours)
        assert_no_fault(kafka)
    finally:
        ours.kill()
        kafka.kill()
        shutil.rmtree(kafka.data_directory, ignore_errors=True)


def level(broker: ProcessBroker) -> int:
    """The finalized metadata.version."""
    exchange = Exchange(broker.bootstrap, "level")
    answer = exchange.quietly("ApiVersions", 4, client_software_name="level", client_software_version="1")
    exchange.close()
    return next(row.max_version_level for row in answer.finalized_features if row.name == "metadata.version")


def test_a_cluster_of_an_older_level_is_taken_over_upgraded_and_given_back(kafka_jars: Path, tmp_path: Path) -> None:
    """Kafka reads what pykafkad writes at 3.9-IV0; after an upgrade by pykafkad Kafka runs at the newest level."""
    (tmp_path / "kafka").mkdir()
    kafka = KafkaProcess(kafka_jars, tmp_path / "kafka", SNAPSHOT_BYTES, release="3.9-IV0")
    ours = PykafkadProcess(tmp_path, SNAPSHOT_BYTES)
    ours.data_directory = kafka.data_directory
    try:
        kafka.start()
        fill(kafka)
        expected = 30
        for broker, upgrade in ((kafka, False), (ours, False), (kafka, False), (ours, True), (kafka, False)):
            if not broker.is_alive():
                broker.start()
            assert read_all(broker.bootstrap, TOPIC) == list(range(expected)), f"records on {broker.name}"
            assert users(broker) == (["alice"], [1e8])
            produce(broker.bootstrap, TOPIC, range(expected, expected + 3))
            expected += 3
            admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
            admin.create_topics({f"made-at-{expected}": {"num_partitions": 2}})
            admin.close()
            if upgrade:
                exchange = Exchange(broker.bootstrap, "upgrade")
                row = part(
                    "UpdateFeatures",
                    "FeatureUpdateKey",
                    feature="metadata.version",
                    max_version_level=30,
                    upgrade_type=1,
                )
                assert exchange.quietly("UpdateFeatures", 1, feature_updates=[row], timeout_ms=10_000).error_code == 0
                exchange.close()
            assert level(broker) == (30 if expected > 39 else 21)
            broker.stop()
        assert_no_bug_logged(ours)
        assert_no_fault(kafka)
    finally:
        ours.kill()
        kafka.kill()
        shutil.rmtree(kafka.data_directory, ignore_errors=True)


# Segments this small occur only in Kafka's own tests; old ones are deleted within a test.
SMALL_SEGMENTS = {
    **SNAPSHOT_BYTES,
    "internal.metadata.log.segment.bytes": "40000",
    "metadata.max.retention.bytes": "60000",
}
TOPICS = 300


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a pykafkad, after a clean stop, whose snapshots have replaced the start of the metadata log."""
    broker = PykafkadProcess(tmp_path_factory.mktemp("written"), SMALL_SEGMENTS)
    broker.start()
    try:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        for start in range(0, TOPICS, 10):
            names = [f"t{number}" for number in range(start, start + 10)]
            admin.create_topics({name: {"num_partitions": 3, "configs": {"retention.ms": RETENTION}} for name in names})
        admin.delete_topics([f"t{number}" for number in range(0, TOPICS, 2)])
        admin.create_topics({TOPIC: {"num_partitions": PARTITIONS}})
        admin.close()
        produce(broker.bootstrap, TOPIC, range(30))
    finally:
        broker.close()
    assert_no_bug_logged(broker)
    yield broker.data_directory


@pytest.fixture(scope="module")
def tools(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> JavaTools:
    """Kafka's tools; they read files and need no broker."""
    return JavaTools(kafka_jars, "", tmp_path_factory.mktemp("tools") / "log4j2.properties")


def snapshots_of(directory: Path) -> list[Path]:
    """The snapshots in a data directory, the oldest first."""
    return sorted((directory / "__cluster_metadata-0").glob("*.checkpoint"))


def test_the_dump_tool_reads_log_snapshots_and_bootstrap(tools: JavaTools, written: Path) -> None:
    """Every batch is valid and every record is decoded; old segments and snapshots are deleted."""
    segments = sorted((written / "__cluster_metadata-0").glob("*.log"))
    snapshots = snapshots_of(written)
    assert int(segments[0].stem) > 0, "the log must start where a snapshot replaces its earlier records"
    assert snapshots and "00000000000000000000-0000000000.checkpoint" not in {path.name for path in snapshots}
    files = ",".join(map(str, [*segments, *snapshots, written / "bootstrap.checkpoint"]))
    output = tools.succeed(
        "kafka-dump-log", "--cluster-metadata-decoder", "--deep-iteration", "--files", files, connect=False
    )
    assert "isvalid: false" not in output and "isvalid: true" in output
    assert not re.search(r"Error|Exception|Could not|unknown|payload: \*", output), output[:3000]
    for text in ("SnapshotHeader", "SnapshotFooter", "KRaftVersion", "KRaftVoters", "KRaft bootstrap snapshot"):
        assert text in output, text
    for record in (
        "TOPIC",
        "PARTITION",
        "REGISTER_BROKER",
        "REGISTER_CONTROLLER",
        "FEATURE_LEVEL",
        "CONFIG",
        "PRODUCER_IDS",
    ):
        assert f'"type":"{record}_RECORD"' in output, record
    listed = [line for line in output.splitlines() if line.startswith("|")]
    assert all(
        "payload: {" in line or "Snapshot" in line or "KRaft" in line or "LeaderChange" in line for line in listed
    )


def test_the_metadata_shell_shows_a_snapshot(tools: JavaTools, written: Path) -> None:
    """The tree that Kafka's shell builds from our newest snapshot: topics, nodes, features, settings."""
    snapshot, partition = snapshots_of(written)[-1], "/image/topics/byName/t1/2"
    line, paths = tools.metadata_shell(snapshot, f"cat {partition}", "PartitionRegistration")
    assert "replicas=[1]" in line and "isr=[1]" in line and "leader=1," in line, line
    nodes = {"/image/cluster/brokers/1", "/image/cluster/controllers/1", "/image/features/metadataVersion"}
    topics = {f"/image/topics/byName/t{number}/{index}" for number in range(1, TOPICS, 2) for index in range(3)}
    assert nodes | topics <= {*paths}, paths
    assert {f"/image/configs/TOPIC:t{number}/retention.ms" for number in range(1, TOPICS, 2)} <= {*paths}, paths


def test_a_kafka_starts_on_the_snapshots_and_comes_back(kafka_jars: Path, written: Path, tmp_path: Path) -> None:
    """A real Kafka starts from our newest snapshot and writes its own, and pykafkad continues from those."""
    (tmp_path / "kafka").mkdir()
    kafka = KafkaProcess(kafka_jars, tmp_path / "kafka", SMALL_SEGMENTS)
    shutil.copytree(written, kafka.data_directory)
    ours = PykafkadProcess(tmp_path, SMALL_SEGMENTS)
    ours.data_directory = kafka.data_directory
    expected = {TOPIC, *(f"t{number}" for number in range(1, TOPICS, 2))}
    try:
        for round_number, broker in enumerate((kafka, ours, kafka)):
            broker.start()
            admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
            assert {name for name in admin.list_topics() if not name.startswith("__")} == expected, broker.name
            new = [f"new-{round_number}-{number}" for number in range(30)]
            admin.create_topics({name: {"num_partitions": 1} for name in new})
            expected |= set(new)
            admin.close()
            assert read_all(broker.bootstrap, TOPIC) == list(range(30))
            broker.stop()
            assert int(snapshots_of(kafka.data_directory)[-1].name[:20]) > 0
        assert_no_bug_logged(ours)
        assert_no_fault(kafka)
    finally:
        ours.kill()
        kafka.kill()
