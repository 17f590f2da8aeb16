"""An access control entry in plain words: `alice read topic orders`.

    [deny] PRINCIPAL OPERATION[,OPERATION…] RESOURCE [NAME] [from ADDRESS]

`deny bob all topic orders-* from 10.0.0.1` denies User:bob every operation on topics whose names begin with `orders-`,
at that address. `everybody` is User:*, a name `*` means every name, and `cluster` has no name. A word with spaces
stands in single or double quotes; a backslash is a letter like others, as in `DOMAIN\\bob`. `literal-group jobs*` is
the one group of that name: so stands the name of any resource that ends with a star and is no prefix.
"""

from __future__ import annotations

import shlex
from collections import namedtuple

from pykafkad.handlers.authorization import CLUSTER_NAME
from pykafkad.handlers.context import host_of
from pykafkad.metadata.acls import LITERAL, PREFIXED, WILDCARD
from pykafkad.metadata.standard_authorizer import ALL, ALLOW, EVERYBODY, OPERATION_NUMBERS

DENY = 2
CLUSTER = 4

LITERALLY = "literal-"
"""Before a kind of resource: a star at the end of the name is one of its letters."""

RESOURCES = {"topic": 2, "group": 3, "cluster": CLUSTER, "transactional-id": 5, "token": 6, "user": 7}


def _in_words(name: str) -> str:
    """`DescribeConfigs` as `describe-configs`."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("-")


OPERATIONS = {"all": ALL, **{_in_words(name): number for name, number in OPERATION_NUMBERS.items()}}
_OPERATION_WORDS = {number: word for word, number in OPERATIONS.items()}
_RESOURCE_WORDS = {number: word for word, number in RESOURCES.items()}
USAGE = "[deny] PRINCIPAL OPERATION RESOURCE NAME [from ADDRESS], such as `alice read topic orders`"


class Entry(
    namedtuple("Entry", ("permission", "principal", "operation", "resource_type", "name", "pattern_type", "host"))
):
    """One entry, with the numbers of the protocol."""

    __slots__ = ()


def _words(text: str) -> list[str]:
    reader = shlex.shlex(text, posix=True)
    reader.whitespace_split = True
    reader.commenters = reader.escape = ""
    return list(reader)


def quoted(word: str) -> str:
    """A word as `parse` takes it: in quotes if it would be several, or none."""
    return shlex.quote(word) if not word or any(letter in " \t\r\n'\"" for letter in word) else word


def parse(text: str) -> list[Entry]:
    """The entries of a sentence, one for each of its operations. Raises ValueError with what is wrong."""
    words = _words(text)
    permission = ALLOW
    if words and words[0] in ("deny", "allow"):
        permission = DENY if words.pop(0) == "deny" else ALLOW
    host = WILDCARD
    if len(words) >= 2 and words[-2] == "from":
        host = _host(words[-1])
        del words[-2:]
    if len(words) == 3 and words[2] == "cluster":
        words.append(CLUSTER_NAME)
    if len(words) != 4:
        raise ValueError(f"{text}: must be {USAGE}")
    who, operations, resource, name = words
    is_literal = resource.startswith(LITERALLY)
    resource = resource.removeprefix(LITERALLY)
    if resource not in RESOURCES:
        raise ValueError(f"{text}: {resource} is no kind of resource: name one of {', '.join(RESOURCES)}")
    unknown = [each for each in operations.split(",") if each not in OPERATIONS]
    if unknown:
        raise ValueError(f"{text}: {unknown[0]!r} is no operation: name some of {', '.join(OPERATIONS)}")
    pattern_type = LITERAL
    if _looks_prefixed(name) and not is_literal:
        name, pattern_type = name[:-1], PREFIXED
    return [
        Entry(permission, principal(who), OPERATIONS[each], RESOURCES[resource], name, pattern_type, host)
        for each in dict.fromkeys(operations.split(","))
    ]


def _looks_prefixed(name: str) -> bool:
    return len(name) > 1 and name.endswith(WILDCARD)


def principal(word: str) -> str:
    """The principal that a word stands for: `alice` is User:alice, `everybody` is User:*."""
    if word == "everybody":
        return EVERYBODY
    return word if ":" in word else f"User:{word}"


def _host(word: str) -> str:
    """An address as entries have it: Kafka compares the text, in which IPv6 has all its groups. A range is read."""
    if ":" not in word or "/" in word:
        return word
    return host_of(f"[{word}]:0")[1:]


def cells(entry: Entry) -> tuple[str, str, str, str, str, str]:
    """Permission, principal, operation, resource, name and address of an entry. `quoted`, they are what `parse`
    takes."""
    kind, _, user = entry.principal.partition(":")
    who = entry.principal
    if who == EVERYBODY:
        who = "everybody"
    elif kind == "User" and user not in ("everybody", "deny", "allow", "") and ":" not in user:
        who = user
    return (
        "allow" if entry.permission == ALLOW else "deny",
        who,
        _OPERATION_WORDS.get(entry.operation, str(entry.operation)),
        (LITERALLY if entry.pattern_type == LITERAL and _looks_prefixed(entry.name) else "")
        + _RESOURCE_WORDS.get(entry.resource_type, str(entry.resource_type)),
        "" if entry.resource_type == CLUSTER else entry.name + (WILDCARD if entry.pattern_type == PREFIXED else ""),
        entry.host,
    )
