"""Requests of the registry and their answers, as a WSGI application: limits, routes, JSON, errors."""

from __future__ import annotations

import ipaddress
import json
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from pykafkad.cli.token_source import is_local
from pykafkad.registry.registry import Registry
from pykafkad.registry.registry_errors import RegistryError
from pykafkad.registry.routes import Route, Text, find
from pykafkad.testing.broker_loop import BrokerEnded
from pykafkad.testing.wire_client import Refused

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
MOST_BODY_BYTES = 1 << 20
MOST_QUERY_FIELDS = 50
STORE_ERROR, UNEXPECTED, FORBIDDEN = 50001, 500, 403

Environment = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], object]


class Application:
    """Answers requests about one registry, one after the other: each may change what the next one sees."""

    def __init__(self, registry: Registry, tell: Callable[[Exception, str], None], *, is_loopback: bool = True) -> None:
        """`tell(error, request)` hears of bugs. With `is_loopback` it is asked by this machine alone."""
        self._is_loopback = is_loopback
        self._registry = registry
        self._turn = threading.Lock()
        self._tell = tell

    def __call__(self, environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        """One request (PEP 3333)."""
        status, body = self._answered(environment)
        headers = [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(body)))]
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [b"" if environment["REQUEST_METHOD"] == "HEAD" else body]

    def _answered(self, environment: Environment) -> tuple[int, bytes]:
        method = environment["REQUEST_METHOD"]
        try:
            _check_site(environment, self._is_loopback)
            row, raw = find("GET" if method == "HEAD" else method, urlsplit(environment["REQUEST_URI"]).path)
            arguments = _arguments(row, raw, environment)
            with self._turn:
                self._registry.refresh()
                answer = row.call(self._registry, arguments)
            return 200, answer.encode() if isinstance(answer, Text) else _json(answer)
        except RegistryError as error:
            return error.status, _json(error.as_json())
        except (OSError, Refused, BrokerEnded) as error:
            known = RegistryError(STORE_ERROR, f"Error while talking to the broker: {error}")
            return known.status, _json(known.as_json())
        except Exception as error:
            self._tell(error, f"{method} {environment['PATH_INFO']}")
            return UNEXPECTED, _json(RegistryError(UNEXPECTED, "Internal Server Error").as_json())


def _check_site(environment: Environment, is_loopback: bool) -> None:
    """Raises RegistryError for the request of a web page of another site; other clients send no Origin. A page whose
    name leads to this machine (DNS rebinding) has an Origin like the Host, which is then no name of this machine."""
    origin, host = environment.get("HTTP_ORIGIN"), environment.get("HTTP_HOST", "")
    if origin is not None and origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower()):
        raise RegistryError(FORBIDDEN, "HTTP 403 Forbidden: the header Origin names another site")
    if is_loopback and host and not _is_number_or_local(host):
        raise RegistryError(FORBIDDEN, "HTTP 403 Forbidden: the header Host must be localhost or an address")


def _is_number_or_local(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if is_local(name):
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _arguments(row: Route, raw: dict[str, str], environment: Environment) -> dict[str, Any]:
    """Everything that the request gives. What the table does not name is left alone, as Confluent's registry does.
    Raises RegistryError."""
    try:
        arguments: dict[str, Any] = {name: unquote(text, errors="strict") for name, text in raw.items()}
        pairs = dict(
            parse_qsl(
                environment.get("QUERY_STRING", ""),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=MOST_QUERY_FIELDS,
            )
        )
    except ValueError as error:
        raise RegistryError(400, f"HTTP 400 Bad Request: {error}") from None
    arguments |= {name: pairs.get(name, "").lower() == "true" for name in row.flags}
    arguments |= {name: pairs[name] for name in row.texts if name in pairs}
    if row.method in ("POST", "PUT"):
        arguments["body"] = _body(environment)
    return arguments


def _body(environment: Environment) -> Any:
    length = int(environment.get("CONTENT_LENGTH") or 0)
    if length > MOST_BODY_BYTES:
        raise RegistryError(413, f"a body of {length} bytes; at most {MOST_BODY_BYTES} are allowed")
    content = environment["wsgi.input"].read(length)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RegistryError(400, f"Unrecognized token: the body is not JSON: {error}") from None


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
