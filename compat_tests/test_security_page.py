"""The five minutes of docs/security.md, run as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import confluent_kafka
import kafka
import pytest

from compat_tests.brokers.broker import free_port

PAGE = Path(__file__).parents[1] / "docs" / "security.md"
LIMIT_SECONDS = 120


def _blocks(language: str) -> list[str]:
    """The section of the five minutes alone: the others show parts."""
    section = PAGE.read_text().split("\n## ")[1]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


@pytest.fixture
def address() -> str:
    """Where the page's broker listens."""
    return f"localhost:{free_port()}"


def test_the_five_minutes(tmp_path: Path, address: str) -> None:
    """A broker with TLS, two users and ACLs; the administrator's commands; Alice with two clients."""
    (tmp_path / "pykafkad").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pykafkad "$@"\n')
    (tmp_path / "pykafkad").chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(PAGE.parents[1]),
        "PYKAFKAD_BOOTSTRAP": address,
    }
    serve, commands = _blocks("sh")
    serve = (
        serve[serve.index("pykafkad serve") :]
        .rstrip()
        .replace("pykafkad serve", f"exec pykafkad serve --listen {address}")
    )
    broker = subprocess.Popen(["sh", "-c", serve], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert "shop/tls-ca.pem" in broker.stdout.readline()
        done = subprocess.run(
            ["sh", "-e", "-c", commands],
            cwd=tmp_path,
            env=environment,
            timeout=LIMIT_SECONDS,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        _alice(tmp_path, address)
    finally:
        broker.send_signal(signal.SIGTERM)
        broker.communicate(timeout=LIMIT_SECONDS)


def _alice(directory: Path, address: str) -> None:
    """What Alice may do goes, what she may not is refused."""
    (page,) = _blocks("python")
    page = page.replace("localhost:9092", address).replace("shop/", f"{directory}/shop/")
    names: dict[str, type] = {}
    made: dict[str, object] = {}

    def keep(name: str, cls: type) -> object:
        return lambda *arguments, **settings: made.setdefault(name, cls(*arguments, **settings))

    source = re.sub(r"^from .*$", "", page, flags=re.MULTILINE)
    names["KafkaProducer"] = keep("python", kafka.KafkaProducer)
    names["Producer"] = keep("librdkafka", confluent_kafka.Producer)
    exec(source, names)
    by_python, by_librdkafka = made["python"], made["librdkafka"]
    by_python.send("orders", b"one").get(LIMIT_SECONDS)
    with pytest.raises(kafka.errors.KafkaError):
        by_python.send("salaries", b"none").get(LIMIT_SECONDS)
    by_python.close(timeout=0)
    failures = []
    by_librdkafka.produce("orders", b"two", on_delivery=lambda error, _: failures.append(error))
    assert by_librdkafka.flush(LIMIT_SECONDS) == 0
    assert failures == [None]
    settings = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": f"{directory}/shop/tls-ca.pem",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": "secret",
        "group.id": "billing",
        "auto.offset.reset": "earliest",
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe(["orders"])
    read = [consumer.poll(LIMIT_SECONDS).value() for _ in range(2)]
    consumer.close()
    assert read == [b"one", b"two"]
