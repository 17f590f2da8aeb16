"""Who may do what by ACLs: rows of a table, and random ACLs compared with the rules written down plainly."""

from __future__ import annotations

from random import Random

import pytest

from pykafkad.handlers.authorization import ERRORS
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.handlers.operations import OPERATIONS
from pykafkad.metadata import record_codec, standard_authorizer
from pykafkad.metadata.image import Image, MetadataDelta, acl_content
from pykafkad.metadata.standard_authorizer import OPERATION_NUMBERS, RESOURCE_TYPES, StandardAuthorizer
from pykafkad.wire import messages
from tests import seeds
from tests.metadata import naive_authorizer
from tests.metadata.naive_authorizer import (
    ALL,
    ALLOW,
    ALTER,
    ALTER_CONFIGS,
    CREATE,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    LITERAL,
    PREFIXED,
    READ,
    WRITE,
)
from tests.rows import in_turn

TOPIC, GROUP, CLUSTER = 2, 3, 4
HOST = "10.0.0.1"


def entry(operation=READ, name="orders", **fields):
    """By default it allows alice to read the topic from anywhere."""
    wanted = {
        "id": bytes(16),
        "resource_type": TOPIC,
        "resource_name": name,
        "pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": operation,
        "permission_type": ALLOW,
        **fields,
    }
    return messages.AccessControlEntryRecord(**wanted)


def authorizer(*entries, super_users=(), **settings):
    made = StandardAuthorizer(super_users, **settings)
    delta = MetadataDelta()
    delta.acls = [(each, True) for each in entries]
    assert made.metadata_changed(delta) is False
    return made


def asks(made, operation="Read", name="orders", kind="Topic", principal="User:alice", address=HOST):
    return made.authorize(principal, address, operation, kind, name)


