"""Routes that wait, at most so long, and answer as soon as what they wait for is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pykafkad.control import schemas, values
from pykafkad.control.route import Control, Route
from pykafkad.control.schemas import Schema
from pykafkad.testing import topics
from pykafkad.testing.operations import Operations
from pykafkad.testing.records import Wanted

_TOPIC = schemas.record({"topic": schemas.text(), "partitions": schemas.integer()})


def _topic(operations: Operations, given: dict[str, Any]) -> dict[str, Any]:
    name = given["topic"]
    operations.wait_for_topic(name, given["partitions"], given["timeout_seconds"])
    # Since then it may have gone.
    return {"topic": name, "partitions": operations.topics().get(name, given["partitions"] or 0)}


def _records(operations: Operations, given: dict[str, Any]) -> dict[str, Any]:
    wanted = Wanted(limit=max(given["count"], values.LIMIT), isolation_level=topics.level(given["committed_only"]))
    return values.of_records(
        operations.wait_for_found(given["topic"], given["count"], given["timeout_seconds"], wanted)
    )


def _group(operations: Operations, given: dict[str, Any]) -> dict[str, Any]:
    return values.of_group(
        operations.wait_for_group(given["group"], given["members"], given["timeout_seconds"]),
    )


def _assignment(operations: Operations, given: dict[str, Any]) -> dict[str, Any]:
    return values.of_group(
        operations.wait_for_assignment(given["group"], given["topic"], given["timeout_seconds"]),
    )


def _lag(operations: Operations, given: dict[str, Any]) -> dict[str, Any]:
    return values.of_group(operations.wait_for_lag(given["group"], given["lag"], given["timeout_seconds"]))


def _gone(operations: Operations, given: dict[str, Any]) -> dict[str, Any]:
    return values.of_group(
        operations.wait_until_gone(given["group"], given["client_id"], given["timeout_seconds"]),
    )


def _transaction(operations: Operations, given: dict[str, Any]) -> dict[str, Any]:
    state = operations.wait_for_transaction(given["transactional_id"], given["timeout_seconds"])
    return {"state": state}


def _wait(
    what: str,
    summary: str,
    wait: Callable[[Operations, dict[str, Any]], dict[str, Any]],
    answer: Schema,
    fields: Mapping[str, Schema],
) -> Route:
    def call(control: Control, given: dict[str, Any]) -> dict[str, Any]:
        with control.waiting():
            return wait(control.operations, given)

    name = f"waitFor{what.capitalize()}" if what != "gone" else "waitUntilGone"
    body = schemas.record({**fields, "timeout_seconds": values.TIMEOUT})
    return Route(name, "POST", f"/waits/{what}", f"waits until {summary}", call, answer, body=body)


ROUTES = (
    _wait(
        "topic",
        "there is a topic, of so many partitions",
        _topic,
        _TOPIC,
        {
            "topic": values.NAME,
            "partitions": schemas.nullable(schemas.integer("null: any number", default=None, minimum=1)),
        },
    ),
    _wait(
        "records",
        "a topic holds so many records; they are the answer",
        _records,
        values.RECORDS,
        {
            "topic": values.NAME,
            "count": schemas.integer(minimum=1),
            "committed_only": schemas.boolean("as a consumer with read_committed sees it", default=False),
        },
    ),
    _wait(
        "group",
        "a group is stable with so many members",
        _group,
        values.GROUP,
        {"group": values.NAME, "members": schemas.integer(minimum=1)},
    ),
    _wait(
        "assignment",
        "a group is stable and its members have every partition of a topic",
        _assignment,
        values.GROUP,
        {"group": values.NAME, "topic": values.NAME},
    ),
    _wait(
        "lag",
        "no partition of a group lags by more records",
        _lag,
        values.GROUP,
        {"group": values.NAME, "lag": schemas.integer(default=0, minimum=0)},
    ),
    _wait(
        "gone",
        "a group has no members, or not that one",
        _gone,
        values.GROUP,
        {"group": values.NAME, "client_id": schemas.nullable(schemas.text(default=None))},
    ),
    _wait(
        "transaction",
        "the transaction of a transactional id has ended",
        _transaction,
        schemas.record({"state": schemas.text("Kafka's word, such as CompleteCommit")}),
        {"transactional_id": values.NAME},
    ),
)
