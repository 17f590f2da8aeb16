"""The rules of authorization beside the table of Kafka 4.3's documentation, docs/security/authorization-and-acls.md."""

from __future__ import annotations

from pykafkad.handlers.authorization_rules import RULES
from tests.rows import in_turn

# API: what the documentation says that it needs, as operation and resource type.
DOCUMENTED = """
Produce: IdempotentWrite Cluster, Write Topic, Write TransactionalId
Fetch: ClusterAction Cluster, Read Topic
ListOffsets: Describe Topic
Metadata: Create Cluster, Create Topic, Describe Topic
OffsetCommit: Read Group, Read Topic
OffsetFetch: Describe Group, Describe Topic
FindCoordinator: Describe Group, Describe TransactionalId
JoinGroup: Read Group
Heartbeat: Read Group
LeaveGroup: Read Group
SyncGroup: Read Group
DescribeGroups: Describe Group
ListGroups: Describe Cluster, Describe Group
CreateTopics: Create Cluster, Create Topic
DeleteTopics: Delete Topic
DeleteRecords: Delete Topic
InitProducerId: IdempotentWrite Cluster, Write TransactionalId
OffsetForLeaderEpoch: ClusterAction Cluster, Describe Topic
AddPartitionsToTxn: Write Topic, Write TransactionalId
AddOffsetsToTxn: Read Group, Write TransactionalId
EndTxn: Write TransactionalId
WriteTxnMarkers: Alter Cluster, ClusterAction Cluster
TxnOffsetCommit: Read Group, Read Topic, Write TransactionalId
DescribeAcls: Describe Cluster
CreateAcls: Alter Cluster
DeleteAcls: Alter Cluster
DescribeConfigs: DescribeConfigs Cluster, DescribeConfigs Topic
AlterConfigs: AlterConfigs Cluster, AlterConfigs Topic
AlterReplicaLogDirs: Alter Cluster
DescribeLogDirs: Describe Cluster
CreatePartitions: Alter Topic
CreateDelegationToken: CreateTokens User
DescribeDelegationToken: Describe DelegationToken, DescribeTokens User
DeleteGroups: Delete Group
ElectLeaders: ClusterAction Cluster
IncrementalAlterConfigs: AlterConfigs Cluster, AlterConfigs Topic
AlterPartitionReassignments: Alter Cluster
ListPartitionReassignments: Describe Cluster
OffsetDelete: Delete Group, Read Topic
DescribeClientQuotas: DescribeConfigs Cluster
AlterClientQuotas: AlterConfigs Cluster
DescribeUserScramCredentials: Describe Cluster
AlterUserScramCredentials: Alter Cluster
DescribeQuorum: Describe Cluster
UpdateFeatures: Alter Cluster
DescribeCluster: Describe Cluster
DescribeProducers: Read Topic
UnregisterBroker: Alter Cluster
DescribeTransactions: Describe TransactionalId
ListTransactions: Describe TransactionalId
ConsumerGroupHeartbeat: Read Group
ConsumerGroupDescribe: Read Group
ListConfigResources: DescribeConfigs Cluster
DescribeTopicPartitions: Describe Topic
ShareGroupHeartbeat: Read Group
ShareGroupDescribe: Describe Group
ShareFetch: Read Group, Read Topic
ShareAcknowledge: Read Group, Read Topic
AddRaftVoter:
RemoveRaftVoter:
InitializeShareGroupState: ClusterAction Cluster
ReadShareGroupState: ClusterAction Cluster
WriteShareGroupState: ClusterAction Cluster
DeleteShareGroupState: ClusterAction Cluster
ReadShareGroupStateSummary: ClusterAction Cluster
StreamsGroupHeartbeat: Create Topic, Describe Topic, Read Group
StreamsGroupDescribe: Describe Group, Describe Topic
DescribeShareGroupOffsets: Describe Group, Describe Topic
AlterShareGroupOffsets: Read Group, Read Topic
DeleteShareGroupOffsets: Delete Group, Read Topic
StreamsGroupTopologyDescriptionUpdate: Read Group
UnregisterController: Alter Cluster
"""

# What `KafkaApis` and `ControllerApis` ask besides, and the documentation does not say.
ASKED_BESIDES = {
    "Metadata": "Describe Cluster",
    "FindCoordinator": "ClusterAction Cluster",
    "CreateTopics": "DescribeConfigs Topic",
    "DeleteTopics": "Delete Cluster, Describe Topic",
    "InitProducerId": "Write Topic",
    "AddPartitionsToTxn": "ClusterAction Cluster",
    "DescribeConfigs": "DescribeConfigs Group",
    "AlterConfigs": "AlterConfigs Group",
    "ElectLeaders": "Alter Cluster",
    "IncrementalAlterConfigs": "AlterConfigs Group",
    "DescribeTransactions": "Describe Topic",
    "ConsumerGroupHeartbeat": "Describe Topic",
    "ConsumerGroupDescribe": "Describe Group, Describe Topic",
    "ShareGroupHeartbeat": "Describe Topic",
    "ShareGroupDescribe": "Describe Topic",
    "AddRaftVoter": "Alter Cluster",
    "RemoveRaftVoter": "Alter Cluster",
    "StreamsGroupHeartbeat": "Create Cluster",
}

# What the documentation says, and 4.3 does not ask.
NOT_ASKED = {
    "Produce": "IdempotentWrite Cluster",
    "ElectLeaders": "ClusterAction Cluster",
    "ConsumerGroupDescribe": "Read Group",
}


def pairs(text: str) -> set[tuple[str, ...]]:
    return {tuple(each.split()) for each in text.split(",") if each.strip()}


@in_turn("line", DOCUMENTED.strip().splitlines())
def test_an_api_needs_what_kafka_says(line: str) -> None:
    name, _, documented = line.partition(":")
    needed = {(rule.operation, rule.resource_type) for rule in RULES[name]}
    needed |= {rule.instead for rule in RULES[name] if rule.instead is not None}
    assert needed == pairs(documented) - pairs(NOT_ASKED.get(name, "")) | pairs(ASKED_BESIDES.get(name, ""))


def test_every_api_is_in_the_table() -> None:
    assert {line.partition(":")[0] for line in DOCUMENTED.strip().splitlines()} == set(RULES)
