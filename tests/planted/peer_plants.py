"""Bugs to plant in `pykafkad/server`: what nodes say to each other."""

from __future__ import annotations

from tests.planted.plant import Plant

PEER = ("tests/server/test_peer.py",)
BROKERS = ("tests/simulation/test_brokers_world.py",)

PLANTS = (
    Plant(
        "a request goes in the newest version that this node knows, whatever the other knows",
        "server/peer_greeting.py",
        "version: int = min(theirs[1], row.max_version)",
        "version: int = row.max_version",
        PEER,
    ),
    Plant(
        "an API of versions that are all newer is asked in the oldest of them",
        "server/peer_greeting.py",
        "return version if version >= max(theirs[0], row.min_version) else None",
        "return max(version, theirs[0])",
        PEER,
    ),
    Plant(
        "an answer in version 0 is read in the version that was asked for",
        "server/peer_greeting.py",
        "return 0 if key == frames.API_VERSIONS and bytes(body[:2]) == _UNSUPPORTED else version",
        "return version",
        PEER,
    ),
    Plant(
        "requests are sent before the versions are known",
        "server/peer.py",
        "if self._is_ready:\n    self._send_queued()",
        "if self._greeting is not None:\n    self._send_queued()",
        PEER,
    ),
    Plant(
        "a node that refuses every greeting is tried again and again at once",
        "server/peer.py",
        "self._greeting = Greeting()",
        "self._greeting = Greeting()\nself._failures = 0",
        PEER,
    ),
    Plant(
        "a greeting that is not answered holds the requests behind it longer than they may wait",
        "server/peer.py",
        "self._runtime.timers.set((self, _DEADLINE), min(oldest))",
        "self._runtime.timers.set((self, _DEADLINE), oldest[-1] + 1.0)",
        PEER,
    ),
    Plant(
        "the high watermark of an answer that parts the logs counts as heard",
        "server/replica_fetchers.py",
        "if question != machine.question() or diverging[0] >= 0:",
        "if False:",
        BROKERS,
    ),
)
