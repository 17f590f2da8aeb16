"""`pykafkad serve --registry`: the options, the readiness line, and a registry beside a broker that is served."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest

from pykafkad.__main__ import main
from pykafkad.cli import serve_beside
from pykafkad.testing import Broker
from tests.control.http_client import Client
from tests.control.test_serve import CONTROLLER_ALONE
from tests.registry.test_server import ask

GUARDED = ("--user", "alice:secret:PLAIN", "--acl", "alice read topic orders")


class Served:
    """A broker as a process with a registry on a free port."""

    def __init__(self, *options):
        words = [sys.executable, "-m", "pykafkad", "serve", "--listen", "127.0.0.1:0", "--registry", "0", *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.line = self.process.stdout.readline()
        found = re.fullmatch(r"pykafkad ready with .*?schema\.registry\.url=(\S+) on (127\.0\.0\.1:\d+)\n", self.line)
        assert found, self.line
        self.url, self.bootstrap = found.groups()

    def register(self, subject, schema='"int"'):
        return ask(f"{self.url}/subjects/{subject}/versions", "POST", {"schema": schema})

    def stop(self):
        """End it as a user does; what it told on standard error."""
        self.process.send_signal(signal.SIGTERM)
        output, errors = self.process.communicate(timeout=60)
        assert (self.process.returncode, output) == (0, "") and "Traceback" not in errors
        return errors

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


@pytest.mark.long
def test_a_served_broker_tells_where_its_registry_is(tmp_path):
    """In the readiness line and in the ready file; schemas outlive the process."""
    ready, options = tmp_path / "ready", ("--data", str(tmp_path / "data"))
    with Served(*options, "--ready-file", str(ready)) as served:
        assert ready.read_text() == f"{served.bootstrap}\nschema.registry.url={served.url}\n"
        assert served.register("s")[1]["id"] == 1
        served.stop()
    with Served(*options) as served:
        assert ask(served.url + "/subjects/s/versions") == (200, [1])
        assert served.register("s", '"long"')[1]["version"] == 2


@pytest.mark.long
def test_users_and_acls_do_not_stand_in_the_way_of_the_registry():
    with Served("--memory", "16MB", *GUARDED) as served:
        assert served.register("s")[1]["id"] == 1
        served.stop()


@pytest.mark.long
def test_several_brokers_have_one_registry():
    """Whoever leads the topic of the schemas."""
    with Broker(brokers=3, registry=True, settings={"default.replication.factor": 3}) as broker:
        assert ask(f"{broker.registry_url}/subjects/s/versions", "POST", {"schema": '"int"'})[1]["id"] == 1
        leader = next(each["leader"] for each in broker.look([], topic="_schemas")["topic"]["partitions"])
        broker.stop_broker(leader)
        assert ask(f"{broker.registry_url}/subjects/s/versions", "POST", {"schema": '"long"'})[1]["version"] == 2
    words = [sys.executable, "-m", "pykafkad", "serve", "--listen", "127.0.0.1:0", "--memory", "32MB", "--brokers", "3"]
    process = subprocess.Popen(
        [*words, "--registry", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        url = re.search(r"schema\.registry\.url=(\S+)", process.stdout.readline())[1]
        assert ask(f"{url}/subjects/s/versions", "POST", {"schema": '"int"'})[1]["id"] == 1
        assert ask(url + "/subjects") == (200, ["s"])
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.long
def test_a_way_back_to_a_snapshot_takes_the_schemas_along():
    """By the control API beside it, which is of the same broker."""
    with Served("--memory", "16MB", "--control", "0", "--control-token", "chosen-token") as served:
        control = Client(re.search(r"control=(\S+)", served.line)[1], "chosen-token")
        served.register("before")
        assert control.post("/snapshots", name="one").status == 201
        served.register("after", '"long"')
        assert control.post("/snapshots/one/restore").status == 200
        assert ask(served.url + "/subjects") == (200, ["before"])
        served.stop()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--registry", "nowhere"], "--registry: ':nowhere' is not HOST:PORT"),
        (["--registry", ":8081"], "--registry :8081: names no host; PORT alone is at 127.0.0.1"),
        (
            ["--registry", "0", "--brokers", "3", "--processes"],
            "--registry: it is a part of the process of the brokers",
        ),
        (["--registry", "0", "--tenant", "a"], "--registry"),
        (
            ["--registry", "0", *CONTROLLER_ALONE],
            "--registry: process.roles has no broker that could keep schemas",
        ),
    ],
)
def test_options_that_cannot_be(words, message, capsys):
    """One sentence that names the option; exit code 2."""
    assert main(["serve", "--memory", "16MB", *words]) == 2
    assert capsys.readouterr().err.startswith(f"pykafkad: {message}")


def test_an_address_that_is_taken_is_named(capsys):
    with Broker(registry=True) as broker:
        port = broker.registry_url.rpartition(":")[2]
        assert main(["serve", "--listen", "127.0.0.1:0", "--memory", "16MB", "--registry", port]) == 1
    error = capsys.readouterr().err
    assert error == f"pykafkad: cannot listen on 127.0.0.1:{port} for the schema registry: Address already in use\n"


def test_without_its_libraries_it_says_what_to_install(monkeypatch, capsys):
    told = "the package avro is not installed; pip install 'pykafkad[registry]'"
    monkeypatch.setattr(serve_beside.extras, "missing", lambda name: told if name == "avro.schema" else None)
    assert main(["serve", "--memory", "16MB", "--registry", "0"]) == 2
    assert capsys.readouterr().err == f"pykafkad: --registry: {told}\n"


def test_a_broker_in_a_process_of_its_own_has_one_too():
    with Broker(registry=True, own_process=True) as broker:
        status, answer = ask(f"{broker.registry_url}/subjects/s/versions", "POST", {"schema": '"int"'})
        assert (status, answer["id"]) == (200, 1)
        assert [record.topic for record in broker.records("_schemas")] == ["_schemas"]
