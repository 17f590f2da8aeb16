"""A flipped byte in an old segment: the checksum shows it to the reader, other records are read, the cleaner skips it.

The same steps run against a real Kafka and against pykafkad, which are stopped for the damage; the reader's results are
compared.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from compat_tests.brokers.choose import broker_process
from compat_tests.brokers.pykafkad_process import REPOSITORY
from compat_tests.conftest import AGAINST
from compat_tests.samples import wait_until

RECORDS = 60
VALUE_BYTES = 50_000
# In the middle of the first segment, which ends with the twentieth record.
DAMAGED = 7
TOPICS = ("kept", "cleaned")
SETTINGS = {
    "log.segment.bytes": "1048576",
    "log.cleaner.min.compaction.lag.ms": "0",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.threads": "1",
}


def value_of(number: int) -> bytes:
    return b"%08d" % number + bytes(VALUE_BYTES)


def fill(bootstrap: str) -> None:
    """Every record has its own batch; in the compacted topic every key occurs once."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS]).values():
        future.result(100)
    producer = Producer({"bootstrap.servers": bootstrap, "batch.num.messages": 1, "linger.ms": 0, "acks": "all"})
    for number in range(RECORDS):
        for name in TOPICS:
            producer.produce(name, value_of(number), b"%d" % number)
        assert producer.flush(100) == 0


def flip(data_directory: Path) -> list[Path]:
    """Flip one bit in the value of the damaged record of each topic; returns the files."""
    paths = [data_directory / f"{name}-0" / f"{0:020d}.log" for name in TOPICS]
    for path in paths:
        content = bytearray(path.read_bytes())
        content[content.index(b"%08d" % DAMAGED) + 100] ^= 1
        path.write_bytes(content)
    return paths


def outcome(bootstrap: str, name: str, offset: int) -> str:
    """The first result for a consumer that starts at `offset`: the record's number, or the name of the error."""
    # librdkafka ends the whole process at a wrong checksum, so another client reads. One batch per answer.
    sizes = {"max_partition_fetch_bytes": VALUE_BYTES + 10_000, "fetch_max_bytes": VALUE_BYTES + 20_000}
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, check_crcs=True, consumer_timeout_ms=100_000, **sizes)
    try:
        consumer.assign([TopicPartition(name, 0)])
        consumer.seek(TopicPartition(name, 0), offset)
        record = next(consumer)
        assert record.value[8:] == bytes(VALUE_BYTES), "damaged bytes were served as valid"
        return f"{record.offset}: {int(record.value[:8])}"
    except (KafkaError, StopIteration) as error:
        return type(error).__name__
    finally:
        consumer.close(autocommit=False)


def compact(broker: Any) -> None:
    """Let the topic be compacted."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    changes = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    entries = [ConfigEntry(key, each, incremental_operation=AlterConfigOpType.SET) for key, each in changes.items()]
    for future in admin.incremental_alter_configs(
        [ConfigResource(ConfigResource.Type.TOPIC, "cleaned", incremental_configs=entries)]
    ).values():
        future.result(100)


def transcript(broker: Any) -> list[tuple[str, str]]:
    """Fill, damage, read, compact, read again."""
    fill(broker.bootstrap)
    broker.stop()
    paths = flip(broker.data_directory)
    before = paths[0].read_bytes()
    broker.start()
    seen = []
    offsets = (0, DAMAGED - 1, DAMAGED, DAMAGED + 1, 30, RECORDS - 1)
    seen += [
        (f"{name} from {offset}", outcome(broker.bootstrap, name, offset)) for name in TOPICS for offset in offsets
    ]
    compact(broker)
    checkpoint = broker.data_directory / "cleaner-offset-checkpoint"
    wait_until(
        lambda: checkpoint.exists() and "cleaned 0 40" in checkpoint.read_text(),
        f"{broker.name} cleans past the damage",
    )
    seen += [(f"after the cleaner from {offset}", outcome(broker.bootstrap, "cleaned", offset)) for offset in offsets]
    assert paths[0].read_bytes() == before, "the damaged segment was changed"
    return seen


def test_flipped_byte(kafka_jars: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Both brokers give the reader the same: the records around the damage, and an error at it."""
    transcripts = {}
    for name in AGAINST[pytestconfig.getoption("--against")]:
        (tmp_path / name).mkdir()
        broker = broker_process(name, kafka_jars, tmp_path / name, SETTINGS)
        try:
            broker.start()
            transcripts[name] = transcript(broker)
        finally:
            broker.close()
    for seen in transcripts.values():
        found = dict(seen)
        assert found[f"kept from {DAMAGED}"] == "CorruptRecordError", found
        assert [found[f"kept from {offset}"] for offset in (0, 6, 8, 30)] == ["0: 0", "6: 6", "8: 8", "30: 30"], found
    first, second = (list(transcripts.values()) * 2)[:2]
    assert first == second
    if "pykafkad" in transcripts:
        assert_tools_name_it(tmp_path / "pykafkad" / "data")


def assert_tools_name_it(data: Path) -> None:
    """`pykafkad fsck` and `dump-log` name the file and the position."""
    path = data / "kept-0" / f"{0:020d}.log"
    checked = subprocess.run(
        [sys.executable, "-m", "pykafkad", "fsck", str(data)], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert checked.returncode == 1
    assert any("damage" in line and f"kept-0/{path.name}" in line for line in checked.stdout.splitlines()), (
        checked.stdout
    )
    dumped = subprocess.run(
        [sys.executable, "-m", "pykafkad", "dump-log", str(path)], cwd=REPOSITORY, capture_output=True, text=True
    )
    text = dumped.stdout + dumped.stderr
    assert any(word in text.lower() for word in ("crc", "checksum", "invalid")), text[-2000:]
