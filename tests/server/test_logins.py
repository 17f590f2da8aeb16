"""The stages of a login by SASL, request by request, as Kafka's SaslServerAuthenticator has them."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.sasl.scram import HASHES
from pykafkad.server.fault_injection import FaultInjection
from pykafkad.server.injected_fault import Fault
from pykafkad.server.login_bytes import SMALL_FRAME_BYTES
from pykafkad.server.logins import LAST_WORD_SECONDS, LOGIN_SECONDS
from pykafkad.server.session import EXPIRED, HANDSHAKE, READY, TOKENS, VERSIONS
from pykafkad.wire import messages
from tests.sasl.client import ScramClient
from tests.sasl.tokens import first_message, unsecured
from tests.seeds import examples, seed_of_the_code
from tests.server.sasl_world import MECHANISMS, add_scram_user, authenticate, bare, handshake, log_in, sasl_world
from tests.simulation.world import NOTHING

METADATA, DELAY_SECONDS = messages.MetadataRequest(topics=[]), 0.1


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Any]:
    """A broker with a SASL listener and a user of each mechanism."""
    made = sasl_world(tmp_path / "data")
    for mechanism in HASHES:
        add_scram_user(made, "alice", "alice-secret", mechanism)
    yield made
    assert made.runtime.metrics.unexpected_errors == 0


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("version", (0, 1, 2))
def test_who_has_logged_in_is_served_as_its_principal(world: Any, mechanism: str, version: int) -> None:
    """And not before; then on the fast paths too, with frames of the usual size."""
    peer = world.connect()
    session = peer.connection.session
    assert session.stage is VERSIONS and session.fast_paths == {}
    assert peer.connection.max_frame_bytes == SMALL_FRAME_BYTES
    assert peer.ask(messages.ApiVersionsRequest(), 2).error_code == 0
    assert session.stage is HANDSHAKE
    answer = log_in(peer, mechanism, version=version)
    assert (answer.error_code, answer.error_message, answer.session_lifetime_ms) == (0, "", 0)
    assert session.principal == "User:alice" and session.stage is READY
    assert session.fast_paths is world.broker.fast_paths
    assert peer.connection.max_frame_bytes == 100 * 1024 * 1024
    assert peer.ask(METADATA, 12).brokers


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_after_a_handshake_of_version_0_tokens_come_bare(world: Any, mechanism: str) -> None:
    """Without headers in both directions; requests follow when the login is done."""
    peer = world.connect()
    assert handshake(peer, mechanism, 0).error_code == 0
    assert peer.connection.session.stage is TOKENS
    if mechanism == "PLAIN":
        assert bare(peer, b"\0alice\0alice-secret") == b""
    else:
        client = ScramClient(HASHES[mechanism], "alice", "alice-secret")
        final = client.final(bare(peer, client.first()) or b"")
        assert client.is_right(bare(peer, final) or b"")
    assert peer.connection.session.principal == "User:alice"
    assert peer.ask(METADATA, 12).brokers


def test_requests_behind_a_bare_token_are_served(world: Any) -> None:
    """All of them in one read."""
    peer = world.connect()
    token = b"\0alice\0alice-secret"
    data = peer.encode(messages.SaslHandshakeRequest(mechanism="PLAIN"), 0)
    data += struct.pack(">i", len(token)) + token
    peer.socket.send(data + peer.encode(METADATA, 12))
    world.runtime.reactor.turn(0)
    inbox = bytes(peer.socket.inbox)
    peer.socket.inbox.clear()
    (first,) = struct.unpack_from(">i", inbox)
    assert inbox[4 + first : 8 + first] == bytes(4)
    peer.take(inbox[: 4 + first] + inbox[8 + first :])
    assert [type(each).__name__ for each in peer.answers] == ["SaslHandshakeResponse", "MetadataResponse"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ("alice", "nobody"))
def test_wrong_credentials_are_refused_a_moment_later(world: Any, mechanism: str, user: str) -> None:
    """With Kafka's text; then the connection ends. Others are served meanwhile."""
    peer = world.connect()
    assert log_in(peer, mechanism, user, "wrong") is NOTHING
    peer.socket.send(peer.encode(METADATA, 12))
    assert log_in(world.connect()).error_code == 0
    world.advance(DELAY_SECONDS / 2)
    assert len(peer.answers) == 1 + (mechanism != "PLAIN") and peer.closed is None
    world.advance(0.6 * DELAY_SECONDS)
    answer = peer.answers[-1]
    assert peer.closed is None
    world.advance(LAST_WORD_SECONDS + 0.01)
    assert answer.error_code == errors.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Authentication failed: Invalid username or password"
        if mechanism == "PLAIN"
        else f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"
    )
    assert answer.auth_bytes == b"" and answer.session_lifetime_ms == 0
    assert peer.closed == f"login refused: {answer.error_message}"
    assert peer.connection.session.principal == "User:ANONYMOUS"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wrong_credentials_in_bare_tokens_end_the_connection(world: Any, mechanism: str) -> None:
    """Without a word; and what comes in the meantime is not looked at."""
    peer = world.connect()
    handshake(peer, mechanism, 0)
    assert bare(peer, b"x") is None and bare(peer, b"\0alice\0alice-secret") is None
    assert peer.closed is None
    world.advance(2 * DELAY_SECONDS, 4)
    assert peer.closed.startswith("login refused: ")


