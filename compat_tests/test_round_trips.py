"""A real Kafka and pykafkad serve one data directory (with two log.dirs) in turn, after clean stops and SIGKILL.

The directory has everything that a log can hold. The test remembers every record. Both brokers must return exactly
these, refuse what the other would refuse, and leave files without an error for the other's tools.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.brokers.kafka_process import KafkaProcess
from compat_tests.brokers.pykafkad_process import REPOSITORY, PykafkadProcess
from compat_tests.conftest import assert_no_bug_logged
from compat_tests.expected_content import COMPACTED, PARTITIONS, PLAIN, ExpectedContent
from compat_tests.java_tools import JavaTools
from compat_tests.samples import wait_until
from compat_tests.scenarios.exchange import Exchange

SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "2",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0",
    # A kill loses what the checkpoints do not have yet.
    "log.flush.start.offset.checkpoint.interval.ms": "200",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    # Idle producers in a transaction must not expire during this test.
    "transaction.max.timeout.ms": "3600000",
}
TENURES = 5
DATA_FILES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
INTERNAL = ("__consumer_offsets", "__transaction_state")
# Kafka prints these when it finds files that it would not have left behind.
COMPLAINTS = (
    r"corrupt|Could not find|sanity check|Failed to load(?!.*because the partition is not online)|Error loading|"
    r"[Ee]xception while loading|Encountered .*fault"
)
# The metadata log is recovered at every start.
UNCLEAN = r"Recovering unflushed segment .* for (?!__cluster_metadata)"


class Directories:
    """The two directories of `log.dirs`."""

    def __init__(self, folder: Path) -> None:
        self.paths = (folder / "first", folder / "second")
        self.setting = {"log.dirs": ",".join(map(str, self.paths))}

    def partitions(self, *topics: str) -> list[Path]:
        """The directories of all partitions of those topics."""
        found = [each for path in self.paths for each in sorted(path.iterdir()) if each.is_dir()]
        return [each for each in found if each.name.rsplit("-", 1)[0] in topics]

    def cleaned(self) -> dict[str, int]:
        """The cleaner's checkpoints: (topic, partition) to the offset up to which the log is clean."""
        rows = [line.split() for path in self.paths for line in lines(path / "cleaner-offset-checkpoint")[2:]]
        return {f"{topic}-{index}": int(offset) for topic, index, offset in rows}

    def is_clean(self) -> bool:
        """Whether the compacted topic is clean up to the active segments."""
        cleaned = self.cleaned()
        return all(
            cleaned.get(each.name, -1) == max(int(path.stem) for path in each.glob("*.log"))
            for each in self.partitions(COMPACTED)
        )

    def start_offsets(self) -> dict[tuple[str, int], int]:
        """The checkpoints of log starts inside a segment."""
        rows = [line.split() for path in self.paths for line in lines(path / "log-start-offset-checkpoint")[2:]]
        return {(topic, int(index)): int(offset) for topic, index, offset in rows}

    def check_spread(self) -> None:
        """Both directories have partitions, and logs of plain topics have several segments."""
        assert len({each.parent for each in self.partitions(*PARTITIONS)}) == 2
        for each in self.partitions(PLAIN):
            assert len(list(each.glob("*.log"))) > 1, each


def lines(path: Path) -> list[str]:
    """The lines of a file; none if the file is missing."""
    return path.read_text().splitlines() if path.exists() else []


def check_by_kafkas_tools(jars: Path, folder: Path, directories: Directories) -> None:
    """Run DumpLogSegments over every file that pykafkad left when it stopped."""
    files = [
        path
        for each in directories.partitions(*PARTITIONS, *INTERNAL)
        for path in sorted(each.iterdir())
        if path.suffix in DATA_FILES
    ]
    tools = JavaTools(jars, "", folder / "log4j2.properties")
    tools.dump_log(files, "--deep-iteration", "--verify-index-only")


def check_by_fsck(directories: Directories, *, is_clean: bool) -> None:
    """No record that Kafka wrote is damaged.

    After a clean stop, fsck would only remove files that were already deleted or belong to an older stop.
    """
    command = [sys.executable, "-m", "pykafkad", "fsck", *map(str, directories.paths)]
    checked = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=200)
    assert "damage" not in checked.stdout and "offline" not in checked.stdout, checked.stdout
    if is_clean:
        found = [
            line
            for line in checked.stdout.splitlines()[1:]
            if not line.endswith((".deleted\tremoved", ".snapshot\tremoved"))
        ]
        assert found == [], checked.stdout + checked.stderr


def serve_one_turn(content: ExpectedContent, broker: ProcessBroker, directories: Directories) -> None:
    """Start, check, write, check again; the broker keeps running."""
    broker.start()
    exchange = content.broker = Exchange(broker.bootstrap, "round-trip")
    if content.turn:
        content.check()
    else:
        content.create_topics()
    content.write()
    wait_until(directories.is_clean, f"{broker.name} cleans: {directories.cleaned()}")
    moved = {partition: offset for partition, offset in content.start_offsets.items() if offset}
    wait_until(lambda: moved.items() <= directories.start_offsets().items(), f"{broker.name} keeps log starts: {moved}")
    content.check()
    exchange.close()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_both_serve_one_directory_in_turn(
    kafka_jars: Path, tmp_path: Path, pytestconfig: pytest.Config, end: str
) -> None:
    """Both brokers serve the directory in turn. With a higher `--rounds` there are more turns, which end in either
    way.
    """
    directories = Directories(tmp_path)
    (tmp_path / "kafka").mkdir()
    (tmp_path / "ours").mkdir()
    port = free_port()
    kafka = KafkaProcess(kafka_jars, tmp_path / "kafka", {**SETTINGS, **directories.setting}, port=port)
    ours = PykafkadProcess(tmp_path / "ours", {**SETTINGS, **directories.setting}, port=port)
    kafka.data_directory = directories.paths[0]
    content = ExpectedContent()
    chance = random.Random(end)
    rounds = pytestconfig.getoption("--rounds") or 0
    try:
        for number in range(max(TENURES, rounds // 2)):
            broker = (kafka, ours)[number % 2]
            printed = len(kafka.log_text())
            serve_one_turn(content, broker, directories)
            was_clean = end == "stop"
            if number >= TENURES - 1:
                end = chance.choice(("stop", "kill"))
            getattr(broker, end)()
            directories.check_spread()
            if broker is ours:
                if end == "stop":
                    check_by_kafkas_tools(kafka_jars, tmp_path, directories)
            else:
                check_by_fsck(directories, is_clean=end == "stop")
                complaints = re.findall(
                    f".*(?:{COMPLAINTS}{'|' + UNCLEAN if was_clean else ''}).*", kafka.log_text()[printed:]
                )
                assert complaints == [], "\n".join(complaints)
        assert_no_bug_logged(ours)
    finally:
        ours.kill()
        kafka.kill()
        for path in directories.paths:
            shutil.rmtree(path, ignore_errors=True)
