"""The error codes that the scenarios provoke, and the documented ones that no scenario provokes, with reasons.

A run of all scenarios must see exactly the codes of `PROVOKED` in the compared answers. If a scenario is removed, its
codes must be removed here. Errors that need their own broker (a full disk, a failed directory, other settings) have
tests outside the scenarios.
"""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange
from pykafkad import errors
from pykafkad.wire.messages import Struct

# API to the names of its codes; NONE is a success.
PROVOKED = {
    "ShareAcknowledge": (
        "NONE INVALID_RECORD_STATE INVALID_REQUEST INVALID_SHARE_SESSION_EPOCH SHARE_SESSION_NOT_FOUND "
        "UNKNOWN_TOPIC_ID UNKNOWN_TOPIC_OR_PARTITION"
    ),
    "ShareFetch": "NONE INVALID_REQUEST INVALID_SHARE_SESSION_EPOCH SHARE_SESSION_NOT_FOUND UNKNOWN_TOPIC_OR_PARTITION",
    "ShareGroupDescribe": "NONE GROUP_ID_NOT_FOUND",
    "ShareGroupHeartbeat": "NONE FENCED_MEMBER_EPOCH GROUP_ID_NOT_FOUND INVALID_REQUEST UNKNOWN_MEMBER_ID",
    "InitializeShareGroupState": "NONE FENCED_STATE_EPOCH INVALID_REQUEST UNKNOWN_TOPIC_OR_PARTITION",
    "ReadShareGroupState": "NONE FENCED_LEADER_EPOCH INVALID_REQUEST",
    "ReadShareGroupStateSummary": "NONE INVALID_REQUEST UNKNOWN_TOPIC_OR_PARTITION",
    "WriteShareGroupState": "NONE FENCED_LEADER_EPOCH FENCED_STATE_EPOCH INVALID_REQUEST",
    "DeleteShareGroupState": "NONE INVALID_REQUEST UNKNOWN_TOPIC_OR_PARTITION",
    "DescribeShareGroupOffsets": "NONE",
    "AlterShareGroupOffsets": "NONE INVALID_GROUP_ID NON_EMPTY_GROUP UNKNOWN_TOPIC_OR_PARTITION",
    "DeleteShareGroupOffsets": "NONE GROUP_ID_NOT_FOUND INVALID_GROUP_ID NON_EMPTY_GROUP UNKNOWN_TOPIC_OR_PARTITION",
    "StreamsGroupDescribe": "NONE GROUP_ID_NOT_FOUND INVALID_GROUP_ID",
    "StreamsGroupHeartbeat": (
        "NONE FENCED_MEMBER_EPOCH GROUP_ID_NOT_FOUND INVALID_REQUEST STREAMS_INVALID_TOPOLOGY UNKNOWN_MEMBER_ID "
        "UNKNOWN_SERVER_ERROR"
    ),
    "AddRaftVoter": "DUPLICATE_VOTER INCONSISTENT_CLUSTER_ID INVALID_REQUEST REQUEST_TIMED_OUT",
    "AlterClientQuotas": "NONE INVALID_REQUEST",
    "AlterConfigs": "NONE INVALID_CONFIG INVALID_REQUEST INVALID_TOPIC_EXCEPTION UNKNOWN_TOPIC_OR_PARTITION",
    "AlterPartitionReassignments": (
        "NONE INVALID_REPLICA_ASSIGNMENT NO_REASSIGNMENT_IN_PROGRESS REQUEST_TIMED_OUT UNKNOWN_TOPIC_OR_PARTITION"
    ),
    "AlterReplicaLogDirs": "NONE INVALID_REPLICA_ASSIGNMENT INVALID_TOPIC_EXCEPTION LOG_DIR_NOT_FOUND "
    "UNKNOWN_TOPIC_OR_PARTITION",
    "AddOffsetsToTxn": "NONE INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING INVALID_REQUEST PRODUCER_FENCED",
    "AddPartitionsToTxn": (
        "NONE INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING INVALID_REQUEST OPERATION_NOT_ATTEMPTED "
        "PRODUCER_FENCED TOPIC_AUTHORIZATION_FAILED TRANSACTION_ABORTABLE UNKNOWN_TOPIC_OR_PARTITION"
    ),
    "AlterUserScramCredentials": (
        "NONE DUPLICATE_RESOURCE RESOURCE_NOT_FOUND UNACCEPTABLE_CREDENTIAL UNKNOWN_SERVER_ERROR "
        "UNSUPPORTED_SASL_MECHANISM"
    ),
    "ApiVersions": "NONE INVALID_REQUEST UNSUPPORTED_VERSION",
    "ConsumerGroupDescribe": "NONE GROUP_ID_NOT_FOUND INVALID_GROUP_ID",
    "ConsumerGroupHeartbeat": (
        "NONE FENCED_INSTANCE_ID FENCED_MEMBER_EPOCH GROUP_ID_NOT_FOUND INVALID_REGULAR_EXPRESSION INVALID_REQUEST "
        "UNKNOWN_MEMBER_ID UNRELEASED_INSTANCE_ID UNSUPPORTED_ASSIGNOR"
    ),
    "CreateAcls": "NONE INVALID_REQUEST SECURITY_DISABLED UNKNOWN_SERVER_ERROR",
    "CreateDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED UNKNOWN_SERVER_ERROR",
    "CreatePartitions": "NONE INVALID_PARTITIONS INVALID_REPLICA_ASSIGNMENT INVALID_REQUEST REQUEST_TIMED_OUT "
    "THROTTLING_QUOTA_EXCEEDED UNKNOWN_TOPIC_OR_PARTITION",
    "CreateTopics": (
        "NONE INVALID_CONFIG INVALID_PARTITIONS INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT INVALID_REQUEST "
        "INVALID_TOPIC_EXCEPTION POLICY_VIOLATION REQUEST_TIMED_OUT THROTTLING_QUOTA_EXCEEDED TOPIC_ALREADY_EXISTS"
    ),
    "DeleteAcls": "NONE INVALID_REQUEST SECURITY_DISABLED",
    "DeleteGroups": "NONE GROUP_ID_NOT_FOUND NON_EMPTY_GROUP",
    "DeleteRecords": "NONE INVALID_TOPIC_EXCEPTION OFFSET_OUT_OF_RANGE POLICY_VIOLATION UNKNOWN_TOPIC_OR_PARTITION",
    "DeleteTopics": (
        "NONE INVALID_REQUEST REQUEST_TIMED_OUT THROTTLING_QUOTA_EXCEEDED UNKNOWN_TOPIC_ID UNKNOWN_TOPIC_OR_PARTITION"
    ),
    "DescribeAcls": "NONE SECURITY_DISABLED",
    "DescribeClientQuotas": "NONE INVALID_REQUEST UNSUPPORTED_VERSION",
    "DescribeCluster": "NONE MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE",
    "DescribeConfigs": "NONE INVALID_REQUEST INVALID_TOPIC_EXCEPTION UNKNOWN_TOPIC_OR_PARTITION",
    "DescribeDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "DescribeGroups": "NONE GROUP_ID_NOT_FOUND",
    "DescribeLogDirs": "NONE",
    "DescribeProducers": "NONE INVALID_TOPIC_EXCEPTION UNKNOWN_TOPIC_OR_PARTITION",
    "DescribeQuorum": "NONE UNKNOWN_TOPIC_OR_PARTITION",
    "DescribeTopicPartitions": "NONE INVALID_REQUEST INVALID_TOPIC_EXCEPTION UNKNOWN_TOPIC_OR_PARTITION",
    "DescribeTransactions": "NONE INVALID_REQUEST TRANSACTIONAL_ID_NOT_FOUND",
    "DescribeUserScramCredentials": "NONE DUPLICATE_RESOURCE RESOURCE_NOT_FOUND",
    "ElectLeaders": "NONE ELECTION_NOT_NEEDED INVALID_REQUEST REQUEST_TIMED_OUT UNKNOWN_TOPIC_OR_PARTITION",
    "EndTxn": (
        "NONE INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING INVALID_REQUEST INVALID_TXN_STATE PRODUCER_FENCED"
    ),
    "ExpireDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "Fetch": (
        "NONE FETCH_SESSION_ID_NOT_FOUND FETCH_SESSION_TOPIC_ID_ERROR INVALID_FETCH_SESSION_EPOCH "
        "NOT_LEADER_OR_FOLLOWER OFFSET_OUT_OF_RANGE UNKNOWN_LEADER_EPOCH UNKNOWN_TOPIC_ID UNKNOWN_TOPIC_OR_PARTITION"
    ),
    "FindCoordinator": "NONE INVALID_REQUEST",
    "GetTelemetrySubscriptions": "NONE THROTTLING_QUOTA_EXCEEDED",
    "Heartbeat": "NONE FENCED_INSTANCE_ID ILLEGAL_GENERATION INVALID_GROUP_ID REBALANCE_IN_PROGRESS UNKNOWN_MEMBER_ID",
    "IncrementalAlterConfigs": (
        "NONE INVALID_CONFIG INVALID_REQUEST INVALID_TOPIC_EXCEPTION UNKNOWN_SERVER_ERROR UNKNOWN_TOPIC_OR_PARTITION"
    ),
    "InitProducerId": (
        "NONE CONCURRENT_TRANSACTIONS INVALID_PRODUCER_EPOCH INVALID_REQUEST INVALID_TRANSACTION_TIMEOUT "
        "PRODUCER_FENCED"
    ),
    "JoinGroup": (
        "NONE FENCED_INSTANCE_ID INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID INVALID_SESSION_TIMEOUT "
        "MEMBER_ID_REQUIRED UNKNOWN_MEMBER_ID"
    ),
    "LeaveGroup": "NONE FENCED_INSTANCE_ID INVALID_GROUP_ID UNKNOWN_MEMBER_ID",
    "ListConfigResources": "NONE UNSUPPORTED_VERSION",
    "ListGroups": "NONE",
    "ListOffsets": "NONE FENCED_LEADER_EPOCH INVALID_REQUEST UNKNOWN_LEADER_EPOCH UNKNOWN_TOPIC_OR_PARTITION "
    "UNSUPPORTED_VERSION",
    "ListPartitionReassignments": "NONE",
    "ListTransactions": "NONE INVALID_REGULAR_EXPRESSION",
    "Metadata": "NONE INVALID_REQUEST INVALID_TOPIC_EXCEPTION UNKNOWN_SERVER_ERROR UNKNOWN_TOPIC_ID "
    "UNKNOWN_TOPIC_OR_PARTITION",
    "OffsetCommit": (
        "NONE FENCED_INSTANCE_ID GROUP_ID_NOT_FOUND ILLEGAL_GENERATION OFFSET_METADATA_TOO_LARGE REBALANCE_IN_PROGRESS "
        "STALE_MEMBER_EPOCH UNKNOWN_MEMBER_ID UNKNOWN_TOPIC_ID UNKNOWN_TOPIC_OR_PARTITION UNSUPPORTED_VERSION"
    ),
    "OffsetDelete": "NONE GROUP_ID_NOT_FOUND GROUP_SUBSCRIBED_TO_TOPIC INVALID_GROUP_ID NON_EMPTY_GROUP "
    "UNKNOWN_TOPIC_OR_PARTITION",
    "OffsetFetch": "NONE STALE_MEMBER_EPOCH UNKNOWN_MEMBER_ID UNKNOWN_TOPIC_ID UNSTABLE_OFFSET_COMMIT",
    "OffsetForLeaderEpoch": "NONE FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH UNKNOWN_TOPIC_OR_PARTITION",
    "Produce": (
        "NONE CORRUPT_MESSAGE INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING INVALID_RECORD INVALID_REQUEST "
        "INVALID_REQUIRED_ACKS INVALID_TIMESTAMP INVALID_TOPIC_EXCEPTION INVALID_TXN_STATE MESSAGE_TOO_LARGE "
        "OUT_OF_ORDER_SEQUENCE_NUMBER RECORD_LIST_TOO_LARGE TRANSACTIONAL_ID_AUTHORIZATION_FAILED "
        "TRANSACTION_ABORTABLE UNKNOWN_SERVER_ERROR UNKNOWN_TOPIC_ID UNKNOWN_TOPIC_OR_PARTITION "
        "UNSUPPORTED_COMPRESSION_TYPE"
    ),
    "PushTelemetry": (
        "NONE INVALID_REQUEST TELEMETRY_TOO_LARGE THROTTLING_QUOTA_EXCEEDED UNKNOWN_SUBSCRIPTION_ID "
        "UNSUPPORTED_COMPRESSION_TYPE"
    ),
    "RemoveRaftVoter": "INCONSISTENT_CLUSTER_ID INVALID_REQUEST VOTER_NOT_FOUND",
    "RenewDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "SaslAuthenticate": "ILLEGAL_SASL_STATE",
    "SaslHandshake": "ILLEGAL_SASL_STATE",
    "SyncGroup": (
        "NONE FENCED_INSTANCE_ID ILLEGAL_GENERATION INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID REBALANCE_IN_PROGRESS "
        "UNKNOWN_MEMBER_ID"
    ),
    "TxnOffsetCommit": (
        "NONE ILLEGAL_GENERATION INVALID_GROUP_ID INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING INVALID_TXN_STATE "
        "OFFSET_METADATA_TOO_LARGE TRANSACTION_ABORTABLE UNKNOWN_MEMBER_ID UNKNOWN_TOPIC_OR_PARTITION"
    ),
    "UnregisterBroker": "BROKER_ID_NOT_REGISTERED",
    "UpdateFeatures": "NONE INVALID_UPDATE_VERSION",
    "WriteTxnMarkers": (
        "NONE INVALID_PRODUCER_EPOCH TRANSACTION_COORDINATOR_FENCED UNKNOWN_SERVER_ERROR UNKNOWN_TOPIC_OR_PARTITION"
    ),
}

