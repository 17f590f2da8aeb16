"""A `foreachBatch` sink that writes with transactions is exact when executor, driver and broker are killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.brokers.broker import Broker
from spark_it.tests.jobs import ModuleProcess, committed_batches
from spark_it.tests.topics import Topics, numbered

PARTITIONS = 2
RECORDS, IN_A_BATCH = 3200, 400


def test_a_sink_with_transactions_is_exact(own_broker: Broker, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """The executor dies in an open transaction, the driver between a batch and its checkpoint, the broker anywhere."""
    if not pytestconfig.getoption("--whole-suites"):
        pytest.skip("this takes long: make test-long, or --whole-suites")
    bootstrap = own_broker.bootstrap
    with Topics(bootstrap, "transactional-sink") as topics:
        source, target = (topics.create(name, partitions=PARTITIONS) for name in ("source", "target"))
        topics.write(source, numbered(RECORDS, partitions=PARTITIONS))
        checkpoint = tmp_path / "checkpoint"
        arguments = ("spark_it.tests.transactions_job", bootstrap, source, target, str(tmp_path), str(IN_A_BATCH))

        (tmp_path / "kill-executor").touch()
        job = ModuleProcess(tmp_path, *arguments)
        job.wait_for(lambda: committed_batches(checkpoint) >= 2)
        assert not (tmp_path / "kill-executor").exists(), "no executor was killed"
        (tmp_path / "kill-driver").touch()
        job.wait_until_killed()

        job = ModuleProcess(tmp_path, *arguments)
        before = committed_batches(checkpoint)
        job.wait_for(lambda: committed_batches(checkpoint) > before)
        own_broker.kill()
        own_broker.start()
        job.run()
        assert committed_batches(checkpoint) >= RECORDS // IN_A_BATCH
        found = topics.read(target)
        for partition in range(PARTITIONS):
            values = [int(record.value) for record in found if record.partition == partition]
            assert values == list(range(partition, RECORDS, PARTITIONS))
