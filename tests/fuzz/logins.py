"""Targets for whatever a stranger says before it has logged in.

They are the exchanges of each SASL mechanism, the texts that logins are configured with, and whole connections to a
broker with a SASL listener, plain and by TLS. Beside errors a target finds that somebody got in who should not.
"""

from __future__ import annotations

import random
import ssl
import struct
from functools import cache
from types import SimpleNamespace
from typing import Any

from pykafkad.errors import ConfigError
from pykafkad.sasl import jaas, jwks, scram
from pykafkad.sasl.compact_jwt import InvalidToken
from pykafkad.sasl.oauthbearer import SEEN, OAuthBearer
from pykafkad.sasl.plain import Plain
from pykafkad.sasl.signed_jwt import Rules, SignedValidator
from pykafkad.sasl.step import DONE, GOES_ON
from pykafkad.sasl.unsecured_jws import UnsecuredValidator
from pykafkad.server import logs
from pykafkad.server.connection import CLOSED
from pykafkad.server.listeners import Listener
from pykafkad.server.session import READY
from pykafkad.wire import messages
from tests import certificates
from tests.fuzz.target import Finding, Target
from tests.sasl import issuer
from tests.sasl.client import ScramClient
from tests.sasl.tokens import first_message, unsecured
from tests.server.sasl_world import JAAS, MECHANISMS, OAUTH_JAAS
from tests.server.tls_client import client_context
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World

PASSWORDS = {"alice": b"alice-secret", "b,=b": "Pässwort".encode(), "root": b"x" * 300}
TOKEN_ID, TOKEN_HMAC = "tokenid", "aG1hYw=="
NOW_MS = 1_700_000_000_000
NONCE = "0123456789abcdef"
SALT = b"some salt"
# OAUTHBEARER's answer to a stranger is its longest but for that to ApiVersions.
ANSWER_BYTES_MAX = 4000


# PLAIN.


def plain_example(draw: random.Random) -> bytes:
    """What a user sends."""
    user = draw.choice(tuple(PASSWORDS))
    return draw.choice(("", user)).encode() + b"\0" + user.encode() + b"\0" + PASSWORDS[user]


def check_plain(data: bytes) -> bool:
    """Only a user with its password is let in."""
    exchange = Plain(PASSWORDS)
    if exchange.step(data).outcome != DONE:
        return False
    if not data.endswith(b"\0" + exchange.user.encode() + b"\0" + PASSWORDS[exchange.user]):
        raise Finding(f"let in as {exchange.user}")
    return True


# SCRAM: a byte for the hash function, and the two messages of the client with a line feed between them.


@cache
def _credential(mechanism: str, password: str) -> scram.Credential:
    return scram.credential(mechanism, password, SALT, 4096)


def _scram(mechanism: str) -> scram.Scram:
    def find(user: str) -> scram.Credential | None:
        return _credential(mechanism, PASSWORDS[user].decode()) if user in PASSWORDS else None

    def find_token(token_id: str) -> scram.Token | None:
        return scram.Token(_credential(mechanism, TOKEN_HMAC), "alice", NOW_MS) if token_id == TOKEN_ID else None

    return scram.Scram(mechanism, find, NONCE, b"secret", find_token)


@cache
def _scram_examples() -> dict[tuple[int, bytes], bytes]:
    """The final message without its proof, by the number of the mechanism and the first message."""
    users = [(user, password.decode(), "") for user, password in PASSWORDS.items()]
    found = {}
    for number, (mechanism, hash_name) in enumerate(scram.HASHES.items()):
        for user, password, extension in (*users, (TOKEN_ID, TOKEN_HMAC, "tokenauth=true")):
            client = ScramClient(hash_name, user, password, extension=extension)
            step = _scram(mechanism).step(client.first())
            assert step.outcome == GOES_ON
            found[number, client.first()] = client.final(step.token)
    return found


def scram_example(draw: random.Random) -> bytes:
    """A whole login."""
    (number, first), final = draw.choice(tuple(_scram_examples().items()))
    return bytes((number,)) + first + b"\n" + final


def check_scram(data: bytes) -> bool:
    """Only one of the examples is let in: nothing else proves that it knows a password."""
    if not data:
        return False
    number = data[0] & 1
    first, _, final = data[1:].partition(b"\n")
    exchange = _scram(tuple(scram.HASHES)[number])
    for token in (first, final):
        step = exchange.step(token)
        if step.outcome not in (GOES_ON, DONE):
            return False
    right = _scram_examples().get((number, first), b",p=")
    if step.outcome != DONE or final.rpartition(b",p=")[0] != right.rpartition(b",p=")[0]:
        raise Finding(f"let in as {exchange.user}")
    return True


# OAUTHBEARER: a byte for the rule, and the client's first message.


@cache
def _validators() -> tuple[Any, Any]:
    keys = SimpleNamespace(
        current=lambda: [issuer.jwk(algorithm, kid=algorithm) for algorithm in ("HS256", "ES256")],
        miss=lambda key_id: None,
    )
    rules = Rules(frozenset({"kafka"}), "issuer", "scope", "sub", 30)
    return UnsecuredValidator({}, lambda: NOW_MS), SignedValidator(keys, rules, lambda: NOW_MS)


