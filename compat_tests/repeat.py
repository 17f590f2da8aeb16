"""Repeats a test that took too long, once: each such test beside the real Kafka, on a new one, and one beside pykafkad.

A real Kafka that gets little processor time, and clients beside it, sometimes wait for ever. That says nothing about
pykafkad. Clients do so beside every broker: kafka-python 3.0 forgets a join, or the end of a transaction. So one test
of a process may be repeated beside pykafkad too; the second one that is late fails, because one client's race is rare.
Only a failure by time is repeated, never a wrong answer. The summary names every test that was repeated.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from _pytest.runner import runtestprotocol

from compat_tests.brokers.broker import Broker
from compat_tests.brokers.kafka_process import KafkaProcess

# Names of exceptions that tell of time: ours, Python's, and those of the clients.
BY_TIME = {"TookTooLong", "BrokerFailed", "TimeoutExpired", "TimeoutError", "KafkaTimeoutError"}
TIMEOUT_OF_PYTEST = "Timeout (>"
# librdkafka has one exception for all, with its own codes for a call and for a message that took too long.
EXCEPTION_OF_LIBRDKAFKA = "KafkaException"
BY_TIME_OF_LIBRDKAFKA = {-185, -192}
TITLE = "repeated"
SHOWN = 200
# How many tests of one process are repeated that run beside pykafkad, or beside several brokers.
LIMIT_BESIDE_PYKAFKAD = 1
why_late = pytest.StashKey[str]()
repeated = pytest.StashKey[bool]()
session_broker = pytest.StashKey[Broker]()


def took_too_long(error: BaseException) -> bool:
    """Whether the exception tells that something took too long, and not that an answer was wrong."""
    names = {each.__name__ for each in type(error).__mro__}
    if EXCEPTION_OF_LIBRDKAFKA in names and error.args and hasattr(error.args[0], "code"):
        return error.args[0].code() in BY_TIME_OF_LIBRDKAFKA
    return bool(names & BY_TIME) or (
        isinstance(error, pytest.fail.Exception) and str(error).startswith(TIMEOUT_OF_PYTEST)
    )


def is_beside_kafka_only(item: pytest.Item) -> bool:
    """Whether the test runs against the real Kafka, and against no other broker."""
    callspec = getattr(item, "callspec", None)
    return callspec is not None and callspec.params.get("broker") == KafkaProcess.name


def forgive_left_threads() -> None:
    """Ignore exceptions of the threads that run now: a late test left them, and its broker may be replaced."""
    left, hook = set(threading.enumerate()) - {threading.main_thread()}, threading.excepthook

    def forgiving(args: threading.ExceptHookArgs) -> None:
        if args.thread not in left:
            hook(args)

    threading.excepthook = forgiving


class Repeat:
    """The plug-in: `compat_tests/conftest.py` registers it, and names its session's real Kafka with `use`."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.left_beside_pykafkad = LIMIT_BESIDE_PYKAFKAD

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
        """Note why the first run took too long."""
        report = yield
        if call.excinfo is not None and took_too_long(call.excinfo.value) and why_late not in item.stash:
            said = str(call.excinfo.value).strip() or type(call.excinfo.value).__name__
            item.stash[why_late] = f"{call.when}: {said.splitlines()[0][:SHOWN]}"
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run the test, and report its run only if it was not late; otherwise run it again."""
        beside_kafka_only = is_beside_kafka_only(item)
        if repeated in item.stash or not (beside_kafka_only or self.left_beside_pykafkad):
            return None
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        if why_late not in item.stash:
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            for report in reports:
                item.ihook.pytest_runtest_logreport(report=report)
            item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            return True
        item.stash[repeated] = True
        item.user_properties.append((TITLE, item.stash[why_late]))
        forgive_left_threads()
        if beside_kafka_only:
            broker = self.config.stash.get(session_broker, None)
            if broker is not None:
                broker.renew()
        else:
            self.left_beside_pykafkad -= 1
        # Through the hook, so that the run has a time limit of its own.
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name every repeated test and why."""
        reports = [each for some in terminalreporter.stats.values() for each in some]
        lines = {
            f"{TITLE}: {each.nodeid}: {why}"
            for each in reports
            if isinstance(each, pytest.TestReport)
            for name, why in each.user_properties
            if name == TITLE
        }
        if lines:
            terminalreporter.section(TITLE, yellow=True)
            for line in sorted(lines):
                terminalreporter.write_line(line)
