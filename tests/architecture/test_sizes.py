"""Small files and functions; docstrings; no loose ends; nothing in the repository about where or by whom it was
made."""

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
LONG_FUNCTIONS: dict[tuple[str, str], str] = {
    ("pykafkad/log/partition_log.py", "append_batch"): "the hottest function: each call in it would cost every batch",
}

FORBIDDEN_WORDS = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
FORBIDDEN_NAMES = ("manager", "helper", "util", "utils", "process_data")
MACHINE_PATHS = re.compile(r"/(?:work|tmp/team)\b")


def _lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def test_there_is_something_to_look_at() -> None:
    """All that is said of every module and every file says nothing of none."""
    assert len(modules()) > 200 and len(project_files()) > 400


def test_file_size() -> None:
    """No file is longer than a reader holds in mind."""
    sizes = {path.relative_to(PROJECT).as_posix(): _lines(path) for path in project_files()}
    assert {name: lines for name, lines in sizes.items() if lines > FILE_LINES and name not in LONG_FILES} == {}


def test_function_size() -> None:
    """No function is longer than a screen."""
    sizes = [
        (f"{module.relative}:{node.lineno}", node.name, node.end_lineno - node.lineno + 1)
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (module.relative, node.name) not in LONG_FUNCTIONS
    ]
    assert [row for row in sizes if row[2] > FUNCTION_LINES] == []


def test_exceptions_are_still_needed() -> None:
    """A file or function in the lists above that has become short leaves the list."""
    assert [name for name in LONG_FILES if _lines(PROJECT / name) <= FILE_LINES] == []
    for (relative, name), _ in LONG_FUNCTIONS.items():
        module = next(module for module in modules() if module.relative == relative)
        sizes = [
            node.end_lineno - node.lineno + 1
            for node in module.nodes
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]
        assert sizes and max(sizes) > FUNCTION_LINES, (relative, name)


def test_module_docstring() -> None:
    """Every module opens by saying what it is."""
    docstrings = {module: ast.get_docstring(module.tree) or "" for module in modules()}
    assert [module for module, docstring in docstrings.items() if len(docstring) < 20] == []
    packages = {
        module: docstring for module, docstring in docstrings.items() if module.is_package and module.name != "pykafkad"
    }
    silent = [
        module
        for module, docstring in packages.items()
        if not re.search(r"must\s+not\s+know|knows\s+no", docstring, re.IGNORECASE)
    ]
    assert silent == [], "a package says what it knows and must not know"


def test_public_docstrings() -> None:
    """Public functions and classes at the top of a module say what they are."""
    # A handler's one function is what its module's docstring is about.
    public = [
        (module, node)
        for module in modules()
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_") and node.name != "handle"
    ]
    assert [f"{module}:{node.lineno} {node.name}" for module, node in public if not ast.get_docstring(node)] == []


def test_no_loose_ends() -> None:
    """Nothing is left to do in a comment, and no path of somebody's machine stands in the source."""
    words = re.compile(rf"\b(?:{'|'.join(FORBIDDEN_WORDS)})\b")
    loose = [
        f"{path}:{number}: {line}"
        for path in project_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if words.search(line) or (MACHINE_PATHS.search(line) and path != Path(__file__))
    ]
    assert loose == []


def test_names_say_something() -> None:
    """No manager, helper or util: such a name says that nobody knew what the thing is."""
    assert {module: words for module in modules() if (words := _words(module) & set(FORBIDDEN_NAMES))} == {}


def _words(module: Module) -> set[str]:
    """Those that the names of a module and its classes are made of."""
    words = set(module.name.rpartition(".")[2].split("_"))
    for node in module.nodes:
        if isinstance(node, ast.ClassDef):
            words.update(re.sub(r"([A-Z])", r"_\1", node.name).lower().split("_"))
    return words


def test_top_level_of_the_project() -> None:
    """Files at the top of the repository, and no others."""
    listed = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in listed.stdout.splitlines()}
    known = {
        ".ci", ".dockerignore", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md",
        "compat_tests", "conftest.py", "container", "docs", "examples", "pykafkad", "pyproject.toml", "requirements",
        "spark_it", "tests",
    }  # fmt: skip
    assert top <= known, sorted(top - known)
