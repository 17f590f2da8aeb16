"""What happens where something is missing: installed, skipped by name, or with CI=true a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat_tests.brokers.broker import free_port
from compat_tests.brokers.choose import KafkaSource, KafkaUnavailable
from compat_tests.conftest import unavailable
from compat_tests.setup import cache, system_packages

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
    """Without Java there is no real Kafka, and the reason names it."""
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


def test_ports_are_below_those_of_clients() -> None:
    """A broker's port is never one that a client's own connection may have taken while the broker was away."""
    first_of_clients = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(free_port() < first_of_clients for _ in range(20))
