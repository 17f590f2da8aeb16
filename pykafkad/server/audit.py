"""Audit lines: who asked from where to do what on which resource, whether he may, and which rule says so.

    2026-11-21T12:07:27.123Z INFO audit denied principal=User:bob address=10.0.0.1 operation=Read resource=Topic
        name=orders request=Fetch rule="no entry"

As by Kafka's `kafka.authorizer.logger`, a denial is a line at INFO and a permission one at DEBUG, and what is asked
only to tell a client what it may, or what to leave out of an answer, is none. Every denied row of a request is told,
again when the request is repeated. Permissions are told on request (`pykafkad.audit.allowed`): once for each
connection, operation and resource, until ACLs change, and once more when requests of that caller at that resource begin
to be served by a fast path; Kafka writes a line for each request.

Lines are bounded like those of the log (`Sink`), and each principal has a share of them (`LINES_OF_ONE_PER_SECOND`), so
that nobody can hide what others do: beyond that they are dropped, and the next line tells how many. They hold names and
addresses, and nothing else of a request. A broker without audit does not import this module.
"""

from __future__ import annotations

from pykafkad.errors import ConfigError
from pykafkad.handlers.context import host_of
from pykafkad.server.logs import Sink, cut, end_of_file, standard_error, timestamp
from pykafkad.server.session import MAX_REMEMBERED_NAME, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.clock import Clock
    from pykafkad.config import Settings
    from pykafkad.handlers.authorization import Rule
    from pykafkad.server.listeners import Listener
    from pykafkad.server.session import Authorizer, Sessions
    from pykafkad.server.wiring import Process

STANDARD_ERROR = "-"
"""In place of a file's name: the lines go where those of the log go."""

JSON_ENDING = ".jsonl"

ANY_NAME = "(any)"
"""What stands for the resource where one of any name suffices."""


LINES_OF_ONE_PER_SECOND = 200
"""So many lines of a second are about one principal."""


class JsonSink(Sink):
    """Writes each line as an object."""

    def render(self, now_ms: int, level: str, name: str, event: str, fields: dict[str, object]) -> str:
        """The text of one line, with its end."""
        import json

        values = {key: cut(key, value) if isinstance(value, str) else value for key, value in fields.items()}
        return json.dumps({"time": timestamp(now_ms), "level": level, "event": event, **values}) + "\n"


class Audit:
    """The audit of one process."""

    __slots__ = ("_authorizer", "_clock", "_lines", "_second", "_sink", "tells_allowed")

    def __init__(self, authorizer: Authorizer, sink: Sink, clock: Clock, *, tells_allowed: bool) -> None:
        self._authorizer = authorizer
        self._sink = sink
        self._clock = clock
        self._second = 0
        # How many lines of this second are about a principal. Only those that had room are counted, which have a bound.
        self._lines: dict[str, int] = {}
        self.tells_allowed = tells_allowed
        """Whether permissions are told too."""

    def tell(
        self, is_allowed: bool, caller: tuple[str, str], action: tuple[str, str, str | None], request: str
    ) -> None:
        """One line. `caller` is the principal and its address, `action` the operation, the type of the resource and its
        name; `request` names the API, or is empty where it is not known."""
        now_ms = self._clock.now_ms()
        if not self._has_room(caller[0], now_ms // 1000):
            self._sink.dropped += 1
            return
        # To explain looks through the entries once more: only for a line that is written.
        explain: Callable[..., str] | None = getattr(self._authorizer, "explain", None)
        operation, resource_type, name = action
        self._sink.write_line(
            now_ms,
            "debug" if is_allowed else "info",
            "audit",
            "allowed" if is_allowed else "denied",
            {
                "principal": caller[0],
                "address": caller[1],
                "operation": operation,
                "resource": resource_type,
                "name": ANY_NAME if name is None else name,
                "request": request or None,
                "rule": None if explain is None else explain(*caller, *action),
            },
        )

    def _has_room(self, principal: str, second: int) -> bool:
        if second != self._second:
            self._second = second
            self._lines.clear()
        told = self._lines.get(principal, 0)
        if told >= LINES_OF_ONE_PER_SECOND or not self._sink.has_room(second):
            return False
        self._lines[principal] = told + 1
        return True

    def close(self) -> None:
        """Tell of the lines that were dropped last, and close their file."""
        self._sink.tell_dropped()
        self._sink.close()


class AuditedSession(Session):
    """A session whose decisions are told."""

    __slots__ = ("_told", "_told_of")

    def __init__(self, sessions: Sessions, listener: Listener, peer: str) -> None:
        super().__init__(sessions, listener, peer)
        self._told: set[tuple[str, str, str | None]] = set()
        self._told_of: object = None
        """The decisions that those in `_told` are of."""

    def allowed(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
        """See `Session.allowed`."""
        decision = self.could(operation, resource_type, resource_name)
        audit = self._sessions.audit
        if decision and audit is not None and audit.tells_allowed:
            self._tell_once(audit, (operation, resource_type, resource_name))
        return decision

    def _tell_once(self, audit: Audit, action: tuple[str, str, str | None]) -> None:
        if self._told_of is not self._decisions:
            self._told_of = self._decisions
            self._told.clear()
        if action not in self._told:
            # As many as there are decisions, which have a bound; those on longer names are not remembered.
            if action[2] is None or len(action[2]) <= MAX_REMEMBERED_NAME:
                self._told.add(action)
            audit.tell(True, self._caller, action, "")

    @property
    def _caller(self) -> tuple[str, str]:
        return self.principal, host_of(self._address)[1:]

    def refused(self, rule: Rule, resource_name: str | None, request: str = "") -> None:
        """See `Session.refused`."""
        audit = self._sessions.audit
        if audit is not None:
            audit.tell(False, self._caller, (rule.operation, rule.resource_type, resource_name), request)


class _Telling:
    """The authorizer as fast paths ask it: what they begin to serve is told."""

    __slots__ = ("_audit", "_authorizer")

    def __init__(self, authorizer: Authorizer, audit: Audit) -> None:
        self._authorizer = authorizer
        self._audit = audit

    def authorize(
        self, principal: str, client_address: str, operation: str, resource_type: str, resource_name: str | None
    ) -> bool:
        """As the authorizer itself; a denial is told by whoever answers the request then."""
        action = operation, resource_type, resource_name
        decision = self._authorizer.authorize(principal, client_address, *action)
        if decision:
            self._audit.tell(True, (principal, client_address), action, "")
        return decision


def install(process: Process, authorizer: Authorizer, settings: Settings) -> Audit:
    """Have every session from now on tell of its decisions, as the settings say. Raises ConfigError if the file can't
    be opened."""
    path, tells_allowed = settings.pykafkad_audit_file, settings.pykafkad_audit_allowed
    try:
        write = standard_error() if path == STANDARD_ERROR else end_of_file(path)
    except OSError as error:
        raise ConfigError(f"pykafkad.audit.file: {path}: {(error.strerror or str(error)).lower()}") from None
    kind = JsonSink if path.endswith(JSON_ENDING) else Sink
    clock = process.runtime.clock
    audit = Audit(authorizer, kind(write, clock), clock, tells_allowed=tells_allowed)
    controller = process.own_controller
    of_controller = []
    if controller is not None:
        controller.services.audit = audit
        of_controller.append(controller.sessions)
    of_broker = [] if process.broker is None else [process.broker.sessions]
    for sessions in (*of_controller, *of_broker):
        sessions.audit, sessions.session_class = audit, AuditedSession
        if tells_allowed and sessions.watched_fast_paths is not None:
            sessions.watched_fast_paths.authorizer = _Telling(authorizer, audit)
    return audit
