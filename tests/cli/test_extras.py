"""Commands whose packages are not installed say which extra brings them; a broker needs none of them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import types

import pytest

from pykafkad.__main__ import main
from pykafkad.cli import extras, output
from tests.architecture.source import PROJECT

CLIENT_COMMANDS = (
    ("topics", "list"),
    ("topics", "create", "t"),
    ("groups", "list"),
    ("groups", "describe", "g"),
    ("transactions", "list"),
    ("transactions", "abort", "id"),
    ("produce", "t", "value"),
    ("tail", "t"),
    ("export", "t", "no-such.parquet"),
    ("snapshot", "list"),
    ("snapshot", "create", "s"),
)
# Runs the command line where only the packages that serving needs can be imported.
BARE = """
import sys

class Hidden:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("kafka", "rich", "opentelemetry", "google", "waitress"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden)
from pykafkad.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def bare(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One run of the command line without any extra."""
    return subprocess.run([sys.executable, "-c", BARE, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("command", CLIENT_COMMANDS, ids=" ".join)
def test_a_client_command_without_its_library(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and one sentence that says what to install, before any broker is asked."""
    monkeypatch.setitem(sys.modules, "kafka", None)
    assert main([*command, "--bootstrap", "localhost:1"]) == 2
    shown = capsys.readouterr()
    assert shown.err == "pykafkad: the package kafka-python is not installed; pip install 'pykafkad[cli]'\n"
    assert shown.out == ""


def test_an_older_library_is_not_enough(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A project may pin kafka-python 2 for itself; the commands say that they need a newer one."""
    older = types.ModuleType("kafka")
    older.__version__ = "2.3.0"
    monkeypatch.setitem(sys.modules, "kafka", older)
    assert main(["topics", "list"]) == 2
    assert "kafka-python 2.3.0 is installed, and 3 or newer is needed" in capsys.readouterr().err


def test_a_table_at_a_terminal_without_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a table for people needs rich; columns for a pipe and JSON do not."""
    monkeypatch.setitem(sys.modules, "rich.table", None)
    output.print_table(("a",), [("1",)])
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with pytest.raises(output.Failure, match=r"rich is not installed; pip install 'pykafkad\[cli\]'") as raised:
        output.print_table(("a",), [("1",)])
    assert raised.value.exit_code == 2


def test_telemetry_without_its_package() -> None:
    """A broker that is to decode clients' metrics and cannot does not start."""
    ran = bare("serve", "--memory", "16MB", "--set", "pykafkad.client.telemetry.enable=true")
    assert ran.returncode == 2
    assert ran.stderr == (
        "pykafkad: --set: pykafkad.client.telemetry.enable: the package opentelemetry-proto is not installed; "
        "pip install 'pykafkad[telemetry]'\n"
    )


def test_control_without_its_package() -> None:
    """A broker that is to be controlled and cannot be does not start."""
    ran = bare("serve", "--memory", "16MB", "--control", "0")
    assert ran.returncode == 2
    assert ran.stderr == (
        "pykafkad: --control: the package waitress is not installed; pip install 'pykafkad[control]'\n"
    )


@pytest.mark.long
def test_the_other_commands_need_no_extra() -> None:
    """Help, versions and descriptions work without any of the packages."""
    for arguments in (("--help",), ("serve", "--help"), ("describe-apis",), ("describe-config",), ("topics", "--help")):
        ran = bare(*arguments)
        assert ran.returncode == 0 and ran.stdout, (arguments, ran.stderr)


def test_every_package_is_in_its_extra() -> None:
    """What a sentence tells people to install brings the package, and serving itself does not."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    for name, _, extra in extras.PACKAGES.values():
        assert any(each.startswith(name) for each in project["optional-dependencies"][extra]), name
        assert not any(each.startswith(name) for each in project["dependencies"]), name
