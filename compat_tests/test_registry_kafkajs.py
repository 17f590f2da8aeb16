"""The schema registry with kafkajs's client: JavaScript's own Avro, JSON Schema and Protobuf."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from compat_tests.conftest import unavailable
from compat_tests.setup import system_packages
from compat_tests.setup.cache import cache_directory, exclusively
from pykafkad.registry.registry_client import RegistryClient
from pykafkad.registry.schema_values import SchemaValues
from pykafkad.testing import Broker

SOURCES = Path(__file__).parent / "kafkajs_registry"
PACKAGE = "@kafkajs/confluent-schema-registry"
VERSION = json.loads((SOURCES / "package.json").read_text())["dependencies"][PACKAGE]
# The program ends itself before.
LIMIT_SECONDS = 260


@pytest.fixture(scope="session")
def kafkajs_registry() -> Path:
    """Folder in the cache where the client is installed beside our program."""
    still_missing = system_packages.install(system_packages.missing((system_packages.NPM,)))
    if still_missing:
        unavailable(system_packages.how_to_get(system_packages.NPM))
    directory = cache_directory() / f"kafkajs-registry-{VERSION}"
    with exclusively("kafkajs-registry"):
        directory.mkdir(exist_ok=True)
        for source in SOURCES.iterdir():
            shutil.copy(source, directory)
        if not (directory / "node_modules" / PACKAGE).is_dir():
            installed = subprocess.run(["npm", "ci", "--ignore-scripts"], cwd=directory, capture_output=True, text=True)
            if installed.returncode != 0:
                unavailable(f"npm could not fetch {PACKAGE} {VERSION}:\n{installed.stderr[-1000:]}")
    return directory


def test_schemas_and_values_of_each_kind(kafkajs_registry: Path) -> None:
    """Registered once, found by subject and by id, refused where incompatible; values come back, and are read here."""
    with Broker(registry=True, topics=["orders"]) as broker:
        command = ["node", "round.js", broker.registry_url, broker.bootstrap, "orders"]
        done = subprocess.run(command, cwd=kafkajs_registry, capture_output=True, text=True, timeout=LIMIT_SECONDS)
        assert done.returncode == 0, done.stderr[-2000:]
        result = json.loads(done.stdout)
        values = {"avro": {"amount": 5}, "json": {"amount": 6}, "protobuf": {"amount": 7, "cities": ["Bern"]}}
        assert result["ids"] == {"avro": [1] * 4, "json": [2] * 4, "protobuf": [3] * 4}
        assert result["wider"] == 4
        assert result["refused"].startswith("409 ") and "incompatible with an earlier schema" in result["refused"]
        assert result["read"] == values
        ours = SchemaValues(RegistryClient(broker.registry_url))
        records = {each.key.decode(): each.value for each in broker.records("orders")}
        assert {name: ours.decoded(records[name]).value for name in ("avro", "json")} == {
            name: values[name] for name in ("avro", "json")
        }
        # This client does not write which message of a Protobuf schema it is, as Confluent's serializers do.
        assert records["protobuf"] == b"\0\0\0\0\x03\x08\x07\x12\x04Bern"
