"""Logins by GSSAPI: token by token beside a real Kafka with the same keytab, by Java's clients, kafka-python, aiokafka
and pykafkad's commands.

librdkafka is not among them: the wheels of confluent-kafka are built without GSSAPI. Both brokers have the listeners
PLAINTEXT; GUARDED with the usual rule for names, and ENCRYPTED, the same by TLS; RULED with rules of its own; and
NAMELESS, whose rules fit nobody.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST, assert_no_bug_logged, unavailable
from compat_tests.java_tools import JAVA_OPTIONS
from compat_tests.kerberos.kdc import REALM, SERVICE, Kdc, program
from pykafkad.config import STANDARD_AUTHORIZER
from pykafkad.sasl.kerberos_settings import LOGIN_MODULE
from tests import certificates
from tests.sasl.kerberos_rules import CASES, INVALID

LIMIT_SECONDS = 120
PROJECT = Path(__file__).parents[2]
CLIENTS = ("alice", "billing/localhost")
RULES = {
    "GUARDED": "DEFAULT",
    "RULED": "RULE:[2:$1-$2](billing-.*)s/-.*/-service/U,RULE:[1:$1]s/^/user-/",
    "NAMELESS": "RULE:[1:$1](nobody)",
}
ENCRYPTED = "ENCRYPTED"
LISTENERS = {**RULES, ENCRYPTED: "DEFAULT"}
CLIENTS_AT = ("GUARDED", ENCRYPTED)


def _principal(name: str) -> str:
    return f"{name}@{REALM}"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A realm with a broker and clients, each with a keytab."""
    missing = [name for name in ("krb5kdc", "kadmin.local", "kdb5_util") if program(name) is None]
    if missing:
        unavailable(f"{' and '.join(missing)} is missing: apt-get install krb5-kdc krb5-admin-server (Debian, Ubuntu)")
    if importlib.util.find_spec("gssapi") is None:
        unavailable("the package gssapi is missing: python -m compat_tests.setup")
    made = Kdc(tmp_path_factory.mktemp("kdc"))
    try:
        made.start()
        made.add(SERVICE, made.directory / "broker.keytab")
        for name in CLIENTS:
            made.add(_principal(name), made.directory / "clients.keytab")
        (made.directory / "ca.pem").write_text(certificates.authority().pem)
        yield made
    finally:
        made.close()


class Guarded:
    """A broker with listeners that ask for tickets."""

    def __init__(self, name: str, jars: Path, directory: Path, kdc: Kdc) -> None:
        ports = {listener: free_port() for listener in ("PLAINTEXT", *LISTENERS)}
        controller = free_port()
        self.bootstraps = {listener: f"localhost:{port}" for listener, port in ports.items()}
        listeners = ",".join(f"{listener}://{address}" for listener, address in self.bootstraps.items())
        module = (
            f"{LOGIN_MODULE} required useKeyTab=true storeKey=true "
            f'keyTab="{kdc.directory / "broker.keytab"}" principal="{SERVICE}";'
        )
        settings = {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            + ",".join(f"{each}:SASL_{'SSL' if each == ENCRYPTED else 'PLAINTEXT'}" for each in LISTENERS),
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS;User:alice;User:user-alice;User:BILLING-SERVICE",
            "connections.max.reauth.ms": "60000",
            **{name: text.replace("\n", "\\n") for name, text in certificates.settings().items()},
        }
        for listener, rules in LISTENERS.items():
            prefix = f"listener.name.{listener.lower()}"
            settings[f"{prefix}.gssapi.sasl.jaas.config"] = module
            settings[f"{prefix}.sasl.kerberos.principal.to.local.rules"] = rules
        self.broker: ProcessBroker
        if name == "kafka":
            settings["listeners"] += f",CONTROLLER://localhost:{controller}"
            settings["controller.quorum.bootstrap.servers"] = f"localhost:{controller}"
            self.broker = KafkaProcess(jars, directory, settings, ports["PLAINTEXT"])
            self.broker.add_classes(directory, {"java.security.krb5.conf": str(kdc.configuration)})
        else:
            self.broker = PykafkadProcess(directory, settings, ["--log-level", "debug"], port=ports["PLAINTEXT"])


def _guarded(
    name: str,
    kdc: Kdc,
    request: pytest.FixtureRequest,
    factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Guarded]:
    for variable, value in kdc.environment.items():
        monkeypatch.setenv(variable, value)
    jars = request.getfixturevalue("kafka_jars") if name == "kafka" else Path()
    made = Guarded(name, jars, factory.mktemp(f"kerberos-{name}"), kdc)
    try:
        made.broker.start()
        yield made
    finally:
        made.broker.close()
    if isinstance(made.broker, PykafkadProcess):
        assert_no_bug_logged(made.broker)


