"""One valid request of every API, as plain dicts; the variants change the fields of these.

Encoding leaves out fields that the version does not carry, so one dict serves all versions.
"""

from __future__ import annotations

from collections.abc import Callable

from compat_tests.bad_fields.cluster import REBALANCE_MS, Cluster, records
from compat_tests.bad_fields.encoding import Plain

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
WAIT_MS = 10_000
# The first version of Fetch with sessions.
SESSIONS_SINCE = 7


def partitions(name: str, index: str = "partition_index", **fields: object) -> list[Plain]:
    """One topic with partition 0."""
    return [{"name": name, "topic": name, "topic_name": name, "partitions": [{index: 0, **fields}]}]


def numbers(name: str, field: str = "partitions") -> list[Plain]:
    """One topic with the number of partition 0."""
    return [{"name": name, "topic": name, "topic_name": name, field: [0]}]


def produce(cluster: Cluster, version: int) -> Plain:
    rows = [{"index": 0, "records": records()}]
    topic = {"name": cluster.written, "topic_id": cluster.written_id, "partition_data": rows}
    return {"transactional_id": None, "acks": -1, "timeout_ms": WAIT_MS, "topic_data": [topic]}


def fetch(cluster: Cluster, version: int) -> Plain:
    row = {"partition": 0, "fetch_offset": 1, "partition_max_bytes": 1 << 20}
    topic = {"topic": cluster.topic, "topic_id": cluster.topic_id, "partitions": [row]}
    forgotten = {"topic": cluster.empty, "topic_id": bytes(16), "partitions": [0]}
    return {"max_wait_ms": 100, "min_bytes": 1, "topics": [topic], "forgotten_topics_data": [forgotten]}


def fetch_in_a_session(cluster: Cluster, version: int) -> Plain:
    session_id = cluster.fetch_session(version) if version >= SESSIONS_SINCE else 0
    return {**fetch(cluster, version), "max_wait_ms": 10, "session_id": session_id, "session_epoch": 1}


def offset_commit(cluster: Cluster, version: int) -> Plain:
    row = {"partition_index": 0, "committed_offset": 1, "committed_metadata": "note"}
    topic = {"name": cluster.topic, "topic_id": cluster.topic_id, "partitions": [row]}
    return {"group_id": cluster.group, "topics": [topic]}


def offset_commit_of_a_member(cluster: Cluster, version: int) -> Plain:
    identity = {"group_id": cluster.static_group, "generation_id_or_member_epoch": 1, "member_id": cluster.static_id}
    return {**offset_commit(cluster, version), **identity, "group_instance_id": "instance"}


def offset_fetch_of_all(cluster: Cluster, version: int) -> Plain:
    return {
        "group_id": cluster.group,
        "topics": None,
        "groups": [{"group_id": cluster.group, "topics": None}],
        "require_stable": True,
    }


def offset_fetch(cluster: Cluster, version: int) -> Plain:
    topic = {"name": cluster.topic, "topic_id": cluster.topic_id, "partition_indexes": [0]}
    return {"group_id": cluster.group, "topics": [topic], "groups": [{"group_id": cluster.group, "topics": [topic]}]}


def join_group(cluster: Cluster, version: int) -> Plain:
    # Version 0 has one timeout for both purposes; a rebalance waits that long for a member that never comes.
    session_ms = REBALANCE_MS if version == 0 else 20_000
    group, member = cluster.fresh_member(session_ms)
    protocol = {"name": "range", "metadata": b"range"}
    timeouts = {"session_timeout_ms": session_ms, "rebalance_timeout_ms": REBALANCE_MS}
    return {"group_id": group, "member_id": member, "protocol_type": "consumer", "protocols": [protocol], **timeouts}


def join_group_as_a_stranger(cluster: Cluster, version: int) -> Plain:
    session_ms = REBALANCE_MS if version == 0 else 20_000
    protocol = {"name": "range", "metadata": b"range"}
    timeouts = {"session_timeout_ms": session_ms, "rebalance_timeout_ms": REBALANCE_MS}
    instance = {"group_instance_id": "new" if version >= 5 else None}
    return {
        "group_id": cluster.fresh("joined"),
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [protocol],
        **timeouts,
        **instance,
    }


