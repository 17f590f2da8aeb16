"""`serve --brokers N --processes`: brokers and controllers as processes of their own, from their start to their end,
also where one of them, or what started them, is killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.cli import login
from pykafkad.cli.output import Failure
from pykafkad.testing.waits import until
from pykafkad.testing.wire_client import WireClient
from tests.testing.test_several_brokers import OnePassword

WAIT_SECONDS = 60.0
_STARTED = re.compile(r"node-started node=(\d+) role=\w+ pid=(\d+)")


class Parent:
    """A running `serve --processes`."""

    def __init__(self, log: Path, *options: str) -> None:
        self._log = log
        words = [sys.executable, "-m", "pykafkad", "serve", "--listen", "localhost:0", *options]
        with open(log, "w") as errors:
            self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True)

    def addresses(self) -> list[str]:
        """Those of the readiness line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("pykafkad ready "), self.log()
        return line.partition(" on ")[2].strip().split(",")

    def log(self) -> str:
        """What all of them wrote to standard error."""
        return self._log.read_text()

    def wait_for_line(self, pattern: str) -> None:
        """Until a line of the log matches."""
        until(self.log, lambda text: re.search(pattern, text), f"line like {pattern}", WAIT_SECONDS)

    def children(self) -> dict[int, int]:
        """Process ids by node ids, of those that have served."""
        return {int(node_id): int(pid) for node_id, pid in _STARTED.findall(self.log())}

    def listens(self, node_id: int) -> list[str]:
        """The addresses of a node; none before it has served."""
        return re.findall(rf"node-started node={node_id} .*listens=(\S+)", self.log())

    def wait_gone(self) -> None:
        """Until none of the children lives."""
        until(lambda: list(filter(is_alive, self.children().values())), lambda left: not left, "end", WAIT_SECONDS)


