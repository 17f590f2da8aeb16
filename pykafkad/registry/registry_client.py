"""What a program asks a schema registry, of pykafkad or of anybody else: schemas by id, and ids of schemas."""

from __future__ import annotations

import base64
import json
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import Request

from pykafkad.cli.token_source import opener
from pykafkad.registry.schema import AVRO, Reference, Schema
from pykafkad.registry.state import references_of

TIMEOUT_SECONDS = 10
MOST_ANSWER_BYTES = 16 << 20
MOST_REFERENCES = 1000
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
NOT_FOUND = 404


class RegistryFailure(Exception):
    """The registry does not answer, or refuses. `status` is that of HTTP, 0 without an answer."""

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


class RegistryClient:
    """Asks the registry at a URL, which may hold a name and a password: http://NAME:PASSWORD@HOST:PORT."""

    def __init__(self, url: str) -> None:
        """Raises ValueError for what is no URL of HTTP."""
        try:
            parts = urlsplit(url)
            is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_url = False
        if not is_url:
            # Without what may be a login.
            raise ValueError(f"{url.rpartition('@')[2]}: must be a URL such as http://localhost:8081")
        login, _, address = parts.netloc.rpartition("@")
        self.url = urlunsplit((parts.scheme, address, parts.path.rstrip("/"), "", ""))
        """Without a login."""
        self._headers = {"Content-Type": CONTENT_TYPE, "Accept": CONTENT_TYPE}
        if login:
            self._headers["Authorization"] = f"Basic {base64.b64encode(unquote(login).encode()).decode()}"

    def ask(self, path: str, body: object = None) -> Any:
        """The JSON of the answer; with a body it is a POST. Raises RegistryFailure."""
        data = None if body is None else json.dumps(body).encode()
        try:
            asked = Request(self.url + path, data, self._headers)
            with opener(self.url).open(asked, timeout=TIMEOUT_SECONDS) as answer:
                return json.loads(answer.read(MOST_ANSWER_BYTES))
        except HTTPError as error:
            with error:
                raise RegistryFailure(f"the registry {self.url} refuses: {_reason(error)}", error.code) from None
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise RegistryFailure(f"the registry {self.url} does not answer: {reason}") from None
        except HTTPException as error:
            raise RegistryFailure(f"the registry {self.url} does not speak HTTP: {error!r}") from None
        except (ValueError, RecursionError) as error:
            raise RegistryFailure(f"the registry {self.url} answers what is no JSON: {error}") from None

    def by_id(self, schema_id: int) -> Schema:
        """The schema of an id. Raises RegistryFailure, with the status 404 where nobody has it."""
        return _schema(self.ask(f"/schemas/ids/{schema_id}"))

    def version(self, subject: str, number: int | str = "latest") -> tuple[int, Schema]:
        """Id and schema of a version of a subject. Raises RegistryFailure."""
        found = self.ask(f"/subjects/{quote(subject, safe='')}/versions/{number}")
        return _id(found), _schema(found)

    def register(self, subject: str, schema: Schema) -> int:
        """The id of a schema, which is a version of the subject afterwards. Raises RegistryFailure."""
        body = {"schema": schema.text, "schemaType": schema.kind}
        return _id(self.ask(f"/subjects/{quote(subject, safe='')}/versions", body))

    def texts(self, references: tuple[Reference, ...]) -> list[tuple[str, str]]:
        """Names and texts of everything that references lead to; what another one needs comes before it. Raises
        RegistryFailure."""
        found: dict[str, str] = {}
        asked: set[tuple[str, int]] = set()

        def add(each: Reference) -> None:
            if (each.subject, each.version) in asked:
                return
            asked.add((each.subject, each.version))
            if len(asked) > MOST_REFERENCES:
                raise RegistryFailure(f"more than {MOST_REFERENCES} schemas are behind the references of one")
            _, schema = self.version(each.subject, each.version)
            for inner in schema.references:
                add(inner)
            found[each.name] = schema.text

        for reference in references:
            add(reference)
        return list(found.items())


def _id(found: Any) -> int:
    try:
        return int(found["id"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RegistryFailure(f"the registry answers something without an id: {error!r}") from None


def _schema(found: Any) -> Schema:
    try:
        text, kind = found["schema"], found.get("schemaType") or AVRO
        if not isinstance(text, str) or not isinstance(kind, str):
            raise ValueError("schema and schemaType must be texts")
        return Schema(kind, text, references_of(found.get("references")))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RegistryFailure(f"the registry answers something without a schema: {error!r}") from None


def _reason(error: HTTPError) -> str:
    try:
        return str(json.loads(error.read(1 << 16))["message"])
    except (ValueError, KeyError, TypeError, OSError, RecursionError, HTTPException):
        return f"HTTP {error.code} {error.reason}"
