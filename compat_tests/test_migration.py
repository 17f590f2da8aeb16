"""A whole cluster of real Kafka brokers moves to pykafkad and back, by the commands of docs/cluster.md, while
producers, transactions and groups of all kinds go on."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compat_tests.brokers.broker import ProcessBroker, free_port
from compat_tests.brokers.pykafkad_process import REPOSITORY, PykafkadProcess
from compat_tests.conftest import assert_no_bug_logged, unavailable
from compat_tests.load.load import Load, until
from compat_tests.load.writers import compile_java
from compat_tests.quorum.nodes import REPLICATED, KafkaNode, our_node, tool
from compat_tests.setup.kafka_jars import JarsUnavailable, fetch_other_broker
from compat_tests.tools.runner import ToolRunner

PAGE = REPOSITORY / "docs" / "cluster.md"
SECTION = "## Moving a Kafka cluster here, and back\n"
COMMAND_SECONDS = 300
KAFKAS, OURS = (2, 3, 4), (5, 6, 7)
KAFKA_CONTROLLER, OUR_CONTROLLER = 1, 11
# By release: the kinds of groups that its brokers have.
GROUPS = {"4.3": ("classic", "consumer", "share"), "4.0": ("classic", "consumer"), "3.9": ("classic",)}


@pytest.fixture(params=GROUPS)
def release(request: pytest.FixtureRequest) -> str:
    """One of Kafka's releases; the older ones take as long as the newest, and are left out without
    `--every-version`."""
    found: str = request.param
    if found != "4.3" and not request.config.getoption("--every-version"):
        pytest.skip("older releases take long: make test-long, or --every-version")
    return found


@pytest.fixture
def release_jars(release: str, kafka_jars: Path) -> Path:
    """Those of the release."""
    if release == "4.3":
        return kafka_jars
    try:
        return fetch_other_broker(release)
    except JarsUnavailable as error:
        unavailable(str(error))
        raise


class Cluster:
    """The nodes of both kinds by their names on the page, and what its commands mean here."""

    def __init__(self, jars: Path, directory: Path, runner: ToolRunner) -> None:
        ports = {name: free_port() for name in (KAFKA_CONTROLLER, OUR_CONTROLLER)}
        servers = ",".join(f"localhost:{port}" for port in ports.values())
        more = {**REPLICATED, "controller_quorum_bootstrap_servers": servers}
        self.runner = runner
        self.nodes: dict[str, ProcessBroker] = {}
        for role, number, port in (("controller", KAFKA_CONTROLLER, ports[KAFKA_CONTROLLER]), *(
            ("broker", number, free_port()) for number in KAFKAS
        )):  # fmt: skip
            name = f"{role}{number}"
            node = KafkaNode(jars, directory / name, role, number, port, port=port, **more)
            self.nodes[name] = node
        for role, number in (("controller", OUR_CONTROLLER), *(("broker", number) for number in OURS)):
            name = f"{role}{number}"
            port = ports.get(number) or free_port()
            data = str(directory / name / "data")
            self.nodes[name] = our_node(directory / name, role, number, port, port=port, log_dirs=data, **more)

    def bootstrap(self, numbers: tuple[int, ...]) -> str:
        """The addresses of some of the brokers."""
        return ",".join(self.nodes[f"broker{number}"].bootstrap for number in numbers)

    def run(self, command: str) -> None:
        """One command of the page."""
        words = [self._meant(word) for word in shlex.split(command)]
        match words:
            case ["pykafkad", "serve", name] | ["kafka-server-start", name]:
                self.nodes[Path(name).parent.name].start()
            case ["kafka-server-stop", option]:
                number = option.removeprefix("--node-id=")
                self.nodes[f"{'controller' if number == '1' else 'broker'}{number}"].stop()
            case ["pykafkad", *rest]:
                run = [sys.executable, "-m", "pykafkad", *rest]
                done = subprocess.run(run, capture_output=True, text=True, timeout=COMMAND_SECONDS)
                assert done.returncode == 0, (command, done)
            case [name, *rest] if "add-controller" in rest:
                # Kafka refuses a controller that has not caught up yet.
                until(command, lambda: self.runner.run(name.removeprefix("kafka-"), rest).code == 0)
            case [name, *rest]:
                if "remove-controller" in rest:
                    rest[-1] = self._directory_id(rest[1], rest[rest.index("--controller-id") + 1])
                outcome = self.runner.run(name.removeprefix("kafka-"), rest)
                assert outcome.code == 0, (command, outcome)

    def _meant(self, word: str) -> str:
        """An address or a file of the page, as it is here."""
        name = re.split(r"[:.]", word)[0]
        if name not in self.nodes:
            return word
        node = self.nodes[name]
        return node.bootstrap if ":" in word else str(node.directory / "server.properties")

    def _directory_id(self, bootstrap: str, node_id: str) -> str:
        """Of a voter."""
        rows = tool(self.runner, "metadata-quorum", bootstrap, "describe", "--replication").splitlines()
        (found,) = (row.split()[1] for row in rows if row.split()[0] == node_id)
        return found

    def voters(self, bootstrap: str) -> set[int]:
        rows = tool(self.runner, "metadata-quorum", bootstrap, "describe", "--replication").splitlines()[1:]
        return {int(row.split()[0]) for row in rows if row.split()[-1] != "Observer"}

    def holders(self, load: Load) -> set[int]:
        """The brokers that have a replica of anything."""
        topics = load.admin.list_topics(timeout=30).topics.values()
        return {broker for topic in topics for each in topic.partitions.values() for broker in each.replicas}


def documented() -> list[list[str]]:
    """The commands of the page's section, block by block."""
    section = PAGE.read_text().partition(SECTION)[2].partition("\n## ")[0]
    blocks = re.findall(r"(?:^    .+\n)+", section, re.MULTILINE)
    return [[line.strip() for line in block.splitlines()] for block in blocks]


