"""The pytest plugin: fixtures with a broker, without an import.

    def test_orders(kafka, kafka_topic): ...

Fixtures: `kafka` (a `pykafkad.testing.Broker` for the session; each worker of pytest-xdist has its own), `kafka_topic`
(the name of a new topic on it), `kafka_cluster` (a broker for this test alone), and the factory `kafka_broker`
(`kafka_broker(topics={"orders": 3})`: brokers that end with the test).

Markers: `kafka(**arguments)` gives `kafka_cluster` keyword arguments of `Broker`, `kafka_topic(partitions=3)` describes
the topic, and `kafka_fault(kind, api, parameter, **filters)` sets a fault for this test. They are checked when tests
are collected. A failed test's report tells what the broker had, and with `--kafka-trace` the last requests of
its clients; `--kafka-keep=DIR` keeps its data.

A run of pytest that uses none of this pays for one small module: everything else is imported by the first fixture."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pykafkad.testing import Broker

SESSION, TOPIC, CLUSTER, FACTORY = "kafka", "kafka_topic", "kafka_cluster", "kafka_broker"
_FIXTURES = frozenset((SESSION, TOPIC, CLUSTER, FACTORY))

MARKERS = {
    "kafka": "kafka(**arguments): keyword arguments of pykafkad.testing.Broker for the fixture kafka_cluster",
    "kafka_topic": "kafka_topic(partitions=1, settings={}): the topic of the fixture kafka_topic",
    "kafka_fault": "kafka_fault(kind, api, parameter=None, **filters): a fault on the test's broker, such as "
    'kafka_fault("answer", "Produce", "NOT_LEADER_OR_FOLLOWER", times=2)',
}

_BROKERS = pytest.StashKey[dict[str, "Broker"]]()
"""The brokers of a test, by the fixture's name."""

_SESSION_BROKER = pytest.StashKey["Broker"]()
"""That of the fixture `kafka`, once it is there."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of this plugin."""
    group = parser.getgroup("pykafkad")
    group.addoption(
        "--kafka-keep",
        metavar="DIR",
        help="keep the Kafka data of each failed test in a folder of DIR, for `pykafkad serve --data`",
    )
    group.addoption(
        "--kafka-trace",
        action="store_true",
        help="record the requests of each test's Kafka clients, and show the last ones when it fails",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known, and have pytest leave the broker's modules as they are."""
    for text in MARKERS.values():
        config.addinivalue_line("markers", text)
    # pytest rewrites the assertions of all modules of a distribution that has a plugin. The broker has 200 modules
    # without anything for a test's report; compiling them anew takes seconds.
    hook = config.pluginmanager.rewrite_hook
    rewritten = getattr(hook, "_must_rewrite", None)
    if isinstance(rewritten, set):
        rewritten.discard("pykafkad")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Look at the markers of the tests that use the fixtures."""
    for item in items:
        if not _FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            _check_markers(item)


def _check_markers(item: pytest.Item) -> None:
    for marker in item.iter_markers():
        try:
            if marker.name == "kafka":
                _broker(marker)
            elif marker.name == "kafka_topic":
                _topic(marker)
            elif marker.name == "kafka_fault":
                _check_fault(marker)
            elif marker.name.startswith("kafka"):
                _check_name(item, marker.name)
        except (ValueError, TypeError) as error:
            raise pytest.UsageError(f"{item.nodeid}: marker {marker.name}: {error}") from None


def _check_name(item: pytest.Item, name: str) -> None:
    registered = {line.partition(":")[0].partition("(")[0].strip() for line in item.config.getini("markers")}
    if name not in registered:
        from pykafkad.testing.options import unknown

        raise ValueError(unknown("marker", name, MARKERS))


def _broker(marker: pytest.Mark | None) -> Broker:
    from pykafkad.errors import ConfigError
    from pykafkad.testing import Broker

    if marker is not None and marker.args:
        raise TypeError("it takes keyword arguments only")
    try:
        return Broker(**({} if marker is None else marker.kwargs))
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _topic(marker: pytest.Mark | None) -> Any:
    from pykafkad.testing import Topic

    return Topic() if marker is None else Topic(*marker.args, **marker.kwargs)


def _check_fault(marker: pytest.Mark) -> None:
    from pykafkad.testing.faults import Faults

    class Nowhere:
        """Takes a fault that is only checked."""

        def add_fault(self, **fields: Any) -> int:
            return 0

        def release_fault(self, number: int) -> None: ...

        def fault_counts(self, number: int) -> tuple[int, int]:
            return 0, 0

    Faults(Nowhere()).set(*marker.args, **marker.kwargs)


# --- fixtures ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session", name=SESSION)
def _kafka(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker for this run of tests, or this worker of it."""
    with _broker(None) as broker:
        request.session.stash[_SESSION_BROKER] = broker
        _trace(request.config, broker)
        yield broker


@pytest.fixture(name=TOPIC)
def _kafka_topic(kafka: Broker, request: pytest.FixtureRequest) -> str:
    """The name of a topic that no other test uses, on the session's broker."""
    topic = _topic(request.node.get_closest_marker("kafka_topic"))
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name).strip("-")[:150]
    taken = kafka.topics()
    name = next(
        name for number in range(len(taken) + 1) if (name := f"{stem}.{number}" if number else stem) not in taken
    )
    kafka.create_topic(name, topic.partitions, topic.settings)
    return name


