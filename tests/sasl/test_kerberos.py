"""GSSAPI by a library that is none: the order of tokens, the layers, and what each mistake comes to."""

from __future__ import annotations

import pytest

from pykafkad.sasl.kerberos import OFFERED, Gssapi
from pykafkad.sasl.kerberos_names import ShortNamer
from pykafkad.sasl.step import DONE, GOES_ON, REFUSED, Step
from tests.sasl.kerberos_fake import WRAPPED, FakeContext

TICKET = b"ticket:alice@REALM"
CHOICE = WRAPPED + b"\1\1\0\0"


def exchange(*, mutual: bool = True) -> Gssapi:
    """A new one, with the usual rule for names."""
    return Gssapi(lambda: FakeContext(mutual), ShortNamer(["DEFAULT"], "REALM").name)


@pytest.mark.parametrize("choice", [CHOICE, WRAPPED + b"\7\0\0\0", CHOICE + b"bob", CHOICE + b"\xff"])
def test_a_ticket_logs_in(choice: bytes) -> None:
    """As the name of the ticket, whoever the client wants to act as; the layer may be one of many that it can."""
    made = exchange()
    assert made.step(TICKET) == Step(GOES_ON, b"mutual")
    assert made.step(b"") == Step(GOES_ON, WRAPPED + b"\1\1\0\0")
    assert made.step(choice) == Step(DONE, None)
    assert (made.user, made.expires_ms, made.is_by_token) == ("alice", None, False)


def test_the_layers_follow_at_once_where_the_ticket_needs_no_answer() -> None:
    """And the library may have tokens of its own before."""
    made = exchange(mutual=False)
    assert made.step(b"more") == Step(GOES_ON, b"more")
    assert made.step(TICKET) == Step(GOES_ON, WRAPPED + OFFERED)
    assert made.step(CHOICE).outcome == DONE


@pytest.mark.parametrize(
    ("tokens", "is_silent"),
    [
        ([b""], False),
        ([b"nonsense"], False),
        ([TICKET, b"x"], False),
        ([TICKET, TICKET], False),
        ([TICKET, b"", b""], False),
        ([TICKET, b"", b"\1\1\0\0"], False),
        ([TICKET, b"", WRAPPED + b"\2\1\0\0"], False),
        ([TICKET, b"", WRAPPED + b"\0"], False),
        ([TICKET, b"", WRAPPED], True),
        ([TICKET, b"", WRAPPED + b"\1\1\0"], True),
    ],
)
def test_mistakes_are_refused(tokens: list[bytes], is_silent: bool) -> None:
    """With a reason for the log; without an answer where Java's library stumbles."""
    made = exchange()
    *before, last = [made.step(token) for token in tokens]
    assert all(each.outcome == GOES_ON for each in before)
    assert (last.outcome, last.is_silent) == (REFUSED, is_silent) and last.reason
    assert (last.problem is not None) == is_silent and made.user == ""


def test_a_name_without_a_rule() -> None:
    """The login has come to its end, and there is nobody."""
    made = exchange()
    made.step(b"ticket:alice@OTHER")
    made.step(b"")
    step = made.step(CHOICE)
    assert step.outcome == DONE and made.user is None
    assert step.reason == "alice@OTHER: no rule of sasl.kerberos.principal.to.local.rules fits it"
