"""A broker as a process: the readiness line, the ready file, signals, and a second broker on the same directory."""

from __future__ import annotations

import signal
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafkad.cli import login
from pykafkad.cli.output import Failure

# The graceful stop of this broker never ends, so that the second signal arrives during it.
_ENDLESS_STOP = """
import signal, sys
from pykafkad.__main__ import main
from pykafkad.server.runtime import Runtime

def close(runtime):
    print("closing", flush=True)
    while True:
        signal.pause()

Runtime.close = close
sys.exit(main(sys.argv[1:]))
"""


class Processes:
    """Starts brokers on free ports. The end of the test kills them."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen] = []

    def serve(self, *options: str, command: tuple[str, ...] = ("-m", "pykafkad")) -> subprocess.Popen:
        words = [sys.executable, *command, "serve", "--listen", "localhost:0", *options]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Starts brokers."""
    found = Processes()
    yield found
    for process in found.started:
        process.kill()
        process.communicate()


def test_a_properties_file_may_name_listeners(processes: Processes, tmp_path: Path) -> None:
    """Many container set-ups configure an internal and an external listener in the protocol map."""
    properties = tmp_path / "server.properties"
    properties.write_text(
        "listeners=INSIDE://localhost:0,OUTSIDE://localhost:0,CONTROLLER://localhost:0\n"
        "controller.listener.names=CONTROLLER\n"
        "listener.security.protocol.map=INSIDE:PLAINTEXT, OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        "advertised.listeners=INSIDE://inside.example:29092,OUTSIDE://localhost:9092\n"
        f"log.dirs={tmp_path / 'data'}\n"
    )
    words = [sys.executable, "-m", "pykafkad", "serve", str(properties)]
    broker = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    processes.started.append(broker)
    assert broker.stdout.readline().count("localhost:") == 2


def test_a_port_in_use_is_named_in_the_error(processes: Processes, tmp_path: Path) -> None:
    """The message has the address and the system's reason, without the error number."""
    first = processes.serve("--data", str(tmp_path / "first"))
    address = first.stdout.readline().split()[-1]
    words = [sys.executable, "-m", "pykafkad", "serve", "--listen", address, "--data", str(tmp_path / "second")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, f"pykafkad: cannot listen on {address}: Address already in use\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_ready_file_exists_while_the_broker_serves(processes: Processes, tmp_path: Path, number: int) -> None:
    """Standard output and the ready file have the same address.

    The signal removes the file and marks the directory as clean.
    """
    ready, data = tmp_path / "ready", tmp_path / "data"
    broker = processes.serve("--data", str(data), "--ready-file", str(ready), "--topic", "t:2")
    line = broker.stdout.readline()
    assert line.startswith("pykafkad ready on localhost:") and int(line.rpartition(":")[2]) > 0
    assert ready.read_text() == line.removeprefix("pykafkad ready on ")
    broker.send_signal(number)
    output, errors = broker.communicate(timeout=60)
    assert (broker.returncode, output) == (0, "")
    assert f'INFO server stopping reason="signal {int(number)}"' in errors
    assert not ready.exists()
    assert (data / ".kafka_cleanshutdown").exists() and (data / "t-1").is_dir()


def test_a_second_signal_stops_at_once(processes: Processes, tmp_path: Path) -> None:
    """The exit code is the shell's code for that signal. The directory is not marked as clean."""
    broker = processes.serve("--data", str(tmp_path), command=("-c", _ENDLESS_STOP))
    broker.stdout.readline()
    broker.send_signal(signal.SIGTERM)
    assert broker.stdout.readline() == "closing\n"
    broker.send_signal(signal.SIGINT)
    assert broker.wait(60) == 128 + signal.SIGINT
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_second_broker_on_the_same_directory_is_refused(processes: Processes, tmp_path: Path) -> None:
    """The second broker says why it does not start. The first one keeps running."""
    first = processes.serve("--data", str(tmp_path))
    first.stdout.readline()
    output, errors = processes.serve("--data", str(tmp_path)).communicate(timeout=60)
    assert output == "" and "another broker uses the directory" in errors and str(tmp_path) in errors
    assert first.poll() is None


@pytest.mark.long
def test_tls_with_certificates_made_on_the_fly(processes: Processes, tmp_path: Path) -> None:
    """The readiness line and the ready file name what clients trust. A restart keeps it, and a client's certificate
    is accepted."""
    ready = tmp_path / "ready"
    trusted = set()
    for _ in range(2):
        options = ("--tls", "--data", str(tmp_path / "data"), "--ready-file", str(ready))
        broker = processes.serve(*options, "--set", "ssl.client.auth=required")
        line = broker.stdout.readline()
        ca_file = tmp_path / "data" / "tls-ca.pem"
        address = line.split()[-1]
        assert line == f"pykafkad ready with ssl.ca.location={ca_file} on {address}\n"
        assert ready.read_text() == f"{address}\nssl.ca.location={ca_file}\n"
        context = ssl.create_default_context(cafile=ca_file)
        context.load_cert_chain(tmp_path / "data" / "tls-client.pem")
        host, _, port = address.partition(":")
        with context.wrap_socket(socket.create_connection((host, int(port))), server_hostname=host) as client:
            client.sendall(struct.pack(">ihhih", 10, 18, 0, 7, -1))
            assert client.recv(8)[4:] == struct.pack(">i", 7)
        trusted.add(ca_file.read_bytes())
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(60) == 0
    assert len(trusted) == 1
    assert (tmp_path / "data" / "tls-broker.pem").stat().st_mode & 0o077 == 0


@pytest.mark.long
def test_a_trace_is_written_when_the_broker_stops(processes: Processes, tmp_path: Path) -> None:
    """And a client of any language is in it."""
    path = tmp_path / "trace.txt"
    broker = processes.serve("--memory", "64MB", "--trace", str(path))
    assert broker.stdout is not None
    host, _, port = broker.stdout.readline().split()[-1].rpartition(":")
    with socket.create_connection((host, int(port))) as client:
        # ApiVersions 0 of a client named "app".
        client.sendall(struct.pack(">ihhih3s", 13, 18, 0, 7, 3, b"app"))
        assert struct.unpack(">i", client.recv(8, socket.MSG_WAITALL)[4:])[0] == 7
    broker.send_signal(signal.SIGTERM)
    assert broker.wait(60) == 0
    (line,) = path.read_text().splitlines()
    assert " app " in line and " ApiVersions v0 #7: " in line


def test_several_brokers_of_one_process(processes: Processes, tmp_path: Path) -> None:
    """The line and the ready file name all of them, as clients take it; each has a folder of its own."""
    ready, data = tmp_path / "ready", tmp_path / "data"
    words = ("--brokers", "3", "--data", str(data), "--ready-file", str(ready), "--topic", "t:6")
    process = processes.serve(*words)
    line = process.stdout.readline()
    addresses = line.removeprefix("pykafkad ready on ").strip().split(",")
    assert len(set(addresses)) == 3 and all(each.startswith("localhost:") for each in addresses)
    assert ready.read_text() == f"{','.join(addresses)}\n"
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "") and "brokers=3" in errors
    for number in (1, 2, 3):
        assert (data / f"broker{number}" / ".kafka_cleanshutdown").exists()
        assert len(list((data / f"broker{number}").glob("t-*"))) == 2
    assert (data / "controller" / "__cluster_metadata-0").is_dir()
    assert not ready.exists()


