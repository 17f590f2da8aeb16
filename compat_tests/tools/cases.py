"""Reads the cases from `cases/*.txt`: which tools run, with which arguments.

A case is a line `case <words>` with one step per indented line below it; a line that is indented further continues the
line above it. A step is one of:

    [word…] <tool> <arguments> [<< "typed\\n"]     run a tool, named like its script without `kafka-`
    file <name> <content>                          create a file in the case's own directory
    end                                            stop the tool that was started last in the background

A tool gets the broker's address as an argument. The words before it are:

    reference          run on the real Kafka only; pykafkad has this state from the start
    prepare            must succeed, is not compared
    until "<regex>"    a preparation, repeated until its output matches; named groups become variables
    background         started, not waited for
    alone              gets no broker address
    unordered          lines may come in any order
    figures            numbers are not compared

In every argument and file `$name` is a name that only this case uses, `$directory` the case's own directory,
`$bootstrap` the broker's address, `$data` its data directory."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from compat_tests.tools.runner import TOOLS

FOLDER = Path(__file__).with_name("cases")
WORDS = ("reference", "prepare", "until", "background", "alone", "unordered", "figures")


class Step(NamedTuple):
    """One line of a case: a tool with its arguments, or the word `file` or `end`; `line` is the text, for reports."""

    line: str
    words: tuple[str, ...]
    tool: str
    arguments: tuple[str, ...]
    typed: str = ""
    pattern: str = ""

    @property
    def is_compared(self) -> bool:
        """Whether its output must be the same for both brokers."""
        return self.tool in TOOLS and not {"reference", "prepare", "until", "background"} & set(self.words)


class Case(NamedTuple):
    """A named list of steps; `name` is its file's name and its words, joined by hyphens."""

    name: str
    steps: tuple[Step, ...]


def all_cases() -> dict[str, Case]:
    """Every case of every file, in the order of the files' names and of their lines."""
    cases: dict[str, Case] = {}
    for path in sorted(FOLDER.glob("*.txt")):
        for title, lines in _sections(path):
            name = "-".join([path.stem, *title.split()])
            assert name not in cases, f"two cases are named {name}"
            cases[name] = Case(name, tuple(map(_step, lines)))
    return cases


def _sections(path: Path) -> list[tuple[str, list[str]]]:
    sections: list[tuple[str, list[str]]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        depth = len(line) - len(line.lstrip(" "))
        if depth == 0:
            assert text.startswith("case "), f"{path.name}:{number}: {text}"
            sections.append((text.removeprefix("case "), []))
        elif depth == 4:
            sections[-1][1].append(text)
        else:
            sections[-1][1][-1] += " " + text
    return sections


def _step(line: str) -> Step:
    if line == "end":
        return Step(line, (), "end", ())
    if line.startswith("file "):
        _, name, content = line.split(None, 2)
        return Step(line, (), "file", (name, content))
    parts = shlex.split(line)
    words, pattern, typed = [], "", ""
    while parts[0] in WORDS:
        words.append(parts.pop(0))
        if words[-1] == "until":
            pattern = parts.pop(0)
            re.compile(pattern)
    if "<<" in parts:
        typed = parts.pop().encode().decode("unicode_escape")
        assert parts.pop() == "<<", f"the typed text must be the last word: {line}"
    tool, *arguments = parts
    assert tool in TOOLS, f"no tool is named {tool}: {line}"
    return Step(line, tuple(words), tool, tuple(arguments), typed, pattern)
