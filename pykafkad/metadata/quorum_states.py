"""States of a member of the metadata quorum and the moves between them (KIP-595, KIP-996).

The table is the law: `Quorum` asserts every move against it. A voter may be in any state; an observer only in
UNATTACHED and FOLLOWER.
"""

from __future__ import annotations

UNATTACHED = "unattached"
FOLLOWER = "follower"
PROSPECTIVE = "prospective"
CANDIDATE = "candidate"
LEADER = "leader"
RESIGNED = "resigned"

# state: the states that may follow, and on what.
TRANSITIONS = {
    UNATTACHED: {
        UNATTACHED: "an election with a higher epoch, or a vote given",
        PROSPECTIVE: "the election timeout passed",
        FOLLOWER: "a leader of the same or a higher epoch",
    },
    FOLLOWER: {
        UNATTACHED: "an election with a higher epoch",
        PROSPECTIVE: "the fetch timeout passed",
        FOLLOWER: "a leader of a higher epoch",
    },
    PROSPECTIVE: {
        UNATTACHED: "an election with a higher epoch, or the pre-vote was lost and no leader is known",
        FOLLOWER: "a leader of a higher epoch, or the pre-vote was lost and the last leader is known",
        CANDIDATE: "a majority granted the pre-vote",
    },
    CANDIDATE: {
        UNATTACHED: "an election with a higher epoch",
        PROSPECTIVE: "the election timeout passed, or the vote was lost",
        LEADER: "a majority granted the vote",
    },
    LEADER: {
        UNATTACHED: "an election with a higher epoch",
        FOLLOWER: "a leader of a higher epoch",
        RESIGNED: "a graceful stop",
    },
    RESIGNED: {
        UNATTACHED: "an election with a higher epoch, or the election timeout passed",
        FOLLOWER: "a leader of a higher epoch",
        PROSPECTIVE: "no other voter exists that could be waited for",
    },
}


def check(before: str, after: str) -> None:
    """Raise AssertionError on a move that the table does not hold."""
    assert after in TRANSITIONS[before], f"quorum: {before} may not become {after}"
