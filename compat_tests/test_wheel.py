"""The wheel is built, installed beside packages that other projects pin, and run there.

A project that tests with pykafkad has its own client in its own version; the broker's dependencies must not conflict
with it.
"""

from __future__ import annotations

import email.message
import email.parser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from compat_tests.conftest import unavailable

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = ("pykafkad", "pyproject.toml", "README.md", "LICENSE")
NO_NETWORK = re.compile(r"NewConnectionError|Temporary failure in name resolution|Network is unreachable|timed out")
# The environments: our extras, and other projects' pins.
BESIDE = (
    ("", ()),
    ("", ("kafka-python<3",)),
    ("", ("rich<14",)),
    ("", ("protobuf<5",)),
    ("[cli]", ("rich<14",)),
)
# Write one record and read it back with the client of the environment.
ROUND_TRIP = """
import sys
from kafka import KafkaConsumer, KafkaProducer, __version__

producer = KafkaProducer(bootstrap_servers=sys.argv[1])
producer.send("own", b"from an older client").get(30)
producer.close()
consumer = KafkaConsumer("own", bootstrap_servers=sys.argv[1], group_id="g", auto_offset_reset="earliest")
print(__version__, next(consumer).value.decode())
consumer.close()
"""
DECODE = """
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from pykafkad.handlers import otlp

data = MetricsData()
metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="records")
metric.gauge.data_points.add(as_int=7)
print(otlp.decode(0, data.SerializeToString(), 1 << 20)[1][0]["points"][0]["value"])
"""


class Environment:
    """A virtual environment with the wheel in it."""

    def __init__(self, directory: Path) -> None:
        self.bin = directory / "bin"
        # Nothing from the tests' own environment or from this source tree can be imported there.
        self._variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self._directory = directory

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment to its end."""
        return subprocess.run(
            [str(self.bin / program), *arguments],
            cwd=self._directory,
            env=self._variables,
            capture_output=True,
            text=True,
            timeout=120,
        )

    @contextmanager
    def broker(self, *options: str) -> Iterator[str]:
        """Start a broker of the environment; yields its address."""
        command = [str(self.bin / "pykafkad"), "serve", "--listen", "localhost:0", "--memory", "64MB", *options]
        with subprocess.Popen(
            command, cwd=self._directory, env=self._variables, stdout=subprocess.PIPE, text=True
        ) as running:
            try:
                assert running.stdout is not None
                line = running.stdout.readline()
                assert line.startswith("pykafkad ready on "), line
                yield line.split()[-1]
            finally:
                running.terminate()
        assert running.returncode == 0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the sources because a build leaves folders behind."""
    copied, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, copied / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copied)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, "-w", str(built), str(copied)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = built.glob("*.whl")
    return path


def installed(wheel: Path, extras: str, beside: tuple[str, ...], directory: Path) -> Environment:
    """A new environment with the wheel, its extras and the packages beside it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    command = [sys.executable, "-m", "pip", "--python", str(directory / "bin" / "python"), "install", "--quiet"]
    done = subprocess.run([*command, f"pykafkad{extras} @ {wheel.as_uri()}", *beside], capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode != 0 and NO_NETWORK.search(said):
        unavailable(f"packages cannot be fetched: {said[-500:]}")
    assert done.returncode == 0, said
    return Environment(directory)


def packages(environment: Environment) -> set[str]:
    """Names of the installed packages of an environment."""
    program = "import importlib.metadata as m; print(*(each.metadata['Name'] for each in m.distributions()))"
    return set(environment.run("python", "-c", program).stdout.split())


def metadata(wheel: Path) -> email.message.Message:
    """The wheel's METADATA."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        return email.parser.Parser().parsestr(archive.read(name).decode())


def test_what_the_wheel_says_of_itself(wheel: Path) -> None:
    """The metadata has author, addresses, classifiers and extras; serving needs only two packages."""
    said = metadata(wheel)
    assert said["Author"] == "The pykafkad authors"
    addresses = {each.partition(",")[0] for each in said.get_all("Project-URL")}
    assert addresses == {"Documentation", "Changelog", "Source"}
    classifiers = said.get_all("Classifier")
    assert "Typing :: Typed" in classifiers
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 15)} <= set(classifiers)
    needed = [each for each in said.get_all("Requires-Dist") if "extra ==" not in each]
    assert sorted(re.match(r"[\w-]+", each)[0] for each in needed) == ["cramjam", "crc32c"]
    assert {"cli", "telemetry", "all"} <= set(said.get_all("Provides-Extra"))


def test_pytest_finds_the_plugin(wheel: Path) -> None:
    """By the entry point, and the module is there."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.endswith(".dist-info/entry_points.txt")]
        assert "[pytest11]\npykafkad = pykafkad.pytest_plugin\n" in archive.read(name).decode()
        assert "pykafkad/pytest_plugin.py" in archive.namelist()


def test_the_wheel_is_complete(wheel: Path) -> None:
    """The wheel has every file of the package except byte code, also data files."""
    files = {
        path.relative_to(REPOSITORY).as_posix()
        for path in (REPOSITORY / "pykafkad").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        assert files == {name for name in archive.namelist() if name.startswith("pykafkad/")}


@pytest.mark.parametrize(
    ("extras", "beside"), BESIDE, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_beside_what_others_pin(wheel: Path, extras: str, beside: tuple[str, ...], tmp_path: Path) -> None:
    """The wheel can be installed there, and its broker takes and returns records, also compressed ones."""
    environment = installed(wheel, extras, beside, tmp_path / "environment")
    if not beside:
        assert packages(environment) == {"pykafkad", "cramjam", "crc32c"}
    with environment.broker("--topic", "t") as bootstrap:
        with KafkaProducer(bootstrap_servers=bootstrap, compression_type="zstd") as producer:
            producer.send("t", b"value" * 100).get(60)
        with KafkaConsumer("t", bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
            assert next(consumer).value == b"value" * 100
        if "kafka-python<3" in beside:
            ran = environment.run("python", "-c", ROUND_TRIP, bootstrap)
            assert re.fullmatch(r"2\.\S+ from an older client\n", ran.stdout), ran.stdout + ran.stderr
        listed = environment.run("pykafkad", "topics", "list", "--bootstrap", bootstrap)
        if "cli" in extras:
            assert listed.returncode == 0 and "\nt\t" in listed.stdout, listed.stderr
        else:
            assert listed.returncode == 2 and "pip install 'pykafkad[cli]'" in listed.stderr, listed.stderr


def test_telemetry_beside_an_older_protobuf(wheel: Path, tmp_path: Path) -> None:
    """Clients' metrics are decoded with another project's protobuf; without the extra the broker says what is
    missing.
    """
    environment = installed(wheel, "[telemetry]", ("protobuf<5",), tmp_path / "environment")
    ran = environment.run("python", "-c", DECODE)
    assert ran.stdout == "7\n", ran.stderr
    with environment.broker("--set", "pykafkad.client.telemetry.enable=true"):
        pass
