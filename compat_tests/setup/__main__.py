"""`python -m compat_tests.setup`: install and build everything the compat tests need, or say what is missing.

Exit code 0, also when something is missing (the tests then skip by name), except with `CI=true`: then 1.
"""

from __future__ import annotations

import os
import sys

from compat_tests.setup import system_packages
from compat_tests.setup.kafka_jars import JarsUnavailable, fetch_jars


def main() -> int:
    """Install packages, fetch the jars, and have an image of Kafka in a container engine."""
    wanted = system_packages.PROGRAMS + system_packages.SUITE_PROGRAMS
    problems = [
        system_packages.how_to_get(program) for program in system_packages.install(system_packages.missing(wanted))
    ]
    if system_packages.is_present(system_packages.JAVA) and system_packages.is_present(system_packages.MAVEN):
        try:
            print(f"set-up: Kafka's jars are in {fetch_jars()}")
        except JarsUnavailable as error:
            problems.append(str(error))
        else:
            problems += _prepare_image()
    for problem in problems:
        print(f"set-up: {problem}")
    return 1 if problems and os.environ.get("CI") == "true" else 0


def _prepare_image() -> list[str]:
    # Imported late: the packages above can be installed without docker's Python client.
    from compat_tests.setup.container_engine import ContainerEngine, EngineUnavailable
    from compat_tests.setup.kafka_image import ImageUnavailable, kafka_image

    try:
        engine = ContainerEngine()
    except EngineUnavailable as error:
        return [f"the real Kafka will run as a plain process, not in a container: {error}"]
    try:
        name, how = kafka_image(engine.client)
        print(f"set-up: Kafka in containers comes from {how}, {name}")
    except ImageUnavailable as error:
        return [f"the real Kafka will run as a plain process, not in a container: {error}"]
    finally:
        engine.close()
    return []


if __name__ == "__main__":
    sys.exit(main())
