"""Access control entries: their checks, their filters, and the records that create and delete them.

The image holds each entry by its id as the record that created it (`image.acls`). No two entries have the same content.
This module does not decide what a principal may do.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import record_codec
from pykafkad.metadata.image import acl_content
from pykafkad.uuids import random_uuid
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from random import Random

    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.image import Image

    Creation = messages.CreateAclsRequest.AclCreation
    CreationRow = messages.CreateAclsResponse.AclCreationResult
    DeletionFilter = messages.DeleteAclsRequest.DeleteAclsFilter
    Entry = messages.AccessControlEntryRecord

UNKNOWN = 0
ANY = 1

# The numbers of resource types, pattern types, operations and permissions in requests. UNKNOWN and ANY, which come
# first in each of them, are left out.
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
MAX_COMPARISONS = 1_000_000
"""The most comparisons of a filter with an entry in one deletion. A filter with a resource name or a principal is
compared only with the entries that have the same."""

MAX_SHOWN = 10 * record_codec.MAX_RECORDS_PER_CHANGE
"""The most entries in one response. An entry that several filters match counts for each of them."""

_TOO_MUCH_WORK = f"More than {MAX_COMPARISONS} comparisons or {MAX_SHOWN} matching acls in a single delete operation."
_TOO_MANY_DELETED = f"Cannot remove more than {record_codec.MAX_RECORDS_PER_CHANGE} acls in a single delete operation."


def check_operation(creation: Creation, highest: int) -> None:
    """Check the operation where later ones are not known. Raises `KafkaError`."""
    if creation.operation > highest:
        raise KafkaError(errors.INVALID_REQUEST, f"Unknown operation {creation.operation}")


def create(
    creations: Iterable[Creation], image: Image, random: Random, check_more: Callable[[Creation], None] | None = None
) -> tuple[list[StoredRecord], messages.CreateAclsResponse]:
    """The records that create entries, and the response. An entry that exists already succeeds without a record.

    `check_more` raises `KafkaError` for what a release of Kafka refuses beyond 4.3.1."""
    row = messages.CreateAclsResponse.AclCreationResult
    created = row()
    records: list[StoredRecord] = []
    rows = []
    seen: set[tuple[object, ...]] = set()
    for creation in creations:
        try:
            _check(creation)
            if check_more is not None:
                check_more(creation)
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


def _refuse_all(creations: Iterable[Creation]) -> list[CreationRow]:
    """The rows of a request that is too large as a whole. A row whose resource name is invalid says that instead."""
    row = messages.CreateAclsResponse.AclCreationResult
    refused = row(error_code=errors.POLICY_VIOLATION, error_message=_TOO_LARGE)
    return [
        refused if problem is None else row(error_code=errors.INVALID_REQUEST, error_message=problem)
        for problem in map(_name_problem, creations)
    ]


def _new_id(image: Image, random: Random) -> bytes:
    while True:
        value = random_uuid(random)
        if value not in image.acls:
            return value


def _check(creation: Creation) -> None:
    """Raises `KafkaError` for an entry that cannot be created."""
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
        problem = (
            f"Could not parse principal from `{creation.principal}` "
            "(no colon separates the principal's type from its name)"
        )
    else:
        return
    raise KafkaError(errors.INVALID_REQUEST, problem)


def _name_problem(creation: Creation) -> str | None:
    name = creation.resource_name
    if creation.resource_type == CLUSTER and name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    return None if name else "Invalid empty resource name"


class Filter:
    """The filter of a DescribeAcls request or of one row of DeleteAcls, which have the same fields."""

    __slots__ = ("_asked",)

    def __init__(self, asked: messages.DescribeAclsRequest | DeletionFilter) -> None:
        self._asked = asked

    def matching(self, entries: Iterable[Entry]) -> list[Entry]:
        """The entries that match, in their order."""
        return [entry for entry in entries if self._matches(entry)]

    def _matches(self, entry: Entry) -> bool:
        asked = self._asked
        return (
            asked.resource_type_filter in (ANY, entry.resource_type)
            and asked.operation in (ANY, entry.operation)
            and asked.permission_type in (ANY, entry.permission_type)
            and asked.principal_filter in (None, entry.principal)
            and asked.host_filter in (None, entry.host)
            and self._matches_pattern(entry)
        )

    def _matches_pattern(self, entry: Entry) -> bool:
        """Whether the resource pattern of the entry matches. MATCH selects the entries that apply to a resource of that
        name: those of the name itself, of the wildcard, and of a prefix of the name."""
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
        """The error message for a filter with a number that Kafka does not know, else None. Such a filter deletes
        nothing."""
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
    """Finds the entries that a filter has to be compared with. To compare each of many filters with every entry would
    block the broker for minutes."""

    def __init__(self, image: Image) -> None:
        self._all = image.acls.values()
        self._by_name: dict[str, list[Entry]] = {}
        self._by_principal: dict[str, list[Entry]] = {}
        for entry in self._all:
            self._by_name.setdefault(entry.resource_name, []).append(entry)
            self._by_principal.setdefault(entry.principal, []).append(entry)

    def of(self, asked: DeletionFilter) -> Collection[Entry]:
        """The entries that may match."""
        if asked.resource_name_filter is not None and asked.pattern_type_filter != MATCH:
            return self._by_name.get(asked.resource_name_filter, ())
        if asked.principal_filter is not None:
            return self._by_principal.get(asked.principal_filter, ())
        return self._all


def delete(filters: Collection[DeletionFilter], image: Image) -> tuple[list[StoredRecord], messages.DeleteAclsResponse]:
    """The records that delete the matching entries, and the response. Each row names all entries that its filter
    matches."""
    response = messages.DeleteAclsResponse
    chosen = [Filter(asked) for asked in filters]
    problems = [each.problem() for each in chosen]
    candidates = _Candidates(image)
    compared: list[Collection[Entry]] = [
        () if problem is not None else candidates.of(asked) for asked, problem in zip(filters, problems, strict=True)
    ]
    # The limit is checked before the first comparison.
    if sum(map(len, compared)) > MAX_COMPARISONS:
        return [], _refuse_all_filters(filters, _TOO_MUCH_WORK)
    rows = []
    deleted: dict[bytes, Entry] = {}
    shown = 0
    for each, problem, entries in zip(chosen, problems, compared, strict=True):
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


def _refuse_all_filters(filters: Collection[DeletionFilter], problem: str) -> messages.DeleteAclsResponse:
    response = messages.DeleteAclsResponse
    refused = response.DeleteAclsFilterResult(error_code=errors.INVALID_REQUEST, error_message=problem)
    return response(filter_results=[refused] * len(filters))


def _matching_row(entry: Entry) -> messages.DeleteAclsResponse.DeleteAclsMatchingAcl:
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
