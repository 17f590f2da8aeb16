"""The container image: the Testcontainers modules of four languages start it in place of Kafka's images."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pytest
from confluent_kafka import Consumer, Producer
from testcontainers.community.kafka import KafkaContainer
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from compat_tests.conftest import unavailable
from compat_tests.java_tools import JAVA_OPTIONS
from compat_tests.samples import wait_until
from compat_tests.setup import kafka_jars, system_packages
from compat_tests.setup.cache import cache_directory, exclusively
from compat_tests.setup.container_engine import ContainerEngine, EngineUnavailable
from compat_tests.setup.system_packages import BUSYBOX, DOCKERD, GO, MAVEN, NPM, Program

PROJECT = Path(__file__).resolve().parents[1]
SOURCES = Path(__file__).parent / "testcontainers"
LIMIT_SECONDS = 300
SIZE_BYTES_MAX = 60_000_000

# The modules read the version of Confluent's images from the tag: which scripts they copy hangs on it.
NAME = "pykafkad-compat/pykafkad"
VERSION = "8.0.0"
OLD_VERSION = "7.3.0"


# Asks the broker at an address for its own: what a client is told.
ASK = """
import sys
from pykafkad.testing.wire_client import WireClient
host, port = sys.argv[1].split(':')
print(WireClient(host, int(port)).ask('Metadata', topics=[]).brokers[0].host)
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    """A container engine: the one that runs, or our own."""
    if system_packages.install(system_packages.missing((DOCKERD, BUSYBOX))):
        unavailable("; ".join(map(system_packages.how_to_get, (DOCKERD, BUSYBOX))))
    try:
        engine = ContainerEngine()
    except EngineUnavailable as error:
        unavailable(str(error))
    yield engine.client
    engine.close()


@pytest.fixture(scope="module")
def image(engine: docker.DockerClient) -> Iterator[str]:
    """The image, built from this Python without a registry, by the last stage of its Dockerfile."""
    with tempfile.TemporaryDirectory() as context:
        subprocess.run([sys.executable, PROJECT / "container" / "root.py", "--context", context], check=True)
        built, _ = engine.images.build(path=context, tag=f"{NAME}:{VERSION}", rm=True)
    built.tag(NAME, OLD_VERSION)
    yield f"{NAME}:{VERSION}"
    engine.images.remove(built.id, force=True)


@pytest.fixture(scope="module")
def network(engine: docker.DockerClient) -> Iterator[str]:
    """Our own engine has no bridge of its own, and ports are published by one."""
    made = engine.networks.create(f"pykafkad-compat-{uuid.uuid4().hex[:8]}", driver="bridge")
    yield made.name
    made.remove()


def check_round(bootstrap: str) -> None:
    """A record goes to the broker, and comes back to a member of a group."""
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", b"one")
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None and message.value() == b"one"


def need(*programs: Program) -> None:
    for program in system_packages.install(system_packages.missing(programs)):
        unavailable(system_packages.how_to_get(program))


