"""`pykafkad acls`: lists, adds and removes access control entries of any Kafka, in plain words (`acl_words.py`)."""

from __future__ import annotations

from pykafkad.cli import acl_words, actions, client
from pykafkad.cli.acl_words import Entry
from pykafkad.cli.output import Failure, print_error, print_table
from pykafkad.errors import name as error_name
from pykafkad.metadata.acls import ANY, MATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

SUMMARY = "list, add and remove access control entries: who may do what"
HAS_ACTIONS = True
COLUMNS = ("permission", "principal", "operation", "resource", "name", "address")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pykafkad acls`."""
    add = actions.add_actions(parser)
    listing = add("list", help="all entries, or those that count for a principal or a resource")
    listing.add_argument("--principal", metavar="NAME", help="only entries of this principal, such as alice")
    listing.add_argument(
        "--resource", metavar="'TYPE NAME'", help="only entries that count for this resource, such as 'topic orders'"
    )
    adding = add("add", help=f"add entries: {acl_words.USAGE}")
    removing = add("remove", help="remove entries, in the words in which they were added")
    for action in (adding, removing):
        action.add_argument("entries", nargs="+", metavar="ENTRY", help=f"in quotes: {acl_words.USAGE}")
    actions.add_common(parser, (listing, adding, removing))


def run(options: argparse.Namespace) -> int:
    """Runs one action; the exit code is 1 when it failed for any entry."""
    return {"list": _list, "add": _add, "remove": _remove}[options.action](options)


def _list(options: argparse.Namespace) -> int:
    wanted: dict[str, object] = {"resource_type_filter": ANY, "resource_name_filter": None, "pattern_type_filter": ANY}
    if options.resource is not None:
        entry = _about(options.resource)
        wanted = {
            "resource_type_filter": entry.resource_type,
            "resource_name_filter": entry.name,
            "pattern_type_filter": MATCH,
        }
    if options.principal is not None:
        wanted["principal_filter"] = acl_words.principal(options.principal)
    with client.admin(options) as admin:
        answer = _ask(admin, "Describe", operation=ANY, permission_type=ANY, **wanted)
    if answer["error_code"]:
        raise Failure(_error(answer))
    found = [
        _entry(acl, resource["resource_type"], resource["resource_name"], resource["pattern_type"])
        for resource in answer["resources"]
        for acl in resource["acls"]
    ]
    _print(sorted(found, key=lambda entry: acl_words.cells(entry)[1:]), options)
    return 0


def _print(entries: list[Entry], options: argparse.Namespace) -> None:
    """Prints a row for each. What a table shows can be put together to what `add` and `remove` take."""
    rows = [acl_words.cells(entry) if options.json else _in_words(entry) for entry in entries]
    print_table(COLUMNS, rows, as_json=options.json)


def _in_words(entry: Entry) -> tuple[str, ...]:
    *words, name, address = acl_words.cells(entry)
    return (*map(acl_words.quoted, words), acl_words.quoted(name) if name else "", address)


def _add(options: argparse.Namespace) -> int:
    entries = _entries(options.entries)
    creations = [
        {
            "resource_type": entry.resource_type,
            "resource_name": entry.name,
            "resource_pattern_type": entry.pattern_type,
            "principal": entry.principal,
            "host": entry.host,
            "operation": entry.operation,
            "permission_type": entry.permission,
        }
        for entry in entries
    ]
    with client.admin(options) as admin:
        answer = _ask(admin, "Create", creations=creations)
    results = list(zip(entries, answer["results"], strict=True))
    done = [entry for entry, row in results if not row["error_code"]]
    return _report(done, [(entry, _error(row)) for entry, row in results if row["error_code"]], options)


def _remove(options: argparse.Namespace) -> int:
    entries = _entries(options.entries)
    filters = [
        {
            "resource_type_filter": entry.resource_type,
            "resource_name_filter": entry.name,
            "pattern_type_filter": entry.pattern_type,
            "principal_filter": entry.principal,
            "host_filter": entry.host,
            "operation": entry.operation,
            "permission_type": entry.permission,
        }
        for entry in entries
    ]
    with client.admin(options) as admin:
        answer = _ask(admin, "Delete", filters=filters)
    done: list[Entry] = []
    failed: list[tuple[Entry, str]] = []
    for entry, row in zip(entries, answer["filter_results"], strict=True):
        if row["error_code"]:
            failed.append((entry, _error(row)))
        elif row["matching_acls"]:
            done.append(entry)
        else:
            failed.append((entry, "there is no such entry"))
    return _report(done, failed, options)


def _report(done: list[Entry], failed: list[tuple[Entry, str]], options: argparse.Namespace) -> int:
    """Prints the entries that were added or removed. Errors go to standard error."""
    _print(done, options)
    for entry, problem in failed:
        print_error(f"{' '.join(filter(None, _in_words(entry)[:5]))}: {problem}")
    return 1 if failed else 0


def _about(resource: str) -> Entry:
    """An entry about the resource that `topic orders` names."""
    try:
        (entry,) = acl_words.parse(f"everybody all {resource}")
    except ValueError:
        raise Failure(f"--resource {resource}: must be TYPE NAME, such as 'topic orders'", 2) from None
    return entry


def _entries(texts: list[str]) -> list[Entry]:
    try:
        return list(_parsed(texts))
    except ValueError as error:
        raise Failure(str(error), 2) from None


def _parsed(texts: list[str]) -> Iterator[Entry]:
    for text in texts:
        yield from acl_words.parse(text)


def _entry(row: dict[str, Any], resource_type: int, name: str, pattern_type: int) -> Entry:
    return Entry(
        row["permission_type"], row["principal"], row["operation"], resource_type, name, pattern_type, row["host"]
    )


def _ask(admin: Any, verb: str, **fields: Any) -> dict[str, Any]:
    """The answer to CreateAcls, DescribeAcls or DeleteAcls. kafka-python's own methods drop the broker's texts, and
    know fewer operations than Kafka."""
    from kafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

    request: Any
    if verb == "Create":
        rows = [CreateAclsRequest.AclCreation(**row) for row in fields["creations"]]
        request = CreateAclsRequest(creations=rows, min_version=1)
    elif verb == "Delete":
        rows = [DeleteAclsRequest.DeleteAclsFilter(**row) for row in fields["filters"]]
        request = DeleteAclsRequest(filters=rows, min_version=1)
    else:
        request = DescribeAclsRequest(min_version=1, **{"principal_filter": None, "host_filter": None, **fields})
    answer: dict[str, Any] = admin._manager.run(admin._manager.send, request).to_dict()
    return answer


def _error(row: dict[str, Any]) -> str:
    words = row.get("error_message")
    return f"{error_name(row['error_code'])}{f': {words}' if words else ''}"
