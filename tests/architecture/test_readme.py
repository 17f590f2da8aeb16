"""The documents tell the truth: their tables are the code's tables, and the paths, commands and figures in them
exist."""

from __future__ import annotations

import re

import pytest

from pykafkad import __version__
from pykafkad.cli import commands, describe_apis, describe_config
from tests.architecture.source import PROJECT

DOCUMENTS = {
    path.relative_to(PROJECT).as_posix(): path.read_text(encoding="utf-8")
    for path in (PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("*.md")))
}
README_LIMIT_BYTES = 10_000
FOLDERS = r"(?:pykafkad|tests|compat_tests|spark_it|requirements|docs|\.ci)"

# What a reader new to the code looks for: words that the map's row must have, the file it must name, and a line that
# shows that the fact lives there.
FACTS = (
    ("versions there are", "pykafkad/handlers/table.py", "ROWS"),
    ("error code", "pykafkad/errors.py", "NOT_ENOUGH_REPLICAS"),
    ("setting", "pykafkad/settings/broker.txt", "num.partitions"),
    ("message's fields", "pykafkad/wire/schemas/001_fetch.txt", "isolation_level"),
    ("counts as committed", "pykafkad/server/commits.py", "def after("),
    ("high watermark", "pykafkad/log/replica.py", "class Replica"),
    ("who asks", "pykafkad/server/session.py", "class Session"),
    ("muting", "pykafkad/server/connection.py", "class Connection"),
    ("recovery after a crash", "pykafkad/log/recovery.py", "def recover"),
    ("retention", "pykafkad/log/retention.py", "def next_due_ms"),
    ("moves between directories", "pykafkad/server/moves.py", "class Moves"),
    ("snapshots of the data", "pykafkad/server/data_snapshots.py", "class DataSnapshots"),
    ("controller's decisions", "pykafkad/metadata/controller.py", "class Controller"),
)


@pytest.mark.parametrize(
    ("document", "name", "text"),
    [
        ("docs/apis.md", "apis", describe_apis.markdown()),
        ("docs/settings.md", "settings", describe_config.markdown()),
    ],
)
def test_generated_tables_are_fresh(document: str, name: str, text: str) -> None:
    """What stands between the markers is what the command prints; `make readme` renews it."""
    found = re.search(rf"<!-- {name}: begin -->\n(.*)\n<!-- {name}: end -->", DOCUMENTS[document], re.DOTALL)
    assert found and found[1] == text, "run: make readme"


def test_the_readme_is_read_in_two_minutes() -> None:
    """What is longer goes to docs/."""
    assert len(DOCUMENTS["README.md"].encode()) <= README_LIMIT_BYTES


def test_figures_in_the_readme_are_the_benchs() -> None:
    """The README quotes rows of the bench's table, which `make bench` writes to docs/bench.md."""
    found = re.search(r"<!-- figures: begin -->\n(.*)\n<!-- figures: end -->", DOCUMENTS["README.md"], re.DOTALL)
    assert found
    rows = [re.split(r" \| ", line.strip("| ")) for line in found[1].splitlines()[2:]]
    assert len(rows) >= 5
    bench = {line.strip("| ").split(" | ")[0]: line for line in DOCUMENTS["docs/bench.md"].splitlines() if "→" in line}
    assert [row for row in rows if row[1].removesuffix(" MB") not in bench.get(row[0], "")] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_exist(document: str) -> None:
    """Every file and folder of the project that a document names in backticks, and every document it links."""
    named = set(re.findall(rf"`({FOLDERS}/[^`\s<>…*]*)`", DOCUMENTS[document]))
    # A test is named as pytest names it: by its file and its name.
    assert [path for path in sorted(named) if not (PROJECT / path.partition("::")[0]).exists()] == []
    folder = (PROJECT / document).parent
    links = set(re.findall(r"\]\(([^)#:]+)\)", DOCUMENTS[document]))
    assert [link for link in sorted(links) if not (folder / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_exist(document: str) -> None:
    """Every `make` target and `pykafkad` command that a document names."""
    text = DOCUMENTS[document]
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", text)) | set(re.findall(r"^    make ([a-z-]+)", text, re.M)) <= targets
    assert set(re.findall(r"`pykafkad ([a-z-]+)", text)) <= set(commands.COMMANDS)


def test_every_document_is_linked_from_the_readme() -> None:
    """A reader who starts at the README reaches all of them."""
    linked = set(re.findall(r"\]\(([^)#:]+\.md)\)", DOCUMENTS["README.md"]))
    assert set(DOCUMENTS) - {"README.md"} <= linked


@pytest.mark.parametrize(("words", "file", "line"), FACTS)
def test_the_map_finds_a_fact(words: str, file: str, line: str) -> None:
    """One look at the map of docs/architecture.md finds the file, and the fact is there."""
    rows = [
        row for row in DOCUMENTS["docs/architecture.md"].splitlines() if row.startswith("| ") and words in row.lower()
    ]
    assert any(f"`{file}`" in row for row in rows), rows
    assert line in (PROJECT / file).read_text(encoding="utf-8")


def test_the_changelog_has_this_version() -> None:
    """The newest entry is the version of the package."""
    text = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", text, re.MULTILINE)
    assert newest and newest[1] == __version__
