"""ExpireDelegationToken: every caller is refused."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.wire import messages


@pytest.mark.parametrize("version", (1, 2))
def test_every_caller_is_refused(peer, version):
    answer = peer.ask(messages.ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=1), version)
    assert answer.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert answer.expiry_timestamp_ms == -1
