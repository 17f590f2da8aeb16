"""DescribeQuorum, UpdateFeatures, AddRaftVoter, RemoveRaftVoter and UnregisterBroker on a quorum of one."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import ZERO_UUID, Exchange, NotOffered, part, versions
from compat_tests.scenarios.registry import scenario

METADATA = "__cluster_metadata"
STRANGER = b"strange directory"[:16]
# How long the leader waits for a voter that does not answer. Everything else is answered at once.
UNANSWERED_MS = 500
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
ELR = "eligible.leader.replicas.version"


def topic(name: str, *indexes: int) -> Any:
    """One topic of a DescribeQuorum request."""
    rows = [part("DescribeQuorum", "PartitionData", partition_index=index) for index in indexes]
    return part("DescribeQuorum", "TopicData", topic_name=name, partitions=rows)


def described(broker: Exchange) -> Any:
    """The description of the metadata partition, in the newest version."""
    return broker.quietly("DescribeQuorum", 2, topics=[topic(METADATA, 0)]).topics[0].partitions[0]


@scenario
def quorum_described(broker: Exchange) -> None:
    """The leader, its epoch and its offsets; each broker has its own amount of metadata, so offsets are not
    compared.
    """
    for version in versions("DescribeQuorum"):
        answer = broker.quietly("DescribeQuorum", version, topics=[topic(METADATA, 0)])
        row = answer.topics[0].partitions[0]
        assert row.leader_epoch >= 1 and 0 < row.high_watermark <= row.current_voters[0].log_end_offset
        assert row.high_watermark + 10 > row.current_voters[0].log_end_offset
        row.leader_epoch = row.high_watermark = row.current_voters[0].log_end_offset = 0
        for node in answer.nodes:
            # Endpoints of the controller are not compared; pykafkad's controller has no listener of its own.
            node.listeners = []
        broker.record(f"DescribeQuorum v{version}", answer, version)


@scenario
def other_partitions(broker: Exchange) -> None:
    """Any other partition is unknown, in its own row."""
    name = broker.topic()
    asked = {
        "nothing": [],
        "another partition": [topic(METADATA, 1)],
        "two partitions": [topic(METADATA, 0, 1)],
        "twice": [topic(METADATA, 0, 0)],
        "no partition": [topic(METADATA)],
        "another topic": [topic(name, 0)],
        "one more topic": [topic(METADATA, 0), topic(name, 0)],
        "an empty one more": [topic(METADATA, 0), topic("")],
        "negative": [topic(METADATA, -1)],
    }
    for version in versions("DescribeQuorum"):
        for note, topics in asked.items():
            broker.ask("DescribeQuorum", version, note=note, topics=topics)


def update(feature: str, level: int, upgrade_type: int = UPGRADE) -> Any:
    """One feature of an UpdateFeatures request."""
    return part(
        "UpdateFeatures", "FeatureUpdateKey", feature=feature, max_version_level=level, upgrade_type=upgrade_type
    )


@scenario
def feature_levels(broker: Exchange) -> None:
    """The allowed levels of each feature, one by one; nothing is changed."""
    levels = {
        "metadata.version": (0, 6, 7, 22, 29, 30, 31, 32767),
        ELR: (-32768, -1, 0, 1, 2),
        "kraft.version": (-1, 0, 1, 2),
        "nope": (0, 1),
        "": (0, 1),
    }
    for version in (1, 2):
        for upgrade_type in (0, UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, 4, -1):
            for name, values in levels.items():
                for level in values:
                    rows = [update(name, level, upgrade_type)]
                    note = f"{name}={level} type {upgrade_type}"
                    broker.ask(
                        "UpdateFeatures",
                        version,
                        note=note,
                        feature_updates=rows,
                        validate_only=True,
                        timeout_ms=60_000,
                    )


@scenario
def features_updated(broker: Exchange) -> None:
    """All features of a request change or none; version 0 can only upgrade; a timeout of zero does no harm.

    Versions up to 1 list every feature of a success.
    """
    same = [update("metadata.version", 30), update(ELR, 1), update("kraft.version", 1)]
    for version in versions("UpdateFeatures"):
        ask = {"timeout_ms": 10_000}
        broker.ask("UpdateFeatures", version, note="nothing", feature_updates=[], **ask)
        broker.ask("UpdateFeatures", version, note="as they are", feature_updates=same, **ask)
        broker.ask("UpdateFeatures", version, note="one is wrong", feature_updates=[*same, update("nope", 1)], **ask)
        broker.ask("UpdateFeatures", version, note="twice", feature_updates=[update(ELR, 1), update(ELR, 1)], **ask)
        broker.ask("UpdateFeatures", version, note="no time", feature_updates=same, timeout_ms=0)
        broker.ask("UpdateFeatures", version, note="down", feature_updates=[update(ELR, 0)], **ask)
    if finalized(broker) is None:
        raise NotOffered(f"the feature {ELR}")
    for version in (1, 2):
        down, up = [update(ELR, 0, SAFE_DOWNGRADE)], [update(ELR, 1)]
        broker.ask("UpdateFeatures", version, note="safely down", feature_updates=down, timeout_ms=10_000)
        broker.record(
            f"finalized after {version}", str(broker.until(lambda: finalized(broker), lambda level: not level))
        )
        broker.ask("UpdateFeatures", version, note="up again", feature_updates=up, timeout_ms=10_000)
        broker.record(
            f"finalized again after {version}", str(broker.until(lambda: finalized(broker), lambda level: level == 1))
        )


def finalized(broker: Exchange) -> int | None:
    """The finalized level of eligible leader replicas, from ApiVersions."""
    answer = broker.quietly("ApiVersions", 4, client_software_name="scenario", client_software_version="1")
    return next((row.max_version_level for row in answer.finalized_features if row.name == ELR), None)


def listener(name: str) -> Any:
    """A listener where no process listens."""
    return part("AddRaftVoter", "Listener", name=name, host="localhost", port=1)


@scenario
def voters_added(broker: Exchange) -> None:
    """The checks in order: wrong cluster, invalid voter, no endpoint, already a voter, and a voter that does not
    answer.
    """
    cluster_id = broker.quietly("DescribeCluster", 0).cluster_id
    (own,) = described(broker).current_voters
    good = {"cluster_id": None, "voter_id": 77, "voter_directory_id": STRANGER, "listeners": [listener("CONTROLLER")]}
    bad = {
        "nobody there": {},
        "with the cluster's id": {"cluster_id": cluster_id},
        "another cluster": {"cluster_id": "other", "voter_id": -1},
        "an empty cluster id": {"cluster_id": ""},
        "no id": {"voter_id": -1, "listeners": []},
        "no directory": {"voter_directory_id": ZERO_UUID},
        "no listener": {"listeners": []},
        "another listener": {"listeners": [listener("PLAINTEXT")]},
        "small letters": {"listeners": [listener("controller")]},
        "the leader": {"voter_id": own.replica_id, "voter_directory_id": own.replica_directory_id},
        "the leader elsewhere": {"voter_id": own.replica_id},
    }
    for version in versions("AddRaftVoter"):
        for note, fields in bad.items():
            broker.ask("AddRaftVoter", version, note=note, timeout_ms=UNANSWERED_MS, **{**good, **fields})


@scenario
def voters_removed(broker: Exchange) -> None:
    """The last voter cannot be removed; other ids are no voters."""
    (own,) = described(broker).current_voters
    bad = {
        "nobody": (None, 77, STRANGER),
        "another cluster": ("other", own.replica_id, own.replica_directory_id),
        "an empty cluster id": ("", own.replica_id, own.replica_directory_id),
        "no id": (None, -1, STRANGER),
        "no directory": (None, own.replica_id, ZERO_UUID),
        "another directory": (None, own.replica_id, STRANGER),
        "the last": (None, own.replica_id, own.replica_directory_id),
    }
    for note, (cluster_id, voter_id, directory_id) in bad.items():
        fields = {"cluster_id": cluster_id, "voter_id": voter_id, "voter_directory_id": directory_id}
        broker.ask("RemoveRaftVoter", 0, note=note, **fields)


@scenario
def brokers_unregistered(broker: Exchange) -> None:
    """Only unused ids: the one broker is needed by the scenarios that follow."""
    for broker_id in (77, -1, 2**31 - 1, -(2**31)):
        broker.ask("UnregisterBroker", 0, note=str(broker_id), broker_id=broker_id)
