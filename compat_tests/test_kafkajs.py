"""kafkajs against a broker: JavaScript with its own protocol code, which uses old versions of every API."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from compat_tests.brokers.broker import Broker
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.conftest import unavailable
from compat_tests.samples import TookTooLong
from compat_tests.setup import system_packages
from compat_tests.setup.cache import cache_directory, exclusively

SOURCES = Path(__file__).parent / "kafkajs"
VERSION = json.loads((SOURCES / "package.json").read_text())["dependencies"]["kafkajs"]
FIRST_TIMESTAMP = 1_700_000_000_000
# The program ends itself before.
LIMIT_SECONDS = 260
EXIT_CODE_LATE = 3

Round = Callable[[str], dict]


@pytest.fixture(scope="session")
def kafkajs() -> Path:
    """Folder in the cache where kafkajs is installed beside our rounds."""
    still_missing = system_packages.install(system_packages.missing((system_packages.NPM,)))
    if still_missing:
        unavailable(system_packages.how_to_get(system_packages.NPM))
    directory = cache_directory() / f"kafkajs-{VERSION}"
    with exclusively("kafkajs"):
        directory.mkdir(exist_ok=True)
        for source in SOURCES.iterdir():
            shutil.copy(source, directory)
        if not (directory / "node_modules" / "kafkajs").is_dir():
            installed = subprocess.run(["npm", "ci", "--ignore-scripts"], cwd=directory, capture_output=True, text=True)
            if installed.returncode != 0:
                unavailable(f"npm could not fetch kafkajs {VERSION}:\n{installed.stderr[-1000:]}")
    return directory


@pytest.fixture
def run_round(kafkajs: Path, broker: Broker, fresh_name: Callable[..., str]) -> Round:
    """Runs one of the rounds on a new topic of two partitions; returns its output without the topic's name.

    kafkajs has to replace no consumer beside pykafkad. It may have to beside a Kafka that gets little processor time.
    """
    bootstrap = broker.bootstrap
    topic, group = fresh_name(), fresh_name("group")
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        # The rounds write old records.
        admin.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "-1"})])

    def run(name: str) -> dict:
        command = ["node", "rounds.js", name, bootstrap, topic, group]
        done = subprocess.run(command, cwd=kafkajs, capture_output=True, text=True, timeout=LIMIT_SECONDS)
        if done.returncode == EXIT_CODE_LATE:
            raise TookTooLong(done.stderr)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout.replace(topic, "TOPIC").replace(group, "GROUP"))
        troubles = result.pop("troubles")
        assert broker.name == KafkaProcess.name or not troubles, (troubles, done.stderr)
        return result

    return run


def test_plain_and_compressed_records_come_back(run_round: Round) -> None:
    """Keys, values, headers and timestamps, plain and gzip, read through a group from the beginning."""
    values = ["plain-0", "zipped-0", "zipped-2", "plain-1", "zipped-1"]
    places = [(0, 0, 0), (0, 1, 0), (0, 2, 2), (1, 0, 1), (1, 1, 1)]
    assert run_round("compressed")["seen"] == [
        [partition, offset, f"key-{index % 3}", value, str(FIRST_TIMESTAMP + index), str(index)]
        for (partition, offset, index), value in zip(places, values, strict=True)
    ]


def test_idempotent_producer(run_round: Round) -> None:
    """The producer gets its id, and the broker accepts its sequence numbers."""
    assert run_round("idempotent")["offsets"] == [[0, 0, "0"], [1, 0, "0"]]


def test_groups_through_the_admin_client(run_round: Round) -> None:
    """Committed offsets, their reset, and the description, listing and deletion of an empty group."""
    result = run_round("groups")
    assert _offsets(result["committed"]) == {0: "2", 1: "1"}
    assert _offsets(result["reset"]) == {0: "-2", 1: "-2"}
    assert result["state"] == "Empty"
    assert result["listed"] == [{"groupId": "GROUP", "protocolType": "consumer"}]
    assert [(each["groupId"], each["errorCode"]) for each in result["deleted"]] == [("GROUP", 0)]


def test_topics_settings_and_records_through_the_admin_client(run_round: Round) -> None:
    """Topics are created, also existing ones; partitions are added; settings, deleted records and offsets are read."""
    result = run_round("admin")
    assert (result["created"], result["again"], result["partitions"]) == (True, False, [0, 1, 2])
    assert result["settings"] == ["60000"]
    assert result["offsets"] == [
        {"partition": 0, "offset": "2", "high": "2", "low": "1"},
        {"partition": 1, "offset": "2", "high": "2", "low": "0"},
    ]


def _offsets(fetched: list[dict]) -> dict[int, str]:
    return {each["partition"]: each["offset"] for each in fetched[0]["partitions"]}
