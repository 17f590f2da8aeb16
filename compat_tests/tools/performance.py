"""Performs a case on one broker and records the tools' output as a transcript."""

from __future__ import annotations

import re
import time
from pathlib import Path
from string import Template
from typing import NamedTuple

from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.tools.cases import Case, Step
from compat_tests.tools.runner import Outcome, ToolRunner

UNTIL_SECONDS = 100.0
PAUSE_SECONDS = 0.05
DESCRIBE_QUORUM = 55
# These tools take sub-commands before the options.
ADDRESS_LAST = ("cluster",)


class Stage(NamedTuple):
    """The place of a case: the runner, one broker's address and data, a directory for files, whether it is the real
    Kafka.
    """

    runner: ToolRunner
    bootstrap: str
    data_directory: Path
    directory: Path
    is_reference: bool


class CaseFailed(Exception):
    """A preparation failed."""


def perform(case: Case, stage: Stage) -> list[tuple[Step, Outcome]]:
    """Run every step in order; returns the compared steps with their outputs."""
    stage.directory.mkdir(parents=True)
    meanings = {
        "name": case.name,
        "bootstrap": stage.bootstrap,
        "directory": str(stage.directory),
        "data": str(stage.data_directory),
    }
    background: list[int] = []
    transcript = []
    exchange = Exchange(stage.bootstrap, case.name)
    try:
        for step in case.steps:
            if "reference" in step.words and not stage.is_reference:
                continue
            arguments = [Template(argument).substitute(meanings) for argument in step.arguments]
            if step.tool == "file":
                (stage.directory / arguments[0]).write_text(arguments[1].replace("\\n", "\n"))
            elif step.tool == "end":
                _end(stage.runner, background)
            elif "background" in step.words:
                background.append(stage.runner.start(step.tool, _addressed(step, arguments, stage), step.typed))
            else:
                outcome, found = _run(step, _addressed(step, arguments, stage), stage.runner)
                meanings.update(found)
                if step.is_compared:
                    transcript.append((step, outcome))
                _settle(exchange)
    finally:
        exchange.close()
        while background:
            _end(stage.runner, background)
    return transcript


def _settle(exchange: Exchange) -> None:
    """Wait until the broker knows every decision of its controller: Kafka answers for a change before the broker
    applies it.

    ApiVersions' epoch of the finalized features is the metadata log's offset up to which the broker knows it.
    """
    known = exchange.quietly("ApiVersions", 4, client_software_name="tools", client_software_version="1")
    if DESCRIBE_QUORUM in (api.api_key for api in known.api_keys):
        rows = [part("DescribeQuorum", "PartitionData", partition_index=0)]
        topics = [part("DescribeQuorum", "TopicData", topic_name="__cluster_metadata", partitions=rows)]
        decided = exchange.quietly("DescribeQuorum", 2, topics=topics).topics[0].partitions[0].high_watermark
        exchange.until(
            lambda: exchange.quietly("ApiVersions", 4, client_software_name="tools", client_software_version="1"),
            lambda answer: answer.finalized_features_epoch >= decided - 1,
        )


def _end(runner: ToolRunner, background: list[int]) -> None:
    number = background.pop()
    runner.end(number)
    runner.result(number)


def _addressed(step: Step, arguments: list[str], stage: Stage) -> list[str]:
    if "alone" in step.words:
        return arguments
    address = ["--bootstrap-server", stage.bootstrap]
    return [*arguments, *address] if step.tool in ADDRESS_LAST else [*address, *arguments]


def _run(step: Step, arguments: list[str], runner: ToolRunner) -> tuple[Outcome, dict[str, str]]:
    """The result of the tool, and the matches of the step's regex in its output."""
    deadline = time.monotonic() + UNTIL_SECONDS
    while True:
        outcome = runner.run(step.tool, arguments, step.typed)
        if "prepare" in step.words and outcome.code != 0:
            raise CaseFailed(f"{step.line}\n{outcome}")
        if "until" not in step.words:
            return outcome, {}
        if found := re.search(step.pattern, outcome.output):
            return outcome, found.groupdict()
        if time.monotonic() > deadline:
            raise CaseFailed(f"{step.line}: no match in {UNTIL_SECONDS} s\n{outcome}")
        time.sleep(PAUSE_SECONDS)
