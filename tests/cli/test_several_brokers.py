"""Every client command against three brokers: whichever is asked first, it finds the leaders, the coordinators and the
controller by itself."""

from __future__ import annotations

import argparse
import gc
import importlib
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from pykafkad.cli import client, reach
from pykafkad.cli.commands import COMMANDS, main
from pykafkad.testing import Broker, NewRecord

# kafka-python reads its schemas with what Python 3.11 warns of.
pytestmark = [
    pytest.mark.filterwarnings("ignore:read_text is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:open_text is deprecated:DeprecationWarning"),
]
PARTITIONS = 6

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}

# The output of each has a line for each partition, or one that only another broker than the first could give.
ROWS = (
    ("topics list", ["{topic}\t6"]),
    ("topics create {topic}-more:4 --replication-factor 2", ["{topic}-more\tcreated"]),
    ("topics describe {topic}", [f"{{topic}}\t{index}\t" for index in range(PARTITIONS)]),
    ("topics alter {topic} --config retention.ms=1000 --partitions 7", ["{topic}\t7 partitions,retention.ms=1000"]),
    ("topics delete-records {topic} --before 2", [f"{{topic}}\t{index}\t2" for index in range(PARTITIONS)]),
    ("topics delete {topic}", ["{topic}\tdeleted"]),
    ("produce {topic} --partition 3 one two", []),
    ("tail {topic} --from start -n 18", [f"{{topic}}-{index}@2\t" for index in range(PARTITIONS)]),
    ("groups list", ["{topic}-group-1\tEmpty\t", "{topic}-group-2\tEmpty\t", "{topic}-group-3\tEmpty\t"]),
    ("groups describe {topic}-group-1", [f"{{topic}}\t{index}\t1\t3\t2\t" for index in range(PARTITIONS)]),
    ("groups reset {topic}-group-2 --to end", [f"{{topic}}\t{index}\t3" for index in range(PARTITIONS)]),
    ("groups reset {topic}-new --topic {topic} --to 2", [f"{{topic}}\t{index}\t2" for index in range(PARTITIONS)]),
    ("groups delete {topic}-group-1 {topic}-group-2 {topic}-group-3",
     ["{topic}-group-1\tdeleted", "{topic}-group-2\tdeleted", "{topic}-group-3\tdeleted"]),
    ("acls list", []),
    ("transactions list", ["transaction-1\t", "transaction-2\t", "transaction-3\t"]),
    ("transactions describe transaction-2", ["transaction-2\tCompleteCommit\t"]),
    ("transactions find-hanging", []),
    ("client-config --for java", ["bootstrap.servers="]),
    ("status", ["brokers: 1 at ", "offline partitions: 0"]),
    ("cluster describe", ["1\t", "2\t", "3\t"]),
)  # fmt: skip
REFUSED = (
    ("snapshot restore none", "there is no snapshot none; there are: "),
    ("snapshot restore none --topic {topic}-1", "a single topic ({topic}-1) does not go back alone"),
    ("groups kick {topic}-group-3 nobody", "nobody: {topic}-group-3 has no such member"),
    ("topics describe {topic}-none", "{topic}-none: UNKNOWN_TOPIC_OR_PARTITION"),
)


@pytest.fixture(scope="module")
def brokers() -> Iterator[Broker]:
    """Each partition has one replica, so that it is asked of its leader or not found."""
    with pytest.MonkeyPatch.context() as patch, Broker(brokers=3, settings=SETTINGS) as made:
        # A busy machine is no broker that does not answer.
        patch.setattr(reach, "TIMEOUT_S", 60.0)
        patch.setattr(client, "BOOTSTRAP_TIMEOUT_MS", 60_000)
        made.create_topic("written")
        for number in (1, 2, 3):
            _commit_a_transaction(made, f"transaction-{number}")
        yield made
    with warnings.catch_warnings():
        # kafka-python leaves sockets to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def _commit_a_transaction(brokers: Broker, name: str) -> None:
    from kafka import KafkaProducer

    settings: dict[str, Any] = brokers.client_config("kafka-python")
    producer = KafkaProducer(**settings, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("written", b"v")
    producer.commit_transaction()
    producer.close()


@pytest.fixture
def topic(brokers: Broker, request: pytest.FixtureRequest) -> str:
    """A topic with three records in each partition, and groups that have read one of them."""
    name = f"topic-{request.node.callspec.indices['words']}-{request.function.__name__[-7:]}"
    brokers.create_topic(name, PARTITIONS)
    brokers.produce(name, *(NewRecord("v", partition=index % PARTITIONS) for index in range(3 * PARTITIONS)))
    for number in (1, 2, 3):
        brokers.commit(f"{name}-group-{number}", {(name, index): 1 for index in range(PARTITIONS)})
    return name


def _last(brokers: Broker) -> list[str]:
    return ["--bootstrap", brokers.bootstrap.split(",")[2]]


@pytest.mark.parametrize(("words", "lines"), ROWS, ids=[words for words, _ in ROWS])
def test_a_command(
    brokers: Broker, topic: str, capsys: pytest.CaptureFixture[str], words: str, lines: list[str]
) -> None:
    """It gives the whole answer, although it is asked of the last broker."""
    assert main([*words.format(topic=topic).split(), *_last(brokers)]) == 0
    shown = capsys.readouterr().out
    for line in lines:
        assert any(each.startswith(line.format(topic=topic)) for each in shown.splitlines()), (line, shown)
    if words.startswith("produce"):
        assert len(brokers.records(topic)) == 3 * PARTITIONS + 2


@pytest.mark.parametrize(("words", "reason"), REFUSED, ids=[words for words, _ in REFUSED])
def test_a_refusal(brokers: Broker, topic: str, capsys: pytest.CaptureFixture[str], words: str, reason: str) -> None:
    """It is that of the broker that decides."""
    assert main([*words.format(topic=topic).split(), *_last(brokers)]) == 1
    assert reason.format(topic=topic) in capsys.readouterr().err


def test_entries_are_the_same_everywhere(brokers: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    """Added at one broker, listed at another, removed at the third."""
    addresses = brokers.bootstrap.split(",")

    def run(*words: str, at: int) -> str:
        assert main(["acls", *words, "--bootstrap", addresses[at]]) == 0
        return capsys.readouterr().out

    run("add", "alice read topic orders", at=0)
    assert [len(run("list", at=at).splitlines()) for at in (0, 1, 2)] == [2, 2, 2]
    run("remove", "alice read topic orders", at=2)
    assert [run("list", at=at) for at in (0, 1, 2)] == ["", "", ""]


def test_every_command_that_asks_a_cluster_is_tried() -> None:
    """Also one that comes later: all of them have `--client-config`."""
    asking = set()
    for name, path in COMMANDS.items():
        parser = argparse.ArgumentParser()
        if name != "serve":
            importlib.import_module(path).add_arguments(parser)
        if "--client-config" in parser.format_help():
            asking.add(name)
    tried = {words.split()[0] for words, _ in (*ROWS, *REFUSED)}
    # That of `export` is the consumer of `tail`; three speak with one broker alone (tests/differential).
    assert asking <= tried | {"export", "compare", "record", "replay"}


def test_a_topic_is_described_without_some_leaders(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody can tell the offsets of a partition whose only replica is away."""
    with Broker(brokers=2, topics={"orders": 2}) as broker:
        address = broker.bootstrap.split(",")[0]
        broker.stop_broker(2)
        assert main(["topics", "describe", "orders", "--bootstrap", address]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]]
    assert sorted((row[2], row[6], row[7]) for row in rows) == [("-1", "", ""), ("1", "0", "0")]
