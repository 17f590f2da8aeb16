"""Who may import whom, the direction of the design's layers; who alone owns sockets, time, disk, threads and chance.

Changing a table here is a reviewed act: it changes the design.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

from tests.architecture.source import Module, modules

# Parts of the package, and what of ours each may import. `pykafkad` alone is the package's own __init__.
ALLOWED = {
    "pykafkad": set(),
    "errors": set(),
    "effects": set(),
    "clock": set(),
    "portable_poller": set(),
    "platform_calls": {"portable_poller"},
    "disk": {"errors", "platform_calls"},
    "memory_disk": {"errors", "disk", "platform_calls", "clock"},
    "overlay_disk": {"errors", "disk", "platform_calls"},
    "settings": {"errors", "config"},
    "config": {"errors", "settings"},
    "wire": {"errors"},
    "uuids": set(),
    "sasl": {"errors", "config", "settings"},
    "quotas": {"errors"},
    "http_server": {"errors", "http_door"},
    "http_door": set(),
    "log": {"wire", "uuids", "errors", "disk", "clock"},
    # Of the settings only their regular expressions: consumers subscribe with those of RE2.
    "coordinator": {"wire", "effects", "errors", "config", "settings", "clock"},
    "metadata": {"wire", "uuids", "effects", "errors", "config", "settings", "clock"},
    # A part of the metadata that has a package of its own. Its requests name this software and its version.
    "raft": {"metadata", "wire", "uuids", "effects", "errors", "pykafkad"},
    "handlers": {"coordinator", "metadata", "log", "wire", "uuids", "effects", "errors", "config", "settings", "clock"},
    "server": {
        "handlers",
        # Only for a quorum of several members.
        "raft",
        "sasl",
        "quotas",
        "coordinator",
        "metadata",
        "log",
        "wire",
        "uuids",
        "effects",
        "errors",
        "config",
        "settings",
        "clock",
        "disk",
        "platform_calls",
        "memory_disk",
        "overlay_disk",
        "pykafkad",
    },
    "cli": {
        # Two brokers side by side.
        "differential",
        # Only for serve --control and --registry.
        "control",
        "registry",
        "testing",
        # Only for serve --oauth.
        "issuer",
        "sasl",
        "disk",
        "overlay_disk",
        "server",
        "handlers",
        "coordinator",
        "metadata",
        "log",
        "wire",
        "uuids",
        "errors",
        "config",
        "settings",
        "clock",
        "pykafkad",
    },
    # A test's broker, with what a test asks of it by the wire.
    "testing": {
        # What a command line has for tests: certificates, users and ACLs in words, options of clients.
        "cli",
        # Only for Broker(control=True).
        "control",
        # Only for Broker(registry=True).
        "registry",
        # Only for traces that are written as recordings.
        "differential",
        "server",
        "handlers",
        "log",
        "metadata",
        "wire",
        "errors",
        "config",
        "settings",
        "clock",
        "disk",
        "memory_disk",
    },
    "control": {
        "testing",
        "cli",
        "registry",
        "server",
        "http_server",
        "http_door",
        "errors",
        "settings",
        "clock",
        "pykafkad",
    },
    # A token end point of tests.
    # Schemas of a test's clients: a client of the broker beside it.
    "registry": {"testing", "cli", "server", "http_server", "settings", "errors"},
    "differential": {"clock", "server", "handlers", "wire", "uuids", "errors", "pykafkad"},
    "issuer": {"http_server", "server", "errors", "clock"},
    "pytest_plugin": {"testing", "errors"},
    "__main__": {"cli"},
}

# Standard modules with one owner each: only these may import them.
OWNERS = {
    "socket": {
        "pykafkad.server.binding": "the reactor is given sockets bound",
        "pykafkad.server.sending": "and sends through them",
        "pykafkad.server.network": "sockets that connect",
        "pykafkad.testing.wire_client": "what a test asks its broker",
        "pykafkad.http_server": "the server library is given a socket bound",
        "pykafkad.testing.served_broker": "a pair of sockets: what the servers beside a broker ask it",
        "pykafkad.differential.links": "a program stands between clients and brokers",
        "pykafkad.cli.reach": "a command says why no broker answers",
        "pykafkad.portable_poller": "a pair of sockets wakes the loop where there is no pipe to do so",
    },
    "selectors": {"pykafkad.portable_poller": "stands in for epoll"},
    "select": {"pykafkad.platform_calls": "chooses what tells which sockets are ready"},
    "ssl": {
        "pykafkad.server.tls_transport": "TLS is a byte transform",
        "pykafkad.server.tls_endpoint": "what its transports share",
        "pykafkad.server.tls_settings": "and its keys and rules",
        "pykafkad.server.tls_client": "the same from here to other nodes",
        "pykafkad.testing.client_configs": "what a test's client trusts",
        "pykafkad.server.http_fetch": "what an issuer of tokens publishes comes by HTTPS",
        "pykafkad.server.tls_renewal": "and what renews them",
        "pykafkad.cli.tls": "a command's connections, and why they can't be encrypted",
    },
    "threading": {
        "pykafkad.differential.tee": "a thread for each connection of a client",
        "pykafkad.differential.replay": "waits for a broker that is not ready",
        "pykafkad.server.offload": "threads take values and return events",
        "pykafkad.server.child_nodes": "a thread waits for the end of each child",
        "pykafkad.server.node_process": "a thread waits for the end of the parent",
        "pykafkad.testing.embedded": "the thread of a test's broker",
        "pykafkad.testing.tenants": "the thread of a test's tenants",
        "pykafkad.testing.broker_loop": "threads wait for what they ask of it",
        "pykafkad.http_server": "the threads of the control API, and of a token end point",
        "pykafkad.testing.served_broker": "the main thread is the broker's",
        "pykafkad.registry.application": "requests to the registry take turns",
        "pykafkad.control.route": "requests to the control API take turns",
        "pykafkad.control.by_schema": "the control API's threads share what they have learnt of schemas",
        "pykafkad.testing.child": "a test's threads take turns",
        "pykafkad.cli.token_source": "the threads of a client take turns",
        "pykafkad.testing.wire_client": "a test's threads take turns",
    },
    "time": {
        "pykafkad.clock": "the only one who asks the system for the time",
        "pykafkad.cli.client": "a command waits a moment before it asks a broker again",
        "pykafkad.testing.waits": "a test waits for its broker",
        "pykafkad.http_door": "a client that does not read is noticed, by the clock of the server library",
        "pykafkad.testing.records": "the time of a record that a test writes",
        "pykafkad.cli.cluster_moves": "waits for moves of replicas",
        "pykafkad.cli.programs": "waits for the end of a program's processes",
    },
    "asyncio": {"pykafkad.testing.token_providers": "what aiokafka awaits"},
    "kafka": {
        "pykafkad.cli.token_login": "a token provider is one of its classes",
        "pykafkad.cli.client": "the commands' connections",
        "pykafkad.cli.client_login": "and their logins",
        "pykafkad.cli.kerberos_login": "a login mechanism is one of its classes",
        "pykafkad.cli.token_scram": "a login mechanism is one of its classes",
        "pykafkad.cli.acls": "requests about ACLs, inside a connection of client.py",
        "pykafkad.cli.topics": "names of resources, inside a connection of client.py",
        "pykafkad.cli.topic_changes": "names of resources, inside a connection of client.py",
        "pykafkad.cli.cluster": "names of errors, inside a connection of client.py",
        "pykafkad.cli.cluster_state": "requests about brokers and replicas, inside a connection of client.py",
        "pykafkad.cli.cluster_moves": "requests to the controller, inside a connection of client.py",
        "pykafkad.cli.groups": "names of offsets, inside a connection of client.py",
        "pykafkad.cli.transactions": "names of errors and of an abort, inside a connection of client.py",
    },
    "rich": {"pykafkad.cli.output": "tables at a terminal"},
    "waitress": {"pykafkad.http_door": "HTTP"},
}

# Calls with one owner: (module, functions) to those who may.
CALL_OWNERS = {
    (
        "os",
        (
            "open",
            "fsync",
            "fdatasync",
            "rename",
            "replace",
            "unlink",
            "remove",
            "truncate",
            "ftruncate",
            "pwrite",
            "pwritev",
        ),
    ): {
        "pykafkad.disk": "the Disk",
        "pykafkad.cli.private_files": "opens private keys and recordings for nobody else",
        "pykafkad.platform_calls": "and what it asks of the system",
        "pykafkad.memory_disk": "and its twin in memory",
        "pykafkad.server.logs": "opens standard error anew, and the audit's file, so that a full pipe does not block",
    },
}

# What a broker that serves must not import when it starts: each costs milliseconds of a start that has 100.
HEAVY = (
    "logging", "typing", "dataclasses", "argparse", "json", "re", "threading", "ssl", "asyncio", "inspect", "pathlib",
    "uuid",
    "datetime", "importlib.resources", "importlib.metadata", "decimal", "kafka", "rich", "cramjam", "email", "hashlib",
    "waitress",
)  # fmt: skip

# Modules that a starting broker never loads, and that may import heavy things at their top.
NOT_SERVING = {
    "pykafkad.server.tls_transport": "only for a listener that encrypts",
    "pykafkad.server.tls_endpoint": "only for a listener that encrypts",
    "pykafkad.server.tls_settings": "only for a listener that encrypts",
    "pykafkad.server.tls_client": "only for a node that reaches others by TLS",
    "pykafkad.server.tls_renewal": "only for a listener that encrypts",
    "pykafkad.server.audit": "only for a broker with pykafkad.audit.file",
    "pykafkad.server.child_nodes": "only for serve --processes, in the process that serves nothing",
    "pykafkad.server.key_stores": "only for a listener that encrypts",
    "pykafkad.server.certificate_names": "only for a listener that encrypts",
    "pykafkad.sasl.compact_jwt": "only for a listener with OAUTHBEARER",
    "pykafkad.sasl.jwks": "only for a listener with OAUTHBEARER",
    "pykafkad.sasl.oauthbearer": "only for a listener with OAUTHBEARER",
    "pykafkad.sasl.kerberos_names": "only for a listener with GSSAPI",
    "pykafkad.settings.java_replacements": "only for rules that shorten names",
    "pykafkad.pytest_plugin": "imported by pytest, which has imported more",
    "pykafkad.testing.broker": "a test's broker",
    "pykafkad.testing.child": "a test's broker",
    "pykafkad.testing.cluster_client": "a test's brokers",
    "pykafkad.testing.cluster_faults": "a test's brokers",
    "pykafkad.testing.embedded_cluster": "a test's brokers",
    "pykafkad.testing.embedded_quorum": "a test's controllers",
    "pykafkad.testing.embedded": "a test's broker",
    "pykafkad.testing.tenants": "a test's brokers",
    "pykafkad.testing.failure_report": "a test's broker",
    "pykafkad.testing.faults": "a test's broker",
    "pykafkad.testing.groups": "a test's broker",
    "pykafkad.testing.guard": "a test's broker",
    "pykafkad.testing.log_bridge": "a test's broker",
    "pykafkad.testing.options": "a test's broker",
    "pykafkad.testing.records": "a test's broker",
    "pykafkad.testing.lint": "a test's broker",
    "pykafkad.testing.lint_upgrades": "a test's broker",
    "pykafkad.testing.deliveries": "what a test asserts",
    "pykafkad.testing.settings": "a test's broker",
    "pykafkad.testing.snapshots": "a test's broker",
    "pykafkad.testing.topics": "a test's broker",
    "pykafkad.testing.unittest_mixin": "a test's broker",
    "pykafkad.testing.waits": "a test's broker",
    "pykafkad.testing.wire_client": "a test's broker",
    "pykafkad.testing.token_providers": "a test's clients",
    "pykafkad.cli.token_source": "only for logins with tokens",
    "pykafkad.cli.token_login": "only for logins with tokens",
    "pykafkad.cli.kerberos_login": "a subcommand with a ticket",
    "pykafkad.testing.traces": "a test's broker",
    "pykafkad.testing.clocks": "a test's broker",
    "pykafkad.testing.broker_loop": "a test's broker",
    "pykafkad.testing.operations": "a test's broker",
    "pykafkad.http_server": "only for the control API and for serve --oauth",
    "pykafkad.http_door": "only for the control API and for serve --oauth",
    "pykafkad.registry.application": "only for Broker(registry=True)",
    "pykafkad.registry.avro_schemas": "only for Broker(registry=True)",
    "pykafkad.registry.json_differences": "only for Broker(registry=True)",
    "pykafkad.registry.json_schemas": "only for Broker(registry=True)",
    "pykafkad.registry.records": "only for Broker(registry=True)",
    "pykafkad.registry.registry": "only for Broker(registry=True)",
    "pykafkad.registry.registry_errors": "only for Broker(registry=True)",
    "pykafkad.registry.routes": "only for Broker(registry=True)",
    "pykafkad.registry.schema": "only for Broker(registry=True)",
    "pykafkad.registry.server": "only for Broker(registry=True)",
    "pykafkad.registry.protobuf_compiler": "only for Broker(registry=True)",
    "pykafkad.registry.protobuf_differences": "only for Broker(registry=True)",
    "pykafkad.registry.protobuf_schemas": "only for Broker(registry=True)",
    "pykafkad.registry.protobuf_text": "only for Broker(registry=True)",
    "pykafkad.registry.avro_values": "only for commands with --registry",
    "pykafkad.registry.protobuf_values": "only for commands with --registry",
    "pykafkad.registry.registry_client": "only for commands with --registry",
    "pykafkad.registry.schema_values": "only for commands with --registry",
    "pykafkad.registry.served": "only for serve --registry",
    "pykafkad.cli.by_schema": "only for commands that are clients",
    "pykafkad.cli.serve_beside": "only for serve --control and --registry",
    "pykafkad.testing.served_broker": "only for serve --control and --registry",
    "pykafkad.registry.state": "only for Broker(registry=True)",
    "pykafkad.registry.store": "only for Broker(registry=True)",
    "pykafkad.issuer.application": "only for serve --oauth",
    "pykafkad.issuer.served": "only for serve --oauth",
    "pykafkad.issuer.tokens": "only for serve --oauth",
    "pykafkad.control.by_schema": "only for --control beside --registry",
    "pykafkad.control.schema_calls": "only for --control",
    "pykafkad.control.api_errors": "only for the control API",
    "pykafkad.control.application": "only for the control API",
    "pykafkad.control.command_line": "only for the control API",
    "pykafkad.control.fault_calls": "only for the control API",
    "pykafkad.control.state_calls": "only for the control API",
    "pykafkad.control.events": "only for the control API",
    "pykafkad.control.page_calls": "only for the control API",
    "pykafkad.control.route": "only for the control API",
    "pykafkad.control.routes": "only for the control API",
    "pykafkad.control.schemas": "only for the control API",
    "pykafkad.control.served": "only for the control API",
    "pykafkad.control.server": "only for the control API",
    "pykafkad.control.status_calls": "only for the control API",
    "pykafkad.control.topic_calls": "only for the control API",
    "pykafkad.control.values": "only for the control API",
    "pykafkad.control.wait_calls": "only for the control API",
    "pykafkad.wire.stub": "writes messages.pyi for type checkers",
    "pykafkad.log.log_config": "read by type checkers only",
    "pykafkad.cli.commands": "the other subcommands",
    "pykafkad.cli.output": "the other subcommands",
    "pykafkad.cli.client": "the other subcommands",
    "pykafkad.cli.actions": "the other subcommands",
    "pykafkad.cli.choices": "the other subcommands",
    "pykafkad.cli.certificates": "only for serve --tls",
    "pykafkad.cli.tls": "the other subcommands, where a broker encrypts",
    "pykafkad.cli.token_scram": "a subcommand with a delegation token",
    "pykafkad.cli.produce": "a subcommand",
    "pykafkad.differential.group_members": "subcommands that compare",
    "pykafkad.differential.links": "subcommands that compare",
    "pykafkad.differential.share_groups": "subcommands that compare",
    "pykafkad.differential.comparison": "subcommands that compare",
    "pykafkad.differential.values": "subcommands that compare",
    "pykafkad.differential.tee": "subcommands that compare",
    "pykafkad.differential.replay": "subcommands that compare",
    "pykafkad.differential.recording": "subcommands that compare",
    "pykafkad.cli.tail": "a subcommand",
    "pykafkad.cli.export": "a subcommand",
    "pykafkad.cli.record_table": "a subcommand, and Broker.table",
    "pykafkad.cli.groups": "a subcommand",
    "pykafkad.cli.transactions": "a subcommand",
    "pykafkad.cli.acls": "a subcommand",
    "pykafkad.cli.acl_words": "a subcommand, and serve --acl",
    "pykafkad.cli.topics": "a subcommand",
    "pykafkad.cli.dump_log": "a subcommand",
    "pykafkad.cli.client_config": "a subcommand",
    "pykafkad.cli.client_metrics": "a subcommand",
    "pykafkad.cli.describe_apis": "a subcommand",
    "pykafkad.cli.describe_config": "a subcommand",
}

# Modules that nothing imports yet, with what runs them until then.
NOT_WIRED: dict[str, str] = {}


def _part(name: str) -> str:
    return name.split(".")[1] if "." in name else "pykafkad"


def test_layers() -> None:
    """Imports between the parts of the package go one way: cli, server, handlers, cores, leaves."""
    wrong = []
    for module in modules():
        own = _part(module.name)
        for imported, line, _ in module.imports:
            if imported == "pykafkad" or not imported.startswith("pykafkad."):
                continue
            part = _part(imported)
            if part not in ALLOWED:
                # A name out of a package's __init__, such as the version.
                part = "pykafkad"
            if part != own and part not in ALLOWED[own]:
                wrong.append(f"{module}:{line} imports {imported}: {own} may import {sorted(ALLOWED[own])}")
    assert wrong == []


def test_handlers_reach_nothing_behind_their_context() -> None:
    """A handler has what its context offers: no private name of the context, nor of anything that it offers."""
    wrong = [
        f"{module}:{node.lineno} {ast.unparse(node)}"
        for module in modules()
        if module.name.startswith("pykafkad.handlers.")
        for node in module.nodes
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and ast.unparse(node).startswith("ctx.")
    ]
    assert wrong == []


def test_owners() -> None:
    """Sockets, time, threads, TLS and the client library each have one home."""
    wrong = []
    for module in modules():
        for imported, line, _ in module.imports:
            owners = OWNERS.get(imported.split(".")[0])
            if owners is not None and module.name not in owners:
                wrong.append(f"{module}:{line} imports {imported}: only {sorted(owners)} may")
    assert wrong == []


def test_calls() -> None:
    """Files are opened, synced and renamed in one place; nobody throws the module's dice."""
    assert [wrong for module in modules() for wrong in _calls_of_others(module)] == []


