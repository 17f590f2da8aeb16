"""Logins by SASL: answer by answer beside a real Kafka, and by three clients with every mechanism.

Both brokers have two listeners: PLAINTEXT, and GUARDED by SASL_PLAINTEXT. Logins count for a minute, so that they can
be renewed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from compat_tests import there_and_back
from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, assert_no_bug_logged
from compat_tests.login_talk import Talk
from compat_tests.samples import wait_until
from compat_tests.scenarios.exchange import Exchange, part, versions
from pykafkad.metadata.credentials import NUMBERS
from pykafkad.sasl.scram import HASHES
from tests.sasl.client import ScramClient

MECHANISMS = ("PLAIN", *HASHES)
PASSWORDS = {"alice": "alice-secret", "bob": 'bob secret; "quoted" \\'}
# As a properties file has it, in which each backslash stands for an escape.
USERS = r'user_alice="alice-secret" user_bob="bob secret; \\"quoted\\" \\\\"'


class Guarded:
    """A broker with a SASL listener. `bootstrap` is that listener's."""

    def __init__(self, name: str, jars: Path, directory: Path) -> None:
        port, sasl_port, controller_port = free_port(), free_port(), free_port()
        self.name = name
        self.bootstrap = f"localhost:{sasl_port}"
        prefix = "listener.name.guarded"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        listeners = f"PLAINTEXT://localhost:{port},GUARDED://localhost:{sasl_port}"
        settings = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "listeners": listeners,
            "advertised.listeners": listeners,
            f"{prefix}.sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN,SCRAM-SHA-512",
            f"{prefix}.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f"{USERS};",
            f"{prefix}.scram-sha-256.sasl.jaas.config": scram,
            f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
            "connections.max.reauth.ms": "60000",
        }
        self.broker: ProcessBroker
        if name == "kafka":
            settings["listeners"] += f",CONTROLLER://localhost:{controller_port}"
            settings["controller.quorum.bootstrap.servers"] = f"localhost:{controller_port}"
            self.broker = KafkaProcess(jars, directory, settings, port)
        else:
            self.broker = PykafkadProcess(directory, settings, port=port)

    def start(self) -> None:
        """Start it, and add the users of SCRAM."""
        self.broker.start()
        admin = Exchange(self.broker.bootstrap, "sasl")
        upsertions = []
        for user, password in PASSWORDS.items():
            for mechanism, hash_name in HASHES.items():
                salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), b"salt", 4096)
                fields = {"mechanism": NUMBERS[mechanism], "iterations": 4096, "salt": b"salt"}
                row = part("AlterUserScramCredentials", "ScramCredentialUpsertion", name=user,
                           salted_password=salted, **fields)  # fmt: skip
                answer = admin.quietly("AlterUserScramCredentials", 0, upsertions=[row])
                assert answer.results[0].error_code == 0
                upsertions.append(row)
        admin.until(
            lambda: admin.quietly("DescribeUserScramCredentials", 0, users=None),
            lambda answer: sum(len(row.credential_infos) for row in answer.results) == len(upsertions),
        )
        admin.close()


