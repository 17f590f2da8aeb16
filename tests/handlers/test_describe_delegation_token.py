"""DescribeDelegationToken: which tokens a caller sees."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.wire import messages
from tests.handlers.test_create_delegation_token import allow
from tests.server.sasl_world import sasl_world
from tests.server.token_world import by_token, create, describe, token_world, user


def ids(answer):
    assert answer.error_code == 0
    return {token.token_id for token in answer.tokens}


@pytest.mark.parametrize("version", (1, 2, 3))
def test_a_caller_without_a_login_is_refused(peer, version):
    answer = peer.ask(messages.DescribeDelegationTokenRequest(owners=None), version)
    assert answer.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert answer.tokens == []


@pytest.mark.parametrize("version", (1, 2, 3))
def test_a_token_is_shown_with_its_hmac(tokens, version):
    alice = user(tokens)
    made = create(alice, renewers=("bob",))
    (row,) = describe(alice, every=True, version=version).tokens
    assert (row.token_id, row.hmac, row.principal_type, row.principal_name) == (
        made.token_id,
        made.hmac,
        "User",
        "alice",
    )
    assert (row.issue_timestamp, row.expiry_timestamp, row.max_timestamp) == (
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
    )
    assert [(each.principal_type, each.principal_name) for each in row.renewers] == [("User", "bob")]
    assert row.token_requester_principal_name == ("alice" if version == 3 else "")


def test_owners_are_chosen(tokens):
    """Without an authorizer everybody sees all; an empty list is nobody's."""
    alice, bob = user(tokens), user(tokens, "bob")
    one, other = create(alice).token_id, create(bob, renewers=("root",)).token_id
    assert ids(describe(alice, every=True)) == {one, other}
    assert ids(describe(alice)) == set()
    assert ids(describe(alice, "bob")) == ids(describe(alice, "root")) == {other}
    assert ids(describe(alice, "alice", "bob")) == {one, other}
    assert ids(describe(alice, "nobody")) == set()


def test_a_caller_sees_its_own_and_what_it_may_see(tmp_path):
    """Others' by Describe on the token, or DescribeTokens on the owner; what it may not see is left out."""
    world = token_world(tmp_path, authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:root")
    alice, bob, root = user(world), user(world, "bob"), user(world, "root")
    own, first, second = create(alice).token_id, create(bob).token_id, create(bob).token_id
    of_root = create(root).token_id
    assert ids(describe(alice, every=True)) == {own} and ids(describe(alice, "bob")) == set()
    assert ids(describe(root, every=True)) == {own, first, second, of_root}
    allow(root, "alice", operation=8, resource_type=6, name=first)
    assert ids(describe(alice, every=True)) == {own, first}
    allow(root, "alice", operation=14, resource_type=7, name="User:bob")
    assert ids(describe(alice, every=True)) == {own, first, second}
    assert ids(describe(alice, "bob")) == {first, second} and ids(describe(bob, every=True)) == {first, second}


def test_a_token_describes_nothing(tokens):
    answer = describe(by_token(tokens, create(user(tokens))), every=True)
    assert answer.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED and answer.tokens == []


def test_without_a_secret_it_is_disabled(tmp_path):
    for every in (False, True):
        answer = describe(user(sasl_world(tmp_path / str(every))), every=every)
        assert answer.error_code == errors.DELEGATION_TOKEN_AUTH_DISABLED and answer.tokens == []
