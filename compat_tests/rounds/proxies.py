"""A network where each node is reached through a proxy, which holds what single nodes ask it."""

from __future__ import annotations

from pathlib import Path

from compat_tests.brokers.broker import free_port
from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.exactly_once.proxy import WAYS, Proxy
from compat_tests.rounds.network import BROKERS, NODES, Network


class Proxies(Network):
    """A proxy knows who asks by its client id. Everybody connects and is acknowledged at any time."""

    name = "proxies"

    def __init__(self) -> None:
        self._ports = {number: free_port() for number in NODES}
        self._proxy_ports = {number: free_port() for number in NODES}
        self._proxies: dict[int, Proxy] = {}

    def listening(self, number: int) -> str:
        return f"localhost:{self._ports[number]}"

    def address(self, number: int) -> str:
        return f"localhost:{self._proxy_ports[number]}"

    def process(self, number: int, directory: Path, settings: dict[str, str]) -> PykafkadProcess:
        return PykafkadProcess(directory, settings, port=self._ports[number])

    def open(self) -> None:
        for number in NODES:
            self._proxies[number] = Proxy(self._proxy_ports[number], self.listening(number))

    def cut(self, source: int, target: int, way: int) -> None:
        for client in clients_of(source):
            self._proxies[target].cut(client, WAYS[way])

    def heal(self, source: int, target: int, way: int, *, reset: bool) -> None:
        for client in clients_of(source):
            self._proxies[target].heal(client, reset)

    def close(self) -> None:
        for proxy in self._proxies.values():
            proxy.close()


def clients_of(source: int) -> list[str]:
    """The client ids of what a broker asks others, or of everybody that observes or votes in the quorum."""
    if source not in BROKERS:
        return ["raft-client"]
    return [f"broker-{source}{suffix}" for suffix in ("", "-fetcher-0", "-heartbeat", "-to-controller")]
