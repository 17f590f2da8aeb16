"""`pykafkad serve --tenant`: several clusters in one process, from the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from pykafkad.cli import serve, serve_tenants
from pykafkad.testing.wire_client import WireClient

SECRET = "hunter2"


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Processes, which end with the test."""
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        process.kill()
        process.communicate()


def tenants(started: list[subprocess.Popen[str]], *options: str) -> tuple[subprocess.Popen[str], dict[str, str]]:
    """A process, and what its readiness line tells."""
    words = [sys.executable, "-m", "pykafkad", "serve", *options]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    started.append(process)
    line = process.stdout.readline()
    found = re.fullmatch(r"pykafkad ready with (.*) on (.*)\n", line)
    assert found is not None, (line, process.stderr.read() if process.poll() is not None else "")
    told = dict(word.split("=", 1) for word in found[1].split(" "))
    reached = [value for name, value in told.items() if name.count(".") == 1]
    assert found[2].split(" ") == [address for value in reached for address in value.split(",")]
    return process, told


def ask(address: str, api: str, **fields: object):
    """One answer."""
    host, _, port = address.rpartition(":")
    client = WireClient(host, int(port))
    try:
        return client.ask(api, **fields)
    finally:
        client.close()


def topics(address: str) -> dict[str, int]:
    """Names and numbers of partitions."""
    return {topic.name: len(topic.partitions) for topic in ask(address, "Metadata", topics=None).topics}


@pytest.mark.epoll
def test_two_clusters_with_their_own_topics_and_settings(started: list, tmp_path: Path) -> None:
    own = tmp_path / "other.properties"
    own.write_text(
        "num.partitions=5\nlisteners=INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0\n"
        "listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT\n"
        "inter.broker.listener.name=INSIDE\n"
    )
    ready = tmp_path / "ready"
    options = [
        *("--data", str(tmp_path / "data"), "--tenant", "acme=127.0.0.1:0", "--tenant", "other"),
        *("--tenant-config", f"other={own}", "--topic", "acme:orders:3", "--topic", "other:orders"),
        *("--set", "acme:num.partitions=7", "--set", "auto.create.topics.enable=true", "--ready-file", str(ready)),
    ]
    process, told = tenants(started, *options)
    assert list(told) == ["tenant.acme", "tenant.other"]
    lines = ready.read_text().splitlines()
    assert lines == [" ".join(",".join(told.values()).split(",")), *(f"{key}={text}" for key, text in told.items())]
    first, second = told["tenant.acme"], told["tenant.other"].split(",")[1]
    assert topics(first) == {"orders": 3}
    assert topics(second) == {"orders": 5}
    ask(first, "Metadata", topics=[_named("more")], allow_auto_topic_creation=True)
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["acme", "other"]
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0 and not ready.exists()
    assert "stopped tenant=acme" in said and "stopped tenant=other" in said
    # Every line says whose it is, but for that of the process.
    assert [line for line in said.splitlines() if " tenant=" not in line and "stopping reason=" not in line] == []
    process, told = tenants(started, *options)
    assert topics(told["tenant.acme"]) == {"orders": 3, "more": 7}


@pytest.mark.epoll
def test_lines_of_tenants_are_objects_as_those_of_the_process_are(started: list) -> None:
    words = ("--memory", "16MB", "--tenant", "acme", "--tenant", "other", "--log-format", "json")
    process, _ = tenants(started, *words)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    lines = [json.loads(line) for line in said.splitlines()]
    assert {line.get("tenant") for line in lines if line["event"] == "stopped"} == {"acme", "other"}
    assert [line["event"] for line in lines if "tenant" not in line] == ["stopping"]


@pytest.mark.epoll
@pytest.mark.skipif(os.name != "posix", reason="a terminal is made by the system's calls for it")
def test_a_terminal_shows_the_lines_of_tenants_in_colours() -> None:
    parent, terminal = os.openpty()
    words = [sys.executable, "-m", "pykafkad", "serve", "--memory", "16MB", "--tenant", "acme"]
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=terminal, text=True, env=environment)
    os.close(terminal)
    try:
        assert process.stdout.readline()
        assert "\x1b[1mstarted\x1b[0m tenant=acme" in os.read(parent, 10_000).decode()
    finally:
        process.kill()
        process.communicate()
        os.close(parent)


def _named(name: str):
    from pykafkad.wire import messages

    return messages.MetadataRequest.MetadataRequestTopic(name=name)