@pytest.mark.parametrize("version", (0, 1))
@pytest.mark.parametrize("mechanism", ("GSSAPI", "", "plain", "SCRAM-SHA-1"))
def test_an_unknown_mechanism_is_refused_with_those_that_are_offered(world: Any, version: int, mechanism: str) -> None:
    """In Kafka's order, which is not that of the settings."""
    peer = world.connect()
    assert handshake(peer, mechanism, version) is NOTHING
    world.advance(2 * DELAY_SECONDS, 4)
    (answer,) = peer.answers
    assert answer.error_code == errors.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]
    assert peer.closed == "login refused: an unsupported SASL mechanism"


def test_versions_are_told_once_before_the_login(world: Any) -> None:
    """A request that was in error does not count; a second one that was answered ends the connection, as in Kafka."""
    peer = world.connect()
    wrong = messages.ApiVersionsRequest(client_software_name="-", client_software_version="1")
    assert peer.ask(wrong, 3).error_code == errors.INVALID_REQUEST
    assert peer.ask(messages.ApiVersionsRequest(), 0).error_code == 0
    assert peer.ask(messages.ApiVersionsRequest(), 0) is NOTHING
    assert peer.closed == "API key 18 in stage handshake of the login"


@pytest.mark.parametrize("request_", [METADATA, messages.SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")])
@pytest.mark.parametrize("after_versions", (False, True))
def test_before_the_handshake_other_requests_end_the_connection(
    world: Any, request_: Any, after_versions: bool
) -> None:
    """Unread and unanswered."""
    peer = world.connect()
    if after_versions:
        peer.ask(messages.ApiVersionsRequest(), 0)
    assert peer.ask(request_, 1) is NOTHING
    assert "of the login" in peer.closed


@pytest.mark.parametrize(
    ("request_", "version"),
    [(METADATA, 12), (messages.ApiVersionsRequest(), 0), (messages.SaslHandshakeRequest(mechanism="PLAIN"), 1)],
)
def test_between_handshake_and_success_other_requests_get_an_error(world: Any, request_: Any, version: int) -> None:
    """ILLEGAL_SASL_STATE, a moment later, and then the end."""
    peer = world.connect()
    handshake(peer, "PLAIN")
    assert peer.ask(request_, version) is NOTHING
    world.advance(2 * DELAY_SECONDS, 4)
    answer = peer.answers[-1]
    assert f"error_code={errors.ILLEGAL_SASL_STATE}" in repr(answer) or answer.brokers == []
    assert peer.closed.endswith("during SASL authentication")


def test_between_handshake_and_success_unreadable_requests_end_the_connection(world: Any) -> None:
    """At once, as there is nothing to answer."""
    for data in (
        b"",
        b"\0",
        b"\0\3",
        b"\0\3\0\x0c",
        struct.pack(">hhih", 3, 99, 1, -1),
        struct.pack(">hhi", 999, 0, 1),
    ):
        peer = world.connect()
        handshake(peer, "PLAIN")
        peer.send_bytes(struct.pack(">i", len(data)) + data)
        assert peer.closed, data


def test_a_stranger_cannot_send_large_frames(world: Any) -> None:
    """`sasl.server.max.receive.size` is the limit of tokens, and few bytes that of what comes before them."""
    peer = world.connect()
    peer.send_bytes(struct.pack(">i", SMALL_FRAME_BYTES + 1))
    assert peer.closed == "a frame of 4097 bytes, above the 4096 of a login"
    peer = world.connect()
    assert handshake(peer, "PLAIN").error_code == 0
    peer.send_bytes(struct.pack(">i", 512 * 1024 + 1))
    assert "above sasl.server.max.receive.size 524288" in peer.closed
    peer = world.connect()
    assert handshake(peer, "PLAIN").error_code == 0
    token = b"\0alice\0" + b"x" * (512 * 1024 - 100)
    assert authenticate(peer, token) is NOTHING
    world.advance(2 * DELAY_SECONDS, 4)
    assert peer.answers[-1].error_code == errors.SASL_AUTHENTICATION_FAILED


def test_a_large_request_in_place_of_a_login_is_not_answered(world: Any) -> None:
    """A row for each of its names would hold the loop; a small one is answered."""
    for names, reason in ((2000, "login refused: DescribeGroups"), (2100, "a request of 42")):
        peer = world.connect()
        assert handshake(peer, "PLAIN").error_code == 0
        peer.ask(messages.DescribeGroupsRequest(groups=[""] * names), 0)
        world.advance(2 * DELAY_SECONDS, 4)
        assert peer.closed.startswith(reason)
        assert len(peer.answers) == (2 if names == 2000 else 1)


def test_a_login_has_an_end(world: Any) -> None:
    """However often a byte comes. Who has logged in, also again, has no such end."""
    slow, served = world.connect(), world.connect()
    log_in(served)
    for byte in b"\0\0\1\0" + bytes(6):
        slow.put_on_the_wire(bytes((byte,)))
        world.advance(LOGIN_SECONDS / 10 - 0.1, 2)
    assert slow.closed is None
    world.advance(2, 2)
    assert slow.closed == "no login within 60 s"
    assert served.ask(METADATA, 12).brokers
    third = world.connect()
    third.end()
    world.advance(LOGIN_SECONDS + 1, 2)


def test_who_has_logged_in_need_not_again(world: Any) -> None:
    """Without `connections.max.reauth.ms` both requests are ILLEGAL_SASL_STATE, and nothing changes."""
    peer = world.connect()
    log_in(peer)
    for version in (0, 1):
        answer = handshake(peer, "PLAIN", version)
        assert answer.error_code == errors.ILLEGAL_SASL_STATE and answer.mechanisms == []
    answer = authenticate(peer, b"\0bob\0bob-secret")
    assert answer.error_code == errors.ILLEGAL_SASL_STATE
    assert answer.error_message == "SaslAuthenticate request received after successful authentication"
    assert peer.connection.session.principal == "User:alice" and peer.ask(METADATA, 12).brokers


class TestAgain:
    """Logins that count for 10 seconds."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> Any:
        """With re-authentication."""
        return sasl_world(tmp_path / "data", connections_max_reauth_ms=10_000)

    def test_a_login_expires(self, world: Any) -> None:
        """The next request ends the connection, unless it is a handshake."""
        peer, other = world.connect(), world.connect()
        assert log_in(peer).session_lifetime_ms == 10_000
        log_in(other)
        world.advance(9.9)
        assert peer.ask(METADATA, 12).brokers
        world.advance(0.2)
        assert peer.connection.session.stage is EXPIRED and peer.connection.session.fast_paths == {}
        assert peer.ask(METADATA, 12) is NOTHING and "in stage expired" in peer.closed
        assert log_in(other).error_code == 0 and other.ask(METADATA, 12).brokers

    def test_a_login_can_be_renewed(self, world: Any) -> None:
        """Again and again, also with bare tokens; not within a second of the last time."""
        peer = world.connect()
        log_in(peer)
        for _ in range(3):
            world.advance(8)
            assert log_in(peer).session_lifetime_ms == 10_000
            assert handshake(peer, "PLAIN").error_code == errors.ILLEGAL_SASL_STATE
            assert peer.ask(METADATA, 12).brokers
        world.advance(8)
        assert handshake(peer, "PLAIN", 0).error_code == 0
        assert bare(peer, b"\0alice\0alice-secret") == b""
        world.advance(8)
        assert peer.ask(METADATA, 12).brokers

    def test_nobody_becomes_somebody_else(self, world: Any) -> None:
        """As Kafka words it; the connection ends."""
        peer = world.connect()
        log_in(peer)
        world.advance(5)
        assert log_in(peer, user="bob") is NOTHING
        world.advance(2 * DELAY_SECONDS, 4)
        answer = peer.answers[-1]
        assert answer.error_code == errors.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
        assert peer.closed and peer.connection.session.principal == "User:alice"

    def test_nobody_changes_the_mechanism(self, world: Any) -> None:
        """The handshake succeeds, and the first token ends the connection without an answer, as in Kafka."""
        peer = world.connect()
        log_in(peer)
        world.advance(5)
        assert handshake(peer, "SCRAM-SHA-256").error_code == 0
        assert authenticate(peer, b"n,,n=alice,r=x") is NOTHING and peer.closed is None
        world.advance(2 * DELAY_SECONDS, 4)
        assert len(peer.answers) == 3 and "a mechanism other than before" in peer.closed

    def test_an_unknown_mechanism_ends_it(self, world: Any) -> None:
        """At once, and without an answer, as in Kafka."""
        peer = world.connect()
        log_in(peer)
        world.advance(5)
        assert handshake(peer, "GSSAPI") is NOTHING
        assert peer.closed == "login refused: an unsupported SASL mechanism" and len(peer.answers) == 2

    def test_a_wrong_password_ends_it(self, world: Any) -> None:
        """The login before does not help."""
        peer = world.connect()
        log_in(peer)
        world.advance(5)
        assert log_in(peer, password="wrong") is NOTHING
        peer.socket.send(peer.encode(METADATA, 12))
        world.advance(2 * DELAY_SECONDS, 4)
        assert peer.answers[-1].error_code == errors.SASL_AUTHENTICATION_FAILED and peer.closed

    def test_who_has_gone_is_forgotten(self, world: Any) -> None:
        """No timer is left of it."""
        peer = world.connect()
        log_in(peer)
        timers = len(world.runtime.timers)
        peer.end()
        assert len(world.runtime.timers) == timers - 2, "neither its deadline nor its expiry"
        world.advance(11)
        assert world.runtime.metrics.unexpected_errors == 0


class TestTokens:
    """Logins by OAUTHBEARER, with tokens that nobody has signed."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> Any:
        """Beside passwords."""
        return sasl_world(tmp_path / "data", mechanisms="PLAIN,OAUTHBEARER")

    def log_in(self, peer: Any, seconds: float, user: str = "alice", version: int = 2) -> Any:
        """The answer to a token that ends in so many seconds."""
        assert handshake(peer, "OAUTHBEARER").error_code == 0
        end = peer.world.clock.now_ms() / 1000 + seconds
        return authenticate(peer, first_message(unsecured({"sub": user, "exp": end})), version)

    def test_a_login_ends_with_its_token(self, world: Any) -> None:
        """And may be renewed by then, although no setting gives logins a time."""
        peer = world.connect()
        answer = self.log_in(peer, 20)
        assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 20_000)
        assert peer.connection.session.principal == "User:alice" and peer.ask(METADATA, 12).brokers
        world.advance(15)
        assert self.log_in(peer, 10).session_lifetime_ms == 10_000
        world.advance(9.9)
        assert peer.ask(METADATA, 12).brokers
        world.advance(0.2)
        assert peer.connection.session.stage is EXPIRED

    def test_a_token_of_somebody_else_does_not_renew_it(self, world: Any) -> None:
        """As with passwords."""
        peer = world.connect()
        self.log_in(peer, 20)
        world.advance(5)
        assert self.log_in(peer, 20, "bob") is NOTHING
        world.advance(2 * DELAY_SECONDS, 4)
        assert "Cannot change principals" in peer.answers[-1].error_message and peer.closed

    @pytest.mark.parametrize("is_framed", (True, False))
    def test_a_token_that_does_not_count(self, world: Any, is_framed: bool) -> None:
        """Its error is an answer of the exchange; after the client's last word the connection ends a moment later. The
        log has the reason, and nothing has the token."""
        lines: list[Any] = []

        class Lines:
            def line(self, level: str, name: str, event: str, fields: Any) -> None:
                lines.append((event, fields))

        world.runtime.logs.set_level("debug")
        world.runtime.logs.sink = Lines()
        peer = world.connect()
        assert handshake(peer, "OAUTHBEARER", int(is_framed)).error_code == 0
        token = unsecured({"sub": "alice", "exp": 1})
        error = b'{"status":"invalid_token"}'
        if is_framed:
            answer = authenticate(peer, first_message(token))
            assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, error, 0)
            assert authenticate(peer, b"\1") is NOTHING
        else:
            assert bare(peer, first_message(token)) == error
            assert bare(peer, b"\1") is None
        assert peer.closed is None and peer.connection.session.principal == "User:ANONYMOUS"
        world.advance(2 * DELAY_SECONDS, 4)
        assert peer.closed == f"login refused: {error.decode()}"
        if is_framed:
            assert peer.answers[-1].error_code == errors.SASL_AUTHENTICATION_FAILED
            assert peer.answers[-1].error_message == error.decode()
        assert ("token-refused", {"listener": "GUARDED", "reason": "it has expired"}) in lines
        assert token not in repr(lines)


