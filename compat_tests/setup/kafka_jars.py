"""Apache Kafka's own jars, downloaded with Maven: the broker, its tools, and their dependencies; older Java clients."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compat_tests.setup.cache import cache_directory, exclusively

KAFKA_VERSION = "4.3.1"
ARTEFACTS = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-shell:{KAFKA_VERSION}",
    f"org.apache.kafka:connect-runtime:{KAFKA_VERSION}",
    f"org.apache.kafka:connect-json:{KAFKA_VERSION}",
    f"org.apache.kafka:connect-file:{KAFKA_VERSION}",
    f"org.apache.kafka:connect-transforms:{KAFKA_VERSION}",
    f"org.apache.kafka:connect-mirror:{KAFKA_VERSION}",
    f"org.apache.kafka:kafka-streams-examples:{KAFKA_VERSION}",
    # The slf4j binding is in none of Kafka's poms, and without it nothing is logged.
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
)
# Older Java clients, each with the tools of its release and nothing but what the tools' copier of transactions loads.
OLDER_VERSIONS = ("3.9.1", "2.8.2")
OLDER_ARTEFACTS = (
    "org.apache.kafka:kafka-clients:{version}",
    "net.sourceforge.argparse4j:argparse4j:0.7.0",
    "com.fasterxml.jackson.core:jackson-databind:2.16.2",
)
# Brokers and controllers of other releases: the last patch of each, and what binds slf4j before Kafka 4.0 and since.
OTHER_BROKERS = {
    "2.8": "2.8.2",
    "3.4": "3.4.1",
    "3.7": "3.7.2",
    "3.9": "3.9.2",
    "4.0": "4.0.2",
    "4.1": "4.1.1",
    "4.2": "4.2.2",
    "4.4": "4.4.0",
}
OLDER_BINDING = "org.slf4j:slf4j-reload4j:1.7.36"
BINDING = "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"
FLINK_VERSION = "2.3.0"
TESTCONTAINERS_VERSION = "1.21.3"
SLF4J = ("org.slf4j:slf4j-api:1.7.36", "org.slf4j:slf4j-nop:1.7.36")
# Maven's own repository keeps the files that were downloaded before a network failure.
ATTEMPTS = 3
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


class JarsUnavailable(Exception):
    """Maven did not resolve Kafka's jars; the message has the end of Maven's output."""


def jars_directory() -> Path:
    """Folder in the cache for the jars; `fetch_jars` creates it."""
    return cache_directory() / f"kafka-{KAFKA_VERSION}" / "libs"


def fetch_jars() -> Path:
    """Download Kafka's jars (about 100, 128 MB) unless they are in the cache; returns their folder."""
    return _fetch(jars_directory(), f"the jars of Kafka {KAFKA_VERSION}", _pom(ARTEFACTS), "kafka_2.13-*.jar")


def fetch_older_tools(version: str) -> Path:
    """Download the Java client of `version` with its tools (about 15 MB) in the same way."""
    directory = cache_directory() / f"kafka-tools-{version}" / "libs"
    artefacts = [each.format(version=version) for each in OLDER_ARTEFACTS]
    pom = _pom(artefacts, alone=f"org.apache.kafka:kafka-tools:{version}")
    return _fetch(directory, f"the Java client {version}", pom, "kafka-tools-*.jar")


def fetch_other_broker(release: str) -> Path:
    """Download the broker of another release (about 45 MB) in the same way."""
    version = OTHER_BROKERS[release]
    directory = cache_directory() / f"kafka-broker-{version}" / "libs"
    artefacts = (f"org.apache.kafka:kafka_2.13:{version}", OLDER_BINDING if release < "4.0" else BINDING)
    return _fetch(directory, f"Kafka {version}", _pom(artefacts), "kafka_2.13-*.jar")


def fetch_registry_client() -> Path:
    """Download Confluent's Java client of a schema registry as Flink's jar has it (23 MB): Confluent's own jars are not
    on Maven Central."""
    directory = cache_directory() / f"flink-registry-{FLINK_VERSION}" / "libs"
    flink = f"org.apache.flink:flink-sql-avro-confluent-registry:{FLINK_VERSION}"
    return _fetch(directory, "a Java client of a schema registry", _pom((flink, *SLF4J)), "flink-sql-avro-*.jar")


def fetch_testcontainers() -> Path:
    """Download Testcontainers' Java module for Kafka (24 MB) in the same way."""
    directory = cache_directory() / f"testcontainers-{TESTCONTAINERS_VERSION}" / "libs"
    artefacts = (f"org.testcontainers:kafka:{TESTCONTAINERS_VERSION}", *SLF4J)
    return _fetch(directory, "Testcontainers for Java", _pom(artefacts), "testcontainers-*.jar")


def _fetch(directory: Path, what: str, pom: str, expected: str) -> Path:
    """Download what `pom` names into `directory`, once; one of the files is `expected`."""
    with exclusively("kafka-jars"):
        if directory.is_dir():
            return directory
        directory.parent.mkdir(parents=True, exist_ok=True)
        print(f"set-up: downloading {what} with Maven", flush=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
            (Path(scratch) / "pom.xml").write_text(pom)
            fetched = Path(scratch) / "libs"
            command = ["mvn", "-B", "-q", COPY_GOAL, "-DincludeScope=runtime", f"-DoutputDirectory={fetched}"]
            for _ in range(ATTEMPTS):
                result = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
                if result.returncode == 0:
                    break
            if result.returncode != 0 or not list(fetched.glob(expected)):
                raise JarsUnavailable(f"Maven could not download {what}:\n{(result.stdout + result.stderr)[-2000:]}")
            # The folder gets its final name only once it is complete.
            os.rename(fetched, directory)
    return directory


def _pom(artefacts: Sequence[str], alone: str = "") -> str:
    """A project with those dependencies; `alone` is one more, without its own dependencies."""
    dependencies = []
    for artefact in filter(None, (*artefacts, alone)):
        group, name, version = artefact.split(":")
        without = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
        dependencies.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
            f"{without if artefact == alone else ''}</dependency>"
        )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>real-kafka</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{''.join(dependencies)}</dependencies></project>\n"
    )
