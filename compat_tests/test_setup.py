"""Something that the tests need is missing: it is installed, the test is skipped with a reason, or fails with
CI=true.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from compat_tests.brokers.broker import PORTS, PROCESSES, free_port, ports_of
from compat_tests.brokers.choose import KafkaSource, KafkaUnavailable
from compat_tests.conftest import unavailable
from compat_tests.setup import cache, class_archive, system_packages
from compat_tests.setup.__main__ import main as set_up
from compat_tests.setup.container_engine import CacheInUse
from compat_tests.setup.fresh import start_fresh

NOWHERE = system_packages.Program("no-such-program", ("no-such-package",), "this test")


def test_a_missing_program_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing may be installed, the sentence names the program, its use and its package."""
    monkeypatch.setattr(system_packages, "can_install", lambda: False)
    assert system_packages.install([NOWHERE]) == [NOWHERE]
    sentence = system_packages.how_to_get(NOWHERE)
    assert "no-such-program" in sentence and "apt-get install no-such-package" in sentence and "this test" in sentence


def test_a_skip_is_a_failure_in_continuous_integration(monkeypatch: pytest.MonkeyPatch) -> None:
    """With CI=true nothing is skipped."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="java is missing"):
        unavailable("java is missing")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="java is missing"):
        unavailable("java is missing")


def test_no_java_and_no_way_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java there is no real Kafka, and the reason names Java."""
    monkeypatch.setattr(system_packages, "can_install", lambda: False)
    monkeypatch.setattr(system_packages, "is_present", lambda program: program is not system_packages.JAVA)
    with pytest.raises(KafkaUnavailable, match="java is missing.*openjdk"):
        KafkaSource("process")


def test_the_cache_is_outside_the_tree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Downloads go to `$XDG_CACHE_HOME/pykafkad`, else to `~/.cache/pykafkad`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_directory() == tmp_path / "pykafkad"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.cache_directory() == tmp_path / "home" / ".cache" / "pykafkad"


def test_a_fresh_start_empties_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Everything downloaded and built is removed; the locks stay, because another run may hold one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine")
    suite = cache.cache_directory() / "suites" / "one"
    suite.mkdir(parents=True)
    (suite / ".built").touch()
    (cache.cache_directory() / "loadgen").touch()
    with cache.exclusively("suites"):
        assert start_fresh() == []
    assert [path.name for path in cache.cache_directory().iterdir()] == ["suites.lock"]


def test_a_cache_in_use_is_not_emptied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """While a run uses the container engine in the cache, the cache is not emptied."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    engine = cache.cache_directory() / "engine"
    engine.mkdir()
    with open(engine / "users.lock", "w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        with pytest.raises(CacheInUse, match="another run"):
            start_fresh()
    assert engine.is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_what_an_engine_left_mounted_is_unmounted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Docker's engine leaves the mount of a network namespace behind; the cache can be emptied all the same."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine")
    point = cache.cache_directory() / "engine" / "run" / "netns" / "default"
    point.parent.mkdir(parents=True)
    point.touch()
    if subprocess.run(["mount", "--bind", "/proc/self/ns/net", str(point)], capture_output=True).returncode != 0:
        pytest.skip("this system does not let root mount")
    assert start_fresh() == []
    assert not (cache.cache_directory() / "engine").exists()


def test_installing_is_announced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """The planned installations and downloads are printed before the first of them starts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(system_packages, "can_install", lambda: True)
    monkeypatch.setattr(system_packages, "PROGRAMS", (NOWHERE,))
    monkeypatch.setattr(system_packages, "SUITE_PROGRAMS", ())
    monkeypatch.setattr(system_packages, "is_present", lambda _: False)
    announced = []

    def install(programs: Iterable[system_packages.Program]) -> list[system_packages.Program]:
        announced.append(capsys.readouterr().out)
        return list(programs)

    monkeypatch.setattr(system_packages, "install", install)
    monkeypatch.setattr(sys, "argv", ["setup"])
    monkeypatch.delenv("CI", raising=False)
    assert set_up() == 0
    assert "no-such-program will be installed (no-such-package), for this test" in announced[0]
    assert "128 MB" in announced[0] and str(tmp_path) in announced[0]
    assert "no-such-program is missing" in capsys.readouterr().out


def test_an_archive_of_classes_is_used_if_there_is_one(tmp_path: Path) -> None:
    """A virtual machine gets its options only then, and starts also with an archive that it cannot use."""
    assert class_archive.options(tmp_path / "libs") == []
    class_archive.archive_of(tmp_path / "libs").write_bytes(b"of another machine")
    options = class_archive.options(tmp_path / "libs")
    assert f"-XX:SharedArchiveFile={tmp_path}/classes.jsa" in options
    assert subprocess.run(["java", *options, "-version"], capture_output=True).returncode == 0


def test_ports_are_below_those_of_clients() -> None:
    """A broker's port is never one that a client's own connection could take while the broker is stopped."""
    first_of_clients = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(free_port() < first_of_clients for _ in range(20))


def test_processes_side_by_side_are_given_different_ports() -> None:
    """Every port belongs to one process, and all have about the same number."""
    all_ports = [port for number in range(PROCESSES) for port in ports_of(f"gw{number}")]
    assert sorted(all_ports) == list(PORTS)
    assert ports_of(f"gw{PROCESSES}") == ports_of("gw0")
