"""kcat, the small command-line client of many shell scripts, on an older librdkafka."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

FreshName = Callable[..., str]
TIMEOUT_SECONDS = 200
# The time for the first metadata; kcat's default is five seconds.
METADATA_SECONDS = "100"


@pytest.fixture
def run_kcat(kcat: str, bootstrap: str) -> Callable[..., str]:
    """Runs kcat against the broker under test; returns its standard output."""

    def run(*arguments: str, input: str = "") -> str:
        command = [kcat, "-b", bootstrap, "-m", METADATA_SECONDS, *arguments]
        done = subprocess.run(command, input=input.encode(), capture_output=True, timeout=TIMEOUT_SECONDS)
        assert done.returncode == 0, done
        return done.stdout.decode()

    return run


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_produce_and_consume(run_kcat: Callable[..., str], fresh_name: FreshName, codec: str) -> None:
    """Lines with keys and headers are written and read back; producing creates the topic."""
    topic = fresh_name()
    lines = "".join(f"key-{number}\tvalue {number}\n" for number in range(100))
    run_kcat(
        "-P",
        "-t",
        topic,
        "-K",
        "\t",
        "-z",
        codec,
        "-H",
        "name=header",
        "-X",
        "topic.partitioner=consistent",
        input=lines,
    )
    output = run_kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%p %o %h %k\\t%s\\n")
    assert output == "".join(f"0 {n} name=header key-{n}\tvalue {n}\n" for n in range(100))
    last = run_kcat("-C", "-t", topic, "-o", "-3", "-e", "-q", "-f", "%o\\n")
    assert last.split() == ["97", "98", "99"]


def test_metadata_list(run_kcat: Callable[..., str], bootstrap: str, fresh_name: FreshName) -> None:
    """The list of brokers and topics as JSON."""
    topic = fresh_name()
    run_kcat("-P", "-t", topic, input="line\n")
    listed = json.loads(run_kcat("-L", "-J", "-t", topic))
    assert [(broker["id"], broker["name"]) for broker in listed["brokers"]] == [(1, bootstrap)]
    (described,) = listed["topics"]
    assert described["topic"] == topic
    assert described["partitions"] == [{"partition": 0, "leader": 1, "replicas": [{"id": 1}], "isrs": [{"id": 1}]}]


def test_query_offsets_by_time(run_kcat: Callable[..., str], fresh_name: FreshName) -> None:
    """-Q returns the offset for a time: the end, the beginning."""
    topic = fresh_name()
    run_kcat("-P", "-t", topic, input="a\nb\nc\n")
    assert run_kcat("-Q", "-t", f"{topic}:0:-1").strip() == f"{topic} [0] offset 3"
    assert run_kcat("-Q", "-t", f"{topic}:0:-2").strip() == f"{topic} [0] offset 0"
    assert run_kcat("-Q", "-t", f"{topic}:0:1000").strip() == f"{topic} [0] offset 0"


def test_group(run_kcat: Callable[..., str], fresh_name: FreshName) -> None:
    """A balanced consumer group reads each record once and continues where it stopped."""
    topic, group = fresh_name(), fresh_name("group")
    options = ("-X", "auto.offset.reset=earliest", "-q", "-f", "%s\\n")
    run_kcat("-P", "-t", topic, input="a\nb\nc\n")
    assert run_kcat("-G", group, "-c", "2", *options, topic).split() == ["a", "b"]
    assert run_kcat("-G", group, "-c", "1", *options, topic).split() == ["c"]


def test_idempotent_producer(run_kcat: Callable[..., str], fresh_name: FreshName) -> None:
    """With idempotence every line arrives once and in order."""
    topic = fresh_name()
    lines = "".join(f"{number}\n" for number in range(5000))
    run_kcat("-P", "-t", topic, "-X", "enable.idempotence=true", "-X", "batch.num.messages=50", input=lines)
    assert run_kcat("-C", "-t", topic, "-e", "-q") == lines
