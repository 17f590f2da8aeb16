"""DescribeDelegationToken: every caller is refused."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.wire import messages


@pytest.mark.parametrize("version", (1, 2, 3))
def test_every_caller_is_refused(peer, version):
    answer = peer.ask(messages.DescribeDelegationTokenRequest(owners=None), version)
    assert answer.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert answer.tokens == []