@pytest.fixture(name=CLUSTER)
def _kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker of this test's own."""
    with _broker(request.node.get_closest_marker("kafka")) as broker:
        _note(request.node, CLUSTER, broker)
        yield broker


@pytest.fixture(name=FACTORY)
def _kafka_broker(request: pytest.FixtureRequest) -> Iterator[Callable[..., Broker]]:
    """Makes brokers with the arguments of `Broker`, which end with the test."""
    from contextlib import ExitStack

    from pykafkad.testing import Broker

    with ExitStack() as stack:
        made: list[Broker] = []

        def make(**arguments: Any) -> Broker:
            broker = stack.enter_context(Broker(**arguments))
            made.append(broker)
            _note(request.node, f"{FACTORY}-{len(made)}", broker)
            return broker

        yield make


def _trace(config: pytest.Config, broker: Broker) -> None:
    if config.getoption("kafka_trace"):
        broker.trace()


def _note(item: pytest.Item, name: str, broker: Broker) -> None:
    _trace(item.config, broker)
    item.stash.setdefault(_BROKERS, {})[name] = broker


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The faults and the requests of earlier tests are no news in this one's report."""
    broker = item.session.stash.get(_SESSION_BROKER, None)
    if broker is not None and broker.is_running:
        broker.faults.forget_ended()
        if item.config.getoption("kafka_trace"):
            broker.trace().clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Set the faults of the test's markers while it runs."""
    markers = list(item.iter_markers("kafka_fault"))
    if not markers:
        return (yield)
    broker = _brokers(item).get(CLUSTER) or _brokers(item).get(SESSION)
    if broker is None:
        raise pytest.UsageError(f"{item.nodeid}: kafka_fault needs the fixture {CLUSTER} or {SESSION}")
    faults = [broker.faults.set(*marker.args, **marker.kwargs) for marker in reversed(markers)]
    try:
        return (yield)
    finally:
        for fault in faults:
            fault.release()


def _brokers(item: pytest.Item) -> dict[str, Broker]:
    """The brokers that a test uses, by the fixture's name."""
    noted: dict[str, Broker] = item.stash.setdefault(_BROKERS, {})
    used = getattr(item, "funcargs", {}).get(SESSION)
    testing = sys.modules.get("pykafkad.testing")
    # A project may have a fixture of its own under that name, with a broker of ours or with something else.
    return {**noted, SESSION: used} if testing is not None and isinstance(used, testing.Broker) else dict(noted)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell in a failed test's report what its brokers had."""
    report = yield
    if report.failed and call.when != "teardown" and not _FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
        for name, broker in _brokers(item).items():
            _tell(item, report, name, broker)
    return report


def _tell(item: pytest.Item, report: pytest.TestReport, name: str, broker: Broker) -> None:
    """What a broker has, and where its data was put. A broker that cannot be asked must not hide why a test failed."""
    try:
        text = broker.report(getattr(item, "funcargs", {}).get(TOPIC) if name == SESSION else None)
        directory = item.config.getoption("kafka_keep")
        if directory:
            kept = os.path.join(directory, re.sub(r"[^A-Za-z0-9._-]+", "-", f"{item.nodeid}-{name}"))
            broker.keep(kept)
            text += f"\nits data: {kept}"
    except Exception as error:
        text = f"it could not be asked: {type(error).__name__}: {error}"
    report.sections.append((f"Kafka ({name})", text))
