"""CreateDelegationToken: every caller is refused, and the answer names the owner."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.wire import messages

ANONYMOUS = ("User", "ANONYMOUS")


def owner(answer):
    return answer.principal_type, answer.principal_name


@pytest.mark.parametrize("version", (1, 2, 3))
def test_every_caller_is_refused(peer, version):
    answer = peer.ask(messages.CreateDelegationTokenRequest(max_lifetime_ms=1), version)
    assert answer.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (
        owner(answer) == ANONYMOUS
        and answer.issue_timestamp_ms == answer.expiry_timestamp_ms == answer.max_timestamp_ms == -1
    )
    assert (answer.token_requester_principal_type, answer.token_requester_principal_name) == (
        ANONYMOUS if version == 3 else ("", "")
    )


def test_the_answer_names_the_requested_owner(peer):
    request = messages.CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="bob", max_lifetime_ms=1
    )
    assert owner(peer.ask(request, 3)) == ("User", "bob")
    request.owner_principal_type = None
    answer = peer.ask(request, 3)
    assert owner(answer) == ANONYMOUS and answer.error_code == errors.UNKNOWN_SERVER_ERROR
