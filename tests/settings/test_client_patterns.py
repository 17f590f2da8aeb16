"""Patterns of client-metrics subscriptions.

Python's matcher is the oracle for expressions that both support. The steps are limited where Python's matcher has no
limit.
"""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, strategies as st

from pykafkad.settings import client_patterns
from pykafkad.settings.client_patterns import compiled

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\W", "[a-c1]", "^", "$", ""])
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
def test_patterns_match_as_pythons_matcher(expression, text, flags):
    pattern = f"{flags}{expression}"
    assert compiled(pattern).matches(text) == (re.fullmatch(pattern, text) is not None)


@pytest.mark.parametrize(
    ("expression", "text", "is_taken"),
    [
        ("apache-kafka-.*", "apache-kafka-java", True),
        ("(?i)APACHE-[a-z]+", "apache-JAVA", True),
        (r"10\.0\.\d{1,3}\.\d{1,3}", "10.0.12.255", True),
        (r"10\.0\.\d{1,3}\.\d{1,3}", "10.0.12.2555", False),
        (r"\d", "١", False),
        ("(?:)", "", True),
    ],
)
def test_typical_patterns_of_subscriptions(expression, text, is_taken):
    assert compiled(expression).matches(text) is is_taken


@pytest.mark.parametrize(
    "expression", ["(a+)+b", "(a|a)*b", "(a*)*b", "a*" * 30 + "b", "(a{1,50}){1,50}b", "((a{0,9}){0,9}){0,9999999}b"]
)
def test_no_pattern_takes_more_than_its_steps(expression):
    """Each of these patterns would keep Python's matcher, and so the loop, busy for years."""
    began = time.process_time()
    assert compiled(expression).matches("a" * 32_000) is False
    assert compiled(expression).matches("a" * 40) is False
    assert time.process_time() - began < 2


def test_a_text_that_needs_too_many_steps_does_not_match(monkeypatch):
    assert compiled("a*").matches("a" * 1000)
    monkeypatch.setattr(client_patterns, "MAX_STEPS", 100)
    assert not compiled("a*").matches("a" * 1000)


@pytest.mark.parametrize(
    "expression",
    ["(", r"(a)\1", "(?=a)", "(?<!a)b", r"a\b", "(?i:a)", "(?>a)", "a*+", "(" * 50 + ")" * 50, "(" * 5000 + ")" * 5000],
)
def test_unsupported_expressions_are_refused(expression):
    with pytest.raises(ValueError, match=r".+"):
        compiled(expression)
