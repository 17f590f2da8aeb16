"""The description of the control API, and the table of the documentation, say what is served."""

from __future__ import annotations

import re

from pykafkad.control import routes
from pykafkad.control.routes import ROUTES
from pykafkad.control.schemas import KEYWORDS
from tests.architecture.source import PROJECT


def test_every_route_is_described(api):
    """By one operation, with its parameters, body and answers."""
    found = api.get("/openapi.json").body
    operations = {
        (method.upper(), path): operation for path, each in found["paths"].items() for method, operation in each.items()
    }
    assert set(operations) == {(row.method, row.path) for row in ROUTES if not row.is_file}
    names = [operation["operationId"] for operation in operations.values()]
    assert len(set(names)) == len(names)
    for row in (each for each in ROUTES if not each.is_file):
        operation = operations[row.method, row.path]
        described = {(each["in"], each["name"]) for each in operation.get("parameters", ())}
        assert described == {("path", name) for name in row.in_path} | {("query", name) for name in row.query}
        assert set(re.findall(r"\{(\w+)\}", row.path)) == set(row.in_path)
        assert ("requestBody" in operation) == (row.body is not None)
        assert (operation.get("security") == []) == row.is_open
        assert set(operation["responses"]) == {str(row.status), "default"}
        assert all("default" in schema for schema in row.query.values()), "what is in a query may be left out"


def test_the_description_is_made_once(api, monkeypatch):
    """Anybody may ask for it, as often as he likes."""
    first = api.get("/openapi.json").body
    monkeypatch.setattr(routes, "ROUTES", ())
    assert api.get("/openapi.json").body == first


def test_schemas_use_what_is_checked(api):
    """Every keyword of every schema is one that requests are checked by."""

    def look(schema):
        if "$ref" in schema:
            assert schema["$ref"] == "#/components/schemas/Error"
            return
        assert schema.keys() <= KEYWORDS
        rest = schema.get("additionalProperties", False)
        inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
        for each in [*inner, *([rest] if isinstance(rest, dict) else [])]:
            look(each)

    for each in api.get("/openapi.json").body["paths"].values():
        for operation in each.values():
            bodies = [*operation["responses"].values(), operation.get("requestBody", {"content": {}})]
            for media in [media for body in bodies for media in body["content"].values()]:
                look(media["schema"])
            for parameter in operation.get("parameters", ()):
                look(parameter["schema"])


def test_every_limit_is_described(api):
    """Also those that hold for every text, number and list; they are what is enforced."""

    def look(schema):
        kind = schema["type"][0] if isinstance(schema["type"], list) else schema["type"]
        limits = {"string": {"maxLength", "enum"}, "integer": {"maximum"}, "number": {"maximum"}, "array": {"maxItems"}}
        assert schema.keys() & limits.get(kind, schema.keys()), schema
        if isinstance(schema.get("additionalProperties"), dict):
            assert schema["maxProperties"] > 0
        for each in schema.get("properties", {}).values():
            look(each)
        if kind == "array":
            look(schema["items"])

    for each in api.get("/openapi.json").body["paths"].values():
        for operation in each.values():
            for media in operation.get("requestBody", {"content": {}})["content"].values():
                look(media["schema"])
            for parameter in operation.get("parameters", ()):
                look(parameter["schema"])
    assert api.post("/topics", name="x" * 8001).error["allowed"] == "at most 8000 characters"


def test_the_table_of_the_documentation_is_fresh():
    """Each route with its summary, in the order of the table of routes."""
    rows = [f"| `{row.method} {row.path}` | {row.summary} |" for row in ROUTES if not row.is_file]
    table = "\n".join(["| route | |", "|---|---|", *rows])
    text = (PROJECT / "docs/testing.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- control: begin -->\n(.*?)\n?<!-- control: end -->", text, re.DOTALL)
    assert found and found[1] == table, table
