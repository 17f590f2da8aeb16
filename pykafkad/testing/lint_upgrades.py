"""The upgrade lens of the client lint: what Kafka 4.x does with requests as a client sends them, and with the client's
next version.

Old versions of requests are a rule of `lint.RULES`; these look further. The facts: KIP-896 (removed versions), KIP-724
(message formats v0 and v1), KIP-848 (consumer groups), KIP-447 (offsets in transactions), KIP-339 (settings), KIP-890
(transactions), KIP-211 (retention of offsets)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykafkad.testing.lint import Asked, Rule

_FIRST_WITH_FORMAT_2 = {"Produce": 3, "Fetch": 4}
_FIRST_WITHOUT_RETENTION = 5
_FIRST_WITH_MEMBER = 3
_FIRST_TRANSACTIONS_2 = 5


def _old_formats(asked: list[Asked], _: frozenset[str]) -> str:
    old = sorted(
        {(each.api, each.version) for each in asked if each.version < _FIRST_WITH_FORMAT_2.get(each.api, each.version)}
    )
    return ", ".join(f"{api} v{version} carries message format v0 or v1" for api, version in old)


def _classic_groups(asked: list[Asked], _: frozenset[str]) -> str:
    found: dict[str, str] = {}
    for each in asked:
        if each.api == "JoinGroup" and each.request is not None and each.request.protocol_type == "consumer":
            found[each.request.group_id] = ", ".join(row.name for row in each.request.protocols)
    return "; ".join(f"joins group {group} by the classic protocol ({names})" for group, names in sorted(found.items()))


def _commit_retention(asked: list[Asked], _: frozenset[str]) -> str:
    count = sum(
        each.api == "OffsetCommit"
        and each.version < _FIRST_WITHOUT_RETENTION
        and each.request is not None
        and each.request.retention_time_ms >= 0
        for each in asked
    )
    return f"{count} commits ask for a retention of their own" if count else ""


def _offsets_without_member(asked: list[Asked], _: frozenset[str]) -> str:
    count = sum(
        each.api == "TxnOffsetCommit"
        and (
            each.version < _FIRST_WITH_MEMBER
            or (each.request is not None and not each.request.member_id and each.request.generation_id < 0)
        )
        for each in asked
    )
    return f"{count} commits of offsets in a transaction do not name the group's member" if count else ""


def _whole_configs(asked: list[Asked], _: frozenset[str]) -> str:
    count = sum(each.api == "AlterConfigs" for each in asked)
    return f"{count} AlterConfigs" if count else ""


def _first_transactions(asked: list[Asked], _: frozenset[str]) -> str:
    versions = {each.version for each in asked if each.api == "EndTxn" and each.version < _FIRST_TRANSACTIONS_2}
    return ", ".join(f"EndTxn v{version}" for version in sorted(versions))


RULES: dict[str, tuple[Rule, str]] = {
    "upgrade-message-format": (
        _old_formats,
        "against Kafka 4.x this client would be disconnected: format v2 alone is served (KIP-724, KIP-896); take a "
        "newer client",
    ),
    "upgrade-commit-retention": (
        _commit_retention,
        "with a newer client these commits would have no retention of their own (KIP-211): set "
        "offsets.retention.minutes at the broker",
    ),
    "upgrade-offsets-in-transactions": (
        _offsets_without_member,
        "with Kafka 4.x's Java client this call is gone: sendOffsetsToTransaction takes the consumer's groupMetadata() "
        "(KIP-447), without which a member that was replaced still commits",
    ),
    "upgrade-alter-configs": (
        _whole_configs,
        "with Kafka 4.x's Java client this call is gone: incrementalAlterConfigs (KIP-339) does not reset settings "
        "that it does not name",
    ),
    "upgrade-transactions": (
        _first_transactions,
        "against Kafka 4.x this client would work without what guards transactions from requests that come late "
        "(KIP-890): take a client with EndTxn v5",
    ),
    "upgrade-classic-groups": (
        _classic_groups,
        "against Kafka 4.x this client would work, and rebalances would stop all members: group.protocol=consumer "
        "(KIP-848) stops those alone whose partitions move",
    ),
}
"""Rules by their names, each with what to do; those that break come first."""
