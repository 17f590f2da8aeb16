"""Client quotas: their checks, their filters, and the records that change them (KIP-546).

An entity is a user, a client id, a user with a client id, or an IP address. The name None stands for the default of its
type. The image holds one record per entity and quota key (`image.client_quotas`). `server/quotas.py` enforces them."""

from __future__ import annotations

from math import fmod, isfinite

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.metadata import record_codec
from pykafkad.metadata.image import quota_entity
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.effects import StoredRecord
    from pykafkad.metadata.image import Image, QuotaKey

    Component = messages.DescribeClientQuotasRequest.ComponentData
    DescribedEntry = messages.DescribeClientQuotasResponse.EntryData
    AskedEntry = messages.AlterClientQuotasRequest.EntryData
    AnsweredEntry = messages.AlterClientQuotasResponse.EntryData
    Names = dict[str, str | None]
    Wanted = dict[str, tuple[int, str | None]]
    Limits = dict[str, int | None]

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"

EXACT = 0
DEFAULT = 1
SPECIFIED = 2
_MATCH_NAMES = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}

# Quota key to the greatest value of its type. None is for a double, which may have a fraction.
_MAX_LONG = 2**63 - 1
_USER_AND_CLIENT_KEYS: Limits = {
    "producer_byte_rate": _MAX_LONG,
    "consumer_byte_rate": _MAX_LONG,
    "request_percentage": None,
    "controller_mutation_rate": None,
}
_IP_KEYS: Limits = {"connection_creation_rate": 2**31 - 1}
_TYPE_NAMES = {_MAX_LONG: "a LONG", 2**31 - 1: "an INT"}

_FRACTION = 1e-6


def describe(image: Image, components: Iterable[Component], strict: bool) -> list[DescribedEntry]:
    """The rows of every entity that matches all components. With `strict` it must have no further parts.

    Raises `KafkaError` for an invalid filter.
    """
    wanted: Wanted = {}
    for component in components:
        _check_component(component, wanted)
        wanted[component.entity_type] = (component.match_type, component.match)
    if IP in wanted and len(wanted) > 1:
        text = (
            "Invalid entity filter component combination. "
            "IP filter component should not be used with user or clientId filter component."
        )
        raise KafkaError(errors.INVALID_REQUEST, text)
    response = messages.DescribeClientQuotasResponse
    entries: dict[QuotaKey, DescribedEntry] = {}
    for key, record in image.client_quotas.items():
        entity = key[:-1]
        entry = entries.get(entity)
        if entry is None:
            names = {part.entity_type: part.entity_name for part in record.entity}
            if not _matches(names, wanted, strict):
                continue
            parts = [response.EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()]
            entry = entries[entity] = response.EntryData(entity=parts, values=[])
        entry.values.append(response.ValueData(key=record.key, value=record.value))
    return list(entries.values())


def _check_component(component: Component, wanted: Wanted) -> None:
    """Raises `KafkaError` for an invalid component of a filter. `wanted` has the components before it."""
    kind, match_type = component.entity_type, component.match_type
    code, problem = errors.INVALID_REQUEST, None
    if not kind:
        problem = "Invalid empty entity type."
    elif kind in wanted:
        problem = f"Entity type {kind} cannot appear more than once in the filter."
    elif kind not in (USER, CLIENT_ID, IP):
        code, problem = errors.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}"
    elif match_type not in _MATCH_NAMES:
        problem = f"Unknown match type {match_type}"
    elif match_type == EXACT and component.match is None:
        problem = f"Request specified {_MATCH_NAMES[EXACT]}, but set match string to null."
    elif match_type != EXACT and component.match is not None:
        problem = f"Request specified {_MATCH_NAMES[match_type]}, but also specified a match string."
    if problem is not None:
        raise KafkaError(code, problem)


def _matches(names: Names, wanted: Wanted, strict: bool) -> bool:
    if strict and len(names) != len(wanted):
        return False
    # DEFAULT has a null match, which equals the name of a default entity.
    return all(kind in names and (how == SPECIFIED or names[kind] == match) for kind, (how, match) in wanted.items())


