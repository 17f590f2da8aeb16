"""The authorization rules of each API, by its name. An API that is not listed needs no permission.

The rows of `table.py` show these rules, and handlers enforce them.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.authorization import HIDDEN, OTHERWISE, ROW, WHOLE, Rule, needs

_ALTER_CLUSTER = needs("Alter", "Cluster")
CLUSTER_ACTION = needs("ClusterAction", "Cluster")
_DESCRIBE_CLUSTER = needs("Describe", "Cluster")
_SEE_OPERATIONS = needs("Describe", "Cluster", answer=OTHERWISE, when="its operations in the answer")
_READ_GROUP = needs("Read", "Group", "group_id", answer=WHOLE)
_WRITE_TRANSACTIONAL_ID = needs("Write", "TransactionalId", "transactional_id", answer=WHOLE)


def _settings(operation: str) -> tuple[Rule, ...]:
    """The rules of an API that handles settings of resources of every type."""
    return (
        needs(operation, "Topic", "resources.resource_name", when="settings of topics"),
        needs(operation, "Group", "resources.resource_name", when="settings of groups"),
        needs(operation, "Cluster", answer=ROW, when="settings of brokers, loggers and client metrics"),
    )


RULES: dict[str, tuple[Rule, ...]] = {
    "Produce": (
        needs("Write", "Topic", "topic_data.name", "topic_data.topic_id"),
        needs("Write", "TransactionalId", "transactional_id", answer=WHOLE, when="records of a transaction"),
    ),
    "Fetch": (
        needs("Read", "Topic", "topics.topic", "topics.topic_id"),
        needs(
            "ClusterAction", "Cluster", answer=ROW, error=errors.TOPIC_AUTHORIZATION_FAILED, when="replicas, instead"
        ),
    ),
    "ListOffsets": (needs("Describe", "Topic", "topics.name"),),
    "Metadata": (
        needs("Describe", "Topic", "topics.name", "topics.topic_id"),
        needs("Describe", "Topic", answer=HIDDEN, when="all topics"),
        needs("Create", "Topic", "topics.name", instead=("Create", "Cluster"), when="creating what is not there"),
        _SEE_OPERATIONS,
    ),
    "OffsetCommit": (_READ_GROUP, needs("Read", "Topic", "topics.name", "topics.topic_id")),
    "OffsetFetch": (
        needs("Describe", "Group", "group_id", "groups.group_id"),
        needs("Describe", "Topic", "topics.name", "groups.topics.name", "groups.topics.topic_id"),
        needs("Describe", "Topic", answer=HIDDEN, when="all topics"),
    ),
    "FindCoordinator": (
        needs("Describe", "Group", "key", "coordinator_keys"),
        needs("Describe", "TransactionalId", "key", "coordinator_keys"),
        needs("ClusterAction", "Cluster", when="share groups"),
    ),
    "JoinGroup": (_READ_GROUP,),
    "Heartbeat": (_READ_GROUP,),
    "LeaveGroup": (_READ_GROUP,),
    "SyncGroup": (_READ_GROUP,),
    "DescribeGroups": (needs("Describe", "Group", "groups"),),
    "ListGroups": (needs("Describe", "Group", answer=HIDDEN, instead=("Describe", "Cluster")),),
    "CreateTopics": (
        needs("Create", "Topic", "topics.name", instead=("Create", "Cluster")),
        needs("DescribeConfigs", "Topic", "topics.name", answer=OTHERWISE, when="its settings in the answer"),
    ),
    "DeleteTopics": (
        needs("Delete", "Topic", "topic_names", "topics.name", "topics.topic_id", instead=("Delete", "Cluster")),
        needs("Describe", "Topic", "topic_names", "topics.name", "topics.topic_id", instead=("Delete", "Cluster")),
    ),
    "DeleteRecords": (needs("Delete", "Topic", "topics.name"),),
    "InitProducerId": (
        needs("IdempotentWrite", "Cluster", instead=("Write", "Topic"), when="no transactional id"),
        needs("Write", "TransactionalId", "transactional_id", answer=WHOLE),
    ),
    "OffsetForLeaderEpoch": (needs("Describe", "Topic", "topics.topic", instead=("ClusterAction", "Cluster")),),
    "AddPartitionsToTxn": (
        needs("Write", "TransactionalId", "v3_and_below_transactional_id", when="up to version 3"),
        needs("Write", "Topic", "v3_and_below_topics.name", when="up to version 3"),
        needs("ClusterAction", "Cluster", when="from version 4"),
    ),
    "AddOffsetsToTxn": (_WRITE_TRANSACTIONAL_ID, _READ_GROUP),
    "EndTxn": (_WRITE_TRANSACTIONAL_ID,),
    "WriteTxnMarkers": (needs("ClusterAction", "Cluster", instead=("Alter", "Cluster")),),
    "TxnOffsetCommit": (_WRITE_TRANSACTIONAL_ID, _READ_GROUP, needs("Read", "Topic", "topics.name", "topics.topic_id")),
    "DescribeAcls": (_DESCRIBE_CLUSTER,),
    "CreateAcls": (_ALTER_CLUSTER,),
    "DeleteAcls": (_ALTER_CLUSTER,),
    "DescribeConfigs": (*_settings("DescribeConfigs"),),
    "AlterConfigs": (*_settings("AlterConfigs"),),
    "AlterReplicaLogDirs": (_ALTER_CLUSTER,),
    "DescribeLogDirs": (_DESCRIBE_CLUSTER,),
    "CreatePartitions": (needs("Alter", "Topic", "topics.name"),),
    "CreateDelegationToken": (
        needs("CreateTokens", "User", "owner_principal_name", answer=WHOLE, when="other owners"),
    ),
    "DescribeDelegationToken": (
        needs(
            "Describe",
            "DelegationToken",
            answer=HIDDEN,
            instead=("DescribeTokens", "User"),
            when="other owners' tokens",
        ),
    ),
    "DeleteGroups": (needs("Delete", "Group", "groups_names"),),
    "ElectLeaders": (_ALTER_CLUSTER,),
    "IncrementalAlterConfigs": (*_settings("AlterConfigs"),),
    "AlterPartitionReassignments": (_ALTER_CLUSTER,),
    "ListPartitionReassignments": (_DESCRIBE_CLUSTER,),
    "OffsetDelete": (needs("Delete", "Group", "group_id", answer=WHOLE), needs("Read", "Topic", "topics.name")),
    "DescribeClientQuotas": (needs("DescribeConfigs", "Cluster"),),
    "AlterClientQuotas": (needs("AlterConfigs", "Cluster"),),
    "DescribeUserScramCredentials": (_DESCRIBE_CLUSTER,),
    "AlterUserScramCredentials": (_ALTER_CLUSTER,),
    "DescribeQuorum": (_DESCRIBE_CLUSTER,),
    "UpdateFeatures": (_ALTER_CLUSTER,),
    "DescribeCluster": (_SEE_OPERATIONS,),
    "DescribeProducers": (needs("Read", "Topic", "topics.name"),),
    "UnregisterBroker": (_ALTER_CLUSTER,),
    "UnregisterController": (_ALTER_CLUSTER,),
    "DescribeTransactions": (
        needs("Describe", "TransactionalId", "transactional_ids"),
        needs("Describe", "Topic", answer=HIDDEN, when="the topics of a transaction"),
    ),
    "ListTransactions": (needs("Describe", "TransactionalId", answer=HIDDEN),),
    "ConsumerGroupHeartbeat": (_READ_GROUP, needs("Describe", "Topic", "subscribed_topic_names", answer=WHOLE)),
    "ConsumerGroupDescribe": (
        needs("Describe", "Group", "group_ids"),
        needs("Describe", "Topic", when="the topics of its members"),
    ),
    "ListConfigResources": (needs("DescribeConfigs", "Cluster"),),
    "DescribeTopicPartitions": (
        needs("Describe", "Topic", "topics.name"),
        needs("Describe", "Topic", answer=HIDDEN, when="all topics"),
    ),
    "ShareGroupHeartbeat": (_READ_GROUP, needs("Describe", "Topic", "subscribed_topic_names", answer=WHOLE)),
    "ShareGroupDescribe": (
        needs("Describe", "Group", "group_ids"),
        needs("Describe", "Topic", when="the topics of its members"),
    ),
    "ShareFetch": (_READ_GROUP, needs("Read", "Topic", "topics.topic_id")),
    "ShareAcknowledge": (_READ_GROUP, needs("Read", "Topic", "topics.topic_id")),
    "AddRaftVoter": (_ALTER_CLUSTER,),
    "RemoveRaftVoter": (_ALTER_CLUSTER,),
    "InitializeShareGroupState": (CLUSTER_ACTION,),
    "ReadShareGroupState": (CLUSTER_ACTION,),
    "WriteShareGroupState": (CLUSTER_ACTION,),
    "DeleteShareGroupState": (CLUSTER_ACTION,),
    "ReadShareGroupStateSummary": (CLUSTER_ACTION,),
    "StreamsGroupHeartbeat": (
        _READ_GROUP,
        needs(
            "Describe",
            "Topic",
            "topology.subtopologies.source_topics",
            "topology.subtopologies.repartition_sink_topics",
            "topology.subtopologies.repartition_source_topics.name",
            "topology.subtopologies.state_changelog_topics.name",
            answer=WHOLE,
        ),
        needs("Create", "Topic", answer=OTHERWISE, instead=("Create", "Cluster"), when="creating internal topics"),
    ),
    "StreamsGroupTopologyDescriptionUpdate": (_READ_GROUP,),
    "StreamsGroupDescribe": (
        needs("Describe", "Group", "group_ids"),
        needs("Describe", "Topic", when="the topics of its topology"),
    ),
    "DescribeShareGroupOffsets": (
        needs("Describe", "Group", "groups.group_id"),
        needs("Describe", "Topic", "groups.topics.topic_name"),
    ),
    "AlterShareGroupOffsets": (_READ_GROUP, needs("Read", "Topic", "topics.topic_name")),
    "DeleteShareGroupOffsets": (
        needs("Delete", "Group", "group_id", answer=WHOLE),
        needs("Read", "Topic", "topics.topic_name"),
    ),
}
