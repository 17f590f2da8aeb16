"""A test that takes too long is repeated once, beside pykafkad only the first one, and the summary says so."""

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
from confluent_kafka import KafkaError, KafkaException
from compat_tests.samples import wait_until

def test_late_once(broker, is_first):
    if broker == "kafka" and is_first:
        wait_until(lambda: False, "a record", 0.01)

def test_program_that_hangs(broker, is_first):
    if broker == "kafka" and is_first:
        subprocess.run(["sleep", "9"], timeout=0.01)

def test_client_that_waits_in_vain(broker, is_first):
    if broker == "kafka" and is_first:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

def test_client_that_is_refused(broker, is_first):
    if broker == "kafka" and is_first:
        raise KafkaException(KafkaError(KafkaError.INVALID_RECORD))

def test_late_each_time(broker):
    if broker == "kafka":
        wait_until(lambda: False, "a record", 0.01)

def test_late_beside_pykafkad(broker):
    if broker == "pykafkad":
        wait_until(lambda: False, "a record", 0.01)

def test_wrong_answer(broker, is_first):
    assert broker == "pykafkad" or not is_first
"""
FAILED = [
    "test_client_that_is_refused[kafka]",
    "test_late_beside_pykafkad[pykafkad]",
    "test_late_each_time[kafka]",
    "test_wrong_answer[kafka]",
]
LATE_CLIENTS = """
from compat_tests.samples import wait_until

late = []

def test_first(broker):
    late.append(broker)
    wait_until(lambda: broker == "kafka" or late.count(broker) > 1, "a client's join", 0.01)

def test_second(broker):
    late.append(broker)
    wait_until(lambda: broker == "kafka" or late.count(broker) > 3, "a client's join", 0.01)
"""
LEFT_THREAD = """
import threading
from compat_tests.samples import wait_until

replaced = threading.Event()
threads = []

def poll():
    replaced.wait(60)
    raise ConnectionError("the broker was replaced")

def test_leaves_a_thread(broker):
    threads.append(threading.Thread(target=poll, daemon=True))
    if len(threads) == 1:
        threads[0].start()
        wait_until(lambda: False, "a record", 0.01)
    replaced.set()
    threads[0].join()

def test_fails_in_a_thread(broker):
    thread = threading.Thread(target=poll)
    thread.start()
    thread.join()
"""
REPEATED = {
    "test_client_that_waits_in_vain[kafka]": "call: KafkaError{code=_TIMED_OUT",
    "test_late_beside_pykafkad[pykafkad]": "call: did not happen within 0.01 s",
    "test_late_each_time[kafka]": "call: did not happen within 0.01 s",
    "test_late_once[kafka]": "call: did not happen within 0.01 s",
    "test_program_that_hangs[kafka]": "call: Command '['sleep', '9']' timed out",
}


@pytest.mark.parametrize("workers", [0, 2])
def test_only_what_is_late_is_repeated(tmp_path: Path, workers: int) -> None:
    """In one process and with workers: each result is counted once, and the summary names what was repeated."""
    counts, failed, said = run(tmp_path, TESTS, workers)
    assert counts.startswith("4 failed, 10 passed")
    assert failed == FAILED
    assert {name: why.startswith(REPEATED.get(name, "?")) for name, why in said.items()} == dict.fromkeys(
        REPEATED, True
    )


def test_beside_pykafkad_only_the_first_is_repeated(tmp_path: Path) -> None:
    """One late client is a race of that client; two in one process look like a fault of the broker."""
    counts, failed, said = run(tmp_path, LATE_CLIENTS, workers=0)
    assert counts.startswith("1 failed, 3 passed")
    assert failed == ["test_second[pykafkad]"]
    assert list(said) == ["test_first[pykafkad]"]


def test_threads_of_a_late_test_are_forgiven(tmp_path: Path) -> None:
    """The thread of a late test fails when its broker is replaced; threads of later tests fail them as before."""
    counts, failed, _ = run(tmp_path, LEFT_THREAD, workers=0)
    assert counts.startswith("2 failed, 2 passed")
    assert failed == ["test_fails_in_a_thread[kafka]", "test_fails_in_a_thread[pykafkad]"]


def run(folder: Path, tests: str, workers: int) -> tuple[str, list[str], dict[str, str]]:
    """Run these tests; return the line of counts, the names of those that failed, and why others were repeated."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "-p", "no:cacheprovider", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    lines = ran.stdout.splitlines()
    failed = sorted(line.split("::")[1].split(" - ")[0] for line in lines if line.startswith("FAILED "))
    said = dict(line.split("::")[1].split(": ", 1) for line in lines if line.startswith(f"{TITLE}: "))
    return lines[-1], failed, said
