"""Schemas cost a start almost nothing: texts, classes and functions are made on first use."""

from __future__ import annotations

import json
import subprocess
import sys

# The first start of a directory writes the first records of the metadata log. The second start reads them.
PROGRAM = """
import json, sys
# From Python 3.13 on it comes with -c.
sys.modules.pop("linecache", None)
from pykafkad.wire import messages
registry = messages._registry
def counts():
    return [sorted(registry.texts), sorted(cls.__name__ for cls in registry.schemas), len(registry.functions)]
import pykafkad.handlers.table, pykafkad.server.wiring
found = [counts()]
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World
world = World("/data", disk=MemoryDisk(), seed=1)
found.append(counts())
found.append("linecache" in sys.modules)
messages.request_class(12)
found.append(counts())
print(json.dumps(found))
"""
STORED_TEXTS = ["control_records.txt", "stored_metadata.txt"]
# There are 1450 functions. Compiling one takes up to a quarter of a millisecond.
FUNCTIONS_AT_START = 20


def test_a_start_compiles_only_the_records_it_uses():
    """Importing compiles nothing. A first start compiles its own records and no API."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    imported, started, linecache, asked = json.loads(done.stdout)
    assert imported == [[], [], 0]
    texts, classes, functions = started
    assert texts == STORED_TEXTS
    assert not [name for name in classes if name.endswith(("Request", "Response"))]
    assert functions <= FUNCTIONS_AT_START
    assert not linecache, "it brings re and tokenize"
    # Using one API reads only the text of that API.
    assert asked[0] == ["012_heartbeat.txt", *texts]
    assert set(asked[1]) - set(classes) == {"HeartbeatRequest"}
    assert asked[2] == functions
