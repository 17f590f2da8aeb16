"""A command's side of a login by GSSAPI, with a library of Kerberos that stands in for the real one."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad.cli.output import Failure
from pykafkad.sasl.kerberos import Gssapi
from pykafkad.sasl.step import DONE
from tests.sasl.kerberos_fake import WRAPPED, FakeContext

# kafka-python reads its schemas with what Python 3.11 warns of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]


class GSSError(Exception):
    """What the library raises."""


class Library:
    """What `import gssapi` finds: it keeps how it was called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.Name = lambda text, kind=None: f"{kind} {text}"
        self.NameType = SimpleNamespace(hostbased_service="service", kerberos_principal="principal")
        self.MechType = SimpleNamespace(kerberos="kerberos")
        self.exceptions = SimpleNamespace(GSSError=GSSError)
        self.Credentials, self.SecurityContext = self._credentials, self._context
        self.has_ticket = True

    def _credentials(self, **arguments: Any) -> str:
        self.calls.append(("credentials", arguments))
        return "credentials"

    def _context(self, **arguments: Any) -> Context:
        self.calls.append(("context", arguments))
        return Context(self)


class Context:
    """The client's side of `FakeContext`."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self.complete = False

    def step(self, token: bytes | None = None) -> bytes | None:
        if not self._library.has_ticket:
            raise GSSError("No credentials\n  were found")
        if token is None:
            return b"ticket:alice@REALM"
        if token != b"mutual":
            raise GSSError("it is another broker")
        self.complete = True
        return None

    def unwrap(self, token: bytes) -> Any:
        if not token.startswith(WRAPPED):
            raise GSSError("it is not wrapped")
        return SimpleNamespace(message=token.removeprefix(WRAPPED))

    def wrap(self, message: bytes, _: bool) -> Any:
        return SimpleNamespace(message=WRAPPED + message)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """It is found in place of the real one."""
    made = Library()
    monkeypatch.setitem(sys.modules, "gssapi", made)
    return made


def login(**own: str) -> Any:
    """A login, as a command makes it."""
    from pykafkad.cli.kerberos_login import KerberosLogin

    return KerberosLogin(own, host="broker.example.com", sasl_kerberos_service_name="kafka")


def test_a_login_goes_through(library: Library) -> None:
    """The other side is the broker's machine; it learns who one is, and no layer is chosen."""
    client = login()
    broker = Gssapi(FakeContext, lambda name: name.partition("@")[0])
    for _ in range(2):
        client.receive(broker.step(client.auth_bytes()).token)
        assert not client.is_done()
    step = broker.step(client.auth_bytes())
    assert (step.outcome, broker.user) == (DONE, "alice") and client.is_done() and client.is_authenticated()
    client.receive(step.token)
    ((_, arguments),) = library.calls
    assert (arguments["name"], arguments["creds"]) == ("service kafka@broker.example.com", None)


@pytest.mark.parametrize(
    ("own", "name", "store"),
    [
        ({"principal": "a@R"}, "principal a@R", None),
        ({"principal": "a@R", "keytab": "/k"}, "principal a@R", {"client_keytab": "/k", "ccache": "MEMORY:pykafkad"}),
        ({"tickets": "/t"}, None, {"ccache": "/t"}),
    ],
)
def test_whose_ticket_it_is(library: Library, own: dict[str, str], name: str | None, store: Any) -> None:
    """A keytab's tickets are kept in memory, so that nobody else's are replaced."""
    login(**own)
    _, arguments = library.calls[0]
    assert (arguments["name"], arguments["store"]) == (name, store)


def test_without_a_ticket(library: Library) -> None:
    """The library's reason, in one line."""
    library.has_ticket = False
    with pytest.raises(
        Failure, match=r"as a client of kafka@broker.example.com can't begin: No credentials were found"
    ):
        login()


def test_another_broker_is_found_out(library: Library) -> None:
    """By its first answer, and by its offer."""
    with pytest.raises(ValueError, match="it is another broker"):
        login().receive(b"something")
    client = login()
    client.receive(b"mutual")
    with pytest.raises(ValueError, match="it is not wrapped"):
        client.receive(b"\1\0\0\0")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """What to install."""
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(Failure, match=r"pip install 'pykafkad\[gssapi\]'"):
        login()
