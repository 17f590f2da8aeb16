"""The states of a classic group and the transitions between them, as a table."""

from __future__ import annotations

EMPTY = "Empty"
PREPARING_REBALANCE = "PreparingRebalance"
COMPLETING_REBALANCE = "CompletingRebalance"
STABLE = "Stable"
DEAD = "Dead"
"""DescribeGroups shows this state for a group that does not exist. No group in memory has it."""

TRANSITIONS = {
    EMPTY: (PREPARING_REBALANCE,),
    PREPARING_REBALANCE: (COMPLETING_REBALANCE, EMPTY),
    COMPLETING_REBALANCE: (STABLE, PREPARING_REBALANCE),
    STABLE: (PREPARING_REBALANCE,),
}
"""State: the states that may follow it. A group in any state ends when its tombstone is applied."""


def can_rebalance(state: str) -> bool:
    """Whether a rebalance may begin. It may in every state but PREPARING_REBALANCE."""
    return PREPARING_REBALANCE in TRANSITIONS[state]
