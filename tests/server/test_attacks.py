"""Attacks on logins and settings that no other file of tests tries. docs/security.md lists all, with their tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.wire import messages
from tests.rows import in_turn
from tests.sasl.client import ScramClient
from tests.server.sasl_world import add_scram_user, authenticate, handshake, log_in, sasl_world

SCRAM = "SCRAM-SHA-256"


@pytest.fixture
def world(tmp_path: Path) -> Any:
    """A broker with users of PLAIN and one of SCRAM."""
    made = sasl_world(tmp_path / "data", authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:root")
    add_scram_user(made, "carol", "carol-secret", SCRAM)
    return made


def begin(world: Any, client: ScramClient) -> tuple[Any, bytes]:
    """A login that has come to the broker's first message."""
    peer = world.connect()
    handshake(peer, SCRAM)
    return peer, bytes(authenticate(peer, client.first()).auth_bytes)


def test_a_login_that_was_overheard_opens_nothing(world: Any) -> None:
    """The same messages again, on another connection and on the same one: the broker's nonce is another."""
    client = ScramClient("sha256", "carol", "carol-secret")
    peer, first = begin(world, client)
    final = client.final(first)
    assert authenticate(peer, final).error_code == 0
    again, other = begin(world, client)
    assert other != first and other[:20] == first[:20]
    authenticate(again, final)
    world.advance(1, steps=3)
    assert again.answers[-1].error_code == errors.SASL_AUTHENTICATION_FAILED and again.closed is not None
    assert again.connection.session.principal == "User:ANONYMOUS"
    later, _ = begin(world, client)
    authenticate(later, client.first())
    world.advance(1, steps=3)
    assert later.answers[-1].error_code == errors.SASL_AUTHENTICATION_FAILED


def test_nobody_is_let_in_by_a_weaker_mechanism(world: Any, tmp_path: Path) -> None:
    """A user of SCRAM has no password for PLAIN, and a user of PLAIN none for SCRAM; a mechanism that the listener does
    not offer is none."""
    for mechanism, name in (("PLAIN", "carol"), (SCRAM, "alice"), ("SCRAM-SHA-512", "carol")):
        peer = world.connect()
        log_in(peer, mechanism, name)
        world.advance(1, steps=3)
        assert peer.answers[-1].error_code == errors.SASL_AUTHENTICATION_FAILED and peer.closed is not None
    only = sasl_world(tmp_path / "only", SCRAM)
    peer = only.connect()
    handshake(peer, "PLAIN")
    only.advance(1, steps=3)
    assert peer.answers[-1].error_code == errors.UNSUPPORTED_SASL_MECHANISM
    assert peer.answers[-1].mechanisms == [SCRAM] and peer.closed is not None


def test_a_refused_login_delays_nobody_else(tmp_path: Path) -> None:
    """While one waits for its answer another logs in and is served."""
    world = sasl_world(tmp_path / "data", connection_failed_authentication_delay_ms=5000)
    wrong = world.connect()
    log_in(wrong, password="wrong")
    before = len(wrong.answers)
    right = world.connect()
    assert log_in(right).error_code == 0 and right.ask(messages.ListGroupsRequest(), 4).error_code == 0
    assert len(wrong.answers) == before and wrong.closed is None
    world.advance(6, steps=3)
    assert wrong.answers[-1].error_code == errors.SASL_AUTHENTICATION_FAILED


# What somebody who may alter settings would like to reach with them.
REFUSED = [
    ("authorizer.class.name", ""),
    ("principal.builder.class", "com.example.Mine"),
    ("ssl.engine.factory.class", "com.example.Mine"),
    ("log.dirs", "/etc"),
    ("metadata.log.dir", "/etc"),
    ("pykafkad.audit.file", "/etc/passwd"),
    ("sasl.oauthbearer.jwks.endpoint.url", "file:///etc/passwd"),
    ("delegation.token.secret.key", "mine"),
    ("process.roles", "controller"),
]


@in_turn("name, value", REFUSED)
def test_no_setting_is_a_way_in(world: Any, name: str, value: str) -> None:
    """Who may log in and who may do what, classes, files and addresses that others choose do not change live."""
    before = world.broker.settings
    peer = world.connect()
    log_in(peer, user="root")
    request = messages.IncrementalAlterConfigsRequest
    row = request.AlterableConfig(name=name, config_operation=0, value=value)
    resource = request.AlterConfigsResource(resource_type=4, resource_name="1", configs=[row])
    answer = peer.ask(request(resources=[resource]), 1)
    assert answer.responses[0].error_code in (errors.INVALID_CONFIG, errors.INVALID_REQUEST), answer
    assert world.broker.settings.dynamic_broker == before.dynamic_broker


# Settings that Kafka stores too, as those of a plug-in might be, and which nobody reads.
WITHOUT_EFFECT = [
    ("super.users", "User:alice"),
    ("listener.name.guarded.plain.sasl.server.callback.handler.class", "com.example.Mine"),
    ("allow.everyone.if.no.acl.found", "true"),
]


def test_settings_of_the_authorizer_do_not_change_live(world: Any) -> None:
    """Nor with the next start: what is stored in the cluster's metadata does not count for them."""
    peer = world.connect()
    log_in(peer, user="root")
    request = messages.IncrementalAlterConfigsRequest
    for name, value in WITHOUT_EFFECT:
        row = request.AlterableConfig(name=name, config_operation=0, value=value)
        peer.ask(
            request(resources=[request.AlterConfigsResource(resource_type=4, resource_name="1", configs=[row])]), 1
        )
    for _ in range(2):
        alice = world.connect()
        assert log_in(alice).error_code == 0
        assert alice.ask(messages.DescribeUserScramCredentialsRequest(users=None), 0).error_code != 0
        world.stop()
        world = sasl_world(world.path, authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:root")