def static_member(cluster: Cluster, version: int) -> Plain:
    group, member_id = cluster.static_group, cluster.static_id
    return {
        "group_id": group,
        "generation_id": 1,
        "member_id": member_id,
        "group_instance_id": "instance",
        "protocol_type": "consumer",
        "protocol_name": "range",
    }


def member(cluster: Cluster, version: int) -> Plain:
    return {"group_id": cluster.member_group, "generation_id": 1, "member_id": cluster.member_id}


def sync_group(cluster: Cluster, version: int) -> Plain:
    row = {"member_id": cluster.member_id, "assignment": b"all"}
    return {**member(cluster, version), "protocol_type": "consumer", "protocol_name": "range", "assignments": [row]}


def leave_group(cluster: Cluster, version: int) -> Plain:
    group, member_id = cluster.fresh_member()
    return {"group_id": group, "member_id": member_id, "members": [{"member_id": member_id}]}


def leave_group_as_static(cluster: Cluster, version: int) -> Plain:
    group, member_id = cluster.fresh_member(instance_id="instance")
    return {
        "group_id": group,
        "member_id": member_id,
        "members": [{"member_id": "", "group_instance_id": "instance", "reason": "why"}],
    }


def create_topics(cluster: Cluster, version: int) -> Plain:
    topic = {"name": cluster.fresh("created"), "num_partitions": 1, "replication_factor": 1}
    topic["configs"] = [{"name": "retention.ms", "value": "1000"}]
    return {"topics": [topic], "timeout_ms": WAIT_MS, "validate_only": False}


def create_topics_assigned(cluster: Cluster, version: int) -> Plain:
    topic = {"name": cluster.fresh("created"), "num_partitions": -1, "replication_factor": -1}
    topic["assignments"] = [{"partition_index": 0, "broker_ids": [1]}]
    return {"topics": [topic], "timeout_ms": WAIT_MS, "validate_only": True}


def delete_topics(cluster: Cluster, version: int) -> Plain:
    name = cluster.fresh_topic()
    return {"topics": [{"name": name}], "topic_names": [name], "timeout_ms": WAIT_MS}


def delete_topics_by_id(cluster: Cluster, version: int) -> Plain:
    name = cluster.fresh_topic()
    return {
        "topics": [{"name": None, "topic_id": cluster.broker.topic_id(name)}],
        "topic_names": [name],
        "timeout_ms": WAIT_MS,
    }


def offset_for_leader_epoch(cluster: Cluster, version: int) -> Plain:
    return {"replica_id": -1, "topics": partitions(cluster.topic, "partition", current_leader_epoch=-1, leader_epoch=0)}


def configs(cluster: Cluster, version: int) -> Plain:
    row = {"resource_type": TOPIC, "resource_name": cluster.configured, "configuration_keys": ["retention.ms"]}
    row["configs"] = [{"name": "retention.ms", "value": "1000", "config_operation": 0}]
    return {"resources": [row], "include_synonyms": True, "include_documentation": True}


def broker_configs(cluster: Cluster, version: int) -> Plain:
    row = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": ["log.retention.ms"]}
    row["configs"] = [{"name": "log.retention.ms", "value": "604800000", "config_operation": 0}]
    return {"resources": [row], "include_synonyms": True, "include_documentation": True, "validate_only": True}


def group_configs(cluster: Cluster, version: int) -> Plain:
    row = {
        "resource_type": GROUP,
        "resource_name": cluster.group,
        "configuration_keys": ["consumer.session.timeout.ms"],
    }
    row["configs"] = [{"name": "consumer.session.timeout.ms", "value": "50000", "config_operation": 0}]
    return {"resources": [row], "include_synonyms": True, "include_documentation": True}


def metrics_configs(cluster: Cluster, version: int) -> Plain:
    row = {"resource_type": CLIENT_METRICS, "resource_name": "subscription", "configuration_keys": ["interval.ms"]}
    row["configs"] = [{"name": "interval.ms", "value": "1000", "config_operation": 0}]
    return {"resources": [row], "include_synonyms": True, "include_documentation": True}


