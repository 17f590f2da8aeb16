"""Who may import whom: the direction of the design's layers, and the few modules that own sockets, time, disk, threads, chance.

Changing a table here is a reviewed act: it changes the design.
"""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.architecture.source import Module, modules

# Parts of the package, and what of ours each may import. `pykafkad` alone is the package's own __init__.
ALLOWED = {
    "pykafkad": set(),
    "errors": set(),
    "effects": set(),
    "clock": set(),
    "disk": {"errors"},
    "memory_disk": {"errors", "disk", "clock"},
    "overlay_disk": {"errors", "disk"},
    "settings": {"errors", "config"},
    "config": {"errors", "settings"},
    "wire": {"errors"},
    "log": {"wire", "errors", "disk", "clock"},
    "coordinator": {"wire", "effects", "errors", "config", "clock"},
    "metadata": {"wire", "effects", "errors", "config", "settings", "clock"},
    "handlers": {"coordinator", "metadata", "log", "wire", "effects", "errors", "config", "settings", "clock"},
    "server": {"handlers", "coordinator", "metadata", "log", "wire", "effects", "errors", "config", "settings", "clock", "disk", "memory_disk", "overlay_disk", "pykafkad"},
    "cli": {"disk", "overlay_disk", "server", "handlers", "coordinator", "metadata", "log", "wire", "errors", "config", "settings", "clock", "pykafkad"},
    "__main__": {"cli"},
}

# Single modules that reach further than their part, with the reason.
REACH = {
    ("pykafkad.handlers.context", "server"): "the context's parked answers are the shell's waits",
}

# Standard modules with one owner each: only these may import them.
OWNERS = {
    "socket": {"pykafkad.server.reactor": "the loop owns every socket", "pykafkad.server.binding": "and is given them bound", "pykafkad.server.sending": "and sends through them"},
    "selectors": {"pykafkad.server.reactor": "the loop owns every socket"},
    "select": {"pykafkad.server.reactor": "the loop owns every socket"},
    "ssl": {"pykafkad.security.tls": "TLS is a byte transform"},
    "threading": {"pykafkad.server.offload": "threads take values and return events"},
    "time": {
        "pykafkad.clock": "the only one who asks the system for the time",
        "pykafkad.cli.client": "a command waits a moment before it asks a broker again",
    },
    "asyncio": {},
    "kafka": {
        "pykafkad.cli.client": "the commands' connections",
        "pykafkad.cli.topics": "names of resources, inside a connection of client.py",
        "pykafkad.cli.groups": "names of offsets, inside a connection of client.py",
    },
    "rich": {"pykafkad.cli.output": "tables at a terminal"},
}

# Calls with one owner: (module, functions) to those who may.
CALL_OWNERS = {
    ("os", ("open", "fsync", "fdatasync", "rename", "replace", "unlink", "remove", "truncate", "ftruncate", "pwrite", "pwritev")): {
        "pykafkad.disk": "the Disk",
        "pykafkad.memory_disk": "and its twin in memory",
        "pykafkad.server.logs": "opens standard error anew so that a full pipe does not block",
    },
}

# What a broker that serves must not import when it starts: each costs milliseconds of a start that has 100.
HEAVY = (
    "logging", "typing", "dataclasses", "argparse", "json", "re", "threading", "ssl", "asyncio", "inspect", "pathlib", "uuid",
    "datetime", "importlib.resources", "importlib.metadata", "decimal", "kafka", "rich", "cramjam", "email",
)  # fmt: skip

# Modules that a starting broker never loads, and that may import heavy things at their top.
NOT_SERVING = {
    "pykafkad.wire.stub": "writes messages.pyi for type checkers",
    "pykafkad.cli.commands": "the other subcommands",
    "pykafkad.cli.output": "the other subcommands",
    "pykafkad.cli.client": "the other subcommands",
    "pykafkad.cli.produce": "a subcommand",
    "pykafkad.cli.tail": "a subcommand",
    "pykafkad.cli.groups": "a subcommand",
    "pykafkad.cli.topics": "a subcommand",
    "pykafkad.cli.dump_log": "a subcommand",
    "pykafkad.cli.client_metrics": "a subcommand",
    "pykafkad.cli.describe_apis": "a subcommand",
    "pykafkad.cli.describe_config": "a subcommand",
}


