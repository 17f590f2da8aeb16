"""The issuer's answers over HTTP: RFC 6749's grant and errors, and documents by which its tokens are verified."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlencode

import jwt
import pytest

from pykafkad.issuer.application import BODY_BYTES_MAX, CONFIGURATION_PATHS, FIELDS_MAX, FORM, Application
from pykafkad.issuer.tokens import Issuer
from pykafkad.sasl import jwks
from pykafkad.sasl.compact_jwt import InvalidToken
from pykafkad.sasl.oauthbearer import Token
from pykafkad.sasl.signed_jwt import Rules, SignedValidator

URL = "http://127.0.0.1:1"
NOW_MS = 1_700_000_000_000
SECRET = "a:b+c %2B ä"
GRANT = {"grant_type": "client_credentials"}


class Answer(NamedTuple):
    """What came back."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str]


class Keys:
    """What the issuer publishes, as a broker has read it."""

    def __init__(self, published: bytes) -> None:
        self.keys = jwks.parse(published)

    def current(self) -> Any:
        """All."""
        return self.keys

    def miss(self, key_id: str | None) -> None:
        """Nobody asks again."""

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def application() -> Application:
    """An issuer with two clients, whose random bytes are zeros."""
    return Application(Issuer(URL, {"alice": SECRET, "bob+b": "x"}, lambda: NOW_MS, bytes, 60), pytest.fail)


def send(application: Application, method: str, path: str, body: bytes = b"", **environment: str) -> Answer:
    """The answer to a request."""
    told: list[Any] = []
    given = {"REQUEST_METHOD": method, "PATH_INFO": path, "wsgi.input": io.BytesIO(body), **environment}
    content = b"".join(application(given, lambda status, headers: told.extend((status, dict(headers)))))
    status, headers = told
    assert int(headers["Content-Length"]) == len(content) or method == "HEAD"
    return Answer(int(status[:3]), json.loads(content) if content else {}, headers)


def ask(application: Application, fields: Any, authorization: str | None = None, kind: str = FORM) -> Answer:
    """The answer to a request for a token."""
    header = {} if authorization is None else {"HTTP_AUTHORIZATION": authorization}
    body = fields if isinstance(fields, bytes) else urlencode(fields).encode()
    return send(application, "POST", "/token", body, CONTENT_TYPE=kind, **header)


def basic(client: str, secret: str) -> str:
    """The header with both as they are."""
    return f"Basic {b64encode(f'{client}:{secret}'.encode()).decode()}"


def by_header(application: Application, fields: dict[str, str]) -> Answer:
    """As librdkafka and Java's clients ask."""
    return ask(application, fields, basic("alice", SECRET))


def by_encoded_header(application: Application, fields: dict[str, str]) -> Answer:
    """As RFC 6749 has it."""
    return ask(application, fields, basic(quote_plus("alice"), quote_plus(SECRET)))


def by_form(application: Application, fields: dict[str, str]) -> Answer:
    """In the form itself."""
    return ask(application, {**fields, "client_id": "alice", "client_secret": SECRET}, kind=f"{FORM}; charset=UTF-8")


@pytest.mark.parametrize("way", [by_header, by_encoded_header, by_form], ids=lambda way: way.__name__)
def test_a_client_gets_a_token_that_counts(application: Application, way: Any) -> None:
    """For its name, the audience and the time that the issuer says; the published key verifies it."""
    answer = way(application, GRANT)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json" and answer.headers["Cache-Control"] == "no-store"
    token = answer.body.pop("access_token")
    assert answer.body == {"token_type": "Bearer", "expires_in": 60}
    keys = Keys(json.dumps(send(application, "GET", "/jwks").body).encode())
    rules = Rules(frozenset(("kafka",)), URL, "scope", "sub", 0)
    for at, end in ((NOW_MS, NOW_MS + 60_000), (NOW_MS + 59_999, NOW_MS + 60_000)):
        assert SignedValidator(keys, rules, lambda at=at: at)(token) == Token("alice", end)
    with pytest.raises(InvalidToken, match="expired"):
        SignedValidator(keys, rules, lambda: NOW_MS + 60_000)(token)
    other = Keys(json.dumps(Issuer(URL, {}, int, bytes).keys()).encode())
    with pytest.raises(InvalidToken, match="signature"):
        SignedValidator(other, rules, lambda: NOW_MS)(token)


def test_a_name_with_signs_of_forms_is_itself(application: Application) -> None:
    """Whether it is encoded or not."""
    for client in ("bob+b", quote_plus("bob+b")):
        token = ask(application, GRANT, basic(client, "x")).body["access_token"]
        assert jwt.decode(token, options={"verify_signature": False})["sub"] == "bob+b"