class OnePassword:
    """A login of one token."""

    def __init__(self, password: str) -> None:
        self._token: bytes | None = f"\0alice\0{password}".encode()

    def auth_bytes(self) -> bytes:
        token, self._token = self._token, None
        return token or b""

    def receive(self, auth_bytes: bytes) -> object:
        return None

    def is_done(self) -> bool:
        return self._token is None


@pytest.mark.long
def test_several_brokers_with_tls_and_users(processes: Processes, tmp_path: Path) -> None:
    """Every broker asks for a login over TLS, and the replicas of the topic are in sync all the same."""
    data = tmp_path / "data"
    words = ("--brokers", "2", "--data", str(data), "--topic", "t:2", "--tls", "--user", "alice:secret")
    process = processes.serve(*words, "--set", "default.replication.factor=2", "--acl", "alice read topic t")
    line = process.stdout.readline()
    words_of_line, _, addresses = line.strip().partition(" on ")
    trusted = words_of_line.partition("ssl.ca.location=")[2]
    context = ssl.create_default_context(cafile=trusted)
    for address in addresses.split(","):
        port = int(address.rpartition(":")[2])
        for password in (None, "wrong", "secret"):
            plain = socket.create_connection(("localhost", port), timeout=30)
            with context.wrap_socket(plain, server_hostname="localhost") as connected:
                user = None if password is None else login.Login("alice", "PLAIN", OnePassword(password))
                if password == "secret":
                    login.try_login(connected, address, user)
                    continue
                with pytest.raises(Failure, match="wants a login" if password is None else "refuses the login"):
                    login.try_login(connected, address, user)
    process.terminate()
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "") and "unexpected-error" not in errors, errors


def test_the_directory_of_one_broker_is_not_that_of_several(processes: Processes, tmp_path: Path) -> None:
    """The error names the directory."""
    first = processes.serve("--data", str(tmp_path))
    first.stdout.readline()
    first.terminate()
    first.communicate(timeout=60)
    output, errors = processes.serve("--data", str(tmp_path), "--brokers", "2").communicate(timeout=60)
    assert output == "" and f"{tmp_path} holds the data of a single broker" in errors


@pytest.mark.long
def test_the_directory_of_several_brokers_is_not_that_of_one(processes: Processes, tmp_path: Path) -> None:
    """The error names the directory, and several start there again."""
    for _ in range(2):
        several = processes.serve("--data", str(tmp_path), "--brokers", "2")
        assert several.stdout.readline().startswith("pykafkad ready on ")
        several.terminate()
        several.communicate(timeout=60)
        one = processes.serve("--data", str(tmp_path))
        output, errors = one.communicate(timeout=60)
        assert (one.returncode, output) == (2, "")
        assert f"{tmp_path} holds the data of several brokers (broker1, broker2, controller)" in errors


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--brokers", "three"), "--brokers three: must be a number"),
        (("--brokers", "0"), "--brokers 0: must be from 1 to 100"),
        (("--rack", "a"), "--rack a: there is one broker"),
        (("--brokers", "2", "--tenant", "a"), "--brokers: each --tenant is a cluster of one broker"),
        (("--brokers", "2", "--processes", "--control", "0"), "--control: it is a part of the process of the brokers"),
    ],
)
def test_what_brokers_cannot_be(processes: Processes, options: tuple[str, ...], problem: str) -> None:
    """The error names the option."""
    process = processes.serve("--memory", "64MB", *options)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (2, "") and problem in errors
