"""The examples of the README run exactly as printed."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from compat_tests.brokers.broker import free_port

PROJECT = Path(__file__).resolve().parents[1]
SHOWN = "".join((PROJECT / name).read_text() for name in ("README.md", "docs/using.md"))
TESTING = (PROJECT / "docs/testing.md").read_text()
CLUSTER = (PROJECT / "docs/cluster.md").read_text()


def example(beginning: str) -> str:
    """The only Python example in the README and docs/using.md with this beginning."""
    (found,) = [text for text in re.findall(r"```python\n(.*?)```", SHOWN, re.DOTALL) if text.startswith(beginning)]
    return found


def test_the_quick_start(bootstrap: str, fresh_name: Callable[..., str]) -> None:
    """The first example prints the record that it sent, on either broker; then it waits for more records."""
    program = example("from kafka import").replace("localhost:9092", bootstrap).replace("greetings", fresh_name())
    with subprocess.Popen([sys.executable, "-u", "-c", program], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == "0 b'hello'\n"
            assert running.poll() is None
        finally:
            running.kill()


@pytest.mark.parametrize("text", [SHOWN, TESTING], ids=["README", "testing"])
def test_the_first_test(text: str, tmp_path: Path) -> None:
    """A file of ten lines and `pytest`: the plugin is there without an import, and nothing stays behind."""
    (shown,) = [each for each in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "kafka_topic" in each]
    (tmp_path / "test_use.py").write_text(shown)
    # By name, so that it does not matter how the package is installed; test_wheel.py looks at the entry point.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pykafkad.pytest_plugin"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(PROJECT)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0 and "1 passed" in ran.stdout, ran.stdout + ran.stderr


def test_the_other_examples_of_testing() -> None:
    """Each runs by itself."""
    programs = [each for each in re.findall(r"```python\n(.*?)```", TESTING, re.DOTALL) if "kafka_topic" not in each]
    assert len(programs) >= 3
    for program in programs:
        run = program + "\nunittest.main()\n" if "unittest" in program else program
        ran = subprocess.run([sys.executable, "-c", run], cwd=PROJECT, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, program + ran.stdout + ran.stderr


def three_free_ports() -> int:
    """The first of three that follow each other, as brokers have them that are not given any other."""
    while True:
        first = free_port()
        try:
            with ExitStack() as opened:
                for port in range(first, first + 3):
                    opened.enter_context(socket.create_server(("localhost", port)))
                return first
        except (OSError, OverflowError):
            continue


@pytest.mark.parametrize("killed", [1, 2, 3])
def test_a_cluster_in_four_commands(tmp_path: Path, killed: int) -> None:
    """Three brokers, a thousand records, the end of a broker that leads some of them: nothing is lost."""
    section = CLUSTER.partition("## A cluster in four commands\n")[2].partition("\n## ")[0]
    serve, produce, kill, tail = re.findall(r"^    (.*)$", section, re.MULTILINE)
    first = three_free_ports()
    ports = {str(9092 + each): str(first + each) for each in range(3)}

    def as_run(command: str) -> str:
        """With ports that are free here."""
        words = re.sub("|".join(ports), lambda found: ports[found[0]], command)
        return words.replace("pykafkad ", f"{shlex.quote(sys.executable)} -m pykafkad ")

    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    options = {"shell": True, "cwd": tmp_path, "env": environment, "text": True}
    with (tmp_path / "log").open("w") as log:
        parent = subprocess.Popen(f"exec {as_run(serve)}", **options, stdout=subprocess.PIPE, stderr=log)
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline().startswith("pykafkad ready on "), (tmp_path / "log").read_text()
        subprocess.run(as_run(produce), **options, check=True, timeout=120)
        (pid,) = re.findall(rf"node-started node={killed} role=broker pid=(\d+)", (tmp_path / "log").read_text())
        subprocess.run(kill.replace("PID", pid), **options, check=True)
        read = subprocess.run(as_run(tail), **options, capture_output=True, timeout=120)
        assert read.stdout.strip() == "1000", read
    finally:
        parent.terminate()
        assert parent.wait(60) == 0
        parent.stdout.close()
    assert "unexpected-error" not in (tmp_path / "log").read_text()
