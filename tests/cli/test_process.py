"""A broker as a process: the readiness line, the ready file, signals, and a second broker on the same directory."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

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
