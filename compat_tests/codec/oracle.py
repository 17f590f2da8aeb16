"""Runs `MessageOracle.java`, or `MessageEcho.java` for other releases: one JVM for many questions, which are asked and
answered through files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

SOURCE = Path(__file__).with_name("MessageOracle.java")
ECHO = Path(__file__).with_name("MessageEcho.java")
TIMEOUT_SECONDS = 300


class MessageOracle:
    """Kafka's message classes from `jars`; `scratch` holds the files of questions and answers."""

    def __init__(self, jars: Path, scratch: Path, source: Path = SOURCE) -> None:
        self._command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{jars}/*", str(source)]
        self._scratch = scratch

    def ask(self, lines: Iterable[str]) -> Iterator[str]:
        """The lines of the answers to all questions, in order."""
        questions, answers = self._scratch / "questions", self._scratch / "answers"
        with open(questions, "w", encoding="ascii") as out:
            out.writelines(line + "\n" for line in lines)
        with open(questions, "rb") as given, open(answers, "wb") as taken:
            done = subprocess.run(
                self._command, stdin=given, stdout=taken, stderr=subprocess.PIPE, timeout=TIMEOUT_SECONDS
            )
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
        with open(answers, encoding="utf-8", newline="\n") as stream:
            for line in stream:
                yield line.rstrip("\n")
