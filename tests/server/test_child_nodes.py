"""How the nodes of a cluster that are child processes come to their end."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from pykafkad.server import child_nodes
from pykafkad.server.child_nodes import ChildNodes


class Child:
    """A child that ends so many seconds after it was asked to, or when it is killed."""

    is_end_told = False
    addresses = ("localhost:9092",)

    def __init__(self, node_id, role, seconds):
        self.node_id, self.role, self.seconds = node_id, role, seconds
        self.status = None
        self.closed = threading.Event()
        self.process = SimpleNamespace(kill=self._ended)
        self.watcher = SimpleNamespace(join=lambda: None)

    def ask_to_stop(self):
        threading.Timer(self.seconds, self._ended).start()

    def _ended(self):
        self.status = "an end"
        self.closed.set()

    def close(self):
        assert self.status is not None


@pytest.fixture
def nodes():
    warnings = []
    made = ChildNodes(SimpleNamespace(warning=lambda *_, **fields: warnings.append(fields["node"])))
    made.warnings = warnings
    return made


@pytest.mark.long
def test_children_that_hang_are_killed_together(nodes, monkeypatch):
    monkeypatch.setattr(child_nodes, "STOP_SECONDS", 0.4)
    roles = {1: "broker", 2: "broker", 3: "broker", 3000: "controller"}
    nodes.children = [Child(node_id, role, 0.05 if node_id == 2 else 2.0) for node_id, role in roles.items()]
    began = time.monotonic()
    killed = nodes.stop_all()
    assert time.monotonic() - began < 1.1, "twice 0.4 seconds: once for the brokers, once for the controller"
    assert [child.node_id for child in killed] == nodes.warnings == [1, 3, 3000]
    assert nodes.children == []
