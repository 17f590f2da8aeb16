"""The registry of scenarios: a decorator, and the list of decorated functions."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from compat_tests.scenarios.exchange import Exchange

Scenario = Callable[[Exchange], None]
_scenarios: dict[str, Scenario] = {}
_configured: set[str] = set()
# The broker needs these to keep ACLs (every client may do everything, so no login is needed), for several directories,
# for topic settings that are not spelled as Kafka prints them, and to find soon that a transaction has timed out.
CONFIGURED = {
    "log.dirs": "{data},{data}-2,{data}-3",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "unclean.leader.election.enable": "FALSE",
    "log.cleaner.min.cleanable.ratio": "0.50",
    "log.retention.minutes": "-1",
    "log.roll.hours": "+168",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


def scenario(function: Scenario) -> Scenario:
    """Register a scenario under `<file>.<function>`."""
    name = f"{function.__module__.rsplit('.', 1)[1]}.{function.__name__}"
    assert name not in _scenarios, f"two scenarios are named {name}"
    assert function.__doc__, f"{name} has no docstring that says what Kafka does"
    _scenarios[name] = function
    return function


def configured_scenario(function: Scenario) -> Scenario:
    """Like `scenario`, for brokers with the settings of `CONFIGURED` beyond the shared ones."""
    scenario(function)
    _configured.add(f"{function.__module__.rsplit('.', 1)[1]}.{function.__name__}")
    return function


def needs_configured(name: str) -> bool:
    """Whether a scenario runs on brokers with the settings of `CONFIGURED`."""
    return name in _configured


def all_scenarios() -> dict[str, Scenario]:
    """Every scenario of every file of this package, by name."""
    package = importlib.import_module("compat_tests.scenarios")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_scenarios.items()))
