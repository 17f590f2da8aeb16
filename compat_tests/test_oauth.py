"""Logins by OAUTHBEARER: token by token beside a real Kafka, and by three clients.

Both brokers have three listeners: PLAINTEXT; BELIEVED, where tokens count that nobody has signed; and SIGNED, where
those of an issuer count, whose keys are in a file. Logins count for a minute, or as long as their token.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jwt
import pytest
from aiokafka.abc import AbstractTokenProvider as AiokafkaTokenProvider
from kafka.net.sasl.oauth import AbstractTokenProvider

from compat_tests import there_and_back
from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, assert_no_bug_logged
from compat_tests.login_talk import Talk
from compat_tests.scenarios.exchange import CLOSED
from pykafkad.errors import SASL_AUTHENTICATION_FAILED
from pykafkad.sasl.token_rules import LOGIN_MODULE, SIGNED
from tests.sasl.issuer import jwk, key_set, signed
from tests.sasl.tokens import first_message, part, unsecured

SKEW_SECONDS = 600
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
KEYS = (jwk("RS256", kid="rsa"), jwk("ES256", kid="ec"), jwk("ES384", use="sig"), jwk("RS256", 1, kid="enc", use="enc"))


class Listener(NamedTuple):
    """A broker's SASL listener."""

    bootstrap: str


class Guarded:
    """A broker with two SASL listeners."""

    def __init__(self, name: str, jars: Path, directory: Path) -> None:
        port, believed, with_signature, controller = (free_port() for _ in range(4))
        keys = directory / "keys.json"
        keys.write_bytes(key_set(*KEYS))
        self.url = f"file://{keys}"
        self.believed, self.signed = Listener(f"localhost:{believed}"), Listener(f"localhost:{with_signature}")
        listeners = ",".join(
            f"{name}://localhost:{each}"
            for name, each in (("PLAINTEXT", port), ("BELIEVED", believed), ("SIGNED", with_signature))
        )
        protocols = {"PLAINTEXT": "PLAINTEXT", "BELIEVED": "SASL_PLAINTEXT", "SIGNED": "SASL_PLAINTEXT"}
        options = (
            'unsecuredLoginStringClaim_sub="broker" unsecuredValidatorRequiredScope="read" '
            'unsecuredValidatorAllowableClockSkewMs="600000"'
        )
        oauth = "oauthbearer.sasl"
        settings = {
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in {**protocols, "CONTROLLER": "PLAINTEXT"}.items()
            ),
            "listeners": listeners,
            "advertised.listeners": listeners,
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            f"listener.name.believed.{oauth}.jaas.config": f"{LOGIN_MODULE} required {options};",
            f"listener.name.signed.{oauth}.jaas.config": f"{LOGIN_MODULE} required;",
            f"listener.name.signed.{oauth}.server.callback.handler.class": SIGNED,
            "listener.name.signed.sasl.oauthbearer.jwks.endpoint.url": self.url,
            "listener.name.signed.sasl.oauthbearer.expected.audience": "kafka,all",
            "listener.name.signed.sasl.oauthbearer.expected.issuer": "https://issuer",
            "listener.name.signed.sasl.oauthbearer.clock.skew.seconds": str(SKEW_SECONDS),
            "connections.max.reauth.ms": "60000",
        }
        self.broker: ProcessBroker
        if name == "kafka":
            settings["listeners"] += f",CONTROLLER://localhost:{controller}"
            settings["controller.quorum.bootstrap.servers"] = f"localhost:{controller}"
            self.broker = KafkaProcess(jars, directory, settings, port)
            self.broker.add_classes(directory, {ALLOWED: self.url})
        else:
            self.broker = PykafkadProcess(directory, settings, port=port)


