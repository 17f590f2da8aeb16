"""Requests of the control API and their answers, as a WSGI application: token, limits, routes, JSON, errors."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pykafkad.control import api_errors, schemas
from pykafkad.control.api_errors import ApiError
from pykafkad.control.route import JSON, Content, Control, Route, Stream
from pykafkad.control.routes import find
from pykafkad.http_server import MOST_HEADER_BYTES
from pykafkad.testing.options import unknown

MOST_BODY_BYTES = 8 << 20
MOST_QUERY_FIELDS = 50
HEADERS = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"))
"""Of every answer."""

Environment = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], object]


class Application:
    """Answers requests about one broker."""

    def __init__(self, control: Control, token: str, tell: Callable[[Exception, str], None]) -> None:
        """`tell(error, request)` hears of bugs."""
        self._control = control
        self._token = token.encode()
        self._tell = tell

    def __call__(self, environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        """One request (PEP 3333)."""
        status, content = self._answered(environment)
        headers = [("Content-Type", content.type), *HEADERS]
        if status == api_errors.UNAUTHORIZED:
            headers.append(("WWW-Authenticate", "Bearer"))
        line = f"{status} {HTTPStatus(status).phrase}"
        if isinstance(content, Stream):
            start_response(line, headers)
            return content.parts(environment["waitress.client_disconnected"])
        start_response(line, [*headers, *content.headers, ("Content-Length", str(len(content.body)))])
        return [b"" if environment["REQUEST_METHOD"] == "HEAD" else content.body]

    def _answered(self, environment: Environment) -> tuple[int, Content | Stream]:
        try:
            self._control.check_open()
            row, parts = self._route(environment)
            arguments = _arguments(row, parts, environment)
            answer = row.call(self._control, arguments)
            if row.method != "GET" and not row.path.startswith("/waits/"):
                self._control.operations.note(row.name, _told(arguments))
            return row.status, answer if isinstance(answer, Content | Stream) else _json(answer)
        except Exception as error:
            known = api_errors.of(error)
            if known is None:
                self._tell(error, f"{environment['REQUEST_METHOD']} {environment['PATH_INFO']}")
                known = ApiError(api_errors.UNEXPECTED, "an error of pykafkad's, which its log tells of")
            return known.status, _json(known.as_json())

    def _route(self, environment: Environment) -> tuple[Route, dict[str, str]]:
        """Raises ApiError. Who has no token does not learn what there is."""
        has_token = self.has_token(environment.get("HTTP_AUTHORIZATION", ""))
        try:
            # The server's copy of what was sent: a name may hold a slash that is written %2F.
            row, raw = find(environment["REQUEST_METHOD"], urlsplit(environment["REQUEST_URI"]).path)
            parts = {name: unquote(text, errors="strict") for name, text in raw.items()}
        except (ApiError, ValueError) as error:
            if not has_token:
                raise no_token() from None
            if isinstance(error, ApiError):
                raise
            raise ApiError(400, "it is not UTF-8", "path", "UTF-8") from None
        if not (row.is_open or has_token):
            raise no_token()
        return row, parts

    def has_token(self, header: str) -> bool:
        """Whether a header Authorization has the token."""
        scheme, _, given = header.partition(" ")
        # In a time that does not tell how much of it is right.
        return hmac.compare_digest(given.strip().encode("latin-1"), self._token) and scheme.lower() == "bearer"


def no_token() -> ApiError:
    """What a stranger is told."""
    return ApiError(
        api_errors.UNAUTHORIZED,
        "the token is missing or wrong",
        "header Authorization",
        "Bearer TOKEN, as told at start",
    )


def _told(arguments: dict[str, Any]) -> dict[str, Any]:
    """What people are told of a request: its short values."""
    return {
        name: value
        for name, value in arguments.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }


_ALLOWED = {
    api_errors.TOO_LARGE: f"a body of at most {MOST_BODY_BYTES} bytes",
    api_errors.HEADERS_TOO_LARGE: f"headers of less than {MOST_HEADER_BYTES} bytes",
}


def refusal(status: int, what: str) -> tuple[list[tuple[str, str]], bytes]:
    """Headers and body of the answer to what the server refuses before there is a request."""
    error, headers = ApiError(status, what, "", _ALLOWED.get(status, "HTTP/1.1")), [("Content-Type", JSON)]
    if status == api_errors.UNAUTHORIZED:
        error = no_token()
        headers.append(("WWW-Authenticate", "Bearer"))
    return headers, _json(error.as_json()).body


def _arguments(row: Route, parts: dict[str, str], environment: Environment) -> dict[str, Any]:
    """Everything that the request gives, checked. Raises ApiError."""
    arguments = {name: schemas.from_text(row.in_path[name], text, f"path {name}") for name, text in parts.items()}
    given = _query(environment.get("QUERY_STRING", ""))
    for name in given:
        if name not in row.query:
            allowed = ", ".join(row.query) or "nothing"
            what = unknown("name", name, row.query) if row.query else f"{row.method} {row.path} takes no query"
            raise ApiError(400, what, "query", allowed)
    for name, schema in row.query.items():
        is_given = name in given
        arguments[name] = schemas.from_text(schema, given[name], f"query {name}") if is_given else schema["default"]
    body = _body(environment)
    if row.body is None:
        if body:
            raise ApiError(400, f"{row.method} {row.path} takes no body", "body", "nothing")
        return arguments
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"it is not JSON: {error}", "body", "a JSON object") from None
    arguments.update(schemas.checked(row.body, value, "body"))
    return arguments


def _query(text: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, strict_parsing=bool(text), errors="strict", max_num_fields=MOST_QUERY_FIELDS
        )
    except ValueError as error:
        raise ApiError(400, str(error), "query", f"name=value, at most {MOST_QUERY_FIELDS} of them") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise ApiError(400, f"{name} is there twice", "query", "each name once")
        found[name] = value
    return found


def _body(environment: Environment) -> bytes:
    length = int(environment.get("CONTENT_LENGTH") or 0)
    if length > MOST_BODY_BYTES:
        raise ApiError(api_errors.TOO_LARGE, f"a body of {length} bytes", "body", f"at most {MOST_BODY_BYTES} bytes")
    content: bytes = environment["wsgi.input"].read(length)
    return content


def _json(value: object) -> Content:
    return Content(JSON, json.dumps(value).encode())
