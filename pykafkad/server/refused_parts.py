"""Which topics, partitions, groups and transactional ids a request names, and answers that refuse some of them.

`PARTS` says for an API where its partitions stand in request and answer. Such a request can be refused in part: `take`
removes what is refused from it and gives the answer's rows for that, `merge` puts them into the answer to the rest."""

from __future__ import annotations

from collections import namedtuple

from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    TopicName = Callable[[bytes], str | None]
    """The name of the topic with an id."""

Parts = namedtuple("Parts", ("topics", "topic", "partitions", "partition", "values"), defaults=({},))
Parts.__doc__ = """(name in the request, name in the answer) of the list of topics, of a topic's name, of its list of
partitions, of a partition's index; and the values of a refused partition's row that are not the schema's defaults."""


def _same(topic: str, partition: str) -> Parts:
    return Parts(("topics", "topics"), (topic, topic), ("partitions", "partitions"), (partition, partition))


PARTS: dict[str, Parts] = {
    "Produce": Parts(
        ("topic_data", "responses"),
        ("name", "name"),
        ("partition_data", "partition_responses"),
        ("index", "index"),
        {"base_offset": -1},
    ),
    "Fetch": Parts(
        ("topics", "responses"),
        ("topic", "topic"),
        ("partitions", "partitions"),
        ("partition", "partition_index"),
        # As from a broker: librdkafka can't read an answer whose records are null.
        {"high_watermark": -1, "aborted_transactions": None, "records": b""},
    ),
    "ListOffsets": _same("name", "partition_index"),
    "OffsetCommit": _same("name", "partition_index"),
    "TxnOffsetCommit": _same("name", "partition_index"),
    "DeleteRecords": _same("name", "partition_index"),
    "OffsetForLeaderEpoch": _same("topic", "partition"),
}

TOPICS: dict[str, tuple[str, ...]] = {
    "Metadata": ("topics",),
    "CreateTopics": ("topics",),
    "CreatePartitions": ("topics",),
    "DeleteTopics": ("topics", "topic_names"),
    "AddPartitionsToTxn": ("v3_and_below_topics",),
    "ShareFetch": ("topics",),
    "ShareAcknowledge": ("topics",),
    "DescribeProducers": ("topics",),
    "DescribeTopicPartitions": ("topics",),
}
"""The lists of topics of other APIs, which are refused as a whole."""

GROUPS: dict[str, tuple[str, ...]] = {
    "FindCoordinator": ("key", "coordinator_keys"),
    "OffsetFetch": ("group_id", "groups"),
    "DescribeGroups": ("groups",),
    "DeleteGroups": ("groups_names",),
    "ConsumerGroupDescribe": ("group_ids",),
    "ShareGroupDescribe": ("group_ids",),
}
"""The fields that name groups; where an API has no row it is `group_id`."""

TRANSACTIONAL_IDS: dict[str, tuple[str, ...]] = {
    "FindCoordinator": ("key", "coordinator_keys"),
    "DescribeTransactions": ("transactional_ids",),
    "AddPartitionsToTxn": ("v3_and_below_transactional_id", "transactions"),
}
"""The same of transactional ids; else `transactional_id`."""


def can_name_partitions(api: str) -> bool:
    """Whether requests of the API name partitions, so that a fault can be for one of them."""
    return api in PARTS


def can_name_topics(api: str) -> bool:
    """Whether requests of the API name topics."""
    return api in PARTS or api in TOPICS


def _texts(fields: tuple[str, ...], request: Any, inner: str) -> set[str]:
    found: set[str] = set()
    for field in fields:
        value = getattr(request, field, None)
        if isinstance(value, str):
            found.add(value)
        for each in value if isinstance(value, list) else ():
            found.add(each if isinstance(each, str) else getattr(each, inner))
    return found


def groups(api: str, request: Any) -> set[str]:
    """The groups that a request names."""
    return _texts(GROUPS.get(api, ("group_id",)), request, "group_id")


