"""One small Spark on this machine, with the Kafka connector, for the pipeline, the tests and the measurement."""

from __future__ import annotations

import atexit
import contextlib
import functools
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spark_it.jars import connector_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stopTimeout": "60s",
}

# The jobs take a minute on two cores: the optimising compiler's threads would cost more than they save.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def spark_session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The process's Spark session, started on first use; Spark's own messages use `name`, `settings` replace ours.

    Its Java process has its own working directory, so paths for Spark must be absolute.
    """
    from pyspark.sql import SparkSession

    logging = Path(__file__).with_name("log4j2.properties")
    builder = SparkSession.builder.appName(name)
    for setting, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(setting, value)
    builder = builder.config("spark.jars", ",".join(str(jar.absolute()) for jar in connector_jars()))
    builder = builder.config(
        "spark.driver.extraJavaOptions", f"{JAVA_OPTIONS} -Dlog4j2.configurationFile={logging.as_uri()}"
    )
    # The Java process inherits the working directory, and creates folders (`artifacts`, `spark-warehouse`) in it.
    with contextlib.chdir(_working_directory()):
        return builder.getOrCreate()


@functools.cache
def _working_directory() -> str:
    """A folder that is removed when this process ends."""
    directory = tempfile.mkdtemp(prefix="spark-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory
