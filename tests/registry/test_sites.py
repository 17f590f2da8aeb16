"""Requests of web pages to a registry: those of other sites are refused."""

from __future__ import annotations

import io
import json

import pytest

from pykafkad.registry.application import Application
from pykafkad.registry.registry import Registry
from pykafkad.registry.server import RegistryServer
from tests.registry.asked import ListStore


def status_of(host, origin=None, *, is_loopback=True):
    """The status of the answer to one who registers a schema."""
    told, store, body = [], ListStore(), json.dumps({"schema": '"int"'}).encode()
    environment = {
        "REQUEST_METHOD": "POST",
        "REQUEST_URI": "/subjects/s/versions",
        "PATH_INFO": "/subjects/s/versions",
        "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": "text/plain",
        "HTTP_HOST": host,
        "wsgi.input": io.BytesIO(body),
        **({} if origin is None else {"HTTP_ORIGIN": origin}),
    }
    made = Application(Registry(store), lambda error, request: told.append(error), is_loopback=is_loopback)
    made(environment, lambda status, headers: told.append(int(status.split()[0])))
    (status,) = told
    assert bool(store.records) == (status == 200)
    return status


@pytest.mark.parametrize(
    "host, origin",
    [
        ("localhost:8081", None),
        ("127.0.0.1:8081", None),
        ("[::1]:8081", None),
        ("10.0.0.1", None),
        ("", None),
        ("localhost:8081", "http://localhost:8081"),
    ],
)
def test_programs_and_pages_of_its_own_are_answered(host, origin):
    assert status_of(host, origin) == 200


@pytest.mark.parametrize(
    "host, origin",
    [
        ("localhost:8081", "http://evil.example"),
        ("localhost:8081", "null"),
        ("localhost:8081", "http://localhost:3000"),
        ("evil.example:8081", "http://evil.example:8081"),
        ("evil.example:8081", None),
        ("[::", None),
    ],
)
def test_pages_of_other_sites_are_refused(host, origin):
    """By their Origin, and by a name that leads to this machine (DNS rebinding)."""
    assert status_of(host, origin) == 403


def test_beyond_this_machine_it_has_any_name():
    assert status_of("registry.example", is_loopback=False) == 200
    assert status_of("registry.example", "http://evil.example", is_loopback=False) == 403


class Told:
    """A log that keeps what it is told."""

    def __init__(self):
        self.lines = []

    def warning(self, *words, **fields):
        self.lines.append(words)


@pytest.mark.parametrize("host, lines", [("0.0.0.0", [("registry", "open-to-others")]), ("127.0.0.1", [])])
def test_it_warns_where_others_reach_it(host, lines):
    logs = Told()
    server = RegistryServer(None, host=host, logs=logs)
    server.start()
    server.close()
    assert logs.lines == lines
