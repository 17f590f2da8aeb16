"""A broker with a SASL listener, and clients that log in."""

from __future__ import annotations

import struct
from typing import Any

from pykafkad.metadata.credentials import NUMBERS
from pykafkad.sasl.scram import HASHES
from pykafkad.server.listeners import Listener
from pykafkad.wire import messages
from tests.sasl.client import ScramClient
from tests.simulation.world import World

MECHANISMS = ("PLAIN", *HASHES)
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_alice="alice-secret" user_bob="bob-secret" user_root="root-secret";'
)
OAUTH_JAAS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


def sasl_world(path: Any, mechanisms: str = ",".join(MECHANISMS), **settings: Any) -> Any:
    """A broker whose only listener is GUARDED, by SASL_PLAINTEXT, with users alice, bob and root."""
    settings = {
        "sasl_enabled_mechanisms": mechanisms,
        "listener_name_guarded_plain_sasl_jaas_config": JAAS,
        "listener_security_protocol_map": "GUARDED:SASL_PLAINTEXT",
        **settings,
    }
    if "OAUTHBEARER" in mechanisms:
        settings.setdefault("listener_name_guarded_oauthbearer_sasl_jaas_config", OAUTH_JAAS)
    listener = Listener("GUARDED", "localhost", 9092, None, "SASL_PLAINTEXT")
    return World(path, listening=[listener], **settings)


def handshake(peer: Any, mechanism: str, version: int = 1) -> Any:
    """The answer to SaslHandshake."""
    return peer.ask(messages.SaslHandshakeRequest(mechanism=mechanism), version)


def authenticate(peer: Any, token: bytes, version: int = 2) -> Any:
    """The answer to SaslAuthenticate."""
    return peer.ask(messages.SaslAuthenticateRequest(auth_bytes=token), version)


def log_in(
    peer: Any,
    mechanism: str = "PLAIN",
    user: str = "alice",
    password: str = "",
    version: int = 2,
    *,
    extension: str = "",
) -> Any:
    """A whole login; the last answer."""
    assert handshake(peer, mechanism).error_code == 0
    password = password or f"{user}-secret"
    if mechanism == "PLAIN":
        return authenticate(peer, f"\0{user}\0{password}".encode(), version)
    client = ScramClient(HASHES[mechanism], user, password, extension=extension)
    answer = authenticate(peer, client.first(), version)
    assert answer.error_code == 0, answer
    answer = authenticate(peer, client.final(answer.auth_bytes), version)
    if answer.__class__ is messages.SaslAuthenticateResponse and answer.error_code == 0:
        assert client.is_right(bytes(answer.auth_bytes))
    return answer


def bare(peer: Any, token: bytes) -> bytes | None:
    """The broker's answer to a token without a header; None without one."""
    peer.socket.send(struct.pack(">i", len(token)) + token)
    peer.world.runtime.reactor.turn(0)
    data = bytes(peer.socket.inbox)
    peer.socket.inbox.clear()
    assert data == b"" or struct.unpack_from(">i", data)[0] == len(data) - 4
    return data[4:] if data else None


def add_scram_user(world: Any, user: str, password: str, mechanism: str) -> None:
    """Add the user as an administrator does."""
    import hashlib

    peer = world.connect()
    log_in(peer, user="root")
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), b"salt", 4096)
    upsertion = messages.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=user, mechanism=NUMBERS[mechanism], iterations=4096, salt=b"salt", salted_password=salted
    )
    answer = peer.ask(messages.AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0)
    assert answer.results[0].error_code == 0
    peer.end()
