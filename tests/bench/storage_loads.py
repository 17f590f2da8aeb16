"""Loads of storage: recovery after an unclean stop, and compaction. They start their own brokers."""

from __future__ import annotations

import re
import struct
import time

from . import loadgen, process, wire_bytes
from .brokers import Kafka
from .own_broker_loads import OwnBrokerLoad
from .request_loads import encoded_batch, produce_templates
from .session import Session

MB = 1024 * 1024
ONE_SEGMENT = {"segment.bytes": str(2**31 - 1), "index.interval.bytes": "4096"}
# A cleanly stopped log is not recovered. These two files say that it was stopped cleanly, and how far it was synced.
MARKERS = (".kafka_cleanshutdown", "recovery-point-offset-checkpoint")
LOGGING_OF_LOADS = "logger.l.name = kafka.log.LogManager\nlogger.l.level = info\n"
INCREMENTAL_ALTER_CONFIGS = 44
TOPIC, SET = 2, 0
COMPACTION_SECONDS = 300.0
LOOK_SECONDS = 0.005


def first_ack_seconds(broker, path, limit_seconds=300.0):
    """Starts a broker; the seconds from then until it takes the request in the template file."""
    begin = time.monotonic()
    broker.start()
    while True:
        try:
            loadgen.run(broker.port, path, connections=1, requests=1)
            return time.monotonic() - begin
        except loadgen.LoadFailed:
            if time.monotonic() - begin > limit_seconds:
                raise


def told_load_seconds(broker):
    """The seconds that a Kafka says it needed to load its logs at its last start; None for another broker."""
    if broker.name != Kafka.name:
        return None
    return int(re.findall(r"Loaded \d+ logs in (\d+)ms", broker.log.read_text(errors="replace"))[-1]) / 1e3


