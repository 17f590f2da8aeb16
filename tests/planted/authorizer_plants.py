"""Bugs to plant in what decides by ACLs."""

from __future__ import annotations

from tests.planted.plant import Plant

AUTHORIZER = ("tests/metadata/test_standard_authorizer.py",)
WIRED = ("tests/server/test_authorizer.py",)
ACLS = ("tests/cli/test_acls.py",)
FAST_PATHS = ("tests/server/test_watched_fast_paths.py",)
IMAGE = ("tests/metadata/test_image.py",)
FILE = "metadata/standard_authorizer.py"

PLANTS = (
    Plant(
        "a permission beats a denial",
        FILE,
        "if bits & _DENYING[operation]:\n    return False\nif bits & _ALLOWING[operation]:\n    return True",
        "if bits & _ALLOWING[operation]:\n    return True\nif bits & _DENYING[operation]:\n    return False",
        AUTHORIZER,
    ),
    Plant(
        "a denied operation denies what a permission for it would include",
        FILE,
        "_DENYING = {name: exact << _DENIALS for name, exact in _EXACT.items()}",
        "_DENYING = {name: exact << _DENIALS for name, exact in _ALLOWING.items()}",
        AUTHORIZER,
    ),
    Plant(
        "a permission for all operations is none for each",
        FILE,
        "_EXACT = {name: 1 << ALL | 1 << number for name, number in OPERATION_NUMBERS.items()}",
        "_EXACT = {name: 1 << number for name, number in OPERATION_NUMBERS.items()}",
        AUTHORIZER,
    ),
    Plant(
        "entries for one address count for all",
        FILE,
        "caller = (entry.resource_type, entry.principal, entry.host)",
        "caller = (entry.resource_type, entry.principal, WILDCARD)",
        AUTHORIZER,
    ),
    Plant(
        "a removed entry takes the others of its name along",
        FILE,
        "names.put(pattern, name, bits | bit if added else bits & ~bit)",
        "names.put(pattern, name, bits | bit if added else 0)",
        AUTHORIZER,
    ),
    Plant(
        "prefixes of a length are forgotten with the first of them",
        FILE,
        "if count:\n    self.lengths[len(name)] = count",
        "if change > 0:\n    self.lengths[len(name)] = count",
        AUTHORIZER,
    ),
    Plant(
        "a denied prefix does not count for whoever may use any resource",
        FILE,
        "names.union_of_prefixes(name) & denying or (not is_prefix and names.literal.get(name, 0) & denying)",
        "not is_prefix and names.literal.get(name, 0) & denying",
        AUTHORIZER,
    ),
    Plant(
        "the entries of others do not end the permission of everybody",
        FILE,
        "return entries is None or not entries.union(name)",
        "return True",
        AUTHORIZER,
    ),
    Plant(
        "the authorizer does not hear of changes",
        "server/wiring.py",
        "self.controller.on_committed(self._acls)",
        "pass",
        WIRED,
    ),
    Plant(
        "of two entries with the same content the first to go takes it with it",
        "metadata/image.py",
        "image.acl_contents[content] -= 1",
        "image.acl_contents[content] = 0",
        IMAGE,
    ),
    Plant(
        "the fast paths of watched callers do not hear of changes",
        "server/broker.py",
        "self._watched_fast_paths.forget()",
        "pass",
        FAST_PATHS,
    ),
    Plant(
        "whoever may read may write on a fast path",
        "server/watched_fast_paths.py",
        'return self._may("Write", topic)',
        'return self._may("Read", topic)',
        FAST_PATHS,
    ),
    Plant(
        "a caller without fast paths of its own goes on to use them",
        "server/watched_fast_paths.py",
        "self._authorizer = None",
        "pass",
        FAST_PATHS,
    ),
    Plant(
        "the fast paths of all callers remember whatever they meet",
        "server/watched_fast_paths.py",
        "if self._remembered >= MAX_REMEMBERED:",
        "if False:",
        FAST_PATHS,
    ),
    Plant(
        "what clients call themselves is remembered without a limit",
        "server/produce_fast_path.py",
        "if self._remembering is not None:",
        "if False:",
        FAST_PATHS,
    ),
    Plant(
        "a fast path writes to every topic that it looks up",
        "server/produce_fast_path.py",
        "may_write(log.topic) and broker.writable_by_clients(log)",
        "broker.writable_by_clients(log)",
        FAST_PATHS,
    ),
    Plant(
        "a pattern matches topics that the caller may not know of",
        "coordinator/consumer_patterns.py",
        "if matching.may_describe is not None:",
        "if False:",
        ("tests/coordinator/test_consumer_group.py", *WIRED),
    ),
    Plant(
        "a backslash in a principal is dropped",
        "cli/acl_words.py",
        'reader.commenters = reader.escape = ""',
        'reader.commenters = ""',
        ACLS,
    ),
    Plant(
        "a name with spaces is listed as several words",
        "cli/acls.py",
        'acl_words.quoted(name) if name else ""',
        "name",
        ACLS,
    ),
)
