"""The README's tables are the code's tables, and every path and command in it exists."""

from __future__ import annotations

import re

import pytest

from pykafkad import __version__
from pykafkad.cli import commands, describe_apis, describe_config
from tests.architecture.source import PROJECT

README = (PROJECT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "text"), [("apis", describe_apis.markdown()), ("settings", describe_config.markdown())]
)
def test_generated_tables_are_fresh(name: str, text: str) -> None:
    """What stands between the markers is what the command prints; `make readme` renews it."""
    found = re.search(rf"<!-- {name}: begin -->\n(.*)\n<!-- {name}: end -->", README, re.DOTALL)
    assert found and found[1] == text, "run: make readme"


def test_the_bench_has_its_place() -> None:
    """`python -m tests.bench --readme README.md` writes between these markers."""
    assert "<!-- bench: begin -->" in README and "<!-- bench: end -->" in README


def test_paths_exist() -> None:
    """Every file and folder of the project that the README names in backticks."""
    named = set(re.findall(r"`((?:pykafkad|tests|compat_tests|spark_it|requirements|\.ci)/[^`\s<>…*]*)`", README))
    assert len(named) > 10
    assert [path for path in sorted(named) if not (PROJECT / path).exists()] == []


def test_commands_exist() -> None:
    """Every `make` target and `pykafkad` command that the README names."""
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", README)) <= targets
    assert set(re.findall(r"`?pykafkad ([a-z-]+)`", README)) <= set(commands.COMMANDS)


def test_the_changelog_has_this_version() -> None:
    """The newest entry is the version of the package."""
    text = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", text, re.MULTILINE)[1] == __version__
