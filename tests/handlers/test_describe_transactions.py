"""DescribeTransactions: every transactional id is unknown."""

from pykafkad import errors
from pykafkad.wire import messages


def test_every_id_has_its_own_rows(peer):
    """An id that is named twice has two rows."""
    asked = ["one", "", "one", "n" * 300]
    answer = peer.ask(messages.DescribeTransactionsRequest(transactional_ids=asked), 0)
    not_found = errors.TRANSACTIONAL_ID_NOT_FOUND
    assert [(row.transactional_id, row.error_code) for row in answer.transaction_states] == [
        ("one", not_found),
        ("", errors.INVALID_REQUEST),
        ("one", not_found),
        ("n" * 300, not_found),
    ]
    assert all((row.transaction_state, row.topics) == ("", []) for row in answer.transaction_states)
    assert peer.ask(messages.DescribeTransactionsRequest(), 0).transaction_states == []