def transactional_ids(api: str, request: Any) -> set[str]:
    """The transactional ids that a request names."""
    return _texts(TRANSACTIONAL_IDS.get(api, ("transactional_id",)), request, "transactional_id")


def _name(topic: Any, field: str, topic_name: TopicName) -> str | None:
    if isinstance(topic, str):
        return topic
    name: str | None = getattr(topic, field, None)
    return name or topic_name(getattr(topic, "topic_id", b""))


def names(api: str, request: Any, topic: str | None, partition: int | None, topic_name: TopicName) -> bool:
    """Whether a request names the topic and, where it is given, that partition of it."""
    parts = PARTS.get(api)
    if parts is None:
        lists = [getattr(request, field) for field in TOPICS.get(api, ())]
        if None in lists:
            # The null of Metadata stands for all topics.
            return True
        rows = [row for each in lists for row in each]
        return any(topic is None or _name(row, "name", topic_name) == topic for row in rows)
    return any(
        (topic is None or _name(row, parts.topic[0], topic_name) == topic)
        and any(partition in (None, getattr(each, parts.partition[0])) for each in getattr(row, parts.partitions[0]))
        for row in getattr(request, parts.topics[0])
    )


def partitions(api: str, answer: Any, topic: str | None, partition: int | None, topic_name: TopicName) -> list[Any]:
    """The rows of an answer for the partitions that a fault is for."""
    parts = PARTS[api]
    return [
        each
        for row in getattr(answer, parts.topics[1])
        if topic is None or _name(row, parts.topic[1], topic_name) == topic
        for each in getattr(row, parts.partitions[1])
        if partition in (None, getattr(each, parts.partition[1]))
    ]


def take(
    api: str,
    version: int,
    request: Any,
    topic: str | None,
    partition: int | None,
    code: int,
    topic_name: TopicName,
) -> tuple[list[Any] | None, bool]:
    """The answer's rows for the partitions that are refused, which are taken out of the request, and whether anything
    is left in it. No rows (None): the API is refused as a whole."""
    parts = PARTS.get(api)
    if parts is None:
        return None, False
    response = getattr(messages, f"{api}Response")
    topic_field = next(each for each in messages.schema(response).root.fields if each.name == parts.topics[1])
    assert topic_field.struct is not None
    partition_field = next(each for each in topic_field.struct.fields if each.name == parts.partitions[1])
    assert partition_field.struct is not None
    topic_class = getattr(response, topic_field.struct.name)
    partition_class = getattr(response, partition_field.struct.name)
    refused, kept = [], []
    for row in getattr(request, parts.topics[0]):
        if topic is not None and _name(row, parts.topic[0], topic_name) != topic:
            kept.append(row)
            continue
        answered, left = [], []
        for each in getattr(row, parts.partitions[0]):
            index = getattr(each, parts.partition[0])
            if partition is not None and index != partition:
                left.append(each)
                continue
            values = {parts.partition[1]: index, "error_code": code, **parts.values}
            answered.append(partition_class(**values))
        if answered:
            refused.append(topic_class(**_identity(row, parts), **{parts.partitions[1]: answered}))
        if left:
            setattr(row, parts.partitions[0], left)
            kept.append(row)
    setattr(request, parts.topics[0], kept)
    return refused, bool(kept)


def _identity(row: Any, parts: Parts) -> dict[str, object]:
    """The fields of a topic's row in the answer that say which topic it is."""
    found = {parts.topic[1]: getattr(row, parts.topic[0])}
    if hasattr(row, "topic_id"):
        found["topic_id"] = row.topic_id
    return found


def merge(api: str, answer: Any, rows: list[Any]) -> None:
    """Put the rows of refused partitions into the answer to what was served."""
    parts = PARTS[api]
    into = getattr(answer, parts.topics[1])
    for row in rows:
        identity = {name: getattr(row, name) for name in (parts.topic[1], "topic_id") if hasattr(row, name)}
        for served in into:
            if all(getattr(served, name) == value for name, value in identity.items()):
                getattr(served, parts.partitions[1]).extend(getattr(row, parts.partitions[1]))
                break
        else:
            into.append(row)
