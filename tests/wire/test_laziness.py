"""All schemas together cost a start next to nothing: a text is read, a class made and a function compiled when somebody
asks."""

from __future__ import annotations

import json
import subprocess
import sys

# Both starts of one directory: the first writes the metadata log's first records, the second reads them.
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
# Of 1450. Each costs a quarter of a millisecond or less to compile.
FUNCTIONS_AT_START = 20


def test_a_start_compiles_what_it_writes_and_nothing_else():
    """Importing costs nothing; a first start touches its own records, and no API."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    imported, started, linecache, asked = json.loads(done.stdout)
    assert imported == [[], [], 0]
    texts, classes, functions = started
    assert texts == STORED_TEXTS
    assert not [name for name in classes if name.endswith(("Request", "Response"))]
    assert functions <= FUNCTIONS_AT_START
    assert not linecache, "it brings re and tokenize"
    # Whoever asks for one API gets that API's text, and none of the others'.
    assert asked[0] == ["012_heartbeat.txt", *texts]
    assert set(asked[1]) - set(classes) == {"HeartbeatRequest"}
    assert asked[2] == functions
