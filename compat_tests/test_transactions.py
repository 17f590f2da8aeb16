"""Transactions that something happened to: hanging ones, which Kafka's own tool finds and aborts, and kills in the
middle of their end."""

from __future__ import annotations

import json
import random
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compat_tests.brokers.choose import broker_process
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.conftest import AGAINST
from compat_tests.scenarios.exchange import Exchange, part, request
from compat_tests.scenarios.fetch import LIMIT, from_topic, row
from compat_tests.scenarios.produce import to
from compat_tests.scenarios.transactional_producers import Producer, within
from compat_tests.tools.runner import ToolRunner
from pykafkad.wire.batch import build_batch, parse_header
from pykafkad.wire.records import iterate_records

PARTITIONS = 3
ROUNDS = 10
COMMITTED = 1


def last_stable_offset(broker: Exchange, topic: str) -> int:
    """The end of what read_committed shows of partition 0."""
    asked = [part("ListOffsets", "ListOffsetsPartition", partition_index=0, timestamp=-1)]
    topics = [part("ListOffsets", "ListOffsetsTopic", name=topic, partitions=asked)]
    answer = broker.quietly("ListOffsets", 5, replica_id=-1, isolation_level=COMMITTED, topics=topics)
    found: int = answer.topics[0].partitions[0].offset
    return found


