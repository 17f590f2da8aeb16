"""What the nodes of a cluster reach each other through, and who they are."""

from __future__ import annotations

import abc
from pathlib import Path

from compat_tests.brokers.pykafkad_process import PykafkadProcess

BROKERS = (1, 2, 3)
CONTROLLERS = (11, 12, 13)
NODES = (*BROKERS, *CONTROLLERS)
QUORUM = 0
"""The source of a cut that concerns what nodes ask a controller as voters and observers."""
CLIENTS = -1
"""The source of a cut that concerns what clients ask a broker."""


class Network(abc.ABC):
    """Links between nodes by their ids, each of which can be cut by itself, one way or both."""

    name: str
    """What `--network` calls it."""
    cuts_clients = False
    """Whether a broker can be cut off from clients too."""

    @abc.abstractmethod
    def listening(self, number: int) -> str:
        """The `host:port` where a node listens."""

    @abc.abstractmethod
    def address(self, number: int) -> str:
        """The `host:port` where other nodes and clients reach a node."""

    @abc.abstractmethod
    def process(self, number: int, directory: Path, settings: dict[str, str]) -> PykafkadProcess:
        """A node that is not started yet."""

    @abc.abstractmethod
    def open(self) -> None:
        """Connect all nodes, which may be started then."""

    @abc.abstractmethod
    def cut(self, source: int, target: int, way: int) -> None:
        """Cut what one node asks another, what is answered, or both, as `way` says (0, 1, 2)."""

    @abc.abstractmethod
    def heal(self, source: int, target: int, way: int, *, reset: bool) -> None:
        """End that cut. What was under way comes through, or its connections are reset."""

    @abc.abstractmethod
    def close(self) -> None:
        """Remove what `open` made, also if that failed half-way."""