_REPLICAS = "There is one replica of everything: nobody falls behind, and the leader never changes."
_TIMING = (
    "The coordinator loads for a moment when groups are used first; who asks then is told to wait, and scenarios do."
)
_NOBODY_REFUSED = "It takes a broker that refuses by ACLs: test_authorization.py."
_OWN_DIRECTORY = "It takes a directory that fails: test_failed_directory.py."
_OWN_BROKER = "It takes a broker that starts again, or is told to forget itself: test_failed_directory.py."
_OWN_SETTINGS = "It takes a broker with that setting."
_FORMER = "Of message formats and brokers that Kafka 4 has left behind."

# API to {code: why no scenario provokes it}, for codes that Kafka's response classes name and its broker can return.
NOT_PROVOKED = {
    "Produce": {
        "NOT_LEADER_OR_FOLLOWER": _OWN_BROKER,
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND": _REPLICAS,
        "KAFKA_STORAGE_ERROR": _OWN_DIRECTORY,
        "NOT_ENOUGH_REPLICAS": f"{_REPLICAS} While its transaction coordinator is not there yet, Kafka gives it for a "
        "transaction's batches too.",
        "TOPIC_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
        "CLUSTER_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
        "CONCURRENT_TRANSACTIONS": "The broker asks again until the transaction before it has ended.",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT": _FORMER,
    },
    "Fetch": {
        "FENCED_LEADER_EPOCH": f"{_OWN_BROKER} Negative epochs say nothing here, as in no other API.",
        "REPLICA_NOT_AVAILABLE": _FORMER,
        "INCONSISTENT_TOPIC_ID": "It takes a topic that is made anew between two looks of one request.",
        "KAFKA_STORAGE_ERROR": _OWN_DIRECTORY,
        "TOPIC_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
        "CORRUPT_MESSAGE": "It takes a damaged segment: test_injected_faults.py.",
        "UNSUPPORTED_COMPRESSION_TYPE": "Kafka 4 hands zstd to fetchers of every version.",
    },
    "ListOffsets": {
        "NOT_LEADER_OR_FOLLOWER": _OWN_BROKER,
        "LEADER_NOT_AVAILABLE": _REPLICAS,
        "OFFSET_NOT_AVAILABLE": _REPLICAS,
        "REPLICA_NOT_AVAILABLE": _FORMER,
        "KAFKA_STORAGE_ERROR": _OWN_DIRECTORY,
        "TOPIC_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
        "UNSUPPORTED_FOR_MESSAGE_FORMAT": _FORMER,
    },
    "Metadata": {
        "LEADER_NOT_AVAILABLE": _OWN_DIRECTORY,
        "LISTENER_NOT_FOUND": "It takes brokers with different listeners.",
        "REPLICA_NOT_AVAILABLE": _REPLICAS,
        "TOPIC_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "OffsetCommit": {
        "COORDINATOR_LOAD_IN_PROGRESS": _TIMING,
        "COORDINATOR_NOT_AVAILABLE": _TIMING,
        "NOT_COORDINATOR": _TIMING,
        "REQUEST_TIMED_OUT": _REPLICAS,
        "INVALID_COMMIT_OFFSET_SIZE": _OWN_SETTINGS,
        "TOPIC_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
        "GROUP_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "OffsetFetch": {
        "COORDINATOR_LOAD_IN_PROGRESS": _TIMING,
        "COORDINATOR_NOT_AVAILABLE": _TIMING,
        "NOT_COORDINATOR": _TIMING,
        "TOPIC_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
        "GROUP_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "FindCoordinator": {"COORDINATOR_NOT_AVAILABLE": _TIMING, "GROUP_AUTHORIZATION_FAILED": _NOBODY_REFUSED},
    "JoinGroup": {
        "COORDINATOR_LOAD_IN_PROGRESS": _TIMING,
        "COORDINATOR_NOT_AVAILABLE": _TIMING,
        "NOT_COORDINATOR": _TIMING,
        "GROUP_MAX_SIZE_REACHED": _OWN_SETTINGS,
        "GROUP_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "Heartbeat": {
        "COORDINATOR_NOT_AVAILABLE": _TIMING,
        "NOT_COORDINATOR": _TIMING,
        "GROUP_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "LeaveGroup": {
        "COORDINATOR_LOAD_IN_PROGRESS": _TIMING,
        "COORDINATOR_NOT_AVAILABLE": _TIMING,
        "NOT_COORDINATOR": _TIMING,
        "GROUP_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "SyncGroup": {
        "COORDINATOR_NOT_AVAILABLE": _TIMING,
        "NOT_COORDINATOR": _TIMING,
        "GROUP_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "DescribeGroups": {
        "COORDINATOR_LOAD_IN_PROGRESS": _TIMING,
        "COORDINATOR_NOT_AVAILABLE": _TIMING,
        "NOT_COORDINATOR": _TIMING,
        "GROUP_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "ListGroups": {"COORDINATOR_LOAD_IN_PROGRESS": _TIMING, "COORDINATOR_NOT_AVAILABLE": _TIMING},
    "SaslHandshake": {
        "NONE": "It takes a SASL listener, which these brokers lack.",
        "UNSUPPORTED_SASL_MECHANISM": "As a success.",
    },
    "CreateTopics": {"TOPIC_AUTHORIZATION_FAILED": _NOBODY_REFUSED},
    "DeleteTopics": {
        "TOPIC_DELETION_DISABLED": _OWN_SETTINGS,
        "TOPIC_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "DeleteRecords": {
        "NOT_LEADER_OR_FOLLOWER": _REPLICAS,
        "KAFKA_STORAGE_ERROR": _OWN_DIRECTORY,
        "TOPIC_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "InitProducerId": {
        "COORDINATOR_LOAD_IN_PROGRESS": _TIMING,
        "NOT_COORDINATOR": _TIMING,
        "COORDINATOR_NOT_AVAILABLE": _TIMING,
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
        "CLUSTER_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "OffsetForLeaderEpoch": {
        "NOT_LEADER_OR_FOLLOWER": _OWN_BROKER,
        "REPLICA_NOT_AVAILABLE": _FORMER,
        "KAFKA_STORAGE_ERROR": _OWN_DIRECTORY,
        "TOPIC_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    **{
        api: {
            "COORDINATOR_LOAD_IN_PROGRESS": _TIMING,
            "COORDINATOR_NOT_AVAILABLE": _TIMING,
            "NOT_COORDINATOR": _TIMING,
            "CONCURRENT_TRANSACTIONS": "The markers are written in a moment; scenarios wait for them.",
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
        }
        for api in ("AddOffsetsToTxn", "AddPartitionsToTxn", "EndTxn")
    },
    "DescribeTransactions": {
        "COORDINATOR_LOAD_IN_PROGRESS": _TIMING,
        "COORDINATOR_NOT_AVAILABLE": _TIMING,
        "NOT_COORDINATOR": _TIMING,
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": _NOBODY_REFUSED,
    },
    "ListTransactions": {"COORDINATOR_LOAD_IN_PROGRESS": _TIMING, "COORDINATOR_NOT_AVAILABLE": _TIMING},
    "AddRaftVoter": {"NONE": "It takes a second controller."},
    "RemoveRaftVoter": {"NONE": "The last voter cannot be removed."},
    "UnregisterBroker": {"NONE": "The broker would serve nobody any more, and others are still to ask it."},
    "SaslAuthenticate": {"NONE": "It takes a SASL listener, which these brokers lack."},
    **{
        f"{action}DelegationToken": {"NONE": "It takes a caller who has logged in."}
        for action in ("Create", "Renew", "Expire", "Describe")
    },
}


def codes_seen(exchange: Exchange) -> dict[str, set[str]]:
    """API to the names of the codes in a scenario's compared answers."""
    seen: dict[str, set[str]] = {}
    for step in exchange.steps:
        if step.label is not None and isinstance(step.answer, Struct):
            name = type(step.answer)._root.__name__
            if name.endswith("Response"):
                seen.setdefault(name.removesuffix("Response"), set()).update(map(errors.name, _codes_in(step.answer)))
    return seen


def _codes_in(answer: Any) -> set[int]:
    found = set()
    for name in answer._root.__slots__:
        value = getattr(answer, name)
        if name.endswith("error_code"):
            found.add(value)
        for each in value if type(value) is list else (value,):
            if isinstance(each, Struct):
                found |= _codes_in(each)
    return found
