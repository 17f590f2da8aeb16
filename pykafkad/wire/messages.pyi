"""Types of `messages`: written by `python -m pykafkad.wire.stub`, not by hand.

Each field says its wire type, and the versions that carry it where not all do. A nested struct is an attribute of its
message.
"""

from collections.abc import Callable, Generator
from typing import Any, ClassVar, Protocol, TypeVar, dataclass_transform

from pykafkad.wire.notation import Message
from pykafkad.wire.primitives import CachedArray as CachedArray

class FileSlice(Protocol):
    chunk_size: int

    def __len__(self) -> int: ...

Buffer = bytes | bytearray | memoryview
Chunks = list[Any]
DIRECTORY: str
COLLECTIONS: tuple[str, ...]
S = TypeVar("S", bound="Struct")

@dataclass_transform(kw_only_default=True)
class Struct:
    __slots__: ClassVar[tuple[str, ...]]
    __hash__: None  # type: ignore[assignment]

def schema(cls: type[Struct]) -> Message: ...
def valid_versions(cls: type[Struct]) -> range: ...
def known_versions(cls: type[Struct]) -> range: ...
def flexible_from(cls: type[Struct]) -> int | None: ...
def decoder(cls: type[S], version: int) -> Callable[[Buffer, int], tuple[S, int]]: ...
def encoder(cls: type[S], version: int) -> Callable[[S, Chunks], None]: ...
def incremental(cls: type[Struct], version: int, direction: str) -> Callable[..., Generator[None, None, Any]]: ...
def encode(message: Struct, version: int) -> bytearray: ...
def decode(cls: type[S], version: int, buffer: Buffer) -> S: ...
def request_class(api_key: int) -> type[Struct]: ...
def response_class(api_key: int) -> type[Struct]: ...
def stored_class(name: str) -> type[Struct]: ...
def stored_types(file: str) -> dict[int, dict[str, type[Struct]]]: ...
def record_type(cls: type[Struct]) -> int: ...
def all_apis() -> list[tuple[int, str, range, int | None]]: ...
def all_known_apis() -> list[tuple[int, str, range, int | None]]: ...
def all_names() -> list[str]: ...
def all_known_names() -> list[str]: ...

class ProduceRequest(Struct):  # key 0, versions 0-13, flexible from 9
    class TopicProduceData(Struct):
        name: str = ...  # 0-12
        topic_id: bytes = ...  # uuid, 13+
        partition_data: list[ProduceRequest.PartitionProduceData] = ...

    class PartitionProduceData(Struct):
        index: int = ...  # int32
        records: Buffer | FileSlice | None = ...  # records, = None

    transactional_id: str | None = ...  # 3+, = None
    acks: int = ...  # int16
    timeout_ms: int = ...  # int32
    topic_data: list[ProduceRequest.TopicProduceData] = ...

class ProduceResponse(Struct):  # key 0, versions 0-13, flexible from 9
    class TopicProduceResponse(Struct):
        name: str = ...  # 0-12
        topic_id: bytes = ...  # uuid, 13+
        partition_responses: list[ProduceResponse.PartitionProduceResponse] = ...

    class PartitionProduceResponse(Struct):
        index: int = ...  # int32
        error_code: int = ...  # int16
        base_offset: int = ...  # int64
        log_append_time_ms: int = ...  # int64, 2+, = -1
        log_start_offset: int = ...  # int64, 5+, = -1
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = ...  # 8+
        error_message: str | None = ...  # 8+, = None
        current_leader: ProduceResponse.LeaderIdAndEpoch = ...  # 10+, tag 0

    class BatchIndexAndErrorMessage(Struct):
        batch_index: int = ...  # int32
        batch_index_error_message: str | None = ...  # = None

    class LeaderIdAndEpoch(Struct):
        leader_id: int = ...  # int32, = -1
        leader_epoch: int = ...  # int32, = -1

    class NodeEndpoint(Struct):
        node_id: int = ...  # int32
        host: str = ...
        port: int = ...  # int32
        rack: str | None = ...  # = None

    responses: list[ProduceResponse.TopicProduceResponse] = ...
    throttle_time_ms: int = ...  # int32, 1+
    node_endpoints: list[ProduceResponse.NodeEndpoint] = ...  # 10+, tag 0

class FetchRequest(Struct):  # key 1, versions 0-18, flexible from 12
    class ReplicaState(Struct):
        replica_id: int = ...  # int32, = -1
        replica_epoch: int = ...  # int64, = -1

    class FetchTopic(Struct):
        topic: str = ...  # 0-12
        topic_id: bytes = ...  # uuid, 13+
        partitions: list[FetchRequest.FetchPartition] = ...

    class FetchPartition(Struct):
        partition: int = ...  # int32
        current_leader_epoch: int = ...  # int32, 9+, = -1
        fetch_offset: int = ...  # int64
        last_fetched_epoch: int = ...  # int32, 12+, = -1
        log_start_offset: int = ...  # int64, 5+, = -1
        partition_max_bytes: int = ...  # int32
        replica_directory_id: bytes = ...  # uuid, 17+, tag 0
        high_watermark: int = ...  # int64, 18+, tag 1, = 9223372036854775807

    class ForgottenTopic(Struct):
        topic: str = ...  # 7-12
        topic_id: bytes = ...  # uuid, 13+
        partitions: list[int] = ...  # int32

    cluster_id: str | None = ...  # 12+, tag 0, = None
    replica_id: int = ...  # int32, 0-14, = -1
    replica_state: FetchRequest.ReplicaState = ...  # 15+, tag 1
    max_wait_ms: int = ...  # int32
    min_bytes: int = ...  # int32
    max_bytes: int = ...  # int32, 3+, = 2147483647
    isolation_level: int = ...  # int8, 4+
    session_id: int = ...  # int32, 7+
    session_epoch: int = ...  # int32, 7+, = -1
    topics: list[FetchRequest.FetchTopic] = ...
    forgotten_topics_data: list[FetchRequest.ForgottenTopic] = ...  # 7+
    rack_id: str = ...  # 11+

