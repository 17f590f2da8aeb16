"""ListTransactions and DescribeTransactions without any transactional id."""

from __future__ import annotations

from typing import Any

from compat_tests.scenarios.exchange import Exchange, versions
from compat_tests.scenarios.registry import scenario

TRANSACTION = 1
STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
)
PATTERNS = (
    "", ".*", "a{2}", "\\Qa(b\\E", "\\pL\\p{Lu}\\p{Greek}", "(?<name>a)", "(?P<n>a)", "[a-z&&[^b]]", "}", "a{", "{",
    "a{1", "a{,3}", "a*?", "(?i)a", "a(?is-m:b)",
    "(?U)a*", "\\x{41}", "\\z", "[[:alpha:]]", "a{1000}",
    "(", "[", "*", "\\", "a)", "x{2,1}", "{2}", "a**", "a++", "a{2}+", "a{1001}", "\\p{Alpha}+", "(a)\\1", "(?=a)",
    "(?!a)", "(?<=a)", "(?>a)", "(?#a)", "(?x)a", "(?P=n)", "\\Z", "\\h",
)  # fmt: skip


IDS = (
    ("one", ["id"]),
    ("twice", ["id", "other", "id"]),
    ("long", ["n" * 1000]),
    ("empty", ["", "id"]),
    ("odd", ["a b/\0"]),
)
NOT_YET = {14, 15, 16}


def coordinated(broker: Exchange) -> None:
    """Wait until the broker coordinates transactions: Kafka creates the topic on first use and loads each partition."""
    broker.until(
        lambda: broker.quietly("FindCoordinator", 4, key_type=TRANSACTION, coordinator_keys=[broker.name("id")]),
        lambda answer: answer.coordinators[0].error_code == 0,
    )
    ids = [broker.name(name) for _, names in IDS for name in names if name]
    broker.until(
        lambda: broker.quietly("DescribeTransactions", 0, transactional_ids=ids),
        lambda answer: not NOT_YET & {row.error_code for row in answer.transaction_states},
    )
    broker.until(lambda: broker.quietly("ListTransactions", 0), lambda answer: answer.error_code == 0)


def listed(broker: Exchange, version: int, note: str = "", **fields: Any) -> None:
    """Record a ListTransactions request; ids of other tests on the broker are not compared."""
    answer = broker.ask("ListTransactions", version, note=note, **fields)
    answer.transaction_states = [
        row for row in answer.transaction_states if row.transactional_id.startswith(broker.prefix)
    ]


@scenario
def none_listed(broker: Exchange) -> None:
    """The list is empty for every filter: states, producers, durations. Unknown states are returned as such."""
    coordinated(broker)
    for version in versions("ListTransactions"):
        listed(broker, version)
        listed(broker, version, note="states", state_filters=list(STATES))
        for states in (["ongoing"], ["", "Ongoing"], ["None", "None"]):
            listed(broker, version, note=f"states {states}", state_filters=states)
        listed(broker, version, note="producers", producer_id_filters=[0, -1, 2**62])
        for duration in (-(2**63), -1, 0, 1, 2**63 - 1):
            listed(broker, version, note=f"duration {duration}", duration_filter=duration)


@scenario
def patterns_of_ids(broker: Exchange) -> None:
    """An invalid regular expression is reported before any other error (KIP-1152); Java's syntax is accepted."""
    coordinated(broker)
    for pattern in (None, *PATTERNS):
        listed(broker, 2, note=f"pattern {pattern}", transactional_id_pattern=pattern)
    listed(broker, 2, note="pattern and state", transactional_id_pattern="(", state_filters=["none"])


@scenario
def nobodys_ids(broker: Exchange) -> None:
    """An unknown id is not found and an empty id is invalid; each occurrence has its own row."""
    coordinated(broker)
    for version in versions("DescribeTransactions"):
        broker.ask("DescribeTransactions", version)
        for note, names in IDS:
            ids = [name and broker.name(name) for name in names]
            broker.ask("DescribeTransactions", version, note=note, transactional_ids=ids)
