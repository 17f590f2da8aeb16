"""What RenewDelegationToken and ExpireDelegationToken have in common: who may, and what the answer says."""

from __future__ import annotations

import pytest

from pykafkad import errors
from tests.server.sasl_world import sasl_world
from tests.server.token_world import by_token, create, user


class ChangesOfExpiry:
    """Tests of one of the two: `request(hmac, period_ms)` makes a message, and `change(peer, hmac, period_ms, version)`
    has it answered."""

    @pytest.mark.parametrize("version", (1, 2))
    def test_a_caller_without_a_login_is_refused(self, peer, version):
        answer = peer.ask(self.request(b"x", 1), version)
        assert answer.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert answer.expiry_timestamp_ms == -1

    @pytest.mark.parametrize("version", (1, 2))
    def test_its_owner_and_its_renewers_may(self, tokens, version):
        hmac = create(user(tokens), renewers=("bob",)).hmac
        now_ms = tokens.runtime.now_ms
        for name, period_ms in (("alice", 50), ("bob", 60)):
            answer = self.change(user(tokens, name), hmac, period_ms, version)
            assert (answer.error_code, answer.expiry_timestamp_ms) == (0, now_ms + period_ms)
            (record,) = tokens.broker.image.delegation_tokens.values()
            assert record.expiration_timestamp == now_ms + period_ms
        answer = self.change(user(tokens, "root"), hmac, 1, version)
        assert (answer.error_code, answer.expiry_timestamp_ms) == (errors.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
        answer = self.change(user(tokens), b"", 1, version)
        assert (answer.error_code, answer.expiry_timestamp_ms) == (errors.DELEGATION_TOKEN_NOT_FOUND, 0)

    def test_what_has_expired_is_an_error(self, tokens):
        alice = user(tokens)
        hmac = create(alice, life_ms=1000).hmac
        tokens.advance(1.002)
        assert self.change(alice, hmac, 5).error_code == errors.DELEGATION_TOKEN_EXPIRED

    def test_a_token_may_not(self, tokens):
        token = create(user(tokens))
        answer = self.change(by_token(tokens, token), token.hmac, 5)
        assert (answer.error_code, answer.expiry_timestamp_ms) == (errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)

    def test_without_a_secret_it_is_disabled(self, tmp_path):
        answer = self.change(user(sasl_world(tmp_path)), b"x")
        assert (answer.error_code, answer.expiry_timestamp_ms) == (errors.DELEGATION_TOKEN_AUTH_DISABLED, 0)
