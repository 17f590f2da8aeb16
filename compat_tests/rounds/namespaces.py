"""A network where each node has a network namespace and an address of its own, and one more namespace routes between
them: it drops single links' packets without a word, as a switch does that has failed.

A proxy acknowledges what it holds back. Here nobody does: connections are half open, what is sent comes late or never,
and whoever connects waits for its time-out.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import os
import subprocess
import threading
from collections import Counter
from pathlib import Path

from compat_tests.brokers.pykafkad_process import PykafkadProcess
from compat_tests.rounds.network import CLIENTS, NODES, QUORUM, Network

PORT = 9092
# For measurements between networks (RFC 2544): no host has these addresses.
RANGE = ipaddress.IPv4Network("198.18.0.0/15")
BLOCKS = tuple(RANGE.subnets(new_prefix=24))
LINK_ADDRESSES = 4
PLACES = {place: index for index, place in enumerate((CLIENTS, *NODES))}
PRIORITY = 100
"""Of the rules that drop packets: the kernel asks them before the routes, and after the router's own addresses."""
COMMAND_SECONDS = 60.0


class NamespacesUnavailable(Exception):
    """This machine allows no network namespaces; the message says what stands in the way."""


_batches = itertools.count()


class Namespaces(Network):
    """The clients are at the machine itself. `owner` is the process id that the names contain."""

    name = "namespaces"
    cuts_clients = True

    def __init__(self, owner: int | None = None) -> None:
        self._owner = os.getpid() if owner is None else owner
        self.router = self.namespace("router")
        self._link = f"rounds{self._owner}"
        # Clients that an earlier batch has left do not reach this one.
        first = self._owner + next(_batches)
        self._block = free_block(first, _run("ip", "-json", "-4", "route", "show", "table", "all"))
        self._drops: Counter[tuple[str, str]] = Counter()
        # Troubles end in threads of their own.
        self._lock = threading.Lock()

    def namespace(self, place: object) -> str:
        """The name of a node's namespace, or of the router's."""
        return f"rounds-{self._owner}-{place}"

    def host(self, number: int) -> str:
        """The address of a node, or of the clients."""
        return str(self._block[LINK_ADDRESSES * PLACES[number] + 1])

    def listening(self, number: int) -> str:
        return f"{self.host(number)}:{PORT}"

    address = listening

    def process(self, number: int, directory: Path, settings: dict[str, str]) -> PykafkadProcess:
        return NodeInNamespace(self.namespace(number), self.listening(number), directory, settings)

    def open(self) -> None:
        # What another run with this process id has left, when it was killed.
        self.close()
        places = [self.router, *map(self.namespace, NODES)]
        _run("ip", "-batch", "-", lines=[f"netns add {name}" for name in places])
        router, clients = f"netns {self.router} type veth peer", self._gateway(CLIENTS)
        _run("ip", "-batch", "-", lines=[
            f"link add name {self._link}r {router} name {self._link}",
            *(f"link add name to-{each} {router} name eth0 netns {self.namespace(each)}" for each in NODES),
            f"address add {self.host(CLIENTS)}/30 dev {self._link}",
            f"link set {self._link} up",
            f"route add {self._block} via {clients}",
        ])  # fmt: skip
        devices = {CLIENTS: f"{self._link}r", **{each: f"to-{each}" for each in NODES}}
        _run("ip", "-n", self.router, "-batch", "-", lines=[
            line
            for number, device in devices.items()
            for line in (f"address add {self._gateway(number)}/30 dev {device}", f"link set {device} up")
        ])  # fmt: skip
        _run("ip", "netns", "exec", self.router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for each in NODES:
            _run("ip", "-n", self.namespace(each), "-batch", "-", lines=[
                "link set lo up",
                f"address add {self.host(each)}/30 dev eth0",
                "link set eth0 up",
                f"route add default via {self._gateway(each)}",
            ])  # fmt: skip

    def _gateway(self, number: int) -> str:
        """The router's address on the link to a node."""
        return str(self._block[LINK_ADDRESSES * PLACES[number] + 2])

    def drops(self, source: int, target: int, way: int) -> list[tuple[str, str]]:
        """From which address to which packets are lost."""
        sources = [each for each in NODES if each != target] if source == QUORUM else [source]
        there = [(self.host(each), self.host(target)) for each in sources]
        back = [(to, origin) for origin, to in there]
        return (there, back, there + back)[way]

    def cut(self, source: int, target: int, way: int) -> None:
        with self._lock:
            drops = self.drops(source, target, way)
            self._drops.update(drops)
            self._rule("add", [each for each in drops if self._drops[each] == 1])

    def heal(self, source: int, target: int, way: int, *, reset: bool) -> None:
        """TCP sends again what was lost. With `reset` both ends forget the connections, where the kernel can do that:
        the target while nothing reaches it, so that nothing that was lost comes late."""
        with self._lock:
            drops = self.drops(source, target, way)
            hosts = {each for drop in drops for each in drop} - {self.host(target)}
            if reset:
                self._forget(target, hosts)
            self._drops.subtract(drops)
            self._rule("del", [each for each in drops if self._drops[each] == 0])
            for each in PLACES if reset else ():
                if self.host(each) in hosts:
                    self._forget(each, {self.host(target)})

    def _forget(self, number: int, peers: set[str]) -> None:
        """End all connections of a node, or of the clients, to some addresses."""
        there = [] if number == CLIENTS else ["ip", "netns", "exec", self.namespace(number)]
        _run(*there, "ss", "--kill", "--tcp", " or ".join(f"dst {each}" for each in sorted(peers)))

    def _rule(self, verb: str, drops: list[tuple[str, str]]) -> None:
        """A blackhole of the router's tells nobody; one of the source's own would be told to who sends."""
        lines = [f"rule {verb} from {origin} to {to} blackhole priority {PRIORITY}" for origin, to in drops]
        if lines:
            _run("ip", "-n", self.router, "-batch", "-", lines=lines)

    def close(self) -> None:
        left = set(_run("ip", "netns", "list").split())
        # The kernel removes a namespace's links later, and the next batch has one of the same name.
        if Path("/sys/class/net", self._link).exists():
            _run("ip", "link", "delete", self._link)
        for name in left.intersection({self.router, *map(self.namespace, NODES)}):
            _run("ip", "netns", "delete", name)


class NodeInNamespace(PykafkadProcess):
    """A node that runs in a namespace."""

    def __init__(self, namespace: str, address: str, directory: Path, settings: dict[str, str]) -> None:
        super().__init__(directory, settings, port=PORT)
        self.bootstrap = address
        self._namespace = namespace

    def _spawn(self, command: list[str], environment: dict[str, str] | None = None) -> None:
        # `ip` becomes the command: the process id is the node's.
        super()._spawn(["ip", "netns", "exec", self._namespace, *command], environment)


def free_block(number: int, routes: str) -> ipaddress.IPv4Network:
    """The 256 addresses of a batch: those that belong to its number, or the next that no route of `routes` (what
    `ip -json route` prints) leads to."""
    known = [each["dst"] for each in json.loads(routes) if each["dst"] != "default"]
    # A route to more than the whole range is a part of the default one.
    taken = [each for each in map(ipaddress.IPv4Network, known) if each.prefixlen >= RANGE.prefixlen]
    for step in range(len(BLOCKS)):
        block = BLOCKS[(number + step) % len(BLOCKS)]
        if not any(block.overlaps(each) for each in taken):
            return block
    raise NamespacesUnavailable(f"all {len(BLOCKS)} blocks of {RANGE} have routes already")


def check() -> None:
    """NamespacesUnavailable where `Namespaces` cannot be opened."""
    network = Namespaces()
    try:
        network.open()
        network.cut(CLIENTS, NODES[0], 2)
        network.heal(CLIENTS, NODES[0], 2, reset=True)
    finally:
        network.close()


def _run(*words: str, lines: list[str] | None = None) -> str:
    """What a program prints; `lines` are the commands of a batch. NamespacesUnavailable if it fails."""
    text = None if lines is None else "".join(f"{line}\n" for line in lines)
    try:
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    except FileNotFoundError:
        raise NamespacesUnavailable(f"the program {words[0]} is missing (Debian's iproute2 has it)") from None
    if done.returncode:
        raise NamespacesUnavailable(f"`{' '.join(words)}` fails: {' '.join(done.stderr.split())}")
    return done.stdout
