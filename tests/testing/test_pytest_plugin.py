"""The pytest plugin, in runs of pytest inside this one."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pykafkad.testing
from pykafkad import pytest_plugin

pytest_plugins = ["pytester"]

assert pykafkad.testing, "the runs inside this one find it imported"


@pytest.fixture
def run(pytester, monkeypatch):
    """Runs pytest on a test file's text; the plugin is given by name, whether or not it is installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(text, *arguments):
        pytester.makepyfile(text)
        return pytester.runpytest_inprocess("-p", "pykafkad.pytest_plugin", "-p", "no:cacheprovider", *arguments)

    return run


def test_fixtures_are_there_without_an_import(run):
    """A session's broker with a topic for each test, and brokers for one test alone."""
    run(
        """
        import pytest

        seen = []

        @pytest.mark.parametrize("number", [1, 2])
        def test_topic(kafka, kafka_topic, number):
            seen.append((kafka.bootstrap, kafka_topic))
            kafka.produce(kafka_topic, "x")
            assert len(kafka.records(kafka_topic)) == 1

        def test_one_broker_and_two_topics():
            assert len({bootstrap for bootstrap, _ in seen}) == 1 and len({topic for _, topic in seen}) == 2

        @pytest.mark.kafka_topic(3, settings={"cleanup.policy": "compact"})
        def test_described_topic(kafka, kafka_topic):
            assert kafka.topics()[kafka_topic] == 3

        def test_own(kafka, kafka_cluster):
            assert kafka_cluster.topics() == {} and kafka.bootstrap != kafka_cluster.bootstrap

        @pytest.mark.kafka(topics={"orders": 2}, settings={"num.partitions": 5})
        def test_described(kafka_cluster):
            kafka_cluster.produce("made", "x")
            assert kafka_cluster.topics() == {"orders": 2, "made": 5}

        def test_factory(kafka_broker):
            assert kafka_broker(topics=["a"]).topics() != kafka_broker(topics=["b"]).topics()

        @pytest.mark.kafka_fault("close_before", "Produce", times=3)
        @pytest.mark.kafka_fault("answer", "Fetch", "OFFSET_OUT_OF_RANGE", topic="orders")
        def test_fault(kafka_cluster):
            kinds = [str(fault).split()[0] for fault in kafka_cluster.faults.every]
            assert kinds == ["close_before", "answer"]
        """
    ).assert_outcomes(passed=8)


