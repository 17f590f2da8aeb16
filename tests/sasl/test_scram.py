"""SCRAM against the vectors of its RFCs, and what it refuses."""

from __future__ import annotations

import base64
import random

import pytest

from pykafkad.sasl import scram
from pykafkad.sasl.scram import HASHES, TOKEN_BYTES_MAX, Scram, credential, usual_salt
from pykafkad.sasl.step import DONE, GOES_ON, REFUSED, Step
from tests.sasl.client import ScramClient
from tests.seeds import examples, sampled, seed_of_the_code

SECRET = b"s" * 32
VECTORS = {
    # RFC 5802, section 5.
    "sha1": (
        "QSXCR+Q6sek8bf92",
        "fyko+d2lbbFgONRv9qkxdawL",
        "3rfcNHYJY1ZVvWVs7j",
        "v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        "rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ),
    # RFC 7677, section 3.
    "sha256": (
        "W22ZaJ0SNY7soEsUEjb6gQ==",
        "rOprNGfwEbeRWgbNEkqO",
        "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
}


def exchange(mechanism: str = "SCRAM-SHA-256", **passwords: str) -> Scram:
    """A server that knows these users."""
    known = {name: credential(mechanism, password, b"salt", 4096) for name, password in passwords.items()}
    return Scram(mechanism, known.get, "servernonce", SECRET)


@pytest.mark.parametrize("hash_name", VECTORS)
def test_the_vectors_of_the_rfcs(hash_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every message, byte for byte."""
    monkeypatch.setitem(HASHES, "of the RFC", hash_name)
    salt, client_nonce, server_nonce, proof, signature = VECTORS[hash_name]
    known = credential("of the RFC", "pencil", base64.b64decode(salt), 4096)
    server = Scram("of the RFC", {"user": known}.get, server_nonce, SECRET)
    step = server.step(f"n,,n=user,r={client_nonce}".encode())
    assert step == Step(GOES_ON, f"r={client_nonce}{server_nonce},s={salt},i=4096".encode(), None)
    step = server.step(f"c=biws,r={client_nonce}{server_nonce},p={proof}".encode())
    assert step == Step(DONE, f"v={signature}".encode(), None)
    assert server.user == "user"


@pytest.mark.parametrize("mechanism", HASHES)
def test_a_client_that_knows_the_password_logs_in(mechanism: str) -> None:
    """Also with a comma and an equals sign in its name; and the server shows that it knows the keys."""
    server = exchange(mechanism, **{"a,b=c": "secret"})
    client = ScramClient(HASHES[mechanism], "a,b=c", "secret")
    step = server.step(client.final(server.step(client.first()).token))
    assert step.outcome == DONE and client.is_right(step.token) and server.user == "a,b=c"


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "secret"), ("nobody", "")])
def test_a_wrong_password_and_an_unknown_user_are_refused_alike(mechanism: str, user: str, password: str) -> None:
    """With the second message, and nothing tells which of both it was."""
    server = exchange(mechanism, alice="secret")
    client = ScramClient(HASHES[mechanism], user, password)
    step = server.step(client.first())
    assert step.outcome == GOES_ON
    assert server.step(client.final(step.token)) == Step(REFUSED, b"", None)


def test_a_salt_of_ours_looks_like_one_of_kafkas_tools() -> None:
    """Letters and digits, as of a number with 130 bits: a user that does not exist has such a one, too."""
    for number in range(100):
        salt = usual_salt(random.Random(number).randbytes(18))
        assert 20 <= len(salt) <= 26 and salt.isalnum() and salt.islower() | salt.isdigit()


def test_a_message_has_a_limit() -> None:
    """Its extensions would be looked at one by one."""
    for size, outcome in ((TOKEN_BYTES_MAX, GOES_ON), (TOKEN_BYTES_MAX + 1, REFUSED)):
        exchange = Scram("SCRAM-SHA-256", lambda _: None, "nonce", b"secret")
        first = b"n,,n=alice,r=x,e="
        assert exchange.step(first + b"y" * (size - len(first))).outcome == outcome


def test_an_unknown_user_has_the_same_salt_each_time() -> None:
    """And another one than the next user, or with another secret; of the form that Kafka's tools make."""

    def first(user: str, secret: bytes = SECRET) -> bytes:
        return Scram("SCRAM-SHA-256", {}.get, "nonce", secret).step(f"n,,n={user},r=x".encode()).token

    assert first("bob") == first("bob")
    assert len({first("bob"), first("eve"), first("bob", b"t" * 32)}) == 3
    salt = base64.b64decode(first("bob").split(b",")[1][2:])
    assert 24 <= len(salt) <= 26 and salt.isalnum() and salt.lower() == salt


def test_the_keys_of_an_unknown_user_open_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds the pretended credential still has no login."""
    made = credential("SCRAM-SHA-256", "guessed", b"salt", 4096)
    monkeypatch.setattr(scram, "pretended", lambda *_: made)
    server = Scram("SCRAM-SHA-256", {}.get, "nonce", SECRET)
    client = ScramClient("sha256", "nobody", "guessed")
    assert server.step(client.final(server.step(client.first()).token)).outcome == REFUSED


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=alice",
        b"n,,r=x,n=alice",
        b"y,,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"n,alice,n=alice,r=x",
        b"n,,m=new,n=alice,r=x",
        b"n,,n=,r=x",
        b"n,,n=alice,r=",
        b"n,,n=al=ice,r=x",
        b"n,,n=al=2cice,r=x",
        b"n,,n=alice,r=a b",
        b"n,,n=alice,r=\x7f",
        b"n,,n=alice,r=x,1=x",
        b"n,,n=alice,r=x,ext",
        b"n,,n=alice,r=x,",
        b"n,,n=alice\0,r=x",
        b"n,,n=\xc3\xa4,r=x",
        b"\xff",
        b"n,,n=alice,r=x,tokenauth=true",
    ],
)
def test_other_first_messages_are_refused(first: bytes) -> None:
    """Whether they break the grammar, or ask for what is not offered."""
    assert exchange(alice="secret").step(first) == Step(REFUSED, b"", None)


def test_somebody_elses_authorization_id_is_refused() -> None:
    """Alike for users that exist and those that don't; one's own is fine."""
    for user in ("alice", "nobody"):
        step = exchange(alice="secret").step(f"n,a=root,n={user},r=x".encode())
        assert step.outcome == REFUSED and "authorization id that is different from username" in step.problem
    client = ScramClient("sha256", "alice", "secret")
    client.header = "n,a=alice,"
    server = exchange(alice="secret")
    assert server.step(client.final(server.step(client.first()).token)).outcome == DONE


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b"c=biws", b"c=eSws"),
        (b"c=biws", b"c="),
        (b"c=biws", b"c=bi*s"),
        (b"c=biws", b"d=biws"),
        (b"servernonce", b"servernonc"),
        (b"servernonce", b"servernonce0"),
        (b"fyko", b"Fyko"),
        (b",r=", b",r=servernonce"),
        (b"p=", b"p=AAAA"),
        (b",p=", b",p=AAAA,p="),
        (b",p=", b",q="),
        (b",p=", b",1=x,p="),
        (b"c=biws,", b""),
    ],
)
def test_other_final_messages_are_refused(right: bytes, wrong: bytes) -> None:
    """A changed channel binding, a nonce that is not exactly ours, an impossible proof."""
    server = exchange(alice="secret")
    client = ScramClient("sha256", "alice", "secret")
    final = client.final(server.step(client.first()).token)
    assert right in final
    assert server.step(final.replace(right, wrong, 1)) == Step(REFUSED, b"", None)


@pytest.mark.parametrize("wrong", [{"header": "y,,"}, {"header": "n,a=bob,"}, {"header": ""}, {"more_nonce": "x"}])
def test_a_right_proof_of_something_else_is_refused(wrong: dict[str, str]) -> None:
    """Of another channel, or of a nonce that only begins as ours (CVE-2024-56128)."""
    server, client = exchange(alice="secret"), ScramClient("sha256", "alice", "secret")
    assert server.step(client.final(server.step(client.first()).token, **wrong)) == Step(REFUSED, b"", None)


def test_no_bit_of_a_final_message_may_change() -> None:
    """Each bit of it, one at a time."""
    client = ScramClient("sha256", "alice", "secret")
    size = len(client.final(exchange(alice="secret").step(client.first()).token))
    for position in sampled(range(size), 8):
        server = exchange(alice="secret")
        final = bytearray(client.final(server.step(client.first()).token))
        final[position] ^= 1 << position % 8
        assert server.step(bytes(final)).outcome == REFUSED


def test_random_tokens_never_log_in_and_never_raise() -> None:
    """Bytes at random, and messages of a real login with some of it changed."""
    chance = random.Random(seed_of_the_code())
    client = ScramClient("sha256", "alice", "secret")
    known = {"alice": credential("SCRAM-SHA-256", "secret", b"salt", 4096)}
    right = client.final(Scram("SCRAM-SHA-256", known.get, "n", SECRET).step(client.first()).token)
    for _ in range(examples(100_000)):
        server = Scram("SCRAM-SHA-256", known.get, "n", SECRET)
        for message in (client.first(), right):
            if chance.random() < 0.5:
                step = server.step(message)
            else:
                step = server.step(_changed(chance, message))
            if step.outcome != GOES_ON:
                break
        assert step.outcome == REFUSED or (step.outcome == DONE and server.user == "alice" and step.token)


def _changed(chance: random.Random, message: bytes) -> bytes:
    if chance.random() < 0.3:
        return chance.randbytes(chance.randrange(40))
    pieces = message.split(b",")
    place = chance.randrange(len(pieces))
    pieces[place] = chance.choice((b"", b"a=alice", b"m=x", b"tokenauth=true", pieces[place][:3], chance.randbytes(3)))
    if chance.random() < 0.3:
        chance.shuffle(pieces)
    return b",".join(pieces)