def _guarded(name: str, request: pytest.FixtureRequest, factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    jars = request.getfixturevalue("kafka_jars") if name == "kafka" else Path()
    made = Guarded(name, jars, factory.mktemp(f"oauth-{name}"))
    try:
        made.broker.start()
        yield made
    finally:
        made.broker.close()
    if isinstance(made.broker, PykafkadProcess):
        assert_no_bug_logged(made.broker)
        assert "eyJ" not in made.broker.log_text(), "a token, or a part of one"


@pytest.fixture(scope="module")
def guarded_kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A real Kafka."""
    yield from _guarded("kafka", request, tmp_path_factory)


@pytest.fixture(scope="module")
def guarded_pykafkad(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """And pykafkad with the same settings."""
    yield from _guarded("pykafkad", request, tmp_path_factory)


# --- token by token -------------------------------------------------------------------------------------------------


def show(listener: Listener, title: str, message: bytes, handshake: int = 1, version: int = 2) -> Talk:
    """A login with one first message, and the client's last word."""
    talk = Talk(listener, title)
    talk.ask("SaslHandshake", handshake, mechanism="OAUTHBEARER")
    for token in (message, b"\1"):
        if handshake == 0:
            talk.bare(token)
        else:
            talk.ask("SaslAuthenticate", version, auth_bytes=token)
    talk.ask("Metadata", 12, topics=[])
    return talk


def good_claims() -> dict[str, Any]:
    """What counts at both listeners."""
    now = int(time.time())
    return {"sub": "alice", "scope": ["read"], "iat": now, "exp": now + 3600, "aud": "all", "iss": "https://issuer"}


def messages(guarded: Guarded) -> Iterator[Talk]:
    """First messages of every form, with a token that counts."""
    token = unsecured(good_claims())
    for handshake, version in ((0, 0), (1, 0), (1, 1), (1, 2)):
        for name, message in (
            ("right", first_message(token)),
            ("with id", first_message(token, "alice")),
            ("with another's id", first_message(token, "bob")),
            ("with extensions", first_message(token, traceId="1 2", x="y=z")),
            ("wrong token", first_message("x.y.z")),
            ("wrong message", first_message(token)[:-1]),
        ):
            yield show(guarded.believed, f"{name} {handshake} {version}", message, handshake, version)
    good = first_message(token)
    for old, new in (
        (b"n,,", b"y,,"),
        (b"n,,", b"p=x,,"),
        (b"n,,", b"n,"),
        (b"n,,", b"n,a=,"),
        (b"n,,", b"n,a=al=3Dice,"),
        (b"n,,", b"n,a=al=ice,"),
        (b"Bearer ", b"bEARER   "),
        (b"Bearer ", b"Bearer\t"),
        (b"Bearer ", b""),
        (b"auth=", b"Auth="),
        (b"\1\1", b"\1auth=Bearer x\1\1"),
        (b"\1\1", b"\1x=\1\1"),
        (b"\1\1", b"\1x1=y\1\1"),
        (b"\1\1", b"\1x=y\1"),
        (b"\1\1", b"==\1\1"),
        (b"\1\1", b"=a\1\1"),
        (b"\1\1", b"\1x=\xc3\xa4\1\1"),
        (b"\1\1", b"\1\1\1"),
    ):
        yield show(guarded.believed, f"{old!r} {new!r}", good.replace(old, new))
    for message in (b"", b"\1", b"\0", b"\xff\xff"):
        yield show(guarded.believed, f"{message!r}", message)
    talk = Talk(guarded.believed, "another token after the error")
    talk.ask("SaslHandshake", 1, mechanism="OAUTHBEARER")
    for message in (first_message("x"), first_message("y"), good):
        talk.ask("SaslAuthenticate", 2, auth_bytes=message)
    talk.ask("Metadata", 12, topics=[])
    yield talk


def believed(guarded: Guarded) -> Iterator[Talk]:
    """Claims of tokens that nobody has signed."""
    now, claims = int(time.time()), good_claims()
    for number, change in enumerate((
        {},
        {"sub": ""}, {"sub": 1}, {"sub": True}, {"sub": None}, {"sub": ["alice"]}, {"sub": {}}, {"sub": " alice "},
        {"exp": now - SKEW_SECONDS - 9}, {"exp": str(now)}, {"exp": None}, {"exp": True}, {"exp": now + 0.5e3},
        {"iat": now + SKEW_SECONDS + 300}, {"iat": now + SKEW_SECONDS - 300}, {"iat": now + 3600}, {"iat": "x"},
        {"iat": None}, {"nbf": now + 9999},
        {"scope": None}, {"scope": "read"}, {"scope": "read write"}, {"scope": [" read "]}, {"scope": ["write"]},
        {"scope": 1}, {"scope": []}, {"scope": ["read", 1, None]}, {"scope": {}},
    )):  # fmt: skip
        yield show(guarded.believed, f"believed {number} {list(change)}", first_message(unsecured(claims | change)))
    for left_out in claims:
        less = {name: value for name, value in claims.items() if name != left_out}
        yield show(guarded.believed, f"believed without {left_out}", first_message(unsecured(less)))
    wrong = (
        unsecured(claims, {"alg": "HS256"}),
        unsecured(claims, {"alg": "none", "typ": "JWT"}),
        unsecured(claims, signature="YQ"),
        unsecured(claims)[:-1],
        unsecured(claims) + ".",
        "." + unsecured(claims),
        unsecured(b"{"),
        f"{part({'alg': 'none'})}..",
        "x",
    )
    for number, token in enumerate(wrong):
        yield show(guarded.believed, f"believed token {number}", first_message(token))


def with_signature(guarded: Guarded) -> Iterator[Talk]:
    """Signatures and claims of tokens of an issuer."""
    now, claims = int(time.time()), good_claims()
    for number, change in enumerate((
        {},
        {"sub": ""}, {"sub": 1}, {"sub": None}, {"sub": " alice "},
        {"exp": now - SKEW_SECONDS - 9}, {"exp": str(now)}, {"exp": None}, {"exp": now + 500.5},
        {"iat": now + 1800}, {"iat": now + 9999}, {"iat": "x"}, {"iat": None}, {"iat": -1},
        {"nbf": now + SKEW_SECONDS + 300}, {"nbf": now + SKEW_SECONDS - 300}, {"nbf": now + 9999}, {"nbf": "x"},
        {"aud": "other"}, {"aud": ["other", "kafka"]}, {"aud": []}, {"aud": 1}, {"aud": [1, "kafka"]},
        {"scope": ["a", " a"]}, {"iss": "other"}, {"iss": 1}, {"iss": None}, {"jti": 1}, {"jti": "x"},
        {"scope": None}, {"scope": "a b"}, {"scope": ""}, {"scope": ["a", "a"]}, {"scope": [""]},
    )):  # fmt: skip
        yield show(guarded.signed, f"signed {number} {list(change)}", first_message(signed(claims | change, kid="ec")))
    for left_out in claims:
        less = {name: value for name, value in claims.items() if name != left_out}
        yield show(guarded.signed, f"signed without {left_out}", first_message(signed(less, kid="ec")))
    good = signed(claims, kid="ec")
    head, middle, tail = good.split(".")
    for title, token in (
        ("RS256", signed(claims, "RS256", kid="rsa")),
        ("PS512", signed(claims, "PS512", kid="rsa")),
        ("ES384 without an id", signed(claims, "ES384")),
        ("ES256 without an id", signed(claims, "ES256")),
        ("ES384 with an id", signed(claims, "ES384", kid="ec")),
        ("an unknown id", signed(claims, "ES256", kid="x")),
        ("another key", signed(claims, "ES256", 1, kid="ec")),
        ("a key for encryption", signed(claims, "RS256", 1, kid="enc")),
        ("HS256", signed(claims, "HS256", kid="ec")),
        ("none", unsecured(claims)),
        ("none with a signature", f"{part({'alg': 'none'})}.{middle}.{tail}"),
        ("crit", signed(claims, "ES256", kid="ec", crit=["x"], x=1)),
        ("other claims", f"{head}.{part(claims | {'sub': 'root'})}.{tail}"),
        ("no signature", f"{head}.{middle}."),
        ("another signature", f"{head}.{middle}.{tail[::-1]}"),
        ("four parts", f"{good}.x"),
        ("claims that are a list", signed([1], kid="ec")),
        ("claims that are nothing", signed(b"", kid="ec")),
    ):
        yield show(guarded.signed, title, first_message(token))


def renewals(guarded: Guarded) -> Iterator[Talk]:
    """Tokens on connections that have logged in."""
    claims = good_claims()
    for user, handshake in (("alice", 1), ("alice", 0), ("bob", 1), ("bob", 0)):
        talk = Talk(guarded.signed, f"again as {user} {handshake}")
        talk.ask("SaslHandshake", 1, mechanism="OAUTHBEARER")
        talk.ask("SaslAuthenticate", 2, auth_bytes=first_message(signed(claims, kid="ec")))
        talk.ask("SaslHandshake", handshake, mechanism="OAUTHBEARER")
        message = first_message(signed(claims | {"sub": user}, "RS256", kid="rsa"))
        if handshake:
            talk.ask("SaslAuthenticate", 2, auth_bytes=message)
        else:
            talk.bare(message)
        talk.ask("Metadata", 12, topics=[])
        yield talk
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        talk = Talk(guarded.signed, mechanism)
        talk.ask("SaslHandshake", 1, mechanism=mechanism)
        yield talk


@pytest.mark.parametrize(
    "talks", [messages, believed, with_signature, renewals], ids=lambda talks: talks.__name__
)  # fmt: skip
def test_answers_are_kafkas(guarded_kafka: Guarded, guarded_pykafkad: Guarded, talks: Any) -> None:
    """Every login in both brokers: each answer, and whether the connection goes on."""
    ours = [talk.close() for talk in talks(guarded_pykafkad)]
    theirs = [talk.close() for talk in talks(guarded_kafka)]
    wrong = [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]]
    assert not wrong, "\n\n".join("\n".join(("Kafka:", *one, "pykafkad:", *other)) for one, other in wrong)


