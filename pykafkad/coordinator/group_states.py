"""The states of a classic group and the moves between them, as a table."""

from __future__ import annotations

EMPTY = "Empty"
PREPARING_REBALANCE = "PreparingRebalance"
COMPLETING_REBALANCE = "CompletingRebalance"
STABLE = "Stable"
DEAD = "Dead"
"""Shown by DescribeGroups for a group that does not exist; no group held in memory is in it."""

TRANSITIONS = {
    EMPTY: (PREPARING_REBALANCE,),
    PREPARING_REBALANCE: (COMPLETING_REBALANCE, EMPTY),
    COMPLETING_REBALANCE: (STABLE, PREPARING_REBALANCE),
    STABLE: (PREPARING_REBALANCE,),
}
"""state: the states that may follow it. A group leaves the table when its tombstone is applied."""

TYPE_CLASSIC = "classic"


def can_rebalance(state: str) -> bool:
    """Whether a rebalance may begin: in every state but the one in which it has begun already."""
    return PREPARING_REBALANCE in TRANSITIONS[state]
