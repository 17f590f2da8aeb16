"""`pykafkad dump-log` and Kafka's DumpLogSegments show the same facts about the same files of both brokers.

Kafka's StorageTool reads both directories too.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compat_tests.brokers.choose import broker_process
from compat_tests.conftest import AGAINST
from compat_tests.scenarios.exchange import Exchange, part
from compat_tests.scenarios.streams_groups import API, LEAVE, Group, info, subtopology, topology
from compat_tests.tools.files import TABLES, agrees, kafka_facts, our_facts, our_rows
from compat_tests.tools.runner import ToolRunner
from pykafkad.log import txn_index
from pykafkad.log.checkpoints import decode_properties

KEYED = ("--reader-property", "parse.key=true")
WITH_HEADERS = (*KEYED, "--reader-property", "parse.headers=true")
TRANSACTIONS = ("--throughput", "1000", "--transactional-id", "pay", "--transaction-duration-ms", "100")
OF_FEWER_LINES = "of {path} Kafka prints {expected} lines, we print {answered}"


@pytest.fixture(scope="module")
def directories(
    runner: ToolRunner, kafka_jars: Path, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Each broker's data after a clean stop, by the broker's name."""
    found = {}
    for name in AGAINST[pytestconfig.getoption("--against")]:
        directory = tmp_path_factory.mktemp(name)
        broker = broker_process(name, kafka_jars, directory)
        broker.start()
        try:
            _fill(runner, broker.bootstrap)
            broker.stop()
        finally:
            broker.close()
        found[name] = broker.data_directory
    return found


def _fill(runner: ToolRunner, bootstrap: str) -> None:
    """Every codec, keys, headers, tombstones, both kinds of timestamps, groups of three kinds, and transactions."""

    def run(tool: str, *arguments: str, typed: str = "") -> None:
        outcome = runner.run(tool, ["--bootstrap-server", bootstrap, *arguments], typed)
        assert outcome.code == 0, outcome

    run("topics", "--create", "--topic", "plain")
    stamped = ("--config", "message.timestamp.type=LogAppendTime")
    run(
        "topics",
        "--create",
        "--topic",
        "compacted",
        "--partitions",
        "2",
        "--config",
        "cleanup.policy=compact",
        *stamped,
    )
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        lines = "h:1,i:2\tk\tv\nh:\tl\tw\n" * 3
        run("console-producer", "--topic", "plain", "--compression-codec", codec, *WITH_HEADERS, typed=lines)
    nulls = (*KEYED, "--reader-property", "null.marker=NULL")
    run("console-producer", "--topic", "compacted", *nulls, typed="k\tv\nl\tw\nk\tNULL\n")
    run("console-consumer", "--topic", "plain", "--group", "readers", "--from-beginning", "--max-messages", "4")
    run("consumer-groups", "--reset-offsets", "--group", "resetters", "--topic", "plain", "--to-earliest", "--execute")
    run("consumer-groups", "--delete", "--group", "resetters")
    newer = ("--command-property", "group.protocol=consumer")
    run("console-consumer", "--topic", "plain", "--group", "newer", "--from-beginning", "--max-messages", "4", *newer)
    _fill_streams_group(bootstrap)
    run("producer-perf-test", "--topic", "paid", "--num-records", "500", "--record-size", "20", *TRANSACTIONS)


def _fill_streams_group(bootstrap: str) -> None:
    """Two members with a store and endpoints, of which one leaves."""
    exchange = Exchange(bootstrap, "files")
    group = Group(exchange)
    changelog = f"{group.name}-changelog"
    group.topology = topology(
        subtopology(0, group.topic, state_changelog_topics=[info(changelog, 0, 1, cleanup_policy="compact")])
    )
    first, second = (group.member(each, user_endpoint=part(API, "Endpoint", host="h", port=1)) for each in "ab")
    first.beat(quietly=True)
    group.internal(changelog)
    for member in (first, second, first, second):
        assert member.beat(quietly=True).error_code == 0
    second.beat(quietly=True, member_epoch=LEAVE)
    exchange.close()


def _dumped_by_both(directory: Path) -> list[Path]:
    """The files that DumpLogSegments reads; it does not recognise the name of the bootstrap checkpoint."""
    paths = sorted(directory.glob("*-*/*"))
    return [path for path in paths if path.suffix in (".log", ".checkpoint", *TABLES) and path.stat().st_size]


@pytest.mark.parametrize("name", ["kafka", "pykafkad"])
def test_facts_of_every_file(name: str, runner: ToolRunner, directories: dict[str, Path]) -> None:
    """Line by line, dump-log shows every fact that DumpLogSegments shows; it may show more."""
    if name not in directories:
        return  # Only the other broker was asked for.
    paths = _dumped_by_both(directories[name])
    assert {path.suffix for path in paths} >= {".log", ".timeindex", ".snapshot"}
    wrong = []
    for path in paths:
        expected, answered = kafka_facts(runner, path), our_facts(path)
        if len(expected) != len(answered):
            wrong.append(OF_FEWER_LINES.format(path=path, expected=len(expected), answered=len(answered)))
        wrong += [
            f"{path}: {left}, {right}"
            for left, right in zip(expected, answered, strict=False)
            if not agrees(left, right)
        ]
    assert wrong[:5] == []


def test_facts_of_a_transaction_index(runner: ToolRunner, tmp_path: Path) -> None:
    """The aborted transactions of a segment."""
    path = tmp_path / "00000000000000000100.txnindex"
    path.write_bytes(
        txn_index.to_bytes(
            [txn_index.AbortedTransaction(7, 100, 120, 121), txn_index.AbortedTransaction(8, 110, 130, 111)]
        )
    )
    assert our_facts(path) == kafka_facts(runner, path)
    assert len(our_facts(path)) == 2


@pytest.mark.parametrize("name", ["kafka", "pykafkad"])
def test_every_file_is_read(name: str, directories: dict[str, Path]) -> None:
    """dump-log can read every file of a data directory and finds none damaged, also in Kafka's directory."""
    if name not in directories:
        return  # Only the other broker was asked for.
    for folder, _, files in os.walk(directories[name]):
        for file in files:
            if file not in (".lock",):
                kinds = {row["kind"] for row in our_rows(Path(folder) / file)}
                assert "text" not in kinds, f"dump-log does not recognise {folder}/{file}"


def test_storage_tool(runner: ToolRunner, directories: dict[str, Path], tmp_path: Path) -> None:
    """StorageTool recognises both directories as formatted, and refuses to format them again."""
    said = []
    for name, data in directories.items():
        properties = tmp_path / f"{name}.properties"
        roles = "process.roles=broker,controller\ncontroller.listener.names=CONTROLLER\n"
        listeners = "listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\ncontroller.quorum.bootstrap.servers=localhost:9093\n"
        protocols = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        properties.write_text(f"{roles}{listeners}{protocols}node.id=1\nlog.dirs={data}\n")
        info = runner.run("storage", ["info", "--config", str(properties)])
        cluster_id = decode_properties((data / "meta.properties").read_bytes())["cluster.id"]
        again = runner.run(
            "storage", ["format", "--cluster-id", cluster_id, "--standalone", "--config", str(properties)]
        )
        shape = [
            line.split("=")[0].replace(str(data), "<data>")
            for line in (info.output + again.output + again.errors).splitlines()
        ]
        said.append((info.code, again.code, [line for line in shape if not line.startswith("\t")]))
    assert said[0] == said[-1], said
