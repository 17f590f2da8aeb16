"""A broker with delegation tokens: users who ask for them, and clients that log in with them."""

from __future__ import annotations

from binascii import b2a_base64
from typing import Any

from pykafkad.wire import messages
from tests.server.sasl_world import log_in, sasl_world

SECRET = "the secret of the cluster"
SCRAM = "SCRAM-SHA-256"


def token_world(path: Any, **settings: Any) -> Any:
    """A broker with users alice, bob and root at a SASL listener, and with tokens."""
    return sasl_world(path, **{"delegation_token_secret_key": SECRET, **settings})


def user(world: Any, name: str = "alice") -> Any:
    """A connection of a user with a password."""
    peer = world.connect()
    assert log_in(peer, user=name).error_code == 0
    return peer


def create(peer: Any, *, renewers: tuple[str, ...] = (), life_ms: int = -1, version: int = 3, **fields: Any) -> Any:
    """The answer to CreateDelegationToken; `owner` is the name of another owner."""
    request = messages.CreateDelegationTokenRequest
    asked = [request.CreatableRenewers(principal_type="User", principal_name=name) for name in renewers]
    if "owner" in fields:
        fields = {"owner_principal_type": "User", "owner_principal_name": fields["owner"]}
    return peer.ask(request(renewers=asked, max_lifetime_ms=life_ms, **fields), version)


def renew(peer: Any, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    """The answer to RenewDelegationToken."""
    return peer.ask(messages.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), version)


def expire(peer: Any, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
    """The answer to ExpireDelegationToken."""
    return peer.ask(messages.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms), version)


def describe(peer: Any, *owners: str, every: bool = False, version: int = 3) -> Any:
    """The answer to DescribeDelegationToken about users of these names, or about every owner."""
    request = messages.DescribeDelegationTokenRequest
    asked = [request.DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in owners]
    return peer.ask(request(owners=None if every else asked), version)


def password(hmac: bytes) -> str:
    """What a token logs in with."""
    return b2a_base64(hmac, newline=False).decode()


def log_in_by(peer: Any, token: Any, mechanism: str = SCRAM, extension: str = "tokenauth=true") -> Any:
    """The last answer of a login with a token, which is the answer to CreateDelegationToken."""
    return log_in(peer, mechanism, token.token_id, password(bytes(token.hmac)), extension=extension)


def by_token(world: Any, token: Any) -> Any:
    """A connection that a token has opened."""
    peer = world.connect()
    assert log_in_by(peer, token).error_code == 0
    return peer
