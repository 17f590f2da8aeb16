"""Random streams groups (KIP-1071), decided by the classes of Kafka 4.3.1 and by ours."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from compat_tests.setup.compiled import compiled
from compat_tests.streams_rules import cases
from tests.coordinator import test_streams_assignor, test_streams_reconciliation, test_streams_topics
from tests.seeds import seed_of_the_code

SOURCE = Path(__file__).with_name("StreamsOracle.java")
COUNT = 3_000
TIMEOUT_SECONDS = 300


@pytest.mark.parametrize(
    ("part", "drawn", "decided"),
    [
        ("assignments", cases.assignments, test_streams_assignor.decided),
        ("topologies", cases.topologies, test_streams_topics.decided),
        ("steps", cases.steps, test_streams_reconciliation.decided),
    ],
    ids=("assignments", "topologies", "steps"),
)
def test_kafka_decides_the_same(
    part: str, drawn: Callable[[Random, int], Iterator[str]], decided: Callable[..., str], kafka_jars: Path
) -> None:
    asked = list(drawn(Random(seed_of_the_code()), COUNT))
    command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp"]
    command += [f"{kafka_jars}/*:{compiled(SOURCE, kafka_jars)}", SOURCE.stem, part]
    done = subprocess.run(
        command, input="\n".join(asked), capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT_SECONDS
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers = done.stdout.splitlines()
    assert len(answers) == len(asked) == COUNT
    for case, answer in zip(asked, answers, strict=True):
        assert answer.removeprefix(f"{case}\t") == decided(*case.split("\t")), case
