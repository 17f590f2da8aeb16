"""The scenarios that there are: a decorator, and the list of what it decorated."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from compat_tests.scenarios.exchange import Exchange

Scenario = Callable[[Exchange], None]
_scenarios: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    """Register a scenario under `<file>.<function>`."""
    name = f"{function.__module__.rsplit('.', 1)[1]}.{function.__name__}"
    assert name not in _scenarios, f"two scenarios are named {name}"
    assert function.__doc__, f"{name} does not say what Kafka does"
    _scenarios[name] = function
    return function


def all_scenarios() -> dict[str, Scenario]:
    """Every scenario of every file of this package, by name."""
    package = importlib.import_module("compat_tests.scenarios")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_scenarios.items()))
