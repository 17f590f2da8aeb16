"""Decides who may do what by access control entries, as Kafka's `StandardAuthorizer` does (KIP-801).

An entry counts for a resource of its type by name: its own, one that begins with it, or any if it is `*`. It counts for
a caller by principal (its own, or `User:*`) and by address (its own, `*`, or as in Kafka 4.4 a range of addresses). One
denial beats all permissions. Who has no entry that counts is denied. `super.users` may do everything. With
`allow.everyone.if.no.acl.found` everybody may use a resource for which there is no entry at all.

The entries are kept by caller and then by name, so a decision looks at the few that can count: its cost depends on the
length of the name and not on the number of entries.
"""

from __future__ import annotations

from pykafkad.metadata.acls import LITERAL, OPERATIONS, WILDCARD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from ipaddress import IPv4Network, IPv6Network

    from pykafkad.metadata.image import MetadataDelta
    from pykafkad.wire import messages

    Entry = messages.AccessControlEntryRecord

EVERYBODY = "User:*"
ALLOW = 3

RESOURCE_TYPES = {"Topic": 2, "Group": 3, "Cluster": 4, "TransactionalId": 5, "DelegationToken": 6, "User": 7}
ALL = 2
OPERATION_NUMBERS = {
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Delete": 6,
    "Alter": 7,
    "Describe": 8,
    "ClusterAction": 9,
    "DescribeConfigs": 10,
    "AlterConfigs": 11,
    "IdempotentWrite": 12,
    "CreateTokens": 13,
    "DescribeTokens": 14,
    "TwoPhaseCommit": 15,
}
IMPLIED_BY = {"Describe": ("Read", "Write", "Delete", "Alter"), "DescribeConfigs": ("AlterConfigs",)}
"""Operations that a permission for another one includes. A denial includes no other operation."""

_DENIALS = 16  # how far the bit of a denied operation is above that of the allowed one
_EXACT = {name: 1 << ALL | 1 << number for name, number in OPERATION_NUMBERS.items()}
_ALLOWING = {
    name: exact | sum(1 << OPERATION_NUMBERS[other] for other in IMPLIED_BY.get(name, ()))
    for name, exact in _EXACT.items()
}
_DENYING = {name: exact << _DENIALS for name, exact in _EXACT.items()}

OPERATION_OF_BIT = {ALL: "All", **{number: name for name, number in OPERATION_NUMBERS.items()}}
"""The words of operations by their numbers, which are the bits of entries too."""

MAX_PLACES = 10_000
"""So many addresses of clients are remembered, with the ranges in which they lie."""

_ANY_NAME = "hardcode"
"""Kafka takes who may use a resource of this name for one who may use any of the type."""


class _Names:
    """A number for each name and each prefix that entries have; 0 stands for none."""

    __slots__ = ("lengths", "literal", "prefixes")

    def __init__(self) -> None:
        self.literal: dict[str, int] = {}
        self.prefixes: dict[str, int] = {}
        # Length to the number of prefixes that have it.
        self.lengths: dict[int, int] = {}

    def of(self, pattern_type: int, name: str) -> int:
        """The number of one name or prefix."""
        return (self.literal if pattern_type == LITERAL else self.prefixes).get(name, 0)

    def put(self, pattern_type: int, name: str, number: int) -> None:
        """Set the number of one name or prefix."""
        if pattern_type == LITERAL:
            numbers = self.literal
        else:
            numbers = self.prefixes
            change = bool(number) - (name in numbers)
            if change:
                count = self.lengths.get(len(name), 0) + change
                if count:
                    self.lengths[len(name)] = count
                else:
                    del self.lengths[len(name)]
        if number:
            numbers[name] = number
        else:
            numbers.pop(name, None)

    def union(self, name: str) -> int:
        """The bits of every number that counts for a resource of that name."""
        return self.literal.get(name, 0) | self.literal.get(WILDCARD, 0) | self.union_of_prefixes(name)

    def union_of_prefixes(self, name: str) -> int:
        """The bits of the numbers of the prefixes of `name`, itself included."""
        bits = 0
        size = len(name)
        for length in self.lengths:
            if length <= size:
                bits |= self.prefixes.get(name[:length], 0)
        return bits

    def entry(self, name: str, wanted: int) -> tuple[str, int] | None:
        """Name and bits of one entry for a resource of that name that has any of the `wanted` bits; None without one.
        In words: one for a prefix is called like `LITERAL orders` or `PREFIXED orders-`."""
        for each in (name, WILDCARD):
            if bits := self.literal.get(each, 0) & wanted:
                return f"LITERAL {each}", bits
        for length in sorted(self.lengths, reverse=True):
            if length <= len(name) and (bits := self.prefixes.get(name[:length], 0) & wanted):
                return f"PREFIXED {name[:length]}", bits
        return None

    def __bool__(self) -> bool:
        return bool(self.literal or self.prefixes)