def _guarded(name: str, request: pytest.FixtureRequest, factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    jars = request.getfixturevalue("kafka_jars") if name == "kafka" else Path()
    made = Guarded(name, jars, factory.mktemp(f"sasl-{name}"))
    try:
        made.start()
        yield made
    finally:
        made.broker.close()
    if isinstance(made.broker, PykafkadProcess):
        assert_no_bug_logged(made.broker)
        for password in PASSWORDS.values():
            assert password not in made.broker.log_text()


@pytest.fixture(scope="module")
def guarded_kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A real Kafka."""
    yield from _guarded("kafka", request, tmp_path_factory)


@pytest.fixture(scope="module")
def guarded_pykafkad(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """And pykafkad with the same settings."""
    yield from _guarded("pykafkad", request, tmp_path_factory)


# --- answer by answer -----------------------------------------------------------------------------------------------


def logins(guarded: Guarded) -> Iterator[Talk]:
    """Right and wrong logins, in every version."""
    for mechanism in MECHANISMS:
        for user, password in (*PASSWORDS.items(), ("alice", "wrong"), ("alice", "bob-secret")):
            for handshake, version in ((0, 0), (1, 0), (1, 1), (1, 2)):
                talk = Talk(guarded, f"{mechanism} {user} {password} {handshake} {version}")
                talk.log_in(mechanism, user, password, version, handshake)
                talk.ask("Metadata", 12, topics=[])
                yield talk
    for token in (b"", b"alice", b"\0nobody\0secret", b"\0alice\0", b"\0\0secret", b"bob\0alice\0alice-secret",
                  b"alice\0alice\0alice-secret", b"bob\0alice\0wrong", b"\0alice\0alice-secret\0", b"\xff\0\xff\0\xff",
                  b"\0\0\0\0\0"):  # fmt: skip
        talk = Talk(guarded, f"PLAIN {token!r}")
        talk.ask("SaslHandshake", 1, mechanism="PLAIN")
        talk.ask("SaslAuthenticate", 2, auth_bytes=token)
        talk.ask("Metadata", 12, topics=[])
        yield talk
    for first in (b"", b"n,,n=alice", b"y,,n=alice,r=x", b"n,a=bob,n=alice,r=x", b"n,a=alice,n=alice,r=x",
                  b"n,,n=al=ice,r=x", b"n,,n=alice,r=x,ext=1", b"n,,n=alice,r=x,1=1", b"p=x,,n=alice,r=x",
                  b"n,,n=alice,r=x y", b"n,,n=\xc3\xa4,r=x", b"n,,n=nobody,r=x,tokenauth=true"):  # fmt: skip
        talk = Talk(guarded, f"SCRAM {first!r}")
        talk.ask("SaslHandshake", 1, mechanism="SCRAM-SHA-256")
        talk.ask("SaslAuthenticate", 2, auth_bytes=first)
        yield talk
    for change in ((b"servernonce", b""), (b"fyko", b"Fyko"), (b",r=", b",r=x"), (b"p=", b"q="), (b",p=", b",e=1,p=")):
        talk = Talk(guarded, f"SCRAM {change}")
        talk.ask("SaslHandshake", 1, mechanism="SCRAM-SHA-512")
        client = ScramClient("sha512", "alice", "wrong")
        answer = talk.ask("SaslAuthenticate", 2, auth_bytes=client.first())
        talk.ask("SaslAuthenticate", 2, auth_bytes=client.final(bytes(answer.auth_bytes)).replace(*change, 1))
        yield talk


def stages(guarded: Guarded) -> Iterator[Talk]:
    """Requests that do not belong where they are."""
    for version in (0, 1):
        for mechanism in ("GSSAPI", "", "plain", "OAUTHBEARER"):
            talk = Talk(guarded, f"mechanism {mechanism}")
            talk.ask("SaslHandshake", version, mechanism=mechanism)
            talk.ends()
            yield talk
    for before in ((), ("ApiVersions",)):
        for api, version in (("Metadata", 12), ("SaslAuthenticate", 2), ("ApiVersions", 4), ("SaslHandshake", 1)):
            talk = Talk(guarded, f"{api} after {before}")
            for each in before:
                talk.ask(each, 0)
            fields = {"ApiVersions": {"client_software_name": "x", "client_software_version": "1"}}.get(api, {})
            talk.ask(api, version, **fields)
            yield talk
    talk = Talk(guarded, "invalid ApiVersions do not count")
    for name in ("-", "x"):
        talk.ask("ApiVersions", 3, client_software_name=name, client_software_version="1")
    talk.ask("ApiVersions", 0)
    yield talk
    for api, version in (("Metadata", 12), ("ApiVersions", 0), ("SaslHandshake", 1), ("ListGroups", 4), ("Fetch", 12)):
        talk = Talk(guarded, f"{api} during the authentication")
        talk.ask("SaslHandshake", 1, mechanism="PLAIN")
        talk.ask(api, version)
        talk.ends()
        yield talk
    talk = Talk(guarded, "a long token")
    talk.ask("SaslHandshake", 1, mechanism="PLAIN")
    talk.ask("SaslAuthenticate", 2, auth_bytes=b"\0alice\0" + b"x" * 524_000)
    yield talk
    talk = Talk(guarded, "too long a token")
    talk.ask("SaslHandshake", 1, mechanism="PLAIN")
    talk.ask("SaslAuthenticate", 2, auth_bytes=b"\0alice\0" + b"x" * 524_288)
    yield talk


def renewals(guarded: Guarded) -> Iterator[Talk]:
    """Logins on connections that have logged in."""
    for mechanism, user, password in (
        ("PLAIN", "alice", "alice-secret"),
        ("PLAIN", "alice", "wrong"),
        ("PLAIN", "bob", PASSWORDS["bob"]),
        ("SCRAM-SHA-256", "alice", "alice-secret"),
        ("GSSAPI", "alice", "alice-secret"),
    ):
        for handshake in (0, 1):
            talk = Talk(guarded, f"again by {mechanism} {user} {password} {handshake}")
            talk.log_in("PLAIN", "alice", "alice-secret")
            if mechanism == "GSSAPI":
                talk.ask("SaslHandshake", handshake, mechanism=mechanism)
            else:
                talk.log_in(mechanism, user, password, handshake=handshake)
            talk.ask("Metadata", 12, topics=[])
            yield talk
    talk = Talk(guarded, "again too soon")
    for _ in range(3):
        talk.log_in("PLAIN", "alice", "alice-secret")
    talk.ask("Metadata", 12, topics=[])
    yield talk


def without_tokens(guarded: Guarded) -> Iterator[Talk]:
    """Requests about delegation tokens to a broker without `delegation.token.secret.key`."""
    owner = part("DescribeDelegationToken", "DescribeDelegationTokenOwner", principal_type="User", principal_name="x")
    for api, forms in (
        ("CreateDelegationToken", ({}, {"owner_principal_type": "User", "owner_principal_name": "bob"},
                                   {"owner_principal_type": None, "owner_principal_name": "bob"})),
        ("RenewDelegationToken", ({"hmac": b""}, {"hmac": b"x"})),
        ("ExpireDelegationToken", ({"hmac": b""}, {"hmac": b"x", "expiry_time_period_ms": -1})),
        ("DescribeDelegationToken", ({"owners": None}, {"owners": []}, {"owners": [owner]})),
    ):  # fmt: skip
        for version in versions(api):
            talk = Talk(guarded, f"{api} {version}")
            talk.log_in("PLAIN", "alice", "alice-secret")
            for fields in forms:
                talk.ask(api, version, **fields)
            yield talk


@pytest.mark.parametrize("talks", [logins, stages, renewals, without_tokens], ids=lambda talks: talks.__name__)
def test_answers_are_kafkas(guarded_kafka: Guarded, guarded_pykafkad: Guarded, talks: Any) -> None:
    """Every login in both brokers: each answer, and when the connection ends."""
    ours = [talk.close() for talk in talks(guarded_pykafkad)]
    theirs = [talk.close() for talk in talks(guarded_kafka)]
    wrong = [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]]
    assert not wrong, "\n\n".join("\n".join(("Kafka:", *one, "pykafkad:", *other)) for one, other in wrong)


def test_a_refusal_comes_a_moment_later(guarded_kafka: Guarded, guarded_pykafkad: Guarded) -> None:
    """`connection.failed.authentication.delay.ms` is 100."""
    for guarded in (guarded_kafka, guarded_pykafkad):
        talk = Talk(guarded, "")
        begun = time.monotonic()
        talk.log_in("PLAIN", "alice", "wrong")
        assert time.monotonic() - begun >= 0.1
        talk.close()


def test_only_kafka_tells_who_exists(guarded_kafka: Guarded, guarded_pykafkad: Guarded) -> None:
    """It refuses the first message of a user that does not exist; pykafkad refuses the second, in the same words."""
    told = []
    for guarded in (guarded_kafka, guarded_pykafkad):
        talk = Talk(guarded, "")
        talk.log_in("SCRAM-SHA-256", "nobody", "secret")
        told.append(talk.close())
    assert [len(each) for each in told] == [3, 4] and told[0][-1] == told[1][-1]


# --- clients --------------------------------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a client's test once for each broker, the real Kafka first."""
    if "guarded_name" in metafunc.fixturenames:
        metafunc.parametrize(
            "guarded_name", [f"guarded_{name}" for name in AGAINST[metafunc.config.getoption("--against")]]
        )


@pytest.fixture
def bootstrap(guarded_name: str, request: pytest.FixtureRequest) -> str:
    """The address of a broker's SASL listener."""
    return request.getfixturevalue(guarded_name).bootstrap


def librdkafka(bootstrap: str, mechanism: str, password: str, user: str = "bob") -> dict[str, Any]:
    """Options of confluent-kafka."""
    return {"bootstrap.servers": bootstrap, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism,
            "sasl.username": user, "sasl.password": password}  # fmt: skip


def python(bootstrap: str, mechanism: str, password: str, user: str = "bob") -> dict[str, Any]:
    """Options of kafka-python and aiokafka."""
    return {"bootstrap_servers": bootstrap, "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism,
            "sasl_plain_username": user, "sasl_plain_password": password}  # fmt: skip


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_kafka(bootstrap: str, mechanism: str, fresh_name: Any) -> None:
    """A record there and back, with a group."""
    options = librdkafka(bootstrap, mechanism, PASSWORDS["bob"])
    there_and_back.by_confluent_kafka(fresh_name(), fresh_name("group"), options)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(bootstrap: str, mechanism: str, fresh_name: Any) -> None:
    """A record there and back."""
    there_and_back.by_kafka_python(fresh_name(), python(bootstrap, mechanism, PASSWORDS["bob"]))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka(bootstrap: str, mechanism: str, fresh_name: Any) -> None:
    """A record there and back."""
    there_and_back.by_aiokafka(fresh_name(), python(bootstrap, mechanism, PASSWORDS["bob"]))


@pytest.mark.parametrize(
    ("mechanism", "user", "words"),
    [
        ("PLAIN", "alice", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-256", "alice", "due to invalid credentials with SASL mechanism SCRAM-SHA-256"),
        ("SCRAM-SHA-512", "nobody", "due to invalid credentials with SASL mechanism SCRAM-SHA-512"),
    ],
)
def test_clients_tell_of_wrong_credentials(bootstrap: str, mechanism: str, user: str, words: str) -> None:
    """In the broker's words."""
    told: list[str] = []
    client = Producer(
        {**librdkafka(bootstrap, mechanism, "wrong", user), "error_cb": lambda each: told.append(str(each))}
    )
    wait_until(lambda: client.poll(0.2) or any(words in each for each in told), "librdkafka's error")
