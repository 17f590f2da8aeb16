"""Apache Kafka's own jars, downloaded with Maven: the broker, its tools, and their dependencies."""

from __future__ import annotations

import os
import subprocess
import tempfile
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
    directory = jars_directory()
    with exclusively("kafka-jars"):
        if directory.is_dir():
            return directory
        directory.parent.mkdir(parents=True, exist_ok=True)
        print(f"set-up: downloading the jars of Kafka {KAFKA_VERSION} with Maven", flush=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
            (Path(scratch) / "pom.xml").write_text(_pom())
            fetched = Path(scratch) / "libs"
            command = ["mvn", "-B", "-q", COPY_GOAL, "-DincludeScope=runtime", f"-DoutputDirectory={fetched}"]
            for _ in range(ATTEMPTS):
                result = subprocess.run(command, cwd=scratch, capture_output=True, text=True)
                if result.returncode == 0:
                    break
            if result.returncode != 0 or not list(fetched.glob("kafka_2.13-*.jar")):
                raise JarsUnavailable(
                    f"Maven could not download Kafka's jars:\n{(result.stdout + result.stderr)[-2000:]}"
                )
            # The folder gets its final name only once it is complete.
            os.rename(fetched, directory)
    return directory


def _pom() -> str:
    dependencies = []
    for artefact in ARTEFACTS:
        group, name, version = artefact.split(":")
        dependencies.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency>"
        )
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>local</groupId><artifactId>real-kafka</artifactId>"
        f"<version>1</version><packaging>pom</packaging><dependencies>{''.join(dependencies)}</dependencies></project>\n"
    )
