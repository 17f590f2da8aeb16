"""An exception that was raised holds the stack that it came up through, and with it the bytes of a request: what is
kept is a copy."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest

from tests.architecture.source import modules

PUTTING = ("append", "appendleft", "add", "setdefault", "put")


def kept(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """The lines where what an `except … as name` caught is put, as it is, on an object: on an attribute, or into what
    is there."""
    for handler in nodes:
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        for node in ast.walk(handler):
            if isinstance(node, ast.Assign) and any(_is_on_an_object(target) for target in node.targets):
                given = [node.value]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PUTTING:
                given = node.args if isinstance(node.func.value, ast.Attribute) else []
            else:
                continue
            if any(handler.name in _as_they_are(value) for value in given):
                yield node.lineno


def _is_on_an_object(target: ast.expr) -> bool:
    while isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Attribute)


def _as_they_are(value: ast.expr) -> set[str]:
    """The names whose objects the value of an expression holds: not those that are only asked for something."""
    if isinstance(value, ast.Name):
        return {value.id}
    if isinstance(value, ast.BoolOp):
        return set().union(*map(_as_they_are, value.values))
    if isinstance(value, ast.IfExp):
        return _as_they_are(value.body) | _as_they_are(value.orelse)
    if isinstance(value, ast.Tuple | ast.List):
        return set().union(*map(_as_they_are, value.elts))
    return set()


def test_no_exception_is_kept_as_it_was_raised() -> None:
    """What is put on an object is a copy, or has lost its traceback."""
    assert [f"{module}:{line}" for module in modules() for line in kept(module.nodes)] == []


@pytest.mark.parametrize(
    ("line", "is_kept"),
    [
        ("self.failure = error", True),
        ("self.failed[path] = error", True),
        ("log.offline = log.offline or error", True),
        ("self.jobs.append((job, error))", True),
        ("self.failure = error.copy()", False),
        ("self.code = error.code", False),
        ("failed[path] = error", False),
        ("self.told(error)", False),
    ],
)
def test_what_is_kept_is_found(line: str, is_kept: bool) -> None:
    """A guard for the guard."""
    assert bool(list(kept(ast.walk(ast.parse(f"try:\n    act()\nexcept OSError as error:\n    {line}\n"))))) is is_kept
