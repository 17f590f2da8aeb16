"""Access control entries: which may be, which a filter takes, and the records that create and delete them.

The image holds them by id (`image.acls`), each as the record that created it; no two of them say the same. Nothing here
decides who may do what: entries are kept and shown.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import record_codec
from pykafkad.metadata.image import acl_content
from pykafkad.metadata.uuids import random_uuid
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from random import Random

    from pykafkad.metadata.image import Image

UNKNOWN = 0
ANY = 1

# Resource types, pattern types, operations and permissions as the wire counts them; each table begins behind UNKNOWN
# and ANY.
CLUSTER = 4
RESOURCE_TYPES = range(2, 8)
MATCH = 2
LITERAL = 3
PREFIXED = 4
OPERATIONS = range(2, 16)
PERMISSIONS = range(2, 4)

WILDCARD = "*"
CLUSTER_NAME = "kafka-cluster"

_TOO_LARGE = "Unable to perform excessively large batch operation."
MAX_LOOKED_AT = 1_000_000
"""Entries that the filters of one deletion may be held against: filters by name or principal count only those with the
same."""

MAX_SHOWN = 10 * record_codec.MAX_RECORDS_PER_CHANGE
"""Entries that one answer names, those again that several filters take."""

_TOO_MUCH_WORK = f"More than {MAX_LOOKED_AT} comparisons or {MAX_SHOWN} matching acls in a single delete operation."
_TOO_MANY_DELETED = f"Cannot remove more than {record_codec.MAX_RECORDS_PER_CHANGE} acls in a single delete operation."


def create(creations: Iterable[object], image: Image, random: Random) -> tuple[list[object], object]:
    """The records for `creations` (AclCreation messages) and the response; what exists already succeeds without a
    record."""
    row = messages.CreateAclsResponse.AclCreationResult
    created = row()
    records: list[object] = []
    rows = []
    seen: set[tuple] = set()
    for creation in creations:
        try:
            _check(creation)
        except KafkaError as error:
            rows.append(row(error_code=error.code, error_message=error.text))
            continue
        rows.append(created)
        entry = messages.AccessControlEntryRecord(
            id=_new_id(image, random),
            resource_type=creation.resource_type,
            resource_name=creation.resource_name,
            pattern_type=creation.resource_pattern_type,
            principal=creation.principal,
            host=creation.host,
            operation=creation.operation,
            permission_type=creation.permission_type,
        )
        content = acl_content(entry)
        if content not in seen and content not in image.acl_contents:
            seen.add(content)
            records.append(record_codec.record(entry))
            if len(records) > record_codec.MAX_RECORDS_PER_CHANGE:
                break
    if not record_codec.encoded_fit_one_batch(records):
        return [], messages.CreateAclsResponse(results=_refuse_all(creations))
    return records, messages.CreateAclsResponse(results=rows)


def _refuse_all(creations: Iterable[object]) -> list[object]:
    """The rows of a request that is too large as a whole; what is wrong with a resource's name is told all the same."""
    row = messages.CreateAclsResponse.AclCreationResult
    refused = row(error_code=errors.POLICY_VIOLATION, error_message=_TOO_LARGE)
    problems = ((creation, _name_problem(creation)) for creation in creations)
    return [
        refused if problem is None else row(error_code=errors.INVALID_REQUEST, error_message=problem)
        for _, problem in problems
    ]


def _new_id(image: Image, random: Random) -> bytes:
    while True:
        value = random_uuid(random)
        if value not in image.acls:
            return value


def _check(creation: object) -> None:
    """Whether such an entry may be. Raises `KafkaError`."""
    problem = _name_problem(creation)
    if problem is not None:
        pass
    elif creation.resource_type not in RESOURCE_TYPES:
        problem = "Invalid resourceType UNKNOWN"
    elif creation.resource_pattern_type not in (LITERAL, PREFIXED):
        problem = "Invalid patternType UNKNOWN"
    elif creation.operation not in OPERATIONS:
        problem = "Invalid operation UNKNOWN"
    elif creation.permission_type not in PERMISSIONS:
        problem = "Invalid permissionType UNKNOWN"
    elif ":" not in creation.principal:
        problem = f"Could not parse principal from `{creation.principal}` (no colon separates the principal's type from its name)"
    else:
        return
    raise KafkaError(errors.INVALID_REQUEST, problem)


def _name_problem(creation: object) -> str | None:
    name = creation.resource_name
    if creation.resource_type == CLUSTER and name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    return None if name else "Invalid empty resource name"


