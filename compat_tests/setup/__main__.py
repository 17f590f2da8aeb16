"""`python -m compat_tests.setup`: install and build everything the compat tests need, or say what is missing.

It first prints what it is going to install and download. With `--fresh` it installs nothing: it empties the cache and
removes the images of Kafka, so that the next run downloads and builds them again.

The exit code is 0, even if something is missing (those tests are then skipped with a reason); with `CI=true` it is 1.
"""

from __future__ import annotations

import argparse
import os
import sys

from compat_tests.setup import kerberos_package, system_packages
from compat_tests.setup.cache import cache_directory
from compat_tests.setup.kafka_jars import (
    KAFKA_VERSION,
    OLDER_VERSIONS,
    JarsUnavailable,
    fetch_jars,
    fetch_older_tools,
    jars_directory,
)


def main() -> int:
    """Install packages, download the jars, and provide an image of Kafka in a container engine."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.setup", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="empty the cache and remove the images instead")
    if parser.parse_args().fresh:
        return _begin_anew()
    missing = system_packages.missing(system_packages.PROGRAMS + system_packages.SUITE_PROGRAMS)
    _announce(missing)
    problems = [system_packages.how_to_get(program) for program in system_packages.install(missing)]
    if (problem := kerberos_package.install()) is not None:
        problems.append(problem)
    if system_packages.is_present(system_packages.JAVA) and system_packages.is_present(system_packages.MAVEN):
        try:
            print(f"set-up: Kafka's jars are in {fetch_jars()}")
            for version in OLDER_VERSIONS:
                print(f"set-up: the Java client {version} is in {fetch_older_tools(version)}")
        except JarsUnavailable as error:
            problems.append(str(error))
        else:
            problems += _prepare_image()
            _archive_classes()
    for problem in problems:
        print(f"set-up: {problem}")
    return 1 if problems and os.environ.get("CI") == "true" else 0


def _announce(missing: list[system_packages.Program]) -> None:
    """Print what is going to be installed and downloaded, before it happens."""
    if not missing:
        print("set-up: every program is present, so nothing is installed and root is not needed")
    elif system_packages.can_install():
        for program in missing:
            print(f"set-up: {program.name} will be installed ({' '.join(program.packages)}), for {program.used_for}")
    if not jars_directory().is_dir():
        print(f"set-up: the jars of Kafka {KAFKA_VERSION} (128 MB) and two older clients (15 MB) will be downloaded")
    print(f"set-up: downloads and builds are kept in {cache_directory()}", flush=True)


def _begin_anew() -> int:
    # Imported late, as below.
    from compat_tests.setup.container_engine import CacheInUse
    from compat_tests.setup.fresh import start_fresh

    try:
        left = start_fresh()
    except CacheInUse as error:
        left = [str(error)]
    for sentence in left:
        print(f"set-up: {sentence}")
    return 1 if left else 0


def _archive_classes() -> None:
    # Imported late, as below.
    from compat_tests.setup import class_archive

    archive = class_archive.make(jars_directory())
    print(
        f"set-up: Kafka's classes are in {archive}"
        if archive
        else "set-up: this Java archives no classes; Kafka starts slower"
    )


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
