"""Logins with delegation tokens: who the caller is, for how long, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.sasl.scram import HASHES
from pykafkad.server import token_logins
from pykafkad.server.logs import Sink, process_logs
from pykafkad.server.session import EXPIRED, READY
from pykafkad.wire import messages
from tests.sasl.client import ScramClient
from tests.server.sasl_world import add_scram_user, authenticate, handshake, log_in, sasl_world
from tests.server.token_world import (
    SECRET,
    by_token,
    create,
    describe,
    expire,
    log_in_by,
    password,
    renew,
    token_world,
    user,
)
from tests.simulation.world import NOTHING

METADATA = messages.MetadataRequest(topics=[])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Any]:
    """A broker with a SASL listener and delegation tokens."""
    made = token_world(tmp_path / "data")
    yield made
    assert made.runtime.metrics.unexpected_errors == 0


def refused(peer: Any, answer: Any) -> bool:
    """Whether a login was refused; its answer comes a moment later."""
    if answer is NOTHING:
        peer.world.advance(0.2)
        answer = peer.answers[-1]
    return bool(answer.error_code == errors.SASL_AUTHENTICATION_FAILED)


@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize(
    "extension", ("tokenauth=true", "tokenauth=TRUE", "tokenauth=no,tokenauth=True", "a=b,tokenauth=true")
)
def test_a_token_logs_in_as_its_owner(world: Any, mechanism: str, extension: str) -> None:
    """With its id as the name and its HMAC as the password; the login counts until the token expires."""
    token = create(user(world, "bob"), life_ms=90_000)
    peer = world.connect()
    answer = log_in_by(peer, token, mechanism, extension)
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 90_000)
    session = peer.connection.session
    assert session.principal == "User:bob" and session.login.is_by_token and session.stage is READY
    assert peer.ask(METADATA, 12).brokers
    assert not user(world, "bob").connection.session.login.is_by_token


def test_a_token_of_an_owner_with_a_colon(world: Any) -> None:
    """The name is everything behind the type."""
    assert by_token(world, create(user(world), owner="a:b")).connection.session.principal == "User:a:b"


def test_a_wrong_hmac_an_unknown_id_and_a_missing_extension_are_refused(world: Any) -> None:
    """An unknown id at once, as in Kafka."""
    one, other = create(user(world)), create(user(world))
    peer = world.connect()
    assert refused(peer, log_in(peer, "SCRAM-SHA-256", one.token_id, password(other.hmac), extension="tokenauth=true"))
    for extension in ("", "tokenauth=false", "tokenauth=true,tokenauth=x", "TOKENAUTH=true"):
        peer = world.connect()
        assert refused(peer, log_in_by(peer, one, extension=extension))
    for name in ("nobody", "alice"):
        peer = world.connect()
        assert peer.ask(messages.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
        first = f"n,,n={name},r=x,tokenauth=true".encode()
        assert refused(peer, peer.ask(messages.SaslAuthenticateRequest(auth_bytes=first), 2))


def test_an_authorization_id_is_the_tokens_id(world: Any) -> None:
    """Not the owner's name."""
    token = create(user(world))
    for name, is_right in ((token.token_id, True), ("alice", False)):
        peer = world.connect()
        assert peer.ask(messages.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
        first = f"n,a={name},n={token.token_id},r=x,tokenauth=true".encode()
        answer = peer.ask(messages.SaslAuthenticateRequest(auth_bytes=first), 2)
        assert (answer is not NOTHING and answer.error_code == 0) is is_right


def test_a_login_ends_with_its_token_and_is_renewed_with_it(world: Any) -> None:
    """The client logs in again on the same connection (KIP-368), also once its owner's password did."""
    alice = user(world)
    token = create(alice, life_ms=100_000)
    renew(alice, token.hmac, 10_000)
    peer = world.connect()
    assert log_in_by(peer, token).session_lifetime_ms == 10_000
    renew(alice, token.hmac, 50_000)
    world.advance(5)
    assert log_in_by(peer, token).session_lifetime_ms == 45_000
    world.advance(44.9)
    assert peer.ask(METADATA, 12).brokers
    world.advance(0.2)
    assert peer.connection.session.stage is EXPIRED


def test_a_token_that_has_ended_serves_no_request_that_came_with_it(world: Any) -> None:
    """The last message of the login and a request come at once."""
    alice = user(world)
    token = create(alice)
    assert expire(alice, token.hmac, 1).error_code == 0
    world.advance(0.002)
    peer = world.connect()
    handshake(peer, "SCRAM-SHA-256")
    client = ScramClient(
        HASHES["SCRAM-SHA-256"], token.token_id, password(bytes(token.hmac)), extension="tokenauth=true"
    )
    challenge = authenticate(peer, client.first())
    before = len(peer.answers)
    last = messages.SaslAuthenticateRequest(auth_bytes=client.final(challenge.auth_bytes))
    peer.put_on_the_wire(peer.encode(last, 2) + peer.encode(METADATA, 12))
    world.turn()
    assert [type(answer).__name__ for answer in peer.answers[before:]] == ["SaslAuthenticateResponse"]


def test_a_login_by_password_has_no_end_that_a_token_had(world: Any) -> None:
    """The client is told that it need not log in again."""
    add_scram_user(world, "alice", "secret", "SCRAM-SHA-256")
    token = create(user(world), life_ms=10_000)
    peer = world.connect()
    assert log_in_by(peer, token).session_lifetime_ms == 10_000
    world.advance(2)
    assert log_in(peer, "SCRAM-SHA-256", "alice", "secret").session_lifetime_ms == 0
    world.advance(20)
    assert peer.ask(METADATA, 12).brokers


def test_a_token_that_has_ended_logs_nobody_in(world: Any) -> None:
    """One that has expired and is not yet removed opens a login that ends at once, as in Kafka."""
    alice = user(world)
    token = create(alice)
    assert log_in_by(world.connect(), token).error_code == 0
    assert expire(alice, token.hmac, 1).error_code == 0
    world.advance(0.002)
    peer = world.connect()
    assert log_in_by(peer, token).session_lifetime_ms == 0
    world.turn()
    assert peer.connection.session.stage is EXPIRED
    assert expire(alice, token.hmac).error_code == 0
    peer = world.connect()
    assert peer.ask(messages.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
    first = f"n,,n={token.token_id},r=x,tokenauth=true".encode()
    assert refused(peer, peer.ask(messages.SaslAuthenticateRequest(auth_bytes=first), 2))


def test_tokens_survive_a_restart_with_the_same_secret_only(tmp_path: Path) -> None:
    """Another secret makes other HMACs, and without one there are no tokens."""
    world = token_world(tmp_path)
    token = create(user(world))
    world.stop()
    world = token_world(tmp_path)
    assert describe(user(world), every=True).tokens[0].hmac == token.hmac
    assert by_token(world, token).ask(METADATA, 12).brokers
    world.stop()
    world = token_world(tmp_path, delegation_token_secret_key="another")
    peer = world.connect()
    assert refused(peer, log_in_by(peer, token))
    assert renew(user(world), token.hmac).error_code == errors.DELEGATION_TOKEN_NOT_FOUND
    world.stop()
    world = sasl_world(tmp_path)
    peer = world.connect()
    assert peer.ask(messages.SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1).error_code == 0
    first = f"n,,n={token.token_id},r=x,tokenauth=true".encode()
    assert refused(peer, peer.ask(messages.SaslAuthenticateRequest(auth_bytes=first), 2))
    world.stop()


def test_a_bounded_number_of_credentials_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is made once while it is kept."""
    made: list[str] = []
    monkeypatch.setattr(token_logins, "CREDENTIALS_MAX", 2)
    monkeypatch.setattr(
        token_logins.scram, "credential", lambda mechanism, *_: made.append(mechanism) or (mechanism, len(made))
    )
    record = messages.DelegationTokenRecord(owner="User:a", token_id="t", expiration_timestamp=5)
    image = type("Image", (), {"delegation_tokens": dict.fromkeys("xyz", record)})()
    logins = token_logins.TokenLogins(SECRET, bytes, lambda: image)
    for _ in range(2):
        assert [logins.find("SCRAM-SHA-256", name).credential[1] for name in "xy"] == [1, 2]
    assert logins.find("SCRAM-SHA-256", "z").credential[1] == 3
    assert logins.find("SCRAM-SHA-512", "z") == (("SCRAM-SHA-512", 4), "a", 5)
    assert logins.find("SCRAM-SHA-256", "z").credential[1] == 3 and len(logins._credentials) == 2
    assert logins.find("SCRAM-SHA-256", "nobody") is None


def test_no_secret_is_written_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the secret nor an HMAC is in the log lines, at debug, or in the broker's files."""
    lines: list[bytes] = []
    monkeypatch.setattr(process_logs(), "sink", Sink(lambda data: lines.append(data) or len(data)))
    world = token_world(tmp_path / "data")
    world.broker.logs.set_level("debug")
    world.controller.logs.set_level("debug")
    alice = user(world)
    token = create(alice)
    by_token(world, token)
    renew(alice, token.hmac)
    describe(alice, every=True)
    world.advance(8 * 86_400)
    user(world)
    world.stop()
    assert lines
    written = b"".join(lines) + b"".join(each.read_bytes() for each in (tmp_path / "data").rglob("*") if each.is_file())
    assert token.token_id.encode() in written
    hmac = bytes(token.hmac)
    for secret in (SECRET.encode(), hmac, password(hmac).encode(), hmac.hex().encode(), repr(hmac)[2:-1].encode()):
        assert secret not in written