def test_no_lifetime_is_told_to_clients_that_know_none(tmp_path: Path) -> None:
    """SaslAuthenticate 0 has no field for it; the login expires all the same. A mechanism may have its own lifetime."""
    name = "listener_name_guarded_plain_connections_max_reauth_ms"
    world = sasl_world(tmp_path / "data", connections_max_reauth_ms=99_000, **{name: 5_000})
    peer = world.connect()
    assert log_in(peer, version=0).session_lifetime_ms == 0
    world.advance(5.1)
    assert peer.connection.session.stage is EXPIRED


def test_random_bytes_before_a_login_lead_nowhere(tmp_path: Path) -> None:
    """Requests of a login, bare tokens and others in any order, some of them damaged, split anyhow: only who says the
    right password is somebody, nothing else is served, and the broker goes on."""
    chance = Random(seed_of_the_code())
    world = sasl_world(tmp_path / "data")
    right = b"\0alice\0alice-secret"
    for _ in range(examples(2000)):
        peer = world.connect()
        frames = [_frame(chance, peer, right) for _ in range(chance.randrange(1, 6))]
        data = b"".join(frames)
        while data and peer.closed is None:
            length = chance.choice((1, 3, 10, len(data)))
            peer.socket.send(data[:length])
            data = data[length:]
            world.runtime.reactor.turn(0)
        session = peer.connection.session
        if session.principal != "User:ANONYMOUS":
            assert session.principal == "User:alice" and any(right in frame for frame in frames)
        else:
            # Before the login there is no answer but those of its own three requests.
            assert session.stage is not READY and len(peer.socket.inbox) < 3000 * len(frames)
        peer.end()
        # What it was told is no row of answers to requests.
        world.peers.clear()
    assert world.runtime.metrics.unexpected_errors == 0
    assert log_in(world.connect()).error_code == 0


