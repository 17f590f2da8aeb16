"""The states of a transaction, the transitions between them, and what a request to end it finds, as tables."""

from __future__ import annotations

from pykafkad import errors

EMPTY = "Empty"
ONGOING = "Ongoing"
PREPARE_COMMIT = "PrepareCommit"
PREPARE_ABORT = "PrepareAbort"
COMPLETE_COMMIT = "CompleteCommit"
COMPLETE_ABORT = "CompleteAbort"
DEAD = "Dead"
"""Kafka's name for an id that is about to be forgotten. No transaction in memory has it."""
PREPARE_EPOCH_FENCE = "PrepareEpochFence"
"""Kafka's name for the moment before the abort of a fenced producer. No transaction in memory has it."""

STATE_IDS = {
    EMPTY: 0,
    ONGOING: 1,
    PREPARE_COMMIT: 2,
    PREPARE_ABORT: 3,
    COMPLETE_COMMIT: 4,
    COMPLETE_ABORT: 5,
    DEAD: 6,
    PREPARE_EPOCH_FENCE: 7,
}
"""State: its number in the records of `__transaction_state`."""

STATES = {number: state for state, number in STATE_IDS.items()}

TRANSITIONS = {
    EMPTY: (EMPTY, ONGOING, PREPARE_ABORT),
    ONGOING: (ONGOING, PREPARE_COMMIT, PREPARE_ABORT),
    PREPARE_COMMIT: (COMPLETE_COMMIT,),
    PREPARE_ABORT: (COMPLETE_ABORT,),
    COMPLETE_COMMIT: (EMPTY, ONGOING, PREPARE_ABORT),
    COMPLETE_ABORT: (EMPTY, ONGOING, PREPARE_ABORT),
}
"""State: the states that may follow it. From transaction version 2 a producer may abort what it has not begun."""

PREPARED = (PREPARE_COMMIT, PREPARE_ABORT)
"""The end is decided, and the markers are being written."""

EXPIRING = (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT)
"""The states in which an unused id is forgotten."""

_WRONG = errors.INVALID_TXN_STATE
_BUSY = errors.CONCURRENT_TRANSACTIONS
_DONE = errors.NONE

END: dict[tuple[str, bool], str | int] = {
    (EMPTY, True): _WRONG,
    (EMPTY, False): _WRONG,
    (ONGOING, True): PREPARE_COMMIT,
    (ONGOING, False): PREPARE_ABORT,
    (PREPARE_COMMIT, True): _BUSY,
    (PREPARE_COMMIT, False): _BUSY,
    (PREPARE_ABORT, True): _BUSY,
    (PREPARE_ABORT, False): _BUSY,
    (COMPLETE_COMMIT, True): _DONE,
    (COMPLETE_COMMIT, False): _WRONG,
    (COMPLETE_ABORT, True): _WRONG,
    (COMPLETE_ABORT, False): _DONE,
}
"""(State, whether EndTxn asks to commit): the state that follows, or the error code of the answer."""

END_WITH_BUMP: dict[tuple[str, bool], str | int] = END | {
    (EMPTY, False): PREPARE_ABORT,
    (COMPLETE_COMMIT, True): _WRONG,
    (COMPLETE_COMMIT, False): PREPARE_ABORT,
    (COMPLETE_ABORT, False): PREPARE_ABORT,
}
"""The same from transaction version 2 on (KIP-890), for a request with the present epoch. The epoch rises with every
end, so the present one belongs to a transaction that is not ended yet. A repeated request has the epoch before; the
table above answers it."""