_CLAIMS = {"sub": "alice", "iat": NOW_MS // 1000 - 60, "exp": NOW_MS // 1000 + 3600}


@cache
def _tokens() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tokens that nobody has signed, and signed ones."""
    claims = [_CLAIMS | {"scope": scope} for scope in ("one", ["one", "two"])]
    signed = [
        issuer.signed(each | {"iss": "issuer", "aud": "kafka"}, algorithm, kid=algorithm)
        for each in claims
        # Most are of the algorithm that is verified faster.
        for algorithm in ("HS256", "HS256", "HS256", "ES256")
    ]
    return tuple(unsecured(each) for each in claims), tuple(signed)


def oauth_example(draw: random.Random) -> bytes:
    """A first message."""
    rule = draw.randrange(2)
    message = first_message(draw.choice(_tokens()[rule]), draw.choice(("", "alice")), **draw.choice(({}, {"a": "b"})))
    return bytes((rule,)) + message


def check_oauth(data: bytes) -> bool:
    """A token counts as it was signed; what does not count is answered first and refused then."""
    if not data:
        return False
    rule = data[0] & 1
    reasons: list[str] = []
    exchange = OAuthBearer(_validators()[rule], reasons.append)
    step = exchange.step(data[1:])
    if step.outcome == GOES_ON:
        if len(reasons) != 1 or exchange.step(SEEN).outcome in (GOES_ON, DONE):
            raise Finding("a token that does not count goes on")
        return False
    if step.outcome != DONE:
        return False
    if not exchange.user or exchange.expires_ms is None:
        raise Finding("a login of nobody")
    if rule and not any(token.rpartition(".")[0].encode() in data for token in _tokens()[rule]):
        raise Finding(f"let in as {exchange.user}")
    return True


# Tokens alone: their texts have more forms than the first message lets through.


def jwt_example(draw: random.Random) -> bytes:
    """A token."""
    rule = draw.randrange(2)
    return bytes((rule,)) + draw.choice(_tokens()[rule]).encode()


def check_jwt(data: bytes) -> bool:
    """The principal and the end of the token, or InvalidToken, which quotes nothing of it."""
    if not data:
        return False
    try:
        token = _validators()[data[0] & 1](data[1:].decode("latin-1"))
    except InvalidToken:
        return False
    return bool(token.principal)


# What logins are configured with.

_JAAS_EXAMPLES = (JAAS, OAUTH_JAAS, 'a.b.C optional k=v /* c */ "q\\"x"=\'\\141\\n\' // d\n;', "c required;")


def check_jaas(data: bytes) -> bool:
    """An entry or ConfigError."""
    try:
        module = jaas.parse(data.decode("utf-8", "surrogateescape"))
    except ConfigError:
        return False
    if not all(isinstance(each, str) for pair in module.options.items() for each in pair):
        raise Finding("an option is no text")
    return True


@cache
def _key_sets() -> tuple[bytes, ...]:
    keys = [issuer.jwk(algorithm, kid=algorithm, use="sig") for algorithm in ("RS256", "ES256", "EdDSA", "HS256")]
    return tuple(issuer.key_set(*keys[:count]) for count in range(1, len(keys) + 1))


def check_keys(data: bytes) -> bool:
    """Keys of which one may be chosen, or ValueError."""
    try:
        keys = jwks.parse(data)
    except ValueError:
        return False
    for algorithm in jwks.KEY_TYPES:
        jwks.choose(keys, algorithm, algorithm)
        jwks.choose(keys, algorithm, None)
    return bool(keys)


# Connections.


class Stranger:
    """A broker with a listener that nobody passes without a login, and one connection after the other."""

    def __init__(self, protocol: str) -> None:
        settings: dict[str, Any] = {
            "sasl_enabled_mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
            "listener_name_guarded_plain_sasl_jaas_config": JAAS,
            "listener_name_guarded_oauthbearer_sasl_jaas_config": OAUTH_JAAS,
            "listener_security_protocol_map": f"GUARDED:{protocol}",
            "connection_failed_authentication_delay_ms": 0,
        }
        if protocol == "SASL_SSL":
            settings |= certificates.settings()
        listener = Listener("GUARDED", "localhost", 9092, None, protocol)
        self.world: Any = World("/data", disk=MemoryDisk(), listening=[listener], **settings)
        # A line for each refusal would be most of the work.
        self.world.runtime.logs.sink = logs.Sink(len)
        self.world.advance(1)

    def send(self, data: bytes, cuts: tuple[int, ...]) -> tuple[Any, int]:
        """The session of a new connection that sends the bytes in pieces, and how many bytes it was answered."""
        world = self.world
        peer = world.connect()
        world.peers.clear()
        turn = world.runtime.reactor.turn
        answered = 0
        for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
            if peer.connection.state == CLOSED or start == end:
                break
            peer.socket.send(data[start:end])
            turn(0)
            answered += len(peer.socket.inbox)
            peer.socket.inbox.clear()
        session = peer.connection.session
        stage, principal = session.stage, session.principal
        peer.end()
        peer.socket.close()
        # The answer to a refused login, and then its end, are due a moment later.
        for _ in range(2):
            world.clock.advance(0.05)
            turn(0)
        if world.runtime.metrics.unexpected_errors:
            world.runtime.metrics.unexpected_errors = 0
            raise Finding("an unexpected error of the broker")
        if world.node.socket_server.connections():
            raise Finding("the connection is still there")
        return (stage, principal), answered


@cache
def _stranger(protocol: str) -> Stranger:
    return Stranger(protocol)


@cache
def _requests() -> tuple[tuple[bytes, ...], ...]:
    """The requests by what they are: ApiVersions, SaslHandshake, SaslAuthenticate, others, and tokens without a
    header."""
    world = World("/requests", disk=MemoryDisk())
    peer = world.connect()
    tokens = [
        b"\0alice\0wrong-secret",
        b"n,,n=alice,r=fyko",
        b"n,,n=nobody,r=fyko,tokenauth=true",
        first_message(unsecured({"sub": "alice", "exp": 1})),
    ]
    kinds = (
        [(messages.ApiVersionsRequest(client_software_name="a", client_software_version="1"), (0, 3, 4))],
        [(messages.SaslHandshakeRequest(mechanism=each), (0, 1)) for each in (*MECHANISMS, "OAUTHBEARER", "GSSAPI")],
        [(messages.SaslAuthenticateRequest(auth_bytes=token), (0, 1, 2)) for token in tokens],
        [(messages.MetadataRequest(topics=None), (1, 12)), (messages.FetchRequest(topics=[]), (12,))],
    )
    encoded = [tuple(peer.encode(made, version) for made, versions in kind for version in versions) for kind in kinds]
    return (*encoded, tuple(struct.pack(">i", len(token)) + token for token in tokens))


def stranger_example(draw: random.Random) -> bytes:
    """How the bytes are cut, and a login that fails, or requests in any order."""
    versions, handshakes, tokens, others, bare = _requests()
    order: tuple[tuple[bytes, ...], ...] = (versions, handshakes, draw.choice((tokens, tokens, bare)), tokens)
    if draw.random() < 0.3:
        order = tuple(draw.choices((versions, handshakes, tokens, others, bare), k=draw.choice((1, 2, 5))))
    return bytes((draw.randrange(256),)) + b"".join(map(draw.choice, order))


def check_stranger(data: bytes) -> bool:
    """Nobody gets in, nobody is answered more than the requests of a login are. The first byte says how to cut."""
    if not data:
        return False
    (stage, principal), answered = _stranger("SASL_PLAINTEXT").send(data[1:], _cuts(data, 20))
    if stage is READY or principal != "User:ANONYMOUS":
        raise Finding(f"let in as {principal}")
    if answered > 6 * ANSWER_BYTES_MAX:
        raise Finding(f"{answered} bytes of answers")
    return answered > 0


def _cuts(data: bytes, one_by_one: int) -> tuple[int, ...]:
    """Where what follows the first byte of an input is cut: mostly nowhere, else in the middle or after each of the
    first bytes."""
    size = len(data) - 1
    return {0: (size // 2,), 1: tuple(range(1, min(size, one_by_one)))}.get(data[0] & 7, ())


@cache
def _greetings() -> tuple[bytes, ...]:
    found = []
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3, None):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = client_context(version).wrap_bio(incoming, outgoing, server_hostname="localhost")
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        found.append(outgoing.read())
    return tuple(found)


def tls_example(draw: random.Random) -> bytes:
    """How the bytes are cut, and the first message of a TLS client, with or without more behind it."""
    return bytes((draw.randrange(256),)) + draw.choice(_greetings()) + draw.choice((b"", draw.randbytes(40)))


def check_tls(data: bytes) -> bool:
    """The handshake goes no further than the broker's first flight."""
    if not data:
        return False
    (stage, principal), answered = _stranger("SASL_SSL").send(data[1:], _cuts(data, 8))
    if stage is READY or principal != "User:ANONYMOUS":
        raise Finding(f"let in as {principal}")
    if answered > 2 * ANSWER_BYTES_MAX:
        raise Finding(f"{answered} bytes of answers")
    return answered > 0


TARGETS = (
    Target("plain", 25, plain_example, check_plain),
    Target("scram", 25, scram_example, check_scram),
    Target("oauthbearer", 15, oauth_example, check_oauth),
    Target("jwt", 15, jwt_example, check_jwt),
    Target("jaas", 15, lambda draw: draw.choice(_JAAS_EXAMPLES).encode(), check_jaas),
    Target("key sets", 8, lambda draw: draw.choice(_key_sets()), check_keys),
    Target("strangers", 15, stranger_example, check_stranger),
    Target("TLS strangers", 3, tls_example, check_tls),
)
