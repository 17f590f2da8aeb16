"""Routes for topics, records and groups, and for the way back to the start."""

from __future__ import annotations

from typing import Any

from pykafkad.control import schema_calls, schemas, values
from pykafkad.control.api_errors import NOT_FOUND, ApiError
from pykafkad.control.route import Control, Route
from pykafkad.testing import topics
from pykafkad.testing.groups import DEAD
from pykafkad.testing.records import Wanted
from pykafkad.testing.topics import MANY_PARTITIONS

TOPIC = schemas.record({"name": schemas.text(), "partitions": schemas.integer()})
DONE = schemas.record({"done": schemas.boolean(enum=[True])})
_IN_TOPIC = {"topic": values.NAME}
_IN_GROUP = {"group": values.NAME}
_MANY = 1_000_000
_BY_SUBJECT = {
    **schemas.nullable(
        schemas.record(
            {
                "subject": values.NAME,
                "message": {
                    **schemas.nullable(schemas.text("of a Protobuf schema; null: its first", maxLength=1000)),
                    "default": None,
                },
            },
            "keys or values are JSON, and are written by the latest schema of this subject of the broker's registry",
        )
    ),
    "default": None,
}


def list_topics(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """All but Kafka's own."""
    found = control.operations.topics()
    return {"topics": [{"name": name, "partitions": found[name]} for name in sorted(found)]}


def create_topic(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """One topic."""
    control.operations.create_topic(given["name"], given["partitions"], given["settings"])
    return {"name": given["name"], "partitions": given["partitions"]}


def delete_topic(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """One topic."""
    control.operations.delete_topic(given["topic"])
    return {"done": True}


def read_records(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """What a topic holds now."""
    partition = None if given["partition"] < 0 else given["partition"]
    offset = None if given["offset"] < 0 else given["offset"]
    level = topics.level(given["committed_only"])
    wanted = Wanted(partition, offset, given["limit"], given["last"], level)
    found = values.of_records(control.operations.find_records(given["topic"], wanted))
    return schema_calls.read(control, found) if given["by_schema"] else found


def write_records(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """Records to a topic."""
    records = [
        values.to_record(each, f"body.records[{index}]")
        for index, each in enumerate(schema_calls.write(control, given))
    ]
    written = control.operations.produce(given["topic"], *records)
    return {"records": [{"partition": each.partition, "offset": each.offset} for each in written]}


def list_groups(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """Their names."""
    return {"groups": control.operations.groups()}


def describe_group(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """One group."""
    group = control.operations.group(given["group"])
    if group.state == DEAD and not group.offsets:
        raise ApiError(NOT_FOUND, str(group), "path group")
    return values.of_group(group)


def commit_offsets(control: Control, given: dict[str, Any]) -> dict[str, Any]:
    """Offsets for a group without members."""
    offsets = {(each["topic"], each["partition"]): each["offset"] for each in given["offsets"]}
    control.operations.commit(given["group"], offsets)
    return {"done": True}


def reset(control: Control, _: dict[str, Any]) -> dict[str, Any]:
    """To the start."""
    with control.going_back:
        control.operations.reset()
    return {"done": True}


ROUTES = (
    Route(
        "listTopics",
        "GET",
        "/topics",
        "the topics with their numbers of partitions, without Kafka's own",
        list_topics,
        schemas.record({"topics": schemas.array(TOPIC, maxItems=_MANY)}),
    ),
    Route(
        "createTopic",
        "POST",
        "/topics",
        "creates a topic; it can be used when this is answered",
        create_topic,
        TOPIC,
        body=schemas.record(
            {
                "name": values.NAME,
                "partitions": schemas.integer(default=1, minimum=1, maximum=MANY_PARTITIONS),
                "settings": {
                    **schemas.mapping(values.NAME, "Kafka's of a topic, such as cleanup.policy"),
                    "default": {},
                },
            }
        ),
        status=201,
    ),
    Route(
        "deleteTopic",
        "DELETE",
        "/topics/{topic}",
        "deletes a topic with its records",
        delete_topic,
        DONE,
        in_path=_IN_TOPIC,
    ),
    Route(
        "readRecords",
        "GET",
        "/topics/{topic}/records",
        "what a topic, or one partition of it, holds now: the first records, those from an offset on, or the last ones",
        read_records,
        values.RECORDS,
        in_path=_IN_TOPIC,
        query={
            "partition": schemas.integer("-1: all", default=-1, minimum=-1),
            "committed_only": schemas.boolean("as a consumer with read_committed sees it", default=False),
            "offset": schemas.integer("of the partition: from there on; -1: from the first on", default=-1, minimum=-1),
            "last": schemas.boolean("the last ones by their timestamps in place of the first", default=False),
            "by_schema": schemas.boolean("also by the schemas of the broker's registry", default=False),
            "limit": schemas.integer("so many at most", default=values.LIMIT, minimum=1, maximum=values.LIMIT),
        },
    ),
    Route(
        "writeRecords",
        "POST",
        "/topics/{topic}/records",
        "writes records to a topic, which is created where it is not there; they are there when this is answered",
        write_records,
        schemas.record(
            {
                "records": schemas.array(
                    schemas.record({"partition": schemas.integer(), "offset": schemas.integer()}),
                    "where each one is",
                )
            }
        ),
        in_path=_IN_TOPIC,
        body=schemas.record(
            {
                "records": schemas.array(values.NEW_RECORD, minItems=1),
                "key_schema": _BY_SUBJECT,
                "value_schema": _BY_SUBJECT,
            }
        ),
    ),
    Route(
        "listGroups",
        "GET",
        "/groups",
        "the names of all groups",
        list_groups,
        schemas.record({"groups": schemas.array(schemas.text(), maxItems=_MANY)}),
    ),
    Route(
        "describeGroup",
        "GET",
        "/groups/{group}",
        "state, members, assignment, committed offsets and lag of a group",
        describe_group,
        values.GROUP,
        in_path=_IN_GROUP,
    ),
    Route(
        "commitOffsets",
        "PUT",
        "/groups/{group}/offsets",
        "commits offsets for a group that has no members",
        commit_offsets,
        DONE,
        in_path=_IN_GROUP,
        body=schemas.record({"offsets": schemas.array(values.OFFSET, minItems=1)}),
    ),
    Route(
        "reset",
        "POST",
        "/reset",
        "goes back to the start: other topics, groups, transactions, dynamic settings and faults are gone; clients "
        "stay connected",
        reset,
        DONE,
    ),
)