def is_alive(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
    return found != "" and not found.startswith("Z")


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    """Starts parents. At the end of the test they end, and so do their children."""
    parents: list[Parent] = []

    def start(*options: str, is_one_process: bool = False) -> Parent:
        how = () if is_one_process else ("--processes",)
        parents.append(Parent(tmp_path / f"log-{len(parents)}", *how, *options))
        return parents[-1]

    yield start
    for parent in parents:
        parent.process.kill()
        parent.process.communicate()
        parent.wait_gone()


def metadata(address: str) -> Any:
    """What one of them says of all."""
    host, _, port = address.rpartition(":")
    client = WireClient(host, int(port))
    try:
        return client.ask("Metadata", topics=None)
    finally:
        client.close()


@pytest.mark.long
def test_brokers_as_processes(started: Any, tmp_path: Path) -> None:
    """All of them know all and the topics as soon as the line is there. A stop is clean, and the same directories can
    be served again."""
    data, ready = tmp_path / "data", tmp_path / "ready"
    options = ("--brokers", "3", "--data", str(data), "--ready-file", str(ready), "--rack", "a", "--rack", "b")
    parent = started(*options, "--topic", "t:6", "--set", "default.replication.factor=2")
    addresses = parent.addresses()
    assert ready.read_text() == f"{','.join(addresses)}\n"
    for address in addresses:
        seen = metadata(address)
        assert {(each.node_id, f"{each.host}:{each.port}", each.rack) for each in seen.brokers} == {
            (1, addresses[0], "a"), (2, addresses[1], "b"), (3, addresses[2], "a"),
        }  # fmt: skip
        (topic,) = seen.topics
        assert (topic.name, len(topic.partitions)) == ("t", 6)
        assert {len(partition.replica_nodes) for partition in topic.partitions} == {2}
    children = parent.children()
    assert set(children) == {1, 2, 3, 3000} and len({*children.values(), parent.process.pid}) == 5
    parent.process.terminate()
    assert parent.process.wait(WAIT_SECONDS) == 0 and not ready.exists()
    parent.wait_gone()
    folders = ("broker1", "broker2", "broker3", "controller3000")
    assert all((data / each / ".kafka_cleanshutdown").exists() for each in folders)
    again = started(*options, "--topic", "t:6")
    assert len(metadata(again.addresses()[0]).topics[0].partitions) == 6


@pytest.mark.long
@pytest.mark.parametrize("is_one_process", [False, True])
def test_a_start_without_the_data_of_a_broker(started: Any, tmp_path: Path, is_one_process: bool) -> None:
    """A topic that is named and was there before may have a partition that nobody leads; one that is new may not."""
    data = tmp_path / "data"
    options = ("--brokers", "2", "--controllers", "3", "--data", str(data))
    parent = started(*options, "--topic", "t:2")
    parent.addresses()
    parent.process.terminate()
    assert parent.process.wait(WAIT_SECONDS) == 0
    parent.wait_gone()
    shutil.rmtree(data / "broker2")
    again = started(*options, "--topic", "t:2", "--topic", "new:2", is_one_process=is_one_process)
    for address in again.addresses():
        codes = {each.name: [row.error_code for row in each.partitions] for each in metadata(address).topics}
        assert sorted(codes["t"]) == [0, errors.LEADER_NOT_AVAILABLE] and codes["new"] == [0, 0]


@pytest.mark.long
def test_all_end_with_their_parent(started: Any) -> None:
    """Also when that is killed, and says nothing to anybody: the brokers leave with the help of the controllers."""
    parent = started("--brokers", "2", "--controllers", "3", "--memory", "256MB")
    parent.addresses()
    assert set(parent.children()) == {1, 2, 3000, 3001, 3002}
    parent.process.kill()
    parent.wait_gone()
    assert parent.log().count('stopping node=1 reason="the parent process is gone"') == 1
    assert len(re.findall(r"broker-fenced node=300\d broker=[12] ", parent.log())) == 2
    assert "unexpected-error" not in parent.log()


@pytest.mark.long
def test_all_are_told_to_stop_at_the_same_time(started: Any) -> None:
    """As a service's supervisor does: the brokers leave all the same, with the help of the controllers."""
    parent = started("--brokers", "2", "--controllers", "3", "--memory", "256MB")
    parent.addresses()
    for pid in (*parent.children().values(), parent.process.pid):
        os.kill(pid, signal.SIGTERM)
    assert parent.process.wait(WAIT_SECONDS) == 0
    parent.wait_gone()
    assert len(re.findall(r"broker-fenced node=300\d broker=[12] ", parent.log())) == 2
    assert "controlled-shutdown-timed-out" not in parent.log()


@pytest.mark.long
def test_a_stop_while_they_start(started: Any) -> None:
    """All end, and nothing was ready."""
    parent = started("--brokers", "1", "--memory", "64MB")
    parent.wait_for_line(r"node-started node=3000 ")
    parent.process.terminate()
    assert parent.process.wait(WAIT_SECONDS) == 0
    parent.wait_gone()
    assert parent.process.stdout.read() in ("", f"pykafkad ready on {' '.join(parent.listens(1))}\n")


@pytest.mark.long
def test_one_process_and_several_serve_the_same_directories(started: Any, tmp_path: Path) -> None:
    """Where there are several controllers, which are what they are in processes of their own."""
    data = tmp_path / "data"
    options = ("--brokers", "2", "--controllers", "3", "--data", str(data))
    one = started(*options, "--topic", "t:4", is_one_process=True)
    for address in one.addresses():
        seen = metadata(address)
        assert {each.node_id for each in seen.brokers} == {1, 2} and len(seen.topics[0].partitions) == 4
    one.process.terminate()
    assert one.process.wait(WAIT_SECONDS) == 0 and one.children() == {}
    folders = ("broker1", "broker2", "controller3000", "controller3001", "controller3002")
    assert all((data / each / ".kafka_cleanshutdown").exists() for each in folders)
    assert "unexpected-error" not in one.log() and "controlled-shutdown-timed-out" not in one.log()
    several = started(*options)
    assert [topic.name for topic in metadata(several.addresses()[1]).topics] == ["t"]
    assert set(several.children()) == {1, 2, 3000, 3001, 3002}


@pytest.mark.long
def test_one_that_cannot_start_is_named(started: Any) -> None:
    """The others end."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        parent = started("--brokers", "1", "--memory", "64MB", "--listen", f"127.0.0.1:{port}")
        assert parent.process.wait(WAIT_SECONDS) == 1
    parent.wait_gone()
    assert f"pykafkad: broker 1: cannot listen on 127.0.0.1:{port}: Address already in use\n" in parent.log()
    assert parent.process.stdout.read() == ""


@pytest.mark.long
def test_one_that_is_killed(started: Any) -> None:
    """It is told of, and the others serve on. Without any broker the parent ends, with an error."""
    parent = started("--brokers", "2", "--memory", "128MB")
    addresses = parent.addresses()
    os.kill(parent.children()[1], signal.SIGKILL)
    parent.wait_for_line(r'ERROR server node-ended node=1 role=broker status="signal 9"')
    assert metadata(addresses[1]).cluster_id
    os.kill(parent.children()[2], signal.SIGKILL)
    assert parent.process.wait(WAIT_SECONDS) == 1
    parent.wait_gone()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--controllers", "3"), "--processes and --controllers: there is one broker; give --brokers"),
        (("--brokers", "2", "--controllers", "0"), "--controllers 0: must be a number from 1 to 9"),
        (("--brokers", "2", "--controllers", "10"), "--controllers 10: must be a number from 1 to 9"),
        (("--brokers", "2", "--set", "node.id=2999"), "3000 is that of the controller"),
        (("--brokers", "2", "--topic", "t:none"), "--topic t:none: must be NAME or NAME:PARTITIONS"),
    ],
)
def test_what_processes_cannot_be(started: Any, options: tuple[str, ...], problem: str) -> None:
    """The error names the option."""
    parent = started("--memory", "64MB", *options)
    assert parent.process.wait(WAIT_SECONDS) == 2
    assert problem in parent.log() and "node-started" not in parent.log()


@pytest.mark.long
def test_all_processes_write_the_log_as_json(started: Any) -> None:
    """Those of the nodes say which one writes."""
    parent = started("--memory", "64MB", "--brokers", "2", "--log-format", "json", "--topic", "orders:2")
    parent.addresses()
    parent.process.terminate()
    assert parent.process.wait(WAIT_SECONDS) == 0
    lines = [json.loads(line) for line in parent.log().splitlines()]
    assert {line["node"] for line in lines if line["event"] == "node-started"} == {1, 2, 3000}
    assert {line["node"] for line in lines if line["event"] == "topic-created"} == {1, 2}
    assert all({"time", "level", "logger", "event"} <= line.keys() for line in lines)


def log_in(address: str, ca_file: str, password: str | None) -> None:
    """As a client logs in; raises `Failure` where it is not taken."""
    trusted = ssl.create_default_context(cafile=ca_file)
    host, _, port = address.rpartition(":")
    user = None if password is None else login.Login("alice", "PLAIN", OnePassword(password))
    with trusted.wrap_socket(socket.create_connection((host, int(port)), 30), server_hostname=host) as connected:
        login.try_login(connected, address, user)


@pytest.mark.long
@pytest.mark.parametrize("is_one_process", [False, True], ids=["processes", "process"])
def test_nodes_reach_each_other_where_everybody_logs_in(started: Any, tmp_path: Path, is_one_process: bool) -> None:
    """Brokers know each other and the topics, and clients log in at each. No listener lets a stranger in, and no secret
    of the nodes is in a command line, a file or the log."""
    data = tmp_path / "data"
    parent = started(
        *("--brokers", "2", "--controllers", "3", "--data", str(data), "--tls", "--user", "alice:secret"),
        *("--acl", "alice read topic t", "--topic", "t:2", "--set", "default.replication.factor=2"),
        is_one_process=is_one_process,
    )  # fmt: skip
    addresses = parent.addresses()
    assert len(addresses) == 2
    for address in addresses:
        log_in(address, str(data / "tls-ca.pem"), "secret")
        with pytest.raises(Failure, match="refuses the login"):
            log_in(address, str(data / "tls-ca.pem"), "wrong")
    for pid in parent.children().values():
        assert (
            "PRIVATE" not in Path(f"/proc/{pid}/cmdline").read_text()
            and "secret" not in Path(f"/proc/{pid}/cmdline").read_text()
        )
    for node_id in parent.children():
        for address in parent.listens(node_id)[0].split(","):
            host, _, port = address.rpartition(":")
            with socket.create_connection((host, int(port)), 30) as stranger:
                # ApiVersions in plain text: who wants a handshake closes, and answers nothing but an alert of TLS.
                stranger.sendall(bytes.fromhex("0000000e001200000000000100046d696e65"))
                assert stranger.recv(100)[:1] in (b"", b"\x15")
    assert "PRIVATE KEY" not in parent.log() and "secret" not in parent.log()
    kept = [each for each in data.rglob("*.pem") if b"PRIVATE KEY" in each.read_bytes()]
    assert sorted(each.name for each in kept) == ["tls-broker.pem", "tls-client.pem"]
    assert {each.stat().st_mode & 0o777 for each in kept} == {0o600}
    parent.process.terminate()
    assert parent.process.wait(WAIT_SECONDS) == 0
