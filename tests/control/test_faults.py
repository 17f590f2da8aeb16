"""Faults by the control API: set, met, counted, awaited and released."""

from __future__ import annotations

import threading

import pytest

from pykafkad.control import fault_calls
from pykafkad.server.injected_fault import KINDS
from pykafkad.testing import Broker
from pykafkad.testing.waits import until
from pykafkad.testing.wire_client import WireClient
from tests.control.http_client import Client

PARAMETERS = {"error": "NOT_COORDINATOR", "delay_ms": 1, "at_byte": 5}


@pytest.fixture
def client(broker):
    """A client of the broker's, whose requests meet faults."""
    host, port = broker.bootstrap.split(":")
    found = WireClient(host, int(port), client_id="a client")
    yield found
    found.close()


def test_an_error_is_answered_counted_and_awaited(api, client):
    """From its number on, as Python's fault."""
    set_ = api.post("/faults", kind="answer", apis=["ListGroups"], error="COORDINATOR_NOT_AVAILABLE", times=2)
    assert set_.status == 201
    number = set_.body["number"]
    assert set_.body["text"] == "answer ListGroups COORDINATOR_NOT_AVAILABLE times=2"
    waiting = []
    wait = lambda: waiting.append(api.post(f"/faults/{number}/wait", count=2, timeout_seconds=60))  # noqa: E731
    thread = threading.Thread(target=wait)
    thread.start()
    assert [client.ask("ListGroups").error_code for _ in range(3)] == [15, 15, 0]
    thread.join(60)
    assert waiting[0].body == api.get(f"/faults/{number}").body
    assert (waiting[0].body["count"], waiting[0].body["has_ended"]) == (2, True)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_set_with_what_it_needs(api, kind):
    """And released; without its parameter, or with another's, it is refused."""
    needed = KINDS[kind].parameter
    given = {"kind": kind, "apis": ["Fetch"], **({needed: PARAMETERS[needed]} if needed else {})}
    number = api.post("/faults", **given).body["number"]
    assert api.get("/status").body["faults"] == 1
    assert api.delete(f"/faults/{number}").body["has_ended"] is True
    assert api.get("/status").body["faults"] == 0
    for name, value in PARAMETERS.items():
        changed = {**given, name: value}
        if name == needed:
            del changed[name]
        answer = api.post("/faults", **changed)
        assert answer.status == 400 and answer.error["where"] == f"body.{name}"
        assert answer.error["what"] == f"{kind} {'needs' if name == needed else 'takes no'} {name}"


def test_filters_and_chance_reach_the_fault(api, client):
    """One for another client is not met; of a probability some pass."""
    api.post("/faults", kind="close_before", apis=["ListGroups"], client_id="another", times=None)
    half = api.post(
        "/faults", kind="answer", apis=["ListGroups"], error="COORDINATOR_NOT_AVAILABLE", times=None,
        probability=0.5, seed=7, versions=[0, 10],
    )  # fmt: skip
    codes = [client.ask("ListGroups").error_code for _ in range(20)]
    found = api.get(f"/faults/{half.body['number']}").body
    assert found["count"] == codes.count(15) > 0 and found["passed"] == codes.count(0) > 0
    assert found["text"].endswith("versions=(0, 10) times=None probability=0.5 seed=7")


def test_those_of_python_are_there_too(api, broker):
    """With numbers that stay, and that nothing else gets."""
    fault = broker.faults.close_before("Fetch")
    (first,) = api.get("/faults").body["faults"]
    second = api.post("/faults", kind="close_after", apis=["Fetch"]).body
    assert [each["number"] for each in api.get("/faults").body["faults"]] == [first["number"], second["number"]]
    assert {each["has_ended"] for each in api.delete("/faults").body["faults"]} == {True} and fault.has_ended
    api.send("POST", "/reset")
    assert api.get("/faults").body == {"faults": []}
    assert api.get(f"/faults/{first['number']}").status == 404
    assert api.post("/faults", kind="close_after", apis=["Fetch"]).body["number"] > second["number"]


@pytest.mark.parametrize(
    ("changed", "what", "where"),
    [
        ({"kind": "explode"}, "there is no value 'explode'", "body.kind"),
        ({"apis": ["Fetsch"]}, "there is no value 'Fetsch'; did you mean Fetch or ShareFetch?", "body.apis[0]"),
        ({"apis": []}, "a list of 0", "body.apis"),
        ({"times": 0}, "0 is out of range", "body.times"),
        ({"probability": 0}, "0 is out of range", "body.probability"),
        ({"versions": [1]}, "a list of 1", "body.versions"),
        ({"versions": [90, 91]}, "versions: Fetch has", ""),
        ({"versions": [9, 5]}, "versions: (9, 5) is no version from 0 on, and no first and last one", ""),
        ({"kind": "answer", "error": "NO_SUCH"}, "there is no value 'NO_SUCH'", "body.error"),
    ],
)
def test_what_could_never_be_met_is_refused(api, changed, what, where):
    """When it is set, and not in mid-test."""
    answer = api.post("/faults", **{"kind": "close_before", "apis": ["Fetch"], **changed})
    assert answer.status == 400 and what in answer.error["what"] and answer.error["where"] == where
    assert api.get("/faults").body == {"faults": []}


def test_a_wait_for_what_does_not_happen(api):
    """Says how often it did."""
    number = api.post("/faults", kind="close_before", apis=["Fetch"]).body["number"]
    answer = api.post(f"/faults/{number}/wait", timeout_seconds=0.05)
    assert answer.status == 504 and "still no request number 1 that met the fault" in answer.error["what"]
    assert api.post("/faults/999999/wait").status == 404


def test_faults_have_a_limit(api, monkeypatch):
    """Ended ones make room."""
    monkeypatch.setattr(fault_calls, "MOST_FAULTS", 3)
    numbers = [api.post("/faults", kind="close_before", apis=["Fetch"]).body["number"] for _ in range(3)]
    assert api.post("/faults", kind="close_before", apis=["Fetch"]).status == 429
    api.delete(f"/faults/{numbers[0]}")
    assert api.post("/faults", kind="close_before", apis=["Fetch"]).status == 201
    assert len(api.get("/faults").body["faults"]) == 3


def test_a_wait_for_a_fault_ends_with_the_broker():
    """Although its count could be asked on."""
    answers = []
    with Broker(control=True) as own:
        api = Client(own.control_url, own.control_token)
        number = api.post("/faults", kind="close_before", apis=["Fetch"]).body["number"]
        wait = lambda: answers.append(api.post(f"/faults/{number}/wait", timeout_seconds=600))  # noqa: E731
        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: api.get("/status").body["waits"], lambda seen: seen == 1, "wait", 30)
    thread.join(60)
    assert answers[0].status == 503
