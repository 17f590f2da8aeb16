"""Programs that the compat tests call, the Debian and Ubuntu packages that contain them, and their installation."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

JAVA_VERSION = 17
RETRIES = ("-o", "Acquire::Retries=3")
# A newer release of the system may lack Java 17; its default Java is newer.
INSTEAD_OF = {f"openjdk-{JAVA_VERSION}-jdk-headless": "default-jdk-headless"}


class Program(NamedTuple):
    """One program that tests call: its name, its packages, and what the tests use it for."""

    name: str
    packages: tuple[str, ...]
    used_for: str


JAVA = Program(
    "java", (f"openjdk-{JAVA_VERSION}-jdk-headless",), "Spark, the real Kafka and Kafka's command-line tools"
)
JLINK = Program("jlink", (f"openjdk-{JAVA_VERSION}-jdk-headless",), "building the container image of Kafka")
MAVEN = Program("mvn", ("maven",), "fetching Kafka's jars")
DOCKERD = Program("dockerd", ("docker.io",), "the real Kafka in a container")
BUSYBOX = Program("busybox", ("busybox-static",), "building the container image of Kafka")
KCAT = Program("kcat", ("kcat",), "the tests of kcat")
STRACE = Program("strace", ("strace",), "the tests in which system calls fail")
NPM = Program("npm", ("nodejs", "npm"), "the tests of kafkajs")
GO = Program("go", ("golang-go",), "the suites of Go clients (1.23 or newer, also from https://go.dev/dl)")
CARGO = Program("cargo", ("cargo",), "the suites of Rust clients (1.85 or newer, also from https://rustup.rs)")
MAKE = Program("make", ("build-essential",), "librdkafka in the suites of Rust clients")
C_COMPILER = Program(
    "cc", ("gcc", "libc6-dev"), "the bench's load generator, and librdkafka in the suites of Rust clients"
)
OPENSSL = Program("openssl", ("openssl", "libssl-dev"), "the bench's load generators of TLS and logins")

KDC = Program("krb5kdc", ("krb5-kdc", "krb5-admin-server"), "the tests of logins by Kerberos")
KERBEROS_HEADERS = Program(
    "krb5-config", ("libkrb5-dev", "gcc", "libc6-dev", "python3-dev"), "building the package gssapi for these tests"
)

CHROMIUM = Program("chromium", ("chromium",), "the tests of the web page")
CHROMEDRIVER = Program("chromedriver", ("chromium-driver",), "the tests of the web page")

PROGRAMS = (
    JAVA, JLINK, MAVEN, KCAT, STRACE, NPM, DOCKERD, BUSYBOX, KDC, KERBEROS_HEADERS, CHROMIUM, CHROMEDRIVER,
)  # fmt: skip
SUITE_PROGRAMS = (GO, CARGO, MAKE, C_COMPILER)


def is_present(program: Program) -> bool:
    """Whether `program` is on the PATH, and for Java also recent enough (Kafka 4 needs 17)."""
    path = shutil.which(program.name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        return False
    if program is OPENSSL:
        # What is needed are the headers of its library.
        return Path("/usr/include/openssl/ssl.h").exists()
    return program is not JAVA or java_version() >= JAVA_VERSION


def java_version() -> int:
    """Major version of the `java` on the PATH, or 0 without one."""
    if shutil.which("java") is None:
        return 0
    shown = subprocess.run(["java", "-version"], capture_output=True, text=True).stderr
    found = re.search(r'version "(\d+)', shown)
    return int(found.group(1)) if found else 0


def missing(programs: Iterable[Program] = PROGRAMS) -> list[Program]:
    """The programs that are missing."""
    return [program for program in programs if not is_present(program)]


def can_install() -> bool:
    """Whether this process may install packages: root on Debian, Ubuntu or a system derived from them."""
    return os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def install(programs: Iterable[Program]) -> list[Program]:
    """Install the packages of `programs`; returns the programs that are still missing afterwards."""
    programs = list(programs)
    if programs and can_install():
        packages = sorted({package for program in programs for package in program.packages})
        print(f"set-up: installing {' '.join(packages)}", flush=True)
        with _NoServicesStarted():
            subprocess.run(["apt-get", *RETRIES, "update", "-q"], stdout=subprocess.DEVNULL)
            if not _installed(packages):
                # A package that this release lacks must not prevent the installation of the others.
                for package in packages:
                    _installed([package]) or _installed([INSTEAD_OF.get(package, package)])
    return missing(programs)


def _installed(packages: list[str]) -> bool:
    command = ["apt-get", *RETRIES, "install", "-y", "-q", "--no-install-recommends", *packages]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode == 0


class _NoServicesStarted:
    """While entered, package installations start no services (Debian's policy-rc.d convention).

    The engine's package would start the system's own engine; the tests start their own.
    """

    path = Path("/usr/sbin/policy-rc.d")

    def __enter__(self) -> None:
        self.written = not self.path.exists()
        if self.written:
            self.path.write_text("#!/bin/sh\nexit 101\n")
            self.path.chmod(0o755)

    def __exit__(self, *_: object) -> None:
        if self.written:
            self.path.unlink()


def how_to_get(program: Program) -> str:
    """One sentence: what is missing, its use, and how to install it on Debian and Ubuntu."""
    packages = " ".join(program.packages)
    return f"{program.name} is missing, needed for {program.used_for}: apt-get install {packages} (Debian, Ubuntu)"