@pytest.fixture(scope="module")
def patched() -> Iterator[pytest.MonkeyPatch]:
    """The variables of the realm, for the brokers of this module."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def kerberos_kafka(
    kdc: Kdc, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, patched: pytest.MonkeyPatch
) -> Iterator[Guarded]:
    """A real Kafka."""
    yield from _guarded("kafka", kdc, request, tmp_path_factory, patched)


@pytest.fixture(scope="module")
def kerberos_pykafkad(
    kdc: Kdc, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, patched: pytest.MonkeyPatch
) -> Iterator[Guarded]:
    """And pykafkad with the same settings and the same keytab."""
    yield from _guarded("pykafkad", kdc, request, tmp_path_factory, patched)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each client once for each broker, the real Kafka first."""
    if "kerberos_name" in metafunc.fixturenames:
        names = AGAINST[metafunc.config.getoption("--against")]
        metafunc.parametrize("kerberos_name", [f"kerberos_{name}" for name in names])


def _variables(kdc: Kdc) -> dict[str, str]:
    """Those of a client of the realm."""
    path = os.pathsep.join([str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **kdc.environment, "PYTHONPATH": path}


def _python(kdc: Kdc, *words: str) -> str:
    """What a program in Python prints that has the clients' keytab."""
    variables = {**_variables(kdc), "KRB5_CLIENT_KTNAME": str(kdc.directory / "clients.keytab")}
    done = subprocess.run(
        [sys.executable, *words], env=variables, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _talks(kdc: Kdc, bootstrap: str, name: str, way: str) -> Any:
    keytab = str(kdc.directory / "clients.keytab")
    return json.loads(_python(kdc, "-m", "compat_tests.kerberos.client", bootstrap, keytab, _principal(name), way))


@pytest.mark.parametrize("way", ["logins", "renewals"])
def test_answers_are_kafkas(kdc: Kdc, kerberos_kafka: Guarded, kerberos_pykafkad: Guarded, way: str) -> None:
    """Every login in both brokers: each answer, and whether the connection goes on."""
    theirs, ours = (
        _talks(kdc, each.bootstraps["GUARDED"], "alice", way) for each in (kerberos_kafka, kerberos_pykafkad)
    )
    wrong = [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]]
    assert not wrong, "\n\n".join("\n".join(("Kafka:", *one, "pykafkad:", *other)) for one, other in wrong)


@pytest.mark.parametrize("listener", RULES)
@pytest.mark.parametrize("name", CLIENTS)
def test_names_follow_the_rules(
    kdc: Kdc, kerberos_kafka: Guarded, kerberos_pykafkad: Guarded, listener: str, name: str
) -> None:
    """A client for whom no rule makes a name is told that it has logged in, and served nothing."""
    theirs, ours = (
        _talks(kdc, each.bootstraps[listener], name, "names") for each in (kerberos_kafka, kerberos_pykafkad)
    )
    assert theirs == ours


def test_names_are_kafkas(kafka_jars: Path, tmp_path: Path) -> None:
    """Each rule and name of the unit tests, by Kafka's own classes."""
    cases = [*((rules, principal, name) for rules, principal, name in CASES if rules)]
    lines = ["\t".join(("REALM", principal, *rules)) for rules, principal, _ in cases]
    lines += ["\t".join(("REALM", "alice@REALM", rule)) for rule in INVALID]
    (tmp_path / "cases").write_text("".join(f"{line}\n" for line in lines))
    done = subprocess.run(
        ["java", *JAVA_OPTIONS, "-cp", f"{kafka_jars}/*", str(Path(__file__).with_name("ShortNames.java")),
         str(tmp_path / "cases")],
        capture_output=True, timeout=LIMIT_SECONDS, check=True,
    )  # fmt: skip
    expected = ["no name\t" if name is None else f"name\t{name}" for _, _, name in cases]
    expected += ["no rule\t"] * len(INVALID)
    told = done.stdout.decode().split("\n")[:-1]
    assert [(line, each) for line, each in zip(lines, told, strict=True)] == list(zip(lines, expected, strict=True))


def _words(kdc: Kdc, listener: str) -> list[str]:
    """Options of client-config for a listener."""
    words = ["--keytab", str(kdc.directory / "clients.keytab"), "--user", _principal("alice"), "--mechanism", "gssapi"]
    return words if listener != ENCRYPTED else [*words, "--tls", str(kdc.directory / "ca.pem")]


@pytest.mark.parametrize("listener", CLIENTS_AT)
def test_java(
    kdc: Kdc, kerberos_name: str, request: pytest.FixtureRequest, kafka_jars: Path, tmp_path: Path, listener: str
) -> None:
    """A tool of Kafka's, with the lines of client-config."""
    guarded: Guarded = request.getfixturevalue(kerberos_name)
    bootstrap, topic = guarded.bootstraps[listener], f"by-java-{listener}"
    command = ["-m", "pykafkad", "client-config", "--for", "java", "-b", bootstrap, *_words(kdc, listener)]
    (tmp_path / "client.properties").write_text(_python(kdc, *command))
    command = ["java", *JAVA_OPTIONS, f"-Djava.security.krb5.conf={kdc.configuration}", "-cp", f"{kafka_jars}/*"]
    command += ["org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap, "--create", "--topic", topic]
    command += ["--command-config", str(tmp_path / "client.properties")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert f"Created topic {topic}" in done.stdout, done.stdout + done.stderr


THERE_AND_BACK = """
import ssl, sys
from compat_tests import there_and_back
from pykafkad.cli.client_options import Access, Trust, of
client, bootstrap, user, ca_file = sys.argv[1:]
options = of(client, Access(ca_file or None, user, None, "GSSAPI"))
options = {name: ssl.create_default_context(cafile=value.ca_file) if isinstance(value, Trust) else value
           for name, value in options.items()}
topic = f"by-{client}-{bool(ca_file)}"
by = {"kafka-python": there_and_back.by_kafka_python, "aiokafka": there_and_back.by_aiokafka}[client]
by(topic, {"bootstrap_servers": bootstrap, **options})
"""


@pytest.mark.parametrize("listener", CLIENTS_AT)
@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_python(kdc: Kdc, kerberos_name: str, request: pytest.FixtureRequest, client: str, listener: str) -> None:
    """A record there and back; the library finds the keytab in KRB5_CLIENT_KTNAME."""
    guarded: Guarded = request.getfixturevalue(kerberos_name)
    ca_file = str(kdc.directory / "ca.pem") if listener == ENCRYPTED else ""
    _python(kdc, "-c", THERE_AND_BACK, client, guarded.bootstraps[listener], _principal("alice"), ca_file)


@pytest.mark.parametrize(("client", "listener"), [("java", ENCRYPTED), ("librdkafka", "GUARDED")])
def test_commands(
    kdc: Kdc, kerberos_name: str, request: pytest.FixtureRequest, tmp_path: Path, client: str, listener: str
) -> None:
    """pykafkad's own, with the lines of client-config; a keytab without the key is told in one sentence."""
    guarded: Guarded = request.getfixturevalue(kerberos_name)
    keytab, file = str(kdc.directory / "clients.keytab"), tmp_path / "client.properties"
    bootstrap = guarded.bootstraps[listener]
    words = ["--for", client, "-b", bootstrap, *_words(kdc, listener)]
    file.write_text(_python(kdc, "-m", "pykafkad", "client-config", *words))
    command = ["-m", "pykafkad", "topics", "-b", bootstrap, "--client-config", str(file)]
    _python(kdc, *command, "create", f"by-commands-{client}")
    assert f"by-commands-{client}" in _python(kdc, *command, "list")
    file.write_text(file.read_text().replace(keytab, str(tmp_path / "nothing")))
    done = subprocess.run([sys.executable, *command, "list"], env=_variables(kdc),
                          capture_output=True, text=True, timeout=LIMIT_SECONDS)  # fmt: skip
    assert done.returncode == 1 and "the login by GSSAPI as a client of kafka@localhost can't begin: " in done.stderr


@pytest.mark.parametrize(
    ("keytab", "principal", "problem"),
    [
        ("broker.keytab", f"kafka/elsewhere@{REALM}", "there are no keys of kafka/elsewhere"),
        ("nothing.keytab", SERVICE, f"there are no keys of {SERVICE}"),
    ],
)
def test_a_keytab_without_the_key_is_refused_at_start(kdc: Kdc, keytab: str, principal: str, problem: str) -> None:
    """With the file, and the reason of the library."""
    words = ["serve", "--memory", "16MB", "--set", "listeners=X://localhost:0"]
    words += ["--set", "listener.security.protocol.map=X:SASL_PLAINTEXT", "--set", "sasl.kerberos.service.name=kafka"]
    module = f'{LOGIN_MODULE} required useKeyTab=true keyTab="{kdc.directory / keytab}" principal="{principal}";'
    words += ["--set", f"listener.name.x.gssapi.sasl.jaas.config={module}", "--set", "inter.broker.listener.name=X"]
    variables = {**os.environ, **kdc.environment}
    done = subprocess.run(
        [sys.executable, "-m", "pykafkad", *words], env=variables, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert done.returncode == 2 and problem in done.stderr and keytab in done.stderr, done.stderr
