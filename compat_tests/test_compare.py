"""`pykafkad compare` beside a broker that it has not seen before: real clients ask both, and nothing differs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer

bootstrap, topic = os.environ["PYKAFKAD_BOOTSTRAP"], sys.argv[1]
admin = AdminClient({"bootstrap.servers": bootstrap})
admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(30)
settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True}
producer = Producer(settings)
for number in range(50):
    producer.produce(topic, f"value {number}", f"key {number % 7}")
assert producer.flush(30) == 0
writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
writer.init_transactions(30)
for ends in (writer.abort_transaction, writer.commit_transaction):
    writer.begin_transaction()
    writer.produce(topic, ends.__name__, "key")
    ends(30)
other = KafkaProducer(bootstrap_servers=bootstrap)
other.send(topic, b"of kafka-python", b"key").get(30)
other.close()
group = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
consumer = Consumer(group)
consumer.subscribe([topic])
found = 0
while found < 52:
    found += sum(message.error() is None for message in consumer.consume(100, 1))
consumer.commit(asynchronous=False)
consumer.close()
"""


def run(tmp_path: Path, bootstrap: str, topic: str, *more: str) -> subprocess.CompletedProcess[str]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "pykafkad", "compare", "--with", bootstrap, "--json", *more]
    return subprocess.run(
        [*command, "--", sys.executable, str(program), topic], capture_output=True, text=True, timeout=180, check=False
    )


def whole_cluster(row: dict[str, object]) -> bool:
    """Whether a difference is one of a broker that other tests have used before, or of its settings."""
    return row["api"] in ("ApiVersions",) and all(
        each["path"].startswith(("finalized_features", "supported_features")) for each in row["differences"]
    )


@pytest.mark.parametrize("answer_from", ["pykafkad", "kafka"])
def test_clients_find_no_difference(tmp_path, bootstrap, fresh_name, answer_from):
    done = run(tmp_path, bootstrap, fresh_name(), "--answer-from", answer_from)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row for row in found if not whole_cluster(row)] == [], done.stderr[-2000:]
    assert done.returncode in (0, 1)
