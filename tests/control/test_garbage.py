"""Whatever is sent is answered, and never as a bug of ours."""

from __future__ import annotations

import json
from random import Random

import pytest

from pykafkad.control.page_calls import EVENTS_TYPE
from pykafkad.control.routes import ROUTES

NASTY = (
    None, True, -1, 0, 1, 1.5, 2**31, 2**63, 2**64, -(2**70), "", "a", "ä" * 7000, "\ud800", "a/b", "..", "\x00", " ",
    [], [None], [1, 2], ["a"] * 3, {}, {"": {}}, {"a": 1}, [[]] * 5,
)  # fmt: skip
FIXED = {"timeout_seconds": 0.01, "seconds": 5, "delay_ms": 1}
"""What would take long otherwise."""

CASES = 40
"""Of each route."""


def example(schema, random):
    """A value that the schema allows, or, seldom, any other."""
    if random.random() < 0.08:
        return random.choice(NASTY)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "enum" in schema:
        return random.choice(schema["enum"])
    kind = random.choice(kinds)
    if kind == "object":
        return {
            name: FIXED[name] if name in FIXED else example(each, random)
            for name, each in schema.get("properties", {}).items()
            if name in FIXED or "default" not in each or random.random() < 0.5
        }
    if kind == "array":
        return [example(schema["items"], random) for _ in range(max(1, schema.get("minItems", 0)))]
    simple = {"string": random.choice(("orders", "a", "b")), "boolean": True, "null": None, "number": 1}
    return simple.get(kind, random.choice((0, 1, 2, 2**31 - 1, 2**63 - 1)))


@pytest.mark.parametrize("row", [each for each in ROUTES if each.answer != EVENTS_TYPE], ids=lambda row: row.name)
def test_no_request_meets_a_bug(row, api):
    """Fields of right and wrong kinds, extremes of both; parts of paths and of queries, too."""
    random = Random(row.name)
    for _ in range(CASES if row.body or row.query or row.in_path else 3):
        path = row.path
        for name in row.in_path:
            path = path.replace(
                f"{{{name}}}", random.choice(("orders", "1", "%00", "a%2Fb", "%C3%A4" * 9000, "-1", "%ED%A0%80"))
            )
        query = "&".join(f"{name}={random.choice(('1', '-1', '9' * 5000, 'true', 'nan', ''))}" for name in row.query)
        content = None if row.body is None else json.dumps(example(row.body, random)).encode()
        answer = api.send(row.method, f"{path}?{query}" if query and random.random() < 0.8 else path, content)
        assert answer.status != 500, (path[:100], query, content and content[:300], answer.body)
