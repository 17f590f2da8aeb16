"""Who asks: a connection's session, from its acceptance to its end.

A session knows the listener, the principal and the stage of its login. It answers whether the principal may do an
operation on a resource, and lends its connection the functions that serve whole small frames without a message (the
fast paths). Those look at no authorization: a session that an authorizer watches has none.
"""

from __future__ import annotations

from collections import namedtuple

from pykafkad.handlers import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from pykafkad.server.connection import Connection
    from pykafkad.server.listeners import Listener

    FastPath = Callable[[Connection, memoryview, int, int, int, int], bool]
    """`serve(connection, view, start, end, version, correlation_id)`: whether the frame `view[start:end]` was
    served."""

    class Authorizer(Protocol):
        """What decides who may do what."""

        def authorize(
            self, principal: str, client_address: str, operation: str, resource_type: str, resource_name: str | None
        ) -> bool:
            """Whether `principal` ("User:alice"), calling from `client_address` ("127.0.0.1"), may do `operation`
            ("Read") on the resource of that type ("Topic") and name; without a name, on any resource of that type."""


ANONYMOUS = "User:ANONYMOUS"
"""The principal of everybody who did not log in, as on every PLAINTEXT listener."""

Stage = namedtuple("Stage", ("name", "api_keys"))
Stage.__doc__ = """A step of the login: its name, and the keys of the APIs that are answered in it (None: all)."""


def _login_stage(name: str) -> Stage:
    return Stage(name, frozenset(row.key for row in table.ROWS if name in row.login_stages))


HANDSHAKE = _login_stage(table.HANDSHAKE_STAGE)
AUTHENTICATE = _login_stage(table.AUTHENTICATE_STAGE)
READY = Stage("ready", None)

STAGES = {HANDSHAKE: (AUTHENTICATE,), AUTHENTICATE: (AUTHENTICATE, READY), READY: (HANDSHAKE,)}
"""The stages of a login, each with those that may follow. A session of a PLAINTEXT listener begins, and stays, in
READY; who is ready may log in again (KIP-368)."""

MAX_DECISIONS = 10_000
"""How many decisions of the authorizer a session remembers; then it asks anew."""


class Session:
    """One connection's session. Made by `Sessions.open`."""

    __slots__ = ("_address", "_decisions", "_generation", "_sessions", "fast_paths", "listener", "principal", "stage")

    def __init__(self, sessions: Sessions, listener: Listener, peer: str) -> None:
        self._sessions = sessions
        self._address = peer
        self._decisions: dict[tuple[str, str, str | None], bool] | None = None
        self._generation = 0
        self.listener = listener
        self.principal = ANONYMOUS
        self.stage = READY
        self.fast_paths: dict[int, FastPath] = sessions.fast_paths
        """What serves a frame without a message, by the frame's first four bytes (API key and version)."""

    def advance(self, stage: Stage) -> None:
        """Go on to the next stage of the login; raises ValueError for one that may not follow. Fast paths look at no
        stage, so only one who is ready has them; and what was decided of another principal counts no more."""
        if stage not in STAGES[self.stage]:
            raise ValueError(f"stage {stage.name} does not follow {self.stage.name}")
        self.stage = stage
        self.fast_paths = self._sessions.fast_paths if stage is READY else {}
        self._decisions = None

    def allowed(self, operation: str, resource_type: str, resource_name: str | None) -> bool:
        """Whether the principal may do `operation` on the resource, or without a name on any resource of the type. The
        decision is remembered until the ACLs change."""
        sessions = self._sessions
        if sessions.authorizer is None:
            return True
        decisions = self._decisions
        if decisions is None or self._generation != sessions.generation or len(decisions) >= MAX_DECISIONS:
            decisions = self._decisions = {}
            self._generation = sessions.generation
        key = (operation, resource_type, resource_name)
        decision = decisions.get(key)
        if decision is None:
            decision = decisions[key] = sessions.authorizer.authorize(
                self.principal, self._address.rpartition(":")[0].strip("[]"), operation, resource_type, resource_name
            )
        return decision


class Sessions:
    """Opens the sessions of a node's connections."""

    __slots__ = ("authorizer", "fast_paths", "generation")

    def __init__(self, fast_paths: dict[int, FastPath], authorizer: Authorizer | None) -> None:
        """`fast_paths` are for sessions that no authorizer watches; without an authorizer everybody may do
        everything."""
        self.authorizer = authorizer
        self.fast_paths = fast_paths if authorizer is None else {}
        self.generation = 0

    def open(self, listener: Listener, peer: str) -> Session:
        """The session of a connection that `listener` accepted from `peer` ("host:port")."""
        return Session(self, listener, peer)

    def acls_changed(self) -> None:
        """What the sessions remember of the authorizer's decisions may be wrong now."""
        self.generation += 1
