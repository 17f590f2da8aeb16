"""`pykafkad serve --control`: the options, the readiness line, and a served broker that is controlled."""

from __future__ import annotations

import logging
import re
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from pykafkad.__main__ import main
from pykafkad.control import command_line, served as served_api
from pykafkad.testing.served_broker import ServedBroker
from pykafkad.testing.wire_client import WireClient
from tests.control.http_client import Client

CONTROLLER_ALONE = (
    "--set",
    "process.roles=controller",
    "--set",
    "controller.listener.names=CONTROLLER",
    "--set",
    "listeners=CONTROLLER://127.0.0.1:0",
)


class Served:
    """A broker as a process with a control API on a free port."""

    def __init__(self, *options, token=None):
        words = [sys.executable, "-m", "pykafkad", "serve", "--listen", "127.0.0.1:0", "--control", "0", *options]
        if token is not None:
            words += ["--control-token", token]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.line = self.process.stdout.readline()
        found = re.fullmatch(
            r"pykafkad ready with .*?control=(\S+)(?: control\.token=(\S+))? control\.page=(\S+)"
            r" on 127\.0\.0\.1:(\d+)\n",
            self.line,
        )
        assert found, self.line
        url, made, page, port = found.groups()
        assert page == (f"{url}/" if made is None else f"{url}/#token={made}")
        assert (made is None) == (token is not None)
        self.api = Client(url, made or token)
        self.bootstrap = f"127.0.0.1:{port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def test_a_served_broker_tells_where_its_api_is(tmp_path):
    """In the readiness line with the token that was made, in the ready file without it; SIGTERM ends both."""
    ready = tmp_path / "ready"
    with Served("--memory", "16MB", "--topic", "orders:3", "--ready-file", str(ready)) as served:
        assert len(served.api.token) >= 32
        assert ready.read_text() == f"{served.bootstrap}\ncontrol={served.api.url}\n"
        status = served.api.get("/status").body
        assert (status["bootstrap"], status["topics"], status["partitions"]) == (served.bootstrap, 1, 3)
        assert b"kafka_server_kafkaserver_brokerstate 3" in served.api.get("/metrics").body
        assert Client(served.api.url, "wrong").get("/status").status == 401
        served.process.send_signal(signal.SIGTERM)
        output, errors = served.process.communicate(timeout=60)
        assert (served.process.returncode, output) == (0, "") and "Traceback" not in errors


def test_a_token_of_ones_own_is_not_printed(tmp_path):
    """Nor in the log."""
    with Served("--memory", "16MB", token="chosen-token") as served:
        assert served.api.get("/status").status == 200
        served.process.send_signal(signal.SIGTERM)
        _, errors = served.process.communicate(timeout=60)
        assert "chosen-token" not in served.line + errors


@pytest.mark.long
def test_users_and_acls_do_not_stand_in_the_way(tmp_path):
    """The API's requests come from a super user that is no client's, and by no listener."""
    options = [
        "--memory",
        "16MB",
        "--user",
        "alice:secret:PLAIN",
        "--acl",
        "alice read topic orders",
        "--topic",
        "orders",
    ]
    with Served(*options) as served:
        assert served.api.get("/status").body["topics"] == 1
        # A client without a login gets nothing.
        client = WireClient("127.0.0.1", int(served.bootstrap.rpartition(":")[2]))
        with pytest.raises(OSError):
            client.ask("ListGroups")
        client.close()


@pytest.mark.long
def test_a_served_broker_is_reset_traced_moved_in_time_and_rewound(tmp_path):
    """What `serve` was told is there after a reset; after the way back to a snapshot the calls find the next broker,
    with the trace and the clock of the one before, and may do what they might."""
    trace = tmp_path / "trace.txt"
    options = [
        "--memory",
        "32MB",
        "--user",
        "alice:secret:PLAIN",
        "--acl",
        "alice read topic orders",
        "--topic",
        "orders:2",
    ]
    with Served(*options, "--trace", str(trace)) as served:
        api = served.api
        api.post("/topics", name="more")
        api.post("/topics/orders/records", records=[{"value": "one"}])
        assert api.send("POST", "/reset").body == {"done": True}
        assert api.get("/topics").body == {"topics": [{"name": "orders", "partitions": 2}]}
        assert api.get("/topics/orders/records").body["records"] == []
        api.post("/topics/orders/records", records=[{"value": "kept"}])
        assert api.post("/snapshots", name="prepared").status == 201
        api.post("/topics", name="late")
        assert api.post("/clock/advance", seconds=60).body["ahead_seconds"] == pytest.approx(60)
        assert api.send("POST", "/trace/start").body == {"is_on": True}
        done, seen = threading.Event(), []

        def look():
            while not done.is_set():
                seen.append(api.get("/topics").body)

        threads = [threading.Thread(target=look) for _ in range(3)]
        for each in threads:
            each.start()
        try:
            assert api.post("/snapshots/prepared/restore").body == {"done": True}
        finally:
            done.set()
        for each in threads:
            each.join()
        # Whoever asks meanwhile waits, and is known afterwards.
        assert all({"name": "orders", "partitions": 2} in each["topics"] for each in seen), seen
        assert api.get("/health").body == {"status": "ok"}
        assert api.get("/topics").body == {"topics": [{"name": "orders", "partitions": 2}]}
        (kept,) = api.get("/topics/orders/records").body["records"]
        assert kept["value"] == "kept"
        assert api.post("/topics", name="again").status == 201
        assert api.post("/clock/advance", seconds=1).body["ahead_seconds"] == pytest.approx(61)
        assert api.get("/trace").status == 200
        assert api.post("/faults", kind="close_before", apis=["Fetch"]).status == 201
        served.process.send_signal(signal.SIGTERM)
        _, errors = served.process.communicate(timeout=60)
        assert served.process.returncode == 0 and "Traceback" not in errors
        assert trace.exists()