def _frame(chance: Random, peer: Any, right: bytes) -> bytes:
    token = chance.choice((right, right[:-1], b"", b"n,,n=alice,r=x", chance.randbytes(8)))
    mechanism = chance.choice((*MECHANISMS, "GSSAPI"))
    made = chance.choice(
        (
            lambda: peer.encode(messages.ApiVersionsRequest(), 0),
            lambda: peer.encode(messages.SaslHandshakeRequest(mechanism=mechanism), chance.randrange(2)),
            lambda: peer.encode(messages.SaslHandshakeRequest(mechanism="PLAIN"), chance.randrange(2)),
            lambda: peer.encode(messages.SaslAuthenticateRequest(auth_bytes=token), chance.randrange(3)),
            lambda: peer.encode(METADATA, 12),
            lambda: struct.pack(">i", len(token)) + token,
        )
    )()
    if chance.random() < 0.1:
        damaged = bytearray(made)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        return bytes(damaged)
    return made


def test_a_broker_without_sasl_imports_none_of_it() -> None:
    """Whoever does not use it does not pay for it: a broker in memory is started, asked and stopped."""
    code = (
        "import sys\n"
        "from pykafkad.testing import Broker\n"
        "from tests.simulation.world import World\n"
        "from pykafkad.memory_disk import MemoryDisk\n"
        "from pykafkad.clock import Clock\n"
        "from pykafkad.wire import messages\n"
        "world = World('/data', disk=MemoryDisk(1 << 30, Clock()))\n"
        "peer = world.connect()\n"
        "assert peer.ask(messages.ApiVersionsRequest(), 0).error_code == 0\n"
        "assert peer.ask(messages.SaslHandshakeRequest(mechanism='PLAIN'), 1).error_code == 34\n"
        "world.stop()\n"
        "print(*(name for name in sys.modules if 'sasl' in name or 'logins' in name or name == 'hmac'))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(found) == {"pykafkad.handlers.sasl_handshake"}


def test_a_fault_opens_no_way_around_a_login(tmp_path: Path) -> None:
    """Who has begun a login when a fault is set or released goes on with it; after it the faults are met."""
    world = sasl_world(tmp_path)
    early, late = world.connect(), world.connect()
    handshake(early, "PLAIN")
    handshake(late, "PLAIN")
    served = early.connection.serve
    faults = FaultInjection(world.broker)
    faults.add(Fault("answer", frozenset({16}), error_code=errors.COORDINATOR_NOT_AVAILABLE))
    assert early.connection.serve == served and early.connection.session.fast_paths == {}
    assert authenticate(early, b"\0alice\0alice-secret").error_code == 0
    assert early.ask(messages.ListGroupsRequest(), 4).error_code == errors.COORDINATOR_NOT_AVAILABLE
    faults.clear()
    assert late.connection.session.fast_paths == {}
    assert authenticate(late, b"\0alice\0alice-secret").error_code == 0
    assert late.ask(messages.ListGroupsRequest(), 4).error_code == 0
