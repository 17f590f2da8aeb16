"""Kafka's own command-line tools, each in its own JVM: those that run long, and those that read files.

`tools/` runs the others.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from compat_tests.setup import class_archive

# The classes behind the scripts of a Kafka distribution.
TOOLS = {
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-share-consumer": "org.apache.kafka.tools.VerifiableShareConsumer",
    "kafka-metadata-shell": "org.apache.kafka.shell.MetadataShell",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-dump-log": "org.apache.kafka.tools.DumpLogSegments",
}
DUMP_COMPLAINTS = (
    "Found timestamp mismatch",
    "Index sanity check failed",
    "corrupt",
    "Mismatches in",
    "isvalid: false",
    "out of order",
)
"""What DumpLogSegments prints about a file that is not as it must be."""

TIMEOUT_SECONDS = 300
# A short start counts for more than fast code: most of these JVMs live for a second.
JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Outcome(NamedTuple):
    """The result of a tool: exit code, standard output, standard error."""

    code: int
    output: str
    errors: str


class JavaTools:
    """Kafka's tools from `jars`; `bootstrap` is added to each call."""

    def __init__(self, jars: Path, bootstrap: str, logging: Path) -> None:
        self.jars = jars
        self.bootstrap = bootstrap
        logging.write_text(
            "rootLogger.level = warn\nrootLogger.appenderRef.c.ref = C\nappender.c.type = Console\n"
            "appender.c.name = C\nappender.c.target = SYSTEM_ERR\nappender.c.layout.type = PatternLayout\n"
            "appender.c.layout.pattern = %d %p %c{1} %m%n\n"
        )
        self._java = [
            "java",
            *JAVA_OPTIONS,
            *class_archive.options(jars),
            f"-Dlog4j2.configurationFile={logging}",
            "-cp",
            f"{jars}/*",
        ]

    def command(self, tool: str, *arguments: str, connect: bool = True) -> list[str]:
        """The command line of `tool`; with `connect` it includes the broker's address."""
        where = ["--bootstrap-server", self.bootstrap] if connect else []
        return [*self._java, TOOLS[tool], *where, *arguments]

    def run(self, tool: str, *arguments: str, input: str | None = None, connect: bool = True) -> Outcome:
        """Run `tool` to its end."""
        command = self.command(tool, *arguments, connect=connect)
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        return Outcome(done.returncode, done.stdout, done.stderr)

    def succeed(self, tool: str, *arguments: str, input: str | None = None, connect: bool = True) -> str:
        """Run `tool`, which must exit with 0; returns its standard output."""
        outcome = self.run(tool, *arguments, input=input, connect=connect)
        assert outcome.code == 0, f"{tool} {' '.join(arguments)} ended with {outcome}"
        return outcome.output

    def dump_log(self, files: Iterable[Path], *options: str) -> str:
        """The output of DumpLogSegments for `files`, in which it must find nothing wrong."""
        output = self.succeed("kafka-dump-log", *options, "--files", ",".join(map(str, files)), connect=False)
        found = [complaint for complaint in DUMP_COMPLAINTS if complaint in output]
        assert not found, f"{found}: {output[:3000]}"
        return output

    def start(self, tool: str, *arguments: str, connect: bool = True) -> subprocess.Popen[str]:
        """Start `tool` in the background with its output on a pipe; the caller must stop it."""
        command = self.command(tool, *arguments, connect=connect)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def verify_replicas(self, topic: str, partitions: int, *options: str) -> str:
        """The report in which kafka-replica-verification has read every replica of the topic's partitions to the end.
        AssertionError if it names replicas that differ."""
        words = (
            "--broker-list",
            self.bootstrap,
            "--topics-include",
            topic,
            "--time",
            "-2",
            "--report-interval-ms",
            "200",
        )
        with self.start("kafka-replica-verification", *words, *options, connect=False) as process:
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    assert "doesn't match" not in line and "unmatched" not in line, line
                    report = line.partition(": ")[2].strip()
                    if report.startswith("max lag is 0 ") and report.endswith(f"among {partitions} partitions"):
                        return report
            finally:
                process.kill()
        raise AssertionError("kafka-replica-verification has ended")

    def metadata_shell(self, file: Path, command: str, shows: str) -> tuple[str, list[str]]:
        """What kafka-metadata-shell answers a command once that has `shows` in it, and the paths of its tree. `file` is
        a snapshot, or a segment of the log; no process may have its directory."""
        words = self.command("kafka-metadata-shell", "--snapshot", str(file), connect=False)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with subprocess.Popen(words, **pipes, text=True) as shell:
            try:
                # The shell accepts commands before it has read the file.
                line = ""
                for _ in range(1000):
                    shell.stdin.write(f"{command}\n")
                    shell.stdin.flush()
                    while not (line := shell.stdout.readline()).startswith(">>"):
                        assert line, "the shell ended"
                    if shows in line:
                        break
                    time.sleep(0.1)
                tree, _ = shell.communicate("find /\nexit\n", timeout=TIMEOUT_SECONDS)
            finally:
                shell.kill()
        return line, [path.removeprefix(">> ") for path in tree.splitlines()]
