"""The programs that the bench calls and Kafka's jars: installed or fetched on first use, or named when missing."""

from __future__ import annotations

from pathlib import Path

from compat_tests.setup import system_packages
from compat_tests.setup.kafka_jars import JarsUnavailable, fetch_jars
from compat_tests.setup.system_packages import JAVA, MAVEN


class Missing(Exception):
    """Something that the bench cannot do without; the text says how to get it."""


def require(*programs):
    """Has the programs installed where that is possible; raises Missing with how to get the rest."""
    absent = system_packages.install(system_packages.missing(programs))
    if absent:
        raise Missing("; ".join(system_packages.how_to_get(program) for program in absent))


def kafka_libs(given=None):
    """The folder of Kafka's jars: `given`, or the cache's, filled on first use."""
    if given is not None:
        if not any(Path(given).glob("kafka_2.13-*.jar")):
            raise Missing(f"{given} holds no kafka_2.13 jar")
        require(JAVA)
        return Path(given)
    require(JAVA, MAVEN)
    try:
        return fetch_jars()
    except JarsUnavailable as error:
        raise Missing(str(error)) from error
