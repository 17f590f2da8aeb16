"""Quotas of addresses: which connections are refused, and when they end."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad import errors
from pykafkad.server import address_quotas
from pykafkad.server.address_quotas import AddressQuotas
from pykafkad.wire import messages
from tests.metadata.test_client_quotas import entry
from tests.rows import in_turn
from tests.simulation.world import World

CONNECTIONS = "connection_creation_rate"


class Accepted:
    """A socket that a listener accepted."""

    def __init__(self) -> None:
        self.is_closed = False

    def fileno(self) -> int:
        return 3

    def close(self) -> None:
        self.is_closed = True


class Bound:
    """A socket that listens, with one connection to accept."""

    def __init__(self, accepted, address) -> None:
        self._waiting = [(accepted, (address, 1234))]

    def fileno(self) -> int:
        return -1

    def accept(self):
        if not self._waiting:
            raise BlockingIOError
        return self._waiting.pop()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def quotas(world: World) -> AddressQuotas:
    """Ten connections within eleven seconds."""
    made = AddressQuotas(world.runtime, 11, 1000)
    made.set_limits({"10.0.0.1": 1.0})
    return made


def refused(quotas: AddressQuotas, address: str = "10.0.0.1", count: int = 1) -> list[bool]:
    return [quotas.refuses(Accepted(), address) for _ in range(count)]


def test_connections_over_the_quota_are_refused_and_do_not_count(world: World, quotas: AddressQuotas) -> None:
    assert refused(quotas, count=12) == [False] * 10 + [True, True]
    world.advance(5)
    assert refused(quotas, count=20) == [True] * 20
    world.advance(6.5)
    assert refused(quotas, count=11) == [False] * 10 + [True]
    assert refused(quotas, "10.0.0.2", 20) == [False] * 20


def test_a_refused_connection_ends_after_the_throttle_time(world: World, quotas: AddressQuotas) -> None:
    refused(quotas, count=10)
    late = Accepted()
    assert quotas.refuses(late, "10.0.0.1")
    world.advance(0.9)
    assert not late.is_closed
    # The eleventh connection of ten would be within the quota a second later.
    world.advance(0.11)
    assert late.is_closed


def test_no_more_than_so_many_wait_for_their_end(quotas: AddressQuotas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_quotas, "MAX_HELD", 3)
    refused(quotas, count=10)
    late = [Accepted() for _ in range(5)]
    assert all(quotas.refuses(each, "10.0.0.1") for each in late)
    assert [each.is_closed for each in late] == [False] * 3 + [True] * 2
    quotas.close()
    assert all(each.is_closed for each in late)


@in_turn(
    "limit, address",
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("127.0.0.1", "::ffff:127.0.0.1"),
        ("::1", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("fe80::1", "fe80::1%eth0"),
        ("", "192.168.1.1"),
    ],
)
def test_addresses_are_the_same_however_they_are_written(limit, address, tmp_path_factory) -> None:
    world = World(tmp_path_factory.mktemp("world"))
    quotas = AddressQuotas(world.runtime, 11, 1000)
    quotas.set_limits({limit: 1.0})
    assert refused(quotas, address, 11)[-1]
    quotas.set_limits({})
    assert not refused(quotas, address)[0]


def test_the_quota_of_an_address_beats_the_default(quotas: AddressQuotas) -> None:
    quotas.set_limits({"": 1.0, "10.0.0.1": 100.0})
    assert refused(quotas, "10.0.0.1", 50) == [False] * 50
    assert refused(quotas, "10.0.0.2", 11)[-1]


def test_a_broker_refuses_what_comes_from_an_address_over_its_quota(world: World) -> None:
    change = messages.AlterClientQuotasRequest(entries=[entry({"ip": "10.0.0.1"}, (CONNECTIONS, 1.0))])
    assert world.connect().ask(change, 1).entries[0].error_code == errors.NONE
    server = world.broker.socket_server
    before = len(server), world.runtime.metrics.connections_refused
    quotas = server.address_quotas
    while not quotas.refuses(Accepted(), "10.0.0.1"):
        pass
    accepted = Accepted()
    server._accept(Bound(accepted, "10.0.0.1"), world.broker.listeners[0], world.runtime.now)
    assert (len(server), world.runtime.metrics.connections_refused) == (before[0], before[1] + 1)
    assert not accepted.is_closed
    world.stop()
    assert accepted.is_closed
