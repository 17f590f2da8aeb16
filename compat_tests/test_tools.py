"""Every case of `compat_tests/tools/cases/`: Kafka's own tools on a real Kafka and on pykafkad; the outputs are
compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from compat_tests.brokers.broker import ProcessBroker
from compat_tests.brokers.choose import broker_process
from compat_tests.conftest import AGAINST, assert_no_bug_logged
from compat_tests.java_tools import JavaTools
from compat_tests.tools.cases import all_cases
from compat_tests.tools.differences import ALLOWED, Difference, allowing, of_case
from compat_tests.tools.normalise import difference, normalised
from compat_tests.tools.performance import CaseFailed, Stage, perform
from compat_tests.tools.runner import TOOLS, ToolRunner

CASES = all_cases()
SHOWN_LINES = 60
# Settings that differ from Kafka's defaults: an authorizer to list and add permissions, a second directory for moves.
SETTINGS = {
    "log.dirs": "{data},{data}-2",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
# Options that no case uses, with the reason.
TRANSACTIONS = "they need a transaction that hangs: test_transactions.py"
CLIENT = "it is about the client's own settings"
APPLICATION = "it needs the group of a Streams application: test_streams_and_connect.py"
FILES = "read by the tests of files, test_log_files.py and test_tools_files.py"
UNUSED_OPTIONS = {
    "console-share-consumer": ("*", CLIENT),
    "consumer-perf-test": ("--print-metrics", "what it prints is of the client's making"),
    "dump-log": ("*", FILES),
    "producer-perf-test": ("--print-metrics", "what it prints is of the client's making"),
    "replica-verification": ("*", "it runs until it is killed, in a test of its own"),
    "storage": ("*", FILES),
    "streams-groups": ("*", APPLICATION),
    "transactions": ("*", TRANSACTIONS),
}


@pytest.fixture(scope="module")
def brokers(
    kafka_jars: Path, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[ProcessBroker]]:
    """A real Kafka and a pykafkad for these tests only, so that tools list only what these tests created."""
    with ExitStack() as stack:
        started: list[ProcessBroker] = []
        for name in AGAINST[pytestconfig.getoption("--against")]:
            directory = tmp_path_factory.mktemp(name)
            broker = broker_process(name, kafka_jars, directory, SETTINGS)
            stack.callback(broker.close)
            broker.start()
            started.append(broker)
        yield started
    for broker in started:
        if broker.name == "pykafkad":
            assert_no_bug_logged(broker)


@pytest.mark.parametrize("name", CASES)
def test_tool(name: str, runner: ToolRunner, brokers: list[ProcessBroker], tmp_path: Path) -> None:
    """The tools print the same for both brokers but for the differences in `differences.py`, all of which are there."""
    transcripts = []
    lines: list[str] = []
    for broker in brokers:
        stage = Stage(runner, broker.bootstrap, broker.data_directory, tmp_path / broker.name, broker.name == "kafka")
        try:
            transcripts.append(
                [(step, normalised(step, outcome, stage)) for step, outcome in perform(CASES[name], stage)]
            )
        except CaseFailed as error:
            # The other broker also performs the step, because later lists must be the same on both.
            lines.append(f"{broker.name}: {error}")
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)
    there: set[Difference] = set()
    for (step, expected), (_, answered) in zip(transcripts[0], transcripts[-1], strict=True):
        unexplained = []
        for line in difference(expected, answered):
            rows = allowing(name, step.line, line)
            there.update(rows)
            if not rows:
                unexplained.append(line)
        if unexplained:
            lines += [f"{step.line}", *unexplained]
    if len(brokers) == 2:
        # A listed difference that no longer occurs must be removed from the list.
        lines += [f"no line differs any more as this row says: {row}" for row in of_case(name) if row not in there]
    if lines:
        more = f"\n… and {len(lines) - SHOWN_LINES} more" if len(lines) > SHOWN_LINES else ""
        pytest.fail("\n".join(lines[:SHOWN_LINES]) + more, pytrace=False)


def test_replica_verification(
    runner: ToolRunner, brokers: list[ProcessBroker], kafka_jars: Path, tmp_path: Path
) -> None:
    """kafka-replica-verification reads every replica and reports their maximum lag, until it is stopped."""
    reports = []
    for broker in brokers:
        addressed = ["--bootstrap-server", broker.bootstrap, "--topic", "verified"]
        assert runner.run("topics", [*addressed, "--create"]).code == 0
        assert runner.run("console-producer", addressed, "1\n2\n").code == 0
        tools = JavaTools(kafka_jars, broker.bootstrap, tmp_path / "log4j2.properties")
        reports.append(tools.verify_replicas("verified", 1, "--max-wait-ms", "100", "--fetch-size", "10000"))
    assert set(reports) == {"max lag is 0 for partition verified-0 at offset 2 among 1 partitions"}


def test_every_difference_has_a_case() -> None:
    """The run of the case finds whether the difference is still there; so no row may be without one."""
    assert [row for row in ALLOWED if row.case not in CASES] == []


def test_every_option_is_used(runner: ToolRunner) -> None:
    """Every option in a tool's own help is used by a case, or has a reason in `UNUSED_OPTIONS`."""
    unused: dict[str, list[str]] = {}
    for tool in TOOLS:
        used = {word for case in CASES.values() for step in case.steps if step.tool == tool for word in step.arguments}
        excepted, _ = UNUSED_OPTIONS.get(tool, ("", ""))
        named = options_named(runner, tool) - used - {"--bootstrap-server", "--help", "--version", *excepted.split()}
        if named and excepted != "*":
            unused[tool] = sorted(named)
    assert unused == {}


def options_named(runner: ToolRunner, tool: str) -> set[str]:
    """The options in a tool's help, including its sub-commands."""
    outcome = runner.run(tool, ["--help"])
    text = outcome.output + outcome.errors
    for commands in re.findall(r"^ *\{([a-z,-]+)\} \.\.\.", text, re.M):
        for command in commands.split(","):
            outcome = runner.run(tool, [command, "--help"])
            text += outcome.output + outcome.errors
    return set(re.findall(r"^ {0,2}(?:-\w(?: [A-Z_]+)?, ?)?(--[a-z][a-z.-]*)", text, re.M))
