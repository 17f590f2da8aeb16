"""Every row of `handlers/table.py` keeps its word: a handler, a schema for all its versions, an authorization, a
test."""

from __future__ import annotations

import inspect
import re

from pykafkad.handlers import table
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.operations import OPERATIONS
from pykafkad.wire import messages, notation
from tests.architecture.source import PROJECT, modules
from tests.rows import in_turn

# Modules in handlers/ that are not an API's: what several handlers share.
SHARED = {
    "__init__": "the package",
    "table": "the registry",
    "context": "what a handler may touch",
    "controller_context": "what a handler may touch in the controller, and the request as a value",
    "services": "the parts of a broker that its handlers may touch",
    "authorization": "what a rule is, and the functions that enforce it",
    "authorization_rules": "the rules of every API",
    "operations": "authorization's operations as bits",
    "share_acknowledgements": "what ShareFetch and ShareAcknowledge share (KIP-932)",
    "share_reading": "reading a log for a share group",
    "share_sessions": "the broker's cache of share sessions",
    "group_protocols": "whether consumer groups and streams groups are switched on",
    "share_group_offsets": "what AlterShareGroupOffsets and DeleteShareGroupOffsets share",
    "share_state_requests": "what the five APIs of the share coordinator share",
    "token_requests": "what the four APIs of delegation tokens share",
    "unexpected": "every API's answer to a request that met a bug",
    "acl_requests": "what the three ACL APIs share",
    "telemetry": "clients that push their own metrics (KIP-714)",
    "login_protocol": "what handlers see of a login by SASL",
    "otlp": "those metrics as plain values",
    "broker_loggers": "the loggers' names and levels, for the three config APIs",
    "snapshot_actions": "snapshots of the data, by way of the config APIs",
    "produce_transactional": "Produce with a transactional id",
    "fetch_follower": "Fetch of followers of many partitions",
    "fetch_long": "Fetch for thousands of partitions",
    "fetch_old_formats": "what Fetch gives clients from before Kafka 0.11",
    "list_offsets_before": "ListOffsets 0",
    "fetch_replicas": "what Fetch tells of a partition's other replicas",
    "fetch_sessions": "sessions of Fetch (KIP-227)",
}

# Before anybody has logged in, about one's own tokens, and a client's own metrics.
OPEN_TO_ALL = {
    "SaslHandshake",
    "ApiVersions",
    "SaslAuthenticate",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
}
OPERATIONS_OF = {kind: {name for name, _ in operations} for kind, operations in OPERATIONS.items()} | {
    "TransactionalId": {"Describe", "Write", "TwoPhaseCommit"},
    "DelegationToken": {"Describe"},
    "User": {"CreateTokens", "DescribeTokens"},
}
# Places with a name that nobody is asked for, each with the reason.
NOT_ASKED_FOR = {
    ("ConsumerGroupHeartbeat", "topic_partitions.topic_id"): "what the member says it has; the answer tells none of it",
    ("ShareFetch", "forgotten_topics_data.topic_id"): "what is no longer fetched; the answer tells nothing of it",
    ("DescribeTopicPartitions", "cursor.topic_name"): "where to go on; the topics that are told are asked for",
}


def _row_id(row: table.Api) -> str:
    return row.name


def test_rows_are_unique_and_in_order() -> None:
    """One row a key, sorted, one name each."""
    for rows in (table.ROWS, table.CONTROLLER_ROWS, table.UNANSWERED):
        keys = [row.key for row in rows]
        assert keys == sorted(set(keys))
    assert len({row.name for row in table.every_row()}) == 93


def test_every_api_key_has_a_row() -> None:
    """The 93 keys of Kafka 4.3.1, each in one state; those with a schema under its name and versions, the removed ones
    without."""
    rows = table.every_row()
    assert [row.key for row in rows] == list(range(93))
    assert {row.state for row in table.ROWS} == {table.OFFERED}
    assert {row.state for row in table.CONTROLLER_ROWS} == {table.CONTROLLER}
    assert {row.state for row in table.UNANSWERED} == {table.REMOVED}
    # Version 6 of InitProducerId is unstable: Kafka has a schema of it, and answers it only when told to.
    schemas = {
        key: (name, min(versions), max(versions) - (key == 22)) for key, name, versions, _ in messages.all_apis()
    }
    assert {row.key: (row.name, *_ends(row.kafka_versions)) for row in rows if row.state != table.REMOVED} == schemas
    assert all(row.kafka_versions == "none" for row in rows if row.state == table.REMOVED)


def _ends(versions: str) -> tuple[int, int]:
    low, _, high = versions.partition("-")
    return int(low), int(high or low)


def test_what_is_not_answered_says_why() -> None:
    """No versions here, nothing advertised, no handler, and a reason."""
    nothing = (None, None, None)
    assert [
        row.name
        for row in table.UNANSWERED
        if (row.min_version, row.max_version, row.advertised_min) != nothing or not row.gaps
    ] == []
    handlers = PROJECT / "pykafkad" / "handlers"
    assert [row.name for row in table.UNANSWERED if (handlers / f"{table.module_name(row)}.py").exists()] == []


@in_turn("row", table.ROWS + table.CONTROLLER_ROWS + table.NEWER_ROWS, name_of=_row_id)
def test_an_api_has_a_handler(row: table.Api) -> None:
    """`handlers/<api_name>.py` with one public `handle(ctx, request)`; its docstring opens with the API's name and
    versions."""
    handle = table.handler(row)
    assert list(inspect.signature(handle).parameters)[:2] == ["ctx", "request"]
    docstring = inspect.getmodule(handle).__doc__
    first = docstring.splitlines()[0]
    assert first.startswith(row.name) and re.search(r"\bversions?\b", first), first
    for version in (row.min_version, row.max_version):
        assert re.search(rf"\b{version}\b", first), f"{row.name}: version {version} is not in its first line: {first}"
    name = f"pykafkad.handlers.{table.module_name(row)}"
    public = [
        node.name
        for module in modules()
        if module.name == name
        for node in module.tree.body
        if type(node).__name__ == "FunctionDef" and not node.name.startswith("_")
    ]
    assert "handle" in public


