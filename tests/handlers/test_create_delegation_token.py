"""CreateDelegationToken: who gets a token, for whom, and what the answer says."""

from __future__ import annotations

import pytest

from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.handlers.context import DEFERRED
from pykafkad.handlers.controller_context import ControllerRequest
from pykafkad.wire import messages
from tests.server.sasl_world import sasl_world
from tests.server.token_world import SECRET, by_token, create, token_world, user
from tests.simulation.world import World

ANONYMOUS = ("User", "ANONYMOUS")
ALICE = ("User", "alice")


def owner(answer):
    return answer.principal_type, answer.principal_name


def requester(answer):
    return answer.token_requester_principal_type, answer.token_requester_principal_name


def times(answer):
    return answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms


@pytest.mark.parametrize("version", (1, 2, 3))
def test_a_caller_without_a_login_is_refused(peer, version):
    answer = peer.ask(messages.CreateDelegationTokenRequest(max_lifetime_ms=1), version)
    assert answer.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert owner(answer) == ANONYMOUS and times(answer) == (-1, -1, -1)
    assert requester(answer) == (ANONYMOUS if version == 3 else ("", ""))


def test_a_refusal_names_the_requested_owner(peer):
    request = messages.CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="bob", max_lifetime_ms=1
    )
    assert owner(peer.ask(request, 3)) == ("User", "bob")
    request.owner_principal_type = None
    answer = peer.ask(request, 3)
    assert owner(answer) == ANONYMOUS and answer.error_code == errors.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", (1, 2, 3))
def test_who_has_logged_in_gets_a_token(tokens, version):
    answer = create(user(tokens), renewers=("bob",), life_ms=5000, version=version)
    assert answer.error_code == 0 and owner(answer) == ALICE and len(answer.hmac) == 64
    assert requester(answer) == (ALICE if version == 3 else ("", ""))
    now_ms = tokens.runtime.now_ms
    assert times(answer) == (now_ms, now_ms + 5000, now_ms + 5000)
    (record,) = tokens.broker.image.delegation_tokens.values()
    assert (record.token_id, record.owner, record.renewers) == (answer.token_id, "User:alice", ["User:bob"])


def test_an_owner_without_a_type_is_an_error_that_names_nobody(tokens):
    answer = create(user(tokens), owner_principal_type=None, owner_principal_name="bob")
    assert answer.error_code == errors.UNKNOWN_SERVER_ERROR
    assert owner(answer) == requester(answer) == ANONYMOUS and times(answer) == (-1, -1, -1)
    assert create(user(tokens), owner_principal_type="User", owner_principal_name="").principal_name == "alice"


def test_renewers_are_users(tokens):
    request = messages.CreateDelegationTokenRequest
    strange = request.CreatableRenewers(principal_type="Group", principal_name="g")
    answer = user(tokens).ask(request(renewers=[strange], max_lifetime_ms=1), 3)
    assert answer.error_code == errors.INVALID_PRINCIPAL_TYPE and times(answer) == (-1, -1, -1)
    assert owner(answer) == ALICE and not tokens.broker.image.delegation_tokens


def test_a_token_gets_no_token(tokens):
    token = create(user(tokens))
    answer = create(by_token(tokens, token))
    assert answer.error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED and owner(answer) == ALICE
    assert len(tokens.broker.image.delegation_tokens) == 1


@pytest.mark.parametrize("version", (1, 2, 3))
def test_without_a_secret_it_is_disabled(tmp_path, version):
    answer = create(user(sasl_world(tmp_path)), version=version)
    assert answer.error_code == errors.DELEGATION_TOKEN_AUTH_DISABLED
    assert owner(answer) == ALICE and times(answer) == (0, 0, 0) and answer.hmac == b""


def test_a_token_for_somebody_else_takes_a_permission(tmp_path):
    """CreateTokens on the user; one's own needs none, also by its name."""
    world = token_world(tmp_path, authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:root")
    alice, root = user(world), user(world, "root")
    assert create(alice).error_code == create(alice, owner="alice").error_code == 0
    answer = create(alice, owner="bob")
    assert answer.error_code == errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert owner(answer) == ("User", "bob") and requester(answer) == ALICE and times(answer) == (-1, -1, -1)
    allow(root, "alice", operation=13, resource_type=7, name="User:bob")
    answer = create(alice, owner="bob")
    assert answer.error_code == 0 and owner(answer) == ("User", "bob") and requester(answer) == ALICE
    assert create(alice, owner="root").error_code == errors.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert by_token(world, answer).connection.session.principal == "User:bob"


def test_a_certificate_is_a_login(tmp_path):
    """Without SASL the principal says whether there was one."""
    world = World(tmp_path, delegation_token_secret_key=SECRET)
    peer = world.connect()
    assert create(peer).error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    peer.connection.session.identify("User:CN=alice")
    answer = create(peer)
    assert answer.error_code == 0 and owner(answer) == ("User", "CN=alice")


class Told(list):
    """A token that takes its answer."""

    deliver = list.append


def test_a_controller_decides_the_same(tmp_path):
    """On its own listener it looks at the renewers last, as in Kafka."""
    world = World(tmp_path / "one", delegation_token_secret_key=SECRET)
    cls = messages.CreateDelegationTokenRequest
    strange = cls.CreatableRenewers(principal_type="Group", principal_name="g")

    def ask(world, message, may_ask):
        told = Told()
        request = ControllerRequest(
            38, 3, message, "User:alice", "127.0.0.1", "CONTROLLER", told, may_ask_for_tokens=may_ask
        )
        result = world.controller.submit(request)
        return result if result is not DEFERRED else told[0]

    assert ask(world, cls(max_lifetime_ms=1), False).error_code == errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert ask(world, cls(max_lifetime_ms=1), True).error_code == 0
    answer = ask(world, cls(max_lifetime_ms=1, renewers=[strange]), True)
    assert answer.error_code == errors.INVALID_PRINCIPAL_TYPE and times(answer) == (0, 0, 0)
    answer = ask(World(tmp_path / "other"), cls(max_lifetime_ms=1, renewers=[strange]), True)
    assert answer.error_code == errors.DELEGATION_TOKEN_AUTH_DISABLED


def allow(peer, name_of_user, *, operation, resource_type, name):
    """Add an ACL."""
    request = messages.CreateAclsRequest
    creation = request.AclCreation(
        resource_type=resource_type,
        resource_name=name,
        resource_pattern_type=3,
        principal=f"User:{name_of_user}",
        host="*",
        operation=operation,
        permission_type=3,
    )
    assert peer.ask(request(creations=[creation]), 3).results[0].error_code == 0
