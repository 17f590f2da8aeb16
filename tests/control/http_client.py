"""Requests to a control API by the standard library's client, as a program in any language would send them."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pykafkad.control import schemas
from pykafkad.control.route import JSON
from pykafkad.control.routes import ERROR, find

TIMEOUT_SECONDS = 60


class Answer(NamedTuple):
    """What came back; `body` is decoded if it is JSON."""

    status: int
    type: str
    body: Any
    headers: dict[str, str]

    @property
    def error(self) -> dict[str, str]:
        """What is wrong, where, and what is allowed."""
        return self.body["error"]


def check(method: str, path: str, status: int, kind: str, body: Any) -> None:
    """Whether an answer is what the description says."""
    if status >= 400:
        # What the server itself refuses is plain text.
        assert kind == JSON and schemas.checked(ERROR, body, "error") == body
        return
    row, _ = find(method, urlsplit(path).path)
    assert status == row.status
    if isinstance(row.answer, str):
        assert kind == row.answer
    else:
        assert kind == JSON and schemas.checked(row.answer, body, "answer") == body


class Client:
    """Asks one control API."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url
        self.token = token

    def send(
        self, method: str, path: str, content: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """The answer to any request."""
        parts = urlsplit(self.url)
        connection = HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_SECONDS)
        try:
            bearer = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
            connection.request(method, path, content, {**bearer, **(headers or {})})
            answer = connection.getresponse()
            body = answer.read()
            kind = answer.headers["Content-Type"] or ""
            decoded = json.loads(body) if kind == "application/json" else body
            check(method, path, answer.status, kind, decoded)
            return Answer(answer.status, kind, decoded, {name.lower(): value for name, value in answer.headers.items()})
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        """The answer to GET."""
        return self.send("GET", path)

    def delete(self, path: str) -> Answer:
        """The answer to DELETE."""
        return self.send("DELETE", path)

    def post(self, path: str, **body: object) -> Answer:
        """The answer to POST of a JSON object."""
        return self.send("POST", path, json.dumps(body).encode())

    def put(self, path: str, **body: object) -> Answer:
        """The answer to PUT of a JSON object."""
        return self.send("PUT", path, json.dumps(body).encode())
