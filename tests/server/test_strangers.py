"""Who has not logged in: what is kept and said of it, whatever it calls itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad.server.logins import LOGIN_SECONDS
from pykafkad.server.peer_lines import NAMED_AGAIN_SECONDS
from pykafkad.wire import messages
from tests.server.sasl_world import JAAS, bare, handshake, log_in, sasl_world

METADATA = messages.MetadataRequest(topics=[])
REFUSED = "login refused: Authentication failed: Invalid username or password"


@pytest.fixture
def world(tmp_path: Path) -> Any:
    """With a user whose name is that of those who have not logged in."""
    jaas = JAAS.replace("user_bob=", 'user_ANONYMOUS="ANONYMOUS-secret" user_bob=')
    return sasl_world(
        tmp_path / "data",
        "PLAIN",
        listener_name_guarded_plain_sasl_jaas_config=jaas,
        pykafkad_unauthenticated_connections_max_per_ip="2",
        connections_max_reauth_ms=10_000_000,
    )


def refusals(world: Any) -> list[tuple[str, object, object]]:
    """The lines on closed connections from now on: level, reason, and how many were spared."""
    found: list[tuple[str, object, object]] = []

    class Sink:
        def line(self, level: str, name: str, event: str, fields: dict[str, object]) -> None:
            if event == "connection-closed" and level != "debug":
                found.append((level, fields["reason"], fields.get("more")))

    world.broker.logs.sink = Sink()
    return found


def test_a_user_named_anonymous_is_no_stranger(world: Any) -> None:
    """It is served for longer than a login may take, and makes room for nobody, also while it logs in again."""
    peer = world.connect()
    assert log_in(peer, user="ANONYMOUS").error_code == 0
    world.advance(LOGIN_SECONDS + 1, 4)
    assert peer.ask(METADATA, 9).brokers
    assert handshake(peer, "PLAIN").error_code == 0
    for _ in range(3):
        world.connect()
    assert peer.closed is None


def test_a_failed_login_is_told_though_the_client_ends_first(world: Any) -> None:
    """And counted; a line for each host and reason once in a while."""
    found = refusals(world)
    for _ in range(5):
        peer = world.connect()
        log_in(peer, password="wrong")
        peer.end()
    assert found == [("warning", REFUSED, None)]
    assert world.runtime.metrics.failed_authentications == 5
    world.advance(NAMED_AGAIN_SECONDS + 1, 4)
    peer = world.connect()
    handshake(peer, "PLAIN", 0)
    bare(peer, b"\0alice\0wrong")
    peer.end()
    assert found[1:] == [("warning", REFUSED, 4)]
    assert world.runtime.metrics.failed_authentications == 6


def test_a_failed_login_is_told_once(world: Any) -> None:
    """Where the client waits for its end, the line is the same; who logs in leaves none."""
    found = refusals(world)
    peer, alice = world.connect(), world.connect()
    log_in(peer, password="wrong")
    log_in(alice)
    alice.end()
    world.advance(1, 4)
    assert peer.closed == REFUSED
    assert found == [("warning", REFUSED, None)]
    assert world.runtime.metrics.failed_authentications == world.runtime.metrics.frames_refused == 1


def test_a_failed_login_of_one_who_was_known_counts(world: Any) -> None:
    """An unknown mechanism ends it at once."""
    peer = world.connect()
    log_in(peer)
    world.advance(5)
    handshake(peer, "GSSAPI")
    assert world.runtime.metrics.failed_authentications == 1