# What is asked differs from alice who reads the topic `orders` only in what the row names.
DECISIONS = [
    ("nobody has what is not given", [], {}, False),
    ("the entry of the name", [entry()], {}, True),
    ("another name", [entry(name="order")], {}, False),
    ("another operation", [entry(WRITE)], {}, False),
    ("another principal", [entry(principal="User:bob")], {}, False),
    ("another type of principal", [entry(principal="Group:alice")], {}, False),
    ("names of principals keep their case", [entry(principal="User:Alice")], {}, False),
    ("everybody", [entry(principal="User:*")], {}, True),
    ("everybody is of the type User", [entry(principal="Group:*")], {}, False),
    ("another resource type", [entry(resource_type=GROUP)], {}, False),
    ("all operations", [entry(ALL)], {}, True),
    ("every name", [entry(name="*")], {}, True),
    ("a prefix", [entry(name="ord", pattern_type=PREFIXED)], {}, True),
    ("the whole name as prefix", [entry(name="orders", pattern_type=PREFIXED)], {}, True),
    ("a longer prefix", [entry(name="orders-", pattern_type=PREFIXED)], {}, False),
    ("a literal is no prefix", [entry(name="ord")], {}, False),
    ("a prefix * is no wildcard", [entry(name="*", pattern_type=PREFIXED)], {}, False),
    ("a prefix * counts for names that begin so", [entry(name="*", pattern_type=PREFIXED)], {"name": "*x"}, True),
    ("the own address", [entry(host=HOST)], {}, True),
    ("another address", [entry(host="10.0.0.2")], {}, False),
    ("a denial beats a permission", [entry(), entry(permission_type=DENY)], {}, False),
    ("a denial of all operations", [entry(), entry(ALL, permission_type=DENY)], {}, False),
    ("a denial of another operation", [entry(), entry(WRITE, permission_type=DENY)], {}, True),
    ("a denial of every name", [entry(), entry(name="*", permission_type=DENY)], {}, False),
    ("a denied prefix", [entry(), entry(name="o", pattern_type=PREFIXED, permission_type=DENY)], {}, False),
    ("a denial for everybody", [entry(), entry(principal="User:*", permission_type=DENY)], {}, False),
    ("a denial at the address", [entry(), entry(host=HOST, permission_type=DENY)], {}, False),
    ("a denial elsewhere", [entry(), entry(host="10.0.0.2", permission_type=DENY)], {}, True),
    ("a denial of one beside a permission of all", [entry(ALL), entry(permission_type=DENY)], {}, False),
    *[
        (f"{number} includes Describe", [entry(number)], {"operation": "Describe"}, True)
        for number in (DESCRIBE, READ, WRITE, DELETE, ALTER, ALL)
    ],
    *[
        (f"{number} does not include Describe", [entry(number)], {"operation": "Describe"}, False)
        for number in (CREATE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
    ],
    *[
        (f"{number} and DescribeConfigs", [entry(number)], {"operation": "DescribeConfigs"}, number == ALTER_CONFIGS)
        for number in (ALTER_CONFIGS, DESCRIBE, READ, ALTER)
    ],
    (
        "a denied Read denies no Describe",
        [entry(WRITE), entry(READ, permission_type=DENY)],
        {"operation": "Describe"},
        True,
    ),
    ("a denied Describe denies no Read", [entry(), entry(DESCRIBE, permission_type=DENY)], {}, True),
    (
        "a denied Describe beats what includes it",
        [entry(), entry(DESCRIBE, permission_type=DENY)],
        {"operation": "Describe"},
        False,
    ),
    ("an operation of a later release allows nothing", [entry(99), entry(1)], {}, False),
    ("a permission of a later release denies", [entry(), entry(permission_type=9)], {}, False),
]


@in_turn("name, entries, asked, expected", DECISIONS, name_of=lambda row: row[0])
def test_a_decision(name, entries, asked, expected):
    assert asks(authorizer(*entries), **asked) is expected
    # The order of the entries means nothing.
    assert asks(authorizer(*reversed(entries)), **asked) is expected


ANY_RESOURCE = [
    ("nothing", [], False),
    ("one topic", [entry(WRITE)], True),
    ("a prefix", [entry(WRITE, "x", pattern_type=PREFIXED)], True),
    ("every topic", [entry(WRITE, "*")], True),
    ("another type", [entry(WRITE, resource_type=GROUP)], False),
    ("all operations", [entry(ALL)], True),
    ("another operation", [entry(READ)], False),
    ("one that is denied", [entry(WRITE), entry(WRITE, permission_type=DENY)], False),
    ("one that is denied to everybody", [entry(WRITE), entry(ALL, principal="User:*", permission_type=DENY)], False),
    ("and another", [entry(WRITE), entry(WRITE, permission_type=DENY), entry(WRITE, "x")], True),
    ("every topic but one", [entry(WRITE, "*"), entry(WRITE, permission_type=DENY)], True),
    ("one beside a denial of all", [entry(WRITE), entry(WRITE, "*", permission_type=DENY)], False),
    ("under a denied prefix", [entry(WRITE), entry(WRITE, "o", pattern_type=PREFIXED, permission_type=DENY)], False),
    (
        "a prefix under a denied prefix",
        [
            entry(WRITE, "ord", pattern_type=PREFIXED),
            entry(WRITE, "ord", pattern_type=PREFIXED, permission_type=DENY),
        ],
        False,
    ),
    (
        "a prefix above a denied prefix",
        [entry(WRITE, "or", pattern_type=PREFIXED), entry(WRITE, "ord", pattern_type=PREFIXED, permission_type=DENY)],
        True,
    ),
    (
        "a prefix whose name alone is denied",
        [entry(WRITE, "or", pattern_type=PREFIXED), entry(WRITE, "or", permission_type=DENY)],
        True,
    ),
]


@in_turn("name, entries, expected", ANY_RESOURCE, name_of=lambda row: row[0])
def test_a_decision_about_any_resource_of_a_type(name, entries, expected):
    """As for InitProducerId without a transactional id: whoever may write to some topic gets a producer id."""
    assert asks(authorizer(*entries), "Write", None) is expected


def test_about_any_resource_a_permission_includes_no_other_operation():
    """Unlike for one resource, and as in Kafka."""
    made = authorizer(entry(READ))
    assert asks(made, "Describe") and not asks(made, "Describe", None)


def test_super_users_may_do_everything():
    made = authorizer(
        entry(ALL, "*", permission_type=DENY, principal="User:*"), super_users=["User:root", "User:alice"]
    )
    assert asks(made) and asks(made, name=None) and asks(made, "Alter", "kafka-cluster", "Cluster")
    assert not asks(made, principal="User:Root") and not asks(made, principal="Group:root")


def test_everybody_may_use_what_no_entry_names_if_that_is_set():
    """One entry, whoever it is for, is enough to deny all others."""
    made = authorizer(
        entry(principal="User:bob"), entry(name="p", pattern_type=PREFIXED, principal="User:bob"), allow_if_no_acl=True
    )
    assert not asks(made) and not asks(made, name="pq") and asks(made, name="other") and asks(made, kind="Group")
    assert asks(made, principal="User:bob") and not asks(made, "Write", principal="User:bob")
    assert asks(made, name=None)
    assert not asks(authorizer(entry(name="*", principal="User:bob"), allow_if_no_acl=True), name=None)
    assert not asks(authorizer(entry(99, principal="User:bob"), allow_if_no_acl=True))


def test_every_operation_and_resource_type_that_is_asked_has_a_number():
    """Those of the rules and of the bit fields. Theirs are those of the requests."""
    wanted = {(rule.operation, rule.resource_type) for rules in RULES.values() for rule in rules}
    wanted |= {rule.instead for rules in RULES.values() for rule in rules if rule.instead}
    assert {operation for operation, _ in wanted} <= OPERATION_NUMBERS.keys()
    assert {kind for _, kind in wanted} <= RESOURCE_TYPES.keys() == ERRORS.keys()
    for operations in OPERATIONS.values():
        assert all(OPERATION_NUMBERS[name] == number for name, number in operations)


NAMES = ("a", "ab", "abc", "abd", "b", "*", "hardcode", "hard", "ü", "a" * 40)
PRINCIPALS = ("User:x", "User:y", "User:*", "Group:x")
HOSTS = ("*", "1.1.1.1", "0:0:0:0:0:0:0:1")


def random_entry(random, acl_id):
    return messages.AccessControlEntryRecord(
        id=acl_id.to_bytes(16, "big"),
        resource_type=random.choice((TOPIC, TOPIC, GROUP, CLUSTER)),
        resource_name=random.choice(NAMES),
        pattern_type=random.choice((LITERAL, PREFIXED)),
        principal=random.choice(PRINCIPALS),
        host=random.choice(HOSTS),
        operation=random.choice((ALL, READ, WRITE, DESCRIBE, ALTER_CONFIGS, DESCRIBE_CONFIGS)),
        permission_type=random.choice((ALLOW, ALLOW, DENY)),
    )


@pytest.mark.parametrize("seed", seeds.sampled(range(300), 15))
def test_random_entries_decide_as_the_plain_rules_say(seed):
    """Entries come and go through an image, as on a broker. Now and then one comes twice, which no controller writes.
    At the end the authorizer has no more in it than one that loads what is left, each content once."""
    random = Random(seeds.seed_of_the_code() * 1000 + seed)
    settings = {"super_users": random.choice(((), ("User:y",))), "allow_if_no_acl": random.random() < 0.3}
    image = Image()
    made = authorizer(**settings)
    for step in range(random.choice((10, 40, 120))):
        for number in range(random.choice((1, 1, 5))):
            if image.acls and random.random() < 0.45:
                record = messages.RemoveAccessControlEntryRecord(id=random.choice(list(image.acls)))
            else:
                record = random_entry(random, random.choice((step * 10 + number, random.randrange(30))))
            image.apply(record_codec.record(record))
        made.metadata_changed(image.take_delta())
        entries = list(image.acls.values())
        for _ in range(6):
            operation = random.choice(("Read", "Write", "Describe", "DescribeConfigs", "Create"))
            caller = random.choice(("User:x", "User:y", "User:z")), random.choice(("1.1.1.1", "2.2.2.2", HOSTS[2]))
            kind = random.choice(("Topic", "Topic", "Group", "Cluster", "User"))
            name = random.choice((*NAMES, "abcdef", None))
            numbers = OPERATION_NUMBERS[operation], RESOURCE_TYPES[kind]
            if name is None:
                expected = naive_authorizer.allowed_on_any(entries, *caller, *numbers, **settings)
            else:
                expected = naive_authorizer.allowed(entries, *caller, *numbers, name, **settings)
            assert made.authorize(*caller, operation, kind, name) is expected, (caller, operation, kind, name, entries)
            rule = made.explain(*caller, operation, kind, name)
            assert rule.startswith(("allow", "super.users", "entries") if expected else ("deny", "no entry")), rule
            if name is not None and not expected:
                is_denied = any(
                    each.permission_type == DENY
                    and each.resource_type == numbers[1]
                    and each.operation in (numbers[0], ALL)
                    and naive_authorizer.covers(each, name)
                    and naive_authorizer.is_for(each, *caller)
                    for each in entries
                )
                assert rule.startswith("deny") is is_denied, rule
    left = {acl_content(each): each for each in image.acls.values()}
    fresh = authorizer(*left.values(), **settings)
    assert content(made) == content(fresh)


def content(made):
    """All that an authorizer holds, in an order of its own."""

    def numbers(names):
        return sorted(names.literal.items()), sorted(names.prefixes.items()), sorted(names.lengths.items())

    held = {key: numbers(names) for key, names in made._entries.items() if names}
    return {key: numbers(names) for key, names in made._callers.items()}, held


def test_a_decision_looks_at_few_of_many_entries(monkeypatch):
    """Its lookups of prefixes are as many as prefixes of the caller have different lengths, whatever their number."""
    many = [
        entry(name=f"{number:05}-{'x' * (number % 3)}", pattern_type=PREFIXED, principal=f"User:{number % 2}")
        for number in range(20_000)
    ]
    made = authorizer(*many)
    looked = []
    real = standard_authorizer._Names.union_of_prefixes
    monkeypatch.setattr(
        standard_authorizer._Names,
        "union_of_prefixes",
        lambda names, name: looked.append(len(names.lengths)) or real(names, name),
    )
    assert asks(made, name="01234-xxx", principal="User:0")
    assert not asks(made, name="01235-xxx", principal="User:0")
    assert looked == [3, 3]
