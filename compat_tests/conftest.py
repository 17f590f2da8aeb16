"""Chooses the brokers that a run tests, and holds the fixtures for every compat test.

`bootstrap` is parametrised for the whole session: all tests run against the real Kafka first, then all against
pykafkad.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from compat_tests.brokers.broker import Broker, ProcessBroker
from compat_tests.brokers.choose import WAYS, KafkaSource, KafkaUnavailable
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.java_tools import JAVA_OPTIONS
from compat_tests.repeat import Repeat, session_broker
from compat_tests.scenarios.registry import CONFIGURED
from compat_tests.setup import class_archive, system_packages
from compat_tests.setup.kafka_jars import JarsUnavailable, fetch_jars
from compat_tests.tools.runner import ToolRunner

AGAINST = {"kafka": ("kafka",), "pykafkad": ("pykafkad",), "both": ("kafka", "pykafkad")}
# The files that take minutes, longest first, and those of half a minute that would come last by their names. The suites
# come when they are built (compat_tests/suites/ahead.py).
LONGEST = (
    "test_tools.py",
    "test_scenarios.py",
    "test_scenarios_by_release.py",
    "test_migration.py",
    "test_mixed_cluster.py",
    "test_wheel.py",
    "test_authorization.py",
    "test_crash.py",
    "test_round_trips.py",
    "test_suites.py",
    "test_command_line.py",
    "test_bad_fields.py",
    "test_older_kafkas.py",
    "test_secured_nodes.py",
    "test_metadata_log.py",
    "test_killed_clients.py",
    "test_snapshots.py",
    "test_streams_and_connect.py",
    "test_verifiable.py",
    "test_transaction_ends.py",
    "test_restart_seen.py",
    "test_tools_files.py",
    "test_broker_processes.py",
    "test_quorum_with_kafka.py",
    "test_cluster_command.py",
    "test_mirror_between.py",
    "test_tls.py",
    "test_transactions.py",
    "test_testing.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the compat tests."""
    group = parser.getgroup("compat tests")
    group.addoption("--against", choices=sorted(AGAINST), default="both", help="which brokers the tests run against")
    group.addoption("--kafka-by", choices=WAYS, default="auto", help="how the real Kafka runs")
    group.addoption(
        "--rounds",
        type=int,
        help="rounds of SIGKILL in each of its tests (default: 20 under load, 10 of each other kind)",
    )
    group.addoption(
        "--crash-seed", type=int, help="seed of the moments of SIGKILL (default: another one each time, printed)"
    )
    group.addoption(
        "--whole-suites", action="store_true", help="other clients' suites and programs, also the long ones"
    )
    group.addoption("--every-version", action="store_true", help="bad fields in every version, not in a sample of them")
    group.addoption("--codec-seed", help="seed of the random messages in compat_tests/codec")
    group.addoption(
        "--codec-messages", help="names of the messages that compat_tests/codec compares, with commas; default all"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Turn warnings into errors, except those from inside other projects' clients; repeat what is late beside Kafka."""
    config.pluginmanager.register(Repeat(config))
    # After errors that a test provoked, clients leave sockets to the garbage collector.
    config.addinivalue_line("filterwarnings", "ignore::ResourceWarning")
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")
    config.addinivalue_line("filterwarnings", "ignore:(open|read)_text is deprecated:DeprecationWarning")
    for package in ("kafka", "aiokafka", "confluent_kafka", "docker", "testcontainers"):
        config.addinivalue_line("filterwarnings", f"ignore:::{package}(\\..*)?")


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Ignore warnings about sockets that are collected after the last test.

    The filters above no longer apply then, and the run would end with an error.
    """
    for category in (ResourceWarning, pytest.PytestUnraisableExceptionWarning):
        warnings.simplefilter("ignore", category)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test that takes a broker once for each broker, the real Kafka first."""
    if "broker" in metafunc.fixturenames:
        names = AGAINST[metafunc.config.getoption("--against")]
        metafunc.parametrize("broker", names, indirect=True, scope="session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, so that no process works alone at the end."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
    if getattr(config, "workerinput", {}).get("workerid") == "gw0":
        whole = config.getoption("--whole-suites")
        suites = [item.callspec.params["suite"] for item in items if "suite" in getattr(item, "fixturenames", ())]
        names = [suite.name for suite in suites if suite.quick or whole]
        if names:
            # Imported late, because it imports clients, and the filters of warnings come first.
            from compat_tests.suites import ahead

            building = ahead.start(names)
            config.add_cleanup(lambda: ahead.end(building))


def unavailable(reason: str) -> None:
    """Skip the test with the reason; with CI=true fail instead."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"with CI=true nothing may be skipped: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def whole_suites(pytestconfig: pytest.Config) -> None:
    """For programs that take long: leave them out without `--whole-suites`."""
    if not pytestconfig.getoption("--whole-suites"):
        pytest.skip("this takes long: make test-long, or --whole-suites")


@pytest.fixture(scope="session")
def kafka_source(pytestconfig: pytest.Config) -> Iterator[KafkaSource]:
    """Starts real Kafkas; programs that this needs are installed where that is allowed."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    try:
        source = KafkaSource(pytestconfig.getoption("--kafka-by"))
    except KafkaUnavailable as error:
        unavailable(str(error))
    with capture.global_and_fixture_disabled():
        print(f"\nreal Kafka: {source.how}", flush=True)
    yield source
    source.close()


@pytest.fixture(scope="session")
def kafka(
    kafka_source: KafkaSource, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Broker]:
    """One real Kafka for the session."""
    broker = kafka_source.broker(tmp_path_factory.mktemp("kafka"))
    try:
        broker.start()
        pytestconfig.stash[session_broker] = broker
        yield broker
    finally:
        broker.close()


@pytest.fixture(scope="session")
def pykafkad(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PykafkadProcess]:
    """One pykafkad for the session; at the end its log must show no unexpected exception."""
    broker = PykafkadProcess(tmp_path_factory.mktemp("pykafkad"))
    try:
        broker.start()
        yield broker
    finally:
        broker.close()
    assert_no_bug_logged(broker)


@pytest.fixture(scope="session")
def configured_kafka(kafka_source: KafkaSource, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A second real Kafka with the settings that some scenarios need; it starts when a test first asks for it."""
    broker = kafka_source.broker(tmp_path_factory.mktemp("configured-kafka"), CONFIGURED)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


@pytest.fixture(scope="session")
def configured_pykafkad(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PykafkadProcess]:
    """A second pykafkad, with the settings that some scenarios need."""
    broker = PykafkadProcess(tmp_path_factory.mktemp("configured-pykafkad"), CONFIGURED)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()
    assert_no_bug_logged(broker)


def assert_no_bug_logged(broker: PykafkadProcess) -> None:
    """Fail if pykafkad logged an unexpected exception, even if every test got its answer."""
    log = broker.log_text()
    found = re.search(r"Traceback \(most recent call last\)", log)
    assert found is None, (
        f"pykafkad logged an unexpected exception:\n{log[max(found.start() - 500, 0) : found.start() + 3000]}"
    )


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Broker:
    """The broker under test: a real Kafka, then pykafkad."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def bootstrap(broker: Broker) -> str:
    """`host:port` of the broker under test: the only thing about it that a test knows."""
    return broker.bootstrap


@pytest.fixture
def started() -> Iterator[Callable[[ProcessBroker], ProcessBroker]]:
    """Starts a process; all of them end with the test, the last first."""
    with ExitStack() as stack:

        def start(process: ProcessBroker) -> ProcessBroker:
            stack.callback(process.kill)
            process.start()
            return process

        yield start


@pytest.fixture
def fresh_name(request: pytest.FixtureRequest) -> Callable[..., str]:
    """Makes names of topics and groups that no other test uses and that are readable in a broker's log."""
    test = re.sub(r"[^A-Za-z0-9]+", "-", request.node.originalname or request.node.name)[:60].strip("-")

    def name(kind: str = "topic") -> str:
        return f"{test}-{kind}-{uuid.uuid4().hex[:8]}"

    return name


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """Folder of Kafka's own jars, for its command-line tools."""
    needed = (system_packages.JAVA, system_packages.MAVEN)
    still_missing = system_packages.install(system_packages.missing(needed))
    if still_missing:
        unavailable("; ".join(map(system_packages.how_to_get, still_missing)))
    try:
        return fetch_jars()
    except JarsUnavailable as error:
        unavailable(str(error))
        raise


@pytest.fixture
def start_java(kafka_jars: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts a main class of the jars or of the folder `classes` with a properties file; `_` in a name is a dot.

    Two processes of one class need different file names (`called`); `also` are arguments behind the file. Processes
    that still run at the end of the test are stopped.
    """
    logging = tmp_path / "log4j2.properties"
    logging.write_text(
        "rootLogger.level = warn\nrootLogger.appenderRef.f.ref = F\nappender.f.type = File\nappender.f.name = F\n"
        f"appender.f.fileName = {tmp_path / 'log'}\nappender.f.layout.type = PatternLayout\n"
        "appender.f.layout.pattern = %d %p %c{1} %m%n\n"
    )
    with ExitStack() as stack:

        def begin(
            main_class: str,
            classes: Path | None = None,
            *,
            called: str = "",
            also: Sequence[Path] = (),
            **properties: object,
        ) -> subprocess.Popen:
            path = tmp_path / f"{called or main_class.rpartition('.')[2]}.properties"
            path.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in properties.items()))
            command = [
                "java",
                *JAVA_OPTIONS,
                *class_archive.options(kafka_jars),
                f"-Dlog4j2.configurationFile={logging}",
                "-cp",
                f"{kafka_jars}/*" if classes is None else f"{kafka_jars}/*:{classes}",
                main_class,
                str(path),
                *map(str, also),
            ]
            process = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            stack.callback(process.kill)
            return process

        yield begin


@pytest.fixture(scope="module")
def runner(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolRunner]:
    """One JVM for all of Kafka's tools."""
    runner = ToolRunner(kafka_jars, tmp_path_factory.mktemp("runner") / "tools.log")
    yield runner
    runner.close()


@pytest.fixture(scope="session")
def kcat() -> str:
    """Path of the program kcat."""
    still_missing = system_packages.install(system_packages.missing((system_packages.KCAT,)))
    if still_missing:
        unavailable(system_packages.how_to_get(system_packages.KCAT))
    return shutil.which("kcat") or ""
