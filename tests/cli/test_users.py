"""`pykafkad serve --user`: logins without a settings file, and passwords that nobody sees."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import config
from pykafkad.cli import serve, start_acls, users
from pykafkad.errors import ConfigError
from pykafkad.metadata.image import Image
from pykafkad.sasl.offer import Offer
from pykafkad.server import listeners, scram_users
from pykafkad.settings import entries
from pykafkad.wire import frames, messages
from tests.sasl.client import ScramClient

ALL = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SECRET = 'hunter2:"\\ !'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("alice:secret", [("alice", "secret", each) for each in ALL]),
        ("alice:secret:plain", [("alice", "secret", "PLAIN")]),
        ("alice:a:b:SCRAM-SHA-512", [("alice", "a:b", "SCRAM-SHA-512")]),
        ("alice:a:b", [("alice", "a:b", each) for each in ALL]),
        ("alice:PLAIN", [("alice", "PLAIN", each) for each in ALL]),
        ("björn:secret", [("björn", "secret", "PLAIN")]),
    ],
)
def test_a_user_has_one_mechanism_or_all(text: str, found: list[tuple[str, str, str]]) -> None:
    """A password may contain colons."""
    assert users.parse([text]) == found


@pytest.mark.parametrize("text", ["hunter2", ":hunter2", "", "alice:"])
def test_an_error_shows_no_text_that_may_hold_a_password(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """But which of the options it is."""
    assert serve.main(["--user", "bob:hunter2", "--user", text]) == 2
    said = capsys.readouterr().err
    assert "--user: number 2 must be NAME:PASSWORD" in said and "hunter2" not in said


def test_other_errors_of_users(capsys: pytest.CaptureFixture[str]) -> None:
    """They name the user alone."""
    for texts in (["a:hunter2", "a:hunter2:PLAIN"], ["ä:hunter2:SCRAM-SHA-256"]):
        with pytest.raises(ConfigError) as caught:
            users.parse(texts)
        assert "hunter2" not in str(caught.value)


def offers(listener: str, texts: list[str], **given: str) -> tuple[config.Settings, Offer]:
    """What a listener offers with these users and settings."""
    properties = {name.replace("_", "."): (text, "test") for name, text in given.items()}
    users.apply(users.parse(texts), properties)
    settings = config.Settings.from_properties(properties)
    assert settings.warnings == []
    return settings, Offer(settings, listener, lambda mechanism, user: None, bytes, int, print, print)


def test_the_listeners_ask_for_a_login() -> None:
    """Each of them, encrypted or not, but the controller's; what the settings offer already stays."""
    settings, offer = offers(
        "OTHER",
        [f"alice:{SECRET}", "bob:x:PLAIN"],
        listeners="PLAINTEXT://:1,OTHER://:2,SSL://:3,CONTROLLER://:4",
        controller_listener_names="CONTROLLER",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        sasl_enabled_mechanisms="SCRAM-SHA-512",
        listener_name_other_plain_sasl_jaas_config="org.apache.kafka.common.security.plain.PlainLoginModule "
        'required user_carol="y";',
    )
    assert settings.listener_security_protocol_map == (
        "PLAINTEXT:SASL_PLAINTEXT,OTHER:SASL_PLAINTEXT,SSL:SASL_SSL,CONTROLLER:PLAINTEXT"
    )
    assert set(offer.mechanisms) == set(ALL)
    for user, password in (("alice", SECRET), ("bob", "x"), ("carol", "y")):
        assert offer.exchange("PLAIN").step(f"\0{user}\0{password}".encode()).outcome == "done"


def test_a_controllers_listener_keeps_its_implied_protocol() -> None:
    """A file without `listener.security.protocol.map` serves without the option, too."""
    settings, _ = offers("PLAINTEXT", ["alice:x"], listeners="PLAINTEXT://:1,CONTROLLER://:2")
    assert listeners.protocol_of(settings, "CONTROLLER") == "PLAINTEXT"
    assert listeners.protocol_of(settings, "PLAINTEXT") == "SASL_PLAINTEXT"


def test_a_user_whom_the_controller_refuses_ends_the_start() -> None:
    """Nobody could log in by that name, and nothing would say so."""
    form = messages.AlterUserScramCredentialsResponse
    rows = [form.AlterUserScramCredentialsResult(user="bob", error_code=0)]
    rows.append(form.AlterUserScramCredentialsResult(user="alice", error_code=42, error_message="no such level"))
    process: Any = SimpleNamespace(controller=SimpleNamespace(image=Image()), ask_at_start=lambda _: form(results=rows))
    with pytest.raises(ConfigError, match="^--user alice: no such level$"):
        scram_users.add(process, [("alice", "x", "SCRAM-SHA-256")])


def test_only_mechanisms_with_users_are_offered() -> None:
    """The others would only fail."""
    assert offers("PLAINTEXT", ["alice:x:SCRAM-SHA-256"])[1].mechanisms == ["SCRAM-SHA-256"]


def test_no_description_shows_a_password() -> None:
    """Neither DescribeConfigs nor what the settings look like."""
    settings, offer = offers("PLAINTEXT", ["alice:hunter2"])
    shown = [(each.name, each.value, each.synonyms, each.sensitive) for each in entries.describe_broker(settings)]
    assert "hunter2" not in repr(shown) and "hunter2" not in repr((settings, offer, offer.exchange("PLAIN")))
    (jaas,) = (each for each in shown if each[0].endswith("plain.sasl.jaas.config"))
    assert jaas[1] is None and jaas[3]


