"""ListTransactions: an empty list for any filter, and invalid filters."""

import pytest

from pykafkad import errors
from pykafkad.handlers import list_transactions
from pykafkad.wire import messages


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_list_is_empty_in_every_version(peer, version):
    """Unknown states are returned once."""
    asked = {"state_filters": ["Ongoing", "Dead", "ongoing", "", "ongoing"], "producer_id_filters": [1, -1]}
    if version:
        asked["duration_filter"] = 5
    answer = peer.ask(messages.ListTransactionsRequest(**asked), version)
    assert (answer.error_code, answer.transaction_states, answer.unknown_state_filters) == (0, [], ["ongoing", ""])
    assert peer.ask(messages.ListTransactionsRequest(), version).unknown_state_filters == []


@pytest.mark.parametrize(
    "pattern",
    [
        "(", "[", "*", "\\", "a)", "x{2,1}", "{2}", "a**", "a++", "a{2}+", "a{1001}", "(a{2,1001}|b)", "\\p{Alpha}+",
        "\\p{", "(a)\\1", "(?=a)", "(?!a)", "(?<=a)",
        "(?>a)", "(?#a)", "(?x)a", "(?P=n)", "(?<n", "\\Z", "\\h", "a|(b|c++)", "((a++)*)",
    ],
)  # fmt: skip
def test_an_invalid_pattern_is_refused(peer, pattern):
    """KIP-1152: by RE2's rules. No other filter is checked then."""
    answer = peer.ask(messages.ListTransactionsRequest(transactional_id_pattern=pattern, state_filters=["none"]), 2)
    assert (answer.error_code, answer.unknown_state_filters) == (errors.INVALID_REGULAR_EXPRESSION, [])


@pytest.mark.parametrize(
    "pattern",
    [
        None, "", "a.*", "a{2}", "a{2,}", "a{1000}", "a{", "{", "a{1", "a{,3}", "}", "\\{", "[{]", "a*?", "\\Qa(b\\E.*",
        "\\Q(", "\\pL", "\\PN", "\\p{Lu}\\p{^Greek}",
        "(?<n>a)", "(?P<n>a)", "[[:alpha:]]", "\\d{3}-\\w*", "\\\\", "\\\\p{", "(?i)a", "a(?is-m:b)", "(?U)a*",
        "a(?-s)", "\\x{41}\\z", "[(?=]", "(a|b)*",
    ],
)  # fmt: skip
def test_a_valid_pattern_is_accepted(peer, pattern):
    """Also one that Python's `re` does not accept."""
    assert peer.ask(messages.ListTransactionsRequest(transactional_id_pattern=pattern), 2).error_code == errors.NONE


def test_a_long_pattern_is_not_compiled(peer, monkeypatch):
    """The longest pattern that is compiled takes two milliseconds."""
    longest = list_transactions.MAX_PATTERN_CHARACTERS
    read = []
    real = list_transactions._is_pattern
    monkeypatch.setattr(list_transactions, "_is_pattern", lambda text: read.append(len(text)) or real(text))
    for length in (longest, longest + 1):
        answer = peer.ask(messages.ListTransactionsRequest(transactional_id_pattern="(" * length), 2)
        assert answer.error_code == (errors.INVALID_REGULAR_EXPRESSION if length == longest else errors.NONE)
    assert read == [longest]
