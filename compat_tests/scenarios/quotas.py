"""DescribeClientQuotas and AlterClientQuotas: every kind of entity, every filter, every invalid value."""

from __future__ import annotations

from collections import Counter
from typing import Any

from compat_tests.scenarios.exchange import Exchange, part, versions
from compat_tests.scenarios.registry import scenario

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
PRODUCER, CONSUMER, REQUEST, MUTATION = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
CONNECTIONS = "connection_creation_rate"


def entry(entity: dict[str, str | None], *operations: tuple) -> Any:
    """The changes of an entity: `(key, value)`, or `(key,)` to remove it."""
    return part(
        "AlterClientQuotas",
        "EntryData",
        entity=[
            part("AlterClientQuotas", "EntityData", entity_type=kind, entity_name=name) for kind, name in entity.items()
        ],
        ops=[
            part("AlterClientQuotas", "OpData", key=key, value=value[0] if value else 0.0, remove=not value)
            for key, *value in operations
        ],
    )


def component(kind: str, match_type: int, match: str | None = None) -> Any:
    """One component of a filter."""
    return part("DescribeClientQuotas", "ComponentData", entity_type=kind, match_type=match_type, match=match)


def settled(broker: Exchange, user: str, count: int) -> None:
    """Wait until the broker shows `count` quotas of a user: Kafka shows them a moment after the answer."""
    broker.until(
        lambda: broker.quietly("DescribeClientQuotas", 1, components=[component("user", EXACT, user)], strict=False),
        lambda answer: sum(len(entry.values) for entry in answer.entries) == count,
    )


@scenario
def set_and_removed(broker: Exchange) -> None:
    """Quotas of users, clients and both are set, changed, described and removed."""
    for version in versions("AlterClientQuotas"):
        user, client = f"{broker.name('user')}-{version}", broker.name("client")

        def alter(note: str, *entries: Any, **fields: Any) -> None:
            broker.ask("AlterClientQuotas", version, note=note, entries=list(entries), **fields)  # noqa: B023

        def describe(note: str) -> None:
            named = [component("user", EXACT, user)]  # noqa: B023
            broker.ask("DescribeClientQuotas", version, note=note, components=named, strict=False)  # noqa: B023

        both = {"user": user, "client-id": client}
        alter(
            "set",
            entry({"user": user}, (PRODUCER, 1024.0), (CONSUMER, 2048.0), (REQUEST, 12.5), (MUTATION, 0.5)),
            entry(both, (PRODUCER, 1.0)),
        )
        alter("default client", entry({"user": user, "client-id": None}, (CONSUMER, 9.0)))
        alter("parts in another order", entry({"client-id": client, "user": user}, (CONSUMER, 3.0)))
        settled(broker, user, 7)
        describe("as set")
        alter("the same again", entry({"user": user}, (PRODUCER, 1024.0)))
        alter("changed and removed", entry({"user": user}, (PRODUCER, 4096.0), (CONSUMER,), (REQUEST,)))
        alter(
            "removed though not set",
            entry({"user": user}, (CONSUMER,)),
            entry({"user": broker.name("nobody")}, (CONSUMER,), ("no_such",)),
        )
        alter(
            "validate only",
            entry({"user": user}, (PRODUCER, 7.0)),
            entry({"user": user, "client-id": "x"}, (PRODUCER, -7.0)),
            validate_only=True,
        )
        alter("no operations", entry({"user": user}))
        alter("nothing")
        alter("a client's last one", entry({"user": user, "client-id": None}, (CONSUMER,)))
        settled(broker, user, 4)
        describe("afterwards")
        alter("clean up", entry({"user": user}, (PRODUCER,), (MUTATION,)), entry(both, (PRODUCER,), (CONSUMER,)))
        settled(broker, user, 0)
        describe("nothing is left")


@scenario
def impossible_quotas(broker: Exchange) -> None:
    """Each entity has its own error; one wrong value leaves all values of its entity unchanged."""
    for version in versions("AlterClientQuotas"):
        user = f"{broker.name('strict')}-{version}"
        good = entry({"user": user, "client-id": "good"}, (PRODUCER, 5.0))

        def alter(note: str, *entries: Any) -> Any:
            return broker.ask("AlterClientQuotas", version, note=note, entries=[good, *entries])  # noqa: B023

        kept = 9

        for note, value in (("zero", 0.0), ("negative", -1.0), ("fraction", 1.5),
                            ("tiny fraction", 1.0000001), ("huge", 1e19), ("largest", 2.0**63),
                            ("infinite", float("inf")), ("minus infinite", float("-inf"))):  # fmt: skip
            for key in (PRODUCER, REQUEST):
                answer = alter(f"{note} {key}", entry({"user": user, "client-id": note + key}, (key, value)))
                if note == "infinite" and key == REQUEST and any(row.error_code for row in answer.entries):
                    # Kafka 4.4 takes finite numbers only.
                    kept -= 1
        for note, value in (("int", 2.0**31 - 1), ("above int", 2.0**31), ("fraction of a connection", 0.5)):
            alter(note, entry({"ip": "10.1.1.1"}, (CONNECTIONS, value)))
        alter("unknown key", entry({"user": user}, ("no_such", 1.0)))
        alter("address's key", entry({"user": user}, (CONNECTIONS, 1.0)))
        alter("user's key", entry({"ip": "10.1.1.1"}, (PRODUCER, 1.0)))
        alter("good beside wrong", entry({"user": user}, (PRODUCER, 1.0), (CONSUMER, -1.0)))
        alter("same key twice", entry({"user": user}, (PRODUCER, 1.0), (PRODUCER, 2.0)))
        alter("set and removed", entry({"user": user}, (PRODUCER, 1.0), (PRODUCER,)))
        alter("same entity twice", entry({"user": user}, (PRODUCER, 7.0)), entry({"user": user}, (CONSUMER, 1.0)))
        alter("wrong, then right", entry({"user": user}, (CONSUMER, -7.0)), entry({"user": user}, (CONSUMER, 1.0)))
        alter("no entity", entry({}, (PRODUCER, 1.0)))
        alter("unknown kind", entry({"group": "g"}, (PRODUCER, 1.0)))
        alter("empty kind", entry({"": "g"}, (PRODUCER, 1.0)))
        alter("empty user", entry({"user": ""}, (PRODUCER, 1.0)))
        alter("empty client", entry({"user": user, "client-id": ""}, (PRODUCER, 1.0)))
        alter("empty address", entry({"ip": ""}, (CONNECTIONS, 1.0)))
        alter("address and user", entry({"ip": "10.1.1.1", "user": user}, (CONNECTIONS, 1.0)))
        alter("no address", entry({"ip": "300.1.1.1.1"}, (CONNECTIONS, 1.0)))
        settled(broker, user, kept)
        broker.ask("DescribeClientQuotas", version, components=[component("user", EXACT, user)], strict=False)
        left = [{"user": user}, *({"user": user, "client-id": name} for name in
                ("good", "tiny fraction" + PRODUCER, "largest" + PRODUCER, *(f"{note}{REQUEST}" for note in
                ("fraction", "tiny fraction", "huge", "largest", "infinite"))))]  # fmt: skip
        broker.quietly("AlterClientQuotas", 1, entries=[entry(each, (PRODUCER,), (REQUEST,)) for each in left])
        broker.quietly("AlterClientQuotas", 1, entries=[entry({"ip": "10.1.1.1"}, (CONNECTIONS,))])
        settled(broker, user, 0)


