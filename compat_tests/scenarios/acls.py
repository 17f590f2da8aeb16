"""DescribeAcls, CreateAcls and DeleteAcls, where an authorizer is configured and where none is.

Resource types: 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user. Patterns: 1 any, 2 match, 3
literal, 4 prefixed. Operations: 1 any, 2 all, 3 read … 15. Permissions: 1 any, 2 deny, 3 allow."""

from __future__ import annotations

import itertools
from typing import Any

from compat_tests.scenarios.exchange import CLOSED, Exchange, part, versions
from compat_tests.scenarios.registry import configured_scenario, scenario

TOPIC, GROUP, CLUSTER = 2, 3, 4
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
DENY, ALLOW = 2, 3


def acl(name: str, **fields: Any) -> Any:
    """One creation: by default it allows alice to read the topic from any host."""
    wanted = {
        "resource_type": TOPIC,
        "resource_name": name,
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": 3,
        "permission_type": ALLOW,
        **fields,
    }
    return part("CreateAcls", "AclCreation", **wanted)


def chosen(**fields: Any) -> dict[str, Any]:
    """Fields of a filter; by default it matches everything."""
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **fields,
    }


def delete(broker: Exchange, version: int, note: str, *filters: dict[str, Any]) -> None:
    """Record a DeleteAcls request."""
    broker.ask(
        "DeleteAcls", version, note=note, filters=[part("DeleteAcls", "DeleteAclsFilter", **each) for each in filters]
    )


def stored(broker: Exchange, principal: str, count: int) -> None:
    """Wait until the broker shows `count` ACLs of a principal: Kafka shows them a moment after the answer."""
    broker.until(
        lambda: broker.quietly("DescribeAcls", 3, **chosen(principal_filter=principal)),
        lambda answer: sum(len(resource.acls) for resource in answer.resources) == count,
    )


@scenario
def without_an_authorizer(broker: Exchange) -> None:
    """Each of the three APIs answers SECURITY_DISABLED, row by row, even for invalid rows."""
    for version in versions("DescribeAcls"):
        broker.ask("DescribeAcls", version, **chosen())
        rows = [acl("a"), acl(""), acl("a", resource_type=99), acl("a", resource_type=ANY)]
        broker.ask("CreateAcls", version, creations=rows)
        broker.ask("CreateAcls", version, note="nothing", creations=[])
        delete(broker, version, "", chosen(), chosen(operation=99))
        unknown_elements(broker, version)


def unknown_elements(broker: Exchange, version: int) -> None:
    """A 0 as type, pattern, operation or permission ends the connection before anything else is checked."""
    for field in ("resource_type", "resource_pattern_type", "operation", "permission_type"):
        broker.ask("CreateAcls", version, note=f"{field} 0", creations=[acl("a"), acl("a", **{field: 0})])
    for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
        broker.ask("DescribeAcls", version, note=f"{field} 0", **chosen(**{field: 0}))
        delete(broker, version, f"{field} 0", chosen(**{field: 0}))


@configured_scenario
def created_and_deleted(broker: Exchange) -> None:
    """A created ACL is described; creating it again changes nothing; a filter deletes and returns its matches."""
    for version in versions("CreateAcls"):
        principal, name = f"User:{broker.name('creator')}-{version}", broker.name("topic")
        own = chosen(principal_filter=principal)
        rows = [
            acl(name, principal=principal),
            acl(name, principal=principal, operation=4),
            acl(name, principal=principal, operation=2, permission_type=DENY, host="10.0.0.1"),
            acl(name, principal=principal, resource_pattern_type=PREFIXED),
            acl("*", principal=principal, resource_type=GROUP),
            acl("kafka-cluster", principal=principal, resource_type=CLUSTER, operation=9),
            acl("t", principal=principal, resource_type=5, operation=15),
            acl("k", principal=principal, resource_type=6, operation=8),
            acl("User:x", principal=principal, resource_type=7, operation=13),
        ]
        answer = broker.ask("CreateAcls", version, creations=[*rows, rows[0]])
        # Beside other releases than 4.3.1 some may be refused.
        count = sum(not row.error_code for row in answer.results[: len(rows)])
        stored(broker, principal, count)
        broker.ask("DescribeAcls", version, **own)
        broker.ask("CreateAcls", version, note="again", creations=rows[:2])
        broker.ask("CreateAcls", version, note="nothing", creations=[])
        delete(broker, version, "nothing")
        delete(broker, version, "none found", chosen(principal_filter=broker.name("nobody")))
        literal = {**own, "resource_type_filter": TOPIC, "pattern_type_filter": LITERAL}
        delete(broker, version, "twice by two filters", literal, {**literal, "operation": 3})
        stored(broker, principal, count - 3)
        broker.ask("DescribeAcls", version, note="what is left", **own)
        delete(broker, version, "the rest", own)
        stored(broker, principal, 0)
        broker.ask("DescribeAcls", version, note="nothing is left", **own)


