"""The settings of Kafka's `StandardAuthorizer`, which are none of the broker's: who may do everything, and what holds
for resources without ACLs."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SUPER_USERS = "super.users"
ALLOW_IF_NO_ACL = "allow.everyone.if.no.acl.found"
NAMES = frozenset((SUPER_USERS, ALLOW_IF_NO_ACL))
AUDIT_NAMES = frozenset(("pykafkad.audit.file", "pykafkad.audit.allowed"))
"""Those of the lines that tell of its decisions."""


def super_users(static: Mapping[str, str]) -> list[str]:
    """The principals of `super.users` in these settings."""
    return [text.strip() for text in static.get(SUPER_USERS, "").split(";") if text.strip()]


def allows_if_no_acl(static: Mapping[str, str]) -> bool:
    """Whether everybody may use what no ACL is about. As in Java, every text but "true" is false."""
    return static.get(ALLOW_IF_NO_ACL, "").strip().lower() == "true"


def super_users_problem(static: Mapping[str, str]) -> str | None:
    """The sentence about a super user that is no principal; None when all are."""
    for principal in super_users(static):
        if ":" not in principal:
            return f"expected principals like User:alice, divided by semicolons, but got {principal}"
    return None