def _part(name: str) -> str:
    return name.split(".")[1] if "." in name else "pykafkad"


def _ids(module: Module) -> str:
    return module.relative


@pytest.mark.parametrize("module", modules(), ids=_ids)
def test_layers(module: Module) -> None:
    """Imports between the parts of the package go one way: cli, server, handlers, cores, leaves."""
    own = _part(module.name)
    for imported, line, _ in module.imports():
        if not (imported == "pykafkad" or imported.startswith("pykafkad.")):
            continue
        part = _part(imported)
        if part not in ALLOWED:
            # A name out of a package's __init__, such as the version.
            part = "pykafkad"
        if part == own or (part == "pykafkad" and imported == "pykafkad"):
            continue
        if (module.name, part) not in REACH:
            assert part in ALLOWED[own], f"{module.relative}:{line} imports {imported}: {own} may import {sorted(ALLOWED[own])}"


@pytest.mark.parametrize("module", modules(), ids=_ids)
def test_owners(module: Module) -> None:
    """Sockets, time, threads, TLS and the client library each have one home."""
    for imported, line, _ in module.imports():
        owners = OWNERS.get(imported.split(".")[0])
        if owners is not None:
            assert module.name in owners, f"{module.relative}:{line} imports {imported}: only {sorted(owners)} may"


@pytest.mark.parametrize("module", modules(), ids=_ids)
def test_calls(module: Module) -> None:
    """Files are opened, synced and renamed in one place; nobody throws the module's dice."""
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)):
            continue
        owner, function = node.func.value.id, node.func.attr
        for (name, functions), allowed in CALL_OWNERS.items():
            if owner == name and function in functions:
                assert module.name in allowed, f"{module.relative}:{node.lineno} calls {owner}.{function}"
        if owner == "random" and function not in ("Random", "SystemRandom"):
            assert "random" not in {name for name, _, _ in module.imports()}, f"{module.relative}:{node.lineno} calls random.{function}"


@pytest.mark.parametrize("module", modules(), ids=_ids)
def test_no_global_that_changes(module: Module) -> None:
    """Any number of brokers live in one process: no module rebinds its own names from a function."""
    rebound = [f"{module.relative}:{node.lineno}" for node in ast.walk(module.tree) if isinstance(node, ast.Global)]
    assert rebound == []


@pytest.mark.parametrize("module", modules(), ids=_ids)
def test_nothing_heavy_at_the_top(module: Module) -> None:
    """What serves imports nothing heavy at its top; a rare need is imported where it arises."""
    if module.name in NOT_SERVING:
        return
    for imported, line, at_top in module.imports():
        if at_top:
            assert imported not in HEAVY and imported.split(".")[0] not in HEAVY, f"{module.relative}:{line} imports {imported} at its top"


def test_a_starting_broker_loads_nothing_heavy() -> None:
    """`python -m pykafkad serve` up to the point where it would open sockets."""
    code = (
        "import sys; before = set(sys.modules); from pykafkad.cli import serve; from pykafkad.server import node; "
        "from pykafkad.handlers import table; print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
                            capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    assert not [name for name in loaded if name in HEAVY]


def test_no_module_is_unused() -> None:
    """Every module is imported by another, or is an entry: the package's start, a subcommand, a handler of the table."""
    from pykafkad.cli.commands import COMMANDS

    entries = {"pykafkad", "pykafkad.__main__", *COMMANDS.values()}
    imported = {name for module in modules() for name, _, _ in module.imports()}
    # The stub is written by a command: python -m pykafkad.wire.stub.
    entries.add("pykafkad.wire.stub")
    unused = [
        module.name
        for module in modules()
        if module.name not in imported and module.name not in entries and not module.name.startswith("pykafkad.handlers.") and not module.is_package
    ]
    assert unused == []