def test_a_failed_test_tells_what_there_was(run, tmp_path):
    """Topics, groups and faults, and where the data is kept, if it is."""
    result = run(
        """
        def test_fails(kafka, kafka_topic, kafka_cluster):
            kafka.produce(kafka_topic, "x", "y")
            kafka_cluster.create_topic("orders")
            kafka_cluster.commit("readers", {("orders", 0): 0})
            kafka_cluster.faults.delay("Fetch", 7)
            kafka_cluster.faults.delay("Fetch", 8)
            assert False

        def test_passes(kafka):
            pass

        def test_without(tmp_path):
            assert False
        """,
        f"--kafka-keep={tmp_path / 'kept'}",
    )
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*Kafka (kafka_cluster)*",
            "broker 127.0.0.1:*",
            "fault delay Fetch 7 ms: fired 0 times",
            "its data: *kept*test_fails-kafka_cluster",
            "*Kafka (kafka)*",
            "topic test_fails, offsets by partition: 0: 0 to 2",
        ]
    )
    assert len([line for line in result.outlines if "Kafka (" in line]) == 2
    assert len(list((tmp_path / "kept").iterdir())) == 2


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        ("kafka(setings={})", "unexpected keyword argument 'setings'"),
        ("kafka(settings={'num.partition': 3})", "did you mean num.partitions"),
        ("kafka(settings={'num.partitions': 'x'})", "num.partitions"),
        ("kafka({})", "keyword arguments only"),
        ("kafka_topic(0)", "no number from 1"),
        ("kafka_fault('answer', 'Produce', 'NOT_LEADER_OR')", "did you mean NOT_LEADER_OR_FOLLOWER"),
        ("kafka_fualt('answer', 'Produce', 6)", "did you mean kafka_fault"),
    ],
)
def test_a_wrong_marker_is_refused_when_tests_are_collected(run, marker, text):
    """Not in mid-test."""
    result = run(
        f"import pytest\n\n@pytest.mark.{marker}\ndef test_it(kafka_cluster): ...\n\ndef test_other(): ...\n",
        "-W",
        "ignore",
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert text in result.stderr.str() and "test_it" in result.stderr.str()


def test_a_projects_own_fixture_of_the_name_is_its_own(run):
    """The plugin neither uses it nor tells of it."""
    result = run(
        """
        import pytest

        @pytest.fixture
        def kafka():
            return "a container"

        def test_fails(kafka):
            assert kafka == ""
        """
    )
    result.assert_outcomes(failed=1)
    assert "Kafka (" not in result.stdout.str()


def test_a_project_may_set_up_the_sessions_broker(run):
    """By a fixture of the same name; topics, faults and the report are as with the plugin's."""
    result = run(
        """
        import pytest
        from pykafkad.testing import Broker

        @pytest.fixture(scope="session")
        def kafka():
            with Broker(topics=["orders"]) as broker:
                yield broker

        @pytest.mark.kafka_fault("drop_answer", "Heartbeat")
        def test_fails(kafka, kafka_topic):
            assert kafka.topics() == {"orders": 1}
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Kafka (kafka)*", "topic test_fails*", "topic orders*"])


def test_a_failed_test_tells_the_last_requests_of_its_clients(run):
    """Those of earlier tests are not among them."""
    result = run(
        """
        from pykafkad.testing.wire_client import WireClient

        def ask(broker, api, client_id):
            host, port = broker.bootstrap.split(":")
            client = WireClient(host, int(port), client_id=client_id)
            client.ask(api)
            client.close()

        def test_earlier(kafka):
            ask(kafka, "ListGroups", "earlier")

        def test_fails(kafka, kafka_cluster):
            ask(kafka, "ListGroups", "shared")
            ask(kafka_cluster, "ListTransactions", "own")
            assert False
        """,
        "--kafka-trace",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["last requests:", "* own * ListTransactions v0 *", "*Kafka (kafka)*", "last requests:", "* shared *"]
    )
    result.stdout.no_fnmatch_line("* earlier *")


def test_log_lines_reach_caplog(run):
    """Of the broker that a test uses."""
    run(
        """
        import logging

        def test_it(kafka_broker, caplog):
            caplog.set_level(logging.DEBUG, "pykafkad")
            broker = kafka_broker(log_level="debug")
            broker.topics()
            broker.close()
            assert "connection-closed" in caplog.text
        """
    ).assert_outcomes(passed=1)


def loaded(code):
    """The modules that a new process has after running some code."""
    command = [sys.executable, "-c", f"import sys; {code}; print(*sorted(sys.modules))"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.long
def test_a_run_without_it_pays_for_one_module():
    """Nothing else is imported."""
    names = loaded("import pytest, pykafkad.pytest_plugin")
    assert [name for name in names if name.startswith("pykafkad")] == ["pykafkad", "pykafkad.pytest_plugin"]


def test_a_broker_imports_nothing_that_it_may_not_need():
    """What costs milliseconds comes when it is asked for."""
    names = loaded("import pykafkad.testing")
    heavy = {"asyncio", "dataclasses", "difflib", "inspect", "json", "pathlib", "subprocess", "unittest", "uuid", "ssl"}
    assert heavy.isdisjoint(names) and "pykafkad.testing.child" not in names


def test_the_broker_is_imported_as_it_is(pytestconfig):
    """pytest rewrites the assertions of a distribution with a plugin; of two hundred modules that takes seconds."""
    hook = pytestconfig.pluginmanager.rewrite_hook
    assert isinstance(hook._must_rewrite, set), "the plugin looks for it under this name"
    plugin = pytest.MonkeyPatch()
    with plugin.context() as patch:
        patch.setattr(hook, "_must_rewrite", {"pykafkad", "other"})
        patch.setattr(pytestconfig, "addinivalue_line", lambda *line: None)
        pytest_plugin.pytest_configure(pytestconfig)
        assert hook._must_rewrite == {"other"}
