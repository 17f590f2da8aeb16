"""How the package compares secrets."""

from __future__ import annotations

import ast

from tests.architecture.source import modules

SECRET_NAMES = ("password", "secret", "hmac", "proof", "stored_key", "server_key", "salted", "signature", "digest")

NO_SECRETS = ("_type_password",)


def _own_name(node: ast.expr) -> str:
    """What a variable, an attribute or a method that is called is named."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    name = getattr(node, "attr", None) or getattr(node, "id", "")
    assert isinstance(name, str)
    return name.lower()


def test_secrets_are_compared_in_constant_time() -> None:
    """Nothing with the name of a secret is compared by == with another variable."""
    found = [
        f"{module.relative}:{node.lineno}"
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq)
        if not any(isinstance(side, ast.Constant) for side in (node.left, *node.comparators))
        for side in (node.left, *node.comparators)
        if any(word in _own_name(side) for word in SECRET_NAMES) and _own_name(side) not in NO_SECRETS
    ]
    assert found == []
