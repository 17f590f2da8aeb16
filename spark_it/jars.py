"""Spark's Kafka connector: its jars, resolved once into the cache, so that later runs need no network.

`python -m spark_it.jars` resolves them (about 10 s) and prints their folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compat_tests.setup.cache import cache_directory, exclusively

SPARK_VERSION = "4.0.0"
"""The newest release whose connector and whose connector's dependencies are all published, and what `pyproject.toml`
pins."""

CONNECTOR = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}"

# PySpark already has the other dependencies of the connector's pom; the first two alone have 50 MB.
COMES_WITH_PYSPARK = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.scala-lang.modules:scala-parallel-collections_2.13",
    "com.google.code.findbugs:jsr305",
    "org.lz4:lz4-java",
    "org.slf4j:slf4j-api",
    "org.xerial.snappy:snappy-java",
)
# A download may fail once; files that were downloaded before are kept for the next attempt.
ATTEMPTS = 3
NEEDED = ("spark-sql-kafka-0-10", "spark-token-provider-kafka-0-10", "kafka-clients", "commons-pool2")


class JarsUnavailable(Exception):
    """The connector could not be resolved; the message carries the end of the resolver's output."""


def jars_directory() -> Path:
    """Folder of the jars in the cache."""
    return cache_directory() / f"spark-jars-{SPARK_VERSION}"


def connector_jars() -> list[Path]:
    """The connector's jars, which are resolved first if the cache has none; raises JarsUnavailable."""
    directory = jars_directory()
    with exclusively("spark-jars"):
        if not directory.is_dir():
            _resolve_into(directory)
    return sorted(directory.glob("*.jar"))


def _resolve_into(directory: Path) -> None:
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        # The resolver has its own repository and home folder. Otherwise a pom without its jar, left in the local Maven
        # repository by another program, would end the resolution.
        command = [
            str(_spark_submit()),
            "--packages", CONNECTOR,
            "--exclude-packages", ",".join(COMES_WITH_PYSPARK),
            "--conf", f"spark.jars.ivy={scratch}/ivy",
            "--driver-java-options", f"-Duser.home={scratch}/home",
            "--class", "org.apache.spark.sql.kafka010.KafkaSourceProvider", "no-application",
        ]  # fmt: skip
        for _ in range(ATTEMPTS):
            result = subprocess.run(
                command, capture_output=True, text=True, env={**os.environ, "SPARK_LOCAL_HOSTNAME": "localhost"}
            )
            resolved = [jar for jar in Path(scratch).glob("ivy/jars/*.jar") if any(name in jar.name for name in NEEDED)]
            if len(resolved) == len(NEEDED):
                break
        if len(resolved) != len(NEEDED):
            raise JarsUnavailable(f"{CONNECTOR} could not be resolved:\n{(result.stdout + result.stderr)[-3000:]}")
        whole = Path(scratch) / "jars"
        whole.mkdir()
        for jar in resolved:
            shutil.move(jar, whole / jar.name)
        # The folder gets its final name only once it is complete.
        os.rename(whole, directory)


def _spark_submit() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "bin" / "spark-submit"


def main() -> int:
    """Resolve the jars and print their folder; exit status 1 if they cannot be resolved."""
    try:
        connector_jars()
    except JarsUnavailable as unavailable:
        print(unavailable, file=sys.stderr)
        return 1
    print(jars_directory())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
