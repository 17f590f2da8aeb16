"""compare, record and replay reach a broker by TLS and with a login."""

from __future__ import annotations

import json
import sys

import pytest

from pykafkad.__main__ import main
from pykafkad.cli import reach
from pykafkad.testing import Broker

# kafka-python reads its schemas with what Python 3.11 warns of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]
PROGRAM = """
import os
from pykafkad.differential import links
from pykafkad.testing.wire_client import WireClient
assert "PYKAFKAD_CLIENT_CONFIG" not in os.environ
client = WireClient(*links.address(os.environ["PYKAFKAD_BOOTSTRAP"]), client_id="app")
for number in range(3):
    client.ask("Metadata", topics=None)
    client.close()
client.ask("ListGroups")
client.close()
"""
RUN = ["--", sys.executable, "-c", PROGRAM]


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A busy machine is no broker that does not answer."""
    monkeypatch.setattr(reach, "TIMEOUT_S", 60.0)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A broker that encrypts and wants a login, and a file that says how."""
    path = tmp_path_factory.mktemp("secured") / "client.properties"
    with Broker(tls=True, users={"alice": "secret-0471"}, topics={"orders": 1}) as broker:
        settings = broker.client_config("librdkafka", user="alice")
        settings.pop("bootstrap.servers")
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        yield broker, path


def test_compare(secured, capsys, monkeypatch):
    broker, path = secured
    monkeypatch.setenv("PYKAFKAD_CLIENT_CONFIG", str(path))
    words = ["compare", "--with", broker.bootstrap, "--client-config", str(path), "--json"]
    assert main([*words, *RUN]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    # The real one alone has the topic.
    assert {row["api"] for row in rows} == {"Metadata"}
    assert {each["path"] for row in rows for each in row["differences"]} == {"topics.orders"}


@pytest.mark.long
def test_record_and_replay(secured, tmp_path, capsys):
    broker, path = secured
    file, config = str(tmp_path / "run.recording"), ["--client-config", str(path)]
    assert main(["record", file, "--from", broker.bootstrap, *config, *RUN]) == 0
    assert main(["replay", file, "--bootstrap-server", broker.bootstrap, *config]) == 0
    assert capsys.readouterr().out == "0 of 4 answers differ\n"
    assert "secret-0471" not in (tmp_path / "run.recording").read_text()


def test_who_is_not_let_in_is_told(secured, tmp_path, capsys):
    """Each of the three says it in one sentence, without the password."""
    broker, path = secured
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(path.read_text().replace("secret-0471", "other-0471"))
    plain = tmp_path / "plain.properties"
    plain.write_text(path.read_text().replace("SASL_SSL", "SASL_PLAINTEXT"))
    file = tmp_path / "run.recording"
    for command in (
        ["compare", "--with", broker.bootstrap],
        ["record", str(file), "--from", broker.bootstrap],
        ["replay", str(path), "-b", broker.bootstrap],
    ):
        for config, text in (
            (wrong, "refuses the login of alice by SCRAM-SHA-512"),
            (plain, "it ended the connection without an answer; one that wants TLS does that"),
            (tmp_path / "none", "No such file or directory"),
        ):
            assert main([*command, "--client-config", str(config), *(RUN if command[0] != "replay" else [])]) in (1, 2)
            told = capsys.readouterr().err
            assert text in told and "0471" not in told and len(told.splitlines()) == 1, told
    assert not file.exists()


def test_without_a_login_it_is_told_that_one_is_needed(secured, tmp_path, capsys):
    broker, path = secured
    some = [line for line in path.read_text().splitlines() if not line.startswith("sasl")]
    config = tmp_path / "some.properties"
    config.write_text("\n".join(some).replace("SASL_SSL", "SSL"))
    assert main(["compare", "--with", broker.bootstrap, "--client-config", str(config), *RUN]) == 1
    assert "wants a login" in capsys.readouterr().err