def _calls_of_others(module: Module) -> Iterator[str]:
    """A module's calls of functions that have another owner."""
    for node in module.nodes:
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            continue
        owner, function = node.func.value.id, node.func.attr
        for (name, functions), allowed in CALL_OWNERS.items():
            if owner == name and function in functions and module.name not in allowed:
                yield f"{module}:{node.lineno} calls {owner}.{function}"
        if (
            owner == "random"
            and function not in ("Random", "SystemRandom")
            and "random" in {name for name, _, _ in module.imports}
        ):
            yield f"{module}:{node.lineno} calls random.{function}"


def test_no_global_that_changes() -> None:
    """Any number of brokers live in one process: no module rebinds its own names from a function."""
    rebound = [
        f"{module}:{node.lineno}" for module in modules() for node in module.nodes if isinstance(node, ast.Global)
    ]
    assert rebound == []


def test_nothing_heavy_at_the_top() -> None:
    """What serves imports nothing heavy at its top; a rare need is imported where it arises."""
    wrong = [
        f"{module}:{line} imports {imported} at its top"
        for module in modules()
        if module.name not in NOT_SERVING
        for imported, line, at_top in module.imports
        if at_top and (imported in HEAVY or imported.split(".")[0] in HEAVY)
    ]
    assert wrong == []


