"""Peers are named in the log once in a while, whatever they send; and what they ask for that is not offered, once."""

from __future__ import annotations

import pytest

from pykafkad.server import peer_lines
from pykafkad.server.logs import LINES_KEPT, Logs
from pykafkad.server.peer_lines import HOSTS, NAMED_AGAIN_SECONDS, REASONS, PeerLines
from pykafkad.wire import messages
from tests.simulation.disk import MemoryDisk
from tests.simulation.world import World


class Kept:
    """A sink that keeps its lines, as texts of the fields that matter here."""

    def __init__(self) -> None:
        self.lines: list[tuple[object, ...]] = []

    def line(self, level: str, name: str, event: str, fields: dict[str, object]) -> None:
        self.lines.append((event, fields.get("peer"), fields.get("more")))


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def lines(kept: Kept) -> PeerLines:
    return PeerLines(Logs("info", kept))


def test_a_host_is_named_with_one_reason_once_a_minute(lines: PeerLines, kept: Kept) -> None:
    for second in range(int(NAMED_AGAIN_SECONDS) + 1):
        lines.refused(1000.0 + second, "connection-closed", f"10.0.0.1:{second}", "an HTTP request")
    spared = int(NAMED_AGAIN_SECONDS) - 1
    assert kept.lines == [
        ("connection-closed", "10.0.0.1:0", None),
        ("connection-closed", f"10.0.0.1:{spared + 1}", spared),
    ]


def test_other_hosts_and_other_reasons_are_named(lines: PeerLines, kept: Kept) -> None:
    for peer in ("10.0.0.1:1", "10.0.0.2:1", "[::1]:1"):
        for reason in ("a", "b"):
            lines.refused(1.0, "connection-closed", peer, reason)
            lines.refused(1.0, "connection-closed", peer, reason)
    assert len(kept.lines) == 6


def test_reasons_that_are_always_new_do_not_flood_the_log(lines: PeerLines, kept: Kept) -> None:
    for number in range(REASONS * 3):
        lines.refused(1.0, "connection-closed", "10.0.0.1:1", f"a frame of {number} bytes")
    assert len(kept.lines) == REASONS
    lines.refused(1.0 + NAMED_AGAIN_SECONDS, "connection-closed", "10.0.0.1:1", "a frame")
    assert kept.lines[-1][2] == REASONS * 2


def test_it_keeps_a_bounded_number_of_hosts(lines: PeerLines, kept: Kept) -> None:
    for number in range(HOSTS + 5):
        lines.refused(1.0, "connection-closed", f"host{number}:1", "a")
    assert len(lines._hosts) == HOSTS


def test_a_line_that_is_written_once_is_known_of_a_bounded_number(kept: Kept) -> None:
    logs = Logs("info", kept)
    for number in (*range(LINES_KEPT), *range(LINES_KEPT)):
        logs.info_once("server", "not-offered", peer=number)
    assert len(kept.lines) == LINES_KEPT == len(logs._told_once)
    logs.info_once("server", "not-offered", peer="new")
    assert len(kept.lines) == LINES_KEPT + 1 == len(logs._told_once) + 1


def test_what_is_not_offered_is_named_once_for_each_client() -> None:
    events = []
    world = World("/data", disk=MemoryDisk())
    world.broker.logs.sink = type("Sink", (), {"line": lambda self, *line: events.append(line)})()
    for _ in range(2):
        peer = world.connect()
        peer.ask(messages.DescribeDelegationTokenRequest(owners=None), 3)
        peer.ask(messages.CreateDelegationTokenRequest(max_lifetime_ms=1), 3)
        peer.ask(messages.RenewDelegationTokenRequest(), 2)
        peer.ask(messages.ExpireDelegationTokenRequest(), 2)
    told = [(level, fields) for level, _, event, fields in events if event == "not-offered"]
    assert told == [
        ("info", {"host": "/127.0.0.1", "what": "delegation tokens: delegation.token.secret.key is not set"})
    ]


def test_a_health_check_by_http_is_named_once(monkeypatch) -> None:
    monkeypatch.setattr(peer_lines, "NAMED_AGAIN_SECONDS", 30.0)
    events = []
    world = World("/data", disk=MemoryDisk())
    world.broker.logs.sink = type("Sink", (), {"line": lambda self, *line: events.append(line)})()
    for _ in range(5):
        world.connect().put_on_the_wire(b"GET /health HTTP/1.1\r\n\r\n")
        world.turn()
    closed = [
        fields["reason"] for level, _, event, fields in events if (level, event) == ("warning", "connection-closed")
    ]
    assert closed == ["not Kafka's protocol: an HTTP request"]
    world.advance(31)
    world.connect().put_on_the_wire(b"GET /health HTTP/1.1\r\n\r\n")
    world.turn()
    assert [fields.get("more") for _, _, event, fields in events if event == "connection-closed"] == [None, 4]
