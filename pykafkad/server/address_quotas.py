"""Quotas of addresses: how many connections a second each may open (KIP-612).

A connection over the quota is accepted, gets nothing, and is closed after the throttle time, which is a window at most.
It does not count. The quota of an address beats the default."""

from __future__ import annotations

from pykafkad.quotas.client_quota import ClientQuota
from pykafkad.quotas.rate_sensor import RateSensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket

    from pykafkad.server.runtime import Runtime

MAX_HELD = 1_000
"""How many connections wait for their end at most; one more is closed at once."""


class AddressQuotas:
    """The quotas of all addresses, and the connections that are over them."""

    __slots__ = ("_held", "_last", "_quota", "_runtime")

    def __init__(self, runtime: Runtime, sample_count: int, window_ms: int) -> None:
        self._runtime = runtime
        self._quota = ClientQuota(lambda bound: RateSensor(sample_count, window_ms, bound, window_ms))
        self._held: dict[int, socket] = {}
        self._last = 0

    def set_limits(self, limits: Mapping[str, float]) -> None:
        """Connections a second, by address; the empty text stands for every other address."""
        # Addresses take the place of client ids, as nobody else shares a quota with one.
        self._quota.set_limits({(None, _canonical(address)): limit for address, limit in limits.items()})

    def refuses(self, accepted: socket, address: str) -> bool:
        """Whether the address opens too many. Then the connection is closed from here."""
        now_ms = self._runtime.now * 1000
        sensor: RateSensor | None = self._quota.sensor("", _canonical(address), now_ms)
        throttle_ms = 0 if sensor is None else sensor.charge(1.0, now_ms)
        if sensor is None or not throttle_ms:
            return False
        sensor.record(-1.0, now_ms)
        if len(self._held) >= MAX_HELD:
            accepted.close()
            return True
        self._last += 1
        self._held[self._last] = accepted
        self._runtime.timers.set((self, self._last), self._runtime.now + throttle_ms / 1000)
        return True

    def fired(self, number: int) -> None:
        """The throttle time of a connection is over."""
        self._held.pop(number).close()

    def close(self) -> None:
        """End those that wait for it."""
        for number in list(self._held):
            self._runtime.timers.cancel((self, number))
            self.fired(number)


def _canonical(address: str) -> str:
    """The one way to write an address, also of IPv4 that came through an IPv6 socket."""
    from ipaddress import IPv6Address, ip_address

    if not address:
        return ""
    # The only name that a quota may have.
    found = ip_address("127.0.0.1" if address == "localhost" else address.partition("%")[0])
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return str(found)
