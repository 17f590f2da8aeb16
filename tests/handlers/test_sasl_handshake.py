"""SaslHandshake: refused on a listener without SASL."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.wire import messages


@pytest.mark.parametrize("version", (0, 1))
def test_it_is_refused_in_every_version(peer, version):
    answer = peer.ask(messages.SaslHandshakeRequest(mechanism="PLAIN"), version)
    assert answer.error_code == errors.ILLEGAL_SASL_STATE
