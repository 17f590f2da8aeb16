"""A registry that keeps its records in a list, asked as an HTTP server asks it."""

import io
import json

from pykafkad.registry.application import Application
from pykafkad.registry.registry import Registry


class ListStore:
    """Records in memory."""

    def __init__(self):
        self.records = []

    def read(self):
        return list(self.records)

    def last(self):
        return (len(self.records), self.records[-1]) if self.records else None

    def append(self, records):
        self.records += records
        return self.last()


class Asked:
    """`ask("GET", "/subjects")` is the status and the JSON of the answer; it must tell of no bug."""

    def __init__(self):
        self.store = ListStore()
        self.registry = Registry(self.store)
        self._application = Application(self.registry, self._tell)

    def _tell(self, error, request):
        raise AssertionError(f"a bug in {request}") from error

    def again(self):
        """Another registry with the same records, as after a restart."""
        other = Asked()
        other.store.records = list(self.store.records)
        return other

    def bytes(self, method, path, body=b""):
        """Status, headers and body of the answer."""
        told = []
        address, _, query = path.partition("?")
        environment = {
            "REQUEST_METHOD": method,
            "REQUEST_URI": path,
            "PATH_INFO": address,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
        }
        content = b"".join(self._application(environment, lambda status, headers: told.extend((status, dict(headers)))))
        return int(told[0].split()[0]), told[1], content

    def __call__(self, method, path, body=None):
        status, _, content = self.bytes(method, path, b"" if body is None else json.dumps(body).encode())
        return status, json.loads(content)

    def register(self, subject, schema, kind=None, references=None, **more):
        """Register a schema, which may be JSON; the answer's id or error."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        body = {"schema": text, **({"schemaType": kind} if kind else {}), **more}
        if references is not None:
            body["references"] = references
        status, answer = self("POST", f"/subjects/{subject}/versions", body)
        return answer["id"] if status == 200 else answer["error_code"]


def record(name, **fields):
    """An Avro record whose fields have those types; a pair is a type with a default."""
    rows = []
    for field, kind in fields.items():
        rows.append(
            {"name": field, "type": kind[0], "default": kind[1]}
            if isinstance(kind, tuple)
            else {"name": field, "type": kind}
        )
    return {"type": "record", "name": name, "fields": rows}
