"""A node that logs in at another, against the server's side of the same mechanisms, and against servers that lie."""

import pytest

from pykafkad.sasl import client
from pykafkad.sasl.client import Credentials, WrongServer
from pykafkad.sasl.plain import Plain
from pykafkad.sasl.scram import Scram, credential
from pykafkad.sasl.step import DONE, GOES_ON, REFUSED

SALT = b"0123456789abcdef"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
RFC_SALT = "W22ZaJ0SNY7soEsUEjb6gQ=="
RFC_SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def credentials(mechanism, user="node", password="secret"):
    return Credentials(mechanism, user, password, lambda count: bytes(range(count)))


def server(mechanism, password="secret", iterations=4096):
    made = credential(mechanism, password, SALT, iterations)
    return Scram(mechanism, lambda user: made, "servernonce", b"s" * 32)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["node", "a,b=c"])
def test_scram_with_the_servers_side(mechanism, user):
    exchange, other = credentials(mechanism, user).exchange(), server(mechanism)
    first = other.step(exchange.step(None))
    assert first.outcome == GOES_ON and not exchange.is_over
    final = other.step(exchange.step(first.token))
    assert final.outcome == DONE and other.user == user and not exchange.is_over
    assert exchange.step(final.token) == b"" and exchange.is_over


def test_a_wrong_password_is_refused():
    exchange, other = credentials("SCRAM-SHA-256", password="wrong").exchange(), server("SCRAM-SHA-256")
    assert other.step(exchange.step(other.step(exchange.step(None)).token)).outcome == REFUSED


def test_the_messages_are_those_of_the_standard():
    """The example of RFC 7677."""
    exchange = client.ScramClient(credentials("SCRAM-SHA-256", "user", "pencil"), NONCE)
    assert exchange.step(None) == f"n,,n=user,r={NONCE}".encode()
    nonce = f"{NONCE}{RFC_SERVER_NONCE}"
    final = exchange.step(f"r={nonce},s={RFC_SALT},i=4096".encode())
    assert final == f"c=biws,r={nonce},p={PROOF}".encode()
    assert exchange.step(f"v={SIGNATURE}".encode()) == b"" and exchange.is_over


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "no nonce, salt and iterations"),
        ("m=x,r=a,s=b", "no nonce, salt and iterations"),
        ("r={other},s=MDEyMw==,i=4096", "does not go on from ours"),
        ("r={nonce},s=MDEyMw==,i=4096", "does not go on from ours"),
        ("r={nonce}x,s=MDEyMw==,i=4095", "4095 iterations"),
        ("r={nonce}x,s=MDEyMw==,i=1000001", "1000001 iterations"),
        ("r={nonce}x,s=MDEyMw==,i=99999999999999999999999999", "99999999999999999999 iterations"),
        ("r={nonce}x,s=MDEyMw==,i=-4096", "-4096 iterations"),
        ("r={nonce}x,s=~,i=4096", "not base64"),
    ],
)
def test_a_server_that_lies_is_found_out(said, reason):
    """Before anything is computed that could tell of the password, or take for ever."""
    exchange = client.ScramClient(credentials("SCRAM-SHA-256"), "abc")
    exchange.step(None)
    with pytest.raises(WrongServer) as caught:
        exchange.step(said.format(nonce="abc", other="xbc1").encode())
    assert reason in str(caught.value)


@pytest.mark.parametrize("said", [b"", b"v=", b"v=AAAA", b"x", b"e=other-error", b"v=\xff", b"v=~"])
def test_a_server_must_show_that_it_knows_the_password(said):
    """Whoever else answers there is not whom this node looks for."""
    exchange, other = credentials("SCRAM-SHA-256").exchange(), server("SCRAM-SHA-256")
    exchange.step(other.step(exchange.step(None)).token)
    with pytest.raises(WrongServer):
        exchange.step(said)
    assert not exchange.is_over


def test_the_password_is_salted_once(monkeypatch):
    """Nodes log in again and again."""
    import hashlib

    calls, pbkdf2 = [], hashlib.pbkdf2_hmac
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", lambda *given: (calls.append(given), pbkdf2(*given))[1])
    known = credentials("SCRAM-SHA-256")
    for iterations in (4096, 4096, 5000):
        other = server("SCRAM-SHA-256", iterations=iterations)
        calls.clear()
        exchange = known.exchange()
        assert other.step(exchange.step(other.step(exchange.step(None)).token)).outcome == DONE
    assert len(calls) == 1 and calls[0][3] == 5000


def test_plain_with_the_servers_side():
    exchange, other = credentials("PLAIN").exchange(), Plain({"node": b"secret"})
    step = other.step(exchange.step(None))
    assert step.outcome == DONE and other.user == "node"
    assert exchange.step(step.token or b"") == b"" and exchange.is_over