def create_partitions(cluster: Cluster, version: int) -> Plain:
    row = {"name": cluster.growing, "count": 2, "assignments": [{"broker_ids": [1]}]}
    return {"topics": [row], "timeout_ms": WAIT_MS, "validate_only": True}


def create_partitions_for_good(cluster: Cluster, version: int) -> Plain:
    return {
        "topics": [{"name": cluster.fresh_topic(), "count": 3, "assignments": None}],
        "timeout_ms": WAIT_MS,
        "validate_only": False,
    }


def transaction(cluster: Cluster, version: int) -> Plain:
    identity = {"transactional_id": "nobody", "producer_id": 4000, "producer_epoch": 0}
    topics = numbers(cluster.topic)
    old = {f"v3_and_below_{name}": value for name, value in {**identity, "topics": topics}.items()}
    return {
        **identity,
        **old,
        "transactions": [{**identity, "topics": topics}],
        "group_id": cluster.group,
        "committed": True,
    }


def txn_offset_commit(cluster: Cluster, version: int) -> Plain:
    topics = partitions(cluster.topic, committed_offset=1, committed_metadata="note")
    return {**transaction(cluster, version), "topics": topics}


def write_txn_markers(cluster: Cluster, version: int) -> Plain:
    topics = numbers(cluster.written, "partition_indexes")
    return {
        "markers": [
            {
                "producer_id": 4000,
                "producer_epoch": 0,
                "transaction_result": True,
                "topics": topics,
                "coordinator_epoch": 0,
            }
        ]
    }


def acl(cluster: Cluster, version: int) -> Plain:
    named = {"resource_name": cluster.topic, "principal": "User:alice", "host": "*"}
    kinds = {"operation": 3, "permission_type": 3}
    row = {"resource_type": 2, "resource_pattern_type": 3, **named, **kinds}
    filters = {f"{name}_filter": value for name, value in {**named, "resource_type": 2, "pattern_type": 3}.items()}
    return {**filters, **kinds, "creations": [row], "filters": [{**filters, **kinds}]}


def share_partitions(cluster: Cluster, version: int) -> Plain:
    acknowledged = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}
    row = {"partition": 0, "partition_index": 0, "acknowledgement_batches": [acknowledged], "state_batches": []}
    topic = {"topic_id": cluster.topic_id, "topic_name": cluster.topic, "partitions": [row]}
    session = {
        "member_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "share_session_epoch": 0,
        "max_wait_ms": 100,
        "min_bytes": 1,
        "max_records": 10,
        "batch_size": 10,
    }
    return {"group_id": "share", **session, "topics": [topic]}


def share_offsets(cluster: Cluster, version: int) -> Plain:
    topic = {"topic_name": cluster.topic, "partitions": [0]}
    return {"groups": [{"group_id": "share", "topics": [topic]}]}


def group_heartbeat(cluster: Cluster, version: int) -> Plain:
    identity = {
        "group_id": "modern",
        "member_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "member_epoch": 0,
        "rebalance_timeout_ms": 5000,
    }
    topology = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": [cluster.topic]}]}
    tasks = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": [], "process_id": "process"}
    return {
        **identity,
        "subscribed_topic_names": [cluster.topic],
        "topic_partitions": [],
        "topology": topology,
        **tasks,
    }


def scram(cluster: Cluster, version: int) -> Plain:
    upsertion = {"name": "alice", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"password"}
    return {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": [upsertion], "users": [{"name": "alice"}]}


def quotas(cluster: Cluster, version: int) -> Plain:
    entity = [{"entity_type": "user", "entity_name": "alice"}]
    entry = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 1024.0, "remove": False}]}
    component = {"entity_type": "user", "match_type": 0, "match": "alice"}
    return {"components": [component], "entries": [entry]}


def delegation_tokens(cluster: Cluster, version: int) -> Plain:
    named = [{"principal_type": "User", "principal_name": "alice"}]
    return {"renewers": named, "owners": named, "hmac": b"hmac", "max_lifetime_ms": -1}


