"""Certificates for `pykafkad serve --tls`: made once, kept while they are good, and said why not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cryptography import x509

from pykafkad.cli import certificates, extras
from pykafkad.errors import ConfigError, StartFailure
from pykafkad.server.logs import Sink, process_logs


def read(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / name).read_bytes())


def test_they_are_made_once(tmp_path: Path) -> None:
    """A second start finds them."""
    folder = tmp_path / "new" / "data"
    found = certificates.provide(str(folder), ["kafka.example.com", "10.0.0.7"])
    assert found["ssl.keystore.location"] == str(folder / "tls-broker.pem")
    assert found["ssl.truststore.location"] == str(folder / "tls-ca.pem")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert sorted(before) == ["tls-broker.pem", "tls-ca.pem", "tls-client.pem"]
    certificates.provide(str(folder), ["kafka.example.com"])
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    names = read(folder, "tls-broker.pem").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"localhost", "kafka.example.com"} <= set(names.get_values_for_type(x509.DNSName))
    assert {"127.0.0.1", "10.0.0.7"} <= set(map(str, names.get_values_for_type(x509.IPAddress)))


def test_they_are_made_anew_for_another_host_and_before_they_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What clients trust changes then, too."""
    certificates.provide(str(tmp_path), [])
    first = read(tmp_path, "tls-ca.pem")
    certificates.provide(str(tmp_path), ["another.example.com"])
    second = read(tmp_path, "tls-ca.pem")
    assert first != second
    monkeypatch.setattr(certificates, "_LEFT_DAYS", 366)
    certificates.provide(str(tmp_path), ["another.example.com"])
    assert read(tmp_path, "tls-ca.pem") != second
    (tmp_path / "tls-client.pem").unlink()
    monkeypatch.undo()
    certificates.provide(str(tmp_path), [])
    assert (tmp_path / "tls-client.pem").exists()


def test_they_outlive_the_machines_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start of a container has another. Where clients need another authority, a line says why."""
    lines: list[bytes] = []
    monkeypatch.setattr(process_logs(), "sink", Sink(lambda data: lines.append(data) or len(data)))
    certificates.provide(str(tmp_path), [])
    names = read(tmp_path, "tls-broker.pem").extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert os.uname().nodename in names.get_values_for_type(x509.DNSName)
    first = read(tmp_path, "tls-ca.pem")
    machine = os.uname_result(("Linux", "f00dcafe", "", "", ""))
    monkeypatch.setattr(certificates.os, "uname", lambda: machine)
    certificates.provide(str(tmp_path), [])
    assert read(tmp_path, "tls-ca.pem") == first and lines == []
    certificates.provide(str(tmp_path), ["f00dcafe"])
    assert read(tmp_path, "tls-ca.pem") != first
    (tmp_path / "tls-client.pem").unlink()
    certificates.provide(str(tmp_path), [])
    assert [line.decode().partition(" WARNING ")[2].partition(" consequence")[0] for line in lines] == [
        'server authority-made-anew reason="tls-broker.pem is not for f00dcafe"',
        'server authority-made-anew reason="tls-client.pem is gone"',
    ]


def test_what_stands_in_the_way_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is no certificate, a folder that cannot be made, and the library that is missing."""
    certificates.provide(str(tmp_path), [])
    (tmp_path / "tls-ca.pem").write_text("mine")
    with pytest.raises(ConfigError, match="--tls: .*tls-ca.pem is no certificate: .*; remove it"):
        certificates.provide(str(tmp_path), [])
    with pytest.raises(StartFailure, match="--tls: no certificates in .*: Not a directory"):
        certificates.provide(str(tmp_path / "tls-ca.pem" / "below"), [])
    monkeypatch.setitem(extras.PACKAGES, "cryptography.x509", ("cryptography", 999, "tls"))
    monkeypatch.setitem(__import__("sys").modules, "cryptography.x509", None)
    with pytest.raises(ConfigError, match=r"--tls: the package cryptography .*pip install 'pykafkad\[tls\]'"):
        certificates.provide(str(tmp_path), [])


def test_private_keys_are_never_for_everybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a moment, whatever the file mode mask of the process is."""
    opened: dict[str, int] = {}
    change_mode = os.fchmod

    def note(descriptor: int, mode: int) -> None:
        opened[os.readlink(f"/proc/self/fd/{descriptor}")] = os.fstat(descriptor).st_mode & 0o777
        change_mode(descriptor, mode)

    monkeypatch.setattr(certificates.os, "fchmod", note)
    mask = os.umask(0)
    try:
        certificates.provide(str(tmp_path), [])
        assert opened == {str(tmp_path / name): 0o600 for name in ("tls-client.pem", "tls-broker.pem")}
        (tmp_path / "tls-broker.pem").chmod(0o644)
        certificates.provide(str(tmp_path), ["elsewhere"])
        assert (tmp_path / "tls-broker.pem").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(mask)