def control(told: dict[str, str], name: str, method: str, path: str, /, *, token_of: str = "", **fields: object) -> Any:
    """The answer of a tenant's control API, to its token or another's; the status of what is refused."""
    token = told[f"tenant.{token_of or name}.control.token"]
    connection = HTTPConnection(told[f"tenant.{name}.control"].removeprefix("http://"), timeout=60)
    try:
        body = json.dumps(fields) if fields else None
        connection.request(method, path, body, {"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        return json.loads(text) if answer.status < 300 else answer.status
    finally:
        connection.close()


@pytest.mark.long
@pytest.mark.epoll
def test_each_has_a_control_api(started: list) -> None:
    """At a port of its own, with a token of its own, which does nothing to another."""
    pytest.importorskip("waitress")
    options = ["--memory", "16MB", "--control", "0", "--tenant", "acme", "--topic", "acme:orders:3"]
    options += ["--tenant", "other", "--user", "other:alice:x", "--acl", "other:alice read topic t"]
    process, told = tenants(started, *options)
    partitions = {"topics": [{"name": "orders", "partitions": 3}]}
    assert control(told, "acme", "GET", "/topics") == partitions
    assert control(told, "other", "GET", "/topics") == {"topics": []}
    assert control(told, "other", "GET", "/topics", token_of="acme") == 401
    control(told, "acme", "POST", "/snapshots", name="first")
    control(told, "acme", "POST", "/topics", name="more", partitions=1)
    assert sorted(topics(told["tenant.acme"])) == ["more", "orders"]
    control(told, "acme", "POST", "/snapshots/first/restore")
    assert control(told, "acme", "GET", "/topics") == partitions
    control(told, "other", "POST", "/topics", name="mine", partitions=2)
    assert control(told, "acme", "GET", "/topics") == partitions
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in said


@pytest.mark.long
@pytest.mark.epoll
def test_users_and_certificates_of_each(started: list, tmp_path: Path) -> None:
    _, told = tenants(
        started,
        *("--memory", "32MB", "--tls", "--tenant", "acme", "--tenant", "other"),
        *("--user", f"acme:alice:{SECRET}", "--acl", "acme:alice read topic orders"),
    )
    files = [Path(told[f"tenant.{name}.ssl.ca.location"]) for name in ("acme", "other")]
    assert files[0].read_text() != files[1].read_text()


@pytest.mark.long
@pytest.mark.epoll
def test_one_that_cannot_start_is_named(started: list, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _, told = tenants(started, "--memory", "32MB", "--tenant", "acme")
    words = ["--memory", "32MB", "--tenant", "first", "--tenant", f"second={told['tenant.acme']}"]
    ended = subprocess.run(
        [sys.executable, "-m", "pykafkad", "serve", *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1 and ended.stdout == ""
    assert f"pykafkad: tenant second: cannot listen on {told['tenant.acme']}" in ended.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--tenant", "a b"], "a name has 1 to 63 letters"),
        (["--tenant", "a=:1", "--tenant", "a=:2"], "there are two tenants a"),
        (["--tenant", "a", "--listen", ":9092"], "--listen: not together with --tenant; give each tenant its address"),
        (["--tenant", "a", "--trace", "t.txt"], "--trace: not together with --tenant"),
        (["--tenant", "a", "--control", "8080"], "--control 8080: must be 0 or HOST:0 with --tenant"),
        (["--tenant", "a", "--control-token", SECRET], "--control-token: not together with --tenant"),
        (["--tenant", "a", "--audit", "-"], "--audit: not together with --tenant"),
        (["--tenant", "a", "--processes"], "--processes: not together with --tenant"),
        (["--tenant", "a", "--topic", "orders:3"], "--topic orders…: must begin with the name of a tenant"),
        (["--tenant", "a", "--user", f"alice:{SECRET}"], "--user alice…: must begin with the name of a tenant"),
        (["--tenant", "a", "--acl", "alice read topic t"], "--acl alice read topic t…: must begin with"),
        (["--tenant", "a", "--tenant-config", "b=file"], "--tenant-config b=file: must be NAME=FILE"),
        (["--tenant-config", "b=file"], "--tenant-config b=file: must be NAME=FILE with the name of a --tenant"),
        (["--tenant", "a", "--tenant-config", "a=/none"], "/none: cannot be read"),
        (["--tenant", "a", "--data", "d", "--set", "a:log.dirs=x"], "its settings say where its data is"),
        (["--tenant", "a", "--data", "d", "--memory", "1MB"], "tenant a: --memory 1MB: nothing would be kept"),
        pytest.param(
            ["--tenant", "a", "--set", "a:num.partitions=-1"],
            "tenant a: --set: num.partitions",
            marks=pytest.mark.epoll,
        ),
        pytest.param(["--tenant", "a", "--set", "process.roles=controller"], "tenant a: ", marks=pytest.mark.epoll),
    ],
)
def test_what_cannot_be_is_told(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert serve.main(options) == 2
    text = capsys.readouterr().err
    assert said in text and SECRET not in text


def test_where_the_data_of_each_is(tmp_path: Path) -> None:
    """In a directory of its name below all that are for everybody, unless its own settings say."""
    own = tmp_path / "own.properties"
    own.write_text("log.dirs=/somewhere\n")
    shared = tmp_path / "shared.properties"
    shared.write_text("log.dirs=/one, /two\n")
    options = serve.Options()
    options.tenant = ["a", "b"]
    options.tenant_config = [f"b={own}"]
    assert {name: each.data for name, each in serve_tenants.split(options).items()} == {
        "a": os.path.join("pykafkad-data", "a"),
        "b": None,
    }
    options.properties = str(shared)
    assert serve_tenants.split(options)["a"].data == "/one/a,/two/a"
    options.data = "/three"
    options.tenant_config = []
    assert serve_tenants.split(options)["b"].data == "/three/b"


def test_settings_of_one_come_before_those_of_all(tmp_path: Path) -> None:
    own, shared = tmp_path / "own.properties", tmp_path / "shared.properties"
    own.write_text("num.partitions=2\nlog.retention.ms=5000\n")
    shared.write_text("num.partitions=1\nlog.retention.ms=4000\ndefault.replication.factor=1\n")
    options = serve.Options()
    options.properties, options.memory = str(shared), "32MB"
    options.tenant, options.tenant_config = ["a", "b"], [f"a={own}"]
    options.set = ["b:num.partitions=9", "num.partitions=3"]
    found = {name: serve.Prepared(each).settings() for name, each in serve_tenants.split(options).items()}
    assert [(each.num_partitions, each.log_retention_ms) for each in found.values()] == [(3, 5000), (9, 4000)]