def test_scopes_are_those_that_were_asked_for(application: Application) -> None:
    """Each once, as a list: to Kafka a text is one scope."""
    answer = by_form(application, {**GRANT, "scope": "read write read"})
    assert answer.body["scope"] == "read write read"
    claims = jwt.decode(answer.body["access_token"], options={"verify_signature": False})
    assert claims["scope"] == ["read", "write"] and claims["iss"] == URL and claims["client_id"] == "alice"
    assert "scope" not in by_form(application, {**GRANT, "scope": ""}).body
    for scope in (" read", "read  write", 'a"b', "ä"):
        assert by_form(application, {**GRANT, "scope": scope}).body["error"] == "invalid_scope"


@pytest.mark.parametrize(
    ("fields", "authorization", "status", "error"),
    [
        ({}, basic("alice", SECRET), 400, "invalid_request"),
        ({"grant_type": "password"}, basic("alice", SECRET), 400, "unsupported_grant_type"),
        (GRANT, None, 401, "invalid_client"),
        (GRANT, basic("alice", "x"), 401, "invalid_client"),
        (GRANT, basic("alice", ""), 401, "invalid_client"),
        (GRANT, basic("", "\0"), 401, "invalid_client"),
        (GRANT, basic("carol", "\0"), 401, "invalid_client"),
        (GRANT, basic("bob b", "x"), 401, "invalid_client"),
        (GRANT, basic("bob+b", SECRET), 401, "invalid_client"),
        (GRANT, "Basic ?", 401, "invalid_client"),
        (GRANT, f"Basic {b64encode(b'alice').decode()}", 401, "invalid_client"),
        (GRANT, f"Basic {b64encode(bytes([255])).decode()}", 401, "invalid_client"),
        (GRANT, basic("alice", SECRET).replace("Basic", "Bearer"), 401, "invalid_client"),
        ({**GRANT, "client_id": "alice", "client_secret": "x"}, None, 401, "invalid_client"),
        ({**GRANT, "client_id": "alice", "client_secret": SECRET}, basic("alice", SECRET), 400, "invalid_request"),
        ([*GRANT.items(), *GRANT.items()], basic("alice", SECRET), 400, "invalid_request"),
        ({str(n): "" for n in range(FIELDS_MAX + 1)}, basic("alice", SECRET), 400, "invalid_request"),
        (b"grant_type=%ff", basic("alice", SECRET), 400, "invalid_request"),
        (b"x" * (BODY_BYTES_MAX + 1), basic("alice", SECRET), 400, "invalid_request"),
    ],
)
def test_what_gets_no_token(
    application: Application, fields: Any, authorization: str | None, status: int, error: str
) -> None:
    """Section 5.2 of the RFC names the error; no answer repeats what was sent."""
    answer = ask(application, fields, authorization)
    assert (answer.status, answer.body["error"]) == (status, error)
    assert SECRET not in str(answer.body) and "access_token" not in answer.body
    assert ("WWW-Authenticate" in answer.headers) == (status == HTTPStatus.UNAUTHORIZED)


def test_as_many_fields_as_may_be(application: Application) -> None:
    """And a body as long as may be."""
    fields = {**GRANT, **{str(n): "" for n in range(FIELDS_MAX - 1)}}
    assert by_header(application, fields).status == 200
    padded = urlencode(GRANT).encode() + b"&x="
    assert ask(application, padded.ljust(BODY_BYTES_MAX, b"x"), basic("alice", SECRET)).status == 200


def test_only_forms_are_read(application: Application) -> None:
    """JSON is none."""
    assert ask(application, GRANT, basic("alice", SECRET), "application/json").body["error"] == "invalid_request"


def test_the_issuer_describes_itself(application: Application) -> None:
    """The same for OpenID Connect and for RFC 8414."""
    found = [send(application, "GET", path) for path in CONFIGURATION_PATHS]
    assert found[0] == found[1] and found[0].status == 200
    assert found[0].body["issuer"] == URL
    assert found[0].body["token_endpoint"] == f"{URL}/token" and found[0].body["jwks_uri"] == f"{URL}/jwks"
    (key,) = send(application, "GET", "/jwks").body["keys"]
    assert key["kty"] == "EC" and "d" not in key
    head = send(application, "HEAD", "/jwks")
    assert (head.status, head.body) == (200, {})


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [("GET", "/token", 405, "POST"), ("POST", "/jwks", 405, "GET, HEAD"), ("GET", "/", 404, None)],
)
def test_other_requests(application: Application, method: str, path: str, status: int, allowed: str | None) -> None:
    """They get an error, and what is allowed there."""
    answer = send(application, method, path)
    assert answer.status == status and answer.headers.get("Allow") == allowed


def test_a_bug_is_told_in_the_log_and_not_to_the_client() -> None:
    """The answer says no more than that."""
    told: list[Exception] = []

    def broken() -> int:
        raise ZeroDivisionError("why")

    issuer = Issuer(URL, {"alice": SECRET}, broken, bytes)
    answer = by_header(Application(issuer, told.append), GRANT)
    assert (answer.status, answer.body) == (500, {"error": "server_error"})
    assert [str(each) for each in told] == ["why"]