@pytest.mark.parametrize("name", ["kafka", "pykafkad"])
def test_kafkas_tool_finds_and_aborts_a_hanging_transaction(
    name: str, runner: ToolRunner, kafka_jars: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """An old producer wrote without its coordinator's knowledge, as was possible before KIP-890."""
    if name not in AGAINST[pytestconfig.getoption("--against")]:
        return
    process = broker_process(name, kafka_jars, tmp_path, {"transaction.partition.verification.enable": "false"})
    process.start()
    exchange = Exchange(process.bootstrap, "hanging")
    try:
        topic = exchange.topic(retention_ms="-1")
        producer = Producer(exchange).begin()
        ids = {"producer_id": producer.producer_id, "producer_epoch": producer.epoch, "base_sequence": 0}
        hour_ago_ms = int(time.time() * 1000) - 3_600_000
        batch = build_batch([(None, b"v")], timestamp_ms=hour_ago_ms, is_transactional=True, **ids)
        answer = exchange.quietly(
            "Produce", 11, transactional_id=producer.id, acks=-1, timeout_ms=5000, topic_data=[to(topic, (0, batch))]
        )
        assert answer.responses[0].partition_responses[0].error_code == 0
        where = ("--topic", topic, "--partition", "0")

        def tool(*arguments: str) -> str:
            outcome = runner.run("transactions", ["--bootstrap-server", process.bootstrap, *arguments])
            assert outcome.code == 0, outcome
            return outcome.output

        assert f"{topic}" in tool("find-hanging", *where)
        command = [sys.executable, "-m", "pykafkad", "transactions", "find-hanging", "--json", "--topic", topic]
        ours = subprocess.run([*command, "--bootstrap", process.bootstrap], capture_output=True, text=True, check=True)
        (found,) = map(json.loads, ours.stdout.splitlines())
        assert (found["partition"], found["start_offset"], found["producer_id"]) == (0, 0, producer.producer_id)
        assert last_stable_offset(exchange, topic) == 0
        tool("abort", *where, "--start-offset", "0")
        assert last_stable_offset(exchange, topic) == 2
        assert f"{topic}" not in tool("find-hanging", *where)
    finally:
        exchange.close()
        process.close()


def commit_offsets(producer: Producer, group: str, topic: str, offset: int) -> None:
    """Commit an offset of partition 0 in the producer's transaction."""
    rows = [part("TxnOffsetCommit", "TxnOffsetCommitRequestPartition", partition_index=0, committed_offset=offset)]
    topics = [part("TxnOffsetCommit", "TxnOffsetCommitRequestTopic", name=topic, partitions=rows)]
    answer = producer.broker.quietly("TxnOffsetCommit", 5, group_id=group, topics=topics, **producer.identity)
    assert answer.topics[0].partitions[0].error_code == 0, answer


def committed(broker: Exchange, topic: str) -> list[list[bytes | None]]:
    """The values that read_committed shows, by partition."""
    result = []
    for index in range(PARTITIONS):
        values: list[bytes | None] = []
        offset = 0
        while True:
            limits = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": LIMIT, "isolation_level": COMMITTED}
            asked = [from_topic(topic, b"\0" * 16, row(index, offset))]
            answer = broker.quietly("Fetch", 11, topics=asked, replica_id=-1, **limits)
            (fetched,) = answer.responses[0].partitions
            aborted = sorted((each.first_offset, each.producer_id) for each in fetched.aborted_transactions or ())
            view, moved = memoryview(bytes(fetched.records or b"")), False
            skipping: set[int] = set()
            while view:
                header = parse_header(view)
                while aborted and aborted[0][0] <= header.base_offset:
                    skipping.add(aborted.pop(0)[1])
                if header.is_control:
                    skipping.discard(header.producer_id)
                elif header.base_offset >= offset and header.producer_id not in skipping:
                    values += [record.value for record in iterate_records(view, header)]
                offset, moved = header.base_offset + header.last_offset_delta + 1, True
                view = view[header.size_bytes :]
            if not moved:
                break
        result.append(values)
    return result


def stable_offset(broker: Exchange, group: str, topic: str) -> int:
    """The group's offset once no transaction holds it up."""
    topics = [part("OffsetFetch", "OffsetFetchRequestTopics", name=topic, partition_indexes=[0])]
    asked = [part("OffsetFetch", "OffsetFetchRequestGroup", group_id=group, topics=topics)]
    answer = broker.until(
        lambda: broker.quietly("OffsetFetch", 8, groups=asked, require_stable=True),
        lambda answer: not answer.groups[0].error_code and not answer.groups[0].topics[0].partitions[0].error_code,
    )
    found: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return found


@pytest.mark.timeout(3600)
def test_a_kill_while_transactions_end(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """After each restart the transaction is wholly there, records and offset, or wholly not; an answered one is."""
    seed = pytestconfig.getoption("--crash-seed") or secrets.randbelow(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    process = PykafkadProcess(tmp_path)
    process.start()
    exchange = Exchange(process.bootstrap, "kills")
    topic, group = exchange.topic(partitions=PARTITIONS, retention_ms="-1"), exchange.name("group")
    exchange.coordinator(group)
    there: list[int] = []
    outcomes = {"answered": 0, "whole": 0, "nothing": 0}
    try:
        for number in range(pytestconfig.getoption("--rounds") or ROUNDS):
            producer = Producer(exchange).begin()
            rows = [(index, within(producer)) for index in range(PARTITIONS)]
            answer = exchange.quietly(
                "Produce", 12, transactional_id=producer.id, acks=-1, timeout_ms=5000, topic_data=[to(topic, *rows)]
            )
            assert not any(each.error_code for each in answer.responses[0].partition_responses), answer
            commit_offsets(producer, group, topic, number)
            is_commit, version = chance.random() < 0.7, chance.choice((4, 5))
            connection = exchange.connect()
            connection.send("EndTxn", version, request("EndTxn", version, committed=is_commit, **producer.identity))
            time.sleep(chance.random() * 0.03)
            process.kill()
            ended = connection.receive()
            was_answered = not isinstance(ended, str) and ended.error_code == 0
            exchange.close()
            process.start()
            steps = exchange.prefix
            exchange = Exchange(process.bootstrap, "kills")
            exchange.prefix = steps
            exchange.coordinator(group)
            # What is still open is aborted by the next producer of the id.
            Producer(exchange).begin()
            offset, values = stable_offset(exchange, group, topic), committed(exchange, topic)
            counts = {len(each) for each in values}
            assert len(counts) == 1, f"round {number}: partitions hold {counts} records"
            is_there = len(values[0]) == 3 * (len(there) + 1)
            assert is_there or len(values[0]) == 3 * len(there)
            assert is_there == (offset == number), (is_there, offset, number)
            if was_answered:
                assert is_there == is_commit, f"round {number}: answered, and then not so"
            assert is_commit or not is_there
            outcomes["answered" if was_answered else "whole" if is_there else "nothing"] += 1
            if is_there:
                there.append(number)
        print(outcomes)
    finally:
        exchange.close()
        process.close()
    assert "Traceback" not in process.log_text()
