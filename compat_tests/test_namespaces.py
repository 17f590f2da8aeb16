"""The network of `python -m compat_tests.rounds --network namespaces`: what a cut loses, and that nothing is left."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.rounds import __main__ as rounds
from compat_tests.rounds.namespaces import (
    BLOCKS,
    PORT,
    RANGE,
    Namespaces,
    NamespacesUnavailable,
    check,
    free_block,
)
from compat_tests.rounds.network import CLIENTS, CONTROLLERS, NODES, QUORUM

REPOSITORY = Path(__file__).resolve().parents[1]
STEP_SECONDS = 60.0
# How long it takes to see that nothing comes.
SILENCE_SECONDS = 0.5
# Says what it is sent, and sends it back.
ECHO = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
while True:
    connection = server.accept()[0]
    try:
        while word := connection.recv(100):
            print(word.decode(), flush=True)
            connection.sendall(word)
    except OSError as error:
        print(error.errno, flush=True)
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3]))"


def skip_without_namespaces() -> None:
    """Skip the test where the machine allows no network namespaces."""
    try:
        check()
    except NamespacesUnavailable as error:
        pytest.skip(f"this machine allows no network namespaces: {error}")


class Echo:
    """A connection of a client to a program in the namespace of node 1."""

    def __init__(self, network: Namespaces) -> None:
        words = [sys.executable, "-c", ECHO, network.host(1), str(PORT)]
        command = ["ip", "netns", "exec", network.namespace(1), *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.line() == "ready"
        self.connection = socket.create_connection((network.host(1), PORT), STEP_SECONDS)

    def line(self) -> str:
        """The next that the program says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def is_silent(self) -> bool:
        """Whether nothing comes back for a moment."""
        self.connection.settimeout(SILENCE_SECONDS)
        try:
            self.connection.recv(100)
        except TimeoutError:
            return True
        finally:
            self.connection.settimeout(STEP_SECONDS)
        return False

    def close(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def network() -> Iterator[Namespaces]:
    skip_without_namespaces()
    network = Namespaces()
    try:
        network.open()
        yield network
    finally:
        network.close()
    assert left_of(os.getpid()) == []


def left_of(owner: int) -> list[str]:
    """What there is of the namespaces and links of a run."""
    namespaces = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout.split()
    links = [each.name for each in Path("/sys/class/net").iterdir()]
    # Another run's process id may begin with this one's digits, or its nodes have this one for their id.
    return [name for name in (*namespaces, *links) if re.match(rf"rounds-?{owner}(?!\d)", name)]


def connects(network: Namespaces, source: int, timeout_seconds: float) -> bool:
    """Whether a program in a node's namespace reaches the one of node 1."""
    words = [sys.executable, "-c", CONNECT, network.host(1), str(PORT), str(timeout_seconds)]
    done = subprocess.run(["ip", "netns", "exec", network.namespace(source), *words], capture_output=True, text=True)
    assert done.returncode == 0 or "TimeoutError" in done.stderr, done
    return done.returncode == 0


def test_what_is_lost_of_a_link_is_late(network: Namespaces) -> None:
    """Requests do not arrive, or answers do not; nobody is told. Other nodes reach each other meanwhile."""
    echo = Echo(network)
    try:
        for way, word in enumerate(("requests", "answers", "both")):
            network.cut(CLIENTS, 1, way)
            network.cut(2, 1, way)
            echo.connection.sendall(word.encode())
            if way == 1:
                assert echo.line() == word
            assert echo.is_silent() and not connects(network, 2, SILENCE_SECONDS)
            network.heal(CLIENTS, 1, way, reset=False)
            assert echo.connection.recv(100) == word.encode()
            if way != 1:
                assert echo.line() == word
            assert not connects(network, 2, SILENCE_SECONDS)
            network.heal(2, 1, way, reset=False)
            assert connects(network, 2, STEP_SECONDS)
    finally:
        echo.close()


def test_two_cuts_of_a_link_end_with_the_last(network: Namespaces) -> None:
    """A broker is isolated, and cannot be asked by one that another trouble concerns."""
    echo = Echo(network)
    try:
        for way in (0, 2):
            network.cut(CLIENTS, 1, way)
        echo.connection.sendall(b"late")
        network.heal(CLIENTS, 1, 2, reset=False)
        assert echo.is_silent()
        network.heal(CLIENTS, 1, 0, reset=False)
        assert echo.connection.recv(100) == b"late"
    finally:
        echo.close()


def test_what_is_lost_never_comes_after_a_reset(network: Namespaces) -> None:
    echo = Echo(network)
    try:
        network.cut(CLIENTS, 1, 0)
        echo.connection.sendall(b"lost")
        assert echo.is_silent()
        network.heal(CLIENTS, 1, 0, reset=True)
        # The other end has told, or this one was ended too: whichever comes first.
        with pytest.raises((ConnectionResetError, ConnectionAbortedError)):
            echo.connection.recv(100)
        assert echo.line() == str(errno.ECONNABORTED)
        with socket.create_connection((network.host(1), PORT), STEP_SECONDS) as again:
            again.sendall(b"new")
            assert again.recv(100) == b"new"
    finally:
        echo.close()


def test_a_cut_loses_the_packets_of_its_links() -> None:
    """Of one direction or both; the quorum's cut concerns all that others ask a controller."""
    skip_without_namespaces()
    network = Namespaces(owner=7)
    two, eleven = network.host(2), network.host(11)
    assert network.drops(2, 11, 0) == [(two, eleven)]
    assert network.drops(2, 11, 1) == [(eleven, two)]
    assert network.drops(2, 11, 2) == [(two, eleven), (eleven, two)]
    others = [network.host(each) for each in NODES if each != 11]
    assert network.drops(QUORUM, 11, 0) == [(each, eleven) for each in others]
    assert len(CONTROLLERS) == 3 and len(others) == 5


def test_runs_do_not_meet() -> None:
    """Two processes have other names and addresses; routes of the machine are left alone."""
    first, second = free_block(7, "[]"), free_block(8, "[]")
    assert not first.overlaps(second) and first.subnet_of(RANGE) and second.subnet_of(RANGE)
    assert free_block(7 + len(BLOCKS), "[]") == first
    routes = [{"dst": "default"}, {"dst": "128.0.0.0/1"}, {"dst": str(first[1])}, {"dst": "127.0.0.0/8"}]
    assert free_block(7, json.dumps(routes)) == second
    everything = json.dumps([{"dst": str(each)} for each in BLOCKS])
    with pytest.raises(NamespacesUnavailable, match=r"all 512 blocks of 198\.18\.0\.0/15 have routes"):
        free_block(7, everything)
    assert ipaddress.IPv4Network("198.18.7.0/24") == first


def test_a_machine_without_namespaces_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What is missing, before anything is started; a refusal of the system is told too."""
    handler = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(sys, "argv", ["rounds", "--network", "namespaces"])
    monkeypatch.setenv("PATH", str(tmp_path))
    try:
        with pytest.raises(SystemExit, match="2"):
            rounds.main()
        assert "allows no network namespaces: the program ip is missing" in capsys.readouterr().err
        program = tmp_path / "ip"
        program.write_text('#!/bin/sh\ncase "$*" in *route*) echo "[]";; *) echo "no permission" >&2; exit 1;; esac\n')
        program.chmod(0o755)
        with pytest.raises(SystemExit, match="2"):
            rounds.main()
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert "allows no network namespaces: `ip netns list` fails: no permission" in capsys.readouterr().err


def test_a_run_that_is_told_to_stop_leaves_nothing(tmp_path: Path) -> None:
    """No namespace, no link and no process of a node."""
    skip_without_namespaces()
    command = [sys.executable, "-m", "compat_tests.rounds", "--network", "namespaces", "--only-python"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + STEP_SECONDS
        while not list(tmp_path.glob("rounds-*/seed-*/1/ready")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        assert len(left_of(process.pid)) > len(NODES)
    finally:
        process.terminate()
        process.wait(STEP_SECONDS)
    assert process.returncode == 128 + signal.SIGTERM and left_of(process.pid) == []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # Other processes may end meanwhile.
        with contextlib.suppress(OSError):
            assert str(tmp_path) not in path.read_text()