class Filter:
    """Which entries a DescribeAcls request or one row of DeleteAcls means; both have the same fields."""

    __slots__ = ("_asked",)

    def __init__(self, asked: object) -> None:
        self._asked = asked

    def matching(self, entries: Iterable[object]) -> list[object]:
        """The records among `entries` that match, in their order."""
        return [entry for entry in entries if self._matches(entry)]

    def _matches(self, entry: object) -> bool:
        asked = self._asked
        return (
            asked.resource_type_filter in (ANY, entry.resource_type)
            and asked.operation in (ANY, entry.operation)
            and asked.permission_type in (ANY, entry.permission_type)
            and asked.principal_filter in (None, entry.principal)
            and asked.host_filter in (None, entry.host)
            and self._matches_pattern(entry)
        )

    def _matches_pattern(self, entry: object) -> bool:
        """MATCH takes what would apply to a resource of that name: its own entries, the wildcard's, and fitting
        prefixes."""
        pattern, name = self._asked.pattern_type_filter, self._asked.resource_name_filter
        if pattern not in (ANY, MATCH, entry.pattern_type):
            return False
        if name is None:
            return True
        if pattern != MATCH:
            return name == entry.resource_name
        if entry.pattern_type == PREFIXED:
            return name.startswith(entry.resource_name)
        return entry.resource_name in (name, WILDCARD)

    def problem(self) -> str | None:
        """What in the filter is nothing that Kafka knows; such a filter deletes nothing."""
        asked = self._asked
        if asked.resource_type_filter not in (ANY, *RESOURCE_TYPES) or asked.pattern_type_filter not in (
            ANY,
            MATCH,
            LITERAL,
            PREFIXED,
        ):
            return "Unknown patternFilter."
        if asked.operation not in (ANY, *OPERATIONS) or asked.permission_type not in (ANY, *PERMISSIONS):
            return "Unknown entryFilter."
        return None


class _Candidates:
    """The entries that a filter need be held against: with many filters, all of them for each would stop the broker for
    minutes."""

    def __init__(self, image: Image) -> None:
        self._all = image.acls.values()
        self._by_name: dict[str, list[object]] = {}
        self._by_principal: dict[str, list[object]] = {}
        for entry in self._all:
            self._by_name.setdefault(entry.resource_name, []).append(entry)
            self._by_principal.setdefault(entry.principal, []).append(entry)

    def of(self, asked: object) -> Collection[object]:
        if asked.resource_name_filter is not None and asked.pattern_type_filter != MATCH:
            return self._by_name.get(asked.resource_name_filter, ())
        if asked.principal_filter is not None:
            return self._by_principal.get(asked.principal_filter, ())
        return self._all


def delete(filters: Collection[object], image: Image) -> tuple[list[object], object]:
    """The records for `filters` (DeleteAclsFilter messages) and the response; each row names everything that its filter
    takes."""
    response = messages.DeleteAclsResponse
    chosen = [Filter(asked) for asked in filters]
    problems = [each.problem() for each in chosen]
    candidates = _Candidates(image)
    held_against = [
        () if problem is not None else candidates.of(asked) for asked, problem in zip(filters, problems, strict=True)
    ]
    # Counted before anything is compared.
    if sum(map(len, held_against)) > MAX_LOOKED_AT:
        return [], _refuse_all_filters(filters, _TOO_MUCH_WORK)
    rows = []
    deleted: dict[bytes, object] = {}
    shown = 0
    for each, problem, entries in zip(chosen, problems, held_against, strict=True):
        if problem is not None:
            rows.append(response.DeleteAclsFilterResult(error_code=errors.INVALID_REQUEST, error_message=problem))
            continue
        found = each.matching(entries)
        shown += len(found)
        deleted.update((entry.id, entry) for entry in found)
        if len(deleted) > record_codec.MAX_RECORDS_PER_CHANGE:
            return [], _refuse_all_filters(filters, _TOO_MANY_DELETED)
        if shown > MAX_SHOWN:
            return [], _refuse_all_filters(filters, _TOO_MUCH_WORK)
        rows.append(
            response.DeleteAclsFilterResult(error_message=None, matching_acls=[_matching_row(entry) for entry in found])
        )
    records = [record_codec.record(messages.RemoveAccessControlEntryRecord(id=acl_id)) for acl_id in deleted]
    return records, response(filter_results=rows)


def _refuse_all_filters(filters: Collection[object], problem: str) -> object:
    response = messages.DeleteAclsResponse
    refused = response.DeleteAclsFilterResult(error_code=errors.INVALID_REQUEST, error_message=problem)
    return response(filter_results=[refused] * len(filters))


def _matching_row(entry: object) -> object:
    return messages.DeleteAclsResponse.DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
