"""Writes rows of a stream to a topic in transactions of confluent-kafka; executors import it by name.

Spark repeats a batch, or a part of one, that it does not know to be done. So each transaction also commits how far the
source was read, and records before that are left out.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import Row

GROUP = "foreach-batch"
CALL_SECONDS = 60.0


class Sink:
    """Writes rows of one partition of the source in one transaction; called in an executor's Python."""

    def __init__(self, bootstrap: str, source: str, target: str, folder: str) -> None:
        self.bootstrap, self.source, self.target, self.folder = bootstrap, source, target, folder

    def __call__(self, rows: Iterator[Row]) -> None:
        """An exception makes Spark repeat the task."""
        kept = list(rows)
        if not kept:
            return
        (partition,) = {row.partition for row in kept}
        connecting = {"bootstrap.servers": self.bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200}
        producer = Producer({**connecting, "transactional.id": f"{GROUP}-{partition}"})
        consumer = Consumer({**connecting, "group.id": GROUP})
        # This aborts what another attempt left open, and fences an attempt that still runs.
        until_done(lambda: producer.init_transactions(CALL_SECONDS))
        (before,) = consumer.committed([TopicPartition(self.source, partition)], timeout=CALL_SECONDS)
        fresh = [row for row in kept if row.offset >= before.offset]
        if not fresh:
            consumer.close()
            return
        producer.begin_transaction()
        for row in fresh:
            producer.produce(self.target, bytes(row.value), partition=partition)
        assert producer.flush(CALL_SECONDS) == 0
        if is_asked(self.folder, "kill-executor"):
            kill_executor()
        end = TopicPartition(self.source, partition, fresh[-1].offset + 1)
        member = consumer.consumer_group_metadata()
        until_done(lambda: producer.send_offsets_to_transaction([end], member, CALL_SECONDS))
        until_done(lambda: producer.commit_transaction(CALL_SECONDS))
        consumer.close()


def until_done(call: Callable[[], object]) -> None:
    """Repeat the call while the client says that it may be repeated."""
    deadline = time.monotonic() + CALL_SECONDS
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() > deadline:
                raise


def is_asked(folder: str, name: str) -> bool:
    """Whether the file was there; only one caller is told so."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{folder}/{name}")
        return True
    return False


def kill_executor() -> None:
    """Kill the Java process that started the daemon which started this Python."""
    daemon = Path(f"/proc/{os.getppid()}")
    executor = int(daemon.joinpath("stat").read_text().rpartition(")")[2].split()[1])
    assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
    os.kill(executor, signal.SIGKILL)
    time.sleep(CALL_SECONDS)
