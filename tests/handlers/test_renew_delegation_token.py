"""RenewDelegationToken: who may, and what the answer says; tests/metadata/test_delegation_tokens.py has the times."""

from __future__ import annotations

from pykafkad.wire import messages
from tests.handlers.delegation_token_changes import ChangesOfExpiry
from tests.server.token_world import renew


class TestRenewal(ChangesOfExpiry):
    change = staticmethod(renew)

    def request(self, hmac, period_ms):
        return messages.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