def test_an_api_has_its_messages() -> None:
    """Request and response have a schema that covers every version served, and are named as the row."""
    wrong = []
    for row in table.ROWS:
        for cls, kind in ((messages.request_class(row.key), "Request"), (messages.response_class(row.key), "Response")):
            if cls.__name__ != row.name + kind or not {row.min_version, row.max_version} <= set(
                messages.valid_versions(cls)
            ):
                wrong.append((row.name, cls.__name__, messages.valid_versions(cls)))
    assert wrong == []


def test_an_api_serves_all_of_kafkas_versions() -> None:
    """What is answered is answered in every version."""
    assert [row.name for row in table.ROWS if (row.min_version, row.max_version) != _ends(row.kafka_versions)] == []


def test_only_what_is_offered_is_advertised() -> None:
    """ApiVersions tells of no more versions than are served, but for those that clients need to be told of."""
    advertised = [row for row in table.ROWS if row.advertised_min is not None]
    assert [row.name for row in advertised if row.advertised_min > row.min_version] == []


def test_every_api_declares_its_authorization() -> None:
    """It has rules, or is one of the few that anybody may ask; a rule names places that the request has."""
    assert {row.name for row in table.ROWS + table.NEWER_ROWS if not row.authorization} == OPEN_TO_ALL
    assert set(RULES) <= {row.name for row in table.ROWS + table.NEWER_ROWS}
    for row in table.ROWS + table.NEWER_ROWS:
        places = _places(messages.schema(messages.request_class(row.key)).root)
        for rule in row.authorization:
            assert set(rule.names) <= places, row.name
            assert rule.resource_type in OPERATIONS_OF and rule.operation in OPERATIONS_OF[rule.resource_type], row.name


def test_every_name_in_a_request_is_asked_for() -> None:
    """A place where a topic, a group or a transactional id is named stands in a rule, unless the rules ask for the
    cluster."""
    left = set()
    for row in table.ROWS + table.NEWER_ROWS:
        if not any(rule.resource_type == "Cluster" for rule in row.authorization):
            named = {place for rule in row.authorization for place in rule.names}
            places = _places(messages.schema(messages.request_class(row.key)).root)
            left |= {
                (row.name, place)
                for place in places - named
                if place.rpartition(".")[2] in ("topic", "topic_id", "topic_name", "group_id", "transactional_id")
            }
    assert left == set(NOT_ASKED_FOR)


def test_handlers_ask_by_their_rules() -> None:
    """Nobody but the two modules of authorization asks the session itself."""
    asking = {module.name for module in modules() if re.search(r"\bctx\.(?:allowed|could)\(", module.text)}
    assert asking == {"pykafkad.handlers.authorization", "pykafkad.handlers.operations"}


def test_what_is_not_offered_has_a_reason() -> None:
    """In its gaps."""
    assert [row.name for row in table.every_row() if row.min_version is None and not row.gaps] == []


def _places(struct: notation.Struct, before: str = "") -> set[str]:
    """The names of all fields of a request, those within others with dots."""
    found = set()
    for field in struct.fields:
        found.add(before + field.name)
        if field.struct is not None:
            found |= _places(field.struct, f"{before}{field.name}.")
    return found


def test_gaps_stand_in_the_header_and_in_the_row() -> None:
    """A handler's docstring has one paragraph "Gaps: ..."; it begins "Gaps: none." exactly when the row names no
    gap."""
    rows = table.ROWS + table.CONTROLLER_ROWS + table.NEWER_ROWS
    headers = [(row, inspect.getdoc(inspect.getmodule(table.handler(row))).split("\n\n")) for row in rows]
    gaps = [(row, [part for part in parts if part.startswith("Gap")]) for row, parts in headers]
    assert [(row.name, found) for row, found in gaps if len(found) != 1 or not found[0].startswith("Gaps: ")] == [], (
        "one paragraph"
    )
    assert [
        (row.name, found, row.gaps) for row, (found,) in gaps if found.startswith("Gaps: none.") != (row.gaps == "")
    ] == []


def test_every_offered_api_has_tests() -> None:
    """A file of its own in tests/handlers/, named as the handler."""
    offered = {f"test_{table.module_name(row)}.py" for row in table.ROWS + table.NEWER_ROWS}
    assert offered - {path.name for path in (PROJECT / "tests" / "handlers").iterdir()} == set()


def test_no_handler_without_a_row() -> None:
    """A module in handlers/ is an API's, or is listed above with what it is."""
    named = {table.module_name(row) for row in table.ROWS + table.CONTROLLER_ROWS + table.NEWER_ROWS} | set(SHARED)
    found = {path.stem for path in (PROJECT / "pykafkad" / "handlers").glob("*.py")}
    assert found - named == set()
    assert set(SHARED) - found == set(), "listed above but gone"


def test_the_type_stub_is_fresh() -> None:
    """`messages.pyi` is what `python -m pykafkad.wire.stub` writes now."""
    from pykafkad.wire import stub

    assert (PROJECT / "pykafkad" / "wire" / "messages.pyi").read_text() == stub.text(), (
        "run: python -m pykafkad.wire.stub"
    )
