"""The messages of OAUTHBEARER: RFC 7628's examples, and each thing that can be wrong with the first one."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pykafkad.sasl.compact_jwt import InvalidToken
from pykafkad.sasl.oauthbearer import OAuthBearer, Token
from pykafkad.sasl.step import DONE, GOES_ON, REFUSED
from tests.sasl.tokens import first_message
from tests.seeds import examples, seed_of_the_code

RFC_TOKEN = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
# RFC 7628, section 4.1; Kafka's clients leave out the host and the port.
RFC_FIRST = f"n,a=user@example.com,\1host=server.example.com\1port=143\1auth=Bearer {RFC_TOKEN}\1\1".encode()


class Exchange:
    """An exchange in which one token counts; `seen` are those that were shown, `told` the reasons of refusals."""

    def __init__(self, invalid: InvalidToken | None = None, principal: str = "user@example.com") -> None:
        self.seen: list[str] = []
        self.told: list[str] = []
        self.invalid = invalid

        def validate(token: str) -> Token:
            self.seen.append(token)
            if self.invalid is not None:
                raise self.invalid
            return Token(principal, 5)

        self.machine = OAuthBearer(validate, self.told.append)

    def step(self, token: bytes) -> Any:
        return self.machine.step(token)


def test_the_example_of_the_rfc() -> None:
    """Its token is shown, its extensions are read over, and the principal is the token's."""
    exchange = Exchange()
    step = exchange.step(RFC_FIRST.replace(b"143", b"1 4 3").replace(b"port", b"Port"))
    assert (step.outcome, step.token) == (DONE, b"")
    assert exchange.seen == [RFC_TOKEN]
    assert (exchange.machine.user, exchange.machine.expires_ms) == ("user@example.com", 5)


@pytest.mark.parametrize(
    "message",
    [
        first_message("x"),
        b"n,,\1auth=bEARER   x\1\1",
        b"n,a=user@example.com,\1a=b=c\1auth=Bearer x\1\1",
        b"n,,\1auth=Bearer y\1auth=Bearer x\1\1",
    ],
)
def test_forms_that_count(message: bytes) -> None:
    """The scheme in any case, several blanks, `=` in values; of two values of one key the last."""
    exchange = Exchange()
    assert exchange.step(message).outcome == DONE
    assert exchange.seen == ["x"]


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\1",
        b"n,,\1\1",
        b"n,,\1auth=Bearer x\1",
        b"n,,\1auth=Bearer x\1\1\1",
        b"n,,auth=Bearer x\1\1",
        b"n,\1auth=Bearer x\1\1",
        b"y,,\1auth=Bearer x\1\1",
        b"p=tls-unique,,\1auth=Bearer x\1\1",
        b"n,b=x,\1auth=Bearer x\1\1",
        b"n,a=,\1auth=Bearer x\1\1",
        b"n,a=x=y,\1auth=Bearer x\1\1",
        b"n,,\1auth=Basic x\1\1",
        b"n,,\1auth=Bearer\1\1",
        b"n,,\1auth=Bearerx\1\1",
        b"n,,\1auth=Bearer x y\1\1",
        b"n,,\1auth=Bearer x=y\1\1",
        b"n,,\1auth=Bearer x*\1\1",
        b"n,,\1Auth=Bearer x\1\1",
        b"n,,\1auth=Bearer \xff\1\1",
        b"n,,\1auth=Bearer x\1k=\1\1",
        b"n,,\1auth=Bearer x\1k1=v\1\1",
        b"n,,\1auth=Bearer x\1k=\xc3\xa4\1\1",
        b"n,,\1auth=Bearer x\1\1 ",
    ],
)
def test_forms_that_do_not(message: bytes) -> None:
    """Nobody is asked about a token then, and nothing is told."""
    exchange = Exchange()
    step = exchange.step(message)
    assert (step.outcome, step.problem, step.token) == (REFUSED, None, b"")
    assert exchange.seen == []


@pytest.mark.parametrize(
    ("invalid", "error"),
    [
        (InvalidToken("why"), '{"status":"invalid_token"}'),
        (InvalidToken("why", "[read, write]"), '{"status":"insufficient_scope", "scope":"[read, write]"}'),
    ],
)
def test_a_token_that_does_not_count_is_answered_first(invalid: InvalidToken, error: str) -> None:
    """By a status; when the client has seen it, the login ends with the same words. Only the log has the reason."""
    exchange = Exchange(invalid)
    step = exchange.step(first_message("x"))
    assert (step.outcome, step.token, step.problem) == (GOES_ON, error.encode(), None)
    step = exchange.step(b"\1")
    assert (step.outcome, step.problem) == (REFUSED, error)
    assert exchange.told == ["why"]


def test_a_client_may_show_another_token() -> None:
    """As in Kafka; the error of the one before is then forgotten."""
    exchange = Exchange(InvalidToken("why"))
    assert exchange.step(first_message("x")).outcome == GOES_ON
    exchange.invalid = None
    assert exchange.step(first_message("y")).outcome == DONE
    exchange = Exchange(InvalidToken("why"))
    assert exchange.step(first_message("x")).outcome == GOES_ON
    assert exchange.step(b"x").outcome == REFUSED
    assert exchange.step(b"\1").problem is None


def test_nobody_acts_as_another() -> None:
    """The authorization id is the token's principal, or is left out."""
    step = Exchange().step(first_message("x", "mallory"))
    assert step.outcome == REFUSED
    assert step.problem == (
        "Authentication failed: Client requested an authorization id (mallory) that is different from the token's "
        "principal name (user@example.com)"
    )
    assert Exchange().step(first_message("x", "user@example.com")).outcome == DONE


def test_any_bytes_give_a_step() -> None:
    """Broken copies of a good message, and of anything."""
    for number in range(examples(300)):
        chance = Random(f"{seed_of_the_code()} {number}")
        message = bytearray(RFC_FIRST if chance.random() < 0.8 else chance.randbytes(chance.randrange(60)))
        for _ in range(chance.randrange(4)):
            if message:
                message[chance.randrange(len(message))] = chance.choice(b"\0\1=,n a\xff")
        assert Exchange().step(bytes(message)).outcome in (DONE, REFUSED)