@contextmanager
def started_by(command: list[Any]) -> Iterator[str]:
    """The address that a program prints, which has started the image; the program stops it when its input ends."""
    # Ports of an engine behind a socket file are published here. The modules of Java and JavaScript would ask for the
    # network `bridge`, which our own engine has not, where this machine is itself a container.
    environment = {**os.environ, "TESTCONTAINERS_CHECKS_DISABLE": "true"}
    if os.environ.get("DOCKER_HOST", "unix:").startswith("unix:"):
        environment["TESTCONTAINERS_HOST_OVERRIDE"] = "localhost"
    process = subprocess.Popen(
        [*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        if not line.startswith("bootstrap="):
            process.stdin.close()
            pytest.fail(f"{command[0]} has started nothing: {line}{process.stderr.read()[-3000:]}")
        yield line.strip().removeprefix("bootstrap=").removeprefix("PLAINTEXT://")
        _, problems = process.communicate(timeout=LIMIT_SECONDS)
        assert process.returncode == 0, problems[-3000:]
    finally:
        process.kill()
        process.wait()


def test_the_image_is_small(engine: docker.DockerClient, image: str) -> None:
    """Also on an engine that shows what all layers take."""
    assert engine.images.get(image).attrs["Size"] < SIZE_BYTES_MAX


@pytest.mark.parametrize("is_kraft", [False, True], ids=["zookeeper", "kraft"])
def test_python_module(image: str, network: str, is_kraft: bool) -> None:
    """`testcontainers.kafka.KafkaContainer`."""
    container = KafkaContainer(image).with_kwargs(network=network)
    with container.with_kraft() if is_kraft else container as started:
        check_round(started.get_bootstrap_server())


@pytest.fixture(scope="module")
def java() -> list[Any]:
    """What runs the program of Java."""
    need(MAVEN)
    if shutil.which("javac") is None:
        unavailable("a program of one source file needs a JDK: apt-get install -y default-jdk-headless")
    try:
        jars = kafka_jars.fetch_testcontainers()
    except kafka_jars.JarsUnavailable as error:
        unavailable(str(error))
    return ["java", *JAVA_OPTIONS, "-cp", f"{jars}/*", SOURCES / "StartKafka.java"]


@pytest.mark.parametrize("kind", ["apache", "confluent", "older", "zookeeper"])
def test_java_modules(image: str, network: str, java: list[Any], kind: str) -> None:
    """Those for `apache/kafka` and for `confluentinc/cp-kafka`, and the older one with and without ZooKeeper."""
    with started_by([*java, image, network, kind]) as bootstrap:
        check_round(bootstrap)


def fetched(name: str, command: list[str], result: str) -> Path:
    """The sources in the cache, with what the command makes or fetches there."""
    directory = cache_directory() / f"testcontainers-{name}"
    with exclusively(f"testcontainers-{name}"):
        shutil.copytree(SOURCES, directory, dirs_exist_ok=True)
        if name == "go" or not (directory / result).exists():
            done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                unavailable(f"Testcontainers for {name} could not be fetched:\n{(done.stdout + done.stderr)[-1000:]}")
    return directory / result


def test_go_module(image: str, network: str) -> None:
    """`testcontainers-go/modules/kafka`."""
    if shutil.which("go") is None:
        unavailable(system_packages.how_to_get(GO))
    program = fetched("go", ["go", "build", "-o", "start-kafka", "."], "start-kafka")
    with started_by([program, image, network]) as bootstrap:
        check_round(bootstrap)


@pytest.mark.parametrize("version", [VERSION, OLD_VERSION])
def test_node_module(image: str, network: str, version: str) -> None:
    """`@testcontainers/kafka`: with Confluent's version 8 it starts Kafka alone, before it ZooKeeper, too."""
    need(NPM)
    modules = fetched("node", ["npm", "ci", "--ignore-scripts"], "node_modules")
    with started_by(["node", modules.parent / "start_kafka.js", f"{NAME}:{version}", network]) as bootstrap:
        check_round(bootstrap)


@pytest.fixture
def run(image: str, network: str) -> Iterator[Callable[..., DockerContainer]]:
    """Starts the image as it is, without a module; what was started ends with the test."""
    running: list[DockerContainer] = []

    def start(container: DockerContainer) -> DockerContainer:
        running.append(container.with_kwargs(network=network))
        container.waiting_for(LogMessageWaitStrategy("Kafka Server started").with_startup_timeout(60))
        return container.start()

    yield start
    for each in running:
        each.stop()


def test_without_any_variable(image: str, run: Callable[..., DockerContainer]) -> None:
    """The host reaches the published port, containers beside it the other listener, by the name that they use."""
    container = run(DockerContainer(image).with_exposed_ports(9092, 19092))
    said, problems = (text.decode() for text in container.get_logs())
    assert "pykafkad ready on localhost:9092 localhost:19092\n" in said and "WARNING" not in problems
    address = container.exec("hostname -i").output.decode().strip()
    for asked, expected in ((f"{address}:9092", "localhost"), (f"{address}:19092", address)):
        assert container.exec(["python3", "-c", ASK, asked]).output.decode().strip() == expected
    assert container.exec("id -u").output == b"1000\n"


def test_variables_are_settings(image: str, run: Callable[..., DockerContainer]) -> None:
    """As of Kafka's images, and what the control API says of them."""
    container = DockerContainer(image).with_exposed_ports(8080).with_env("KAFKA_NUM_PARTITIONS", "7")
    container.with_env("PYKAFKAD_CONTROL_TOKEN", "of-this-test").with_env("CLUSTER_ID", "4L6g3nShT-eMCtK--X86sw")
    container.with_command(["/etc/kafka/docker/run", "--control", "0.0.0.0:8080", "--topic", "orders"])
    run(container)
    url = f"http://{container.get_container_host_ip()}:{container.get_exposed_port(8080)}"
    request = urllib.request.Request(f"{url}/topics", headers={"Authorization": "Bearer of-this-test"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert json.load(answer)["topics"] == [{"name": "orders", "partitions": 7}]
    assert b"cluster=4L6g3nShT-eMCtK--X86sw" in container.get_logs()[1]


def test_it_stops_at_once(image: str, run: Callable[..., DockerContainer]) -> None:
    """The broker is the container's first process, so a stop is its signal, and it ends in good order."""
    container = run(DockerContainer(image))
    wrapped = container.get_wrapped_container()
    wrapped.stop(timeout=30)
    assert wrapped.wait()["StatusCode"] == 0
    assert b"INFO server stopped" in container.get_logs()[1]


def test_it_starts_again_and_again(image: str, run: Callable[..., DockerContainer]) -> None:
    """Twenty starts, and none of them fails; between them it is killed."""
    wrapped = run(DockerContainer(image)).get_wrapped_container()
    for number in range(2, 21):
        wrapped.kill()
        wrapped.wait()
        wrapped.start()
        wait_until(lambda number=number: wrapped.logs().count(b"Kafka Server started") == number, "it serves again")


def test_names_of_variables_are_read_as_kafka_does(kafka_jars: Path, tmp_path: Path) -> None:
    """By the class that Kafka's own image runs first, which writes a property file of them."""
    from pykafkad.cli import serve_container

    variables = {
        "KAFKA_NUM_PARTITIONS": "1", "KAFKA_LISTENER_NAME_SECURE_SCRAM-SHA-256_SASL_JAAS_CONFIG": "2",
        "KAFKA_a__b": "3", "KAFKA_A___B_C____D": "4", "KAFKA_HEAP_OPTS": "5", "KAFKA_VERSION": "6",
        "KAFKA_JMX_PORT": "7", "KAFKA__A": "8", "KAFKA_LOG4J_LOGGERS": "a=INFO", "KAFKA_JMX_HOSTNAME": "h",
        "KAFKA_REST_BOOTSTRAP_SERVERS": "9",
    }  # fmt: skip
    for name in ("defaults", "mounted", "final"):
        (tmp_path / name).mkdir()
    (tmp_path / "defaults" / "server.properties").write_text("")
    for name in ("log4j2.yaml", "tools-log4j2.yaml"):
        (tmp_path / "defaults" / name).write_text("Configuration: {}\n")
    arguments = ["setup", "-D", tmp_path / "defaults", "-M", tmp_path / "mounted", "-F", tmp_path / "final"]
    # The storage is formatted afterwards, which fails without the settings of a broker.
    subprocess.run(
        ["java", *JAVA_OPTIONS, "-cp", f"{kafka_jars}/*", "kafka.docker.KafkaDockerWrapper", *map(str, arguments)],
        env={"PATH": os.environ["PATH"], **variables}, capture_output=True, timeout=LIMIT_SECONDS, check=False,
    )  # fmt: skip
    lines = (tmp_path / "final" / "server.properties").read_text().split("\n")
    of_kafka = dict(line.split("=", 1) for line in lines if line)
    assert {name: text for name, (text, _) in serve_container.read(variables).items()} == of_kafka
