"""Logins by GSSAPI at a broker: requests and answers, beside the loop, with a library that is none."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from pykafkad.errors import ILLEGAL_SASL_STATE, NONE, SASL_AUTHENTICATION_FAILED, ConfigError
from pykafkad.sasl import kerberos_settings
from pykafkad.server import kerberos_library
from pykafkad.wire import messages
from tests.sasl.kerberos_fake import WRAPPED, FakeAcceptor
from tests.server.sasl_world import handshake, log_in, sasl_world
from tests.simulation.world import NOTHING

TICKET = b"ticket:alice@REALM"
CHOICE = WRAPPED + b"\1\1\0\0"
JAAS = (
    f"{kerberos_settings.LOGIN_MODULE} required useKeyTab=true storeKey=true "
    'keyTab="/etc/kafka.keytab" principal="kafka/localhost@REALM";'
)
WRONG = "Authentication failed during authentication due to invalid credentials with SASL mechanism GSSAPI"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str | None, str]]]:
    """The keytabs and principals that were opened."""
    found: list[tuple[str | None, str]] = []

    def open_acceptor(keytab: str | None, principal: str) -> FakeAcceptor:
        found.append((keytab, principal))
        return FakeAcceptor()

    monkeypatch.setattr(kerberos_library, "open_acceptor", open_acceptor)
    yield found


def kerberos_world(path: Any, **settings: Any) -> Any:
    """A broker whose listener offers PLAIN and GSSAPI."""
    given = {
        "listener_name_guarded_gssapi_sasl_jaas_config": JAAS,
        "sasl_kerberos_service_name": "kafka",
        **settings,
    }
    return sasl_world(path, "PLAIN,GSSAPI", **{name: text for name, text in given.items() if text is not None})


def authenticate(peer: Any, token: bytes, version: int = 2) -> Any:
    """The answer to SaslAuthenticate, whose token is looked at beside the loop."""
    before = len(peer.answers)
    peer.send(messages.SaslAuthenticateRequest(auth_bytes=token), version)
    peer.world.runtime.cpu_offload.close()
    peer.world.turn()
    return peer.answers[before] if len(peer.answers) > before else NOTHING


def bare(peer: Any, token: bytes) -> bytes:
    """What is answered to a token without a header."""
    peer.socket.send(struct.pack(">i", len(token)) + token)
    peer.world.runtime.reactor.turn(0)
    peer.world.runtime.cpu_offload.close()
    peer.world.runtime.reactor.turn(0)
    data = bytes(peer.socket.inbox)
    peer.socket.inbox.clear()
    return data


def sized(token: bytes) -> bytes:
    """An answer without a header."""
    return struct.pack(">i", len(token)) + token


def talk(peer: Any, *tokens: bytes) -> Any:
    """The last answer of a login, of which all others go on."""
    assert handshake(peer, "GSSAPI").error_code == NONE
    for token in tokens[:-1]:
        answer = authenticate(peer, token)
        assert (answer.error_code, answer.session_lifetime_ms) == (NONE, 0)
    return authenticate(peer, tokens[-1])


def who(peer: Any) -> str:
    """The principal of a connection."""
    return str(peer.connection.session.principal)


def test_a_ticket_logs_in(tmp_path: Any, opened: list[Any]) -> None:
    """With the keytab and the principal of the login module, and the rules for names."""
    rules = "RULE:[1:$1@$0](.*@OTHER)s/@.*/-other/,DEFAULT"
    world = kerberos_world(tmp_path, sasl_kerberos_principal_to_local_rules=rules)
    assert opened == [("/etc/kafka.keytab", "kafka/localhost@REALM")]
    for ticket, name in ((TICKET, "User:alice"), (b"ticket:bob@OTHER", "User:bob-other")):
        peer = world.connect()
        assert talk(peer, ticket, b"", CHOICE + b"root").auth_bytes == b""
        assert who(peer) == name and peer.ask(messages.MetadataRequest(topics=[]), 12).brokers


def test_a_listener_may_have_rules_of_its_own(tmp_path: Any, opened: list[Any]) -> None:
    """They come before those for all."""
    own = {"listener_name_guarded_sasl_kerberos_principal_to_local_rules": "RULE:[1:$1]/U"}
    world = kerberos_world(tmp_path, sasl_kerberos_principal_to_local_rules="DEFAULT", **own)
    peer = world.connect()
    talk(peer, TICKET, b"", CHOICE)
    assert who(peer) == "User:ALICE"


@pytest.mark.parametrize(
    "tokens", [(b"nonsense",), (TICKET, b"x"), (TICKET, b"", b"x"), (TICKET, b"", WRAPPED + b"\4abc")]
)
def test_mistakes_are_refused_with_kafkas_words(tmp_path: Any, opened: list[Any], tokens: tuple[bytes, ...]) -> None:
    """And the connection ends."""
    world = kerberos_world(tmp_path, connection_failed_authentication_delay_ms="0")
    peer = world.connect()
    answer = talk(peer, *tokens)
    assert (answer.error_code, answer.error_message) == (SASL_AUTHENTICATION_FAILED, WRONG)


def test_too_short_a_choice_ends_without_an_answer(tmp_path: Any, opened: list[Any]) -> None:
    """As in Kafka, whose library stumbles over it."""
    peer = kerberos_world(tmp_path).connect()
    assert talk(peer, TICKET, b"", WRAPPED) is NOTHING and peer.closed


def test_a_client_without_a_name_is_told_that_it_has_logged_in(tmp_path: Any, opened: list[Any]) -> None:
    """And its connection ends, without that anything was served."""
    world = kerberos_world(tmp_path, connections_max_reauth_ms="5000")
    peer = world.connect()
    answer = talk(peer, b"ticket:alice@OTHER", b"", CHOICE)
    assert (answer.error_code, answer.session_lifetime_ms) == (NONE, 5000)
    assert peer.ask(messages.MetadataRequest(topics=[]), 12) is NOTHING
    world.advance(1, 4)
    assert peer.closed
    again = world.connect()
    talk(again, TICKET, b"", CHOICE)
    world.advance(2)
    assert talk(again, b"ticket:alice@OTHER", b"", CHOICE) is NOTHING and again.closed


def test_tokens_without_a_header(tmp_path: Any, opened: list[Any]) -> None:
    """After SaslHandshake 0; the last one has no answer, as of Java's library."""
    world = kerberos_world(tmp_path)
    peer = world.connect()
    assert handshake(peer, "GSSAPI", 0).error_code == NONE
    assert bare(peer, TICKET) == sized(b"mutual")
    assert bare(peer, b"") == sized(WRAPPED + b"\1\1\0\0")
    assert bare(peer, CHOICE) == b""
    assert who(peer) == "User:alice" and peer.ask(messages.MetadataRequest(topics=[]), 12).brokers
    for tokens in ((b"nonsense",), (TICKET, b"", WRAPPED)):
        peer = world.connect()
        handshake(peer, "GSSAPI", 0)
        assert [bare(peer, token) for token in tokens][-1] == b""
        world.advance(1, 4)
        assert peer.closed


