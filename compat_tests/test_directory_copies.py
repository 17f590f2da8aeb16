"""Two brokers on copies of one directory, as processes under one controller: of pykafkad, and of a real Kafka.

The second is refused while the first is heard of, and takes its place when it is not. Then Kafka's first broker goes on
without ever being registered again; that of pykafkad names the other one and stops."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.brokers.broker import BrokerFailed, ProcessBroker, free_port
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.numbered import PARTITIONS, produce, read_all
from compat_tests.quorum.nodes import CONTROLLER, KafkaNode, our_node, tool, until
from compat_tests.tools.runner import ToolRunner

BROKER = 2
TOPIC = "copied"
SESSION = {"broker_session_timeout_ms": "4000", "broker_heartbeat_interval_ms": "500"}
REGISTRATION = {"initial_broker_registration_timeout_ms": "12000"}


@pytest.fixture(params=["kafka-kafka", "pykafkad-pykafkad", "kafka-pykafkad", "pykafkad-kafka"])
def make(
    request: pytest.FixtureRequest, kafka_jars: Path, tmp_path: Path, started: Callable[..., ProcessBroker]
) -> Callable[[str, str], ProcessBroker]:
    """Makes nodes by name and role; the controller and the brokers are of the kinds that the parameter names. The
    mixtures take long, and are left out without `--whole-suites`."""
    kinds = dict(zip(("controller", "broker"), request.param.split("-"), strict=True))
    if len(set(kinds.values())) > 1:
        request.getfixturevalue("whole_suites")
    port = free_port()

    def make(name: str, role: str) -> ProcessBroker:
        at = tmp_path / name, role, CONTROLLER if role == "controller" else BROKER, port
        more = {**SESSION, **(REGISTRATION if role == "broker" else {})}
        return KafkaNode(kafka_jars, *at, **more) if kinds[role] == "kafka" else our_node(*at, **more)

    return make


def test_two_brokers_on_copies_of_a_directory(
    make: Callable[[str, str], ProcessBroker], runner: ToolRunner, started: Callable[..., ProcessBroker]
) -> None:
    """The first serves undisturbed until it is paused. Its log and the controller's name the second."""
    controller = started(make("controller", "controller"))
    first = started(make("first", "broker"))
    words = ("--create", "--topic", TOPIC, "--partitions", str(PARTITIONS), "--replication-factor", "1")
    assert f"Created topic {TOPIC}" in tool(runner, "topics", first.bootstrap, *words)
    produce(first.bootstrap, TOPIC, range(10))
    first.stop()
    second = make("second", "broker")
    shutil.copytree(first.directory / "data", second.directory / "data")
    first.start()

    with pytest.raises(BrokerFailed):
        started(second)
    refused = "DUPLICATE_BROKER_REGISTRATION"
    assert refused in second.log_text() and not second.is_alive()
    if isinstance(controller, PykafkadProcess):
        assert re.search(
            rf"broker-registration-refused broker={BROKER} address=\S+ error={refused}", controller.log_text()
        )
    produce(first.bootstrap, TOPIC, range(10, 20))
    assert read_all(first.bootstrap, TOPIC) == [*range(20)]

    assert first.process is not None
    first.process.send_signal(signal.SIGSTOP)
    second.start()
    produce(second.bootstrap, TOPIC, range(30, 40))
    first.process.send_signal(signal.SIGCONT)
    until("the first has heard of it", lambda: "STALE_BROKER_EPOCH" in first.log_text())
    if isinstance(first, PykafkadProcess):
        assert first.process.wait(60) == 1
        assert re.search(rf"broker-replaced broker={BROKER} epoch=\d+ peer={second.bootstrap} ", first.log_text())
        first.process = None
    else:
        assert first.is_alive()
    # What the first alone had is not on the copy.
    assert read_all(second.bootstrap, TOPIC) == [*range(10), *range(30, 40)]
    for each in (second, controller, first):
        each.kill()
        assert "unexpected-error" not in each.log_text()
