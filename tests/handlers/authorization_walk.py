"""Requests for the tests of authorization: for every API, version and rule, about resources that exist.

A case is one form of a request: values of some fields, and the rules of the API that apply to it. Every other field has
a value that is valid anywhere; a list has one element.
"""

from __future__ import annotations

from collections.abc import Iterator

from pykafkad import errors
from pykafkad.handlers import table
from pykafkad.handlers.authorization import HIDDEN, OTHERWISE, Rule
from pykafkad.wire import messages, notation
from pykafkad.wire.batch import build_batch
from tests.wire.values import Values

TOPIC, GROUP, TRANSACTIONAL_ID, NEW_TOPIC = "walked-topic", "walked-group", "walked-id", "walked-new-topic"
SHARE_GROUP = "walked-share-group"
_NO_ID = bytes(16)

# Values by API and field path, or by field path alone where all APIs have the same.
EVERYWHERE: dict[str, object] = {
    "timeout_ms": 5000,
    "replica_id": -1,
    "replica_state.replica_id": -1,
    "replica_state.replica_epoch": -1,
    "producer_id": -1,
    "producer_epoch": -1,
    "topics.partitions.timestamp": -1,
    "include_authorized_operations": False,
    "include_cluster_authorized_operations": False,
    "include_topic_authorized_operations": False,
    "validate_only": False,
    "transactional_id": TRANSACTIONAL_ID,
    "voter_directory_id": b"d" * 16,
}
OF_A_TRANSACTION = bytes(
    build_batch([(None, b"x")], timestamp_ms=1, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
)
VALUES: dict[str, dict[str, object]] = {
    "Produce": {
        "acks": -1,
        "topic_data.partition_data.records": bytes(build_batch([(None, b"x")], timestamp_ms=1)),
        "transactional_id": None,
    },
    "Fetch": {
        "max_wait_ms": 0,
        "max_bytes": 1 << 20,
        "session_epoch": -1,
        "cluster_id": None,
        "forgotten_topics_data": [],
        "topics.partitions.last_fetched_epoch": -1,
        "topics.partitions.current_leader_epoch": -1,
        "topics.partitions.log_start_offset": -1,
        "topics.partitions.partition_max_bytes": 1 << 20,
        "topics.partitions.replica_directory_id": _NO_ID,
    },
    "ListOffsets": {"topics.partitions.current_leader_epoch": -1},
    "Metadata": {"allow_auto_topic_creation": False},
    "JoinGroup": {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "group_instance_id": None,
    },
    "OffsetCommit": {
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "group_instance_id": None,
        "retention_time_ms": -1,
    },
    "OffsetFetch": {"groups.member_id": None, "groups.member_epoch": -1, "require_stable": False},
    "ListGroups": {"states_filter": [], "types_filter": []},
    "CreateTopics": {
        "topics.num_partitions": 1,
        "topics.replication_factor": 1,
        "topics.assignments": [],
        "topics.configs": [],
        "topics.name": NEW_TOPIC,
    },
    "CreatePartitions": {"topics.count": 2, "topics.assignments": None},
    "DescribeAcls": {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1},
    "CreateAcls": {
        "creations.resource_type": 2,
        "creations.resource_pattern_type": 3,
        "creations.operation": 3,
        "creations.permission_type": 3,
        "creations.principal": "User:x",
        "creations.host": "*",
        "creations.resource_name": TOPIC,
    },
    "DeleteAcls": {
        "filters.resource_type_filter": 2,
        "filters.pattern_type_filter": 3,
        "filters.operation": 1,
        "filters.permission_type": 1,
    },
    "DescribeConfigs": {
        "resources.configuration_keys": None,
        "include_synonyms": False,
        "include_documentation": False,
    },
    "AlterConfigs": {"resources.configs": []},
    "IncrementalAlterConfigs": {"resources.configs": []},
    "ElectLeaders": {"topic_partitions.topic": TOPIC},
    "ListPartitionReassignments": {"topics.name": TOPIC},
    "AlterPartitionReassignments": {"topics.name": TOPIC},
    "DescribeQuorum": {"topics.topic_name": "__cluster_metadata"},
    "DescribeClientQuotas": {"components": [], "strict": False},
    "AlterClientQuotas": {
        "entries.entity.entity_type": "user",
        "entries.entity.entity_name": "x",
        "entries.ops.key": "producer_byte_rate",
        "entries.ops.value": 1000.0,
    },
    "UnregisterBroker": {"broker_id": 77},
    "DescribeCluster": {
        "endpoint_type": 1,
        "include_cluster_authorized_operations": True,
        "include_fenced_brokers": False,
    },
    "UpdateFeatures": {"feature_updates": []},
    "ListTransactions": {
        "state_filters": [],
        "producer_id_filters": [],
        "duration_filter": -1,
        "transactional_id_pattern": None,
    },
    "DescribeLogDirs": {"topics": None},
    "AlterReplicaLogDirs": {"dirs": []},
    "ListConfigResources": {"resource_types": []},
    "DescribeTopicPartitions": {"cursor": None, "response_partition_limit": 10},
    "OffsetForLeaderEpoch": {"replica_id": -2, "topics.partitions.current_leader_epoch": -1},
    "AddRaftVoter": {"cluster_id": None, "listeners": []},
    "RemoveRaftVoter": {"cluster_id": None},
    "ShareFetch": {
        "member_id": "AAAAAAAAAAAAAAAAAAAAAQ",
        "share_session_epoch": 0,
        "is_renew_ack": False,
        "max_bytes": 1 << 20,
        "max_records": 1,
        "topics.partitions.acknowledgement_batches": [],
        "forgotten_topics_data": [],
        "group_id": SHARE_GROUP,
    },
    "ConsumerGroupHeartbeat": {
        "member_epoch": 0,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 10_000,
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": [],
    },
    "AlterShareGroupOffsets": {"group_id": SHARE_GROUP},
    "DeleteShareGroupOffsets": {"group_id": SHARE_GROUP},
    "LeaveGroup": {"member_id": "", "members.group_instance_id": None},
    "GetTelemetrySubscriptions": {"client_instance_id": _NO_ID},
}

# Forms of requests to APIs of which not all rules apply to every request: values, the numbers of the rules that apply,
# and the versions with this form (None: all).
_SETTINGS = (
    ({"resources.resource_type": 2, "resources.resource_name": TOPIC}, (0,), None),
    ({"resources.resource_type": 32, "resources.resource_name": GROUP}, (1,), None),
    ({"resources.resource_type": 4, "resources.resource_name": "1"}, (2,), None),
    ({"resources.resource_type": 16, "resources.resource_name": "subscription"}, (2,), None),
)
CASES: dict[str, tuple[tuple[dict[str, object], tuple[int, ...], tuple[int, int] | None], ...]] = {
    "Produce": (
        ({}, (0,), None),
        (
            {"transactional_id": TRANSACTIONAL_ID, "topic_data.partition_data.records": OF_A_TRANSACTION},
            (0, 1),
            None,
        ),
    ),
    "Fetch": (({}, (0,), None), ({"replica_id": 1, "replica_state.replica_id": 1}, (1,), None)),
    "Metadata": (
        ({"topics.topic_id": _NO_ID}, (0,), None),
        ({"topics.name": None}, (0,), (12, 13)),
        ({"topics": None}, (1,), (1, 13)),
        ({"topics.topic_id": _NO_ID, "topics.name": NEW_TOPIC, "allow_auto_topic_creation": True}, (0, 2), (4, 13)),
        ({"topics": [], "include_cluster_authorized_operations": True}, (3,), (8, 10)),
    ),
    "OffsetFetch": (({}, (0, 1), None), ({"topics": None, "groups.topics": None}, (0, 2), (2, 10))),
    "FindCoordinator": (
        ({"key_type": 0, "key": GROUP, "coordinator_keys": [GROUP]}, (0,), None),
        ({"key_type": 1, "key": TRANSACTIONAL_ID, "coordinator_keys": [TRANSACTIONAL_ID]}, (1,), (1, 6)),
        ({"key_type": 2, "coordinator_keys": [f"{GROUP}:AAAAAAAAAAAAAAAAAAAAAQ:0"]}, (2,), (6, 6)),
    ),
    "DeleteTopics": (
        ({"topics.topic_id": _NO_ID}, (0, 1), None),
        ({"topics.name": None}, (0,), (6, 6)),
    ),
    "InitProducerId": (({"transactional_id": None}, (0,), None), ({}, (1,), None)),
    "AddPartitionsToTxn": (({}, (0, 1), (0, 3)), ({"transactions.transactional_id": TRANSACTIONAL_ID}, (2,), (4, 5))),
    "DescribeConfigs": (*_SETTINGS, ({"resources.resource_type": 8, "resources.resource_name": "1"}, (2,), None)),
    "AlterConfigs": _SETTINGS,
    "IncrementalAlterConfigs": (
        *_SETTINGS,
        ({"resources.resource_type": 8, "resources.resource_name": "1"}, (2,), None),
    ),
    "DescribeTransactions": (({}, (0,), None),),
    "DescribeTopicPartitions": (({}, (0,), None), ({"topics": []}, (1,), None)),
    "ConsumerGroupDescribe": (({}, (0,), None),),
    "ShareGroupDescribe": (({}, (0,), None),),
    "ShareAcknowledge": (({}, (0,), None),),
    "DeleteShareGroupOffsets": (({}, (0,), None),),
    "StreamsGroupDescribe": (({}, (0,), None),),
    "StreamsGroupHeartbeat": (({}, (0, 1), None),),
}

# Rules that no request to this broker can reach yet, with the reason.
UNREACHABLE = {
    "ConsumerGroupDescribe": "the group of the walk has no members with topics; the handler's own test has",
    "CreateDelegationToken": "no connection is authenticated, so every caller is refused before",
    "DescribeDelegationToken": "no connection is authenticated, so every caller is refused before",
    "DescribeTransactions": "the walk has no transaction; the handler's own test has one",
    "DeleteShareGroupOffsets": "topics are looked at in a group that exists; there is none",
    "ShareAcknowledge": "topics are looked at within an open session only",
    "ShareGroupDescribe": "there is no share group with members; the handler's own test has one",
    "StreamsGroupDescribe": "there is no streams group; the handler's own test has one",
    "StreamsGroupHeartbeat": "no internal topic is missing; the handler's own test has one",
    "ListTransactions": "the walk has no transaction; the handler's own test has some",
}


class _Request(Values):
    """Builds one request with the values of the tables above."""

    def __init__(self, row: table.Api, topic_id: bytes, values: dict[str, object]) -> None:
        super().__init__(row.name)
        self._places: list[str] = []
        self._values = {**EVERYWHERE, **VALUES.get(row.name, {}), **values}
        self._topic_id = topic_id
        self._names = {
            place: {"Topic": TOPIC, "Group": GROUP, "TransactionalId": TRANSACTIONAL_ID}.get(rule.resource_type, "x")
            for rule in row.authorization
            for place in rule.names
        }

    def _value(self, field: notation.Field, classes: dict[str, type], version: int) -> object:
        self._places.append(field.name)
        try:
            place = ".".join(self._places)
            if place in self._values and field.type != "uuid":
                return self._values[place]
            if field.is_array:
                return [self._element(field, classes, version)]
            return self._element(field, classes, version)
        finally:
            self._places.pop()

    def scalar(self, field: notation.Field) -> object:
        """A value that is valid in most fields."""
        place = ".".join(self._places)
        if field.type == "uuid":
            return self._values.get(place, self._topic_id if place in self._names else _NO_ID)
        if field.type == "string":
            return self._names.get(place, "x")
        return {"bool": True, "bytes": b"", "records": b"", "float64": 0.0}.get(field.type, 0)


def cases(row: table.Api, *, every: bool = True) -> Iterator[tuple[int, dict[str, object], tuple[Rule, ...]]]:
    """(version, values, the rules that apply) for every form of request to the API; without `every` only in its first
    and last version."""
    default = ({}, range(len(row.authorization)), None)
    for values, numbers, versions in CASES.get(row.name, (default,)):
        low, high = versions or (row.min_version, row.max_version)
        for version in range(low, high + 1) if every else sorted({low, high}):
            yield version, values, tuple(row.authorization[number] for number in numbers)


def request(row: table.Api, version: int, values: dict[str, object], topic_id: bytes) -> object:
    """The request of one case, about a topic of that id."""
    return _Request(row, topic_id, values).message(messages.request_class(row.key), version)


def codes(value: object) -> set[int]:
    """The error codes of an answer."""
    found = set()
    for name in value._root.__slots__:
        inner = getattr(value, name)
        if name.endswith("error_code"):
            found.add(inner)
        for each in inner if isinstance(inner, list) else ():
            if hasattr(each, "_root"):
                found |= codes(each)
    return found - {errors.NONE}


def pairs(rules: tuple[Rule, ...]) -> set[tuple[str, str]]:
    """The operation and resource type of each rule."""
    return {(rule.operation, rule.resource_type) for rule in rules}


def is_refused(answer: object, rule: Rule) -> bool:
    """Whether an answer shows the refusal of the case's resource as the rule says."""
    if rule.answer == HIDDEN:
        return not codes(answer) and not any(name in repr(answer) for name in (TOPIC, TRANSACTIONAL_ID))
    if rule.answer == OTHERWISE:
        return codes(answer) <= {rule.error}
    # Up to version 2 DescribeLogDirs has no error for the whole answer; its answer is empty.
    return codes(answer) == {rule.error} or (not codes(answer) and getattr(answer, "results", None) == [])
