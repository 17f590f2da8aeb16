"""Bugs to plant in the audit of who may do what."""

from __future__ import annotations

from tests.planted.plant import Plant

AUDIT = ("tests/server/test_audit.py",)
WORDS = ("tests/cli/test_acls.py",)
ENTRIES = ("tests/metadata/test_standard_authorizer.py",)

PLANTS = (
    Plant(
        "an audit tells of what an answer leaves out",
        "handlers/authorization.py",
        "if rule.answer not in _UNTOLD:",
        "if True:",
        AUDIT,
    ),
    Plant(
        "a denial by the controller is not told",
        "handlers/controller_context.py",
        "self._tell(audit, False, (rule.operation, rule.resource_type, resource_name))",
        "pass",
        AUDIT,
    ),
    Plant(
        "operations that an answer names are told as done",
        "handlers/operations.py",
        "if ctx.could(operation, resource_type, name)",
        "if ctx.allowed(operation, resource_type, name)",
        AUDIT,
    ),
    Plant(
        "a permission is told for each request",
        "server/audit.py",
        "self._told.add(action)",
        "pass",
        AUDIT,
    ),
    Plant(
        "a permission is not told again when ACLs have changed",
        "server/audit.py",
        "self._told.clear()",
        "pass",
        AUDIT,
    ),
    Plant(
        "permissions are told though nobody asked for them",
        "server/audit.py",
        "if decision and audit is not None and audit.tells_allowed:",
        "if decision and audit is not None:",
        AUDIT,
    ),
    Plant(
        "the last dropped lines are never told",
        "server/audit.py",
        "self._sink.tell_dropped()",
        "pass",
        AUDIT,
    ),
    Plant(
        "everybody can read the audit's file",
        "server/logs.py",
        "descriptor = os.open(path, flags, 0o600)",
        "descriptor = os.open(path, flags, 0o644)",
        AUDIT,
    ),
    Plant(
        "a name that ends with a star is listed like a prefix",
        "cli/acl_words.py",
        "if entry.pattern_type == LITERAL and _looks_prefixed(entry.name)",
        "if False",
        WORDS,
    ),
    Plant(
        "a permission is named where a denial decides",
        "metadata/standard_authorizer.py",
        '("allow", _ALLOWING[operation]) if is_allowed else ("deny", _DENYING[operation])',
        '("allow", _ALLOWING[operation])',
        ENTRIES,
    ),
)
