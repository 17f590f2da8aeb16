"""The states of a member of the metadata quorum, and the transitions between them (KIP-595, KIP-996).

`Quorum` checks every transition against the table. A voter may be in any state. An observer is only in UNATTACHED or
FOLLOWER.
"""

from __future__ import annotations

UNATTACHED = "unattached"
FOLLOWER = "follower"
PROSPECTIVE = "prospective"
CANDIDATE = "candidate"
LEADER = "leader"
RESIGNED = "resigned"

# State: the states that may follow it, and the reason for each transition.
TRANSITIONS = {
    UNATTACHED: {
        UNATTACHED: "an election with a higher epoch, or a granted vote",
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
        FOLLOWER: "a leader of the same or a higher epoch",
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
        PROSPECTIVE: "there is no other voter to wait for",
    },
}


def check(before: str, after: str) -> None:
    """Raises AssertionError for a transition that is not in the table."""
    assert after in TRANSITIONS[before], f"quorum: {before} may not become {after}"
