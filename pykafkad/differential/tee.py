"""Stands between clients and a broker, or two: each request goes to both, and the first one's answer to the client.

Every connection of a client has its own to each broker, and a thread: one request is served after another, as a broker
does. Clients are told the tee's own address in place of the brokers', so that they come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from typing import Any

from pykafkad.differential import group_members, links
from pykafkad.differential.comparison import ATTEMPTS, PAUSE_SECONDS, Comparison, Difference
from pykafkad.differential.links import Link, Secured
from pykafkad.differential.recording import Event
from pykafkad.errors import ProtocolError
from pykafkad.server import trace_secrets
from pykafkad.wire import frames, messages

MOST_CONNECTIONS = 200
MOST_DIFFERENCES = 1000
"""So many are kept; more are counted."""

_PRODUCE = 0
_SASL_HANDSHAKE = 17
_IN_ONE_ORDER = (_PRODUCE, *group_members.HEARTBEATS)
"""Requests of which both brokers get one after the other: whose came first decides about offsets and assignments."""
_OF_APPLICATIONS = (group_members.STREAMS, 89)
"""APIs whose addresses are those of applications, which no broker has."""


Note = Callable[[Event], None]


class Tee:
    """Listens from its making on, serves from `start` on, ends with `close`."""

    def __init__(
        self,
        listen: tuple[str, int],
        first: tuple[str, int] | Secured,
        second: tuple[str, int] | Secured | None = None,
        note: Note | None = None,
    ) -> None:
        """Raises OSError for an address that is taken. `note` is told of what passes between clients
        and the first broker, without the secrets of logins and settings; it ends at its first OSError."""
        self._brokers = first, second
        self._note = note
        self._listening = links.listen(listen)
        self.host, self.port = self._listening.getsockname()[:2]
        self._lock = threading.Lock()
        self._order = threading.Lock()
        self._pause = threading.Event()
        self._links: dict[int, Link] = {}
        self._threads: list[threading.Thread] = []
        self._numbers = count(1)
        self._flexible = frames.flexible_versions()
        self.comparison = Comparison()
        self.requests = 0
        self.note_problem: str | None = None
        self.differences: list[Difference] = []
        self.different = 0

    def start(self) -> None:
        """Serve, on threads of its own."""
        self._begin(self._accept)

    @property
    def reached_here(self) -> tuple[str, int]:
        """The address at which programs of this machine reach it: no one address, such as 0.0.0.0, stands for all."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host), self.port

    def close(self) -> None:
        """End; every connection is closed, and every thread has ended."""
        self._pause.set()
        # A thread that accepts does not notice that its socket is closed: one more client wakes it.
        try:
            links.connect(self.reached_here).close()
        except OSError:
            pass
        self._threads[0].join() if self._threads else None
        self._listening.close()
        with self._lock:
            for each in self._links.values():
                each.close()
        for thread in self._threads:
            thread.join()

    def wait(self) -> None:
        """Until it is closed, or a signal comes."""
        while not self._pause.wait(1.0):
            pass

    def _begin(self, target: Callable[..., None], *arguments: Any) -> None:
        self._threads = [each for each in self._threads if each.is_alive() or each.ident is None]
        thread = threading.Thread(target=target, args=arguments, name="pykafkad-tee", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        for connection in count(1):
            accepted, _ = self._listening.accept()
            with self._lock:
                is_full = len(self._links) >= 3 * MOST_CONNECTIONS
            if self._pause.is_set() or is_full:
                accepted.close()
                if self._pause.is_set():
                    return
                continue
            client = Link(accepted)
            client.wait_longer()
            self._begin(self._serve, client, connection)

    def _serve(self, client: Link, connection: int) -> None:
        opened = [client]
        try:
            opened += [links.connect(each) for each in self._brokers if each is not None]
            with self._lock:
                self._links.update({id(each): each for each in opened})
            if not self._pause.is_set():
                self._exchange(client, connection, opened[1:])
        except OSError:
            # A broker that is not there: the client finds the connection closed.
            pass
        finally:
            with self._lock:
                for each in opened:
                    self._links.pop(id(each), None)
            for each in opened:
                each.close()

    def _exchange(self, client: Link, connection: int, brokers: list[Link]) -> None:
        while (request := client.receive()) is not None:
            try:
                key, version, _ = frames.peek_request(memoryview(request))
            except ProtocolError:
                return
            if self._note is not None and (key, version) == (_SASL_HANDSHAKE, 0):
                # What follows it are bare tokens of the login, which cannot be told from requests.
                return
            self._tell(Event(connection, True, request), key, version)
            if self._is_without_answer(request, key):
                self._send(request, brokers)
                continue
            if len(brokers) > 1:
                with self._order if key in _IN_ONE_ORDER else nullcontext():
                    answer = self._ask_both(request, brokers)
            else:
                brokers[0].send(request)
                answer = brokers[0].receive()
            self._tell(Event(connection, False, answer), key, version)
            if answer is None:
                return
            client.send(self._readdressed(key, version, answer, client.own_address()))

    def _send(self, request: bytes, brokers: list[Link]) -> None:
        brokers[0].send(request)
        if len(brokers) > 1:
            with self._lock:
                request = self.comparison.translate(request)
            brokers[1].send(request)

    def _tell(self, event: Event, key: int, version: int) -> None:
        if self._note is not None and event.frame is not None and key in trace_secrets.KEYS:
            frame = trace_secrets.without(event.frame, key, version, not event.is_request, self._flexible)
            event = event._replace(frame=frame)
        with self._lock:
            self.requests += event.is_request
            # A frame that may hold secrets and cannot be read is empty now: it is not noted.
            if self._note is not None and self.note_problem is None and event.frame != b"":
                try:
                    self._note(event)
                except OSError as problem:
                    self.note_problem = problem.strerror or str(problem)

    def _is_without_answer(self, request: bytes, key: int) -> bool:
        return key == _PRODUCE and getattr(self.comparison.asked(request), "acks", None) == 0

    # --- comparing ----------------------------------------------------------------------------------------------------

    def _again(self, broker: Link, request: bytes) -> bytes | None:
        """The answer to a request that is repeated."""
        broker.send(request)
        return broker.receive()

    def _is_on_its_way(self, request: bytes, answer: bytes | None, other: bytes | None) -> bool:
        with self._lock:
            return self.comparison.is_on_its_way(request, answer, other)

    def _ask_both(self, request: bytes, brokers: list[Link]) -> bytes | None:
        """Compare the answers of both; the first one, for the client."""
        with self._lock:
            second_request = self.comparison.translate(request)
        brokers[0].send(request)
        brokers[1].send(second_request)
        answer, other = (each.receive() for each in brokers)
        for attempt in range(ATTEMPTS):
            is_not_ready = self.comparison.is_not_ready(request, answer, other)
            is_loading = not is_not_ready and self.comparison.is_loading(request, answer, other)
            is_on_its_way = attempt < group_members.ATTEMPTS and self._is_on_its_way(request, answer, other)
            if not (is_not_ready or is_loading or is_on_its_way):
                break
            if self._pause.wait(PAUSE_SECONDS):
                return answer
            if not is_not_ready:
                answer = self._again(brokers[0], request)
            if not is_loading:
                other = self._again(brokers[1], second_request)
        self._catch_up(request, answer, other, brokers[1])
        with self._lock:
            number = next(self._numbers)
            places = self.comparison.compare(request, answer, other)
            if places:
                self.different += 1
                if len(self.differences) < MOST_DIFFERENCES:
                    self.differences.append(Difference(number, *self.comparison.head(request), places))
        return answer

    def _catch_up(self, request: bytes, answer: bytes | None, other: bytes | None, second: Link) -> None:
        """Ask the second broker for records that it has not given a member of a share group, and the first one has."""
        with self._lock:
            more = self.comparison.behind(request, answer, other)
        while more is not None and not self._pause.wait(PAUSE_SECONDS):
            given = self._again(second, more)
            with self._lock:
                more = self.comparison.still_behind(request, given)

    # --- addresses ----------------------------------------------------------------------------------------------------

    def _readdressed(self, key: int, version: int, answer: bytes, here: tuple[str, int]) -> bytes:
        """The answer with the tee's address, as the client has reached it, wherever it has that of a broker."""
        try:
            message = self.comparison.decoded(key, version, answer)
        except (ProtocolError, ValueError):
            return answer
        if key in _OF_APPLICATIONS or not _readdress(message, here):
            return answer
        start = frames.read_response_header(
            memoryview(answer), frames.response_is_tagged(key, version, self._flexible)
        )[1]
        chunks: list[Any] = [bytearray(answer[:start])]
        messages.encoder(type(message), version)(message, chunks)
        return b"".join(chunks)


def _readdress(value: Any, here: tuple[str, int]) -> bool:
    if isinstance(value, list):
        return sum(_readdress(each, here) for each in value) > 0
    if not hasattr(value, "_root"):
        return False
    names = value._root.__slots__
    changed = False
    if "host" in names and "port" in names and value.host:
        value.host, value.port = here
        changed = True
    return sum(_readdress(getattr(value, name), here) for name in names) > 0 or changed
