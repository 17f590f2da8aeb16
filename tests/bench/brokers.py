"""The two brokers under test: how each is formatted, started, found ready and stopped."""

from __future__ import annotations

import compileall
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .session import first_answer

ROOT = Path(__file__).parents[2]
START_TIMEOUT = 180.0
STOP_TIMEOUT = 120.0

# The options of Kafka's own start script, so that nobody can say that its JVM was starved.
JVM_OPTIONS = (
    "-Xms1g", "-Xmx1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
)  # fmt: skip

SERVER_PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller_port}
advertised.listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:{controller_port}
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
{shared}
"""

# Set on both: the default of 60 s would let one run's deleted log be removed in the middle of a later run.
SHARED_SETTINGS = ("log.segment.delete.delay.ms=100",)

LOG4J_PROPERTIES = """\
rootLogger.level = warn
rootLogger.appenderRef.c.ref = C
appender.c.type = Console
appender.c.name = C
appender.c.target = SYSTEM_ERR
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d %p %c{1} %m%n
"""


def free_port():
    """A TCP port of localhost that nobody listened on a moment ago."""
    with contextlib.closing(socket.create_server(("localhost", 0))) as listener:
        return listener.getsockname()[1]


class Broker:
    """A broker process on a fresh folder. `start()` makes `port` and `pid` valid; `stop()` is a clean shutdown.

    A load may add to `settings` before the first start.
    """

    name = ""
    settings = SHARED_SETTINGS

    def __init__(self, parent):
        self.folder = Path(tempfile.mkdtemp(prefix=f"bench-{self.name}-", dir=parent))
        self.data = self.folder / "data"
        self.log = self.folder / "broker.log"
        self.port = free_port()
        self.process = None

    @property
    def pid(self):
        """The process id of the running broker."""
        return self.process.pid

    def format(self):
        """Prepares the data folder; not part of any measurement."""

    def listeners(self, protocol, port):
        """Settings: beside the plain listener one named GUARDED, with a security protocol and at a port of its own."""
        both = f"PLAINTEXT://localhost:{self.port},GUARDED://localhost:{port}"
        return (
            f"listeners={both}{self.more_listeners()}",
            f"advertised.listeners={both}{self.more_listeners()}",
            f"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:{protocol}",
        )

    def more_listeners(self):
        """What follows the listeners for clients."""
        return ""

    def command(self):
        """The command line that serves."""
        raise NotImplementedError

    def environment(self):
        """The environment of the process."""
        return dict(os.environ)

    def start(self):
        """Starts the broker and returns the seconds from spawn to its first ApiVersions answer."""
        if not self.data.exists():
            self.format()
        command, environment = self.command(), self.environment()
        with open(self.log, "ab") as log:
            begin = time.monotonic()
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, cwd=self.folder
            )
        return first_answer(self.port, begin + START_TIMEOUT, lambda: self.process.poll() is None) - begin

    def stop(self):
        """Stops the broker cleanly; raises when it ends with an error or not at all."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        self.process = None
        if code not in (0, 128 + signal.SIGTERM, -signal.SIGTERM):
            raise RuntimeError(f"{self.name} ended with {code}; the end of its log:\n{self.log_tail()}")

    def discard(self):
        """Ends the process if it runs, and removes the folder."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def log_tail(self, lines=20):
        """The last lines that the broker wrote."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait_until_deleted(self, topic, seconds=20.0):
        """Waits until no folder of the topic is left on disk, so that its removal disturbs no measurement."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and any(name.startswith(f"{topic}-") for name in os.listdir(self.data)):
            time.sleep(0.05)


class Pykafkad(Broker):
    """This project's broker, with its defaults."""

    name = "pykafkad"

    def __init__(self, parent, python=sys.executable, checkout=ROOT):
        super().__init__(parent)
        self.python = python
        self.checkout = checkout
        compileall.compile_dir(str(checkout / "pykafkad"), quiet=1)

    def command(self):
        settings = (word for setting in self.settings for word in ("--set", setting))
        serve = [self.python, "-m", "pykafkad", "serve", "--data", str(self.data)]
        if not any(setting.startswith("listeners=") for setting in self.settings):
            serve += ["--listen", f"localhost:{self.port}"]
        return [*serve, *settings]

    def environment(self):
        path = os.pathsep.join(filter(None, [str(self.checkout), os.environ.get("PYTHONPATH")]))
        return {**os.environ, "PYTHONPATH": path}


class Before(Pykafkad):
    """The broker of another checkout, as of before a change."""

    name = "before"


class Kafka(Broker):
    """Apache Kafka 4.3.1 in one process, broker and controller, with its defaults and its start script's options."""

    name = "kafka"

    def __init__(self, parent, libs):
        super().__init__(parent)
        self.libs = libs
        self.controller_port = free_port()

    def more_listeners(self):
        """The controller's."""
        return f",CONTROLLER://localhost:{self.controller_port}"

    def java(self, *arguments, options=()):
        """A command line for a class of the jars."""
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return ["java", *options, "-cp", f"{self.libs}/*", logging, *arguments]

    def format(self):
        settings = {"port": self.port, "controller_port": self.controller_port, "data": self.data}
        settings["shared"] = "\n".join(self.settings)
        (self.folder / "server.properties").write_text(SERVER_PROPERTIES.format(**settings))
        (self.folder / "log4j2.properties").write_text(LOG4J_PROPERTIES)
        tool = ("kafka.tools.StorageTool",)
        cluster_id = subprocess.run(
            self.java(*tool, "random-uuid"), capture_output=True, text=True, check=True
        ).stdout.strip()
        subprocess.run(
            self.java(*tool, "format", "-t", cluster_id, "-c", str(self.folder / "server.properties"), "--standalone"),
            capture_output=True,
            check=True,
        )

    def command(self):
        return self.java("kafka.Kafka", str(self.folder / "server.properties"), options=JVM_OPTIONS)
