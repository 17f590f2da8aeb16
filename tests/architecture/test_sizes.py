"""Small files and functions; docstrings; no loose ends; nothing in the repository about where or by whom it was made."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.source import PROJECT, Module, modules, project_files

FILE_LINES = 500
FUNCTION_LINES = 70

# Files and functions that are longer, with the reason.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[tuple[str, str], str] = {}

FORBIDDEN_WORDS = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
FORBIDDEN_NAMES = ("manager", "helper", "util", "utils", "process_data")
MACHINE_PATHS = re.compile(r"/(?:work|tmp/team)\b")


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


@pytest.mark.parametrize("path", project_files(), ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_file_size(path: Path) -> None:
    """No file is longer than a reader holds in mind."""
    relative = path.relative_to(PROJECT).as_posix()
    if relative not in LONG_FILES:
        assert _lines(path) <= FILE_LINES, f"{relative} has {_lines(path)} lines"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.relative)
def test_function_size(module: Module) -> None:
    """No function is longer than a screen."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (module.relative, node.name) not in LONG_FUNCTIONS:
            lines = node.end_lineno - node.lineno + 1
            assert lines <= FUNCTION_LINES, f"{module.relative}:{node.lineno} {node.name} has {lines} lines"


def test_exceptions_are_still_needed() -> None:
    """A file or function in the lists above that has become short leaves the list."""
    assert [name for name in LONG_FILES if _lines(PROJECT / name) <= FILE_LINES] == []
    for (relative, name), _ in LONG_FUNCTIONS.items():
        module = next(module for module in modules() if module.relative == relative)
        sizes = [node.end_lineno - node.lineno + 1 for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef) and node.name == name]
        assert sizes and max(sizes) > FUNCTION_LINES, (relative, name)


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.relative)
def test_module_docstring(module: Module) -> None:
    """Every module opens by saying what it is."""
    docstring = ast.get_docstring(module.tree)
    assert docstring and len(docstring) >= 20, module.relative
    if module.is_package and module.name != "pykafkad":
        assert re.search(r"must not know|knows no", docstring, re.IGNORECASE), f"{module.relative}: a package says what it knows and must not know"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.relative)
def test_public_docstrings(module: Module) -> None:
    """Public functions and classes at the top of a module say what they are."""
    for node in module.tree.body:
        # A handler's one function is what its module's docstring is about.
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_") and node.name != "handle":
            assert ast.get_docstring(node), f"{module.relative}:{node.lineno} {node.name}"


@pytest.mark.parametrize("path", project_files(), ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_no_loose_ends(path: Path) -> None:
    """Nothing is left to do in a comment, and no path of somebody's machine stands in the source."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        assert not any(re.search(rf"\b{word}\b", line) for word in FORBIDDEN_WORDS), f"{path}:{number}: {line}"
        if path != Path(__file__):
            assert not MACHINE_PATHS.search(line), f"{path}:{number}: {line}"


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.relative)
def test_names_say_something(module: Module) -> None:
    """No manager, helper or util: such a name says that nobody knew what the thing is."""
    words = set(module.name.rpartition(".")[2].split("_"))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            words.update(re.sub(r"([A-Z])", r"_\1", node.name).lower().split("_"))
    assert not words & set(FORBIDDEN_NAMES), module.relative


def test_top_level_of_the_project() -> None:
    """Files at the top of the repository, and no others."""
    listed = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in listed.stdout.splitlines()}
    known = {
        ".ci", ".gitignore", "CHANGELOG.md", "LICENSE", "Makefile", "README.md", "compat_tests", "conftest.py", "pykafkad",
        "pyproject.toml", "requirements", "spark_it", "tests",
    }  # fmt: skip
    assert top <= known, sorted(top - known)