class FetchResponse(Struct):  # key 1, versions 0-18, flexible from 12
    class FetchableTopicResponse(Struct):
        topic: str = ...  # 0-12
        topic_id: bytes = ...  # uuid, 13+
        partitions: list[FetchResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        high_watermark: int = ...  # int64
        last_stable_offset: int = ...  # int64, 4+, = -1
        log_start_offset: int = ...  # int64, 5+, = -1
        diverging_epoch: FetchResponse.EpochEndOffset = ...  # 12+, tag 0
        current_leader: FetchResponse.LeaderIdAndEpoch = ...  # 12+, tag 1
        snapshot_id: FetchResponse.SnapshotId = ...  # 12+, tag 2
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None = ...  # 4+, = []
        preferred_read_replica: int = ...  # int32, 11+, = -1
        records: Buffer | FileSlice | None = ...  # records, = None

    class EpochEndOffset(Struct):
        epoch: int = ...  # int32, = -1
        end_offset: int = ...  # int64, = -1

    class LeaderIdAndEpoch(Struct):
        leader_id: int = ...  # int32, = -1
        leader_epoch: int = ...  # int32, = -1

    class SnapshotId(Struct):
        end_offset: int = ...  # int64, = -1
        epoch: int = ...  # int32, = -1

    class AbortedTransaction(Struct):
        producer_id: int = ...  # int64
        first_offset: int = ...  # int64

    class NodeEndpoint(Struct):
        node_id: int = ...  # int32
        host: str = ...
        port: int = ...  # int32
        rack: str | None = ...  # = None

    throttle_time_ms: int = ...  # int32, 1+
    error_code: int = ...  # int16, 7+
    session_id: int = ...  # int32, 7+
    responses: list[FetchResponse.FetchableTopicResponse] = ...
    node_endpoints: list[FetchResponse.NodeEndpoint] = ...  # 16+, tag 0

class ListOffsetsRequest(Struct):  # key 2, versions 0-11, flexible from 6
    class ListOffsetsTopic(Struct):
        name: str = ...
        partitions: list[ListOffsetsRequest.ListOffsetsPartition] = ...

    class ListOffsetsPartition(Struct):
        partition_index: int = ...  # int32
        current_leader_epoch: int = ...  # int32, 4+, = -1
        timestamp: int = ...  # int64
        max_num_offsets: int = ...  # int32, 0-0, = 1

    replica_id: int = ...  # int32
    isolation_level: int = ...  # int8, 2+
    topics: list[ListOffsetsRequest.ListOffsetsTopic] = ...
    timeout_ms: int = ...  # int32, 10+

class ListOffsetsResponse(Struct):  # key 2, versions 0-11, flexible from 6
    class ListOffsetsTopicResponse(Struct):
        name: str = ...
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = ...

    class ListOffsetsPartitionResponse(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        old_style_offsets: list[int] = ...  # int64, 0-0
        timestamp: int = ...  # int64, 1+, = -1
        offset: int = ...  # int64, 1+, = -1
        leader_epoch: int = ...  # int32, 4+, = -1

    throttle_time_ms: int = ...  # int32, 2+
    topics: list[ListOffsetsResponse.ListOffsetsTopicResponse] = ...

class MetadataRequest(Struct):  # key 3, versions 0-13, flexible from 9
    class MetadataRequestTopic(Struct):
        topic_id: bytes = ...  # uuid, 10+
        name: str | None = ...  # = ''

    topics: list[MetadataRequest.MetadataRequestTopic] | None = ...  # = []
    allow_auto_topic_creation: bool = ...  # 4+, = True
    include_cluster_authorized_operations: bool = ...  # 8-10
    include_topic_authorized_operations: bool = ...  # 8+

class MetadataResponse(Struct):  # key 3, versions 0-13, flexible from 9
    class MetadataResponseBroker(Struct):
        node_id: int = ...  # int32
        host: str = ...
        port: int = ...  # int32
        rack: str | None = ...  # 1+, = None

    class MetadataResponseTopic(Struct):
        error_code: int = ...  # int16
        name: str | None = ...  # = ''
        topic_id: bytes = ...  # uuid, 10+
        is_internal: bool = ...  # 1+
        partitions: list[MetadataResponse.MetadataResponsePartition] = ...
        topic_authorized_operations: int = ...  # int32, 8+, = -2147483648

    class MetadataResponsePartition(Struct):
        error_code: int = ...  # int16
        partition_index: int = ...  # int32
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32, 7+, = -1
        replica_nodes: list[int] = ...  # int32
        isr_nodes: list[int] = ...  # int32
        offline_replicas: list[int] = ...  # int32, 5+

    throttle_time_ms: int = ...  # int32, 3+
    brokers: list[MetadataResponse.MetadataResponseBroker] = ...
    cluster_id: str | None = ...  # 2+, = None
    controller_id: int = ...  # int32, 1+, = -1
    topics: list[MetadataResponse.MetadataResponseTopic] = ...
    cluster_authorized_operations: int = ...  # int32, 8-10, = -2147483648
    error_code: int = ...  # int16, 13+

class OffsetCommitRequest(Struct):  # key 8, versions 0-10, flexible from 8
    class OffsetCommitRequestTopic(Struct):
        name: str = ...  # 0-9
        topic_id: bytes = ...  # uuid, 10+
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = ...

    class OffsetCommitRequestPartition(Struct):
        partition_index: int = ...  # int32
        committed_offset: int = ...  # int64
        committed_leader_epoch: int = ...  # int32, 6+, = -1
        commit_timestamp: int = ...  # int64, 1-1, = -1
        committed_metadata: str | None = ...  # = ''

    group_id: str = ...
    generation_id_or_member_epoch: int = ...  # int32, 1+, = -1
    member_id: str = ...  # 1+
    group_instance_id: str | None = ...  # 7+, = None
    retention_time_ms: int = ...  # int64, 2-4, = -1
    topics: list[OffsetCommitRequest.OffsetCommitRequestTopic] = ...

class OffsetCommitResponse(Struct):  # key 8, versions 0-10, flexible from 8
    class OffsetCommitResponseTopic(Struct):
        name: str = ...  # 0-9
        topic_id: bytes = ...  # uuid, 10+
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = ...

    class OffsetCommitResponsePartition(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16

    throttle_time_ms: int = ...  # int32, 3+
    topics: list[OffsetCommitResponse.OffsetCommitResponseTopic] = ...

class OffsetFetchRequest(Struct):  # key 9, versions 0-10, flexible from 6
    class OffsetFetchRequestTopic(Struct):
        name: str = ...
        partition_indexes: list[int] = ...  # int32

    class OffsetFetchRequestGroup(Struct):
        group_id: str = ...
        member_id: str | None = ...  # 9+, = None
        member_epoch: int = ...  # int32, 9+, = -1
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = ...  # = []

    class OffsetFetchRequestTopics(Struct):
        name: str = ...  # 8-9
        topic_id: bytes = ...  # uuid, 10+
        partition_indexes: list[int] = ...  # int32

    group_id: str = ...  # 0-7
    topics: list[OffsetFetchRequest.OffsetFetchRequestTopic] | None = ...  # 0-7, = []
    groups: list[OffsetFetchRequest.OffsetFetchRequestGroup] = ...  # 8+
    require_stable: bool = ...  # 7+

class OffsetFetchResponse(Struct):  # key 9, versions 0-10, flexible from 6
    class OffsetFetchResponseTopic(Struct):
        name: str = ...
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = ...

    class OffsetFetchResponsePartition(Struct):
        partition_index: int = ...  # int32
        committed_offset: int = ...  # int64
        committed_leader_epoch: int = ...  # int32, 5-7, = -1
        metadata: str | None = ...  # = ''
        error_code: int = ...  # int16

    class OffsetFetchResponseGroup(Struct):
        group_id: str = ...
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = ...
        error_code: int = ...  # int16

    class OffsetFetchResponseTopics(Struct):
        name: str = ...  # 8-9
        topic_id: bytes = ...  # uuid, 10+
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = ...

    class OffsetFetchResponsePartitions(Struct):
        partition_index: int = ...  # int32
        committed_offset: int = ...  # int64
        committed_leader_epoch: int = ...  # int32, = -1
        metadata: str | None = ...  # = ''
        error_code: int = ...  # int16

    throttle_time_ms: int = ...  # int32, 3+
    topics: list[OffsetFetchResponse.OffsetFetchResponseTopic] = ...  # 0-7
    error_code: int = ...  # int16, 2-7
    groups: list[OffsetFetchResponse.OffsetFetchResponseGroup] = ...  # 8+

class FindCoordinatorRequest(Struct):  # key 10, versions 0-6, flexible from 3
    key: str = ...  # 0-3
    key_type: int = ...  # int8, 1+
    coordinator_keys: list[str] = ...  # 4+

class FindCoordinatorResponse(Struct):  # key 10, versions 0-6, flexible from 3
    class Coordinator(Struct):
        key: str = ...
        node_id: int = ...  # int32
        host: str = ...
        port: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''

    throttle_time_ms: int = ...  # int32, 1+
    error_code: int = ...  # int16, 0-3
    error_message: str | None = ...  # 1-3, = ''
    node_id: int = ...  # int32, 0-3
    host: str = ...  # 0-3
    port: int = ...  # int32, 0-3
    coordinators: list[FindCoordinatorResponse.Coordinator] = ...  # 4+

class JoinGroupRequest(Struct):  # key 11, versions 0-9, flexible from 6
    class JoinGroupRequestProtocol(Struct):
        name: str = ...
        metadata: bytes = ...

    group_id: str = ...
    session_timeout_ms: int = ...  # int32
    rebalance_timeout_ms: int = ...  # int32, 1+, = -1
    member_id: str = ...
    group_instance_id: str | None = ...  # 5+, = None
    protocol_type: str = ...
    protocols: list[JoinGroupRequest.JoinGroupRequestProtocol] = ...
    reason: str | None = ...  # 8+, = None

class JoinGroupResponse(Struct):  # key 11, versions 0-9, flexible from 6
    class JoinGroupResponseMember(Struct):
        member_id: str = ...
        group_instance_id: str | None = ...  # 5+, = None
        metadata: bytes = ...

    throttle_time_ms: int = ...  # int32, 2+
    error_code: int = ...  # int16
    generation_id: int = ...  # int32, = -1
    protocol_type: str | None = ...  # 7+, = None
    protocol_name: str | None = ...  # = ''
    leader: str = ...
    skip_assignment: bool = ...  # 9+
    member_id: str = ...
    members: list[JoinGroupResponse.JoinGroupResponseMember] = ...

class HeartbeatRequest(Struct):  # key 12, versions 0-4, flexible from 4
    group_id: str = ...
    generation_id: int = ...  # int32
    member_id: str = ...
    group_instance_id: str | None = ...  # 3+, = None

class HeartbeatResponse(Struct):  # key 12, versions 0-4, flexible from 4
    throttle_time_ms: int = ...  # int32, 1+
    error_code: int = ...  # int16

class LeaveGroupRequest(Struct):  # key 13, versions 0-5, flexible from 4
    class MemberIdentity(Struct):
        member_id: str = ...
        group_instance_id: str | None = ...  # = None
        reason: str | None = ...  # 5+, = None

    group_id: str = ...
    member_id: str = ...  # 0-2
    members: list[LeaveGroupRequest.MemberIdentity] = ...  # 3+

class LeaveGroupResponse(Struct):  # key 13, versions 0-5, flexible from 4
    class MemberResponse(Struct):
        member_id: str = ...
        group_instance_id: str | None = ...  # = ''
        error_code: int = ...  # int16

    throttle_time_ms: int = ...  # int32, 1+
    error_code: int = ...  # int16
    members: list[LeaveGroupResponse.MemberResponse] = ...  # 3+

class SyncGroupRequest(Struct):  # key 14, versions 0-5, flexible from 4
    class SyncGroupRequestAssignment(Struct):
        member_id: str = ...
        assignment: bytes = ...

    group_id: str = ...
    generation_id: int = ...  # int32
    member_id: str = ...
    group_instance_id: str | None = ...  # 3+, = None
    protocol_type: str | None = ...  # 5+, = None
    protocol_name: str | None = ...  # 5+, = None
    assignments: list[SyncGroupRequest.SyncGroupRequestAssignment] = ...

class SyncGroupResponse(Struct):  # key 14, versions 0-5, flexible from 4
    throttle_time_ms: int = ...  # int32, 1+
    error_code: int = ...  # int16
    protocol_type: str | None = ...  # 5+, = None
    protocol_name: str | None = ...  # 5+, = None
    assignment: bytes = ...

class DescribeGroupsRequest(Struct):  # key 15, versions 0-6, flexible from 5
    groups: list[str] = ...
    include_authorized_operations: bool = ...  # 3+

class DescribeGroupsResponse(Struct):  # key 15, versions 0-6, flexible from 5
    class DescribedGroup(Struct):
        error_code: int = ...  # int16
        error_message: str | None = ...  # 6+, = None
        group_id: str = ...
        group_state: str = ...
        protocol_type: str = ...
        protocol_data: str = ...
        members: list[DescribeGroupsResponse.DescribedGroupMember] = ...
        authorized_operations: int = ...  # int32, 3+, = -2147483648

    class DescribedGroupMember(Struct):
        member_id: str = ...
        group_instance_id: str | None = ...  # 4+, = None
        client_id: str = ...
        client_host: str = ...
        member_metadata: bytes = ...
        member_assignment: bytes = ...

    throttle_time_ms: int = ...  # int32, 1+
    groups: list[DescribeGroupsResponse.DescribedGroup] = ...

class ListGroupsRequest(Struct):  # key 16, versions 0-5, flexible from 3
    states_filter: list[str] = ...  # 4+
    types_filter: list[str] = ...  # 5+

class ListGroupsResponse(Struct):  # key 16, versions 0-5, flexible from 3
    class ListedGroup(Struct):
        group_id: str = ...
        protocol_type: str = ...
        group_state: str = ...  # 4+
        group_type: str = ...  # 5+

    throttle_time_ms: int = ...  # int32, 1+
    error_code: int = ...  # int16
    groups: list[ListGroupsResponse.ListedGroup] = ...

class SaslHandshakeRequest(Struct):  # key 17, versions 0-1, never flexible
    mechanism: str = ...

class SaslHandshakeResponse(Struct):  # key 17, versions 0-1, never flexible
    error_code: int = ...  # int16
    mechanisms: list[str] = ...

class ApiVersionsRequest(Struct):  # key 18, versions 0-5, flexible from 3
    client_software_name: str = ...  # 3+
    client_software_version: str = ...  # 3+
    cluster_id: str | None = ...  # 5+, = None
    node_id: int = ...  # int32, 5+, = -1

class ApiVersionsResponse(Struct):  # key 18, versions 0-5, flexible from 3
    class ApiVersion(Struct):
        api_key: int = ...  # int16
        min_version: int = ...  # int16
        max_version: int = ...  # int16

    class SupportedFeatureKey(Struct):
        name: str = ...
        min_version: int = ...  # int16
        max_version: int = ...  # int16

    class FinalizedFeatureKey(Struct):
        name: str = ...
        max_version_level: int = ...  # int16
        min_version_level: int = ...  # int16

    error_code: int = ...  # int16
    api_keys: list[ApiVersionsResponse.ApiVersion] = ...
    throttle_time_ms: int = ...  # int32, 1+
    supported_features: list[ApiVersionsResponse.SupportedFeatureKey] = ...  # 3+, tag 0
    finalized_features_epoch: int = ...  # int64, 3+, tag 1, = -1
    finalized_features: list[ApiVersionsResponse.FinalizedFeatureKey] = ...  # 3+, tag 2
    zk_migration_ready: bool = ...  # 3+, tag 3

class CreateTopicsRequest(Struct):  # key 19, versions 0-7, flexible from 5
    class CreatableTopic(Struct):
        name: str = ...
        num_partitions: int = ...  # int32
        replication_factor: int = ...  # int16
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = ...
        configs: list[CreateTopicsRequest.CreatableTopicConfig] = ...

    class CreatableReplicaAssignment(Struct):
        partition_index: int = ...  # int32
        broker_ids: list[int] = ...  # int32

    class CreatableTopicConfig(Struct):
        name: str = ...
        value: str | None = ...  # = ''

    topics: list[CreateTopicsRequest.CreatableTopic] = ...
    timeout_ms: int = ...  # int32, = 60000
    validate_only: bool = ...  # 1+

class CreateTopicsResponse(Struct):  # key 19, versions 0-7, flexible from 5
    class CreatableTopicResult(Struct):
        name: str = ...
        topic_id: bytes = ...  # uuid, 7+
        error_code: int = ...  # int16
        error_message: str | None = ...  # 1+, = ''
        topic_config_error_code: int = ...  # int16, 5+, tag 0
        num_partitions: int = ...  # int32, 5+, = -1
        replication_factor: int = ...  # int16, 5+, = -1
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = ...  # 5+, = []

    class CreatableTopicConfigs(Struct):
        name: str = ...
        value: str | None = ...  # = ''
        read_only: bool = ...
        config_source: int = ...  # int8, = -1
        is_sensitive: bool = ...

    throttle_time_ms: int = ...  # int32, 2+
    topics: list[CreateTopicsResponse.CreatableTopicResult] = ...

class DeleteTopicsRequest(Struct):  # key 20, versions 0-6, flexible from 4
    class DeleteTopicState(Struct):
        name: str | None = ...  # = None
        topic_id: bytes = ...  # uuid

    topics: list[DeleteTopicsRequest.DeleteTopicState] = ...  # 6+
    topic_names: list[str] = ...  # 0-5
    timeout_ms: int = ...  # int32

class DeleteTopicsResponse(Struct):  # key 20, versions 0-6, flexible from 4
    class DeletableTopicResult(Struct):
        name: str | None = ...  # = ''
        topic_id: bytes = ...  # uuid, 6+
        error_code: int = ...  # int16
        error_message: str | None = ...  # 5+, = None

    throttle_time_ms: int = ...  # int32, 1+
    responses: list[DeleteTopicsResponse.DeletableTopicResult] = ...

class DeleteRecordsRequest(Struct):  # key 21, versions 0-2, flexible from 2
    class DeleteRecordsTopic(Struct):
        name: str = ...
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = ...

    class DeleteRecordsPartition(Struct):
        partition_index: int = ...  # int32
        offset: int = ...  # int64

    topics: list[DeleteRecordsRequest.DeleteRecordsTopic] = ...
    timeout_ms: int = ...  # int32

class DeleteRecordsResponse(Struct):  # key 21, versions 0-2, flexible from 2
    class DeleteRecordsTopicResult(Struct):
        name: str = ...
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = ...

    class DeleteRecordsPartitionResult(Struct):
        partition_index: int = ...  # int32
        low_watermark: int = ...  # int64
        error_code: int = ...  # int16

    throttle_time_ms: int = ...  # int32
    topics: list[DeleteRecordsResponse.DeleteRecordsTopicResult] = ...

class InitProducerIdRequest(Struct):  # key 22, versions 0-6, flexible from 2
    transactional_id: str | None = ...  # = ''
    transaction_timeout_ms: int = ...  # int32
    producer_id: int = ...  # int64, 3+, = -1
    producer_epoch: int = ...  # int16, 3+, = -1
    enable2_pc: bool = ...  # 6+
    keep_prepared_txn: bool = ...  # 6+

class InitProducerIdResponse(Struct):  # key 22, versions 0-6, flexible from 2
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    producer_id: int = ...  # int64, = -1
    producer_epoch: int = ...  # int16
    ongoing_txn_producer_id: int = ...  # int64, 6+, = -1
    ongoing_txn_producer_epoch: int = ...  # int16, 6+, = -1

class OffsetForLeaderEpochRequest(Struct):  # key 23, versions 0-4, flexible from 4
    class OffsetForLeaderTopic(Struct):
        topic: str = ...
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = ...

    class OffsetForLeaderPartition(Struct):
        partition: int = ...  # int32
        current_leader_epoch: int = ...  # int32, 2+, = -1
        leader_epoch: int = ...  # int32

    replica_id: int = ...  # int32, 3+, = -2
    topics: list[OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = ...

class OffsetForLeaderEpochResponse(Struct):  # key 23, versions 0-4, flexible from 4
    class OffsetForLeaderTopicResult(Struct):
        topic: str = ...
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = ...

    class EpochEndOffset(Struct):
        error_code: int = ...  # int16
        partition: int = ...  # int32
        leader_epoch: int = ...  # int32, 1+, = -1
        end_offset: int = ...  # int64, = -1

    throttle_time_ms: int = ...  # int32, 2+
    topics: list[OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult] = ...

class AddPartitionsToTxnRequest(Struct):  # key 24, versions 0-5, flexible from 3
    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: str = ...
        producer_id: int = ...  # int64
        producer_epoch: int = ...  # int16
        verify_only: bool = ...
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...

    class AddPartitionsToTxnTopic(Struct):
        name: str = ...
        partitions: list[int] = ...  # int32

    transactions: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction] = ...  # 4+
    v3_and_below_transactional_id: str = ...  # 0-3
    v3_and_below_producer_id: int = ...  # int64, 0-3
    v3_and_below_producer_epoch: int = ...  # int16, 0-3
    v3_and_below_topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = ...  # 0-3

class AddPartitionsToTxnResponse(Struct):  # key 24, versions 0-5, flexible from 3
    class AddPartitionsToTxnResult(Struct):
        transactional_id: str = ...
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...

    class AddPartitionsToTxnTopicResult(Struct):
        name: str = ...
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = ...

    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: int = ...  # int32
        partition_error_code: int = ...  # int16

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16, 4+
    results_by_transaction: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = ...  # 4+
    results_by_topic_v3_and_below: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = ...  # 0-3

class AddOffsetsToTxnRequest(Struct):  # key 25, versions 0-4, flexible from 3
    transactional_id: str = ...
    producer_id: int = ...  # int64
    producer_epoch: int = ...  # int16
    group_id: str = ...

class AddOffsetsToTxnResponse(Struct):  # key 25, versions 0-4, flexible from 3
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16

class EndTxnRequest(Struct):  # key 26, versions 0-5, flexible from 3
    transactional_id: str = ...
    producer_id: int = ...  # int64
    producer_epoch: int = ...  # int16
    committed: bool = ...

class EndTxnResponse(Struct):  # key 26, versions 0-5, flexible from 3
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    producer_id: int = ...  # int64, 5+, = -1
    producer_epoch: int = ...  # int16, 5+, = -1

class WriteTxnMarkersRequest(Struct):  # key 27, versions 0-2, flexible from 1
    class WritableTxnMarker(Struct):
        producer_id: int = ...  # int64
        producer_epoch: int = ...  # int16
        transaction_result: bool = ...
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = ...
        coordinator_epoch: int = ...  # int32
        transaction_version: int = ...  # int8, 2+

    class WritableTxnMarkerTopic(Struct):
        name: str = ...
        partition_indexes: list[int] = ...  # int32

    markers: list[WriteTxnMarkersRequest.WritableTxnMarker] = ...

class WriteTxnMarkersResponse(Struct):  # key 27, versions 0-2, flexible from 1
    class WritableTxnMarkerResult(Struct):
        producer_id: int = ...  # int64
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = ...

    class WritableTxnMarkerTopicResult(Struct):
        name: str = ...
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = ...

    class WritableTxnMarkerPartitionResult(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16

    markers: list[WriteTxnMarkersResponse.WritableTxnMarkerResult] = ...

class TxnOffsetCommitRequest(Struct):  # key 28, versions 0-6, flexible from 3
    class TxnOffsetCommitRequestTopic(Struct):
        name: str = ...  # 0-5
        topic_id: bytes = ...  # uuid, 6+
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = ...

    class TxnOffsetCommitRequestPartition(Struct):
        partition_index: int = ...  # int32
        committed_offset: int = ...  # int64
        committed_leader_epoch: int = ...  # int32, 2+, = -1
        committed_metadata: str | None = ...  # = ''

    transactional_id: str = ...
    group_id: str = ...
    producer_id: int = ...  # int64
    producer_epoch: int = ...  # int16
    generation_id: int = ...  # int32, 3+, = -1
    member_id: str = ...  # 3+
    group_instance_id: str | None = ...  # 3+, = None
    topics: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = ...

class TxnOffsetCommitResponse(Struct):  # key 28, versions 0-6, flexible from 3
    class TxnOffsetCommitResponseTopic(Struct):
        name: str = ...  # 0-5
        topic_id: bytes = ...  # uuid, 6+
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = ...

    class TxnOffsetCommitResponsePartition(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16

    throttle_time_ms: int = ...  # int32
    topics: list[TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic] = ...

class DescribeAclsRequest(Struct):  # key 29, versions 0-3, flexible from 2
    resource_type_filter: int = ...  # int8
    resource_name_filter: str | None = ...  # = ''
    pattern_type_filter: int = ...  # int8, 1+, = 3
    principal_filter: str | None = ...  # = ''
    host_filter: str | None = ...  # = ''
    operation: int = ...  # int8
    permission_type: int = ...  # int8

class DescribeAclsResponse(Struct):  # key 29, versions 0-3, flexible from 2
    class DescribeAclsResource(Struct):
        resource_type: int = ...  # int8
        resource_name: str = ...
        pattern_type: int = ...  # int8, 1+, = 3
        acls: list[DescribeAclsResponse.AclDescription] = ...

    class AclDescription(Struct):
        principal: str = ...
        host: str = ...
        operation: int = ...  # int8
        permission_type: int = ...  # int8

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''
    resources: list[DescribeAclsResponse.DescribeAclsResource] = ...

class CreateAclsRequest(Struct):  # key 30, versions 0-3, flexible from 2
    class AclCreation(Struct):
        resource_type: int = ...  # int8
        resource_name: str = ...
        resource_pattern_type: int = ...  # int8, 1+, = 3
        principal: str = ...
        host: str = ...
        operation: int = ...  # int8
        permission_type: int = ...  # int8

    creations: list[CreateAclsRequest.AclCreation] = ...

class CreateAclsResponse(Struct):  # key 30, versions 0-3, flexible from 2
    class AclCreationResult(Struct):
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''

    throttle_time_ms: int = ...  # int32
    results: list[CreateAclsResponse.AclCreationResult] = ...

class DeleteAclsRequest(Struct):  # key 31, versions 0-3, flexible from 2
    class DeleteAclsFilter(Struct):
        resource_type_filter: int = ...  # int8
        resource_name_filter: str | None = ...  # = ''
        pattern_type_filter: int = ...  # int8, 1+, = 3
        principal_filter: str | None = ...  # = ''
        host_filter: str | None = ...  # = ''
        operation: int = ...  # int8
        permission_type: int = ...  # int8

    filters: list[DeleteAclsRequest.DeleteAclsFilter] = ...

class DeleteAclsResponse(Struct):  # key 31, versions 0-3, flexible from 2
    class DeleteAclsFilterResult(Struct):
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = ...

    class DeleteAclsMatchingAcl(Struct):
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''
        resource_type: int = ...  # int8
        resource_name: str = ...
        pattern_type: int = ...  # int8, 1+, = 3
        principal: str = ...
        host: str = ...
        operation: int = ...  # int8
        permission_type: int = ...  # int8

    throttle_time_ms: int = ...  # int32
    filter_results: list[DeleteAclsResponse.DeleteAclsFilterResult] = ...

class DescribeConfigsRequest(Struct):  # key 32, versions 0-4, flexible from 4
    class DescribeConfigsResource(Struct):
        resource_type: int = ...  # int8
        resource_name: str = ...
        configuration_keys: list[str] | None = ...  # = []

    resources: list[DescribeConfigsRequest.DescribeConfigsResource] = ...
    include_synonyms: bool = ...  # 1+
    include_documentation: bool = ...  # 3+

class DescribeConfigsResponse(Struct):  # key 32, versions 0-4, flexible from 4
    class DescribeConfigsResult(Struct):
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''
        resource_type: int = ...  # int8
        resource_name: str = ...
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = ...

    class DescribeConfigsResourceResult(Struct):
        name: str = ...
        value: str | None = ...  # = ''
        read_only: bool = ...
        is_default: bool = ...  # 0-0
        config_source: int = ...  # int8, 1+, = -1
        is_sensitive: bool = ...
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = ...  # 1+
        config_type: int = ...  # int8, 3+
        documentation: str | None = ...  # 3+, = ''

    class DescribeConfigsSynonym(Struct):
        name: str = ...
        value: str | None = ...  # = ''
        source: int = ...  # int8

    throttle_time_ms: int = ...  # int32
    results: list[DescribeConfigsResponse.DescribeConfigsResult] = ...

class AlterConfigsRequest(Struct):  # key 33, versions 0-2, flexible from 2
    class AlterConfigsResource(Struct):
        resource_type: int = ...  # int8
        resource_name: str = ...
        configs: list[AlterConfigsRequest.AlterableConfig] = ...

    class AlterableConfig(Struct):
        name: str = ...
        value: str | None = ...  # = ''

    resources: list[AlterConfigsRequest.AlterConfigsResource] = ...
    validate_only: bool = ...

class AlterConfigsResponse(Struct):  # key 33, versions 0-2, flexible from 2
    class AlterConfigsResourceResponse(Struct):
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''
        resource_type: int = ...  # int8
        resource_name: str = ...

    throttle_time_ms: int = ...  # int32
    responses: list[AlterConfigsResponse.AlterConfigsResourceResponse] = ...

class AlterReplicaLogDirsRequest(Struct):  # key 34, versions 0-2, flexible from 2
    class AlterReplicaLogDir(Struct):
        path: str = ...
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = ...

    class AlterReplicaLogDirTopic(Struct):
        name: str = ...
        partitions: list[int] = ...  # int32

    dirs: list[AlterReplicaLogDirsRequest.AlterReplicaLogDir] = ...

class AlterReplicaLogDirsResponse(Struct):  # key 34, versions 0-2, flexible from 2
    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: str = ...
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = ...

    class AlterReplicaLogDirPartitionResult(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16

    throttle_time_ms: int = ...  # int32
    results: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = ...

class DescribeLogDirsRequest(Struct):  # key 35, versions 0-5, flexible from 2
    class DescribableLogDirTopic(Struct):
        topic: str = ...
        partitions: list[int] = ...  # int32

    topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None = ...  # = []

class DescribeLogDirsResponse(Struct):  # key 35, versions 0-5, flexible from 2
    class DescribeLogDirsResult(Struct):
        error_code: int = ...  # int16
        log_dir: str = ...
        topics: list[DescribeLogDirsResponse.DescribeLogDirsTopic] = ...
        total_bytes: int = ...  # int64, 4+, = -1
        usable_bytes: int = ...  # int64, 4+, = -1
        is_cordoned: bool = ...  # 5+

    class DescribeLogDirsTopic(Struct):
        name: str = ...
        partitions: list[DescribeLogDirsResponse.DescribeLogDirsPartition] = ...

    class DescribeLogDirsPartition(Struct):
        partition_index: int = ...  # int32
        partition_size: int = ...  # int64
        offset_lag: int = ...  # int64
        is_future_key: bool = ...

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16, 3+
    results: list[DescribeLogDirsResponse.DescribeLogDirsResult] = ...

class SaslAuthenticateRequest(Struct):  # key 36, versions 0-2, flexible from 2
    auth_bytes: bytes = ...

class SaslAuthenticateResponse(Struct):  # key 36, versions 0-2, flexible from 2
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''
    auth_bytes: bytes = ...
    session_lifetime_ms: int = ...  # int64, 1+

class CreatePartitionsRequest(Struct):  # key 37, versions 0-3, flexible from 2
    class CreatePartitionsTopic(Struct):
        name: str = ...
        count: int = ...  # int32
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = ...  # = []

    class CreatePartitionsAssignment(Struct):
        broker_ids: list[int] = ...  # int32

    topics: list[CreatePartitionsRequest.CreatePartitionsTopic] = ...
    timeout_ms: int = ...  # int32
    validate_only: bool = ...

class CreatePartitionsResponse(Struct):  # key 37, versions 0-3, flexible from 2
    class CreatePartitionsTopicResult(Struct):
        name: str = ...
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None

    throttle_time_ms: int = ...  # int32
    results: list[CreatePartitionsResponse.CreatePartitionsTopicResult] = ...

class CreateDelegationTokenRequest(Struct):  # key 38, versions 0-3, flexible from 2
    class CreatableRenewers(Struct):
        principal_type: str = ...
        principal_name: str = ...

    owner_principal_type: str | None = ...  # 3+, = ''
    owner_principal_name: str | None = ...  # 3+, = ''
    renewers: list[CreateDelegationTokenRequest.CreatableRenewers] = ...
    max_lifetime_ms: int = ...  # int64

class CreateDelegationTokenResponse(Struct):  # key 38, versions 0-3, flexible from 2
    error_code: int = ...  # int16
    principal_type: str = ...
    principal_name: str = ...
    token_requester_principal_type: str = ...  # 3+
    token_requester_principal_name: str = ...  # 3+
    issue_timestamp_ms: int = ...  # int64
    expiry_timestamp_ms: int = ...  # int64
    max_timestamp_ms: int = ...  # int64
    token_id: str = ...
    hmac: bytes = ...
    throttle_time_ms: int = ...  # int32

class RenewDelegationTokenRequest(Struct):  # key 39, versions 0-2, flexible from 2
    hmac: bytes = ...
    renew_period_ms: int = ...  # int64

class RenewDelegationTokenResponse(Struct):  # key 39, versions 0-2, flexible from 2
    error_code: int = ...  # int16
    expiry_timestamp_ms: int = ...  # int64
    throttle_time_ms: int = ...  # int32

class ExpireDelegationTokenRequest(Struct):  # key 40, versions 0-2, flexible from 2
    hmac: bytes = ...
    expiry_time_period_ms: int = ...  # int64

class ExpireDelegationTokenResponse(Struct):  # key 40, versions 0-2, flexible from 2
    error_code: int = ...  # int16
    expiry_timestamp_ms: int = ...  # int64
    throttle_time_ms: int = ...  # int32

class DescribeDelegationTokenRequest(Struct):  # key 41, versions 0-3, flexible from 2
    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = ...
        principal_name: str = ...

    owners: list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = ...  # = []

class DescribeDelegationTokenResponse(Struct):  # key 41, versions 0-3, flexible from 2
    class DescribedDelegationToken(Struct):
        principal_type: str = ...
        principal_name: str = ...
        token_requester_principal_type: str = ...  # 3+
        token_requester_principal_name: str = ...  # 3+
        issue_timestamp: int = ...  # int64
        expiry_timestamp: int = ...  # int64
        max_timestamp: int = ...  # int64
        token_id: str = ...
        hmac: bytes = ...
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = ...

    class DescribedDelegationTokenRenewer(Struct):
        principal_type: str = ...
        principal_name: str = ...

    error_code: int = ...  # int16
    tokens: list[DescribeDelegationTokenResponse.DescribedDelegationToken] = ...
    throttle_time_ms: int = ...  # int32

class DeleteGroupsRequest(Struct):  # key 42, versions 0-3, flexible from 2
    groups_names: list[str] = ...

class DeleteGroupsResponse(Struct):  # key 42, versions 0-3, flexible from 2
    class DeletableGroupResult(Struct):
        group_id: str = ...
        error_code: int = ...  # int16
        error_message: str | None = ...  # 3+, = None

    throttle_time_ms: int = ...  # int32
    results: list[DeleteGroupsResponse.DeletableGroupResult] = ...

class ElectLeadersRequest(Struct):  # key 43, versions 0-2, flexible from 2
    class TopicPartitions(Struct):
        topic: str = ...
        partitions: list[int] = ...  # int32

    election_type: int = ...  # int8, 1+
    topic_partitions: list[ElectLeadersRequest.TopicPartitions] | None = ...  # = []
    timeout_ms: int = ...  # int32, = 60000

class ElectLeadersResponse(Struct):  # key 43, versions 0-2, flexible from 2
    class ReplicaElectionResult(Struct):
        topic: str = ...
        partition_result: list[ElectLeadersResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition_id: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16, 1+
    replica_election_results: list[ElectLeadersResponse.ReplicaElectionResult] = ...

class IncrementalAlterConfigsRequest(Struct):  # key 44, versions 0-1, flexible from 1
    class AlterConfigsResource(Struct):
        resource_type: int = ...  # int8
        resource_name: str = ...
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = ...

    class AlterableConfig(Struct):
        name: str = ...
        config_operation: int = ...  # int8
        value: str | None = ...  # = ''

    resources: list[IncrementalAlterConfigsRequest.AlterConfigsResource] = ...
    validate_only: bool = ...

class IncrementalAlterConfigsResponse(Struct):  # key 44, versions 0-1, flexible from 1
    class AlterConfigsResourceResponse(Struct):
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''
        resource_type: int = ...  # int8
        resource_name: str = ...

    throttle_time_ms: int = ...  # int32
    responses: list[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = ...

class AlterPartitionReassignmentsRequest(Struct):  # key 45, versions 0-1, flexible from 0
    class ReassignableTopic(Struct):
        name: str = ...
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = ...

    class ReassignablePartition(Struct):
        partition_index: int = ...  # int32
        replicas: list[int] | None = ...  # int32, = None

    timeout_ms: int = ...  # int32, = 60000
    allow_replication_factor_change: bool = ...  # 1+, = True
    topics: list[AlterPartitionReassignmentsRequest.ReassignableTopic] = ...

class AlterPartitionReassignmentsResponse(Struct):  # key 45, versions 0-1, flexible from 0
    class ReassignableTopicResponse(Struct):
        name: str = ...
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = ...

    class ReassignablePartitionResponse(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''

    throttle_time_ms: int = ...  # int32
    allow_replication_factor_change: bool = ...  # 1+, = True
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''
    responses: list[AlterPartitionReassignmentsResponse.ReassignableTopicResponse] = ...

class ListPartitionReassignmentsRequest(Struct):  # key 46, versions 0, flexible from 0
    class ListPartitionReassignmentsTopics(Struct):
        name: str = ...
        partition_indexes: list[int] = ...  # int32

    timeout_ms: int = ...  # int32, = 60000
    topics: list[ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics] | None = ...  # = None

class ListPartitionReassignmentsResponse(Struct):  # key 46, versions 0, flexible from 0
    class OngoingTopicReassignment(Struct):
        name: str = ...
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = ...

    class OngoingPartitionReassignment(Struct):
        partition_index: int = ...  # int32
        replicas: list[int] = ...  # int32
        adding_replicas: list[int] = ...  # int32
        removing_replicas: list[int] = ...  # int32

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''
    topics: list[ListPartitionReassignmentsResponse.OngoingTopicReassignment] = ...

class OffsetDeleteRequest(Struct):  # key 47, versions 0, never flexible
    class OffsetDeleteRequestTopic(Struct):
        name: str = ...
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = ...

    class OffsetDeleteRequestPartition(Struct):
        partition_index: int = ...  # int32

    group_id: str = ...
    topics: list[OffsetDeleteRequest.OffsetDeleteRequestTopic] = ...

class OffsetDeleteResponse(Struct):  # key 47, versions 0, never flexible
    class OffsetDeleteResponseTopic(Struct):
        name: str = ...
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = ...

    class OffsetDeleteResponsePartition(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16

    error_code: int = ...  # int16
    throttle_time_ms: int = ...  # int32
    topics: list[OffsetDeleteResponse.OffsetDeleteResponseTopic] = ...

class DescribeClientQuotasRequest(Struct):  # key 48, versions 0-1, flexible from 1
    class ComponentData(Struct):
        entity_type: str = ...
        match_type: int = ...  # int8
        match: str | None = ...  # = ''

    components: list[DescribeClientQuotasRequest.ComponentData] = ...
    strict: bool = ...

class DescribeClientQuotasResponse(Struct):  # key 48, versions 0-1, flexible from 1
    class EntryData(Struct):
        entity: list[DescribeClientQuotasResponse.EntityData] = ...
        values: list[DescribeClientQuotasResponse.ValueData] = ...

    class EntityData(Struct):
        entity_type: str = ...
        entity_name: str | None = ...  # = ''

    class ValueData(Struct):
        key: str = ...
        value: float = ...  # float64

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''
    entries: list[DescribeClientQuotasResponse.EntryData] | None = ...  # = []

class AlterClientQuotasRequest(Struct):  # key 49, versions 0-1, flexible from 1
    class EntryData(Struct):
        entity: list[AlterClientQuotasRequest.EntityData] = ...
        ops: list[AlterClientQuotasRequest.OpData] = ...

    class EntityData(Struct):
        entity_type: str = ...
        entity_name: str | None = ...  # = ''

    class OpData(Struct):
        key: str = ...
        value: float = ...  # float64
        remove: bool = ...

    entries: list[AlterClientQuotasRequest.EntryData] = ...
    validate_only: bool = ...

class AlterClientQuotasResponse(Struct):  # key 49, versions 0-1, flexible from 1
    class EntryData(Struct):
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''
        entity: list[AlterClientQuotasResponse.EntityData] = ...

    class EntityData(Struct):
        entity_type: str = ...
        entity_name: str | None = ...  # = ''

    throttle_time_ms: int = ...  # int32
    entries: list[AlterClientQuotasResponse.EntryData] = ...

class DescribeUserScramCredentialsRequest(Struct):  # key 50, versions 0, flexible from 0
    class UserName(Struct):
        name: str = ...

    users: list[DescribeUserScramCredentialsRequest.UserName] | None = ...  # = []

class DescribeUserScramCredentialsResponse(Struct):  # key 50, versions 0, flexible from 0
    class DescribeUserScramCredentialsResult(Struct):
        user: str = ...
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = ...

    class CredentialInfo(Struct):
        mechanism: int = ...  # int8
        iterations: int = ...  # int32

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''
    results: list[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = ...

class AlterUserScramCredentialsRequest(Struct):  # key 51, versions 0, flexible from 0
    class ScramCredentialDeletion(Struct):
        name: str = ...
        mechanism: int = ...  # int8

    class ScramCredentialUpsertion(Struct):
        name: str = ...
        mechanism: int = ...  # int8
        iterations: int = ...  # int32
        salt: bytes = ...
        salted_password: bytes = ...

    deletions: list[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = ...
    upsertions: list[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = ...

class AlterUserScramCredentialsResponse(Struct):  # key 51, versions 0, flexible from 0
    class AlterUserScramCredentialsResult(Struct):
        user: str = ...
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''

    throttle_time_ms: int = ...  # int32
    results: list[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = ...

class VoteRequest(Struct):  # key 52, versions 0-2, flexible from 0
    class TopicData(Struct):
        topic_name: str = ...
        partitions: list[VoteRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        replica_epoch: int = ...  # int32
        replica_id: int = ...  # int32
        replica_directory_id: bytes = ...  # uuid, 1+
        voter_directory_id: bytes = ...  # uuid, 1+
        last_offset_epoch: int = ...  # int32
        last_offset: int = ...  # int64
        pre_vote: bool = ...  # 2+

    cluster_id: str | None = ...  # = None
    voter_id: int = ...  # int32, 1+, = -1
    topics: list[VoteRequest.TopicData] = ...

class VoteResponse(Struct):  # key 52, versions 0-2, flexible from 0
    class TopicData(Struct):
        topic_name: str = ...
        partitions: list[VoteResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32
        vote_granted: bool = ...

    class NodeEndpoint(Struct):
        node_id: int = ...  # int32
        host: str = ...
        port: int = ...  # uint16

    error_code: int = ...  # int16
    topics: list[VoteResponse.TopicData] = ...
    node_endpoints: list[VoteResponse.NodeEndpoint] = ...  # 1+, tag 0

class BeginQuorumEpochRequest(Struct):  # key 53, versions 0-1, flexible from 1
    class TopicData(Struct):
        topic_name: str = ...
        partitions: list[BeginQuorumEpochRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        voter_directory_id: bytes = ...  # uuid, 1+
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32

    class LeaderEndpoint(Struct):
        name: str = ...
        host: str = ...
        port: int = ...  # uint16

    cluster_id: str | None = ...  # = None
    voter_id: int = ...  # int32, 1+, = -1
    topics: list[BeginQuorumEpochRequest.TopicData] = ...
    leader_endpoints: list[BeginQuorumEpochRequest.LeaderEndpoint] = ...  # 1+

class BeginQuorumEpochResponse(Struct):  # key 53, versions 0-1, flexible from 1
    class TopicData(Struct):
        topic_name: str = ...
        partitions: list[BeginQuorumEpochResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32

    class NodeEndpoint(Struct):
        node_id: int = ...  # int32
        host: str = ...
        port: int = ...  # uint16

    error_code: int = ...  # int16
    topics: list[BeginQuorumEpochResponse.TopicData] = ...
    node_endpoints: list[BeginQuorumEpochResponse.NodeEndpoint] = ...  # 1+, tag 0

class EndQuorumEpochRequest(Struct):  # key 54, versions 0-1, flexible from 1
    class TopicData(Struct):
        topic_name: str = ...
        partitions: list[EndQuorumEpochRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32
        preferred_successors: list[int] = ...  # int32, 0-0
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = ...  # 1+

    class ReplicaInfo(Struct):
        candidate_id: int = ...  # int32
        candidate_directory_id: bytes = ...  # uuid

    class LeaderEndpoint(Struct):
        name: str = ...
        host: str = ...
        port: int = ...  # uint16

    cluster_id: str | None = ...  # = None
    topics: list[EndQuorumEpochRequest.TopicData] = ...
    leader_endpoints: list[EndQuorumEpochRequest.LeaderEndpoint] = ...  # 1+

class EndQuorumEpochResponse(Struct):  # key 54, versions 0-1, flexible from 1
    class TopicData(Struct):
        topic_name: str = ...
        partitions: list[EndQuorumEpochResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32

    class NodeEndpoint(Struct):
        node_id: int = ...  # int32
        host: str = ...
        port: int = ...  # uint16

    error_code: int = ...  # int16
    topics: list[EndQuorumEpochResponse.TopicData] = ...
    node_endpoints: list[EndQuorumEpochResponse.NodeEndpoint] = ...  # 1+, tag 0

class DescribeQuorumRequest(Struct):  # key 55, versions 0-2, flexible from 0
    class TopicData(Struct):
        topic_name: str = ...
        partitions: list[DescribeQuorumRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32

    topics: list[DescribeQuorumRequest.TopicData] = ...

class DescribeQuorumResponse(Struct):  # key 55, versions 0-2, flexible from 0
    class TopicData(Struct):
        topic_name: str = ...
        partitions: list[DescribeQuorumResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # 2+, = ''
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32
        high_watermark: int = ...  # int64
        current_voters: list[DescribeQuorumResponse.ReplicaState] = ...
        observers: list[DescribeQuorumResponse.ReplicaState] = ...

    class ReplicaState(Struct):
        replica_id: int = ...  # int32
        replica_directory_id: bytes = ...  # uuid, 2+
        log_end_offset: int = ...  # int64
        last_fetch_timestamp: int = ...  # int64, 1+, = -1
        last_caught_up_timestamp: int = ...  # int64, 1+, = -1

    class Node(Struct):
        node_id: int = ...  # int32
        listeners: list[DescribeQuorumResponse.Listener] = ...

    class Listener(Struct):
        name: str = ...
        host: str = ...
        port: int = ...  # uint16

    error_code: int = ...  # int16
    error_message: str | None = ...  # 2+, = ''
    topics: list[DescribeQuorumResponse.TopicData] = ...
    nodes: list[DescribeQuorumResponse.Node] = ...  # 2+

class AlterPartitionRequest(Struct):  # key 56, versions 0-3, flexible from 0
    class TopicData(Struct):
        topic_name: str = ...  # 0-1
        topic_id: bytes = ...  # uuid, 2+
        partitions: list[AlterPartitionRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        leader_epoch: int = ...  # int32
        new_isr: list[int] = ...  # int32, 0-2
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = ...  # 3+
        leader_recovery_state: int = ...  # int8, 1+
        partition_epoch: int = ...  # int32

    class BrokerState(Struct):
        broker_id: int = ...  # int32
        broker_epoch: int = ...  # int64, = -1

    broker_id: int = ...  # int32
    broker_epoch: int = ...  # int64, = -1
    topics: list[AlterPartitionRequest.TopicData] = ...

class AlterPartitionResponse(Struct):  # key 56, versions 0-3, flexible from 0
    class TopicData(Struct):
        topic_name: str = ...  # 0-1
        topic_id: bytes = ...  # uuid, 2+
        partitions: list[AlterPartitionResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32
        isr: list[int] = ...  # int32
        leader_recovery_state: int = ...  # int8, 1+
        partition_epoch: int = ...  # int32

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    topics: list[AlterPartitionResponse.TopicData] = ...

class UpdateFeaturesRequest(Struct):  # key 57, versions 0-2, flexible from 0
    class FeatureUpdateKey(Struct):
        feature: str = ...
        max_version_level: int = ...  # int16
        allow_downgrade: bool = ...  # 0-0
        upgrade_type: int = ...  # int8, 1+, = 1

    timeout_ms: int = ...  # int32, = 60000
    feature_updates: list[UpdateFeaturesRequest.FeatureUpdateKey] = ...
    validate_only: bool = ...  # 1+

class UpdateFeaturesResponse(Struct):  # key 57, versions 0-2, flexible from 0
    class UpdatableFeatureResult(Struct):
        feature: str = ...
        error_code: int = ...  # int16
        error_message: str | None = ...  # = ''

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''
    results: list[UpdateFeaturesResponse.UpdatableFeatureResult] = ...  # 0-1

class EnvelopeRequest(Struct):  # key 58, versions 0, flexible from 0
    request_data: bytes = ...
    request_principal: bytes | None = ...  # = b''
    client_host_address: bytes = ...

class EnvelopeResponse(Struct):  # key 58, versions 0, flexible from 0
    response_data: bytes | None = ...  # = None
    error_code: int = ...  # int16

class FetchSnapshotRequest(Struct):  # key 59, versions 0-1, flexible from 0
    class TopicSnapshot(Struct):
        name: str = ...
        partitions: list[FetchSnapshotRequest.PartitionSnapshot] = ...

    class PartitionSnapshot(Struct):
        partition: int = ...  # int32
        current_leader_epoch: int = ...  # int32
        snapshot_id: FetchSnapshotRequest.SnapshotId = ...
        position: int = ...  # int64
        replica_directory_id: bytes = ...  # uuid, 1+, tag 0

    class SnapshotId(Struct):
        end_offset: int = ...  # int64
        epoch: int = ...  # int32

    cluster_id: str | None = ...  # tag 0, = None
    replica_id: int = ...  # int32, = -1
    max_bytes: int = ...  # int32, = 2147483647
    topics: list[FetchSnapshotRequest.TopicSnapshot] = ...

class FetchSnapshotResponse(Struct):  # key 59, versions 0-1, flexible from 0
    class TopicSnapshot(Struct):
        name: str = ...
        partitions: list[FetchSnapshotResponse.PartitionSnapshot] = ...

    class PartitionSnapshot(Struct):
        index: int = ...  # int32
        error_code: int = ...  # int16
        snapshot_id: FetchSnapshotResponse.SnapshotId = ...
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = ...  # tag 0
        size: int = ...  # int64
        position: int = ...  # int64
        unaligned_records: Buffer | FileSlice = ...  # records

    class SnapshotId(Struct):
        end_offset: int = ...  # int64
        epoch: int = ...  # int32

    class LeaderIdAndEpoch(Struct):
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32

    class NodeEndpoint(Struct):
        node_id: int = ...  # int32
        host: str = ...
        port: int = ...  # uint16

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    topics: list[FetchSnapshotResponse.TopicSnapshot] = ...
    node_endpoints: list[FetchSnapshotResponse.NodeEndpoint] = ...  # 1+, tag 0

class DescribeClusterRequest(Struct):  # key 60, versions 0-2, flexible from 0
    include_cluster_authorized_operations: bool = ...
    endpoint_type: int = ...  # int8, 1+, = 1
    include_fenced_brokers: bool = ...  # 2+

class DescribeClusterResponse(Struct):  # key 60, versions 0-2, flexible from 0
    class DescribeClusterBroker(Struct):
        broker_id: int = ...  # int32
        host: str = ...
        port: int = ...  # int32
        rack: str | None = ...  # = None
        is_fenced: bool = ...  # 2+

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = None
    endpoint_type: int = ...  # int8, 1+, = 1
    cluster_id: str = ...
    controller_id: int = ...  # int32, = -1
    brokers: list[DescribeClusterResponse.DescribeClusterBroker] = ...
    cluster_authorized_operations: int = ...  # int32, = -2147483648

class DescribeProducersRequest(Struct):  # key 61, versions 0, flexible from 0
    class TopicRequest(Struct):
        name: str = ...
        partition_indexes: list[int] = ...  # int32

    topics: list[DescribeProducersRequest.TopicRequest] = ...

class DescribeProducersResponse(Struct):  # key 61, versions 0, flexible from 0
    class TopicResponse(Struct):
        name: str = ...
        partitions: list[DescribeProducersResponse.PartitionResponse] = ...

    class PartitionResponse(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None
        active_producers: list[DescribeProducersResponse.ProducerState] = ...

    class ProducerState(Struct):
        producer_id: int = ...  # int64
        producer_epoch: int = ...  # int32
        last_sequence: int = ...  # int32, = -1
        last_timestamp: int = ...  # int64, = -1
        coordinator_epoch: int = ...  # int32
        current_txn_start_offset: int = ...  # int64, = -1

    throttle_time_ms: int = ...  # int32
    topics: list[DescribeProducersResponse.TopicResponse] = ...

class BrokerRegistrationRequest(Struct):  # key 62, versions 0-4, flexible from 0
    class Listener(Struct):
        name: str = ...
        host: str = ...
        port: int = ...  # uint16
        security_protocol: int = ...  # int16

    class Feature(Struct):
        name: str = ...
        min_supported_version: int = ...  # int16
        max_supported_version: int = ...  # int16

    broker_id: int = ...  # int32
    cluster_id: str = ...
    incarnation_id: bytes = ...  # uuid
    listeners: list[BrokerRegistrationRequest.Listener] = ...
    features: list[BrokerRegistrationRequest.Feature] = ...
    rack: str | None = ...  # = ''
    is_migrating_zk_broker: bool = ...  # 1+
    log_dirs: list[bytes] = ...  # uuid, 2+
    previous_broker_epoch: int = ...  # int64, 3+, = -1

class BrokerRegistrationResponse(Struct):  # key 62, versions 0-4, flexible from 0
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    broker_epoch: int = ...  # int64, = -1

class BrokerHeartbeatRequest(Struct):  # key 63, versions 0-2, flexible from 0
    broker_id: int = ...  # int32
    broker_epoch: int = ...  # int64, = -1
    current_metadata_offset: int = ...  # int64
    want_fence: bool = ...
    want_shut_down: bool = ...
    offline_log_dirs: list[bytes] = ...  # uuid, 1+, tag 0
    cordoned_log_dirs: list[bytes] | None = ...  # uuid, 2+, tag 1, = None

class BrokerHeartbeatResponse(Struct):  # key 63, versions 0-2, flexible from 0
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    is_caught_up: bool = ...
    is_fenced: bool = ...  # = True
    should_shut_down: bool = ...

class UnregisterBrokerRequest(Struct):  # key 64, versions 0, flexible from 0
    broker_id: int = ...  # int32

class UnregisterBrokerResponse(Struct):  # key 64, versions 0, flexible from 0
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''

class DescribeTransactionsRequest(Struct):  # key 65, versions 0, flexible from 0
    transactional_ids: list[str] = ...

class DescribeTransactionsResponse(Struct):  # key 65, versions 0, flexible from 0
    class TransactionState(Struct):
        error_code: int = ...  # int16
        transactional_id: str = ...
        transaction_state: str = ...
        transaction_timeout_ms: int = ...  # int32
        transaction_start_time_ms: int = ...  # int64
        producer_id: int = ...  # int64
        producer_epoch: int = ...  # int16
        topics: list[DescribeTransactionsResponse.TopicData] = ...

    class TopicData(Struct):
        topic: str = ...
        partitions: list[int] = ...  # int32

    throttle_time_ms: int = ...  # int32
    transaction_states: list[DescribeTransactionsResponse.TransactionState] = ...

class ListTransactionsRequest(Struct):  # key 66, versions 0-2, flexible from 0
    state_filters: list[str] = ...
    producer_id_filters: list[int] = ...  # int64
    duration_filter: int = ...  # int64, 1+, = -1
    transactional_id_pattern: str | None = ...  # 2+, = None

class ListTransactionsResponse(Struct):  # key 66, versions 0-2, flexible from 0
    class TransactionState(Struct):
        transactional_id: str = ...
        producer_id: int = ...  # int64
        transaction_state: str = ...

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    unknown_state_filters: list[str] = ...
    transaction_states: list[ListTransactionsResponse.TransactionState] = ...

class AllocateProducerIdsRequest(Struct):  # key 67, versions 0, flexible from 0
    broker_id: int = ...  # int32
    broker_epoch: int = ...  # int64, = -1

class AllocateProducerIdsResponse(Struct):  # key 67, versions 0, flexible from 0
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    producer_id_start: int = ...  # int64
    producer_id_len: int = ...  # int32

class ConsumerGroupHeartbeatRequest(Struct):  # key 68, versions 0-1, flexible from 0
    class TopicPartitions(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[int] = ...  # int32

    group_id: str = ...
    member_id: str = ...
    member_epoch: int = ...  # int32
    instance_id: str | None = ...  # = None
    rack_id: str | None = ...  # = None
    rebalance_timeout_ms: int = ...  # int32, = -1
    subscribed_topic_names: list[str] | None = ...  # = None
    subscribed_topic_regex: str | None = ...  # 1+, = None
    server_assignor: str | None = ...  # = None
    topic_partitions: list[ConsumerGroupHeartbeatRequest.TopicPartitions] | None = ...  # = None

class ConsumerGroupHeartbeatResponse(Struct):  # key 68, versions 0-1, flexible from 0
    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = ...

    class TopicPartitions(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[int] = ...  # int32

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = None
    member_id: str | None = ...  # = None
    member_epoch: int = ...  # int32
    heartbeat_interval_ms: int = ...  # int32
    assignment: ConsumerGroupHeartbeatResponse.Assignment | None = ...  # = None

class ConsumerGroupDescribeRequest(Struct):  # key 69, versions 0-1, flexible from 0
    group_ids: list[str] = ...
    include_authorized_operations: bool = ...

class ConsumerGroupDescribeResponse(Struct):  # key 69, versions 0-1, flexible from 0
    class DescribedGroup(Struct):
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None
        group_id: str = ...
        group_state: str = ...
        group_epoch: int = ...  # int32
        assignment_epoch: int = ...  # int32
        assignor_name: str = ...
        members: list[ConsumerGroupDescribeResponse.Member] = ...
        authorized_operations: int = ...  # int32, = -2147483648

    class Member(Struct):
        member_id: str = ...
        instance_id: str | None = ...  # = None
        rack_id: str | None = ...  # = None
        member_epoch: int = ...  # int32
        client_id: str = ...
        client_host: str = ...
        subscribed_topic_names: list[str] = ...
        subscribed_topic_regex: str | None = ...  # = None
        assignment: ConsumerGroupDescribeResponse.Assignment = ...
        target_assignment: ConsumerGroupDescribeResponse.Assignment = ...
        member_type: int = ...  # int8, 1+, = -1

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = ...

    class TopicPartitions(Struct):
        topic_id: bytes = ...  # uuid
        topic_name: str = ...
        partitions: list[int] = ...  # int32

    throttle_time_ms: int = ...  # int32
    groups: list[ConsumerGroupDescribeResponse.DescribedGroup] = ...

class ControllerRegistrationRequest(Struct):  # key 70, versions 0, flexible from 0
    class Listener(Struct):
        name: str = ...
        host: str = ...
        port: int = ...  # uint16
        security_protocol: int = ...  # int16

    class Feature(Struct):
        name: str = ...
        min_supported_version: int = ...  # int16
        max_supported_version: int = ...  # int16

    controller_id: int = ...  # int32
    incarnation_id: bytes = ...  # uuid
    zk_migration_ready: bool = ...
    listeners: list[ControllerRegistrationRequest.Listener] = ...
    features: list[ControllerRegistrationRequest.Feature] = ...

class ControllerRegistrationResponse(Struct):  # key 70, versions 0, flexible from 0
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''

class GetTelemetrySubscriptionsRequest(Struct):  # key 71, versions 0, flexible from 0
    client_instance_id: bytes = ...  # uuid

class GetTelemetrySubscriptionsResponse(Struct):  # key 71, versions 0, flexible from 0
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    client_instance_id: bytes = ...  # uuid
    subscription_id: int = ...  # int32
    accepted_compression_types: list[int] = ...  # int8
    push_interval_ms: int = ...  # int32
    telemetry_max_bytes: int = ...  # int32
    delta_temporality: bool = ...
    requested_metrics: list[str] = ...

class PushTelemetryRequest(Struct):  # key 72, versions 0, flexible from 0
    client_instance_id: bytes = ...  # uuid
    subscription_id: int = ...  # int32
    terminating: bool = ...
    compression_type: int = ...  # int8
    metrics: bytes = ...

class PushTelemetryResponse(Struct):  # key 72, versions 0, flexible from 0
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16

class AssignReplicasToDirsRequest(Struct):  # key 73, versions 0, flexible from 0
    class DirectoryData(Struct):
        id: bytes = ...  # uuid
        topics: list[AssignReplicasToDirsRequest.TopicData] = ...

    class TopicData(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[AssignReplicasToDirsRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32

    broker_id: int = ...  # int32
    broker_epoch: int = ...  # int64, = -1
    directories: list[AssignReplicasToDirsRequest.DirectoryData] = ...

class AssignReplicasToDirsResponse(Struct):  # key 73, versions 0, flexible from 0
    class DirectoryData(Struct):
        id: bytes = ...  # uuid
        topics: list[AssignReplicasToDirsResponse.TopicData] = ...

    class TopicData(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[AssignReplicasToDirsResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    directories: list[AssignReplicasToDirsResponse.DirectoryData] = ...

class ListConfigResourcesRequest(Struct):  # key 74, versions 0-1, flexible from 0
    resource_types: list[int] = ...  # int8, 1+

class ListConfigResourcesResponse(Struct):  # key 74, versions 0-1, flexible from 0
    class ConfigResource(Struct):
        resource_name: str = ...
        resource_type: int = ...  # int8, 1+, = 16

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    config_resources: list[ListConfigResourcesResponse.ConfigResource] = ...

class DescribeTopicPartitionsRequest(Struct):  # key 75, versions 0, flexible from 0
    class TopicRequest(Struct):
        name: str = ...

    class Cursor(Struct):
        topic_name: str = ...
        partition_index: int = ...  # int32

    topics: list[DescribeTopicPartitionsRequest.TopicRequest] = ...
    response_partition_limit: int = ...  # int32, = 2000
    cursor: DescribeTopicPartitionsRequest.Cursor | None = ...  # = None

class DescribeTopicPartitionsResponse(Struct):  # key 75, versions 0, flexible from 0
    class DescribeTopicPartitionsResponseTopic(Struct):
        error_code: int = ...  # int16
        name: str | None = ...  # = ''
        topic_id: bytes = ...  # uuid
        is_internal: bool = ...
        partitions: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition] = ...
        topic_authorized_operations: int = ...  # int32, = -2147483648

    class DescribeTopicPartitionsResponsePartition(Struct):
        error_code: int = ...  # int16
        partition_index: int = ...  # int32
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32, = -1
        replica_nodes: list[int] = ...  # int32
        isr_nodes: list[int] = ...  # int32
        eligible_leader_replicas: list[int] | None = ...  # int32, = None
        last_known_elr: list[int] | None = ...  # int32, = None
        offline_replicas: list[int] = ...  # int32

    class Cursor(Struct):
        topic_name: str = ...
        partition_index: int = ...  # int32

    throttle_time_ms: int = ...  # int32
    topics: list[DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic] = ...
    next_cursor: DescribeTopicPartitionsResponse.Cursor | None = ...  # = None

class ShareGroupHeartbeatRequest(Struct):  # key 76, versions 1, flexible from 0
    group_id: str = ...
    member_id: str = ...
    member_epoch: int = ...  # int32
    rack_id: str | None = ...  # = None
    subscribed_topic_names: list[str] | None = ...  # = None

class ShareGroupHeartbeatResponse(Struct):  # key 76, versions 1, flexible from 0
    class Assignment(Struct):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = ...

    class TopicPartitions(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[int] = ...  # int32

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = None
    member_id: str | None = ...  # = None
    member_epoch: int = ...  # int32
    heartbeat_interval_ms: int = ...  # int32
    assignment: ShareGroupHeartbeatResponse.Assignment | None = ...  # = None

class ShareGroupDescribeRequest(Struct):  # key 77, versions 1, flexible from 0
    group_ids: list[str] = ...
    include_authorized_operations: bool = ...

class ShareGroupDescribeResponse(Struct):  # key 77, versions 1, flexible from 0
    class DescribedGroup(Struct):
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None
        group_id: str = ...
        group_state: str = ...
        group_epoch: int = ...  # int32
        assignment_epoch: int = ...  # int32
        assignor_name: str = ...
        members: list[ShareGroupDescribeResponse.Member] = ...
        authorized_operations: int = ...  # int32, = -2147483648

    class Member(Struct):
        member_id: str = ...
        rack_id: str | None = ...  # = None
        member_epoch: int = ...  # int32
        client_id: str = ...
        client_host: str = ...
        subscribed_topic_names: list[str] = ...
        assignment: ShareGroupDescribeResponse.Assignment = ...

    class Assignment(Struct):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = ...

    class TopicPartitions(Struct):
        topic_id: bytes = ...  # uuid
        topic_name: str = ...
        partitions: list[int] = ...  # int32

    throttle_time_ms: int = ...  # int32
    groups: list[ShareGroupDescribeResponse.DescribedGroup] = ...

class ShareFetchRequest(Struct):  # key 78, versions 1-2, flexible from 0
    class FetchTopic(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[ShareFetchRequest.FetchPartition] = ...

    class FetchPartition(Struct):
        partition_index: int = ...  # int32
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = ...

    class AcknowledgementBatch(Struct):
        first_offset: int = ...  # int64
        last_offset: int = ...  # int64
        acknowledge_types: list[int] = ...  # int8

    class ForgottenTopic(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[int] = ...  # int32

    group_id: str | None = ...  # = None
    member_id: str | None = ...  # = ''
    share_session_epoch: int = ...  # int32
    max_wait_ms: int = ...  # int32
    min_bytes: int = ...  # int32
    max_bytes: int = ...  # int32, = 2147483647
    max_records: int = ...  # int32
    batch_size: int = ...  # int32
    share_acquire_mode: int = ...  # int8, 2+
    is_renew_ack: bool = ...  # 2+
    topics: list[ShareFetchRequest.FetchTopic] = ...
    forgotten_topics_data: list[ShareFetchRequest.ForgottenTopic] = ...

class ShareFetchResponse(Struct):  # key 78, versions 1-2, flexible from 0
    class ShareFetchableTopicResponse(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[ShareFetchResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None
        acknowledge_error_code: int = ...  # int16
        acknowledge_error_message: str | None = ...  # = None
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = ...
        records: Buffer | FileSlice = ...  # records
        acquired_records: list[ShareFetchResponse.AcquiredRecords] = ...

    class LeaderIdAndEpoch(Struct):
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32

    class AcquiredRecords(Struct):
        first_offset: int = ...  # int64
        last_offset: int = ...  # int64
        delivery_count: int = ...  # int16

    class NodeEndpoint(Struct):
        node_id: int = ...  # int32
        host: str = ...
        port: int = ...  # int32
        rack: str | None = ...  # = None

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = None
    acquisition_lock_timeout_ms: int = ...  # int32
    responses: list[ShareFetchResponse.ShareFetchableTopicResponse] = ...
    node_endpoints: list[ShareFetchResponse.NodeEndpoint] = ...

class ShareAcknowledgeRequest(Struct):  # key 79, versions 1-2, flexible from 0
    class AcknowledgeTopic(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = ...

    class AcknowledgePartition(Struct):
        partition_index: int = ...  # int32
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = ...

    class AcknowledgementBatch(Struct):
        first_offset: int = ...  # int64
        last_offset: int = ...  # int64
        acknowledge_types: list[int] = ...  # int8

    group_id: str | None = ...  # = None
    member_id: str | None = ...  # = ''
    share_session_epoch: int = ...  # int32
    is_renew_ack: bool = ...  # 2+
    topics: list[ShareAcknowledgeRequest.AcknowledgeTopic] = ...

class ShareAcknowledgeResponse(Struct):  # key 79, versions 1-2, flexible from 0
    class ShareAcknowledgeTopicResponse(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[ShareAcknowledgeResponse.PartitionData] = ...

    class PartitionData(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = ...

    class LeaderIdAndEpoch(Struct):
        leader_id: int = ...  # int32
        leader_epoch: int = ...  # int32

    class NodeEndpoint(Struct):
        node_id: int = ...  # int32
        host: str = ...
        port: int = ...  # int32
        rack: str | None = ...  # = None

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = None
    acquisition_lock_timeout_ms: int = ...  # int32, 2+
    responses: list[ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = ...
    node_endpoints: list[ShareAcknowledgeResponse.NodeEndpoint] = ...

class AddRaftVoterRequest(Struct):  # key 80, versions 0-1, flexible from 0
    class Listener(Struct):
        name: str = ...
        host: str = ...
        port: int = ...  # uint16

    cluster_id: str | None = ...  # = ''
    timeout_ms: int = ...  # int32
    voter_id: int = ...  # int32
    voter_directory_id: bytes = ...  # uuid
    listeners: list[AddRaftVoterRequest.Listener] = ...
    ack_when_committed: bool = ...  # 1+, = True

class AddRaftVoterResponse(Struct):  # key 80, versions 0-1, flexible from 0
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''

class RemoveRaftVoterRequest(Struct):  # key 81, versions 0, flexible from 0
    cluster_id: str | None = ...  # = ''
    voter_id: int = ...  # int32
    voter_directory_id: bytes = ...  # uuid

class RemoveRaftVoterResponse(Struct):  # key 81, versions 0, flexible from 0
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''

class UpdateRaftVoterRequest(Struct):  # key 82, versions 0, flexible from 0
    class Listener(Struct):
        name: str = ...
        host: str = ...
        port: int = ...  # uint16

    class KRaftVersionFeature(Struct):
        min_supported_version: int = ...  # int16
        max_supported_version: int = ...  # int16

    cluster_id: str | None = ...  # = ''
    current_leader_epoch: int = ...  # int32
    voter_id: int = ...  # int32
    voter_directory_id: bytes = ...  # uuid
    listeners: list[UpdateRaftVoterRequest.Listener] = ...
    k_raft_version_feature: UpdateRaftVoterRequest.KRaftVersionFeature = ...

class UpdateRaftVoterResponse(Struct):  # key 82, versions 0, flexible from 0
    class CurrentLeader(Struct):
        leader_id: int = ...  # int32, = -1
        leader_epoch: int = ...  # int32, = -1
        host: str = ...
        port: int = ...  # int32

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    current_leader: UpdateRaftVoterResponse.CurrentLeader = ...  # tag 0

class InitializeShareGroupStateRequest(Struct):  # key 83, versions 0, flexible from 0
    class InitializeStateData(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[InitializeShareGroupStateRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition: int = ...  # int32
        state_epoch: int = ...  # int32
        start_offset: int = ...  # int64

    group_id: str = ...
    topics: list[InitializeShareGroupStateRequest.InitializeStateData] = ...

class InitializeShareGroupStateResponse(Struct):  # key 83, versions 0, flexible from 0
    class InitializeStateResult(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[InitializeShareGroupStateResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None

    results: list[InitializeShareGroupStateResponse.InitializeStateResult] = ...

class ReadShareGroupStateRequest(Struct):  # key 84, versions 0, flexible from 0
    class ReadStateData(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[ReadShareGroupStateRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition: int = ...  # int32
        leader_epoch: int = ...  # int32

    group_id: str = ...
    topics: list[ReadShareGroupStateRequest.ReadStateData] = ...

class ReadShareGroupStateResponse(Struct):  # key 84, versions 0, flexible from 0
    class ReadStateResult(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[ReadShareGroupStateResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None
        state_epoch: int = ...  # int32
        start_offset: int = ...  # int64
        state_batches: list[ReadShareGroupStateResponse.StateBatch] = ...

    class StateBatch(Struct):
        first_offset: int = ...  # int64
        last_offset: int = ...  # int64
        delivery_state: int = ...  # int8
        delivery_count: int = ...  # int16

    results: list[ReadShareGroupStateResponse.ReadStateResult] = ...

class WriteShareGroupStateRequest(Struct):  # key 85, versions 0-1, flexible from 0
    class WriteStateData(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[WriteShareGroupStateRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition: int = ...  # int32
        state_epoch: int = ...  # int32
        leader_epoch: int = ...  # int32
        start_offset: int = ...  # int64
        delivery_complete_count: int = ...  # int32, 1+, = -1
        state_batches: list[WriteShareGroupStateRequest.StateBatch] = ...

    class StateBatch(Struct):
        first_offset: int = ...  # int64
        last_offset: int = ...  # int64
        delivery_state: int = ...  # int8
        delivery_count: int = ...  # int16

    group_id: str = ...
    topics: list[WriteShareGroupStateRequest.WriteStateData] = ...

class WriteShareGroupStateResponse(Struct):  # key 85, versions 0-1, flexible from 0
    class WriteStateResult(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[WriteShareGroupStateResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None

    results: list[WriteShareGroupStateResponse.WriteStateResult] = ...

class DeleteShareGroupStateRequest(Struct):  # key 86, versions 0, flexible from 0
    class DeleteStateData(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[DeleteShareGroupStateRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition: int = ...  # int32

    group_id: str = ...
    topics: list[DeleteShareGroupStateRequest.DeleteStateData] = ...

class DeleteShareGroupStateResponse(Struct):  # key 86, versions 0, flexible from 0
    class DeleteStateResult(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[DeleteShareGroupStateResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None

    results: list[DeleteShareGroupStateResponse.DeleteStateResult] = ...

class ReadShareGroupStateSummaryRequest(Struct):  # key 87, versions 0-1, flexible from 0
    class ReadStateSummaryData(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = ...

    class PartitionData(Struct):
        partition: int = ...  # int32
        leader_epoch: int = ...  # int32

    group_id: str = ...
    topics: list[ReadShareGroupStateSummaryRequest.ReadStateSummaryData] = ...

class ReadShareGroupStateSummaryResponse(Struct):  # key 87, versions 0-1, flexible from 0
    class ReadStateSummaryResult(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = ...

    class PartitionResult(Struct):
        partition: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None
        state_epoch: int = ...  # int32
        leader_epoch: int = ...  # int32
        start_offset: int = ...  # int64
        delivery_complete_count: int = ...  # int32, 1+, = -1

    results: list[ReadShareGroupStateSummaryResponse.ReadStateSummaryResult] = ...

class StreamsGroupHeartbeatRequest(Struct):  # key 88, versions 0-1, flexible from 0
    class Topology(Struct):
        epoch: int = ...  # int32
        subtopologies: list[StreamsGroupHeartbeatRequest.Subtopology] = ...

    class Subtopology(Struct):
        subtopology_id: str = ...
        source_topics: list[str] = ...
        source_topic_regex: list[str] = ...
        state_changelog_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ...
        repartition_sink_topics: list[str] = ...
        repartition_source_topics: list[StreamsGroupHeartbeatRequest.TopicInfo] = ...
        copartition_groups: list[StreamsGroupHeartbeatRequest.CopartitionGroup] = ...

    class TopicInfo(Struct):
        name: str = ...
        partitions: int = ...  # int32
        replication_factor: int = ...  # int16
        topic_configs: list[StreamsGroupHeartbeatRequest.KeyValue] = ...

    class KeyValue(Struct):
        key: str = ...
        value: str = ...

    class CopartitionGroup(Struct):
        source_topics: list[int] = ...  # int16
        source_topic_regex: list[int] = ...  # int16
        repartition_source_topics: list[int] = ...  # int16

    class TaskIds(Struct):
        subtopology_id: str = ...
        partitions: list[int] = ...  # int32

    class Endpoint(Struct):
        host: str = ...
        port: int = ...  # uint16

    class TaskOffset(Struct):
        subtopology_id: str = ...
        partition: int = ...  # int32
        offset: int = ...  # int64

    group_id: str = ...
    member_id: str = ...
    member_epoch: int = ...  # int32
    endpoint_information_epoch: int = ...  # int32
    instance_id: str | None = ...  # = None
    rack_id: str | None = ...  # = None
    rebalance_timeout_ms: int = ...  # int32, = -1
    topology: StreamsGroupHeartbeatRequest.Topology | None = ...  # = None
    active_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ...  # = None
    standby_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ...  # = None
    warmup_tasks: list[StreamsGroupHeartbeatRequest.TaskIds] | None = ...  # = None
    process_id: str | None = ...  # = None
    user_endpoint: StreamsGroupHeartbeatRequest.Endpoint | None = ...  # = None
    client_tags: list[StreamsGroupHeartbeatRequest.KeyValue] | None = ...  # = None
    task_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = ...  # = None
    task_end_offsets: list[StreamsGroupHeartbeatRequest.TaskOffset] | None = ...  # = None
    shutdown_application: bool = ...

class StreamsGroupHeartbeatResponse(Struct):  # key 88, versions 0-1, flexible from 0
    class Status(Struct):
        status_code: int = ...  # int8
        status_detail: str = ...

    class TaskIds(Struct):
        subtopology_id: str = ...
        partitions: list[int] = ...  # int32

    class EndpointToPartitions(Struct):
        user_endpoint: StreamsGroupHeartbeatResponse.Endpoint = ...
        active_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ...
        standby_partitions: list[StreamsGroupHeartbeatResponse.TopicPartition] = ...

    class Endpoint(Struct):
        host: str = ...
        port: int = ...  # uint16

    class TopicPartition(Struct):
        topic: str = ...
        partitions: list[int] = ...  # int32

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = None
    member_id: str = ...
    member_epoch: int = ...  # int32
    heartbeat_interval_ms: int = ...  # int32
    acceptable_recovery_lag: int = ...  # int32, 0-0
    task_offset_interval_ms: int = ...  # int32
    acceptable_recovery_lag_offsets: int = ...  # int64, 1+, = -1
    status: list[StreamsGroupHeartbeatResponse.Status] | None = ...  # = []
    active_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ...  # = None
    standby_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ...  # = None
    warmup_tasks: list[StreamsGroupHeartbeatResponse.TaskIds] | None = ...  # = None
    topology_description_required: bool = ...  # 1+
    endpoint_information_epoch: int = ...  # int32
    partitions_by_user_endpoint: list[StreamsGroupHeartbeatResponse.EndpointToPartitions] | None = ...  # = None

class StreamsGroupDescribeRequest(Struct):  # key 89, versions 0-1, flexible from 0
    group_ids: list[str] = ...
    include_authorized_operations: bool = ...
    include_topology_description: bool = ...  # 1+

class StreamsGroupDescribeResponse(Struct):  # key 89, versions 0-1, flexible from 0
    class DescribedGroup(Struct):
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None
        group_id: str = ...
        group_state: str = ...
        group_epoch: int = ...  # int32
        assignment_epoch: int = ...  # int32
        topology: StreamsGroupDescribeResponse.Topology | None = ...  # = None
        members: list[StreamsGroupDescribeResponse.Member] = ...
        authorized_operations: int = ...  # int32, = -2147483648
        topology_description: StreamsGroupDescribeResponse.TopologyDescription | None = ...  # 1+, = None
        topology_description_status: int = ...  # int8, 1+
        assignor_name: str | None = ...  # 1+, = None

    class Topology(Struct):
        epoch: int = ...  # int32
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = ...  # = None

    class Subtopology(Struct):
        subtopology_id: str = ...
        source_topics: list[str] = ...
        repartition_sink_topics: list[str] = ...
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ...
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = ...

    class TopicInfo(Struct):
        name: str = ...
        partitions: int = ...  # int32
        replication_factor: int = ...  # int16
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = ...

    class KeyValue(Struct):
        key: str = ...
        value: str = ...

    class Member(Struct):
        member_id: str = ...
        member_epoch: int = ...  # int32
        instance_id: str | None = ...  # = None
        rack_id: str | None = ...  # = None
        client_id: str = ...
        client_host: str = ...
        topology_epoch: int = ...  # int32
        process_id: str = ...
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = ...  # = None
        client_tags: list[StreamsGroupDescribeResponse.KeyValue] = ...
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ...
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = ...
        assignment: StreamsGroupDescribeResponse.Assignment = ...
        target_assignment: StreamsGroupDescribeResponse.Assignment = ...
        is_classic: bool = ...

    class Endpoint(Struct):
        host: str = ...
        port: int = ...  # uint16

    class TaskOffset(Struct):
        subtopology_id: str = ...
        partition: int = ...  # int32
        offset: int = ...  # int64

    class Assignment(Struct):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = ...

    class TaskIds(Struct):
        subtopology_id: str = ...
        partitions: list[int] = ...  # int32

    class TopologyDescription(Struct):
        subtopologies: list[StreamsGroupDescribeResponse.TopologyDescriptionSubtopology] = ...
        global_stores: list[StreamsGroupDescribeResponse.TopologyDescriptionGlobalStore] = ...

    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: str = ...
        nodes: list[StreamsGroupDescribeResponse.TopologyDescriptionNode] = ...

    class TopologyDescriptionNode(Struct):
        name: str = ...
        node_type: int = ...  # int8
        source_topics: list[str] = ...
        sink_topic: str | None = ...  # = None
        stores: list[str] = ...
        successors: list[str] = ...

    class TopologyDescriptionGlobalStore(Struct):
        source: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...
        processor: StreamsGroupDescribeResponse.TopologyDescriptionNode = ...

    throttle_time_ms: int = ...  # int32
    groups: list[StreamsGroupDescribeResponse.DescribedGroup] = ...

class DescribeShareGroupOffsetsRequest(Struct):  # key 90, versions 0-1, flexible from 0
    class DescribeShareGroupOffsetsRequestGroup(Struct):
        group_id: str = ...
        topics: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic] | None = ...  # = []

    class DescribeShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = ...
        partitions: list[int] = ...  # int32

    groups: list[DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup] = ...

class DescribeShareGroupOffsetsResponse(Struct):  # key 90, versions 0-1, flexible from 0
    class DescribeShareGroupOffsetsResponseGroup(Struct):
        group_id: str = ...
        topics: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic] = ...
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None

    class DescribeShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = ...
        topic_id: bytes = ...  # uuid
        partitions: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition] = ...

    class DescribeShareGroupOffsetsResponsePartition(Struct):
        partition_index: int = ...  # int32
        start_offset: int = ...  # int64
        leader_epoch: int = ...  # int32
        lag: int = ...  # int64, 1+, = -1
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None

    throttle_time_ms: int = ...  # int32
    groups: list[DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup] = ...

class AlterShareGroupOffsetsRequest(Struct):  # key 91, versions 0, flexible from 0
    class AlterShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = ...
        partitions: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition] = ...

    class AlterShareGroupOffsetsRequestPartition(Struct):
        partition_index: int = ...  # int32
        start_offset: int = ...  # int64

    group_id: str = ...
    topics: list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic] = ...

class AlterShareGroupOffsetsResponse(Struct):  # key 91, versions 0, flexible from 0
    class AlterShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = ...
        topic_id: bytes = ...  # uuid
        partitions: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition] = ...

    class AlterShareGroupOffsetsResponsePartition(Struct):
        partition_index: int = ...  # int32
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = None
    responses: list[AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = ...

class DeleteShareGroupOffsetsRequest(Struct):  # key 92, versions 0, flexible from 0
    class DeleteShareGroupOffsetsRequestTopic(Struct):
        topic_name: str = ...

    group_id: str = ...
    topics: list[DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic] = ...

class DeleteShareGroupOffsetsResponse(Struct):  # key 92, versions 0, flexible from 0
    class DeleteShareGroupOffsetsResponseTopic(Struct):
        topic_name: str = ...
        topic_id: bytes = ...  # uuid
        error_code: int = ...  # int16
        error_message: str | None = ...  # = None

    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = None
    responses: list[DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic] = ...

class StreamsGroupTopologyDescriptionUpdateRequest(Struct):  # key 93, versions 0, flexible from 0
    class TopologyDescription(Struct):
        subtopologies: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionSubtopology] = ...
        global_stores: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionGlobalStore] = ...

    class TopologyDescriptionSubtopology(Struct):
        subtopology_id: str = ...
        nodes: list[StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode] = ...

    class TopologyDescriptionNode(Struct):
        name: str = ...
        node_type: int = ...  # int8
        source_topics: list[str] = ...
        sink_topic: str | None = ...  # = None
        stores: list[str] = ...
        successors: list[str] = ...

    class TopologyDescriptionGlobalStore(Struct):
        source: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...
        processor: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescriptionNode = ...

    group_id: str = ...
    member_id: str = ...
    topology_epoch: int = ...  # int32
    topology_description: StreamsGroupTopologyDescriptionUpdateRequest.TopologyDescription = ...

class StreamsGroupTopologyDescriptionUpdateResponse(Struct):  # key 93, versions 0, flexible from 0
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = None

class UnregisterControllerRequest(Struct):  # key 94, versions 0, flexible from 0
    controller_id: int = ...  # int32

class UnregisterControllerResponse(Struct):  # key 94, versions 0, flexible from 0
    throttle_time_ms: int = ...  # int32
    error_code: int = ...  # int16
    error_message: str | None = ...  # = ''

class RegisterBrokerRecord(Struct):  # type 0, versions 0-4, flexible from 0
    class BrokerEndpoint(Struct):
        name: str = ...
        host: str = ...
        port: int = ...  # uint16
        security_protocol: int = ...  # int16

    class BrokerFeature(Struct):
        name: str = ...
        min_supported_version: int = ...  # int16
        max_supported_version: int = ...  # int16

    broker_id: int = ...  # int32
    is_migrating_zk_broker: bool = ...  # 2+
    incarnation_id: bytes = ...  # uuid
    broker_epoch: int = ...  # int64
    end_points: list[RegisterBrokerRecord.BrokerEndpoint] = ...
    features: list[RegisterBrokerRecord.BrokerFeature] = ...
    rack: str | None = ...  # = ''
    fenced: bool = ...  # = True
    in_controlled_shutdown: bool = ...  # 1+
    log_dirs: list[bytes] = ...  # uuid, 3+, tag 0
    cordoned_log_dirs: list[bytes] | None = ...  # uuid, 4+, tag 1, = None

class UnregisterBrokerRecord(Struct):  # type 1, versions 0, flexible from 0
    broker_id: int = ...  # int32
    broker_epoch: int = ...  # int64

class TopicRecord(Struct):  # type 2, versions 0, flexible from 0
    name: str = ...
    topic_id: bytes = ...  # uuid

class PartitionRecord(Struct):  # type 3, versions 0-2, flexible from 0
    partition_id: int = ...  # int32, = -1
    topic_id: bytes = ...  # uuid
    replicas: list[int] = ...  # int32
    isr: list[int] = ...  # int32
    removing_replicas: list[int] = ...  # int32
    adding_replicas: list[int] = ...  # int32
    leader: int = ...  # int32, = -1
    leader_recovery_state: int = ...  # int8, tag 0
    leader_epoch: int = ...  # int32, = -1
    partition_epoch: int = ...  # int32, = -1
    directories: list[bytes] = ...  # uuid, 1+
    eligible_leader_replicas: list[int] | None = ...  # int32, 2+, tag 1, = None
    last_known_elr: list[int] | None = ...  # int32, 2+, tag 2, = None

class ConfigRecord(Struct):  # type 4, versions 0, flexible from 0
    resource_type: int = ...  # int8
    resource_name: str = ...
    name: str = ...
    value: str | None = ...  # = ''

class PartitionChangeRecord(Struct):  # type 5, versions 0-2, flexible from 0
    partition_id: int = ...  # int32, = -1
    topic_id: bytes = ...  # uuid
    isr: list[int] | None = ...  # int32, tag 0, = None
    leader: int = ...  # int32, tag 1, = -2
    replicas: list[int] | None = ...  # int32, tag 2, = None
    removing_replicas: list[int] | None = ...  # int32, tag 3, = None
    adding_replicas: list[int] | None = ...  # int32, tag 4, = None
    leader_recovery_state: int = ...  # int8, tag 5, = -1
    directories: list[bytes] | None = ...  # uuid, 1+, tag 8, = None
    eligible_leader_replicas: list[int] | None = ...  # int32, 2+, tag 6, = None
    last_known_elr: list[int] | None = ...  # int32, 2+, tag 7, = None

class FenceBrokerRecord(Struct):  # type 7, versions 0, flexible from 0
    id: int = ...  # int32
    epoch: int = ...  # int64

class UnfenceBrokerRecord(Struct):  # type 8, versions 0, flexible from 0
    id: int = ...  # int32
    epoch: int = ...  # int64

class RemoveTopicRecord(Struct):  # type 9, versions 0, flexible from 0
    topic_id: bytes = ...  # uuid

class DelegationTokenRecord(Struct):  # type 10, versions 0, flexible from 0
    owner: str = ...
    requester: str = ...
    renewers: list[str] = ...
    issue_timestamp: int = ...  # int64
    max_timestamp: int = ...  # int64
    expiration_timestamp: int = ...  # int64
    token_id: str = ...

class UserScramCredentialRecord(Struct):  # type 11, versions 0, flexible from 0
    name: str = ...
    mechanism: int = ...  # int8
    salt: bytes = ...
    stored_key: bytes = ...
    server_key: bytes = ...
    iterations: int = ...  # int32

class FeatureLevelRecord(Struct):  # type 12, versions 0, flexible from 0
    name: str = ...
    feature_level: int = ...  # int16

class ClientQuotaRecord(Struct):  # type 14, versions 0, flexible from 0
    class EntityData(Struct):
        entity_type: str = ...
        entity_name: str | None = ...  # = ''

    entity: list[ClientQuotaRecord.EntityData] = ...
    key: str = ...
    value: float = ...  # float64
    remove: bool = ...

class ProducerIdsRecord(Struct):  # type 15, versions 0, flexible from 0
    broker_id: int = ...  # int32
    broker_epoch: int = ...  # int64, = -1
    next_producer_id: int = ...  # int64

class BrokerRegistrationChangeRecord(Struct):  # type 17, versions 0-3, flexible from 0
    broker_id: int = ...  # int32
    broker_epoch: int = ...  # int64
    fenced: int = ...  # int8, tag 0
    in_controlled_shutdown: int = ...  # int8, 1+, tag 1
    log_dirs: list[bytes] = ...  # uuid, 2+, tag 2
    cordoned_log_dirs: list[bytes] | None = ...  # uuid, 3+, tag 3, = None

class AccessControlEntryRecord(Struct):  # type 18, versions 0, flexible from 0
    id: bytes = ...  # uuid
    resource_type: int = ...  # int8
    resource_name: str = ...
    pattern_type: int = ...  # int8
    principal: str = ...
    host: str = ...
    operation: int = ...  # int8
    permission_type: int = ...  # int8

class RemoveAccessControlEntryRecord(Struct):  # type 19, versions 0, flexible from 0
    id: bytes = ...  # uuid

class NoOpRecord(Struct):  # type 20, versions 0, flexible from 0
    ...

class ZkMigrationStateRecord(Struct):  # type 21, versions 0, flexible from 0
    zk_migration_state: int = ...  # int8

class RemoveUserScramCredentialRecord(Struct):  # type 22, versions 0, flexible from 0
    name: str = ...
    mechanism: int = ...  # int8

class BeginTransactionRecord(Struct):  # type 23, versions 0, flexible from 0
    name: str | None = ...  # tag 0, = None

class EndTransactionRecord(Struct):  # type 24, versions 0, flexible from 0
    ...

class AbortTransactionRecord(Struct):  # type 25, versions 0, flexible from 0
    reason: str | None = ...  # tag 0, = None

class RemoveDelegationTokenRecord(Struct):  # type 26, versions 0, flexible from 0
    token_id: str = ...

class RegisterControllerRecord(Struct):  # type 27, versions 0, flexible from 0
    class ControllerEndpoint(Struct):
        name: str = ...
        host: str = ...
        port: int = ...  # uint16
        security_protocol: int = ...  # int16

    class ControllerFeature(Struct):
        name: str = ...
        min_supported_version: int = ...  # int16
        max_supported_version: int = ...  # int16

    controller_id: int = ...  # int32
    incarnation_id: bytes = ...  # uuid
    zk_migration_ready: bool = ...
    end_points: list[RegisterControllerRecord.ControllerEndpoint] = ...
    features: list[RegisterControllerRecord.ControllerFeature] = ...

class ClearElrRecord(Struct):  # type 28, versions 0, flexible from 0
    topic_name: str = ...

class UnregisterControllerRecord(Struct):  # type 29, versions 0, flexible from 0
    controller_id: int = ...  # int32

class ControlRecordTypeSchema(Struct):  # versions 0, never flexible
    type: int = ...  # int16

class EndTxnMarker(Struct):  # versions 0, never flexible
    coordinator_epoch: int = ...  # int32

class LeaderChangeMessage(Struct):  # versions 0-1, flexible from 0
    class Voter(Struct):
        voter_id: int = ...  # int32
        voter_directory_id: bytes = ...  # uuid, 1+

    version: int = ...  # int16
    leader_id: int = ...  # int32
    voters: list[LeaderChangeMessage.Voter] = ...
    granting_voters: list[LeaderChangeMessage.Voter] = ...

class SnapshotHeaderRecord(Struct):  # versions 0, flexible from 0
    version: int = ...  # int16
    last_contained_log_timestamp: int = ...  # int64

class SnapshotFooterRecord(Struct):  # versions 0, flexible from 0
    version: int = ...  # int16

class KRaftVersionRecord(Struct):  # versions 0, flexible from 0
    version: int = ...  # int16
    k_raft_version: int = ...  # int16

class VotersRecord(Struct):  # versions 0, flexible from 0
    class Voter(Struct):
        voter_id: int = ...  # int32
        voter_directory_id: bytes = ...  # uuid
        endpoints: list[VotersRecord.Endpoint] = ...
        k_raft_version_feature: VotersRecord.KRaftVersionFeature = ...

    class Endpoint(Struct):
        name: str = ...
        host: str = ...
        port: int = ...  # uint16

    class KRaftVersionFeature(Struct):
        min_supported_version: int = ...  # int16
        max_supported_version: int = ...  # int16

    version: int = ...  # int16
    voters: list[VotersRecord.Voter] = ...

class LegacyOffsetCommitKey(Struct):  # type 0, versions 0, never flexible
    group: str = ...
    topic: str = ...
    partition: int = ...  # int32

class LegacyOffsetCommitValue(Struct):  # type 0, versions 0, never flexible
    offset: int = ...  # int64
    metadata: str = ...
    commit_timestamp: int = ...  # int64

class OffsetCommitKey(Struct):  # type 1, versions 0, never flexible
    group: str = ...
    topic: str = ...
    partition: int = ...  # int32

class OffsetCommitValue(Struct):  # type 1, versions 0-4, flexible from 4
    offset: int = ...  # int64
    leader_epoch: int = ...  # int32, 3+, = -1
    metadata: str = ...
    commit_timestamp: int = ...  # int64
    expire_timestamp: int = ...  # int64, 1-1, = -1
    topic_id: bytes = ...  # uuid, 4+, tag 0

class GroupMetadataKey(Struct):  # type 2, versions 0, never flexible
    group: str = ...

class GroupMetadataValue(Struct):  # type 2, versions 0-4, flexible from 4
    class MemberMetadata(Struct):
        member_id: str = ...
        group_instance_id: str | None = ...  # 3+, = None
        client_id: str = ...
        client_host: str = ...
        rebalance_timeout: int = ...  # int32, 1+, = -1
        session_timeout: int = ...  # int32
        subscription: bytes = ...
        assignment: bytes = ...

    protocol_type: str = ...
    generation: int = ...  # int32
    protocol: str | None = ...  # = ''
    leader: str | None = ...  # = ''
    current_state_timestamp: int = ...  # int64, 2+, = -1
    members: list[GroupMetadataValue.MemberMetadata] = ...

class ConsumerGroupMetadataKey(Struct):  # type 3, versions 0, never flexible
    group_id: str = ...

class ConsumerGroupMetadataValue(Struct):  # type 3, versions 0, flexible from 0
    epoch: int = ...  # int32
    metadata_hash: int = ...  # int64, tag 0

class ConsumerGroupPartitionMetadataKey(Struct):  # type 4, versions 0, never flexible
    group_id: str = ...

class ConsumerGroupPartitionMetadataValue(Struct):  # type 4, versions 0, flexible from 0
    class TopicMetadata(Struct):
        topic_id: bytes = ...  # uuid
        topic_name: str = ...
        num_partitions: int = ...  # int32
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = ...

    class PartitionMetadata(Struct):
        partition: int = ...  # int32
        racks: list[str] = ...

    topics: list[ConsumerGroupPartitionMetadataValue.TopicMetadata] = ...

class ConsumerGroupMemberMetadataKey(Struct):  # type 5, versions 0, never flexible
    group_id: str = ...
    member_id: str = ...

class ConsumerGroupMemberMetadataValue(Struct):  # type 5, versions 0, flexible from 0
    class ClassicMemberMetadata(Struct):
        session_timeout_ms: int = ...  # int32
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = ...

    class ClassicProtocol(Struct):
        name: str = ...
        metadata: bytes = ...

    instance_id: str | None = ...  # = ''
    rack_id: str | None = ...  # = ''
    client_id: str = ...
    client_host: str = ...
    subscribed_topic_names: list[str] = ...
    subscribed_topic_regex: str | None = ...  # = ''
    rebalance_timeout_ms: int = ...  # int32, = -1
    server_assignor: str | None = ...  # = ''
    classic_member_metadata: ConsumerGroupMemberMetadataValue.ClassicMemberMetadata | None = ...  # tag 0

class ConsumerGroupTargetAssignmentMetadataKey(Struct):  # type 6, versions 0, never flexible
    group_id: str = ...

class ConsumerGroupTargetAssignmentMetadataValue(Struct):  # type 6, versions 0, flexible from 0
    assignment_epoch: int = ...  # int32
    assignment_timestamp: int = ...  # int64, tag 0

class ConsumerGroupTargetAssignmentMemberKey(Struct):  # type 7, versions 0, never flexible
    group_id: str = ...
    member_id: str = ...

class ConsumerGroupTargetAssignmentMemberValue(Struct):  # type 7, versions 0, flexible from 0
    class TopicPartition(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[int] = ...  # int32

    topic_partitions: list[ConsumerGroupTargetAssignmentMemberValue.TopicPartition] = ...

class ConsumerGroupCurrentMemberAssignmentKey(Struct):  # type 8, versions 0, never flexible
    group_id: str = ...
    member_id: str = ...

class ConsumerGroupCurrentMemberAssignmentValue(Struct):  # type 8, versions 0, flexible from 0
    class TopicPartitions(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[int] = ...  # int32
        assignment_epochs: list[int] | None = ...  # int32, tag 0, = []

    member_epoch: int = ...  # int32
    previous_member_epoch: int = ...  # int32
    state: int = ...  # int8
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ...
    partitions_pending_revocation: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions] = ...

class ShareGroupMemberMetadataKey(Struct):  # type 10, versions 0, never flexible
    group_id: str = ...
    member_id: str = ...

class ShareGroupMemberMetadataValue(Struct):  # type 10, versions 0, flexible from 0
    rack_id: str | None = ...  # = ''
    client_id: str = ...
    client_host: str = ...
    subscribed_topic_names: list[str] = ...

class ShareGroupMetadataKey(Struct):  # type 11, versions 0, never flexible
    group_id: str = ...

class ShareGroupMetadataValue(Struct):  # type 11, versions 0, flexible from 0
    epoch: int = ...  # int32
    metadata_hash: int = ...  # int64

class ShareGroupTargetAssignmentMetadataKey(Struct):  # type 12, versions 0, never flexible
    group_id: str = ...

class ShareGroupTargetAssignmentMetadataValue(Struct):  # type 12, versions 0, flexible from 0
    assignment_epoch: int = ...  # int32
    assignment_timestamp: int = ...  # int64, tag 0

class ShareGroupTargetAssignmentMemberKey(Struct):  # type 13, versions 0, never flexible
    group_id: str = ...
    member_id: str = ...

class ShareGroupTargetAssignmentMemberValue(Struct):  # type 13, versions 0, flexible from 0
    class TopicPartition(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[int] = ...  # int32

    topic_partitions: list[ShareGroupTargetAssignmentMemberValue.TopicPartition] = ...

class ShareGroupCurrentMemberAssignmentKey(Struct):  # type 14, versions 0, never flexible
    group_id: str = ...
    member_id: str = ...

class ShareGroupCurrentMemberAssignmentValue(Struct):  # type 14, versions 0, flexible from 0
    class TopicPartitions(Struct):
        topic_id: bytes = ...  # uuid
        partitions: list[int] = ...  # int32

    member_epoch: int = ...  # int32
    previous_member_epoch: int = ...  # int32
    state: int = ...  # int8
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValue.TopicPartitions] = ...

class ShareGroupStatePartitionMetadataKey(Struct):  # type 15, versions 0, never flexible
    group_id: str = ...

class ShareGroupStatePartitionMetadataValue(Struct):  # type 15, versions 0, flexible from 0
    class TopicPartitionsInfo(Struct):
        topic_id: bytes = ...  # uuid
        topic_name: str = ...
        partitions: list[int] = ...  # int32

    class TopicInfo(Struct):
        topic_id: bytes = ...  # uuid
        topic_name: str = ...

    initializing_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ...
    initialized_topics: list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo] = ...
    deleting_topics: list[ShareGroupStatePartitionMetadataValue.TopicInfo] = ...

class ConsumerGroupRegularExpressionKey(Struct):  # type 16, versions 0, never flexible
    group_id: str = ...
    regular_expression: str = ...

class ConsumerGroupRegularExpressionValue(Struct):  # type 16, versions 0, flexible from 0
    topics: list[str] = ...
    version: int = ...  # int64
    timestamp: int = ...  # int64

class StreamsGroupMetadataKey(Struct):  # type 17, versions 0, never flexible
    group_id: str = ...

class StreamsGroupMetadataValue(Struct):  # type 17, versions 0, flexible from 0
    class LastAssignmentConfig(Struct):
        key: str = ...
        value: str = ...

    epoch: int = ...  # int32
    metadata_hash: int = ...  # int64
    validated_topology_epoch: int = ...  # int32, tag 0, = -1
    last_assignment_configs: list[StreamsGroupMetadataValue.LastAssignmentConfig] | None = ...  # tag 1, = []

class StreamsGroupMemberMetadataKey(Struct):  # type 19, versions 0, never flexible
    group_id: str = ...
    member_id: str = ...

class StreamsGroupMemberMetadataValue(Struct):  # type 19, versions 0, flexible from 0
    class Endpoint(Struct):
        host: str = ...
        port: int = ...  # uint16

    class KeyValue(Struct):
        key: str = ...
        value: str = ...

    instance_id: str | None = ...  # = ''
    rack_id: str | None = ...  # = ''
    client_id: str = ...
    client_host: str = ...
    rebalance_timeout_ms: int = ...  # int32, = -1
    topology_epoch: int = ...  # int32
    process_id: str = ...
    user_endpoint: StreamsGroupMemberMetadataValue.Endpoint | None = ...  # = None
    client_tags: list[StreamsGroupMemberMetadataValue.KeyValue] = ...

class StreamsGroupTargetAssignmentMetadataKey(Struct):  # type 20, versions 0, never flexible
    group_id: str = ...

class StreamsGroupTargetAssignmentMetadataValue(Struct):  # type 20, versions 0, flexible from 0
    assignment_epoch: int = ...  # int32
    assignment_timestamp: int = ...  # int64, tag 0

class StreamsGroupTargetAssignmentMemberKey(Struct):  # type 21, versions 0, never flexible
    group_id: str = ...
    member_id: str = ...

class StreamsGroupTargetAssignmentMemberValue(Struct):  # type 21, versions 0, flexible from 0
    class TaskIds(Struct):
        subtopology_id: str = ...
        partitions: list[int] = ...  # int32

    active_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValue.TaskIds] = ...

class StreamsGroupCurrentMemberAssignmentKey(Struct):  # type 22, versions 0, never flexible
    group_id: str = ...
    member_id: str = ...

class StreamsGroupCurrentMemberAssignmentValue(Struct):  # type 22, versions 0, flexible from 0
    class TaskIds(Struct):
        subtopology_id: str = ...
        partitions: list[int] = ...  # int32
        assignment_epochs: list[int] | None = ...  # int32, tag 0, = []

    member_epoch: int = ...  # int32
    previous_member_epoch: int = ...  # int32
    state: int = ...  # int8
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds] = ...

class StreamsGroupTopologyKey(Struct):  # type 23, versions 0, never flexible
    group_id: str = ...

class StreamsGroupTopologyValue(Struct):  # type 23, versions 0, flexible from 0
    class Subtopology(Struct):
        subtopology_id: str = ...
        source_topics: list[str] = ...
        source_topic_regex: list[str] = ...
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = ...
        repartition_sink_topics: list[str] = ...
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = ...
        copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = ...

    class TopicInfo(Struct):
        name: str = ...
        partitions: int = ...  # int32
        replication_factor: int = ...  # int16
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = ...

    class TopicConfig(Struct):
        key: str = ...
        value: str = ...

    class CopartitionGroup(Struct):
        source_topics: list[int] = ...  # int16
        source_topic_regex: list[int] = ...  # int16
        repartition_source_topics: list[int] = ...  # int16

    epoch: int = ...  # int32
    subtopologies: list[StreamsGroupTopologyValue.Subtopology] = ...

class TransactionLogKey(Struct):  # type 0, versions 0, never flexible
    transactional_id: str = ...

class TransactionLogValue(Struct):  # type 0, versions 0-1, flexible from 1
    class PartitionsSchema(Struct):
        topic: str = ...
        partition_ids: list[int] = ...  # int32

    producer_id: int = ...  # int64
    previous_producer_id: int = ...  # int64, 1+, tag 0, = -1
    next_producer_id: int = ...  # int64, 1+, tag 1, = -1
    producer_epoch: int = ...  # int16
    next_producer_epoch: int = ...  # int16, 1+, tag 3, = -1
    transaction_timeout_ms: int = ...  # int32
    transaction_status: int = ...  # int8
    transaction_partitions: list[TransactionLogValue.PartitionsSchema] | None = ...  # = []
    transaction_last_update_timestamp_ms: int = ...  # int64
    transaction_start_timestamp_ms: int = ...  # int64
    client_transaction_version: int = ...  # int16, 1+, tag 2

class ShareSnapshotKey(Struct):  # type 0, versions 0, never flexible
    group_id: str = ...
    topic_id: bytes = ...  # uuid
    partition: int = ...  # int32

class ShareSnapshotValue(Struct):  # type 0, versions 0, flexible from 0
    class StateBatch(Struct):
        first_offset: int = ...  # int64
        last_offset: int = ...  # int64
        delivery_state: int = ...  # int8
        delivery_count: int = ...  # int16

    snapshot_epoch: int = ...  # int32
    state_epoch: int = ...  # int32
    leader_epoch: int = ...  # int32
    start_offset: int = ...  # int64
    delivery_complete_count: int = ...  # int32, tag 0, = -1
    create_timestamp: int = ...  # int64
    write_timestamp: int = ...  # int64
    state_batches: list[ShareSnapshotValue.StateBatch] = ...

class ShareUpdateKey(Struct):  # type 1, versions 0, never flexible
    group_id: str = ...
    topic_id: bytes = ...  # uuid
    partition: int = ...  # int32

class ShareUpdateValue(Struct):  # type 1, versions 0, flexible from 0
    class StateBatch(Struct):
        first_offset: int = ...  # int64
        last_offset: int = ...  # int64
        delivery_state: int = ...  # int8
        delivery_count: int = ...  # int16

    snapshot_epoch: int = ...  # int32
    leader_epoch: int = ...  # int32
    start_offset: int = ...  # int64
    delivery_complete_count: int = ...  # int32, tag 0, = -1
    state_batches: list[ShareUpdateValue.StateBatch] = ...

class ConsumerProtocolSubscription(Struct):  # versions 0-3, never flexible
    class TopicPartition(Struct):
        topic: str = ...
        partitions: list[int] = ...  # int32

    topics: list[str] = ...
    user_data: bytes | None = ...  # = None
    owned_partitions: list[ConsumerProtocolSubscription.TopicPartition] = ...  # 1+
    generation_id: int = ...  # int32, 2+, = -1
    rack_id: str | None = ...  # 3+, = None

class ConsumerProtocolAssignment(Struct):  # versions 0-3, never flexible
    class TopicPartition(Struct):
        topic: str = ...
        partitions: list[int] = ...  # int32

    assigned_partitions: list[ConsumerProtocolAssignment.TopicPartition] = ...
    user_data: bytes | None = ...  # = None

class DefaultPrincipalData(Struct):  # versions 0, flexible from 0
    type: str = ...
    name: str = ...
    token_authenticated: bool = ...

class RequestHeader(Struct):  # versions 1-2, flexible from 2
    request_api_key: int = ...  # int16
    request_api_version: int = ...  # int16
    correlation_id: int = ...  # int32
    client_id: str | None = ...  # = ''

class ResponseHeader(Struct):  # versions 0-1, flexible from 1
    correlation_id: int = ...  # int32

class RemoteLogSegmentMetadataRecord(Struct):  # type 0, versions 0, flexible from 0
    class RemoteLogSegmentIdEntry(Struct):
        topic_id_partition: RemoteLogSegmentMetadataRecord.TopicIdPartitionEntry = ...
        id: bytes = ...  # uuid

    class TopicIdPartitionEntry(Struct):
        name: str = ...
        id: bytes = ...  # uuid
        partition: int = ...  # int32

    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: int = ...  # int32
        offset: int = ...  # int64

    remote_log_segment_id: RemoteLogSegmentMetadataRecord.RemoteLogSegmentIdEntry = ...
    start_offset: int = ...  # int64
    end_offset: int = ...  # int64
    broker_id: int = ...  # int32
    max_timestamp_ms: int = ...  # int64
    event_timestamp_ms: int = ...  # int64
    segment_leader_epochs: list[RemoteLogSegmentMetadataRecord.SegmentLeaderEpochEntry] = ...
    segment_size_in_bytes: int = ...  # int32
    custom_metadata: bytes | None = ...  # = None
    remote_log_segment_state: int = ...  # int8
    txn_index_empty: bool = ...  # tag 0

class RemoteLogSegmentMetadataUpdateRecord(Struct):  # type 1, versions 0, flexible from 0
    class RemoteLogSegmentIdEntry(Struct):
        topic_id_partition: RemoteLogSegmentMetadataUpdateRecord.TopicIdPartitionEntry = ...
        id: bytes = ...  # uuid

    class TopicIdPartitionEntry(Struct):
        name: str = ...
        id: bytes = ...  # uuid
        partition: int = ...  # int32

    remote_log_segment_id: RemoteLogSegmentMetadataUpdateRecord.RemoteLogSegmentIdEntry = ...
    broker_id: int = ...  # int32
    event_timestamp_ms: int = ...  # int64
    custom_metadata: bytes | None = ...  # = None
    remote_log_segment_state: int = ...  # int8

class RemotePartitionDeleteMetadataRecord(Struct):  # type 2, versions 0, flexible from 0
    class TopicIdPartitionEntry(Struct):
        name: str = ...
        id: bytes = ...  # uuid
        partition: int = ...  # int32

    topic_id_partition: RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry = ...
    broker_id: int = ...  # int32
    event_timestamp_ms: int = ...  # int64
    remote_partition_delete_state: int = ...  # int8

class RemoteLogSegmentMetadataSnapshotRecord(Struct):  # type 3, versions 0, flexible from 0
    class SegmentLeaderEpochEntry(Struct):
        leader_epoch: int = ...  # int32
        offset: int = ...  # int64

    segment_id: bytes = ...  # uuid
    start_offset: int = ...  # int64
    end_offset: int = ...  # int64
    broker_id: int = ...  # int32
    max_timestamp_ms: int = ...  # int64
    event_timestamp_ms: int = ...  # int64
    segment_leader_epochs: list[RemoteLogSegmentMetadataSnapshotRecord.SegmentLeaderEpochEntry] = ...
    segment_size_in_bytes: int = ...  # int32
    custom_metadata: bytes | None = ...  # = None
    remote_log_segment_state: int = ...  # int8
    txn_index_empty: bool = ...  # tag 0
