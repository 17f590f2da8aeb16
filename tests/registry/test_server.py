"""The registry beside a broker: `Broker(registry=True)`."""

import json
import urllib.error
import urllib.request

import pytest

from pykafkad.errors import ConfigError
from pykafkad.registry import server
from pykafkad.testing import Broker


def ask(url, method="GET", body=None):
    """Status and JSON of an answer."""
    request = urllib.request.Request(url, method=method, data=None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def register(broker, subject, schema='"int"'):
    return ask(f"{broker.registry_url}/subjects/{subject}/versions", "POST", {"schema": schema})


def test_schemas_are_records_of_a_compacted_topic():
    with Broker(registry=True) as broker:
        assert ask(broker.registry_url) == (200, {})
        assert "_schemas" not in broker.topics()
        assert register(broker, "s")[1]["id"] == 1
        (record,) = broker.records("_schemas")
        assert json.loads(record.key) == {"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1}
        assert json.loads(record.value) == {
            "subject": "s",
            "version": 1,
            "id": 1,
            "schema": '"int"',
            "deleted": False,
        }


def test_a_reset_and_a_way_back_take_the_schemas_along():
    with Broker(registry=True) as broker:
        register(broker, "before")
        broker.save("one")
        register(broker, "after", '"string"')
        broker.rewind("one")
        assert ask(broker.registry_url + "/subjects") == (200, ["before"])
        broker.reset()
        register(broker, "other")
        broker.rewind("one")
        assert ask(broker.registry_url + "/subjects") == (200, ["before"]), "of as many records"
        broker.reset()
        assert ask(broker.registry_url + "/subjects") == (200, [])
        assert register(broker, "new")[1]["id"] == 1


def test_schemas_outlive_a_restart(tmp_path):
    with Broker(registry=True, data=tmp_path) as broker:
        register(broker, "s")
        broker.restart()
        assert ask(broker.registry_url + "/subjects") == (200, ["s"])
    with Broker(registry=True, data=tmp_path) as broker:
        assert ask(broker.registry_url + "/subjects/s/versions") == (200, [1])


def test_a_broker_that_has_ended_answers_nobody():
    broker = Broker(registry=True)
    with broker:
        url = broker.registry_url
    with pytest.raises(urllib.error.URLError):
        ask(url)
    assert broker.registry_url == ""


def test_without_a_registry_it_says_so():
    broker = Broker()
    with pytest.raises(RuntimeError, match=r"no schema registry; give it one: Broker\(registry=True\)"):
        _ = broker.registry_url


def test_without_its_libraries_it_says_what_to_install(monkeypatch):
    told = "the package avro is not installed"
    monkeypatch.setattr(server.extras, "missing", lambda name: told if name == "avro.schema" else None)
    with pytest.raises(ConfigError, match=f"registry: {told}"):
        Broker(registry=True)
