"""Logins by tokens that an issuer has signed, whose keys are in a file."""

from __future__ import annotations

from pathlib import Path

from pykafkad import errors
from pykafkad.sasl.token_rules import SIGNED
from pykafkad.wire import messages
from tests.sasl.issuer import jwk, key_set, signed
from tests.sasl.tokens import first_message
from tests.server.sasl_world import authenticate, handshake, sasl_world


def test_a_signed_token_logs_in(tmp_path: Path) -> None:
    """And one that another issuer has signed does not, until its key is in the file."""
    path = tmp_path / "keys.json"
    path.write_bytes(key_set(jwk("ES256", kid="one")))
    world = sasl_world(
        tmp_path / "data",
        mechanisms="OAUTHBEARER",
        listener_name_guarded_oauthbearer_sasl_server_callback_handler_class=SIGNED,
        sasl_oauthbearer_jwks_endpoint_url=f"file://{path}",
    )
    now = world.clock.now_ms() // 1000
    claims = {"sub": "alice", "iat": now, "exp": now + 20}
    peer, other = world.connect(), world.connect()
    for each, number, key_id in ((peer, 0, "one"), (other, 1, "two")):
        assert handshake(each, "OAUTHBEARER").error_code == errors.NONE
        token = first_message(signed(claims, number=number, kid=key_id))
        answer = authenticate(each, token)
        if each is peer:
            assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (errors.NONE, b"", 20_000)
            assert peer.connection.session.principal == "User:alice"
            assert peer.ask(messages.MetadataRequest(topics=[]), 12).brokers
        else:
            assert answer.auth_bytes == b'{"status":"invalid_token"}'
            path.write_bytes(key_set(jwk("ES256", kid="one"), jwk("ES256", 1, kid="two")))
            answer = authenticate(each, token)
            assert (answer.error_code, answer.auth_bytes) == (errors.NONE, b"")
    assert world.runtime.metrics.unexpected_errors == 0
