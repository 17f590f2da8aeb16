"""Regular expressions: RE2 matches them in linear time, and says which it does not know."""

from __future__ import annotations

import re
import sys
import time

import pytest
from hypothesis import given, strategies as st

from pykafkad import config
from pykafkad.errors import KafkaError
from pykafkad.settings.regular_expressions import LibraryMissing, compiled, matches

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\W", "[a-c1]", "^", ""])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(lambda left, right: left + right, inner, inner),
        st.builds(lambda left, right: f"(?:{left}|{right})", inner, inner),
        st.builds(
            lambda item, how: f"({item}){how}", inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"])
        ),
    ),
    max_leaves=6,
)


@given(EXPRESSIONS, st.text("abc1 \n", max_size=6), st.sampled_from(["", "(?i)", "(?s)"]))
def test_patterns_match_as_pythons_matcher(expression: str, text: str, flags: str) -> None:
    """Python's matcher is the oracle for expressions that both know."""
    assert matches(flags + expression, text) == (re.fullmatch(flags + expression, text) is not None)


@pytest.mark.parametrize(
    ("expression", "text", "is_taken"),
    [
        ("apache-kafka-.*", "apache-kafka-java", True),
        ("(?i)APACHE-[a-z]+", "apache-JAVA", True),
        (r"10\.0\.\d{1,3}\.\d{1,3}", "10.0.12.255", True),
        (r"10\.0\.\d{1,3}\.\d{1,3}", "10.0.12.2555", False),
        (r"\bkafka\b-.*", "kafka-x", True),
        (r"\d", "١", False),
        ("(?:)", "", True),
    ],
)
def test_typical_patterns_of_subscriptions(expression: str, text: str, is_taken: bool) -> None:
    """The whole of a text is matched; digits are ASCII's, as in Java."""
    assert matches(expression, text) is is_taken


@pytest.mark.parametrize("expression", ["(a+)+b", "(a|a)*b", "(a*)*b", "a*" * 30 + "b", "(a{1,50}){1,20}b"])
def test_no_pattern_takes_long(expression: str) -> None:
    """Each of these patterns would keep Python's matcher, and so the loop, busy for years."""
    began = time.process_time()
    assert matches(expression, "a" * 32_000) is False
    assert time.process_time() - began < 2


@pytest.mark.parametrize("expression", ["(", r"(a)\1", "(?=a)", "(?<!a)b", "(?>a)", "a*+", "(a{1000}){1000}"])
def test_unknown_and_too_large_expressions_are_refused(expression: str) -> None:
    """What RE2 does not have, and what would not fit into its memory."""
    with pytest.raises(ValueError, match=r".+"):
        compiled(expression)


def test_a_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to whoever sets a pattern."""
    monkeypatch.setitem(sys.modules, "re2", None)
    compiled.cache_clear()
    with pytest.raises(LibraryMissing, match=r"pip install 'pykafkad\[regex\]'"):
        compiled("a")
    with pytest.raises(KafkaError, match=r"pip install 'pykafkad\[regex\]'"):
        config._check_client_metrics({"match": "client_id=a"})