class _Alteration:
    """The records and the results of one AlterClientQuotas."""

    __slots__ = ("_image", "_must_be_finite", "records", "results")

    def __init__(self, image: Image, must_be_finite: bool) -> None:
        self._image = image
        self._must_be_finite = must_be_finite
        self.records: list[StoredRecord] = []
        self.results: dict[tuple[tuple[str, str | None], ...], tuple[Names, int, str | None]] = {}

    def entry(self, entry: AskedEntry) -> None:
        """Change one entity. An entity or a quota key that comes twice is an error. The changes of its first occurrence
        stay."""
        names = {part.entity_type: part.entity_name for part in entry.entity}
        entity = tuple(sorted(names.items(), key=lambda item: item[0]))
        values = {operation.key: None if operation.remove else operation.value for operation in entry.ops}
        if entity in self.results or len(values) < len(entry.ops):
            self.results[entity] = (names, errors.INVALID_REQUEST, f"Ignoring duplicate entity {names}")
            return
        try:
            self.records += self._changes(names, values)
            self.results[entity] = (names, errors.NONE, None)
        except KafkaError as error:
            self.results[entity] = (names, error.code, error.text)

    def _changes(self, names: Names, values: dict[str, float | None]) -> list[StoredRecord]:
        limits = _keys_of(names)
        records = []
        for key, value in values.items():
            current = self._image.client_quotas.get((*quota_entity(names.items()), key))
            if value is not None:
                _check_value(key, value, limits)
                if self._must_be_finite and not isfinite(value):
                    raise KafkaError(errors.INVALID_REQUEST, f"Quota {key} must be a finite number")
            if value is None if current is None else current.value == value:
                continue
            entity = [
                messages.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
                for kind, name in names.items()
            ]
            record = messages.ClientQuotaRecord(entity=entity, key=key, value=value or 0.0, remove=value is None)
            records.append(record_codec.record(record))
        return records


def alter(
    entries: Iterable[AskedEntry], validate_only: bool, image: Image, *, must_be_finite: bool = False
) -> tuple[list[StoredRecord], messages.AlterClientQuotasResponse]:
    """The records for the entries of a request, and the response with one row per entity. `must_be_finite`: no quota
    is infinite, as in Kafka 4.4."""
    alteration = _Alteration(image, must_be_finite)
    records = alteration.records
    for entry in entries:
        alteration.entry(entry)
        if len(records) > record_codec.MAX_RECORDS_PER_CHANGE:
            break
    response = messages.AlterClientQuotasResponse
    if not record_codec.encoded_fit_one_batch(records):
        return [], response(entries=refuse_all(entries, errors.POLICY_VIOLATION))
    rows = []
    for names, code, text in alteration.results.values():
        parts = [response.EntityData(entity_type=kind, entity_name=name) for kind, name in names.items()]
        rows.append(response.EntryData(error_code=code, error_message=text, entity=parts))
    return [] if validate_only else records, response(entries=rows)


def refuse_all(entries: Iterable[AskedEntry], code: int) -> list[AnsweredEntry]:
    """The rows of a request that is refused as a whole: one for each entry, with the entity as in the request."""
    row, text = messages.AlterClientQuotasResponse.EntryData, errors.message(code)
    part = messages.AlterClientQuotasResponse.EntityData
    return [
        row(
            error_code=code,
            error_message=text,
            entity=[part(entity_type=each.entity_type, entity_name=each.entity_name) for each in entry.entity],
        )
        for entry in entries
    ]


def _keys_of(names: Names) -> Limits:
    """The quota keys that an entity may have, with their limits. Raises `KafkaError` for an entity that cannot be."""
    problem = "Invalid empty client quota entity" if not names else None
    for kind, name in names.items():
        if kind not in (USER, CLIENT_ID, IP):
            problem = problem or f"Unhandled client quota entity type: {kind}"
        elif name == "":
            problem = problem or f"Empty {kind} not supported"
    if problem is None and IP in names:
        if len(names) > 1:
            problem = "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        address = names[IP]
        if problem is None and address is not None and not _is_address(address):
            problem = f"{address} is not a valid IP or resolvable host."
    if problem is not None:
        raise KafkaError(errors.INVALID_REQUEST, problem)
    return _IP_KEYS if IP in names else _USER_AND_CLIENT_KEYS


def _is_address(text: str) -> bool:
    from ipaddress import ip_address

    try:
        ip_address(text)
    except ValueError:
        # Host names are not looked up, because a look-up can block the broker. This name means the same everywhere.
        return text == "localhost"
    return True


def _check_value(key: str, value: float, limits: Limits) -> None:
    """Raises `KafkaError` for a quota key that the entity does not have, and for a value that the key does not
    allow."""
    limit = limits.get(key)
    if key not in limits:
        problem = f"Invalid configuration key {key}"
    elif value <= 0:
        problem = f"Quota {key} must be greater than 0"
    elif limit is None:
        return
    elif value > float(limit):
        problem = f"Proposed value for {key} is too large for {_TYPE_NAMES[limit]}."
    elif fmod(value, 1.0) > _FRACTION:
        problem = f"{key} cannot be a fractional value."
    else:
        return
    raise KafkaError(errors.INVALID_REQUEST, problem)
