"""The authorizer's rules written down as they are said, over a plain list of entries: what the real one is compared
with."""

from __future__ import annotations

from pykafkad.wire import messages

Entry = messages.AccessControlEntryRecord

ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS = range(2, 12)
IDEMPOTENT_WRITE = 12
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3


def covers(entry: Entry, name: str) -> bool:
    """Whether the entry is about a resource of that name."""
    if entry.pattern_type == PREFIXED:
        return name.startswith(entry.resource_name)
    return entry.resource_name in (name, "*")


def is_for(entry: Entry, principal: str, address: str) -> bool:
    """Whether the entry is about that caller."""
    return entry.principal in (principal, "User:*") and entry.host in (address, "*")


def permits(entry: Entry, operation: int) -> bool:
    """Whether the entry allows the operation, itself or by another that includes it."""
    if entry.permission_type != ALLOW:
        return False
    included = {DESCRIBE: {READ, WRITE, DELETE, ALTER}, DESCRIBE_CONFIGS: {ALTER_CONFIGS}}.get(operation, set())
    return entry.operation in {operation, ALL, *included}


def allowed(
    entries: list[Entry],
    principal: str,
    address: str,
    operation: int,
    resource_type: int,
    name: str,
    *,
    super_users: tuple[str, ...] = (),
    allow_if_no_acl: bool = False,
) -> bool:
    """Whether the caller may do the operation on the resource of that name."""
    if principal in super_users:
        return True
    about = [entry for entry in entries if entry.resource_type == resource_type and covers(entry, name)]
    if not about:
        return allow_if_no_acl
    own = [entry for entry in about if is_for(entry, principal, address)]
    if any(entry.permission_type == DENY and entry.operation in (operation, ALL) for entry in own):
        return False
    return any(permits(entry, operation) for entry in own)


def allowed_on_any(
    entries: list[Entry], principal: str, address: str, operation: int, resource_type: int, **settings: object
) -> bool:
    """Whether the caller may do the operation on some resource of the type."""
    if allowed(entries, principal, address, operation, resource_type, "hardcode", **settings):
        return True
    own = [
        entry
        for entry in entries
        if entry.resource_type == resource_type
        and is_for(entry, principal, address)
        and entry.operation in (operation, ALL)
    ]
    denied = [entry for entry in own if entry.permission_type == DENY]
    if any(entry.pattern_type == LITERAL and entry.resource_name == "*" for entry in denied):
        return False

    def outweighed(entry: Entry) -> bool:
        """Whether a denial covers everything that the entry allows."""
        if entry.pattern_type == LITERAL and entry.resource_name == "*":
            return False
        return any(
            (other.pattern_type == PREFIXED and entry.resource_name.startswith(other.resource_name))
            or (entry.pattern_type == other.pattern_type == LITERAL and entry.resource_name == other.resource_name)
            for other in denied
        )

    return any(entry.permission_type == ALLOW and not outweighed(entry) for entry in own)
