"""The broker under test, one Spark for the whole run, and fresh names."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.brokers.broker import Broker
from compat_tests.brokers.choose import WAYS, KafkaSource, KafkaUnavailable
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.setup import system_packages
from spark_it.jars import JarsUnavailable, connector_jars
from spark_it.tests.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AGAINST = {"kafka": ("kafka",), "pykafkad": ("pykafkad",), "both": ("kafka", "pykafkad")}

# If no offset is found for a time, Spark asks three times; by default it sleeps a second before each.
READER_OPTIONS = {"fetchOffset.retryIntervalMs": "100"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the Spark tests. The compat tests have the same options, and define them if both are in one run."""
    group = parser.getgroup("Spark tests")
    with contextlib.suppress(ValueError):
        group.addoption(
            "--against", choices=sorted(AGAINST), default="pykafkad", help="which brokers the tests run against"
        )
        group.addoption("--kafka-by", choices=WAYS, default="process", help="how the real Kafka runs")
        group.addoption("--whole-suites", action="store_true", help="also the jobs that take long")


def pytest_configure(config: pytest.Config) -> None:
    """Ignore warnings about sockets: PySpark leaves the socket of every `collect` to the garbage collector."""
    config.addinivalue_line("filterwarnings", r"ignore:unclosed <socket\.socket:ResourceWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Ignore warnings about sockets that are collected after the last test.

    The filter above no longer applies then, and the run would end with an error.
    """
    warnings.filterwarnings("ignore", r"unclosed <socket\.socket", ResourceWarning)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test that takes a broker once for each broker, the real Kafka first."""
    if "new_broker" in metafunc.fixturenames:
        metafunc.parametrize(
            "new_broker", AGAINST[metafunc.config.getoption("--against")], indirect=True, scope="session"
        )


def unavailable(reason: str) -> None:
    """Skip the test with the reason; with CI=true fail instead."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"with CI=true nothing may be skipped: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def connector() -> None:
    """Spark needs Java and its connector's jars, which are resolved before the first test's time starts."""
    for program in system_packages.install(system_packages.missing([system_packages.JAVA])):
        unavailable(system_packages.how_to_get(program))
    try:
        connector_jars()
    except JarsUnavailable as error:
        unavailable(str(error))


@pytest.fixture(scope="session")
def new_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Broker]]:
    """Creates brokers of the kind under test, not yet started; all are stopped at the end of the run."""
    source: KafkaSource | None = None
    brokers: list[Broker] = []
    if request.param == "kafka":
        try:
            source = KafkaSource(request.config.getoption("--kafka-by"))
        except KafkaUnavailable as error:
            unavailable(str(error))

    def make() -> Broker:
        directory = tmp_path_factory.mktemp(request.param)
        brokers.append(source.broker(directory) if source else PykafkadProcess(directory))
        return brokers[-1]

    yield make
    for broker in brokers:
        broker.close()
    if source:
        source.close()
    if request.param == "pykafkad":
        for broker in brokers:
            _, traceback, rest = broker.log_text().partition("Traceback (most recent call last)")
            assert not traceback, f"pykafkad logged an exception that it did not expect:\n{rest[:4000]}"


@pytest.fixture(scope="session")
def bootstrap(new_broker: Callable[[], Broker]) -> str:
    """`host:port` of one broker for the whole run: the only thing about it that a test knows."""
    broker = new_broker()
    broker.start()
    return broker.bootstrap


@pytest.fixture
def own_broker(new_broker: Callable[[], Broker]) -> Iterator[Broker]:
    """A broker for one test, which may be killed and restarted."""
    broker = new_broker()
    broker.start()
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One small Spark for the whole run."""
    from spark_it.session import spark_session

    session = spark_session("tests")
    yield session
    session.stop()


@pytest.fixture
def topics(bootstrap: str, request: pytest.FixtureRequest) -> Iterator[Topics]:
    """Topics for one test on the broker under test, written and read without Spark."""
    with Topics(bootstrap, request.node.name) as made:
        yield made


@pytest.fixture
def read(spark: SparkSession, bootstrap: str) -> Callable[..., DataFrame]:
    """Reads a batch from the broker under test with Spark's options, as in `read(subscribe=topic)`."""

    def load(**options: object) -> DataFrame:
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        return reader.options(**{**READER_OPTIONS, **options}).load()

    return load


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], str]:
    """Names folders for checkpoints and files."""
    return lambda name: str(tmp_path / name)
