"""The log as JSON."""

from __future__ import annotations

import json

from pykafkad.clock import ManualClock
from pykafkad.server.json_log import JsonSink
from pykafkad.server.logs import VALUE_CHARACTERS, Logs
from pykafkad.server.node_process import NodeSink


def test_a_line_is_an_object():
    """Numbers stay numbers, line breaks stay in their line, and no field hides what a line begins with."""
    written = []
    logs = Logs("info", JsonSink(lambda data: written.append(data) or len(data), ManualClock(0)))
    logs.info("server", "started", count=3, ok=True, none=None, text='a "b"\nü', level="x", reason=OSError("gone"))
    logs.debug("server", "not-told")
    logs.warning("server", "long", text="x" * 1000)
    first, second = [json.loads(each) for each in written]
    assert b"\n" not in written[0][:-1] and written[0].endswith(b"\n")
    assert first == {
        "time": first["time"],
        "level": "info",
        "logger": "server",
        "event": "started",
        "count": 3,
        "ok": True,
        "text": 'a "b"\nü',
        "_level": "x",
        "reason": "OSError: gone",
    }
    assert (second["level"], second["text"]) == ("warning", "x" * VALUE_CHARACTERS + "...")


def test_the_lines_of_a_node_of_its_own_process_name_it():
    fields = {"topic": "orders"}
    line = json.loads(NodeSink(2, is_json=True).render(0, "info", "metadata", "topic-created", fields))
    assert (line["node"], line["event"], line["topic"]) == (2, "topic-created", "orders")
    text = NodeSink(2, is_json=False).render(0, "info", "metadata", "topic-created", fields)
    assert text.endswith(" INFO metadata topic-created node=2 topic=orders\n")