@pytest.mark.timeout(1200)
def test_a_cluster_of_kafka_moves_here_and_back(
    release: str, release_jars: Path, kafka_jars: Path, tmp_path: Path, runner: ToolRunner,
    started: Callable[[ProcessBroker], ProcessBroker], capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Nothing is lost, nothing is there twice, the order is kept, and no producer gives up a record. Clients begin with
    the addresses of Kafka's brokers alone, and then have those of whoever is there."""
    cluster = Cluster(release_jars, tmp_path, runner)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda name: started(cluster.nodes[name]), ("controller1", "broker2", "broker3", "broker4")))
    joining, controllers, back = documented()
    java = kafka_jars, compile_java(kafka_jars, tmp_path / "classes")
    load = Load(cluster.bootstrap(KAFKAS), tmp_path / "clients", groups=GROUPS[release], java=java)
    try:
        load.goes_on()
        for command in joining:
            if command.startswith("kafka-server-stop") and load.bootstrap != cluster.bootstrap(OURS):
                load.goes_on()
                load.use(cluster.bootstrap(OURS))
                assert cluster.holders(load) == set(OURS)
            cluster.run(command)
        load.goes_on()
        for command in controllers:
            cluster.run(command)
        until("ours is the only voter", lambda: cluster.voters(cluster.bootstrap(OURS)) == {OUR_CONTROLLER})
        load.goes_on()
        for command in back:
            cluster.run(command)
        load.goes_on()
        load.use(cluster.bootstrap(KAFKAS))
        assert cluster.holders(load) == set(KAFKAS)
        for name, node in cluster.nodes.items():
            if isinstance(node, PykafkadProcess):
                node.stop()
                assert_no_bug_logged(node), name
        assert cluster.voters(cluster.bootstrap(KAFKAS)) == {KAFKA_CONTROLLER}
        load.goes_on()
        faults = load.end([node for node in cluster.nodes.values() if isinstance(node, KafkaNode)])
        with capfd.disabled():
            print(f"\n{release}: {load.summary()}")
        assert (faults, load.errors()) == ([], [])
    finally:
        load.close()
        for node in cluster.nodes.values():
            node.kill()