def test_an_address_that_is_taken_is_named(capsys):
    """Before anything is served."""
    with Served("--memory", "16MB") as served:
        port = served.api.url.rpartition(":")[2]
        assert main(["serve", "--listen", "127.0.0.1:0", "--memory", "16MB", "--control", port]) == 1
    error = capsys.readouterr().err
    assert error == f"pykafkad: cannot listen on 127.0.0.1:{port} for the control API: Address already in use\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--control", "nowhere"], "--control: ':nowhere' is not HOST:PORT"),
        (["--control", ":9644"], "--control :9644: names no host; PORT alone is at 127.0.0.1"),
        (["--control", "*:9644"], "--control *:9644: names no host"),
        (["--control", "0", "--control-token", "short"], "--control-token: a token has 8 to 200 ASCII characters"),
        (["--control", "0", "--control-token", "with a space"], "--control-token: a token has 8 to 200"),
        (["--control-token", "long-enough"], "--control-token: there is no control API without --control"),
        (
            ["--control", "0", *CONTROLLER_ALONE],
            "--control: process.roles has no broker",
        ),
    ],
)
def test_options_that_cannot_be(words, message, capsys):
    """One sentence that names the option; exit code 2."""
    assert main(["serve", "--memory", "16MB", *words]) == 2
    assert capsys.readouterr().err.startswith(f"pykafkad: {message}")


def test_the_token_of_the_environment():
    """It stands back behind the option, and is checked as that."""
    properties = {}
    variable = {command_line.TOKEN_VARIABLE: "of-the-environment"}
    assert command_line.read("0", None, variable, properties) == (("", 0), "of-the-environment")
    assert command_line.read("[::1]:7", "of-the-option", variable, properties) == (("::1", 7), "of-the-option")
    with pytest.raises(command_line.ConfigError, match="PYKAFKAD_CONTROL_TOKEN: a token has"):
        command_line.read("0", None, {command_line.TOKEN_VARIABLE: ""}, properties)
    assert properties == {}


def test_a_super_user_is_added_where_an_authorizer_decides():
    """To those that there are."""
    properties = {"authorizer.class.name": ("x", ""), "super.users": ("User:admin;", "file:1")}
    command_line.read("0", None, {}, properties)
    assert properties["super.users"] == ("User:admin;Control:pykafkad", "file:1")


def test_serving_without_control_loads_none_of_it():
    """Neither the package nor the library, nor by `import pykafkad` or `pykafkad.testing`."""
    code = (
        "import sys, pykafkad, pykafkad.testing; from pykafkad.cli import serve; from pykafkad.server import run; "
        "names = ('waitress', 'pykafkad.control', 'pykafkad.registry'); "
        "print(*[name for name in sys.modules if name.startswith(names)])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


def test_what_the_server_library_tells_is_in_the_broker_s_log(monkeypatch):
    """As lines like the others; without the API it is as before."""
    told = []
    monkeypatch.setattr(
        served_api, "process_logs", lambda: SimpleNamespace(warning=lambda *_, **fields: told.append(fields))
    )
    control = served_api.ServedControl(ServedBroker(), "", 0, None, [])
    library = logging.getLogger("waitress")
    control.start()
    library.warning("%s went wrong", "something")
    logging.getLogger("waitress.queue").warning("Task queue depth is 1")
    assert told == [{"level": "WARNING", "text": "something went wrong"}]
    # There is no broker yet.
    answer = Client(control.words["control"], None).get("/health")
    assert answer.status == 503
    control.close()
    assert library.propagate and library.handlers == []