def test_a_login_may_be_repeated_by_the_same_client(tmp_path: Any, opened: list[Any]) -> None:
    """With another name it is refused, as with another mechanism."""
    world = kerberos_world(tmp_path, connections_max_reauth_ms="60000")
    peer = world.connect()
    assert talk(peer, TICKET, b"", CHOICE).session_lifetime_ms == 60000
    world.advance(2)
    assert talk(peer, TICKET, b"", CHOICE).session_lifetime_ms == 60000
    assert authenticate(peer, b"").error_code == ILLEGAL_SASL_STATE
    world.advance(2)
    assert talk(peer, b"ticket:bob@REALM", b"", CHOICE) is NOTHING
    world.advance(1, 4)
    assert peer.answers[-1].error_message.startswith("Cannot change principals during re-authentication")


def test_a_bug_of_the_library_ends_one_connection(tmp_path: Any, opened: list[Any]) -> None:
    """And is told."""
    world = kerberos_world(tmp_path)
    peer, other = world.connect(), world.connect()
    assert talk(peer, b"bug:") is NOTHING and peer.closed
    assert world.runtime.metrics.unexpected_errors == 1
    assert log_in(other).error_code == NONE


def test_a_client_that_is_gone_meanwhile_is_forgotten(tmp_path: Any, opened: list[Any]) -> None:
    """Its last token was looked at for nothing: nobody logs in, and no login expires."""
    world = kerberos_world(tmp_path, connections_max_reauth_ms="60000")
    peer = world.connect()
    assert handshake(peer, "GSSAPI").error_code == NONE
    for token in (TICKET, b""):
        assert authenticate(peer, token).error_code == NONE
    peer.send(messages.SaslAuthenticateRequest(auth_bytes=CHOICE), 2)
    peer.end()
    world.runtime.cpu_offload.close()
    assert who(peer) == "User:ANONYMOUS" and world.runtime.metrics.unexpected_errors == 0


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"listener_name_guarded_gssapi_sasl_jaas_config": None}, "gssapi.sasl.jaas.config: is not set, and GSSAPI"),
        ({"sasl_kerberos_service_name": None}, "sasl.kerberos.service.name: is not set, and GSSAPI needs it"),
        (
            {"listener_name_guarded_gssapi_sasl_jaas_config": JAAS.replace(";", " serviceName=other;")},
            "sasl.jaas.config: serviceName is another than sasl.kerberos.service.name=kafka",
        ),
        (
            {"listener_name_guarded_gssapi_sasl_jaas_config": JAAS.replace("useKeyTab=true", "useTicketCache=true")},
            "must have useKeyTab=true",
        ),
        (
            {"listener_name_guarded_gssapi_sasl_jaas_config": JAAS.partition(" principal")[0] + ";"},
            "must have the option principal",
        ),
        ({"sasl_kerberos_principal_to_local_rules": "RULE:x"}, "to.local.rules: 'RULE:x' is neither DEFAULT nor"),
        (
            {"listener_name_guarded_gssapi_sasl_jaas_config": "some.Module required;"},
            "must name com.sun.security.auth.module.Krb5LoginModule",
        ),
        (
            {"listener_name_guarded_gssapi_sasl_server_callback_handler_class": "some.Class"},
            "some.Class is a Java class, which cannot run here",
        ),
    ],
)
def test_what_cannot_be_is_refused_at_start(
    tmp_path: Any, opened: list[Any], settings: dict[str, str | None], problem: str
) -> None:
    """With the setting, and what to use instead."""
    with pytest.raises(ConfigError) as caught:
        kerberos_world(tmp_path, **settings)
    assert problem in str(caught.value)


def test_a_service_name_may_stand_in_the_login_module(tmp_path: Any, opened: list[Any]) -> None:
    """And the keytab may be the usual one."""
    module = f"{kerberos_settings.LOGIN_MODULE} required useKeyTab=true principal=a serviceName=kafka;"
    changed = {"listener_name_guarded_gssapi_sasl_jaas_config": module, "sasl_kerberos_service_name": None}
    kerberos_world(tmp_path, **changed)
    assert opened == [(None, "a")]


def test_without_the_library(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence that says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"jaas.config: GSSAPI needs the package gssapi .*\[gssapi\]'"):
        kerberos_world(tmp_path)
