"""A Python callable that decides who logs in: what it is asked, and what comes of each of its answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from pykafkad import config
from pykafkad.errors import ConfigError
from pykafkad.sasl.client import Credentials, ScramClient
from pykafkad.sasl.offer import Offer
from pykafkad.sasl.scram import USUAL_ITERATIONS
from pykafkad.sasl.step import DONE, GOES_ON, REFUSED

MODULE = "logins_of_a_test"
SETTING = "pykafkad.sasl.callback"


class Directory:
    """Stands in for whom a callable asks. `answers` are by user or token; `asked` is what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str | None, Any] = {}
        self.asked: list[tuple[str, str | None, str | None]] = []
        self.warnings: list[str] = []

    def decide(self, mechanism: str, user: str | None, secret: str | None) -> Any:
        self.asked.append((mechanism, user, secret))
        answer = self.answers.get(secret if user is None else user)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def offer(self, mechanisms: str, **named: str) -> Offer:
        values = {"sasl.enabled.mechanisms": mechanisms, SETTING: f"{MODULE}:decide", **named}
        settings = config.Settings.from_properties({name: (text, "test") for name, text in values.items()})
        nobody: Any = None
        return Offer(
            settings, "X", lambda mechanism, user: None, bytes, lambda: 0, print, nobody, warn=self.warnings.append
        )


@pytest.fixture
def directory() -> Iterator[Directory]:
    made = Directory()
    module: Any = ModuleType(MODULE)
    module.decide, module.number = made.decide, 1
    sys.modules[MODULE] = module
    yield made
    del sys.modules[MODULE]


def test_a_user_of_plain_logs_in_if_the_callable_says_so(directory: Directory) -> None:
    """It needs no sasl.jaas.config, and it may wait, so that it is asked beside the loop."""
    directory.answers = {"alice": True, "bob": False}
    offer = directory.offer("PLAIN")
    exchange = offer.exchange("PLAIN")
    assert exchange.may_block and exchange.step(b"\0alice\0secret").outcome == DONE and exchange.user == "alice"
    assert (
        offer.exchange("PLAIN").step(b"\0bob\0secret").problem == "Authentication failed: Invalid username or password"
    )
    assert offer.exchange("PLAIN").step(b"\0carol\0").outcome == REFUSED
    assert directory.asked == [("PLAIN", "alice", "secret"), ("PLAIN", "bob", "secret")] and directory.warnings == []
    other = offer.exchange("PLAIN").step(b"root\0alice\0secret")
    assert other.problem is not None and "authorization id" in other.problem


@pytest.mark.parametrize("answer", [1, "yes", object(), [True], OSError("secret")])
def test_only_true_lets_in(directory: Directory, answer: object) -> None:
    """Not what counts as true, and no exception; the log is told, without the secret."""
    directory.answers = {"alice": answer}
    assert directory.offer("PLAIN").exchange("PLAIN").step(b"\0alice\0secret").outcome == REFUSED
    (warning,) = directory.warnings
    assert warning.startswith(f"{SETTING}={MODULE}:decide r") and "secret" not in warning


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_of_scram_has_the_password_that_the_callable_gives(directory: Directory, mechanism: str) -> None:
    """Another password, and a user who does not exist, are refused at the end; each has the same kind of salt."""
    directory.answers = {"alice": "secret", "bob": 5, "dave": ""}
    offer = directory.offer(mechanism)
    outcomes = {}
    salts = []
    for user, password in (("alice", "secret"), ("alice", "wrong"), ("bob", "5"), ("carol", "secret"), ("dave", "")):
        exchange = offer.exchange(mechanism)
        client = ScramClient(Credentials(mechanism, user, password, bytes), "nonce")
        first = exchange.step(client.step(None))
        assert first.outcome == GOES_ON and f",i={USUAL_ITERATIONS}".encode() in first.token
        salts.append((user, len(first.token.split(b",s=")[1])))
        outcomes[user, password] = exchange.step(client.step(first.token)).outcome
    assert outcomes.pop(("alice", "secret")) == DONE and set(outcomes.values()) == {REFUSED}
    assert len({length for _, length in salts}) <= 2, salts
    assert directory.asked[0] == (mechanism, "alice", None)
    assert directory.warnings == [
        f"{SETTING}={MODULE}:decide returned a value of type int for {mechanism}, not a password or None"
    ]


def test_a_token_is_whose_the_callable_says(directory: Directory) -> None:
    """With the end of its life, if it says that too."""
    directory.answers = {"one": "alice", "two": ("bob", 5_000), "three": ("carol", "soon"), "four": "", "five": 7}
    offer = directory.offer("OAUTHBEARER")
    found = {}
    for token in ("one", "two", "three", "four", "five", "six"):
        exchange: Any = offer.exchange("OAUTHBEARER")
        step = exchange.step(b"n,,\x01auth=Bearer " + token.encode() + b"\x01\x01")
        found[token] = (step.outcome, exchange.user, exchange.expires_ms)
        assert exchange.may_block
    assert found.pop("one") == (DONE, "alice", None) and found.pop("two") == (DONE, "bob", 5_000)
    assert set(found.values()) == {(GOES_ON, "", None)}
    assert directory.asked[0] == ("OAUTHBEARER", None, "one") and len(directory.warnings) == 3


def test_a_mechanism_may_have_one_of_its_own(directory: Directory) -> None:
    """The closest setting counts, and nobody else is asked."""
    own = {f"listener.name.x.plain.{SETTING}": f"{MODULE}:decide", SETTING: ""}
    offer = directory.offer("PLAIN,SCRAM-SHA-256", **own)
    assert offer.exchange("PLAIN").may_block and not offer.exchange("SCRAM-SHA-256").may_block


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("decide", "is not of the form module:function"),
        (f"{MODULE}:", "is not of the form module:function"),
        ("no_such_module:decide", "no_such_module cannot be imported: ModuleNotFoundError"),
        (f"{MODULE}:other", f"{MODULE} has no function other"),
        (f"{MODULE}:number", f"{MODULE} has no function number"),
    ],
)
def test_what_cannot_be_called_is_refused_at_the_start(directory: Directory, text: str, problem: str) -> None:
    """The error names the setting and what is wrong with it."""
    with pytest.raises(ConfigError, match=rf"^{SETTING}: .*{problem}"):
        directory.offer("PLAIN", **{SETTING: text})


def test_gssapi_has_no_callable(directory: Directory) -> None:
    """One that is meant for it alone is a mistake."""
    with pytest.raises(ConfigError, match=r"listener.name.x.gssapi.pykafkad.sasl.callback: no callable decides"):
        directory.offer("GSSAPI", **{f"listener.name.x.gssapi.{SETTING}": f"{MODULE}:decide", SETTING: ""})
