"""What stands in the package is used by the package: code that only tests call, or nobody, is a promise that nobody
keeps."""

from __future__ import annotations

import ast
import collections
import re

from tests.architecture.source import Module, modules

# Whole modules that are tables of Kafka's: complete on purpose.
TABLES = {"pykafkad.errors": "Kafka's error codes, all of them"}

# What users' tests call, and pytest.
OFFERED = ("pykafkad.testing", "pykafkad.pytest_plugin")

# Names that the package itself does not use, each with the reason why it is there all the same.
EXCEPTIONS = {
    "ManualClock": "the clock of tests, beside the real one so that both keep the same promises",
    "emit": "called by the standard logging",
    "getbuf": "called by the server library",
}


def _public_names(module: Module) -> list[str]:
    """Functions, classes, methods and constants that a module makes, but for names that begin with an underscore."""
    names = []
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
            names += (
                [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
                if isinstance(node, ast.ClassDef)
                else []
            )
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def _unused() -> dict[str, str]:
    """Public names that the package's source has no second time, with where they are made.

    Words are counted, not references: a name that another module happens to share is overlooked, none is suspected
    wrongly."""
    words = collections.Counter(word for module in modules() for word in re.findall(r"\w+", module.text))
    return {
        name: module.relative
        for module in modules()
        if module.name not in TABLES and not module.name.startswith(OFFERED)
        for name in _public_names(module)
        if words[name] == 1
    }


def test_every_public_name_is_used_in_the_package() -> None:
    """A function, class, method or constant that stands only where it is made is dead, or says above why it is not."""
    unused = _unused()
    assert {name: where for name, where in unused.items() if name not in EXCEPTIONS} == {}


def test_no_exception_is_stale() -> None:
    """A name that is in use, or gone, needs no exception."""
    assert set(EXCEPTIONS) - set(_unused()) == set()