class RecoveryLoad(OwnBrokerLoad):
    """Start after an unclean stop, with one segment whose data may not be synced.

    Recovery takes the difference to a start after a clean stop, until the first record is accepted. Kafka's starts vary
    by more than that, so its own figure for loading logs counts. The broker is stopped cleanly and the marks of a clean
    stop are removed: after a kill, Kafka would also wait until its session with the controller has expired.
    """

    def __init__(self, segment_mb, batch_bytes):
        super().__init__()
        self.segment_mb = segment_mb
        self.batch_bytes = batch_bytes
        self.paths = {}

    def prepare(self, broker, bench):
        """Fills the segment and stops the broker."""
        own = self.own(broker, bench)
        own.start()
        topic = bench.new_name("recovered")
        with Session(own.port) as session:
            topic_id = session.create_topics({topic: 1}, ONE_SEGMENT)[topic]
        path = self.paths[broker.name] = produce_templates(
            bench, topic, topic_id, encoded_batch(self.batch_bytes), partitions=1
        )
        loadgen.run(own.port, path, connections=1, depth=5, requests=self._size_mb(bench) * MB // self.batch_bytes)
        own.stop()
        if own.name == Kafka.name:
            with open(own.folder / "log4j2.properties", "a") as file:
                file.write(LOGGING_OF_LOADS)

    def _size_mb(self, bench):
        return 64 if bench.options.quick else self.segment_mb

    def round(self, broker, bench):
        """`seconds` that recovery takes, and its `mb_per_s`; and `first_ack_ms` after the unclean stop."""
        own, path = self.owned[broker.name], self.paths[broker.name]
        clean = first_ack_seconds(own, path)
        clean_load = told_load_seconds(own) or clean
        own.stop()
        for name in MARKERS:
            (own.data / name).unlink()
        unclean = first_ack_seconds(own, path)
        rss_mb = process.memory_mb(own.pid)
        # On a small segment the noise of a start may be more than the recovery.
        seconds = max((told_load_seconds(own) or unclean) - clean_load, 1e-3)
        own.stop()
        return {
            "seconds": seconds,
            "mb_per_s": self._size_mb(bench) * MB / 1e6 / seconds,
            "first_ack_ms": 1e3 * unclean,
            "rss_mb": rss_mb,
        }

    def finish(self, broker, bench):
        """Ends and removes the broker and its request."""
        super().finish(broker, bench)
        if broker.name in self.paths:
            self.paths.pop(broker.name).unlink()


class CompactionLoad(OwnBrokerLoad):
    """Compaction of a log in which every key occurs `writes_each` times, with the same bytes on both brokers."""

    def __init__(self, log_mb, *, value_bytes, writes_each=5):
        super().__init__()
        self.log_mb = log_mb
        self.value_bytes = value_bytes
        self.writes_each = writes_each

    def prepare(self, broker, bench):
        """Starts a broker that checks for dirty logs all the time."""
        self.own(broker, bench, "log.cleaner.backoff.ms=50").start()

    def round(self, broker, bench):
        """`mb_per_s` of dirty log, from telling the topic that it is compacted to the cleaner's checkpoint; `seconds`
        of that."""
        own = self.owned[broker.name]
        topic = bench.new_name("compacted")
        size = (24 if bench.options.quick else self.log_mb) * MB
        batches = keyed_batches(size, self.value_bytes, self.writes_each)
        with Session(own.port) as session:
            topic_id = session.create_topics({topic: 1}, {"segment.bytes": str(size // 8)})[topic]
            path = bench.scratch / f"{topic}.templates"
            version = bench.options.produce_version
            loadgen.write_templates(path, [wire_bytes.produce(version, topic, topic_id, 0, batch) for batch in batches])
            loadgen.run(own.port, path, connections=1, depth=5, requests=len(batches))
            path.unlink()
            files = sorted((own.data / f"{topic}-0").glob("*.log"))
            dirty_bytes = sum(file.stat().st_size for file in files[:-1])
            begin_cpu, begin = process.cpu_seconds(own.pid), time.monotonic()
            session.call(set_topic_config(topic, "cleanup.policy", "compact"))
            seconds = self._until_clean(own, topic, int(files[-1].stem)) - begin
            cpu = process.cpu_seconds(own.pid) - begin_cpu
            session.delete_topics([topic])
        own.wait_until_deleted(topic)
        megabytes = dirty_bytes / 1e6
        figures = {"mb_per_s": megabytes / seconds, "cpu_ms_per_mb": 1e3 * cpu / megabytes, "seconds": seconds}
        return figures | {"rss_mb": process.memory_mb(own.pid)}

    def _until_clean(self, own, topic, to_offset):
        """Waits for the cleaner; the monotonic time when its checkpoint has reached `to_offset`."""
        path = own.data / "cleaner-offset-checkpoint"
        wanted = f"{topic} 0 {to_offset}"
        deadline = time.monotonic() + COMPACTION_SECONDS
        while time.monotonic() < deadline:
            if path.exists() and wanted in path.read_text().splitlines():
                return time.monotonic()
            time.sleep(LOOK_SECONDS)
        raise loadgen.LoadFailed(f"{own.name} did not compact {topic} in {COMPACTION_SECONDS:g} s")


def keyed_batches(size_bytes, value_bytes, writes_each, batch_bytes=16 * 1024):
    """So many bytes of batches with repeating keys: all keys are written once before the first one occurs again."""
    per_batch = max(1, (batch_bytes - wire_bytes.BATCH_HEADER_BYTES) // (value_bytes + 24))
    count = max(writes_each, size_bytes // (per_batch * (value_bytes + 24) + wire_bytes.BATCH_HEADER_BYTES))
    now_ms = int(time.time() * 1000)
    distinct = []
    for number in range(count // writes_each):
        keys = range(number * per_batch, (number + 1) * per_batch)
        records = [
            keyed_record(at, b"key-%012d" % key, bytes([97 + at % 26]) * value_bytes) for at, key in enumerate(keys)
        ]
        distinct.append(wire_bytes.batch(records, now_ms))
    return distinct * writes_each


def keyed_record(offset_delta, key, value):
    """One record with a key and without headers, at the batch's base timestamp."""
    varint = wire_bytes.varint
    body = b"\0" + varint(0) + varint(offset_delta) + varint(len(key)) + key + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def set_topic_config(topic, name, value):
    """IncrementalAlterConfigs 0 that sets one config of one topic."""
    config = struct.pack(">i", 1) + wire_bytes.string(name) + struct.pack(">b", SET) + wire_bytes.string(value)
    body = struct.pack(">ib", 1, TOPIC) + wire_bytes.string(topic) + config + b"\0"
    return wire_bytes.request(INCREMENTAL_ALTER_CONFIGS, 0, body)
