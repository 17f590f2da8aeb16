"""The package's own source, parsed once for all tests of this folder."""

from __future__ import annotations

import ast
import functools
import gc
from pathlib import Path

import pykafkad
from tests import collector

PACKAGE = Path(pykafkad.__file__).parent
PROJECT = PACKAGE.parent


class Module:
    """One source file: `name` as imported (`pykafkad.wire.batch`), `relative` as a path in the project, text and
    tree."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.relative = path.relative_to(PROJECT).as_posix()
        parts = list(path.relative_to(PROJECT).with_suffix("").parts)
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text, str(path))

    def __repr__(self) -> str:
        return self.relative

    @functools.cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of the tree, in the order of `ast.walk`, which a dozen tests share."""
        return tuple(ast.walk(self.tree))

    @functools.cached_property
    def imports(self) -> list[tuple[str, int, bool]]:
        """(module imported, line, whether it happens when this module is imported). Imports for type checkers are left
        out."""
        found: list[tuple[str, int, bool]] = []
        self._collect(self.tree.body, True, found)
        return found

    def _collect(self, body: list[ast.stmt], at_top: bool, found: list[tuple[str, int, bool]]) -> None:
        for node in body:
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                continue
            if isinstance(node, ast.Import):
                found += [(alias.name, node.lineno, at_top) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found.append((node.module or "", node.lineno, at_top))
                found += [(f"{node.module}.{alias.name}", node.lineno, at_top) for alias in node.names if node.module]
            else:
                inside = at_top and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                for field in ("body", "orelse", "finalbody"):
                    self._collect(getattr(node, field, None) or [], inside, found)
                for handler in getattr(node, "handlers", ()):
                    self._collect(handler.body, inside, found)


@functools.cache
def modules() -> tuple[Module, ...]:
    """Every module of the package."""
    # Some hundred thousand objects that stay: the collector must look at them neither now nor whenever another test
    # calls it.
    gc.disable()
    parsed = tuple(Module(path) for path in sorted(PACKAGE.rglob("*.py")))
    gc.enable()
    collector.freeze()
    return parsed


@functools.cache
def project_files() -> tuple[Path, ...]:
    """Python files of the project: the package and its tests, without what was installed or built."""
    folders = ("pykafkad", "tests", "compat_tests", "spark_it")
    return tuple(path for folder in folders for path in sorted((PROJECT / folder).rglob("*.py")))
