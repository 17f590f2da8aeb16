"""The projects of `examples/`: each runs its own tests, in its own language, with the pykafkad of this project."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from compat_tests.conftest import unavailable
from compat_tests.setup import system_packages
from compat_tests.setup.cache import cache_directory, exclusively
from compat_tests.setup.system_packages import GO, MAVEN, NPM, Program

PROJECT = Path(__file__).parents[1]
EXAMPLES = PROJECT / "examples"
LIMIT_SECONDS = 600


def run(language: str, command: list[str], environment: dict[str, str] | None = None) -> str:
    """The output of a command in the project of a language; its tests find this pykafkad."""
    settings = {**os.environ, "PYTHONPATH": str(PROJECT), "PYKAFKAD": f"{sys.executable} -m pykafkad"}
    done = subprocess.run(
        command, cwd=copied(language), env=settings | (environment or {}), capture_output=True, text=True,
        timeout=LIMIT_SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return done.stdout


def copied(language: str) -> Path:
    """The project in the cache, so that nothing is written beside the sources, and packages stay there."""
    directory = cache_directory() / "examples" / language
    shutil.copytree(EXAMPLES / language, directory, dirs_exist_ok=True)
    return directory


def need(program: Program) -> None:
    still_missing = system_packages.install(system_packages.missing((program,)))
    if still_missing:
        unavailable(system_packages.how_to_get(program))


def fetch(language: str, command: list[str], what: str) -> None:
    """Have packages fetched by the language's own client. Skips where it can't."""
    with exclusively(f"example-{language}"):
        done = subprocess.run(command, cwd=copied(language), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        unavailable(f"{what} could not be fetched:\n{(done.stdout + done.stderr)[-1000:]}")


def test_python():
    assert "3 passed" in run("python", [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"])


def test_faststream():
    """FastStream's own packages are beside the project, not among those of the tests."""
    packages = copied("faststream") / "packages"
    if not (packages / "faststream").is_dir():
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", "packages", "-r", "requirements.txt"]
        fetch("faststream", command, "FastStream")
    environment = {"PYTHONPATH": f"{PROJECT}{os.pathsep}{packages}"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_billing.py"]
    assert "3 passed" in run("faststream", command, environment)


def test_javascript():
    need(NPM)
    if not (copied("javascript") / "node_modules" / "kafkajs").is_dir():
        fetch("javascript", ["npm", "ci", "--ignore-scripts"], "kafkajs")
    out = run("javascript", ["node", "--test", "--test-reporter=tap"])
    assert re.search(r"^# pass 4$", out, re.MULTILINE) and re.search(r"^# fail 0$", out, re.MULTILINE), out


def test_go():
    if shutil.which("go") is None:
        unavailable(system_packages.how_to_get(GO))
    fetch("go", ["go", "mod", "download"], "kafka-go or franz-go")
    assert run("go", ["go", "test", "-count=1", "-v", "./..."]).count("--- PASS: ") == 5


def test_java():
    need(MAVEN)
    fetch("java", ["mvn", "-q", "-B", "test", "-DskipTests"], "the Java client, Spring Kafka or JUnit")
    out = run("java", ["mvn", "-B", "test"])
    assert "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0" in out, out[-3000:]
