"""The same suite of tests, each with a clean broker: clusters of `pykafkad.testing`, one Kafka, franz-go's kfake.

A test writes one record and reads it, by the same small client everywhere, so that what differs is the broker. Times
are seconds, with the broker's own start.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from compat_tests.setup.cache import cache_directory, exclusively
from pykafkad import errors
from pykafkad.testing import Broker, Refused, Topic, records, topics
from pykafkad.testing.wire_client import WireClient

from .brokers import Kafka

TESTS = 200
TOPIC = "orders"
KFAKE = Path(__file__).parent / "kfake"
DEADLINE_SECONDS = 30.0
NOT_YET = (errors.NOT_LEADER_OR_FOLLOWER, errors.UNKNOWN_TOPIC_OR_PARTITION)


def test_body(bootstrap):
    """What each test does."""
    host, _, port = bootstrap.rpartition(":")
    client = WireClient(host, int(port))
    _write(client)
    found = records.read(client, TOPIC, records.Wanted())
    assert [each.value for each in found.records] == [b"one"]
    client.close()


def _write(client):
    """One record. As every client does, it asks again where a new topic's leader does not know of the topic yet."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            return records.write(client, TOPIC, ["one"])
        except Refused as refused:
            if refused.code not in NOT_YET or time.monotonic() > deadline:
                raise


def own_clusters():
    """A cluster of pykafkad for each test."""
    begin = time.perf_counter()
    for _ in range(TESTS):
        with Broker(topics={TOPIC: 1}) as broker:
            test_body(broker.bootstrap)
    return time.perf_counter() - begin


def one_kafka(libs):
    """One Kafka, in which each test has its topic created and deleted. Its container's own time is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        kafka = Kafka(folder, libs)
        kafka.format()
        try:
            begin = time.perf_counter()
            kafka.start()
            client = WireClient("localhost", kafka.port)
            for _ in range(TESTS):
                topics.create_topics(client, {TOPIC: Topic(1)})
                _wait(client, is_there=True)
                test_body(f"localhost:{kafka.port}")
                topics.delete_topic(client, TOPIC)
                _wait(client, is_there=False)
            seconds = time.perf_counter() - begin
            client.close()
            return seconds
        finally:
            kafka.discard()


def _wait(client, *, is_there):
    """Until the topic can be used, or is gone: the next test must not meet the one before."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (TOPIC in topics.partition_counts(client)) is not is_there:
        assert time.monotonic() < deadline, f"{TOPIC}: created or deleted for {DEADLINE_SECONDS} s"


def kfake_processes():
    """A process of kfake for each test."""
    program = build_kfake()
    begin = time.perf_counter()
    for _ in range(TESTS):
        with kfake(program) as bootstrap:
            test_body(bootstrap)
    return time.perf_counter() - begin


@contextmanager
def kfake(program):
    """The address of one that runs."""
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
        process.stdin.close()
        process.wait(10)
    finally:
        process.kill()
        process.wait()


def build_kfake():
    """The path of the program, built once by Go and kept in the cache."""
    if shutil.which("go") is None:
        raise RuntimeError("go is missing, needed to build kfake")
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in sorted(KFAKE.iterdir())))
    program = cache_directory() / f"kfake-{digest.hexdigest()[:16]}"
    with exclusively("kfake"):
        if not program.exists():
            made = f"{program}.making"
            subprocess.run(["go", "build", "-o", made, "."], cwd=KFAKE, check=True)
            os.rename(made, program)
    return str(program)