def test_a_starting_broker_loads_nothing_heavy() -> None:
    """`python -m pykafkad serve` up to the point where it would open sockets."""
    code = (
        "import sys; before = set(sys.modules); from pykafkad.cli import serve; from pykafkad.server import wiring; "
        "from pykafkad.handlers import table; print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
                            capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    assert not [name for name in loaded if name in HEAVY or _part(name) == "raft"]


def test_no_module_is_unused() -> None:
    """Every module is imported by another, or is an entry: the package's start, a subcommand, a handler of the
    table."""
    from pykafkad.cli.commands import COMMANDS
    from pykafkad.coordinator import group_types

    entries = {"pykafkad", "pykafkad.__main__", "pykafkad.pytest_plugin", *COMMANDS.values()}
    imported = {name for module in modules() for name, _, _ in module.imports}
    # Two commands write the type stubs: python -m pykafkad.wire.stub, python -m pykafkad.settings.stub.
    # Of the lines that client-config prints for clients in Python.
    entries.add("pykafkad.testing.token_providers")
    entries |= {"pykafkad.wire.stub", "pykafkad.settings.stub"}
    # Type checkers read it, and nothing imports it while running.
    entries.add("pykafkad.log.log_config")
    entries |= set(NOT_WIRED)
    # Imported by name when the first group of a type is met.
    entries |= set(group_types.MODULES.values())
    unused = [
        module.name
        for module in modules()
        if module.name not in imported
        and module.name not in entries
        and not module.name.startswith("pykafkad.handlers.")
        and not module.is_package
    ]
    assert unused == []
