"""The pipeline as a user runs it: its result equals what pandas computes from the files."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from spark_it.pipeline.report import read_statistics
from spark_it.tests import expected
from spark_it.tests.jobs import ModuleProcess
from spark_it.tests.topics import Topics

FLIGHTS, WEATHER_ROWS, CLOSING = 336_776, 26_115, 1
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def in_topic(topics: Topics, topic: str) -> list[tuple]:
    """The statistics in the topic, in the form of `expected.rows`."""
    found = []
    for record in topics.read(topic):
        value = json.loads(record.value)
        assert record.key.decode() == f"{value['day'][:10]}|{value['airport']}|{value['sky']}"
        found.append((value["day"][:10], *(value.get(name) for name in expected.COLUMNS[1:])))
    return sorted(found, key=str)


def test_a_year_of_flights(bootstrap: str, topics: Topics, tmp_path: Path) -> None:
    """Every flight is counted once, in Parquet and in the topic; a table and a picture are made."""
    prefix = f"year-{uuid.uuid4().hex[:8]}"
    printed = ModuleProcess(
        tmp_path, "spark_it.pipeline", "--bootstrap", bootstrap, "--output", str(tmp_path), "--prefix", prefix
    ).run()
    wanted = expected.rows(expected.statistics())
    assert sum(row[3] for row in wanted) == FLIGHTS
    assert expected.rows(read_statistics(tmp_path)) == wanted
    assert in_topic(topics, f"{prefix}-delays") == wanted
    assert f"{FLIGHTS:,}" in printed and f"{len(wanted):,} rows" in printed
    assert (tmp_path / "delays.png").read_bytes().startswith(PNG_SIGNATURE)

    flights = topics.read(f"{prefix}-flights")
    assert len(flights) == FLIGHTS + CLOSING and len(topics.read(f"{prefix}-weather")) == WEATHER_ROWS + CLOSING
    by_aircraft: dict[bytes | None, set[int]] = {}
    for record in flights:
        by_aircraft.setdefault(record.key, set()).add(record.partition)
    assert sum(record.key is None for record in flights) == 2512
    assert all(len(partitions) == 1 for key, partitions in by_aircraft.items() if key is not None)


def test_a_killed_pipeline_is_resumed(bootstrap: str, topics: Topics, tmp_path: Path) -> None:
    """After a kill, `--resume` gives the same result, with each row once in Parquet."""
    prefix, days = f"resumed-{uuid.uuid4().hex[:8]}", 60
    arguments = ("spark_it.pipeline", "--bootstrap", bootstrap, "--output", str(tmp_path), "--prefix", prefix)
    arguments += ("--days", str(days), "--batch", "6000")
    ModuleProcess(tmp_path, *arguments).kill_after_batches(tmp_path / "checkpoint", 4)
    ModuleProcess(tmp_path, *arguments, "--resume").run()
    wanted = expected.rows(expected.statistics(days))
    assert expected.rows(read_statistics(tmp_path)) == wanted
    # The topic is at least once: an unfinished batch may be there twice, with the same keys and values.
    assert sorted(set(in_topic(topics, f"{prefix}-delays")), key=str) == wanted


def test_existing_topics_are_not_touched(bootstrap: str, topics: Topics, tmp_path: Path) -> None:
    """Without `--replace` an existing topic ends the run with a message that says what to do."""
    topic = topics.create("flights")
    prefix = topic.removesuffix("-flights")
    job = ModuleProcess(
        tmp_path, "spark_it.pipeline", "--bootstrap", bootstrap, "--output", str(tmp_path), "--prefix", prefix
    )
    with pytest.raises(AssertionError, match="choose --replace, or another --prefix"):
        job.run()
