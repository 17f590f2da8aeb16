"""One run of one suite against its own broker, in its own network where the system allows it.

With its own network, a suite with the fixed address localhost:9092 can run while that port is in use elsewhere.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from compat_tests.brokers.broker import Broker, free_port
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import REPOSITORY, PykafkadProcess
from compat_tests.setup.cache import cache_directory
from compat_tests.setup.kafka_jars import jars_directory
from compat_tests.suites.catalogue import suite_named
from compat_tests.suites.suite import Outcomes, Place, Suite, SuiteUnavailable

FIXED_PORT = 9092
# Several suites write records of the year 1970, so retention must not run while they read them.
SETTINGS = {"log.retention.check.interval.ms": "3600000", "log.initial.task.delay.ms": "3600000"}
GET_FLAGS, SET_FLAGS, UP_AND_RUNNING = 0x8913, 0x8914, 0x41


class Run(NamedTuple):
    """The result of one run: outcomes by test, its duration, and the path of the suite's output."""

    outcomes: Outcomes
    seconds: float
    log: Path


def run_suite(suite: Suite, against: str, quick: bool = False, attempt: int = 1) -> Run:
    """Run `suite` against a new "kafka" or "pykafkad" in its own process (and network); each `attempt` has its own log.

    SuiteUnavailable if its package, its tool chain or its port is missing.
    """
    source = suite.prepare()
    separate = own_network()
    if suite.fixed_port and not separate and not is_free(FIXED_PORT):
        raise SuiteUnavailable(
            f"{suite.name} needs port {FIXED_PORT}, which is taken, or the right to make network namespaces"
        )
    results = (
        cache_directory()
        / "suites"
        / "results"
        / f"{suite.name}-{against}{'-quick' * quick}{f'-{attempt}' * (attempt > 1)}"
    )
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    command = [
        *separate,
        sys.executable,
        "-m",
        "compat_tests.suites.run",
        suite.name,
        against,
        str(source),
        str(results),
    ]
    command += ["--quick"] * quick + ["--own-network"] * bool(separate)
    begun = time.monotonic()
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    outcomes_path = results / "outcomes.json"
    if done.returncode != 0 or not outcomes_path.exists():
        raise RuntimeError(f"the run of {suite.name} against {against} failed:\n{done.stdout}{done.stderr}")
    return Run(json.loads(outcomes_path.read_text()), time.monotonic() - begun, results / "suite.log")


def own_network() -> list[str]:
    """The command prefix that gives a program its own network; empty if the system refuses."""
    for words in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        if shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0:
            return words
    return []


def is_free(port: int) -> bool:
    """Whether nothing listens on `port` of localhost."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def raise_loopback() -> None:
    """Bring up the loopback interface, which is down in a new network."""
    with socket.socket() as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack("16xH14x", fcntl.ioctl(any_socket, GET_FLAGS, request))
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sH14x", b"lo", flags | UP_AND_RUNNING))


def broker_for(suite: Suite, against: str, directory: Path, port: int) -> Broker:
    """A new broker with the settings that the suite wants."""
    wanted = {**SETTINGS, **suite.settings, **suite.login_settings}
    settings = {name: value.format(port=port) for name, value in wanted.items()}
    if against == "kafka":
        return KafkaProcess(jars_directory(), directory, settings, port)
    return PykafkadProcess(directory, settings, port=port)


def main() -> None:
    """Inside the new network: start the broker, run the suite, write the outcomes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("suite")
    parser.add_argument("against", choices=("kafka", "pykafkad"))
    parser.add_argument("source", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--own-network", action="store_true")
    arguments = parser.parse_args()
    # A run that is asked to end must not leave its broker behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if arguments.own_network:
        raise_loopback()
    suite = suite_named(arguments.suite)
    port = FIXED_PORT if suite.fixed_port or arguments.own_network else free_port()
    with tempfile.TemporaryDirectory() as directory:
        broker = broker_for(suite, arguments.against, Path(directory), port)
        try:
            broker.start()
            outcomes = suite.run(Place(arguments.source, broker.bootstrap, arguments.results, arguments.quick))
        finally:
            broker.close()
            (arguments.results / "broker.log").write_text(broker.log_text())
    (arguments.results / "outcomes.json").write_text(json.dumps(outcomes, indent=1))


if __name__ == "__main__":
    main()
