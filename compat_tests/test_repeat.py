"""A test that takes too long beside the real Kafka is repeated once, and the summary says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.brokers.pykafkad_process import REPOSITORY
from compat_tests.repeat import TITLE

# A session whose real Kafka only counts how often it was made anew.
CONFTEST = """
import pytest
from compat_tests.repeat import Repeat, session_broker

class Reference:
    renewed = 0

    def renew(self):
        self.renewed += 1

def pytest_configure(config):
    config.stash[session_broker] = Reference()
    config.pluginmanager.register(Repeat(config))

def pytest_generate_tests(metafunc):
    metafunc.parametrize("broker", ["kafka", "pykafkad"])

begun = {}

@pytest.fixture
def is_first(request):
    # The count of new brokers, when this test runs for the first time.
    before = begun.setdefault(request.node.nodeid, request.config.stash[session_broker].renewed)
    return before == request.config.stash[session_broker].renewed
"""
TESTS = """
import subprocess
from compat_tests.samples import wait_until

def test_late_once(broker, is_first):
    if broker == "kafka" and is_first:
        wait_until(lambda: False, "a record", 0.01)

def test_program_that_hangs(broker, is_first):
    if broker == "kafka" and is_first:
        subprocess.run(["sleep", "9"], timeout=0.01)

def test_late_each_time(broker):
    if broker == "kafka":
        wait_until(lambda: False, "a record", 0.01)

def test_late_beside_pykafkad(broker):
    if broker == "pykafkad":
        wait_until(lambda: False, "a record", 0.01)

def test_wrong_answer(broker, is_first):
    assert broker == "pykafkad" or not is_first
"""
FAILED = ["test_late_beside_pykafkad[pykafkad]", "test_late_each_time[kafka]", "test_wrong_answer[kafka]"]
REPEATED = {
    "test_late_each_time[kafka]": "call: did not happen within 0.01 s",
    "test_late_once[kafka]": "call: did not happen within 0.01 s",
    "test_program_that_hangs[kafka]": "call: Command '['sleep', '9']' timed out",
}


@pytest.mark.parametrize("workers", [0, 2])
def test_only_what_is_late_beside_kafka_is_repeated(tmp_path: Path, workers: int) -> None:
    """In one process and with workers: each result is counted once, and the summary names what was repeated."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "-p", "no:cacheprovider", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    lines = ran.stdout.splitlines()
    assert lines[-1].startswith("3 failed, 7 passed"), ran.stdout
    failed = [line.split("::")[1].split(" - ")[0] for line in lines if line.startswith("FAILED ")]
    assert sorted(failed) == FAILED
    said = dict(line.split("::")[1].split(": ", 1) for line in lines if line.startswith(f"{TITLE}: "))
    assert {name: why.startswith(REPEATED.get(name, "?")) for name, why in said.items()} == dict.fromkeys(
        REPEATED, True
    )
