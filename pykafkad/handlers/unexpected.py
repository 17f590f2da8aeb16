"""The answer to a request that met an unexpected error: every API's own, as Kafka gives it.

The code stands wherever an answer has a place for it: beside the whole, and in a row for each thing that was asked for.
Which rows those are is said below, in one line per API; an API that is not there has one code for the whole."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.handlers.table import Api
    from pykafkad.wire import notation
    from pykafkad.wire.messages import Struct

# The answer's list = the request's (left out: of the same name; `a.b`: the b of every a; `a+b`: both, each value once),
# then what a row takes over, written alike (`name=`: the request's row is the value; `name!`: empty for a null). After
# a slash the same, for the lists in these rows. In front of it the last version whose answer has these rows, if later
# ones have the list and do without.
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
    "TxnOffsetCommit": ("topics name / partitions partition_index",),
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
# What is not the schema's default, by API.
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
# Kafka keeps what stumbled to itself, and in most answers also its general sentence for that.
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
    """The answer with error `code`, and the code's text where Kafka gives it unless the caller says whether
    (`with_text`); None for a request that wants none (Produce with acks=0), whose connection Kafka closes."""
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
    """Makes rows of one answer; `values` are what each has, as far as the version knows them."""

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
        """Fill the list of `into` that the first of `levels` names with a row for each thing that was `asked`."""
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
