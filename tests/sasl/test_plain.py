"""PLAIN: who is let in, and what the others are told."""

from __future__ import annotations

import random

import pytest

from pykafkad.sasl.plain import Plain
from pykafkad.sasl.step import DONE, REFUSED, Step
from tests.seeds import examples, seed_of_the_code

USERS = {"alice": b"secret", "björn": "pässword".encode(), "empty": b""}


@pytest.mark.parametrize(
    ("token", "user"),
    [
        (b"\0alice\0secret", "alice"),
        (b"alice\0alice\0secret", "alice"),
        ("\0björn\0pässword".encode(), "björn"),
    ],
)
def test_a_user_with_the_right_password_logs_in(token: bytes, user: str) -> None:
    """With no other authorization id than its own name."""
    exchange = Plain(USERS)
    assert exchange.step(token) == Step(DONE, b"", None) and exchange.user == user


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0secret\0\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0empty\0", "Authentication failed: password not specified"),
        (b"\0alice\0Secret", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"\0\xff\0\xff", "Authentication failed: Invalid username or password"),
        (b"root\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (
            b"root\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_others_are_refused_with_kafkas_words(token: bytes, problem: str) -> None:
    """A wrong name and a wrong password alike."""
    exchange = Plain(USERS)
    assert exchange.step(token) == Step(REFUSED, b"", problem) and exchange.user == ""


def test_random_tokens_never_log_in() -> None:
    """And never raise."""
    chance = random.Random(seed_of_the_code())
    for _ in range(examples(100_000)):
        fields = [chance.choice((b"", b"alice", b"secret", chance.randbytes(3))) for _ in range(chance.randrange(5))]
        step = Plain(USERS).step(b"\0".join(fields))
        right = len(fields) == 3 and fields[1:] == [b"alice", b"secret"] and fields[0] in (b"", b"alice")
        assert (step.outcome == DONE) == right
