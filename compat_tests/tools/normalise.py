"""Makes the tools' output comparable: values that may differ between two brokers are replaced by descriptions."""

from __future__ import annotations

import contextlib
import difflib
import json
import re
import time

from compat_tests.tools.cases import Step
from compat_tests.tools.performance import Stage
from compat_tests.tools.runner import Outcome

NOW_TOLERANCE_MS = 3_600_000
REPLACED = (
    (re.compile(r"^\s*(at |\.\.\. \d+ more).*\n", re.M), ""),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    # 16 bytes in base 64: the last of the 22 letters carries two bits.
    (re.compile(r"(?<![\w-])(?=[\w-]*[A-Z])[\w-]{21}[AQgw](?![\w-])"), "<id>"),
    (re.compile(r"(?<=Cluster ID: )\S+|(?<=ClusterId:)\s+\S+"), "<id>"),
    # An offset of the metadata log.
    (re.compile(r"\bEpoch: \d+$", re.M), "Epoch: <offset>"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d([.,:]\d+)?Z?"), "<time>"),
    (re.compile(r"\b(console|perf)-consumer-\d+\b"), r"\1-consumer-<n>"),
    # The width of a column is the length of its longest entry, which may be a path or an id.
    (re.compile(r"-{4,}"), "----"),
    (re.compile(r" {2,}"), "  "),
    # The formatters of internal topics print records without line breaks between them.
    (re.compile(r'\}(?=\{"key")'), "}\n"),
    (re.compile(r"[ \t]+$", re.M), ""),
)
FIGURES = re.compile(r"(?<![A-Za-z])\d+([.,]\d+)*(E-?\d+)?")


def normalised(step: Step, outcome: Outcome, stage: Stage) -> list[str]:
    """The compared lines: exit code, standard output, standard error."""
    lines = [f"exit code {outcome.code}"]
    for title, text in (("standard output", outcome.output), ("standard error", outcome.errors)):
        printed = _plain(text, stage)
        if "figures" in step.words:
            printed = FIGURES.sub("<figure>", printed)
        body = [_sorted(line) for line in printed.splitlines()]
        lines += [f"{title}:", *(sorted(body) if "unordered" in step.words else body)]
    return lines


def _sorted(line: str) -> str:
    """A JSON line with its lists sorted, because Java's sets have no order."""
    if not line.startswith("{"):
        return line
    with contextlib.suppress(ValueError):
        return json.dumps(_ordered(json.loads(line)))
    return line


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        return {name: _ordered(inner) for name, inner in value.items()}
    return sorted(map(_ordered, value), key=repr) if isinstance(value, list) else value


def _plain(text: str, stage: Stage) -> str:
    _host, port = stage.bootstrap.rsplit(":", 1)
    for value, name in (
        (str(stage.directory), "<directory>"),
        (str(stage.data_directory), "<data>"),
        (stage.bootstrap, "<bootstrap>"),
    ):
        text = text.replace(value, name)
    # The digits must not be part of a longer number, such as a time.
    text = re.sub(rf"(?<!\d){port}(?!\d)", "<port>", text)
    for pattern, replacement in REPLACED:
        text = pattern.sub(replacement, text)
    return re.sub(r"\b\d{13}\b", _time, text)


def _time(found: re.Match[str]) -> str:
    return "<now>" if abs(int(found.group()) - time.time() * 1000) < NOW_TOLERANCE_MS else found.group()


def difference(expected: list[str], answered: list[str]) -> list[str]:
    """The lines that only one of the two has, with `-` for Kafka's run and `+` for ours."""
    lines = difflib.unified_diff(expected, answered, lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]
