"""The differences between the answers of pykafkad and of Kafka 4.3.1 to a bad field that are allowed, with their
reasons.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from compat_tests.bad_fields.run import Answer


class Difference(NamedTuple):
    """One allowed difference: patterns for the API, field, change and path in the answer; and the reason.

    A row that no difference needs any more fails the test, unless chance decides about it.
    """

    api: str
    field: str
    what: str
    path: str
    reason: str
    is_chance: bool = False


_OVERSIZED = (
    "Kafka quotes the text in a message that its own encoder then refuses, and says UNKNOWN_SERVER_ERROR or "
    "nothing; we cut the message."
)
EXCEPTION = "Kafka meets an exception of its own, and says UNKNOWN_SERVER_ERROR or nothing at all."
_OWN_ADDRESSES = "The two brokers have different addresses and directories, and Kafka has a controller's listener."

ALLOWED = (
    Difference(
        "DescribeTopicPartitions",
        "cursor.partition_index",
        "2147483647",
        "next_cursor*",
        "Kafka adds the limit to it beyond the end of an int32.",
    ),
    *(
        Difference("DescribeConfigs", "*", "*", f"results.0.configs.{name}*", _OWN_ADDRESSES)
        for name in (
            "advertised.listeners",
            "controller.quorum.bootstrap.servers",
            "inter.broker.listener.name",
            "listener.security.protocol.map",
            "listeners",
            "log.dirs",
            "log.dir",
        )
    ),
    Difference("*", "*", "longest", "*", _OVERSIZED),
    Difference(
        "Produce",
        "*",
        "*twice",
        "*",
        "pykafkad appends and answers every row. No client sends two; dropping acknowledged records would be worse.",
    ),
    Difference("Produce", "topic_data.partition_data.records", "*", "", EXCEPTION),
    Difference(
        "Fetch",
        "session_id",
        "*2147483*",
        "*",
        f"{EXCEPTION} Its cache of sessions is divided by id, and these belong to none.",
    ),
    Difference("JoinGroup", "protocols", "*twice", "*", EXCEPTION),
    Difference(
        "JoinGroup",
        "group_id",
        "*",
        "generation_id",
        "The group is the same for all versions, and how often it was rebalanced depends on when its members were "
        "given up.",
        is_chance=True,
    ),
    Difference(
        "JoinGroup",
        "protocols.metadata",
        "a hundred bytes",
        "*",
        f"{EXCEPTION} Only it reads the metadata of classic members, and these bytes announce a list of 33 million "
        "topics.",
    ),
    Difference("AlterConfigs", "resources", "*twice", "", EXCEPTION),
    *(
        Difference(
            "DescribeQuorum",
            "*",
            "*",
            f"*.{name}",
            "How often Kafka's controller was elected, and how many records it has written.",
        )
        for name in ("leader_epoch", "high_watermark", "log_end_offset")
    ),
    Difference("DescribeQuorum", "*", "*", "nodes.0.listeners*", _OWN_ADDRESSES),
    Difference(
        "GetTelemetrySubscriptions",
        "client_instance_id",
        "zero",
        "subscription_id",
        "It follows from the client's id, which the broker has drawn.",
    ),
    *(
        Difference("WriteTxnMarkers", field, what, "", "Kafka never answers where a partition is named twice.")
        for field, what in (("markers.topics", "*twice"), ("markers.topics.partition_indexes", "twice"))
    ),
    Difference("AddPartitionsToTxn", "transactions", "empty", "", "Kafka never answers."),
    Difference("ConsumerGroupHeartbeat", "member_id", "empty", "member_id", "The broker draws the member's id."),
    Difference(
        "ConsumerGroupHeartbeat",
        "instance_id",
        "*",
        "*",
        "Kafka keeps every instance id that one member has named in turn, also when the member has left.",
    ),
    *(
        Difference(
            f"{what}ShareGroupState*",
            "*",
            "*",
            "*",
            "Kafka has no switch for the coordinator of share groups; we refuse, as all else of share groups.",
        )
        for what in ("Initialize", "Read", "Write", "Delete")
    ),
)

# Variants that Kafka never answers, as API, field and change; the run does not wait long for them. (Produce without
# acks has no answer by design.)
NEVER_ANSWERED = (
    ("Produce", "acks", "0"),
    ("Produce", "topic_data.partition_data.records", "null"),
    ("Produce", "topic_data.partition_data.records", "length -2"),
    ("JoinGroup", "protocols", "*twice"),
    ("JoinGroup", "protocols.metadata", "a hundred bytes"),
    ("AlterConfigs", "resources", "*twice"),
    ("DescribeClientQuotas", "components.entity_type", "longest"),
    ("AddPartitionsToTxn", "transactions", "empty"),
    ("WriteTxnMarkers", "markers.topics", "*twice"),
    ("WriteTxnMarkers", "markers.topics.partition_indexes", "twice"),
)


def never_answered(api: str, field: str, what: str, rows: tuple[tuple[str, str, str], ...] = NEVER_ANSWERED) -> bool:
    """Whether Kafka is known not to answer this variant."""
    return any(fnmatchcase(api, row[0]) and fnmatchcase(field, row[1]) and fnmatchcase(what, row[2]) for row in rows)


def allowing(asked: Answer, path: str, rows: tuple[Difference, ...] = ALLOWED) -> list[Difference]:
    """The rows of the table that allow this difference; none if it is not allowed."""
    return [
        row
        for row in rows
        if fnmatchcase(asked.api, row.api)
        and fnmatchcase(asked.path, row.field)
        and fnmatchcase(asked.what, row.what)
        and fnmatchcase(path, row.path)
    ]