def reassignments(cluster: Cluster, version: int) -> Plain:
    return {"timeout_ms": WAIT_MS, "topics": partitions(cluster.topic, replicas=[1])}


def listed_reassignments(cluster: Cluster, version: int) -> Plain:
    return {"timeout_ms": WAIT_MS, "topics": numbers(cluster.topic, "partition_indexes")}


def voter(cluster: Cluster, version: int) -> Plain:
    listener = {"name": "CONTROLLER", "host": "localhost", "port": 1}
    return {"cluster_id": cluster.cluster_id, "timeout_ms": 500, "voter_id": 9, "listeners": [listener]}


Base = Callable[[Cluster, int], Plain]

# In the order of asking: requests that list everything come first, requests that remove things come last.
BASES: tuple[tuple[str, Base], ...] = (
    ("ApiVersions", lambda cluster, version: {"client_software_name": "bad-fields", "client_software_version": "1.0"}),
    ("Metadata", lambda cluster, version: {"topics": [{"name": cluster.topic}], "allow_auto_topic_creation": False}),
    (
        "Metadata",
        lambda cluster, version: {
            "topics": [
                {
                    "name": None if version >= 12 else cluster.topic,
                    "topic_id": cluster.topic_id if version >= 12 else bytes(16),
                }
            ],
            "allow_auto_topic_creation": False,
        },
    ),
    ("DescribeCluster", lambda cluster, version: {}),
    (
        "DescribeTopicPartitions",
        lambda cluster, version: {
            "topics": [{"name": cluster.topic}],
            "cursor": {"topic_name": cluster.topic, "partition_index": 0},
        },
    ),
    ("DescribeLogDirs", lambda cluster, version: {"topics": numbers(cluster.topic)}),
    ("DescribeConfigs", configs),
    ("DescribeConfigs", broker_configs),
    ("ListConfigResources", lambda cluster, version: {"resource_types": [TOPIC]}),
    ("ListGroups", lambda cluster, version: {"states_filter": ["Stable"], "types_filter": ["classic"]}),
    ("DescribeGroups", lambda cluster, version: {"groups": [cluster.member_group]}),
    ("ElectLeaders", lambda cluster, version: {"topic_partitions": numbers(cluster.topic), "timeout_ms": WAIT_MS}),
    ("ListTransactions", lambda cluster, version: {"state_filters": ["Ongoing"], "producer_id_filters": [4000]}),
    ("Produce", produce),
    ("Fetch", fetch),
    ("Fetch", fetch_in_a_session),
    (
        "ListOffsets",
        lambda cluster, version: {
            "replica_id": -1,
            "topics": partitions(cluster.topic, timestamp=-1),
            "timeout_ms": WAIT_MS,
        },
    ),
    ("DescribeProducers", lambda cluster, version: {"topics": numbers(cluster.topic, "partition_indexes")}),
    ("OffsetForLeaderEpoch", offset_for_leader_epoch),
    ("FindCoordinator", lambda cluster, version: {"key": cluster.group, "coordinator_keys": [cluster.group]}),
    ("OffsetCommit", offset_commit),
    ("OffsetCommit", offset_commit_of_a_member),
    ("OffsetFetch", offset_fetch),
    ("OffsetFetch", offset_fetch_of_all),
    ("Heartbeat", member),
    ("Heartbeat", static_member),
    ("SyncGroup", sync_group),
    ("SyncGroup", static_member),
    ("JoinGroup", join_group),
    ("JoinGroup", join_group_as_a_stranger),
    ("LeaveGroup", leave_group),
    ("LeaveGroup", leave_group_as_static),
    ("OffsetDelete", lambda cluster, version: {"group_id": cluster.group, "topics": partitions(cluster.topic)}),
    ("DeleteGroups", lambda cluster, version: {"groups_names": [cluster.fresh_group()]}),
    ("CreateTopics", create_topics),
    ("CreateTopics", create_topics_assigned),
    ("CreatePartitions", create_partitions),
    ("CreatePartitions", create_partitions_for_good),
    ("AlterConfigs", configs),
    ("AlterConfigs", broker_configs),
    ("AlterConfigs", group_configs),
    ("AlterConfigs", metrics_configs),
    ("IncrementalAlterConfigs", configs),
    ("IncrementalAlterConfigs", broker_configs),
    ("IncrementalAlterConfigs", group_configs),
    ("IncrementalAlterConfigs", metrics_configs),
    ("DescribeConfigs", group_configs),
    ("DescribeConfigs", metrics_configs),
    ("DescribeAcls", acl),
    ("CreateAcls", acl),
    ("DeleteAcls", acl),
    ("DescribeClientQuotas", quotas),
    ("AlterClientQuotas", quotas),
    ("DescribeUserScramCredentials", scram),
    ("AlterUserScramCredentials", scram),
    ("CreateDelegationToken", delegation_tokens),
    ("RenewDelegationToken", delegation_tokens),
    ("ExpireDelegationToken", delegation_tokens),
    ("DescribeDelegationToken", delegation_tokens),
    ("SaslHandshake", lambda cluster, version: {"mechanism": "PLAIN"}),
    ("SaslAuthenticate", lambda cluster, version: {"auth_bytes": b"\0alice\0secret"}),
    ("GetTelemetrySubscriptions", lambda cluster, version: {"client_instance_id": bytes(15) + b"\7"}),
    ("PushTelemetry", lambda cluster, version: {"client_instance_id": bytes(15) + b"\7", "metrics": b""}),
    (
        "AlterReplicaLogDirs",
        lambda cluster, version: {"dirs": [{"path": cluster.log_dir, "topics": numbers(cluster.topic)}]},
    ),
    ("AlterPartitionReassignments", reassignments),
    ("ListPartitionReassignments", listed_reassignments),
    ("DescribeQuorum", lambda cluster, version: {"topics": partitions("__cluster_metadata")}),
    (
        "UpdateFeatures",
        lambda cluster, version: {
            "timeout_ms": WAIT_MS,
            "feature_updates": [{"feature": "eligible.leader.replicas.version", "max_version_level": 1}],
            "validate_only": True,
        },
    ),
    ("AddPartitionsToTxn", transaction),
    ("AddOffsetsToTxn", transaction),
    ("EndTxn", transaction),
    ("WriteTxnMarkers", write_txn_markers),
    ("TxnOffsetCommit", txn_offset_commit),
    ("DescribeTransactions", lambda cluster, version: {"transactional_ids": ["nobody"]}),
    ("InitProducerId", lambda cluster, version: {"transactional_id": None, "transaction_timeout_ms": 60_000}),
    ("ConsumerGroupHeartbeat", group_heartbeat),
    ("ConsumerGroupDescribe", lambda cluster, version: {"group_ids": [cluster.group]}),
    ("ShareGroupHeartbeat", group_heartbeat),
    ("ShareGroupDescribe", lambda cluster, version: {"group_ids": [cluster.group]}),
    ("ShareFetch", share_partitions),
    ("ShareAcknowledge", share_partitions),
    ("InitializeShareGroupState", share_partitions),
    ("ReadShareGroupState", share_partitions),
    ("WriteShareGroupState", share_partitions),
    ("DeleteShareGroupState", share_partitions),
    ("ReadShareGroupStateSummary", share_partitions),
    ("StreamsGroupHeartbeat", group_heartbeat),
    ("StreamsGroupDescribe", lambda cluster, version: {"group_ids": [cluster.group]}),
    ("DescribeShareGroupOffsets", share_offsets),
    ("AlterShareGroupOffsets", share_partitions),
    ("DeleteShareGroupOffsets", share_partitions),
    ("DeleteRecords", lambda cluster, version: {"topics": partitions(cluster.topic, offset=0), "timeout_ms": WAIT_MS}),
    ("DeleteTopics", delete_topics),
    ("DeleteTopics", delete_topics_by_id),
    ("AddRaftVoter", voter),
    ("RemoveRaftVoter", voter),
    ("UnregisterBroker", lambda cluster, version: {"broker_id": 77}),
)
