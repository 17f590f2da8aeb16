"""kafka-python's integration tests, from its source distribution."""

from __future__ import annotations

import sys

from compat_tests.brokers.pykafkad_process import REPOSITORY
from compat_tests.setup.kafka_jars import KAFKA_VERSION
from compat_tests.suites import security
from compat_tests.suites.counting import from_junit
from compat_tests.suites.packages import built, from_pypi
from compat_tests.suites.program import run_logged
from compat_tests.suites.suite import Outcomes, Place, Suite

VERSION = "3.0.12"
SHA256 = "4ccda3616b9aa5c353d74a97f2770d6cd1b950890d77ab0e8890e09a48eeed65"
FETCH = from_pypi("kafka-python", VERSION, SHA256)


def run(place: Place) -> Outcomes:
    """Run its own pytest with our plug-in, which replaces the module that the distribution lacks."""
    report = place.scratch / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-p", "compat_tests.suites.kafka_python_plugin", "-c", "/dev/null"]
    command += [
        "--rootdir",
        str(place.source),
        "-q",
        "--timeout",
        "200",
        "-p",
        "no:cacheprovider",
        f"--junitxml={report}",
    ]
    command += [f"test/integration/test_{part}_integration.py" for part in ("admin", "consumer", "producer")]
    environment = {
        "KAFKA_URI": f"kafka://{place.bootstrap}",
        "KAFKA_VERSION": KAFKA_VERSION,
        "KAFKA_ROOT": str(place.scratch),
        "PYTHONPATH": str(REPOSITORY),
        "PYKAFKAD_SUITE_SOURCE": str(place.source),
    }
    run_logged(command, place, place.source, environment, timeout_seconds=1400)
    return from_junit(report)


SUITE = Suite(
    name="kafka-python",
    version=VERSION,
    registry="PyPI",
    client="Python, own protocol code",
    prepare=lambda: built(f"kafka-python-{VERSION}", FETCH),
    run=run,
    # Its tests place partitions on broker 0, and look for advertised addresses in the file's settings.
    settings={
        **security.AUTHORIZER,
        "num.partitions": "4",
        "node.id": "0",
        "advertised.listeners": "PLAINTEXT://localhost:{port}",
    },
    not_run="SSL and SASL (11 tests): they start brokers by a distribution's shell scripts",
)
