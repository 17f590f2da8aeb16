"""The issuer over HTTP, as a WSGI application (PEP 3333): the token end point, the keys and the description.

Errors are those of RFC 6749, section 5.2. Nothing that a client sends is repeated in an answer.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from pykafkad.issuer.tokens import GRANT, KEYS_PATH, TOKEN_PATH, Issuer

BODY_BYTES_MAX = 64 << 10
FIELDS_MAX = 50
FORM = "application/x-www-form-urlencoded"
CONFIGURATION_PATHS = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")

Environment = dict[str, Any]
StartResponse = Callable[[str, list[tuple[str, str]]], object]


class _Refused(Exception):
    """A request for a token that gets none: the error's code, and what is wrong."""

    def __init__(self, code: str, description: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(code)
        self.code = code
        self.description = description
        self.status = status


class Application:
    """Answers the requests of an issuer's clients."""

    def __init__(self, issuer: Issuer, tell: Callable[[Exception], None]) -> None:
        """`tell` hears of bugs."""
        self._issuer = issuer
        self._tell = tell
        self._documents = {KEYS_PATH: issuer.keys(), **dict.fromkeys(CONFIGURATION_PATHS, issuer.description())}

    def __call__(self, environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        """One request."""
        method, path = environment["REQUEST_METHOD"], environment["PATH_INFO"]
        allowed = ("POST",) if path == TOKEN_PATH else ("GET", "HEAD") if path in self._documents else ()
        headers: list[tuple[str, str]] = []
        status, content = HTTPStatus.OK, {}
        if not allowed:
            status, content = HTTPStatus.NOT_FOUND, {"error": "not_found"}
        elif method not in allowed:
            status, content = HTTPStatus.METHOD_NOT_ALLOWED, {"error": "invalid_request"}
            headers.append(("Allow", ", ".join(allowed)))
        elif path == TOKEN_PATH:
            headers += [("Cache-Control", "no-store"), ("Pragma", "no-cache")]
            try:
                content = self._token(environment)
            except _Refused as refused:
                status, content = refused.status, {"error": refused.code, "error_description": refused.description}
                if status == HTTPStatus.UNAUTHORIZED:
                    headers.append(("WWW-Authenticate", 'Basic realm="pykafkad"'))
            except Exception as error:
                self._tell(error)
                status, content = HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "server_error"}
        else:
            content = self._documents[path]
        body = json.dumps(content).encode()
        headers += [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        start_response(f"{status.value} {status.phrase}", headers)
        return [b"" if method == "HEAD" else body]

    def _token(self, environment: Environment) -> dict[str, Any]:
        fields = _fields(environment)
        client = self._client(environment.get("HTTP_AUTHORIZATION"), fields)
        grant = fields.get("grant_type")
        if grant is None:
            raise _Refused("invalid_request", "grant_type is missing")
        if grant != GRANT:
            raise _Refused("unsupported_grant_type", f"only {GRANT} is served")
        try:
            return self._issuer.grant(client, fields.get("scope"))
        except ValueError:
            raise _Refused("invalid_scope", "scope must be words with one space between them") from None

    def _client(self, header: str | None, fields: dict[str, str]) -> str:
        """Who asks. Raises _Refused."""
        if header is not None:
            if "client_secret" in fields:
                raise _Refused("invalid_request", "the client's secret is there twice")
            client, secret = _basic(header)
            if not self._issuer.is_client(client, secret, may_be_encoded=True):
                raise _unknown()
            return self._issuer.id_of(client)
        client, secret = fields.get("client_id", ""), fields.get("client_secret", "")
        if not self._issuer.is_client(client, secret):
            raise _unknown()
        return client


def _unknown() -> _Refused:
    return _Refused("invalid_client", "no such client, or not its secret", HTTPStatus.UNAUTHORIZED)


def _fields(environment: Environment) -> dict[str, str]:
    """The fields of a form. Raises _Refused."""
    if environment.get("CONTENT_TYPE", "").partition(";")[0].strip().lower() != FORM:
        raise _Refused("invalid_request", f"the content must be {FORM}")
    body = environment["wsgi.input"].read(BODY_BYTES_MAX + 1)
    if len(body) > BODY_BYTES_MAX:
        raise _Refused("invalid_request", f"the content must have at most {BODY_BYTES_MAX} bytes")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX)
    except ValueError:
        raise _Refused("invalid_request", f"the content is no form in UTF-8 of at most {FIELDS_MAX} fields") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _Refused("invalid_request", "a field is there twice")
    return fields


def _basic(header: str) -> tuple[str, str]:
    """The client and its secret (RFC 7617). Raises _Refused."""
    scheme, _, text = header.strip().partition(" ")
    try:
        client, colon, secret = base64.b64decode(text.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        raise _unknown() from None
    if scheme.lower() != "basic" or not colon:
        raise _unknown()
    return client, secret