@scenario
def filtered(broker: Exchange) -> None:
    """Exact names, defaults and any name; strict filters; invalid combinations and match types."""
    user, client = broker.name("u"), broker.name("c")
    keys = {"user": PRODUCER, "client-id": PRODUCER, "ip": CONNECTIONS}
    entities = [
        {"user": user},
        {"user": None},
        {"user": user, "client-id": client},
        {"user": user, "client-id": None},
        {"user": None, "client-id": client},
        {"user": None, "client-id": None},
        {"client-id": client},
        {"client-id": None},
        {"ip": "127.0.0.1"},
        {"ip": "::1"},
        {"ip": "localhost"},
        {"ip": None},
    ]
    everything = lambda: broker.quietly("DescribeClientQuotas", 1, components=[], strict=False)  # noqa: E731
    before = len(everything().entries)
    set_all = [entry(each, (keys[next(iter(each))], 1e9)) for each in entities]
    broker.ask("AlterClientQuotas", 1, note="every kind", entries=set_all)
    broker.until(everything, lambda answer: len(answer.entries) == before + len(entities))
    for version in versions("DescribeClientQuotas"):
        for strict in (False, True):

            def describe(*components: Any) -> None:
                texts = [f"{each.entity_type} {each.match_type} {each.match}" for each in components]
                note = f"strict {strict}: {', '.join(texts)}"  # noqa: B023
                broker.ask("DescribeClientQuotas", version, note=note, components=list(components), strict=strict)  # noqa: B023

            describe()
            for kind, name in (("user", user), ("client-id", client), ("ip", "127.0.0.1")):
                describe(component(kind, EXACT, name))
                describe(component(kind, EXACT, "nobody"))
                describe(component(kind, EXACT, ""))
                describe(component(kind, DEFAULT))
                describe(component(kind, SPECIFIED))
                describe(component(kind, EXACT))
                describe(component(kind, DEFAULT, name))
                describe(component(kind, SPECIFIED, name))
                describe(component(kind, 3))
                describe(component(kind, -1, name))
                describe(component(kind, SPECIFIED), component(kind, DEFAULT))
            for first in (component("user", EXACT, user), component("user", DEFAULT), component("user", SPECIFIED)):
                for second in (
                    component("client-id", EXACT, client),
                    component("client-id", DEFAULT),
                    component("client-id", SPECIFIED),
                ):
                    describe(first, second)
            describe(component("ip", SPECIFIED), component("user", SPECIFIED))
            describe(component("client-id", DEFAULT), component("ip", DEFAULT))
            describe(component("group", SPECIFIED))
            describe(component("", SPECIFIED))
    broker.quietly("AlterClientQuotas", 1, entries=[entry(each, (keys[next(iter(each))],)) for each in entities])
    broker.until(everything, lambda answer: len(answer.entries) == before)


@scenario
def more_than_a_batch_takes(broker: Exchange) -> None:
    """More than 10 000 changes are POLICY_VIOLATION for every entity of the request, and nothing is changed."""
    entries = [entry({"user": broker.name(str(number))}, (PRODUCER, 5.0)) for number in range(10_001)]
    wrong = [entry({"user": ""}, (PRODUCER, 5.0)), entry({"user": broker.name("0")}, (PRODUCER, 6.0))]
    answer = broker.quietly("AlterClientQuotas", 1, entries=entries + wrong, validate_only=False)
    names = Counter(part.entity_name.replace(broker.prefix, "") for row in answer.entries for part in row.entity)
    codes = Counter((row.error_code, bool(row.error_message)) for row in answer.entries)
    broker.record("AlterClientQuotas v1", f"{dict(codes)} {len(names)} {names.most_common(1)}")
    broker.ask("DescribeClientQuotas", 1, components=[component("user", EXACT, broker.name("0"))], strict=False)