@pytest.mark.long
def test_acls_of_a_command_line_are_there_at_the_start(tmp_path: Path) -> None:
    """Alice may read one topic, and sees no other; a second start with the same entry is fine. One without tells that
    the entries that are stored do not count."""
    words = [sys.executable, "-m", "pykafkad", "serve", "--listen", "localhost:0", "--data", str(tmp_path / "data")]
    words += ["--topic", "orders", "--topic", "salaries", "--user", "alice:secret", "--acl", "alice read topic orders"]
    for acl in ("alice describe,write topic orders", "deny alice all topic salaries from 10.0.0.1"):
        broker = subprocess.Popen([*words, "--acl", acl], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert broker.stdout is not None
            client = Client(int(broker.stdout.readline().rpartition(":")[2]))
            assert client.log_in("PLAIN", "secret")[-1].error_code == 0
            answer = client.ask(messages.MetadataRequest(topics=None), 12)
            assert [topic.name for topic in answer.topics] == ["orders"]
            client.close()
        finally:
            broker.send_signal(signal.SIGTERM)
            assert "acls-not-enforced" not in broker.communicate(timeout=60)[1]
    without = words[: words.index("--acl")]
    broker = subprocess.Popen(without, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert broker.stdout is not None and broker.stdout.readline()
    broker.send_signal(signal.SIGTERM)
    (line,) = (each for each in broker.communicate(timeout=60)[1].splitlines() if "acls-not-enforced" in each)
    assert ' WARNING server acls-not-enforced entries=4 consequence="everybody may do everything" ' in line
    done = subprocess.run([*words, "--acl", "alice read topic ''"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--acl alice read topic '': " in done.stderr
    with pytest.raises(ConfigError, match="--acl alice reads topic orders: 'reads' is no operation"):
        start_acls.parse(["alice reads topic orders"])


def test_acls_need_an_authorizer() -> None:
    """Kafka's is chosen, unless the settings choose."""
    properties: dict[str, tuple[str, str]] = {}
    start_acls.apply(properties)
    assert properties == {"authorizer.class.name": (start_acls.AUTHORIZER, "--acl")}
    properties = {"authorizer.class.name": ("mine", "test")}
    start_acls.apply(properties)
    assert properties["authorizer.class.name"] == ("mine", "test")


class Client:
    """One connection to a process."""

    def __init__(self, port: int) -> None:
        self.stream = socket.create_connection(("localhost", port), timeout=30)
        self.file = self.stream.makefile("rb")

    def ask(self, request: Any, version: int) -> Any:
        """The answer to a request."""
        name = type(request).__name__.removesuffix("Request")
        flexible_from = messages.flexible_from(type(request))
        tagged = flexible_from is not None and version >= flexible_from
        chunks = [frames.start_request(messages.record_type(type(request)), version, 1, "test", tagged)]
        messages.encoder(type(request), version)(request, chunks)
        frames.finish_frame(chunks)
        self.stream.sendall(b"".join(chunks))
        (size,) = struct.unpack(">i", self.file.read(4))
        frame = memoryview(self.file.read(size))
        _, position = frames.read_response_header(frame, tagged)
        message, _ = messages.decoder(getattr(messages, f"{name}Response"), version)(frame, position)
        return message

    def log_in(self, mechanism: str, password: str) -> list[Any]:
        """The answers."""
        answers = [self.ask(messages.SaslHandshakeRequest(mechanism=mechanism), 1)]
        for token in _tokens(mechanism, password, answers):
            answers.append(self.ask(messages.SaslAuthenticateRequest(auth_bytes=token), 2))
        return answers

    def close(self) -> None:
        """End it."""
        self.file.close()
        self.stream.close()


@pytest.mark.long
def test_users_log_in_to_a_process_and_nothing_shows_their_passwords(tmp_path: Path) -> None:
    """By each mechanism, and again after a restart with another password; the log at its most detailed, the answers and
    the files hold no password."""
    words = [sys.executable, "-m", "pykafkad", "serve", "--listen", "localhost:0", "--data", str(tmp_path / "data")]
    words += ["--log-level", "debug", "--topic", "t"]
    resource = messages.DescribeConfigsRequest.DescribeConfigsResource(resource_type=4, resource_name="1")
    describe = messages.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    for password in ("hunter2-one", "hunter2-two", "hunter2-two"):
        broker = subprocess.Popen(
            [*words, "--user", f"alice:{password}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert broker.stdout is not None
            port = int(broker.stdout.readline().rpartition(":")[2])
            answers: list[Any] = []
            for mechanism in ALL:
                wrong, right = Client(port), Client(port)
                answers += wrong.log_in(mechanism, "hunter2-zero")
                assert answers[-1].error_code == 58
                answers += right.log_in(mechanism, password)
                assert answers[-1].error_code == 0
                answers.append(right.ask(describe, 4))
                assert any(entry.name.endswith("plain.sasl.jaas.config") for entry in answers[-1].results[0].configs)
                answers.append(right.ask(messages.DescribeUserScramCredentialsRequest(users=None), 0))
                assert len(answers[-1].results[0].credential_infos) == 2
                wrong.close()
                right.close()
        finally:
            broker.send_signal(signal.SIGTERM)
            output = "".join(broker.communicate(timeout=60))
        assert "stopped" in output and "hunter2" not in output and "hunter2" not in repr(answers)
    for path in (tmp_path / "data").rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes()


def _tokens(mechanism: str, password: str, answers: list[Any]) -> Any:
    if mechanism == "PLAIN":
        yield f"\0alice\0{password}".encode()
        return
    client = ScramClient(f"sha{mechanism[-3:]}", "alice", password)
    yield client.first()
    yield client.final(bytes(answers[-1].auth_bytes))
