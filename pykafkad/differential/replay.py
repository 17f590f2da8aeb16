"""Asks a broker what was asked in a recording, in the same order, and compares its answers with those of then."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from pykafkad.differential import links
from pykafkad.differential.comparison import ATTEMPTS, PAUSE_SECONDS, Comparison, Difference
from pykafkad.differential.links import Link, Secured
from pykafkad.differential.recording import Event


class Replay:
    """One run over a recording."""

    def __init__(self, broker: tuple[str, int] | Secured) -> None:
        self._broker = broker
        self._comparison = Comparison()
        self._links: dict[int, Link] = {}
        # By connection: the request that has no answer so far, as it was recorded and as it was sent.
        self._asked: dict[int, tuple[int, bytes, bytes]] = {}
        self._pause = threading.Event()
        self.requests = 0
        self.compared = 0

    def run(self, events: Iterable[Event]) -> Iterator[Difference]:
        """Each answer that differs, as it comes. Raises OSError for a broker that is not there, and what reading the
        events does."""
        try:
            for event in events:
                if event.is_request:
                    self._ask(event)
                elif event.connection in self._asked:
                    found = self._compare(event)
                    if found is not None:
                        yield found
        finally:
            for each in self._links.values():
                each.close()

    def _ask(self, event: Event) -> None:
        assert event.frame is not None
        if event.connection not in self._links:
            self._links[event.connection] = links.connect(self._broker)
        self.requests += 1
        sent = self._comparison.translate(event.frame)
        self._asked[event.connection] = self.requests, event.frame, sent
        self._links[event.connection].send(sent)

    def _compare(self, event: Event) -> Difference | None:
        number, request, sent = self._asked.pop(event.connection)
        answer = self._answer(event, request, sent)
        if event.frame is None or answer is None:
            # What follows on it begins with a new connection.
            self._links.pop(event.connection).close()
        self.compared += 1
        self._catch_up(event, request, answer)
        places = self._comparison.compare(request, event.frame, answer)
        return Difference(number, *self._comparison.head(request), places) if places else None

    def _catch_up(self, event: Event, request: bytes, answer: bytes | None) -> None:
        """Ask for records that a member of a share group was given in the recording."""
        more = self._comparison.behind(request, event.frame, answer)
        while more is not None:
            self._pause.wait(PAUSE_SECONDS)
            link = self._links[event.connection]
            link.send(more)
            more = self._comparison.still_behind(request, link.receive())

    def _answer(self, event: Event, request: bytes, sent: bytes) -> bytes | None:
        """That of a broker which is ready."""
        link = self._links[event.connection]
        answer = link.receive()
        for _ in range(ATTEMPTS):
            if not self._comparison.is_not_ready(request, event.frame, answer):
                break
            self._pause.wait(PAUSE_SECONDS)
            link.send(sent)
            answer = link.receive()
        return answer
