"""Waits by the control API: they end as soon as what they wait for is there, and say what is there instead."""

from __future__ import annotations

import threading

import pytest

from pykafkad import http_server
from pykafkad.control.route import MOST_WAITS
from pykafkad.testing import Broker, NewRecord, records
from pykafkad.testing.waits import until
from tests.control.http_client import Client


class Waiting:
    """A request that waits, on a thread of its own."""

    def __init__(self, api, what, **body):
        self.answers = []
        self._thread = threading.Thread(target=lambda: self.answers.append(api.post(f"/waits/{what}", **body)))
        self._thread.start()

    def answer(self):
        """What came in the end."""
        self._thread.join(60)
        return self.answers[0]


def until_waiting(api, count):
    """Return when so many requests wait."""
    until(lambda: api.get("/status").body["waits"], lambda seen: seen == count, f"{count} waits", 30)


def test_what_is_there_is_answered_at_once(api, broker):
    """With what it is."""
    broker.commit("readers", {("orders", index): len(broker.records("orders", index)) for index in range(3)})
    assert api.post("/waits/topic", topic="orders", partitions=3).body == {"topic": "orders", "partitions": 3}
    assert len(api.post("/waits/records", topic="orders", count=2).body["records"]) == 2
    assert api.post("/waits/lag", group="readers").body["name"] == "readers"
    assert api.post("/waits/gone", group="readers").body["members"] == []
    assert api.post("/waits/gone", group="readers", client_id="x").body["state"] == "Empty"


def test_a_wait_ends_when_it_comes(api, broker):
    """Other requests are answered meanwhile."""
    waiting = Waiting(api, "topic", topic="late", timeout_seconds=60)
    until_waiting(api, 1)
    broker.create_topic("late", 2)
    assert waiting.answer().body == {"topic": "late", "partitions": 2}


@pytest.mark.parametrize(
    ("what", "body", "told"),
    [
        ("topic", {"topic": "none"}, "no topic none; there is: orders of 3"),
        ("records", {"topic": "orders", "count": 9}, "no 9 records in orders; there is: 2, the last is"),
        ("group", {"group": "g", "members": 2}, "no group g stable with 2 members; there is: group g: there is none"),
        ("assignment", {"group": "g", "topic": "orders"}, "no group g that has all of orders"),
        ("lag", {"group": "g", "lag": 1}, "no group g with a lag of at most 1"),
        ("transaction", {"transactional_id": "t"}, "no end of the transaction of t"),
    ],
)
def test_what_does_not_come_is_an_error(api, what, body, told):
    """Status 504, with what there is instead."""
    answer = api.post(f"/waits/{what}", **body, timeout_seconds=0.05)
    assert answer.status == 504 and f"after 0.05 s still {told}" in answer.error["what"]


def test_only_so_many_wait_at_a_time(api, broker):
    """One more is refused, and others are answered; it is the same again when they have ended."""
    waiting = [Waiting(api, "topic", topic="late", timeout_seconds=60) for _ in range(MOST_WAITS)]
    until_waiting(api, MOST_WAITS)
    refused = api.post("/waits/topic", topic="orders")
    assert refused.status == 429 and refused.error["allowed"] == f"{MOST_WAITS} at a time"
    broker.create_topic("late")
    assert {each.answer().status for each in waiting} == {200}
    until_waiting(api, 0)
    assert api.post("/waits/topic", topic="orders").status == 200


def test_waits_end_with_their_broker(monkeypatch):
    """Nobody waits until the limit, and no thread is left."""
    monkeypatch.setattr(http_server, "STOP_SECONDS", 60.0)
    before = threading.active_count()
    with Broker(control=True) as own:
        api = Client(own.control_url, own.control_token)
        waiting = [Waiting(api, "topic", topic="never", timeout_seconds=600) for _ in range(3)]
        until_waiting(api, 3)
    assert {each.answer().status for each in waiting} == {503}
    until(threading.active_count, lambda seen: seen <= before, "end of all threads", 30)


def test_a_wait_for_records_reads_none_before_there_may_be_enough(api, broker, monkeypatch):
    """It asks for offsets; records are read once, when they are there."""
    reads, looks = [], []
    read, look = records._fetch, records.bounds
    monkeypatch.setattr(records, "bounds", lambda *given: looks.append(given) or look(*given))
    monkeypatch.setattr(records, "_fetch", lambda *given: reads.append(given) or read(*given))
    waiting = Waiting(api, "records", topic="orders", count=12, timeout_seconds=60)
    until(lambda: len(looks), lambda seen: seen >= 3, "looks", 30)
    assert reads == []
    broker.produce("orders", *[NewRecord(str(n), partition=0) for n in range(10)])
    assert len(waiting.answer().body["records"]) == 12
