"""A fault on purpose, as a value: what it does, to which requests, and how often. `fault_injection.py` applies it."""

from __future__ import annotations

from collections import namedtuple
from random import Random

from pykafkad import errors

Kind = namedtuple("Kind", ("name", "parameter", "text"))
Kind.__doc__ = """What a fault does: its name, the parameter that it needs (None: none), and a line for people."""

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("answer", "error", "answer with an error; the request is not served"),
        Kind("delay", "delay_ms", "serve the request later"),
        Kind("delay_answer", "delay_ms", "serve the request at once and answer it later"),
        Kind("drop_request", None, "do not serve the request, and say nothing more on its connection"),
        Kind("drop_answer", None, "serve the request, do not answer, and say nothing more on its connection"),
        Kind("close_before", None, "close the connection; the request is not served"),
        Kind("close_after", None, "serve the request, and close the connection in place of the answer"),
        Kind("cut_answer", "at_byte", "serve the request, send so many bytes of the answer, and close the connection"),
        Kind("corrupt_records", None, "serve the request, and change a byte of the records in its answer"),
    )
}


class Fault:
    """One fault: what it does, to which requests, how often. `fired` and `passed` count the requests that matched and
    met it or not (for its probability)."""

    __slots__ = (
        "_draws",
        "at_byte",
        "broker",
        "client_id",
        "delay_seconds",
        "error_code",
        "fired",
        "group",
        "keys",
        "kind",
        "left",
        "partition",
        "passed",
        "probability",
        "topic",
        "transactional_id",
        "versions",
    )

    def __init__(
        self,
        kind: str,
        keys: frozenset[int],
        *,
        error_code: int = errors.NONE,
        delay_seconds: float = 0.0,
        at_byte: int = 0,
        versions: range | None = None,
        client_id: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        broker: int | None = None,
        times: int | None = 1,
        probability: float = 1.0,
        seed: int = 0,
    ) -> None:
        """`keys` are those of the APIs; None stands for any value, and for no limit of `times`. `broker` is the node id
        of the one at which it is met."""
        self.kind = kind
        self.keys = keys
        self.error_code = error_code
        self.delay_seconds = delay_seconds
        self.at_byte = at_byte
        self.versions = versions
        self.client_id = client_id
        self.topic = topic
        self.partition = partition
        self.group = group
        self.transactional_id = transactional_id
        self.broker = broker
        self.left = times
        self.probability = probability
        self._draws = Random(seed)
        self.fired = 0
        self.passed = 0

    @property
    def asks_for_content(self) -> bool:
        """Whether only the body of a request tells if it matches."""
        return (self.topic, self.partition, self.group, self.transactional_id) != (None,) * 4

    def draw(self) -> bool:
        """Whether a request that matches meets the fault."""
        if self.probability < 1.0 and self._draws.random() >= self.probability:
            self.passed += 1
            return False
        return True

    def count(self) -> None:
        """A request has met the fault."""
        self.fired += 1
        if self.left is not None:
            self.left -= 1