class StandardAuthorizer:
    """Tell it of every change of the metadata, and ask `authorize`."""

    __slots__ = ("_allows_unnamed", "_callers", "_entries", "_has_ranges", "_places", "_ranges", "_super_users")

    def __init__(
        self, super_users: Iterable[str] = (), *, allow_if_no_acl: bool = False, has_ranges: bool = False
    ) -> None:
        """`super_users` are principals ("User:admin"); `allow_if_no_acl` is `allow.everyone.if.no.acl.found`. With
        `has_ranges` an entry may be for a range of addresses."""
        self._super_users = frozenset(super_users)
        self._allows_unnamed = allow_if_no_acl
        # (resource type, principal, address) to the operations that entries allow and deny it, by name.
        self._callers: dict[tuple[int, str, str], _Names] = {}
        # Resource type to the number of entries by name, whoever they are for.
        self._entries: dict[int, _Names] = {}
        self._has_ranges = has_ranges
        # Hosts of entries that are ranges, with the number of callers that have each.
        self._ranges: dict[str, tuple[IPv4Network | IPv6Network, int]] = {}
        # Addresses of clients, with the hosts of entries that count for them.
        self._places: dict[str, tuple[str, ...]] = {}

    def metadata_changed(self, delta: MetadataDelta) -> bool:
        """Entries were added or removed. No two have the same content. No partition waits for its log by that."""
        for entry, added in delta.acls:
            self._change(entry, added=added)
        return False

    def after_opening(self, answer: Callable[[], object]) -> None:
        """No partition waits here."""
        answer()

    def authorize(
        self, principal: str, client_address: str, operation: str, resource_type: str, resource_name: str | None
    ) -> bool:
        """Whether `principal` ("User:alice"), calling from `client_address` ("127.0.0.1", or an IPv6 address with all
        its groups, as Java writes it), may do `operation` ("Read") on the resource of that type ("Topic") and name;
        without a name, on any resource of that type."""
        if principal in self._super_users:
            return True
        number = RESOURCE_TYPES[resource_type]
        callers = list(self._callers_like(number, principal, client_address))
        if resource_name is not None:
            return self._decide(callers, operation, number, resource_name)
        return self._decide(callers, operation, number, _ANY_NAME) or _may_use_any(callers, operation)

    def explain(
        self, principal: str, client_address: str, operation: str, resource_type: str, resource_name: str | None
    ) -> str:
        """Which rule the decision of `authorize` follows, in words; one of them where several say the same."""
        if principal in self._super_users:
            return "super.users"
        number = RESOURCE_TYPES[resource_type]
        name = _ANY_NAME if resource_name is None else resource_name
        is_allowed = self.authorize(principal, client_address, operation, resource_type, resource_name)
        word, wanted = ("allow", _ALLOWING[operation]) if is_allowed else ("deny", _DENYING[operation])
        for each in (principal, EVERYBODY):
            for place in self._places_of(client_address):
                names = self._callers.get((number, each, place))
                found = None if names is None else names.entry(name, wanted)
                if found is not None:
                    pattern, bits = found
                    what = OPERATION_OF_BIT[(bits & -bits).bit_length() - 1 & _DENIALS - 1]
                    return f"{word} {each} {what} {resource_type} {pattern} from {place}"
        if not is_allowed:
            return "no entry allows it"
        return "entries on some name" if resource_name is None else "allow.everyone.if.no.acl.found"

    def _decide(self, callers: list[_Names], operation: str, resource_type: int, name: str) -> bool:
        bits = 0
        for names in callers:
            bits |= names.union(name)
        if bits & _DENYING[operation]:
            return False
        if bits & _ALLOWING[operation]:
            return True
        if not self._allows_unnamed:
            return False
        entries = self._entries.get(resource_type)
        return entries is None or not entries.union(name)

    def _callers_like(self, resource_type: int, principal: str, address: str) -> Iterator[_Names]:
        """What there is for the principal and for everybody, at the address and everywhere."""
        places = self._places_of(address)
        for each in (principal, EVERYBODY):
            for place in places:
                names = self._callers.get((resource_type, each, place))
                if names is not None:
                    yield names

    def _places_of(self, address: str) -> tuple[str, ...]:
        """The hosts of entries that count for a client's address: its own, all, and the ranges in which it lies."""
        if not self._ranges:
            return address, WILDCARD
        places = self._places.get(address)
        if places is None:
            from pykafkad.metadata.address_ranges import contains

            if len(self._places) >= MAX_PLACES:
                self._places.clear()
            around = [host for host, (network, _) in self._ranges.items() if contains(network, address)]
            places = self._places[address] = (address, WILDCARD, *around)
        return places

    def _count_range(self, host: str, change: int) -> None:
        """A caller at a range of addresses has come (1) or gone (-1)."""
        from pykafkad.metadata.address_ranges import network

        found = network(host)
        if found is not None:
            count = self._ranges.get(host, (found, 0))[1] + change
            if count:
                self._ranges[host] = found, count
            else:
                del self._ranges[host]
            self._places.clear()

    def _change(self, entry: Entry, *, added: bool) -> None:
        pattern, name = entry.pattern_type, entry.resource_name
        if self._allows_unnamed:
            entries = self._entries.setdefault(entry.resource_type, _Names())
            entries.put(pattern, name, entries.of(pattern, name) + (1 if added else -1))
        if entry.operation not in OPERATIONS:
            # Of a later release: it allows and denies nothing that is asked here.
            return
        bit = 1 << entry.operation if entry.permission_type == ALLOW else 1 << entry.operation + _DENIALS
        caller = (entry.resource_type, entry.principal, entry.host)
        names = self._callers.get(caller)
        if names is None:
            names = self._callers[caller] = _Names()
            if self._has_ranges and "/" in entry.host:
                self._count_range(entry.host, 1)
        bits = names.of(pattern, name)
        names.put(pattern, name, bits | bit if added else bits & ~bit)
        if not names:
            del self._callers[caller]
            if self._has_ranges and "/" in entry.host:
                self._count_range(entry.host, -1)


def _may_use_any(callers: list[_Names], operation: str) -> bool:
    """Whether entries allow the operation on some name that no entry denies. Unlike for one resource, a permission
    includes no other operation, as in Kafka."""
    allowing, denying = _EXACT[operation], _DENYING[operation]
    everything = 0
    for names in callers:
        everything |= names.literal.get(WILDCARD, 0)
    if everything & denying:
        return False
    if everything & allowing:
        return True

    def denied(name: str, *, is_prefix: bool) -> bool:
        """Whether a denial covers all that a permission with that name or prefix covers."""
        return any(
            names.union_of_prefixes(name) & denying or (not is_prefix and names.literal.get(name, 0) & denying)
            for names in callers
        )

    return any(
        any(bits & allowing and not denied(name, is_prefix=False) for name, bits in names.literal.items())
        or any(bits & allowing and not denied(name, is_prefix=True) for name, bits in names.prefixes.items())
        for names in callers
    )