def test_only_pykafkad_answers_another_scheme(guarded_kafka: Guarded, guarded_pykafkad: Guarded) -> None:
    """Kafka fails while it words its error, and ends the connection."""
    told = []
    for guarded in (guarded_kafka, guarded_pykafkad):
        talk = Talk(guarded.believed, "")
        talk.ask("SaslHandshake", 1, mechanism="OAUTHBEARER")
        message = first_message(unsecured(good_claims())).replace(b"Bearer", b"Basic")
        told.append(talk.ask("SaslAuthenticate", 2, auth_bytes=message))
        talk.close()
    assert told[0] == CLOSED and told[1].error_code == SASL_AUTHENTICATION_FAILED


def test_a_login_counts_as_long_as_its_token(guarded_kafka: Guarded, guarded_pykafkad: Guarded) -> None:
    """If that is shorter than the setting; one that has ended by less than the skew counts for nothing else."""
    for guarded in (guarded_kafka, guarded_pykafkad):
        for listener, sign in (
            (guarded.believed, unsecured),
            (guarded.signed, lambda claims: signed(claims, kid="ec")),
        ):
            talk = Talk(listener, "")
            talk.ask("SaslHandshake", 1, mechanism="OAUTHBEARER")
            claims = good_claims() | {"exp": int(time.time()) + 40}
            answer = talk.ask("SaslAuthenticate", 2, auth_bytes=first_message(sign(claims)))
            assert 20_000 < answer.session_lifetime_ms <= 40_000
            talk.close()
            talk = Talk(listener, "")
            talk.ask("SaslHandshake", 1, mechanism="OAUTHBEARER")
            claims = good_claims() | {"exp": int(time.time()) - 40, "iat": 0}
            answer = talk.ask("SaslAuthenticate", 2, auth_bytes=first_message(sign(claims)))
            assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
            talk.ask("Metadata", 12, topics=[])
            assert talk.close()[-1].endswith(repr(CLOSED)), talk.told


