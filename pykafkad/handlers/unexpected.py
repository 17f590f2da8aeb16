"""The answer to a request that met an unexpected error: the API's own response, as Kafka gives it.

The code stands wherever a response has a field for it: at the top, and in a row for each thing that the request names.
The table below describes these rows in one line per API. An API that is not in it has one code for the whole.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.table import Api
    from pykafkad.wire import notation
    from pykafkad.wire.messages import Struct

# "response list=request list fields / the same for the lists in these rows", with these forms:
# * The request list is left out if it has the same name. `a.b` is the b of every a; `a+b` is both, each value once.
# * The fields are those that a row copies from the request, also as `response field=request field`. `name=` stands for
#   a request list of plain values, each of which is the name. `name!` is empty where the request has a null.
# * A number in front is the last version with such rows, if later versions leave the list empty.
ROWS: dict[str, tuple[str, ...]] = {
    "Produce": ("responses=topic_data name topic_id / partition_responses=partition_data index",),
    "Fetch": ("12 responses=topics topic / partitions partition_index=partition",),
    "ListOffsets": ("topics name / partitions partition_index",),
    "Metadata": ("topics name! topic_id",),
    "OffsetCommit": ("topics name topic_id / partitions partition_index",),
    "OffsetFetch": ("1 topics name / partitions=partition_indexes partition_index=", "groups group_id"),
    "FindCoordinator": ("coordinators=coordinator_keys key=",),
    "DescribeGroups": ("groups group_id=",),
    "CreateTopics": ("topics name",),
    "DeleteTopics": ("responses=topics name topic_id", "responses=topic_names name="),
    "DeleteRecords": ("topics name / partitions partition_index",),
    "OffsetForLeaderEpoch": ("topics topic / partitions partition",),
    "AddPartitionsToTxn": (
        "results_by_topic_v3_and_below=v3_and_below_topics name / results_by_partition=partitions partition_index=",
    ),
    "WriteTxnMarkers": ("markers producer_id / topics name / partitions=partition_indexes partition_index=",),
    "TxnOffsetCommit": ("topics name topic_id / partitions partition_index",),
    "CreateAcls": ("results=creations",),
    "DeleteAcls": ("filter_results=filters",),
    "DescribeConfigs": ("results=resources resource_type resource_name",),
    "AlterConfigs": ("responses=resources resource_type resource_name",),
    "AlterReplicaLogDirs": ("results=dirs.topics topic_name=name / partitions partition_index=",),
    "CreatePartitions": ("results=topics name",),
    "DeleteGroups": ("results=groups_names group_id=",),
    "ElectLeaders": ("replica_election_results=topic_partitions topic / partition_result=partitions partition_id=",),
    "IncrementalAlterConfigs": ("responses=resources resource_type resource_name",),
    "AlterPartitionReassignments": ("responses=topics name / partitions partition_index",),
    "ListPartitionReassignments": ("topics name / partitions=partition_indexes partition_index=",),
    "AlterClientQuotas": ("entries / entity entity_type entity_name",),
    "DescribeUserScramCredentials": ("results=users",),
    "AlterUserScramCredentials": ("results=deletions+upsertions user=name",),
    "DescribeProducers": ("topics name / partitions=partition_indexes partition_index=",),
    "DescribeTransactions": ("transaction_states=transactional_ids transactional_id=",),
    "ConsumerGroupDescribe": ("groups=group_ids group_id=",),
    "DescribeTopicPartitions": ("topics name",),
    "ShareGroupDescribe": ("groups=group_ids group_id=",),
    "InitializeShareGroupState": ("results=topics topic_id / partitions partition",),
    "ReadShareGroupState": ("results=topics topic_id / partitions partition",),
    "WriteShareGroupState": ("results=topics topic_id / partitions partition",),
    "DeleteShareGroupState": ("results=topics topic_id / partitions partition",),
    "ReadShareGroupStateSummary": ("results=topics topic_id / partitions partition",),
    "StreamsGroupDescribe": ("groups=group_ids group_id=",),
    "DescribeShareGroupOffsets": ("groups group_id",),
}
_SAME = ("session_id",)
# Values that are not the schema's defaults, by API.
_VALUES: dict[str, dict[str, object]] = {
    "Produce": {"base_offset": -1},
    "Fetch": {"high_watermark": -1},
    "OffsetFetch": {"committed_offset": -1},
    "FindCoordinator": {"node_id": -1, "port": -1},
    "JoinGroup": {"protocol_name": None},
    "DeleteRecords": {"low_watermark": -1},
    "InitProducerId": {"producer_epoch": -1},
    "CreateDelegationToken": {
        "principal_type": "User",
        "principal_name": "ANONYMOUS",
        "token_requester_principal_type": "User",
        "token_requester_principal_name": "ANONYMOUS",
        "issue_timestamp_ms": -1,
        "expiry_timestamp_ms": -1,
        "max_timestamp_ms": -1,
    },
    "DescribeClientQuotas": {"entries": None},
}
# Kafka does not tell the cause, and in most responses not even the general text of the code.
_WITH_TEXT = frozenset(
    (
        "FindCoordinator",
        "DescribeConfigs",
        "AlterClientQuotas",
        "DescribeQuorum",
        "UnregisterBroker",
        "AddRaftVoter",
        "RemoveRaftVoter",
        "ReadShareGroupState",
        "ReadShareGroupStateSummary",
        "WriteShareGroupState",
        "DescribeShareGroupOffsets",
        "AlterShareGroupOffsets",
        "DeleteShareGroupOffsets",
    )
)


def answer(api: Api, version: int, request: Struct, code: int, *, with_text: bool | None = None) -> Struct | None:
    """The response with error `code`.

    It has the code's text where Kafka gives it, unless `with_text` decides. None for a request without an answer
    (Produce with acks=0), whose connection Kafka closes.
    """
    if getattr(request, "acks", None) == 0:
        return None
    cls = messages.response_class(api.key)
    text = errors.message(code) if (api.name in _WITH_TEXT if with_text is None else with_text) else None
    codes = dict.fromkeys(("error_code", "partition_error_code"), code)
    making = _Making(cls, version, {**codes, "error_message": text, **_VALUES.get(api.name, {})})
    fields = messages.schema(cls).root.fields
    response = making.row(cls, fields)
    for name in _SAME:
        if hasattr(request, name) and hasattr(response, name):
            setattr(response, name, getattr(request, name))
    for line in ROWS.get(api.name, ()):
        making.rows(line.split(" / "), fields, response, request)
    return response


class _Making:
    """Makes the rows of one response. `values` are the values of each row, for fields that the version has."""

    __slots__ = ("_cls", "_values", "_version")

    def __init__(self, cls: type, version: int, values: dict[str, object]) -> None:
        self._cls = cls
        self._version = version
        self._values = values

    def row(self, cls: type[Struct], fields: list[notation.Field]) -> Struct:
        row = cls()
        for field in fields:
            if field.name in self._values and field.alive(self._version):
                value = self._values[field.name]
                if value is not None or field.nullable(self._version):
                    setattr(row, field.name, value)
        return row

    def rows(self, levels: list[str], fields: list[notation.Field], into: object, asked: object) -> None:
        """Fill the list of `into` that the first of `levels` names, with a row for each element of `asked`."""
        words = levels[0].split()
        is_over = words[0].isdigit() and self._version > int(words.pop(0))
        name, _, source = words.pop(0).partition("=")
        field = next(field for field in fields if field.name == name)
        if is_over or not field.alive(self._version):
            return
        struct = field.struct
        assert struct is not None
        for each in _asked(asked, source or name):
            row = self.row(getattr(self._cls, struct.name), struct.fields)
            for word in words:
                target, is_other, taken = word.rstrip("!").partition("=")
                value = each if is_other and not taken else getattr(each, taken or target)
                setattr(row, target, "" if value is None and word.endswith("!") else value)
            if levels[1:]:
                self.rows(levels[1:], struct.fields, row, each)
            getattr(into, name).append(row)


def _asked(asked: object, source: str) -> list[object]:
    if "+" in source:
        first, second = source.split("+")
        found = {each.name: each for each in getattr(asked, first) + getattr(asked, second)}
        return [found[name] for name in sorted(found)]
    outer, _, inner = source.partition(".")
    rows = getattr(asked, outer) or []
    return [each for row in rows for each in getattr(row, inner)] if inner else rows
