"""Clusters of three brokers under test: three combined nodes of Kafka, and pykafkad in one process or in several."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from . import process
from .brokers import JVM_OPTIONS, LOG4J_PROPERTIES, ROOT, STOP_TIMEOUT, Before, Kafka, Pykafkad, free_port
from .loadgen import LoadFailed
from .session import Session, first_answer

BROKERS = 3
START_TIMEOUT = 180.0

NODE_PROPERTIES = """\
process.roles=broker,controller
node.id={node_id}
listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller_port}
advertised.listeners=PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller_port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.voters={voters}
log.dirs={data}
group.initial.rebalance.delay.ms=0
{shared}
"""


class Cluster:
    """Three brokers on fresh folders with the same `settings`. `start()` makes `ports` valid, by node id."""

    name = ""

    def __init__(self, parent, settings=()):
        self.folder = Path(tempfile.mkdtemp(prefix=f"bench-{self.name}-cluster-", dir=parent))
        self.settings = ("log.segment.delete.delay.ms=100", *settings)
        self.ports = {}

    def start(self):
        """Start all; returns the seconds until each has answered, and the metadata know all of them."""
        begin = time.monotonic()
        self._spawn()
        deadline = begin + START_TIMEOUT
        for port in self._ports_when_ready(deadline):
            first_answer(port, deadline, self.is_running)
        while len(self.ports) < BROKERS:
            with Session(port) as session:
                self.ports = session.placement()[0]
            if time.monotonic() > deadline:
                raise LoadFailed(f"only the brokers {sorted(self.ports)} are known after {START_TIMEOUT} s")
        return time.monotonic() - begin

    def pids(self):
        """The processes that serve, whose processor time counts."""
        raise NotImplementedError

    def pid_of(self, node_id):
        """The process of one broker."""
        raise NotImplementedError

    def is_running(self):
        """Whether everything that was started still runs."""
        raise NotImplementedError

    def memory_mb(self):
        """Of all processes together."""
        return sum(process.memory_mb(pid) for pid in self.pids())

    def discard(self):
        """End what runs, and remove the folder."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)


class OwnCluster(Cluster):
    """pykafkad's: all brokers in one process, or with `processes` each in its own, under a controller."""

    name = Pykafkad.name

    def __init__(self, parent, settings=(), *, processes=False, brokers=BROKERS, python, checkout=ROOT):
        super().__init__(parent, settings)
        self.words = [python, "-m", "pykafkad", "serve", "--brokers", str(brokers)]
        self.words += ["--listen", "localhost:0", "--data", str(self.folder / "data")]
        self.words += [word for setting in self.settings for word in ("--set", setting)]
        if processes:
            self.words.append("--processes")
        self.checkout = checkout
        self.parent = None

    def _spawn(self):
        path = os.pathsep.join(filter(None, [str(self.checkout), os.environ.get("PYTHONPATH")]))
        with open(self.folder / "broker.log", "ab") as log:
            self.parent = subprocess.Popen(
                self.words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
                cwd=self.folder,
                text=True,
            )

    def _ports_when_ready(self, _deadline):
        line = self.parent.stdout.readline()
        if " on " not in line:
            raise LoadFailed(f"pykafkad did not start: {line}{(self.folder / 'broker.log').read_text()[-2000:]}")
        addresses = line.split(" on ")[1].split()[0].split(",")
        return [int(each.rpartition(":")[2]) for each in addresses]

    def start(self):
        """See `Cluster`; `brokers` other than three are started the same way."""
        begin = time.monotonic()
        self._spawn()
        ports = self._ports_when_ready(begin + START_TIMEOUT)
        self.ports = dict(enumerate(ports, 1))
        return time.monotonic() - begin

    def pids(self):
        return process.children(self.parent.pid) or [self.parent.pid]

    def pid_of(self, node_id):
        return next(pid for pid in self.pids() if process.listens(pid, self.ports[node_id]))

    def is_running(self):
        return self.parent.poll() is None

    def _end(self):
        if self.parent is None:
            return
        self.parent.send_signal(signal.SIGTERM)
        try:
            self.parent.communicate(timeout=STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.parent.kill()
            self.parent.communicate()


class CheckoutCluster(OwnCluster):
    """That of another checkout, as of before a change."""

    name = Before.name


class KafkaCluster(Cluster):
    """Three combined nodes of Kafka, each in its own process."""

    name = Kafka.name

    def __init__(self, parent, settings=(), *, libs):
        super().__init__(parent, settings)
        self.libs = libs
        self.processes = {}

    def _java(self, *arguments, options=()):
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}"
        return ["java", *options, "-cp", f"{self.libs}/*", logging, *arguments]

    def _spawn(self):
        (self.folder / "log4j2.properties").write_text(LOG4J_PROPERTIES)
        nodes = {node_id: (free_port(), free_port()) for node_id in range(1, BROKERS + 1)}
        voters = ",".join(f"{node_id}@localhost:{controller}" for node_id, (_, controller) in nodes.items())
        tool = ("kafka.tools.StorageTool",)
        cluster_id = subprocess.run(
            self._java(*tool, "random-uuid"), capture_output=True, text=True, check=True
        ).stdout.strip()
        for node_id, (port, controller_port) in nodes.items():
            path = self.folder / f"server-{node_id}.properties"
            path.write_text(
                NODE_PROPERTIES.format(
                    node_id=node_id,
                    port=port,
                    controller_port=controller_port,
                    voters=voters,
                    data=self.folder / f"data-{node_id}",
                    shared="\n".join(self.settings),
                )
            )
            subprocess.run(
                self._java(*tool, "format", "-t", cluster_id, "-c", str(path)), capture_output=True, check=True
            )
        self._listening = [port for port, _ in nodes.values()]
        for node_id in nodes:
            command = self._java("kafka.Kafka", str(self.folder / f"server-{node_id}.properties"), options=JVM_OPTIONS)
            with open(self.folder / f"broker-{node_id}.log", "ab") as log:
                self.processes[node_id] = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
                )

    def _ports_when_ready(self, _deadline):
        return self._listening

    def pids(self):
        return [each.pid for each in self.processes.values() if each.poll() is None]

    def pid_of(self, node_id):
        return self.processes[node_id].pid

    def is_running(self):
        return all(each.poll() is None for each in self.processes.values())

    def _end(self):
        # Whose data is thrown away needs no controlled shutdown.
        for each in self.processes.values():
            each.kill()
            each.wait()
