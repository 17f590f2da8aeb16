"""ExpireDelegationToken: who may, and what the answer says; tests/metadata/test_delegation_tokens.py has the times."""

from __future__ import annotations

from pykafkad import errors
from pykafkad.wire import messages
from tests.handlers.delegation_token_changes import ChangesOfExpiry
from tests.server.token_world import create, expire, user


class TestExpiry(ChangesOfExpiry):
    change = staticmethod(expire)

    def request(self, hmac, period_ms):
        return messages.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)


def test_a_negative_period_ends_the_token(tokens):
    alice = user(tokens)
    hmac = create(alice).hmac
    answer = expire(alice, hmac, -1)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, tokens.runtime.now_ms)
    assert not tokens.broker.image.delegation_tokens
    assert expire(alice, hmac, -1).error_code == errors.DELEGATION_TOKEN_NOT_FOUND
