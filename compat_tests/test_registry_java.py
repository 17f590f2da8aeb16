"""The schema registry with Confluent's Java client and an Avro coder of Java, as Flink carries them."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from compat_tests.conftest import unavailable
from compat_tests.java_tools import JAVA_OPTIONS
from compat_tests.setup import kafka_jars, system_packages
from pykafkad.registry.registry_client import RegistryClient
from pykafkad.registry.schema import AVRO, Schema
from pykafkad.registry.schema_values import SchemaValues
from pykafkad.testing import Broker

SOURCE = Path(__file__).with_name("RegistryRound.java")
LIMIT_SECONDS = 260
ORDER = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "amount", "type": "int"}]}


@pytest.fixture(scope="session")
def jars() -> Path:
    """Flink's jar with the client in it."""
    if system_packages.install(system_packages.missing((system_packages.MAVEN,))):
        unavailable(system_packages.how_to_get(system_packages.MAVEN))
    if shutil.which("javac") is None:
        unavailable("a program of one source file needs a JDK: apt-get install -y default-jdk-headless")
    try:
        return kafka_jars.fetch_registry_client()
    except kafka_jars.JarsUnavailable as error:
        unavailable(str(error))


def test_schemas_and_values_of_java(jars: Path) -> None:
    """Register, look up, compare, refuse; each side reads what the other has written, by schemas of its own."""
    with Broker(registry=True) as broker:
        client = RegistryClient(broker.registry_url)
        values = SchemaValues(client)
        schema = Schema(AVRO, json.dumps(ORDER))
        written = values.encoder(client.register("other", schema), schema)({"amount": 5})
        arguments = [broker.registry_url, "orders-value", base64.b64encode(written).decode()]
        done = subprocess.run(
            ["java", *JAVA_OPTIONS, "-cp", f"{jars}/*", str(SOURCE), *arguments],
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        told = dict(line.split("=", 1) for line in done.stdout.splitlines())
        value = values.decoded(base64.b64decode(told.pop("written"))).value
        assert value == {"amount": 7, "city": "Basel"}
        assert told == {
            "again": "true",
            "found": "true",
            "compatible": "true",
            "incompatible": "true",
            "versions": "[1, 2]",
            "latest": "2",
            "refused": "409 40901",
            "unknown": "404 40403",
            "level": "FULL FULL",
            "read": '{"amount": 5, "city": "Bern"}',
        }
