"""rskafka's integration tests, from its crate."""

from __future__ import annotations

from pathlib import Path

from compat_tests.suites import rust, security
from compat_tests.suites.packages import built, from_crates_io
from compat_tests.suites.suite import Outcomes, Place, Suite

VERSION = "0.6.0"
FETCH = from_crates_io("rskafka", VERSION, "849b87417a191e37e16b8893eba8928bbd10e1989e6b57c4f8531549eaa29bdc")


def build(source: Path) -> None:
    """Newer compilers refuse the rsasl version that the crate locks."""
    rust.build(source, updates=["rsasl@2.3.1"], unused=["criterion", "proptest", "proptest-derive"])


def run(place: Place) -> Outcomes:
    """All tests except those that call Java by JNI or use a SOCKS proxy; without these they pass without testing
    anything.
    """
    environment = {
        "TEST_INTEGRATION": "1",
        "TEST_BROKER_IMPL": "kafka",
        "KAFKA_CONNECT": place.bootstrap,
        "KAFKA_SASL_CONNECT": "localhost:9093",
    }
    return rust.run(place, environment, skip=["java", "socks5"])


SUITE = Suite(
    name="rskafka",
    version=VERSION,
    registry="crates.io",
    client="Rust, own protocol code",
    prepare=lambda: built(f"rskafka-{VERSION}", FETCH, build),
    run=run,
    fixed_port=True,
    settings={"auto.create.topics.enable": "false"},
    login_settings=security.sasl_listener({"admin": "admin-secret"}, ["admin"]),
    not_run="the cases with a Java client (through JNI) or a SOCKS proxy",
)