# --- clients --------------------------------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a client's test once for each broker, the real Kafka first."""
    if "guarded_name" in metafunc.fixturenames:
        metafunc.parametrize(
            "guarded_name", [f"guarded_{name}" for name in AGAINST[metafunc.config.getoption("--against")]]
        )


@pytest.fixture
def bootstrap(guarded_name: str, request: pytest.FixtureRequest) -> str:
    """The address of a broker's listener for signed tokens."""
    return request.getfixturevalue(guarded_name).signed.bootstrap


def token_now() -> str:
    """A token that counts now."""
    return signed(good_claims(), "RS256", kid="rsa")


def test_confluent_kafka(bootstrap: str, fresh_name: Any) -> None:
    """A record there and back, with a group."""
    options = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (token_now(), time.time() + 3600),
    }
    there_and_back.by_confluent_kafka(fresh_name(), fresh_name("group"), options)


def python(bootstrap: str, provider: object) -> dict[str, Any]:
    """Options of kafka-python and aiokafka."""
    return {"bootstrap_servers": bootstrap, "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": provider}  # fmt: skip


class TokenProvider(AbstractTokenProvider):
    """What kafka-python asks."""

    def token(self) -> str:
        return token_now()


def test_kafka_python(bootstrap: str, fresh_name: Any) -> None:
    """A record there and back."""
    there_and_back.by_kafka_python(fresh_name(), python(bootstrap, TokenProvider()))


class AsyncTokenProvider(AiokafkaTokenProvider):
    """What aiokafka asks."""

    async def token(self) -> str:
        return token_now()


def test_aiokafka(bootstrap: str, fresh_name: Any) -> None:
    """A record there and back."""
    there_and_back.by_aiokafka(fresh_name(), python(bootstrap, AsyncTokenProvider()))


def test_the_library_is_here() -> None:
    """The unit tests of signed tokens are left out without it; here it must be."""
    assert jwt.algorithms.has_crypto
