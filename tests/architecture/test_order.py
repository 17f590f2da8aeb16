"""No order of a set reaches anything: it differs from process to process, and a run could not be repeated.

A set may be asked what is in it. Who goes through one sorts it first, or keeps a dict."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.source import Module, modules

# Calls whose result does not depend on the order of what they are given.
UNORDERED = {"sorted", "set", "frozenset", "len", "sum", "min", "max", "any", "all"}


def _is_set(node: ast.expr) -> bool:
    """Whether an expression makes a set."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("set", "frozenset")
    return isinstance(node, ast.Set | ast.SetComp)


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _sets(module: Module) -> set[str]:
    """The names that the module gives to sets, and to nothing else."""
    names: dict[str, bool] = {}
    for node in module.nodes:
        if isinstance(node, ast.AnnAssign):
            annotation = node.annotation
            is_set = isinstance(annotation, ast.Subscript) and _name(annotation.value) in ("set", "frozenset")
            targets, is_made = [node.target], is_set or (node.value is not None and _is_set(node.value))
        elif isinstance(node, ast.Assign):
            targets, is_made = node.targets, _is_set(node.value)
        else:
            continue
        for name in filter(None, map(_name, targets)):
            names[name] = names.get(name, True) and is_made
    return {name for name, is_made in names.items() if is_made}


def _iterated(module: Module) -> Iterator[ast.expr]:
    """What loops and comprehensions go through, but for those whose order is lost again."""
    lost = set()
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in UNORDERED:
            lost |= {id(argument) for argument in node.args}
    for node in module.nodes:
        if isinstance(node, ast.For):
            yield node.iter
        elif isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp) and id(node) not in lost:
            yield from (generator.iter for generator in node.generators)


def test_nothing_goes_through_a_set_in_its_own_order() -> None:
    """Neither through one that is made on the spot, nor through one that has a name."""
    wrong = []
    for module in modules():
        named = _sets(module)
        wrong += [
            f"{module}:{each.lineno} {ast.unparse(each)}"
            for each in _iterated(module)
            if _is_set(each) or _name(each) in named
        ]
    assert wrong == []
