"""Runs Kafka's tools in one JVM that lives for the whole session, so that a call does not pay for a JVM's start."""

from __future__ import annotations

import struct
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from compat_tests.setup import class_archive
from compat_tests.setup.compiled import compiled

TIMED_OUT = -1
TIMEOUT_SECONDS = 150.0
# The JVM itself stops a call that takes too long; after this additional time the JVM counts as stuck.
GRACE_SECONDS = 60.0
SOURCE = Path(__file__).with_name("ToolRunner.java")
# Only the C1 compiler and the serial collector: most of this code runs a few times.
JAVA_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.security.manager=allow",
)

# The classes behind the scripts of a Kafka distribution, under the scripts' names.
TOOLS = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "dump-log": "org.apache.kafka.tools.DumpLogSegments",
    "e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "storage": "kafka.tools.StorageTool",
    "streams-application-reset": "org.apache.kafka.tools.StreamsResetter",
    "streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
}


class Outcome(NamedTuple):
    """The result of a tool: exit code (TIMED_OUT if it was stopped), standard output, standard error."""

    code: int
    output: str
    errors: str


class RunnerFailed(Exception):
    """The JVM did not answer or has ended; the message carries the end of its log."""


class ToolRunner:
    """One JVM that runs tools, several at a time for several threads; `log` gets the log of its libraries."""

    def __init__(self, jars: Path, log: Path) -> None:
        self._log = log
        logging = log.with_suffix(".properties")
        logging.write_text(
            "rootLogger.level = warn\nrootLogger.appenderRef.f.ref = F\nappender.f.type = File\nappender.f.name = F\n"
            f"appender.f.fileName = {log}\nappender.f.layout.type = PatternLayout\n"
            "appender.f.layout.pattern = %d %p %t %c{1} %m%n\n"
            # A tool's error log is part of its output to the user.
            "appender.c.type = Console\nappender.c.name = C\nappender.c.target = SYSTEM_ERR\nappender.c.follow = true\n"
            "appender.c.layout.type = PatternLayout\nappender.c.layout.pattern = %p %m%n\n"
            "logger.t.name = org.apache.kafka.tools\nlogger.t.level = error\nlogger.t.appenderRef.c.ref = C\n"
            "logger.a.name = kafka.admin\nlogger.a.level = error\nlogger.a.appenderRef.c.ref = C\n"
        )
        command = ["java", *JAVA_OPTIONS, *class_archive.options(jars), f"-Dlog4j2.configurationFile={logging}"]
        command += ["-cp", f"{jars}/*:{compiled(SOURCE, jars)}", SOURCE.stem]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._sending = threading.Lock()
        self._answered = threading.Condition()
        self._answers: dict[int, Outcome] = {}
        self._asked = 0
        self._ended = False
        threading.Thread(target=self._receive, daemon=True).start()

    def run(
        self, tool: str, arguments: Sequence[str], typed: str = "", timeout_seconds: float = TIMEOUT_SECONDS
    ) -> Outcome:
        """Run a tool to its end; `typed` is its standard input."""
        return self.result(self.start(tool, arguments, typed, timeout_seconds), timeout_seconds)

    def start(
        self, tool: str, arguments: Sequence[str], typed: str = "", timeout_seconds: float = TIMEOUT_SECONDS
    ) -> int:
        """Start a tool; returns the number of the call, for `end` and `result`."""
        with self._sending:
            self._asked += 1
            self._send(self._asked, timeout_seconds, (typed, TOOLS[tool], *arguments))
            return self._asked

    def end(self, number: int) -> None:
        """Ask a call to end, as Ctrl-C would."""
        with self._sending:
            self._send(number, 0, ())

    def result(self, number: int, timeout_seconds: float = TIMEOUT_SECONDS) -> Outcome:
        """Wait for the end of a call."""
        with self._answered:
            done = self._answered.wait_for(
                lambda: self._ended or number in self._answers, timeout_seconds + GRACE_SECONDS
            )
            if not done or number not in self._answers:
                raise RunnerFailed(f"call {number}: the JVM does not answer\n{self._log.read_text()[-4000:]}")
            return self._answers.pop(number)

    def _send(self, number: int, timeout_seconds: float, texts: Sequence[str]) -> None:
        encoded = [text.encode() for text in texts]
        frame = struct.pack(">iii", number, int(timeout_seconds * 1000), len(encoded))
        self._process.stdin.write(frame + b"".join(struct.pack(">i", len(text)) + text for text in encoded))
        self._process.stdin.flush()

    def _receive(self) -> None:
        answers = self._process.stdout
        while len(head := answers.read(8)) == 8:
            number, code = struct.unpack(">ii", head)
            printed = []
            for _ in range(2):
                (size,) = struct.unpack(">i", answers.read(4))
                printed.append(answers.read(size).decode(errors="replace"))
            with self._answered:
                self._answers[number] = Outcome(code, *printed)
                self._answered.notify_all()
        with self._answered:
            self._ended = True
            self._answered.notify_all()

    def close(self) -> None:
        """Stop the JVM."""
        self._process.stdin.close()
        self._process.wait(GRACE_SECONDS)
        self._process.stdout.close()
