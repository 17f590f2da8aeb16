"""ListTransactions, versions 0 to 2.

The transactional ids that this broker coordinates (KIP-664), with producer and state. The list can be filtered by
states (unknown ones are returned), by producers, from version 1 by how long the transaction is open, and from version 2
by a pattern that the whole id matches (KIP-1152). A pattern that RE2 does not know is INVALID_REGULAR_EXPRESSION. Ids
that the caller may not describe are left out.

Gaps: without google-re2 (the extra `regex`) every pattern is INVALID_REGULAR_EXPRESSION.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.coordinator.transaction_states import STATE_IDS
from pykafkad.handlers.authorization import may
from pykafkad.handlers.authorization_rules import RULES
from pykafkad.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from pykafkad.coordinator.transaction import Transaction
    from pykafkad.handlers.context import Context

    Matches = Callable[[str], object]

MAX_PATTERN_CHARACTERS = 250
"""A longer pattern is compiled beside the loop. This one takes two milliseconds."""

(_DESCRIBE_TRANSACTIONAL_ID,) = RULES["ListTransactions"]


def handle(ctx: Context, request: messages.ListTransactionsRequest) -> Generator[None, None, object]:
    if ctx.transactions.is_loading:
        return messages.ListTransactionsResponse(error_code=errors.COORDINATOR_LOAD_IN_PROGRESS)
    pattern = request.transactional_id_pattern
    if not pattern:
        return (yield from _listed(ctx, request, None))
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        return ctx.answer_later(lambda: _matcher(pattern), lambda matches: _at_once(ctx, request, matches))
    matches = _matcher(pattern)
    return _invalid() if matches is None else (yield from _listed(ctx, request, matches))


def _at_once(ctx: Context, request: messages.ListTransactionsRequest, matches: Matches | None) -> object:
    if matches is None:
        return _invalid()
    rows = _listed(ctx, request, matches)
    while True:
        try:
            next(rows)
        except StopIteration as end:
            return end.value


def _listed(
    ctx: Context, request: messages.ListTransactionsRequest, matches: Matches | None
) -> Generator[None, None, object]:
    response = messages.ListTransactionsResponse(
        unknown_state_filters=[each for each in dict.fromkeys(request.state_filters) if each not in STATE_IDS]
    )
    states, producer_ids = frozenset(request.state_filters), frozenset(request.producer_id_filters)
    for shard in ctx.transactions.shards():
        for transaction in list(shard.transactions.values()):
            yield
            if (
                (not producer_ids or transaction.producer_id in producer_ids)
                and (not states or transaction.state in states)
                and not _is_too_young(ctx, transaction, request.duration_filter)
                and (matches is None or matches(transaction.transactional_id))
                and may(ctx, _DESCRIBE_TRANSACTIONAL_ID, transaction.transactional_id)
            ):
                response.transaction_states.append(_row(transaction))
    return response


def _is_too_young(ctx: Context, transaction: Transaction, duration_ms: int) -> bool:
    return duration_ms >= 0 and ctx.now_ms - transaction.start_ms <= duration_ms


def _row(transaction: Transaction) -> messages.ListTransactionsResponse.TransactionState:
    return messages.ListTransactionsResponse.TransactionState(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state,
    )


def _invalid() -> messages.ListTransactionsResponse:
    return messages.ListTransactionsResponse(error_code=errors.INVALID_REGULAR_EXPRESSION)


def _matcher(pattern: str) -> Matches | None:
    """What tells whether an id matches a pattern as a whole, or None for a pattern that is not valid."""
    from pykafkad.settings.regular_expressions import LibraryMissing, compiled

    try:
        found: Matches = compiled(pattern).fullmatch
    except (ValueError, LibraryMissing):
        return None
    return found
