"""The log as JSON."""

from __future__ import annotations

import json

from pykafkad.clock import ManualClock
from pykafkad.server.json_log import JsonSink
from pykafkad.server.logs import VALUE_CHARACTERS, LabelledSink, Logs


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


def test_the_lines_of_a_node_or_a_tenant_name_it():
    fields = {"topic": "orders"}
    line = json.loads(LabelledSink("node", 2, is_json=True).render(0, "info", "metadata", "topic-created", fields))
    assert (line["node"], line["event"], line["topic"]) == (2, "topic-created", "orders")
    text = LabelledSink("tenant", "acme").render(0, "info", "metadata", "topic-created", fields)
    assert text.endswith(" INFO metadata topic-created tenant=acme topic=orders\n")
    coloured = LabelledSink("tenant", "acme", is_coloured=True).render(0, "info", "metadata", "topic-created", fields)
    assert coloured.endswith(" \x1b[32mINFO\x1b[0m metadata \x1b[1mtopic-created\x1b[0m tenant=acme topic=orders\n")