@configured_scenario
def impossible_acls(broker: Exchange) -> None:
    """Each row has its own error and the others are created; values that no client can write fail the whole request."""
    for version in versions("CreateAcls"):
        principal = f"User:{broker.name('strict')}-{version}"
        kept = {"good"}

        def create(note: str, **fields: Any) -> None:
            rows = [
                acl("good", principal=principal),  # noqa: B023
                acl(fields.pop("name", "bad"), **{"principal": principal, **fields}),  # noqa: B023
            ]
            answer = broker.ask("CreateAcls", version, note=note, creations=rows)  # noqa: B023
            if answer != CLOSED and not answer.results[1].error_code and rows[1].principal == principal:  # noqa: B023
                kept.add(note)  # noqa: B023

        create("no name", name="")
        create("cluster of another name", resource_type=CLUSTER)
        create("cluster without name", resource_type=CLUSTER, name="")
        create("unknown type", resource_type=99)
        create("any type", resource_type=ANY)
        create("negative type", resource_type=-1)
        create("unknown pattern", resource_pattern_type=99)
        create("any pattern", resource_pattern_type=ANY)
        create("match pattern", resource_pattern_type=MATCH)
        create("unknown operation", operation=99)
        create("any operation", operation=ANY)
        create("unknown permission", permission_type=99)
        create("any permission", permission_type=ANY)
        create("principal without type", principal="alice")
        create("empty principal", principal="")
        create("principal of colons", principal=":")
        create("empty host", host="")
        create("host that is none", host="not a host")
        create("topic name that cannot be", name="a b/c")
        create("operation that the type lacks", resource_type=GROUP, operation=9)
        create("prefixed wildcard", name="*", resource_pattern_type=PREFIXED)
        # Kafka 4.4 takes no empty host.
        stored(broker, principal, len(kept))
        broker.ask("DescribeAcls", version, note="what was created", **chosen(principal_filter=principal))
        delete(broker, version, "clean up", chosen(principal_filter=principal), chosen(principal_filter=":"))
        stored(broker, principal, 0)


@configured_scenario
def filters(broker: Exchange) -> None:
    """Exact, any and matching patterns; principals, hosts, operations and permissions; filters that are invalid."""
    principal, name = f"User:{broker.name('filtered')}", broker.name("orders")
    rows = [
        acl(name, principal=principal),
        acl(name, principal=principal, host="h", operation=4, permission_type=DENY),
        acl("*", principal=principal),
        acl(name[:-3], principal=principal, resource_pattern_type=PREFIXED),
        acl(f"{name}-more", principal=principal, resource_pattern_type=PREFIXED),
        acl("*", principal=principal, resource_pattern_type=PREFIXED),
        acl(name, principal=principal, resource_type=GROUP),
    ]
    broker.quietly("CreateAcls", 3, creations=rows)
    stored(broker, principal, len(rows))
    for version in versions("DescribeAcls"):
        for pattern in (ANY, MATCH, LITERAL, PREFIXED, 99, -1):
            for resource in (name, "*", name[:-3], f"{name}-more-and-more", "", None):
                fields = {
                    "principal_filter": principal,
                    "pattern_type_filter": pattern,
                    "resource_name_filter": resource,
                }
                shown = "null" if resource is None else resource
                broker.ask("DescribeAcls", version, note=f"pattern {pattern} of {shown!r}", **chosen(**fields))
        for field, values in (
            ("resource_type_filter", (TOPIC, GROUP, CLUSTER, 99, -1)),
            ("operation", (2, 3, 4, 99)),
            ("permission_type", (DENY, ALLOW, 99)),
            ("host_filter", ("h", "*", "")),
        ):
            for value in values:
                broker.ask(
                    "DescribeAcls",
                    version,
                    note=f"{field} {value}",
                    **chosen(principal_filter=principal, **{field: value}),
                )
        for wrong in ("", "alice", principal.lower(), principal[:-1]):
            broker.ask("DescribeAcls", version, note=f"principal {wrong!r}", **chosen(principal_filter=wrong))
    for version in versions("DeleteAcls"):
        nothing = chosen(principal_filter=broker.name("nobody"))
        for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type"):
            delete(broker, version, f"{field} 99", nothing, {**nothing, field: 99})
        unknown_elements(broker, version)
    delete(
        broker, 3, "matching", chosen(principal_filter=principal, pattern_type_filter=MATCH, resource_name_filter=name)
    )
    delete(broker, 3, "clean up", chosen(principal_filter=principal))


@configured_scenario
def more_than_a_batch_takes(broker: Exchange) -> None:
    """More than 10 000 new entries are POLICY_VIOLATION and none is created; errors in names are still reported."""
    rows = [acl(broker.name(str(number))) for number in range(10_001)]
    wrong = [acl(""), acl("x", resource_type=CLUSTER), acl(broker.name("0")), acl("x", principal="alice")]
    answer = broker.quietly("CreateAcls", 3, creations=rows + wrong)
    # A short form of ten thousand rows: the distinct rows in order, each with its count.
    told = [(row.error_code, bool(row.error_message)) for row in answer.results]
    broker.record("CreateAcls v3", str([(row, len(list(same))) for row, same in itertools.groupby(told)]))
    broker.ask("DescribeAcls", 3, **chosen(principal_filter="User:alice", resource_name_filter=broker.name("0")))
