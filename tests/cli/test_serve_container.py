"""`pykafkad serve --container`: settings by the variables of Kafka's images, and the lines that tests wait for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pykafkad.__main__ import main
from pykafkad.cli import serve_container
from pykafkad.server import run as process


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """Records the calls of `run.run`, in place of a broker; the environment has no variable of Kafka's."""
    calls: list[dict] = []

    def run(settings: object, **named: object) -> int:
        calls.append({"settings": settings, **named})
        return 0

    monkeypatch.setattr(process, "run", run)
    for name in [name for name in os.environ if name.startswith(("KAFKA_", "PYKAFKAD_", "CLUSTER_ID"))]:
        monkeypatch.delenv(name)
    return calls


def test_without_variables_the_host_and_other_containers_reach_it(started: list[dict]) -> None:
    """The published port is advertised as localhost; the other listener answers with the address of the caller."""
    assert main(["serve", "--container"]) == 0
    (call,) = started
    assert call["data_directories"] == ("/var/lib/kafka/data",)
    listeners = process.parse_listeners(call["settings"])
    assert [(each.name, each.port, each.advertised(("10.0.0.5", each.port))[0]) for each in listeners] == [
        ("PLAINTEXT", 9092, "localhost"),
        ("INTERNAL", 19092, "10.0.0.5"),
    ]
    assert call["ready_lines"] == [
        "[BrokerLifecycleManager id=1] The broker has been unfenced. Transitioning from RECOVERY to RUNNING.",
        "[KafkaServer id=1] started",
        "Kafka Server started",
    ]


def test_variables_are_stronger_than_a_file_and_weaker_than_options(
    started: list[dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's images write them to the file. Variables of the JVM are none of ours."""
    properties = tmp_path / "server.properties"
    properties.write_text("num.partitions=2\nlog.retention.ms=5\nlog.dirs=/elsewhere\n")
    for name, text in (
        ("KAFKA_NUM_PARTITIONS", "3"), ("KAFKA_LOG_RETENTION_MS", "6"), ("KAFKA_NODE_ID", "7"),
        ("KAFKA_HEAP_OPTS", "-Xmx1G"), ("CLUSTER_ID", "4L6g3nShT-eMCtK--X86sw"),
        ("KAFKA_LISTENERS", "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094"),
        ("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"),
        ("KAFKA_ADVERTISED_LISTENERS", "PLAINTEXT://localhost:32768,BROKER://kafka:9092"),
        ("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER"), ("KAFKA_PROCESS_ROLES", "broker,controller"),
    ):  # fmt: skip
        monkeypatch.setenv(name, text)
    assert main(["serve", "--container", str(properties), "--set", "log.retention.ms=8"]) == 0
    (call,) = started
    settings = call["settings"]
    assert (settings.num_partitions, settings.log_retention_ms, call["data_directories"]) == (3, 8, ("/elsewhere",))
    assert settings.pykafkad_cluster_id == "4L6g3nShT-eMCtK--X86sw" and settings.warnings == []
    assert [(each.name, each.advertised(("", 1))) for each in process.parse_listeners(settings)] == [
        ("PLAINTEXT", ("localhost", 32768)),
        ("BROKER", ("kafka", 9092)),
    ]
    assert call["ready_lines"][1] == "[KafkaServer id=7] started"


def test_listen_replaces_the_listeners_of_the_image(started: list[dict]) -> None:
    """As without a container."""
    assert main(["serve", "--container", "--listen", "localhost:9"]) == 0
    (listener,) = process.parse_listeners(started[0]["settings"])
    assert listener.advertised(("", 9)) == ("localhost", 9)


def test_a_wrong_variable_is_named(
    started: list[dict], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not the setting alone, which the user has not written."""
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "many")
    assert main(["serve", "--container"]) == 2
    assert "environment KAFKA_NUM_PARTITIONS" in capsys.readouterr().err and started == []


@pytest.mark.parametrize("words", [["--processes"], ["--tenant", "acme"]])
def test_one_cluster_in_one_process(started: list[dict], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Whose start is told."""
    assert main(["serve", "--container", *words]) == 2
    assert "no --tenant and --processes" in capsys.readouterr().err and started == []


def test_names() -> None:
    """What underscores stand for."""
    names = {"KAFKA_NUM_PARTITIONS": "num.partitions", "KAFKA_A__B": "a_b", "KAFKA_A___B": "a-b", "KAFKA_": ""}
    assert {each: serve_container.setting_name(each) for each in names} == names


def test_the_lines_follow_the_readiness_line(capsys: pytest.CaptureFixture[str]) -> None:
    """At once, for those who read line by line."""
    process.tell_ready(["localhost:9092"], None, {}, ["Kafka Server started"])
    assert capsys.readouterr().out == "pykafkad ready on localhost:9092\nKafka Server started\n"
